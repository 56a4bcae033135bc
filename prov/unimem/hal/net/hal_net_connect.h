/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_connect.h - connecting to interfaces; private to hal/net. */
#ifndef HAL_NET_CONNECT_H
#define HAL_NET_CONNECT_H

#include "hal/net/hal_net_types.h"

/* Connect to an address without a host: of this host, or of the host to which
 * the directory gives the board. */
int net_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **peer);

/* Connect to an address of which the host is known. */
int net_connect_host(struct hal_if *hif, const struct hal_addr *to,
		     const struct hal_host *host, struct hal_peer **peer);

/* The port at which other hosts expect this interface; 0: none. */
uint16_t net_known_port(const struct net_if *nif);

#endif /* HAL_NET_CONNECT_H */
