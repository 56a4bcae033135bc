/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_match.c - the queues of posted receives and unexpected messages, and
 * their hash tables. unm_match.h describes them.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/unm_match.h"
#include "util/unm_list.h"

#define UNM_MATCH_MIN_LOG2	6	/* buckets at start: 64 */
#define UNM_MATCH_MAX_LOG2	16
#define UNM_MATCH_LOAD		4u	/* most entries a bucket */
#define UNM_MATCH_TABLES	4

/* ---- Tables ---------------------------------------------------------- */

/* Allocate 2^log2 buckets for each table. All tables are in one allocation, at
 * m->recv. */
static int unm_match_tables(struct unm_match *m, uint32_t log2)
{
	size_t n = (size_t)1 << log2;
	struct unm_list *b = malloc(UNM_MATCH_TABLES * n * sizeof(*b));

	if (b == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < UNM_MATCH_TABLES * n; i++)
		unm_list_init(&b[i]);
	m->recv = b;
	m->by_tag = b + n;
	m->by_src = b + 2 * n;
	m->context = b + 3 * n;
	m->shift = 64 - log2;
	return 0;
}

int unm_match_construct(struct unm_match *m)
{
	unm_list_init(&m->wild);
	unm_list_init(&m->all);
	m->seq = 0;
	m->nrecv = 0;
	m->nany = 0;
	m->nmsg = 0;
	m->indexed = false;
	m->named = NULL;
	m->recv = NULL;
	return unm_match_tables(m, UNM_MATCH_MIN_LOG2);
}

void unm_match_destruct(struct unm_match *m)
{
	free(m->recv);
	m->recv = NULL;
}

static void unm_match_link_recv(struct unm_match *m, struct unm_match_recv *r)
{
	unm_list_append(&m->recv[unm_match_bucket(m, r->tag, r->src)],
			&r->link);
}

static inline struct unm_list *unm_match_same(const struct unm_match *m,
					      const void *context)
{
	return &m->context[unm_match_hash(m, (uintptr_t)context)];
}

static void unm_match_link_context(struct unm_match *m,
				   struct unm_match_recv *r)
{
	unm_list_append(unm_match_same(m, r->context), &r->same);
}

static void unm_match_link_msg(struct unm_match *m, struct unm_match_msg *g)
{
	unm_list_append(&m->by_tag[unm_match_bucket(m, g->tag, 0)],
			&g->by_tag);
	unm_list_append(&m->by_src[unm_match_bucket(m, g->tag, *g->src)],
			&g->by_src);
}

/* Insert every receive into its bucket by context. */
static void unm_match_index(struct unm_match *m)
{
	unm_list_for_each(pos, &m->wild)
		unm_match_link_context(m, unm_container(pos,
				struct unm_match_recv, link));
	for (uint32_t i = 0; i < 1u << (64 - m->shift); i++)
		unm_list_for_each(pos, &m->recv[i])
			unm_match_link_context(m, unm_container(pos,
					struct unm_match_recv, link));
	m->indexed = true;
}

/*
 * Double the buckets. Two old buckets never merge, so keeping the order within
 * each old bucket keeps the order within each new one.
 */
static __attribute__((noinline)) void unm_match_grow(struct unm_match *m)
{
	struct unm_match old = *m;
	uint32_t n = 1u << (64 - old.shift);
	struct unm_list *node;

	if (64 - old.shift == UNM_MATCH_MAX_LOG2 ||
	    unm_match_tables(m, 64 - old.shift + 1) != 0)
		return;			/* keep the tables: longer chains */
	for (uint32_t i = 0; i < n; i++)
		while ((node = unm_list_pop(&old.recv[i])) != NULL)
			unm_match_link_recv(m, unm_container(node,
					struct unm_match_recv, link));
	if (m->indexed)
		unm_match_index(m);
	unm_list_for_each(pos, &m->all)
		unm_match_link_msg(m, unm_container(pos, struct unm_match_msg,
						    all));
	free(old.recv);
}

