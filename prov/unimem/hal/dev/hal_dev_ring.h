/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_ring.h - the ring of packets received from one peer (hal_dev_ring.c).
 */
#ifndef HAL_DEV_RING_H
#define HAL_DEV_RING_H

#include "hal/dev/hal_dev_types.h"

/*
 * Allocate the ring of a peer, peer->cells. first is the number of the first
 * packet, depth the number of cells, a power of two. Returns 0 or -FI_ENOMEM.
 * dev_peer_forget() frees it.
 */
int dev_ring_new(struct dev_peer *peer, uint64_t first, uint32_t depth);

/* Append a packet. A peer that sends more packets than were released to it
 * breaks the protocol: the packet is dropped and the peer disconnected. */
void dev_ring_push(struct dev_peer *peer, const uint64_t w[HAL_PKT_WORDS]);

/* Show the packets of the peer that were hidden while its receive space was not
 * mapped. */
void dev_ring_show(struct dev_peer *peer);

#endif /* HAL_DEV_RING_H */
