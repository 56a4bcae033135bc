/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_stuck.h - sockets of the engine to a host that does not answer;
 * private to the module of UCX. */
#ifndef HAL_NET_STUCK_H
#define HAL_NET_STUCK_H

#include <stdint.h>

/*
 * Shut down the TCP sockets to a host (IPv6, or IPv4 mapped) that have bytes
 * to send and no acknowledgement for a second. epfd: the epoll set to which UCX
 * has added its descriptors with this event.
 */
void net_stuck_shut(int epfd, const void *event, const uint8_t ip[16]);

#endif /* HAL_NET_STUCK_H */
