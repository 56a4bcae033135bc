/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_complete.h - the one way out of every operation: entries of completion
 * queues, counters, errors.
 */
#ifndef UNM_COMPLETE_H
#define UNM_COMPLETE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

struct unm_access;
struct unm_ep;
struct unm_mr;
struct unm_tx_op;

void unm_complete_tx(struct unm_ep *ep, bool tagged, uint64_t flags,
		     void *context);
void unm_complete_tx_err(struct unm_ep *ep, const struct unm_tx_op *op,
			 int err);

struct unm_rx_done {			/* a finished receive */
	void *context;
	uint64_t flags;			/* FI_COMPLETION wanted, FI_MULTI_RECV
					 * released, FI_REMOTE_CQ_DATA */
	bool tagged;
	bool peek;			/* not received: no counter */
	uint64_t len;			/* bytes in the buffer */
	uint64_t olen;			/* bytes that did not fit */
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	const struct unm_peer *peer;	/* its sender, NULL: none */
	int err;			/* positive fi_errno, 0 fine */
};
void unm_complete_rx(struct unm_ep *ep, const struct unm_rx_done *done);

/* One of ours on a peer's memory is over; err: positive fi_errno, 0 fine. */
void unm_complete_onesided(struct unm_ep *ep, const struct unm_access *a,
			   int err);

/* Remote CQ data of a write by a peer. */
struct unm_target_data {
	uint64_t data;
	uint64_t len;			/* bytes that the operation wrote */
};

/* A peer has accessed all of a range in a region of this endpoint's domain.
 * what: FI_REMOTE_READ, FI_REMOTE_WRITE, or both for an atomic that fetches and
 * can change the range. last: the range is the operation's last one. data: NULL
 * without remote CQ data. */
void unm_complete_target(struct unm_peer *peer, const struct unm_mr *mr,
			 uint64_t what, bool last,
			 const struct unm_target_data *data);

/*
 * A deferred operation (UNM_OP_WORK) has its work as its context, and that
 * begins with this: where its completion goes. trigger/ owns it.
 */
struct unm_deferred {
	void *context;			/* the application's */
	uint64_t flags;			/* FI_COMPLETION: it wants an entry */
	struct unm_cntr *done;		/* counts its completion, may be NULL */
	/* Its completion was made; the domain is locked. The structure may be
	 * gone when this returns. */
	void (*ended)(struct unm_ep *ep, struct unm_deferred *d);
};

#endif /* UNM_COMPLETE_H */
