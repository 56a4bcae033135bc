/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rx_op.h - receives, as objects: what unm_recv.c and unm_rendezvous.c both
 * do with them. A message that arrived is described here, too.
 */
#ifndef UNM_RX_OP_H
#define UNM_RX_OP_H

#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "util/unm_pool.h"

/* A message that arrived. */
struct unm_got {
	struct unm_peer *peer;
	bool tagged;
	bool has_data;
	bool rendezvous;		/* it is still at its sender */
	uint64_t tag;
	uint64_t data;
	uint64_t len;			/* as sent */
	const void *bytes;		/* not rendezvous */
	uint64_t token;			/* rendezvous: sender's operation ... */
	uint64_t addr;			/* ... and buffer, see unm_wire.h */
	bool dmable;
	struct hal_key key;
};

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

static inline struct unm_rx_op *
unm_rx_op_new(struct unm_ep *ep, void *context, uint64_t flags, bool tagged)
{
	struct unm_rx_op *op = unm_pool_alloc(&ep->rx_pool);

	if (op == NULL)
		return NULL;
	op->match.context = context;
	op->flags = flags;
	op->state = UNM_RX_POSTED;
	op->tagged = tagged;
	return op;
}

/* A multi-receive buffer takes no more: stop matching it. */
void unm_multi_retire(struct unm_ep *ep, struct unm_rx_op *buf);

/* Bytes of a message that go into a receive, and where. */
size_t unm_multi_take(struct unm_ep *ep, struct unm_rx_op *buf,
		      uint64_t msg_len, void **where);

/* The last transfer into a retired buffer ended: it is the application's again.
 * Returns the flag for the completion that tells so. */
uint64_t unm_multi_put(struct unm_ep *ep, struct unm_rx_op *buf);

#endif /* UNM_RX_OP_H */
