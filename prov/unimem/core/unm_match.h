/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_match.h - matching of receives and messages by tag and source
 * (unm_match.c).
 *
 * The code knows neither packets nor buffers. It has two queues: posted
 * receives without a message, and unexpected messages without a receive. Both
 * are searched in order of arrival, as FI_ORDER_SAS and MPI demand, and both
 * are hashed by the low 48 tag bits and the source:
 *
 * receives	by tag and source (UNM_MATCH_ANY: from any source); and by
 * 		context, from the first fi_cancel() on
 * messages	by tag and source, for receives that name a source; by tag
 * 		alone, for receives that do not
 *
 * A search in a long queue therefore takes constant time if the entries differ
 * in tag or in source. Only receives that ignore hashed tag bits are searched
 * linearly: posted receives of this kind are in the list "wild", and sequence
 * numbers show which of two receives is older; a search for a message with such
 * a mask visits all messages. (MPICH's masks ignore hashed bits only for
 * MPI_ANY_TAG.)
 *
 * Protected by the lock of the endpoint's domain.
 */
#ifndef UNM_MATCH_H
#define UNM_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unm_named.h"
#include "util/unm_list.h"

#define UNM_MATCH_HASHED	((UINT64_C(1) << 48) - 1)
#define UNM_MATCH_ANY		UINT64_MAX	/* source: FI_ADDR_UNSPEC */
#define UNM_MATCH_NONE		(UINT64_MAX - 1) /* source no message has */

/* A posted receive. */
struct unm_match_recv {
	struct unm_list link;		/* in a bucket of recv, or in wild */
	uint64_t seq;			/* position in the order of arrival */
	uint64_t tag;
	uint64_t ignore;		/* tag bits that match any value */
	uint64_t src;			/* fi_addr_t, UNM_MATCH_ANY or _NONE */
	struct unm_list same;		/* in a bucket of context, if indexed */
	void *context;			/* of the receive call */
};

/* An unexpected message. */
struct unm_match_msg {
	struct unm_list by_tag;		/* in a bucket of by_tag */
	struct unm_list by_src;		/* in a bucket of by_src */
	struct unm_list all;		/* in unm_match.all */
	uint64_t seq;			/* position in the order of arrival */
	uint64_t tag;
	const uint64_t *src;		/* sender's fi_addr_t; may change, see
					 * unm_match_source_changed() */
};

/* The two queues of an endpoint, for tagged or for untagged messages. */
struct unm_match {
	struct unm_list *recv;		/* buckets of receives that ignore no
					 * hashed bit, by tag and source */
	struct unm_list *by_tag;	/* buckets of messages by tag */
	struct unm_list *by_src;	/* buckets of messages by tag, source */
	struct unm_list *context;	/* buckets of receives by context */
	struct unm_list wild;		/* receives that ignore hashed bits */
	struct unm_list all;		/* messages, oldest first */
	uint64_t seq;			/* of the next receive or message */
	uint32_t shift;			/* 64 - log2(buckets of each table) */
	uint32_t nrecv;			/* receives */
	uint32_t nany;			/* receives in recv from any source */
	uint32_t nmsg;			/* messages */
	bool indexed;			/* receives are in context, since the
					 * first unm_match_find_context() */
	struct unm_named *named;	/* counts the receives by their source;
					 * NULL: nobody needs to know */
};

/* The bucket of a key. */
static inline uint32_t unm_match_hash(const struct unm_match *m, uint64_t key)
{
	/* Fibonacci hashing: the high bits of the product are well mixed */
	return (key * UINT64_C(0x9E3779B97F4A7C15)) >> m->shift;
}

/* The bucket of a tag and a source. */
static inline uint32_t unm_match_bucket(const struct unm_match *m,
					uint64_t tag, uint64_t src)
{
	return unm_match_hash(m, (tag & UNM_MATCH_HASHED) | src << 48);
}

