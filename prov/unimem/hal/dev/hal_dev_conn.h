/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_conn.h - connecting, accepting, receive space and words stored back
 * (hal_dev_conn.c). All calls belong to the thread that uses the interface.
 */
#ifndef HAL_DEV_CONN_H
#define HAL_DEV_CONN_H

#include "hal/dev/hal_dev_types.h"

/*
 * hal_ops.connect: open the outbound half to an address. Returns 0 once the
 * HELLO is in the peer's mailbox; HAL_EV_CONNECTED follows. -FI_EAGAIN: call
 * again; -FI_ECONNREFUSED: nobody holds the interface, or another process does;
 * -FI_EACCES: another user's; -FI_EINVAL: no such address; -FI_ENOMEM.
 */
int dev_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp);

/* A HELLO packet was read from the mailbox: open the inbound half, or answer
 * that it is refused. True: it is open. */
bool dev_hello_received(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS]);

/* Continue to accept a peer in state DEV_ACCEPT_BACK: map its back page, answer
 * WELCOME and report HAL_EV_INBOUND. Call it again while the state lasts. */
void dev_accept_back(struct dev_peer *peer);

/* Map the receive space that the peer announced in its link page, if it did.
 * False: it is not mapped. If space_retry.at is not 0 then, a shortage may
 * pass: call it again, and hide the peer's packets until then. Else the peer
 * was disconnected. */
bool dev_space_map(struct dev_peer *peer);

/* Get the hold on receive space that the peer has announced and that is not
 * mapped, so that dev_peer_drop() drops it. The inbound half is open. */
void dev_space_take(struct dev_peer *peer);

/* hal_ops.space_ready: allocate the receive space at the peer, if there is none
 * and bytes is not 0. Returns 0, also for a peer that has ended (stores to it
 * are discarded), or a negative error: there is no memory. */
int dev_space_ready(struct hal_peer *hp, uint32_t bytes);

/* hal_ops.space_write: store len bytes at offset off of the receive space. */
void dev_space_write(struct hal_peer *hp, uint32_t off, const void *src,
		     size_t len);

/* hal_ops.space_barrier: wait until these stores are visible at the peer. */
void dev_space_barrier(struct hal_peer *hp);

/* hal_ops.back_store: store val to the peer's back page: word number word, or
 * the count of released packets if word is negative. */
void dev_back_store(struct hal_peer *hp, int word, uint64_t val);

/*
 * hal_ops.back_barrier: wait until these stores are visible at the peer.
 * Returns 0, or -FI_EAGAIN if the back page is not mapped or the peer has
 * ended.
 */
int dev_back_barrier(struct hal_peer *hp);

#endif /* HAL_DEV_CONN_H */
