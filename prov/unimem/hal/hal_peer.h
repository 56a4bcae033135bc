/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_peer.h - what the backends do alike with their peers; private to the HAL.
 *
 * The thread that uses the interface calls these functions.
 */
#ifndef HAL_PEER_H
#define HAL_PEER_H

#include "hal/hal_types.h"

/* Allocate a peer of an interface, as the first member of an object of so many
 * bytes, which are 0 otherwise. free() frees the object. NULL: no memory. */
void *hal_peer_alloc(struct hal_if *hif, const struct hal_addr *addr,
		     size_t bytes);

/* Allocate hif->inbound[] for npeers peers of the backend, so that
 * hal_peer_event() needs no memory. 0, -FI_ENOMEM. */
int hal_inbound_reserve(struct hal_if *hif, uint32_t npeers);

/* The same for npeers peers on other hosts, which share the array. */
int hal_inbound_reserve_remote(struct hal_if *hif, uint32_t npeers);

/* Remove the peer from hif->inbound[], if it is there. */
void hal_inbound_remove(struct hal_peer *peer);

/* Does the ring of a peer in hif->inbound[] that is not held have a packet? */
bool hal_inbound_pending(const struct hal_if *hif);

/*
 * Take the first of the events pending of a peer, of which bit number is enum
 * hal_event_type, into *ev. With HAL_EV_INBOUND the peer enters hif->inbound[]:
 * the caller of the HAL must not find a peer there that no event has reported.
 * status is for HAL_EV_DEAD. Returns the remaining events.
 */
uint8_t hal_peer_event(struct hal_peer *peer, uint8_t pending, int status,
		       struct hal_event *ev);

/* The result of hal_connect() for a peer that is ending: -FI_EAGAIN if the peer
 * had connected, because HAL_EV_DEAD follows then, after the packets that it
 * has sent; else -FI_ECONNREFUSED. */
static inline int hal_connect_ending(const struct hal_peer *peer)
{
	return peer->dead || peer->rx.cells == NULL ? -FI_ECONNREFUSED :
		-FI_EAGAIN;
}

#endif /* HAL_PEER_H */
