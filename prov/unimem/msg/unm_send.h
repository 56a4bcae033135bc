/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_send.h - the slow path of sending: rendezvous, and the backlog of sends
 * that a peer cannot take yet. unm_tx.h has the fast path, for messages that
 * fit one packet or are eager.
 *
 * The domain is locked in all of these calls except unm_tx_iov().
 */
#ifndef UNM_SEND_H
#define UNM_SEND_H

#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>

struct unm_ep;
struct unm_part;
struct unm_peer;
struct unm_send;
struct unm_wire_msg;

/* Send any message, of which all fields of s are set, or add it to the backlog.
 * 0; -FI_EAGAIN; -FI_EMSGSIZE: s->inject, and longer than inject_size;
 * other errors as unm_peer_open(). */
ssize_t unm_send_slow(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s);

#define UNM_SEND_EAGER_WORDS	3	/* tag, data, extent */

/* Send a message through the receive space: at most ep->eager_max bytes,
 * ep->piece_max for a part of a request, or UNM_INJECT_MAX. w has n words, the
 * tag and the data if the message has them, and place for one more; head: of
 * its packet. 0; -FI_EAGAIN, which is counted; errors of hal_pkt_send(). */
int unm_send_eager(struct unm_peer *peer, uint64_t head, uint64_t *w,
		   unsigned n, const struct unm_part *part);

/* Send from a vector, as fi_sendmsg() and fi_sendv(); sets s->len and
 * s->inject. -FI_EINVAL: too many entries; -FI_EBADFLAGS; else as
 * unm_send_slow(). */
ssize_t unm_tx_iov(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s);

/* A CTS or FIN has arrived. One that names no send of this peer is a protocol
 * error of the peer. */
void unm_send_on_cts(struct unm_peer *peer, const struct unm_wire_msg *m);
void unm_send_on_fin(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Complete sends whose packets the peer has released, and continue streams and
 * the backlog. Returns the number of steps done, 0: none. */
int unm_send_progress(struct unm_peer *peer);

/* Complete all sends to a dead peer with err, a positive fi_errno. */
void unm_send_abort(struct unm_peer *peer, int err);

#endif /* UNM_SEND_H */
