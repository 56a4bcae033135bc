/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_match.h - tag and source matching of receives and messages.
 *
 * Pure: knows neither packets nor buffers. Two queues: receives posted and not
 * matched, messages arrived and not matched. Both are searched in order of
 * arrival, as FI_ORDER_SAS and MPI demand, and both are hashed on the low 48
 * tag bits and the source:
 *
 * receives	by tag and source, those from anywhere under UNM_MATCH_ANY; and
 *		by context, from the first fi_cancel() on
 * messages	by tag and source, for receives that name one; by tag alone, for
 *		those that do not
 *
 * so that long queues cost O(1), whether they differ in tag or in source. Only
 * what ignores hashed tag bits is searched one by one: such receives wait in a
 * list of their own, sequence numbers tell which is older, and such a search
 * for a message passes all that are older. (MPICH's ignore masks touch hashed
 * bits only where the tag is a wildcard.)
 */
#ifndef UNM_MATCH_H
#define UNM_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "util/unm_list.h"

#define UNM_MATCH_HASHED	((UINT64_C(1) << 48) - 1)
#define UNM_MATCH_ANY		UINT64_MAX	/* source: FI_ADDR_UNSPEC */
#define UNM_MATCH_NONE		(UINT64_MAX - 1) /* source no message has */

/* A posted receive. */
struct unm_match_recv {
	struct unm_list link;		/* bucket or wild list */
	uint64_t seq;
	uint64_t tag;
	uint64_t ignore;
	uint64_t src;			/* fi_addr_t, UNM_MATCH_ANY or _NONE */
	struct unm_list same;		/* bucket by context */
	void *context;
};

/* An unexpected message. */
struct unm_match_msg {
	struct unm_list by_tag;		/* bucket */
	struct unm_list by_src;		/* bucket */
	struct unm_list all;		/* every message, oldest first */
	uint64_t seq;
	uint64_t tag;
	const uint64_t *src;		/* sender's fi_addr_t; may change, see
					 * unm_match_renamed() */
};

struct unm_match {
	struct unm_list *recv;		/* buckets of exact receives */
	struct unm_list *by_tag;	/* buckets of messages */
	struct unm_list *by_src;
	struct unm_list *context;	/* buckets of receives */
	struct unm_list wild;		/* receives that ignore hashed bits */
	struct unm_list all;		/* messages, oldest first */
	uint64_t seq;
	uint32_t shift;			/* 64 - log2(buckets) */
	uint32_t nrecv;
	uint32_t nany;			/* exact ones from anywhere */
	uint32_t nmsg;
	bool indexed;			/* by context: once one was asked for */
};

/* 0 or -ENOMEM. */
int unm_match_construct(struct unm_match *m);
void unm_match_destruct(struct unm_match *m);

/* Queue a receive; its tag, ignore, src and context are set. */
void unm_match_post(struct unm_match *m, struct unm_match_recv *recv);
void unm_match_unpost(struct unm_match *m, struct unm_match_recv *recv);

/* Gives the source that a posted receive names from now on. */
typedef uint64_t (*unm_match_src_fn)(const struct unm_match_recv *recv,
				     const void *arg);

/* Set the source of every posted receive that names one, as src_of() says. The
 * order in which the receives were posted is kept. Walks all receives. */
void unm_match_rename_recvs(struct unm_match *m, unm_match_src_fn src_of,
			    const void *arg);

/* Queue a message nobody waits for; its tag and src are set. */
void unm_match_store(struct unm_match *m, struct unm_match_msg *msg);
void unm_match_unstore(struct unm_match *m, struct unm_match_msg *msg);
/* The sender of a queued message has another name (*src) now. */
void unm_match_renamed(struct unm_match *m, struct unm_match_msg *msg);

/* Oldest posted receive that takes such a message, left in the queue; or NULL.
 * */
struct unm_match_recv *unm_match_find_recv(struct unm_match *m, uint64_t tag,
					   uint64_t src);

/* Oldest posted receive of a context, left in the queue; or NULL. */
struct unm_match_recv *unm_match_find_context(struct unm_match *m,
					      const void *context);

/* Oldest message such a receive takes, left in the queue; or NULL. */
struct unm_match_msg *unm_match_find_msg(struct unm_match *m, uint64_t tag,
					 uint64_t ignore, uint64_t src);

#endif /* UNM_MATCH_H */
