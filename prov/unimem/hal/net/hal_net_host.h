/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_host.h - addresses and identity of this host; private to hal/net. */
#ifndef HAL_NET_HOST_H
#define HAL_NET_HOST_H

#include <netinet/in.h>

#include "hal/hal_types.h"
#include "hal/net/hal_net_auth.h"

/*
 * Find the IP address that FI_UNIMEM_NET names: an address of this host, or a
 * network interface, of which the first address counts (IPv4 before IPv6,
 * without link-local addresses). Sets host->ip, host->id and device. 0;
 * -FI_EINVAL after a log line.
 */
int net_host_find(const char *net, struct hal_host *host, char device[16]);

/*
 * The first address without a label of a network interface, of the same family
 * as *host, whose IP address it replaces: UCX opens its port there. False:
 * there is none.
 */
bool net_host_first(const char *device, struct hal_host *host);

/* The IP address of a socket address. False: NULL, no IP address, or a
 * link-local one. */
bool net_host_ip(const struct sockaddr *sa, uint8_t ip[16]);

/* The socket address of an IP address and a port. */
socklen_t net_host_sockaddr(const uint8_t ip[16], uint16_t port,
			    struct sockaddr_storage *sa);

/* The name of an interface in the handshake. */
void net_host_name(const struct hal_addr *addr, const struct hal_host *host,
		   uint8_t name[NET_NAME]);

/* Undo net_host_name(). False: no interface can have this name. */
bool net_host_parse(const uint8_t name[NET_NAME], struct hal_addr *addr,
		    struct hal_host *host);

/* Is the IP address one of IPv6? */
bool net_host_ipv6(const struct hal_host *host);

/* Write an IP address for a log line. */
const char *net_host_text(const struct hal_host *host, char text[64]);

#endif /* HAL_NET_HOST_H */
