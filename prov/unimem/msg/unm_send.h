/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_send.h - the sending side of messages: eager, rendezvous, and the backlog
 * of those that wait. A message that fits one packet goes by unm_tx.h instead.
 */
#ifndef UNM_SEND_H
#define UNM_SEND_H

#include <sys/types.h>

#include <rdma/fabric.h>

struct unm_ep;
struct unm_peer;
struct unm_send;
struct unm_wire_msg;

/* The slow half of sending (eager, rendezvous). 0 or error. */
ssize_t unm_send_slow(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s);
/* sendmsg and sendv: vectors, flags. */
ssize_t unm_tx_iov(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s);
void unm_send_on_cts(struct unm_peer *peer, const struct unm_wire_msg *m);
void unm_send_on_fin(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Advance what a peer awaits and streams. Returns things done. */
int unm_send_progress(struct unm_peer *peer);

/* The peer is gone: complete its sends in error. */
void unm_send_abort(struct unm_peer *peer, int err);

#endif /* UNM_SEND_H */