static inline void unm_match_room(struct unm_match *m, uint32_t count)
{
	if (__builtin_expect(count >= UNM_MATCH_LOAD << (64 - m->shift), 0))
		unm_match_grow(m);
}

/* ---- Queues ---------------------------------------------------------- */

void unm_match_post(struct unm_match *m, struct unm_match_recv *recv)
{
	unm_match_room(m, m->nrecv);
	recv->seq = m->seq++;
	if (recv->ignore & UNM_MATCH_HASHED) {
		unm_list_append(&m->wild, &recv->link);
	} else {
		m->nany += recv->src == UNM_MATCH_ANY;
		unm_match_link_recv(m, recv);
	}
	if (__builtin_expect(m->indexed, 0))
		unm_match_link_context(m, recv);
	if (__builtin_expect(m->named != NULL, 0))
		unm_named_more(m->named, recv->src);
	m->nrecv++;
}

/* Let a posted receive name another source. */
static void unm_match_rename(struct unm_match *m, struct unm_match_recv *recv,
			     uint64_t src)
{
	if (m->named != NULL) {
		unm_named_less(m->named, recv->src);
		unm_named_more(m->named, src);
	}
	recv->src = src;
}

/* Move a receive to the bucket of another source, after the older receives of
 * that bucket. */
static void unm_match_move_recv(struct unm_match *m,
				struct unm_match_recv *recv, uint64_t src)
{
	struct unm_list *head = &m->recv[unm_match_bucket(m, recv->tag, src)];
	struct unm_list *pos;

	unm_match_rename(m, recv, src);
	unm_list_remove(&recv->link);
	pos = head->prev;
	while (pos != head && unm_container(pos, struct unm_match_recv,
					    link)->seq > recv->seq)
		pos = pos->prev;
	unm_list_append(pos->next, &recv->link);
}

/* True if a receive names a source. UNM_MATCH_NONE is never changed back: the
 * index with which the receive was posted may be another address's by now. */
static bool unm_match_named(const struct unm_match_recv *recv)
{
	return recv->src != UNM_MATCH_ANY && recv->src != UNM_MATCH_NONE;
}

bool unm_match_rename_recvs(struct unm_match *m, unm_match_src_fn src_of,
			    const void *arg)
{
	bool renamed = false;

	unm_list_for_each(pos, &m->wild) {
		struct unm_match_recv *r =
			unm_container(pos, struct unm_match_recv, link);
		uint64_t src = unm_match_named(r) ? src_of(r, arg) : r->src;

		renamed |= src != r->src && src != UNM_MATCH_NONE;
		if (src != r->src)
			unm_match_rename(m, r, src);
	}
	/* a receive that moved to a later bucket is visited again; its source
	 * does not change then */
	for (uint32_t i = 0; i < 1u << (64 - m->shift); i++)
		unm_list_for_each_safe(pos, tmp, &m->recv[i]) {
			struct unm_match_recv *r =
				unm_container(pos, struct unm_match_recv,
					      link);
			uint64_t src = unm_match_named(r) ? src_of(r, arg) :
				r->src;

			if (src == r->src)
				continue;
			renamed |= src != UNM_MATCH_NONE;
			unm_match_move_recv(m, r, src);
		}
	return renamed;
}

static void unm_match_take_from(struct unm_match *m, struct unm_list *head,
				uint64_t src, struct unm_list *taken)
{
	unm_list_for_each_safe(pos, tmp, head) {
		struct unm_match_recv *r =
			unm_container(pos, struct unm_match_recv, link);

		if (r->src != src)
			continue;
		unm_match_unpost(m, r);
		unm_list_append(taken, &r->link);
	}
}

void unm_match_take_source(struct unm_match *m, uint64_t src,
			   struct unm_list *taken)
{
	unm_match_take_from(m, &m->wild, src, taken);
	for (uint32_t i = 0; i < 1u << (64 - m->shift); i++)
		unm_match_take_from(m, &m->recv[i], src, taken);
}

uint32_t unm_match_count_any(const struct unm_match *m)
{
	uint32_t n = m->nany;

	unm_list_for_each(pos, &m->wild)
		n += unm_container(pos, struct unm_match_recv, link)->src ==
			UNM_MATCH_ANY;
	return n;
}

