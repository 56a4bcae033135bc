/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rx_op.h - operations on receive objects (struct unm_rx_op) that both
 * unm_recv.c and unm_rendezvous.c need, and the description of an arrived
 * message.
 */
#ifndef UNM_RX_OP_H
#define UNM_RX_OP_H

#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_op.h"
#include "util/unm_pool.h"

/* An arrived message. Valid during a call; unm_recv.c copies what it keeps. */
struct unm_got {
	struct unm_peer *peer;
	bool tagged;
	bool has_data;
	bool rendezvous;		/* its bytes have not all arrived */
	uint64_t tag;			/* 0 if not tagged */
	uint64_t data;			/* remote CQ data, 0 if !has_data */
	uint64_t len;			/* bytes that were sent */
	const void *bytes;		/* the message, or the first bytes of a
					 * long one; NULL: all bytes are still
					 * at the sender */
	/* with rendezvous only, see struct unm_wire_msg */
	uint64_t here;			/* number of bytes that have arrived */
	uint64_t token;			/* the sender's operation */
	uint64_t addr;			/* the sender's buffer */
	bool dmable;			/* the buffer is dmable memory ... */
	struct hal_key key;		/* ... with this key */
};

/* Set the vector of a receive. count is at most UNM_IOV_MAX. */
static inline void unm_rx_op_vector(struct unm_rx_op *op,
				    const struct iovec *iov, size_t count)
{
	op->count = count;
	op->len = 0;
	op->iov[0] = (struct iovec){ 0 };
	for (size_t i = 0; i < count; i++) {
		op->iov[i] = iov[i];
		op->len += iov[i].iov_len;
	}
}

/* A receive without buffers, in no list. NULL: memory ran out;
 * unm_rx_op_release() reports that it may be tried again. */
static inline struct unm_rx_op *
unm_rx_op_new(struct unm_ep *ep, void *context, uint64_t flags, bool tagged)
{
	struct unm_rx_op *op = unm_pool_alloc(&ep->rx_pool);

	if (op == NULL) {
		ep->recvs_wanted = true;
		return NULL;
	}
	op->match.context = context;
	op->flags = flags;
	op->state = UNM_RX_POSTED;
	op->tagged = tagged;
	return op;
}

/* Release a receive that is in no list, and notify callers that were refused
 * one. */
static inline void unm_rx_op_release(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_pool_release(&ep->rx_pool, op);
	if (__builtin_expect(ep->recvs_wanted, 0))
		unm_ep_signal_recv(ep);
}

/* Retire a multi-receive buffer: it matches no further message. */
void unm_multi_retire(struct unm_ep *ep, struct unm_rx_op *buf);

/* Retire a multi-receive buffer, and complete it with err (a positive fi_errno)
 * once no transfer into it is in progress. It may be released in this call. */
void unm_multi_cancel(struct unm_ep *ep, struct unm_rx_op *buf, int err);

/* Allot part of a multi-receive buffer to a message of msg_len bytes: *where is
 * its begin. Returns its size, less than msg_len if the message is truncated.
 * Retires the buffer if less than min_multi_recv is left. */
size_t unm_multi_take(struct unm_ep *ep, struct unm_rx_op *buf,
		      uint64_t msg_len, void **where);

/*
 * Release a multi-receive buffer if it is retired and no transfer into it is in
 * progress; else do nothing. Returns the flag FI_MULTI_RECV for the completion
 * of the last message, or 0. A cancelled buffer gets a completion of its own,
 * with the error of unm_multi_cancel().
 */
uint64_t unm_multi_put(struct unm_ep *ep, struct unm_rx_op *buf);

#endif /* UNM_RX_OP_H */
