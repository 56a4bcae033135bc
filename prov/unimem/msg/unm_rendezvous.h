/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rendezvous.h - the receiving side of rendezvous: messages that are still
 * at their sender when they meet a receive.
 */
#ifndef UNM_RENDEZVOUS_H
#define UNM_RENDEZVOUS_H

struct hal_dma_comp;
struct unm_ep;
struct unm_got;
struct unm_peer;
struct unm_rx_op;
struct unm_wire_msg;

/* A matched receive takes a message still at its sender. The
 * operation may be gone when this returns. */
void unm_rendezvous_begin(struct unm_ep *ep, struct unm_rx_op *op,
			  const struct unm_got *got);

/* Tell the sender its message is not wanted. */
void unm_rendezvous_refuse(struct unm_ep *ep, const struct unm_got *got);

int unm_recv_data(struct unm_peer *peer, const struct unm_wire_msg *m,
		  const void *bytes);

/* Tell a peer what it is to be told. Returns packets sent. */
int unm_recv_progress(struct unm_peer *peer);

/* Read the rest of a stream whose sender is silent; for empty polls. */
void unm_recv_streams(struct unm_ep *ep);
void unm_recv_dma_post(struct unm_ep *ep);
void unm_recv_dma_done(struct unm_ep *ep, const struct hal_dma_comp *comp);
void unm_recv_abort(struct unm_peer *peer, int err);

#endif /* UNM_RENDEZVOUS_H */
