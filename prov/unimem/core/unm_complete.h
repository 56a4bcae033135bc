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

struct unm_access;
struct unm_ep;
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
