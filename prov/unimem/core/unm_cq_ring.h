/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cq_ring.h - completion queue: the ring that operations push completions
 * to. api/unm_cq.c reads it.
 *
 * A queue that holds as many entries as it was opened for is full: operations
 * that would add to it are refused with -FI_EAGAIN, and peers get no message
 * credits. What is under way still completes, and the ring grows for it, at
 * most by an entry for each operation, each credit, and each stored message
 * that a multi-receive finds when it is posted. Error entries keep their place
 * among the others.
 */
#ifndef UNM_CQ_RING_H
#define UNM_CQ_RING_H

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include <rdma/fi_eq.h>

#include "core/unm_idle.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"

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
	int32_t err;			/* positive fi_errno: an error entry */
	union {
		uint32_t err_bytes;	/* of one: data, in the next place */
		uint32_t vector;	/* unm_av.number of src */
	};
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
	struct unm_list eps;		/* endpoints to progress */
	struct unm_list in_domain;	/* link in domain->cqs */
	pid_t owner;			/* process that opened it, not a child
					 */
	struct unm_wait wait;
	uint32_t readers;		/* threads in fi_cq_sread() */
	uint32_t signals;		/* given to them */
	bool signalled;			/* given to the next one */
	uint8_t err_data[sizeof(struct unm_cqe)];	/* of the last error */
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

/*
 * Data of the error entry that fills the slot, at most one entry's bytes: they
 * take the place behind it. Before it is pushed. Without memory there are none.
 */
static inline void unm_cq_err_data(struct unm_cq *cq, struct unm_cqe *cqe,
				   const void *data, uint32_t bytes)
{
	cqe->err_bytes = 0;
	if (cq->tail + 1 - cq->head > cq->mask)
		return;
	memcpy(&cq->ring[++cq->tail & cq->mask], data, bytes);
	cqe->err_bytes = bytes;
}

/* Make room, before it is needed. Slow path of unm_cq_slot; false: there is no
 * room at all, the queue is overrun. */
bool unm_cq_grow(struct unm_cq *cq);

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
	if (__builtin_expect(cq->wait.wanted != 0, 0))
		unm_wait_wake(&cq->wait);
}

#endif /* UNM_CQ_RING_H */
