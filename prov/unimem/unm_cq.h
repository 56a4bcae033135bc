/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cq.h - completion queue: one ring, one way in, a reader per format.
 *
 * A queue that holds as many entries as it was opened for is full: operations
 * that would add to it are refused with -FI_EAGAIN, and peers get no message
 * credits. What is under way still completes, and the ring grows for it, at
 * most by an entry for each operation, each credit, and each stored message
 * that a multi-receive finds when it is posted. Error entries keep their place
 * among the others.
 */
#ifndef UNM_CQ_H
#define UNM_CQ_H

#include <stdbool.h>

#include <rdma/fi_eq.h>

#include "unm_domain.h"
#include "unm_idle.h"
#include "util/unm_list.h"

/* Begins as struct fi_cq_tagged_entry does. */
struct unm_cqe {
	void *context;
	uint64_t flags;
	uint64_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	union {
		fi_addr_t src;
		uint64_t olen;		/* of an error entry */
	};
	int64_t err;			/* positive fi_errno: an error entry */
};

struct unm_cq {
	struct fid_cq fid;
	struct unm_domain *domain;
	struct unm_ref ref;
	struct unm_cqe *ring;
	uint64_t head;			/* next to read */
	uint64_t tail;			/* next to write */
	uint64_t mask;
	uint64_t limit;			/* entries it was opened for */
	bool choked;			/* full: credits are held back */
	bool overrun;			/* memory ran out: entries are lost */
	uint32_t reads;			/* calls; some progress regardless */
	struct unm_idle idle;
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	struct unm_list eps;		/* endpoints to progress */
	int epfd;			/* sleeping: every endpoint's fd ... */
	int evfd;			/* ... and signals, other threads */
	int sleepers;			/* threads that a push must wake */
	bool waited;			/* one of them: fi_trywait() said yes */
	bool told;			/* it was woken: until fi_trywait(),
					 * nobody takes that away */
	bool signalled;
};

static inline struct unm_cq *unm_cq(struct fid_cq *fid)
{
	return (struct unm_cq *)fid;
}

/* No more operations that complete here. cq may be NULL. */
static inline bool unm_cq_full(const struct unm_cq *cq)
{
	return cq != NULL && cq->tail - cq->head >= cq->limit;
}

/* Make room, before it is needed. Slow path of unm_cq_slot; false: there is no
 * room at all, the queue is overrun. */
bool unm_cq_grow(struct unm_cq *cq);

/* Wake threads asleep on the queue. Slow path of unm_cq_push. */
void unm_cq_wake(struct unm_cq *cq);

/*
 * The only way in (called by unm_complete.c alone): fill the slot, then push
 * it. NULL: memory ran out.
 */
static inline struct unm_cqe *unm_cq_slot(struct unm_cq *cq)
{
	if (__builtin_expect(cq->tail - cq->head > cq->mask / 2, 0) &&
	    !unm_cq_grow(cq))
		return NULL;
	return &cq->ring[cq->tail & cq->mask];
}

static inline void unm_cq_push(struct unm_cq *cq)
{
	cq->tail++;
	if (__builtin_expect(cq->sleepers != 0, 0))
		unm_cq_wake(cq);
}

#endif /* UNM_CQ_H */
