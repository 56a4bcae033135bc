/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_meet.h - messages of a proven control connection; private to
 * hal/net. */
#ifndef HAL_NET_MEET_H
#define HAL_NET_MEET_H

#include "hal/net/hal_net_types.h"

/* Both sides have proven their knowledge: find or make the peer, and send it
 * MEET. The connection may be closed afterwards. */
void net_meet_proven(struct net_conn *conn);

/* Execute the whole messages in conn->in. 0, or a negative errno that ends the
 * connection. */
int net_meet_input(struct net_conn *conn);

/* Notify the peer that this side ends: the interface is closed (NET_CTL_BYE),
 * or this connection only (NET_CTL_LEAVE). */
void net_meet_bye(struct net_peer *peer, enum net_ctl_type type);

#endif /* HAL_NET_MEET_H */
