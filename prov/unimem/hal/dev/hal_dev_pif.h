/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_pif.h - the packetizer of an interface and the packets that wait for
 * it (hal_dev_pif.c). All calls belong to the thread that uses the interface.
 */
#ifndef HAL_DEV_PIF_H
#define HAL_DEV_PIF_H

#include "hal/dev/hal_dev_types.h"

/*
 * Is the packetizer ready for a packet? Reads the status up to polls times and
 * records the result of the packet that was in it. If a packet has no answer
 * for 20 ms, the driver clears the packetizer and its peer is disconnected.
 */
bool dev_pif_idle(struct dev_if *dif, unsigned polls);

/* dev_pif_idle() with as many reads as a send is worth. */
bool dev_pif_ready(struct dev_if *dif);

/* Send an ECHO packet to the interface itself. The packetizer must be ready. */
void dev_echo_put(struct dev_if *dif, uint64_t number);

/*
 * Send the HELLO of a peer whose outbound half is open. Returns true once the
 * peer's mailbox has taken it; false: not yet, call again, unless the peer is
 * dying.
 */
bool dev_hello_send(struct dev_peer *peer);

/*
 * hal_ops.pkt_send: send a packet, or queue it behind those that wait. Returns
 * 0, or -FI_EAGAIN if pkt_depth packets are not released. A packet to a peer
 * that is dying is discarded.
 */
int dev_pkt_send(struct hal_peer *hp, uint64_t head, const uint64_t *w,
		 unsigned nw, const void *data, size_t len);

/* hal_ops.wake: make the mailbox event of a peer fire, by a packet that carries
 * nothing. If the mailbox refuses it, packets are there and the event fires
 * anyway. */
void dev_wake(struct hal_peer *hp);

/* dev_wake() with one try, for a peer that is about to be freed: without it the
 * peer wakes by its timer. */
void dev_wake_now(struct dev_peer *peer);

/*
 * End the outbound half: store the packets that still wait, and the number of
 * all packets, into the link page. From these the receiver knows when it has
 * received everything. The link page must be mapped.
 */
void dev_link_end(struct dev_peer *peer);

/* Put a peer on the list of those with packets that wait, dev_if.backlog; no
 * effect if it is on the list. */
void dev_backlog_add(struct dev_peer *peer);

/* Send what waits, peer after peer, as far as back-off times and the packetizer
 * allow. */
void dev_backlog_run(struct dev_if *dif);

#endif /* HAL_DEV_PIF_H */
