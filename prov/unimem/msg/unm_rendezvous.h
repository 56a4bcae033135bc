/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rendezvous.h - the receiving side of rendezvous: messages whose bytes are
 * still at the sender when they match a receive.
 *
 * The domain is locked in all of these calls.
 */
#ifndef UNM_RENDEZVOUS_H
#define UNM_RENDEZVOUS_H

struct hal_dma_comp;
struct unm_ep;
struct unm_got;
struct unm_peer;
struct unm_rx_op;

/* Begin to transfer a message of which not all bytes are here into the receive
 * op that it matches. op may have been released when this returns. */
void unm_rendezvous_begin(struct unm_ep *ep, struct unm_rx_op *op,
			  const struct unm_got *got);

/* Notify the sender with FIN, without an error, that its message is not going
 * to be transferred. */
void unm_rendezvous_refuse(struct unm_ep *ep, const struct unm_got *got);

/* All pieces of a LONG message have been copied into op: complete the receive,
 * and release op. */
void unm_rendezvous_arrived(struct unm_ep *ep, struct unm_rx_op *op);

/* A piece of the streamed message that token names has arrived, len bytes at
 * bytes. An empty piece means that the sender cannot access its buffer. 0;
 * -FI_EINVAL: the peer broke the protocol. */
int unm_recv_data(struct unm_peer *peer, uint64_t token, const void *bytes,
		  uint32_t len);

/* Send the CTS and FIN packets that are pending for a peer. Returns the number
 * of packets sent. */
int unm_recv_progress(struct unm_peer *peer);

/* Examine one stream: if no piece has come for long enough, read the rest from
 * the sender's memory. Or continue one import for which a message waits.
 * ep->streams is not empty. */
void unm_recv_streams(struct unm_ep *ep);

/* Post the transfers in ep->dma_wait, as far as the engine has free entries. */
void unm_recv_dma_post(struct unm_ep *ep);

/* A transfer of a receive has completed. */
void unm_recv_dma_done(struct unm_ep *ep, const struct hal_dma_comp *comp);

/* Complete all receives in transfer from a dead peer with err, a positive
 * fi_errno. */
void unm_recv_abort(struct unm_peer *peer, int err);

#endif /* UNM_RENDEZVOUS_H */
