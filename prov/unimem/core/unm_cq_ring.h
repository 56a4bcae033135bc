/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cq_ring.h - the ring of a completion queue, into which completions are
 * pushed (unm_cq_ring.c). api/unm_cq.c has the calls of fi_cq(3), which read
 * it.
 *
 * A queue is full when it holds as many entries as it was opened for. New
 * operations that would add an entry then return -FI_EAGAIN, and peers receive
 * no message credits. Operations under way still complete, and the ring grows
 * for their entries: at most by one entry for each operation, each credit, and
 * each unexpected message that a multi-receive finds when it is posted. A full
 * queue accepts as many calls with FI_PEEK as it was opened for entries. Error
 * entries are in the same ring, in the order of completion.
 *
 * All of it is protected by the lock of the domain.
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

/* An entry. The first fields are those of struct fi_cq_tagged_entry, so that
 * api/unm_cq.c can copy them. */
struct unm_cqe {
	void *context;
	uint64_t flags;
	uint64_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	union {
		fi_addr_t src;
		uint64_t olen;		/* error entry: bytes that did not fit
					 */
	};
	int32_t err;			/* positive fi_errno of an error entry,
					 * else 0 */
	union {
		uint32_t err_bytes;	/* error entry: bytes of err_data, which
					 * are in the next slot; 0: none */
		uint32_t vector;	/* unm_av.number of the vector that src
					 * is an index of */
	};
};

/* A completion queue, from fi_cq_open() to fi_close(). */
struct unm_cq {
	struct fid_cq fid;
	struct unm_domain *domain;
	struct unm_ref ref;		/* endpoints bound to the queue */
	struct unm_cqe *ring;		/* mask + 1 entries */
	uint64_t head;			/* number of the next entry to read */
	uint64_t tail;			/* number of the next entry to write */
	uint64_t mask;			/* entries of ring minus 1, ring has 2^n
					 */
	uint64_t limit;			/* entries the queue was opened for */
	bool throttles;			/* was full: credits are withheld,
					 * operations were refused, or peeks is
					 * not 0, until entries have been read
					 */
	bool refused;			/* operations were refused because the
					 * queue was full */
	bool overrun;			/* memory ran out, entries are lost */
	uint32_t reads;			/* calls that read the queue; some of
					 * them make progress although entries
					 * are there */
	struct unm_idle idle;		/* empty polls */
	enum fi_cq_format format;	/* of the entries that calls return */
	struct unm_list eps;		/* endpoints bound to the queue */
	struct unm_list in_domain;	/* in domain->cqs */
	pid_t owner;			/* process that opened it, not a forked
					 * child */
	struct unm_wait wait;		/* wait object of fi_cq_sread() and
					 * fi_trywait() */
	uint32_t readers;		/* threads in fi_cq_sread() */
	uint32_t signals;		/* fi_cq_signal() for these threads */
	bool signalled;			/* fi_cq_signal() for the next thread */
	uint64_t peeks;			/* calls with FI_PEEK that the full
					 * queue accepted, since it was below
					 * its limit */
	uint8_t err_data[sizeof(struct unm_cqe)];	/* data of the error
							 * entry read last */
};

static inline struct unm_cq *unm_cq(struct fid_cq *fid)
{
	return (struct unm_cq *)fid;
}

/* True if the queue is full: start no operation that adds an entry. cq may be
 * NULL. */
static inline bool unm_cq_full(const struct unm_cq *cq)
{
	return cq != NULL && cq->tail - cq->head >= cq->limit;
}

/* An operation is refused because the queue is full: the call that reads the
 * queue below its limit reports that it can be tried again. */
static inline void unm_cq_refuse(struct unm_cq *cq)
{
	cq->refused = true;
	cq->throttles = true;
}

/*
 * May a call with FI_PEEK add an entry? MPI_Iprobe() of MPICH ends the job if
 * such a call returns -FI_EAGAIN. MPI_Iprobe() then reads the queue up to the
 * new entry, so a full queue accepts the call. An application that does not
 * read the queue is refused after cq->limit calls, because memory is bounded.
 * Count the call if it is accepted. cq may be NULL.
 */
static inline bool unm_cq_may_peek(struct unm_cq *cq)
{
	if (!unm_cq_full(cq))
		return true;
	if (cq->peeks >= cq->limit) {
		unm_cq_refuse(cq);
		return false;
	}
	cq->peeks++;
	cq->throttles = true;
	return true;
}

/*
 * Add data to the error entry in the slot, before the entry is pushed. The data
 * have at most sizeof(struct unm_cqe) bytes and occupy the next slot. If there
 * is no memory for this slot, the entry has no data.
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

/* Double the ring. Slow path of unm_cq_slot(), called when the ring is at
 * least half full. False if no slot is free and memory ran out: entries are
 * lost. */
bool unm_cq_grow(struct unm_cq *cq);

/*
 * Return the slot of the next entry: the caller fills it, then calls
 * unm_cq_push(). Only unm_complete.c and its header call the two. NULL if
 * memory ran out.
 */
static inline struct unm_cqe *unm_cq_slot(struct unm_cq *cq)
{
	if (__builtin_expect(cq->tail - cq->head > cq->mask / 2, 0) &&
	    !unm_cq_grow(cq))
		return NULL;
	return &cq->ring[cq->tail & cq->mask];
}

/* Make the slot visible to readers, and wake those that sleep. */
static inline void unm_cq_push(struct unm_cq *cq)
{
	cq->tail++;
	if (__builtin_expect(cq->wait.wanted != 0, 0))
		unm_wait_wake(&cq->wait);
}

#endif /* UNM_CQ_RING_H */
