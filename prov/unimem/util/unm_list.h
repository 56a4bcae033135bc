/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_list.h - intrusive doubly linked list; an empty head points to itself. */
#ifndef UNM_LIST_H
#define UNM_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define unm_container(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

struct unm_list {
	struct unm_list *next;
	struct unm_list *prev;
};

static inline void unm_list_init(struct unm_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool unm_list_empty(const struct unm_list *head)
{
	return head->next == head;
}

static inline void unm_list_append(struct unm_list *head, struct unm_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Leaves the node initialised, so that removing it again does nothing. */
static inline void unm_list_remove(struct unm_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	unm_list_init(node);
}

static inline struct unm_list *unm_list_pop(struct unm_list *head)
{
	struct unm_list *node = head->next;

	if (node == head)
		return NULL;
	unm_list_remove(node);
	return node;
}

#define unm_list_for_each(pos, head) \
	for (struct unm_list *pos = (head)->next; pos != (head); \
	     pos = pos->next)

#define unm_list_for_each_safe(pos, tmp, head) \
	for (struct unm_list *pos = (head)->next, *tmp = pos->next; \
	     pos != (head); pos = tmp, tmp = pos->next)

#endif /* UNM_LIST_H */
