/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_peer.h - the peer objects of an interface and their events
 * (hal_dev_peer.c). All calls belong to the thread that uses the interface.
 */
#ifndef HAL_DEV_PEER_H
#define HAL_DEV_PEER_H

#include "hal/dev/hal_dev_types.h"

/* The newest peer with an identity, alive or dead; NULL: there is none. */
struct dev_peer *dev_peer_of(struct dev_if *dif, uint64_t identity);

/* The peer with an address: one that is alive, else a dead one with the same
 * nonce. addr->nonce may be HAL_ADDR_ANY. NULL: there is none. */
struct dev_peer *dev_peer_find(struct dev_if *dif, const struct hal_addr *addr);

/* Allocate a peer; both halves are closed. Returns 0 or -FI_ENOMEM. */
int dev_peer_new(struct dev_if *dif, const struct hal_addr *addr,
		 uint64_t identity, struct dev_peer **peer);

/* Free a peer with all that is attached to it: packets, events, transfers,
 * imports, regions. The peer itself learns nothing of it. */
void dev_peer_drop(struct dev_peer *peer);

/* Free the memory and the mappings of a peer only, in a forked child: nothing
 * that the parent process shares with the peer is touched. */
void dev_peer_forget(struct dev_peer *peer);

/* Record an event for the caller. status counts for HAL_EV_DEAD only. A peer
 * has at most one event of each type. */
void dev_event(struct dev_peer *peer, enum hal_event_type type, int status);

/* Take up to max events; returns their number. Events of a peer come in the
 * order of enum hal_event_type. */
int dev_take_events(struct dev_if *dif, struct hal_event *ev, int max);

#endif /* HAL_DEV_PEER_H */
