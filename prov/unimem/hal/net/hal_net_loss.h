/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_loss.h - frames that the engine has lost; private to hal/net. */
#ifndef HAL_NET_LOSS_H
#define HAL_NET_LOSS_H

#include "hal/net/hal_net_types.h"

/* Examine a live peer: end it if a frame is missing for too long; ask it for an
 * acknowledgement that has not come. now: ns. */
void net_loss_tick(struct net_peer *peer, uint64_t now);

/* The earliest time at which net_loss_tick() has work for a live peer, in ns;
 * UINT64_MAX: none. */
uint64_t net_loss_deadline(const struct net_peer *peer);

#endif /* HAL_NET_LOSS_H */
