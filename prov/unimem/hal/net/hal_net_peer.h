/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_peer.h - peers on other hosts; private to hal/net. */
#ifndef HAL_NET_PEER_H
#define HAL_NET_PEER_H

#include "hal/net/hal_net_types.h"

/* Open the outbound half of a peer, if it is not open. */
void net_peer_open(struct net_peer *peer);

/* The functions of peers on other hosts. */
extern const struct hal_ops net_peer_ops;

/* Dial again, and declare dead what is due. */
void net_peers_tick(struct net_if *nif, uint64_t now);

/* Wait until peers have acknowledged all frames, or are dead, or the time of
 * FI_UNIMEM_NET_DEAD_MS is over. only: this one; NULL: all. */
void net_linger(struct net_if *nif, struct net_peer *only);

/* End a peer and free it; orderly: it is notified. */
void net_peer_drop(struct net_peer *peer, bool orderly);

/* Memory of a peer, without the engine: for a forked child. */
void net_peer_free_copy(struct net_peer *peer);

#endif /* HAL_NET_PEER_H */