/* The oldest receive of one bucket that matches; src: UNM_MATCH_ANY finds
 * receives from any source. */
static inline struct unm_match_recv *unm_match_exact(struct unm_match *m,
						     uint64_t tag,
						     uint64_t src)
{
	struct unm_list *head = &m->recv[unm_match_bucket(m, tag, src)];

	unm_list_for_each(pos, head) {
		struct unm_match_recv *r =
			unm_container(pos, struct unm_match_recv, link);

		if (((r->tag ^ tag) & ~r->ignore) == 0 && r->src == src)
			return r;
	}
	return NULL;
}

/* Make empty queues, whose receives are not counted by source. 0 or -ENOMEM.
 * Receives and messages belong to the caller; unm_match_destruct() frees the
 * tables only. */
int unm_match_construct(struct unm_match *m);
void unm_match_destruct(struct unm_match *m);

/* Queue a receive, whose tag, ignore, src and context are set. */
void unm_match_post(struct unm_match *m, struct unm_match_recv *recv);

/* Remove a receive. */
static inline void unm_match_unpost(struct unm_match *m,
				    struct unm_match_recv *recv)
{
	unm_list_remove(&recv->link);
	if (__builtin_expect(m->indexed, 0))
		unm_list_remove(&recv->same);
	m->nany -= recv->src == UNM_MATCH_ANY &&
		!(recv->ignore & UNM_MATCH_HASHED);
	if (__builtin_expect(m->named != NULL, 0))
		unm_named_less(m->named, recv->src);
	m->nrecv--;
}

/* Returns the source that a posted receive names from now on. */
typedef uint64_t (*unm_match_src_fn)(const struct unm_match_recv *recv,
				     const void *arg);

/* Set the source of every posted receive that names a source to the result of
 * src_of(). The receives keep their order. Visits all receives. True: a receive
 * names a source that it did not name before. */
bool unm_match_rename_recvs(struct unm_match *m, unm_match_src_fn src_of,
			    const void *arg);

/* Remove every posted receive that names this source, and append it to the list
 * taken by its link. Receives of one tag keep their order. Visits all
 * receives. */
void unm_match_take_source(struct unm_match *m, uint64_t src,
			   struct unm_list *taken);

/* The number of posted receives from any source. */
uint32_t unm_match_count_any(const struct unm_match *m);

/* Queue an unexpected message, whose tag and src are set; or remove it. */
void unm_match_store(struct unm_match *m, struct unm_match_msg *msg);
void unm_match_unstore(struct unm_match *m, struct unm_match_msg *msg);

/* Note that the fi_addr_t of a queued message's sender (*src) has changed. */
void unm_match_source_changed(struct unm_match *m, struct unm_match_msg *msg);

/* The part of unm_match_find_recv() that is needed while receives from any
 * source, or receives that ignore hashed bits, are posted. best: the oldest
 * receive that names tag and source, or NULL. */
struct unm_match_recv *unm_match_find_older(struct unm_match *m, uint64_t tag,
					    uint64_t src,
					    struct unm_match_recv *best);

/* The oldest posted receive that matches a message, or NULL. It stays queued.
 */
static inline
struct unm_match_recv *unm_match_find_recv(struct unm_match *m, uint64_t tag,
					   uint64_t src)
{
	struct unm_match_recv *best = unm_match_exact(m, tag, src);

	if (m->nany != 0 || !unm_list_empty(&m->wild))
		best = unm_match_find_older(m, tag, src, best);
	return best;
}

/* The oldest posted receive with a context, or NULL. It stays queued. */
struct unm_match_recv *unm_match_find_context(struct unm_match *m,
					      const void *context);

/* The oldest message that matches a receive, or NULL. It stays queued. */
struct unm_match_msg *unm_match_find_msg(struct unm_match *m, uint64_t tag,
					 uint64_t ignore, uint64_t src);

#endif /* UNM_MATCH_H */