void unm_match_store(struct unm_match *m, struct unm_match_msg *msg)
{
	unm_match_room(m, m->nmsg);
	msg->seq = m->seq++;
	unm_match_link_msg(m, msg);
	unm_list_append(&m->all, &msg->all);
	m->nmsg++;
}

void unm_match_unstore(struct unm_match *m, struct unm_match_msg *msg)
{
	unm_list_remove(&msg->by_tag);
	unm_list_remove(&msg->by_src);
	unm_list_remove(&msg->all);
	m->nmsg--;
}

void unm_match_source_changed(struct unm_match *m, struct unm_match_msg *msg)
{
	struct unm_list *head =
		&m->by_src[unm_match_bucket(m, msg->tag, *msg->src)];
	struct unm_list *pos;

	unm_list_remove(&msg->by_src);
	pos = head->prev;
	/* another sender may have had this fi_addr_t: keep older messages
	 * first */
	while (pos != head && unm_container(pos, struct unm_match_msg,
					    by_src)->seq > msg->seq)
		pos = pos->prev;
	unm_list_append(pos->next, &msg->by_src);
}

/* ---- Searches -------------------------------------------------------- */

static struct unm_match_recv *unm_match_wild(struct unm_match *m, uint64_t tag,
					     uint64_t src)
{
	unm_list_for_each(pos, &m->wild) {
		struct unm_match_recv *r =
			unm_container(pos, struct unm_match_recv, link);

		if (((r->tag ^ tag) & ~r->ignore) == 0 &&
		    (r->src == UNM_MATCH_ANY || r->src == src))
			return r;
	}
	return NULL;
}

static struct unm_match_recv *unm_match_older(struct unm_match_recv *a,
					      struct unm_match_recv *b)
{
	return a == NULL || (b != NULL && b->seq < a->seq) ? b : a;
}

struct unm_match_recv *unm_match_find_older(struct unm_match *m, uint64_t tag,
					    uint64_t src,
					    struct unm_match_recv *best)
{
	if (m->nany != 0)
		best = unm_match_older(best, unm_match_exact(m, tag,
							     UNM_MATCH_ANY));
	if (!unm_list_empty(&m->wild))
		best = unm_match_older(best, unm_match_wild(m, tag, src));
	return best;
}

struct unm_match_recv *unm_match_find_context(struct unm_match *m,
					      const void *context)
{
	struct unm_match_recv *best = NULL;

	if (!m->indexed)
		unm_match_index(m);
	unm_list_for_each(pos, unm_match_same(m, context)) {
		struct unm_match_recv *r =
			unm_container(pos, struct unm_match_recv, same);

		if (r->context == context)
			best = unm_match_older(best, r);
	}
	return best;
}

/* The oldest matching message of a list; off: offset of the list's member. */
static inline struct unm_match_msg *unm_match_scan(struct unm_list *head,
						   size_t off, uint64_t tag,
						   uint64_t ignore,
						   uint64_t src)
{
	unm_list_for_each(pos, head) {
		struct unm_match_msg *g = (void *)((char *)pos - off);

		if (((g->tag ^ tag) & ~ignore) == 0 &&
		    (src == UNM_MATCH_ANY || src == *g->src))
			return g;
	}
	return NULL;
}

struct unm_match_msg *unm_match_find_msg(struct unm_match *m, uint64_t tag,
					 uint64_t ignore, uint64_t src)
{
	if (ignore & UNM_MATCH_HASHED)
		return unm_match_scan(&m->all,
				      offsetof(struct unm_match_msg, all),
				      tag, ignore, src);
	if (src == UNM_MATCH_ANY)
		return unm_match_scan(&m->by_tag[unm_match_bucket(m, tag, 0)],
				      offsetof(struct unm_match_msg, by_tag),
				      tag, ignore, src);
	return unm_match_scan(&m->by_src[unm_match_bucket(m, tag, src)],
			      offsetof(struct unm_match_msg, by_src),
			      tag, ignore, src);
}
