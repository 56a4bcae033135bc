/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_suspend.h - closes the connections of peers that are idle; private to
 * hal/net. */
#ifndef HAL_NET_SUSPEND_H
#define HAL_NET_SUSPEND_H

#include "hal/net/hal_net_types.h"

/* How many links FI_UNIMEM_NET_PEERS allows a process; 0: so many that they
 * take at most three quarters of the descriptors that it may have. */
uint32_t net_suspend_limit(int param);

/* Count the link of a peer, which was just opened. */
void net_suspend_count(struct net_peer *peer);

/* Propose to suspend the least recently used peers that are idle, if there are
 * too many links. */
void net_suspend_tick(struct net_if *nif, uint64_t now);

/* Close the connection of a peer that agrees, or has proposed it. */
void net_suspend_now(struct net_peer *peer);

/* SUSPEND of len bytes, or KEEP, has come. 0; -EPROTO. */
int net_suspend_input(struct net_peer *peer, const struct net_bye *msg,
		      size_t len);
int net_keep_input(struct net_peer *peer);

/* The worker of a peer is known, or the peer refuses to be suspended: send the
 * frames that wait. The first asks for an acknowledgement, for which an orderly
 * close waits: UCX 1.13 ends a process (an assertion) if the other side closes
 * while it makes the connection of the acknowledgement. */
void net_suspend_not(struct net_peer *peer);

#endif /* HAL_NET_SUSPEND_H */
