/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_complete.h - reports the completion of every operation: entries of
 * completion queues, counters, errors (unm_complete.c).
 *
 * An operation that ends calls one of these functions. The caller holds the
 * lock of the endpoint's domain.
 */
#ifndef UNM_COMPLETE_H
#define UNM_COMPLETE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

#include "core/unm_cntr_value.h"
#include "core/unm_cq_ring.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"

struct unm_access;
struct unm_mr;
struct unm_send;

/* A send completed. tagged: it was a tagged send; flags: FI_COMPLETION if an
 * entry is wanted, UNM_OP_WORK if context is a struct unm_deferred. */
void unm_complete_tx(struct unm_ep *ep, bool tagged, uint64_t flags,
		     void *context);

/* A send failed; err: positive fi_errno. */
void unm_complete_tx_err(struct unm_ep *ep, const struct unm_send *s,
			 int err);

/* A finished receive; lives on the caller's stack. */
struct unm_rx_done {
	void *context;			/* of the receive call */
	uint64_t flags;			/* FI_COMPLETION wanted, FI_MULTI_RECV
					 * released, FI_REMOTE_CQ_DATA */
	bool tagged;			/* of a tagged receive */
	bool peek;			/* FI_PEEK: nothing was received, so no
					 * counter counts it */
	uint64_t len;			/* bytes in the buffer */
	uint64_t olen;			/* bytes that did not fit */
	void *buf;			/* start of the message */
	uint64_t data;			/* remote CQ data */
	uint64_t tag;			/* tag of the message */
	fi_addr_t src;			/* sender, or FI_ADDR_NOTAVAIL */
	const struct unm_peer *peer;	/* sender, NULL: no message */
	int err;			/* positive fi_errno, 0: no error */
};

/* A receive ended, with or without an error. */
void unm_complete_rx(struct unm_ep *ep, const struct unm_rx_done *done);

/* The flags of the entry for a receive. */
static inline uint64_t unm_rx_entry_flags(const struct unm_rx_done *done)
{
	return FI_RECV | (done->tagged ? FI_TAGGED : FI_MSG) |
		(done->flags & (FI_MULTI_RECV | FI_REMOTE_CQ_DATA));
}

/*
 * Report a receive without an error. The caller names the queue and the
 * counter: those of the endpoint, or of deferred work. Only
 * unm_complete_message() and unm_complete.c call this function. The fields of
 * the entry are stored one by one, because a copy of a structure that was just
 * written would stall on its stores. In a caller that has just filled done, the
 * compiler stores them from registers.
 */
static inline __attribute__((always_inline))
void unm_report_rx_plain(struct unm_ep *ep, struct unm_cq *cq,
			 struct unm_cntr *cntr, const struct unm_rx_done *done)
{
	struct unm_cqe *cqe;

	/* the release of a multi-receive buffer is always reported; cq is NULL
	 * if the endpoint has only counters */
	if ((done->flags & (FI_COMPLETION | FI_MULTI_RECV)) != 0 &&
	    __builtin_expect(cq != NULL, 1) &&
	    (cqe = unm_cq_slot(cq)) != NULL) {
		cqe->context = done->context;
		cqe->flags = unm_rx_entry_flags(done);
		cqe->len = done->len;
		cqe->buf = done->buf;
		cqe->data = done->data;
		cqe->tag = done->tag;
		cqe->src = done->src;
		cqe->err = 0;
		cqe->vector = ep->av_number;
		unm_cq_push(cq);
	}
	if (cntr != NULL && !done->peek)
		unm_cntr_add(cntr, 1);
}

/* The same as unm_complete_rx(), inline, for the receive of one message into a
 * buffer of its own. */
static inline __attribute__((always_inline))
void unm_complete_message(struct unm_ep *ep, const struct unm_rx_done *done)
{
	if (__builtin_expect((done->flags & UNM_OP_WORK) != 0 ||
			     done->err != 0 ||
			     done->src == FI_ADDR_NOTAVAIL, 0)) {
		const struct unm_rx_done copy = *done;

		unm_complete_rx(ep, &copy);
		return;
	}
	unm_report_rx_plain(ep, ep->rx_cq, ep->rx_cntr, done);
}

/* A one-sided operation of this process ended; err: positive fi_errno, 0: no
 * error. */
void unm_complete_onesided(struct unm_ep *ep, const struct unm_access *a,
			   int err);

/* Injected puts, which only a counter reports, ended: done without an error,
 * failed with one. */
void unm_complete_injected(struct unm_ep *ep, uint64_t done, uint64_t failed);

/* Remote CQ data of a write by a peer. */
struct unm_target_data {
	uint64_t data;
	uint64_t len;			/* bytes that the operation wrote */
};

/*
 * A request of a peer has accessed all of a range in a region of the endpoint's
 * domain. what: FI_REMOTE_READ, FI_REMOTE_WRITE, or both for an atomic that
 * fetches and can change the range. last: the range is the last range of the
 * peer's operation. data: NULL without remote CQ data.
 */
void unm_complete_target(struct unm_peer *peer, const struct unm_mr *mr,
			 uint64_t what, bool last,
			 const struct unm_target_data *data);

/*
 * Where the completion of a deferred operation (UNM_OP_WORK) is reported. The
 * context of such an operation is a work item of trigger/, which begins with
 * this structure and is owned by trigger/.
 */
struct unm_deferred {
	void *context;			/* the application's context */
	uint64_t flags;			/* FI_COMPLETION: an entry is wanted */
	struct unm_cntr *done;		/* counts the completion, or NULL */
	/* Called when the completion was reported, with the domain locked. May
	 * free the structure. */
	void (*ended)(struct unm_ep *ep, struct unm_deferred *d);
};

#endif /* UNM_COMPLETE_H */
