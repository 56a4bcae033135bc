/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_list.h - intrusive circular doubly linked list.
 *
 * A list is a head, and nodes that are members of the listed structures. An
 * empty head, and a node in no list, point to themselves. No function locks:
 * the caller protects the list and all of its nodes.
 */
#ifndef UNM_LIST_H
#define UNM_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The structure of this type whose member `member` is at ptr. */
#define unm_container(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* A head or a node: which of them, only its owner knows. */
struct unm_list {
	struct unm_list *next;
	struct unm_list *prev;
};

/* Make an empty head, or a node in no list. */
static inline void unm_list_init(struct unm_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool unm_list_empty(const struct unm_list *head)
{
	return head->next == head;
}

/* Insert a node that is in no list in front of head: as the list's last node if
 * head is the head, else before that node. */
static inline void unm_list_append(struct unm_list *head, struct unm_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Remove a node from its list. The node is in no list afterwards, so removing
 * it again changes nothing. */
static inline void unm_list_remove(struct unm_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	unm_list_init(node);
}

/* Remove the first node and return it; NULL if the list is empty. */
static inline struct unm_list *unm_list_pop(struct unm_list *head)
{
	struct unm_list *node = head->next;

	if (node == head)
		return NULL;
	unm_list_remove(node);
	return node;
}

/* Visit each node; the body must not remove any. */
#define unm_list_for_each(pos, head) \
	for (struct unm_list *pos = (head)->next; pos != (head); \
	     pos = pos->next)

/* Visit each node; the body may remove pos, but not the node after it. */
#define unm_list_for_each_safe(pos, tmp, head) \
	for (struct unm_list *pos = (head)->next, *tmp = pos->next; \
	     pos != (head); pos = tmp, tmp = pos->next)

#endif /* UNM_LIST_H */
