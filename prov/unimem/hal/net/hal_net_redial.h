/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_redial.h - connections that fail before frames can be sent; private
 * to hal/net. */
#ifndef HAL_NET_REDIAL_H
#define HAL_NET_REDIAL_H

#include "hal/net/hal_net_types.h"

/* A connection that this side began has ended before frames could be sent.
 * status: a negative errno; 0: it just ended. The peer is dialled again later,
 * or has ended. */
void net_dial_failed(struct net_peer *peer, int status);

/* A connection that a peer began has ended before frames could be sent. If the
 * reason may pass, the peer will dial again, and this side does so if it has
 * something to send. False: it does not pass, as its host is silent for too
 * long or the peer is ending already, or the caller of the HAL does not have
 * the peer and this side cannot dial it. */
bool net_accept_failed(struct net_peer *peer, int status);

/* Log why a peer is not reached, once for each interface. */
void net_log_unreached(struct net_peer *peer, int status);

#endif /* HAL_NET_REDIAL_H */
