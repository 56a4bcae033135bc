/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_conn.h - control connections; private to hal/net. */
#ifndef HAL_NET_CONN_H
#define HAL_NET_CONN_H

#include "hal/net/hal_net_types.h"

/* Listen at nif->host.ip, and at nif->host.port unless that is 0 or the port is
 * not free; sets nif->host.port. 0, or a negative errno after a
 * log line. */
int net_listen(struct net_if *nif);

/* Begin to connect to a peer. Later events go on. A failure: as if the
 * connection had ended. */
void net_dial(struct net_peer *peer);

/* Handle what the sockets have; waits up to ms for it. */
void net_conns_input(struct net_if *nif, int ms);

/* Close connections whose time is over; accept again. */
void net_conns_tick(struct net_if *nif, uint64_t now);

/* The earliest time at which net_conns_tick() or net_peers_tick() has work, in
 * ns; UINT64_MAX: none. */
uint64_t net_deadline(const struct net_if *nif);

/* Send bytes, or keep them until the socket takes them. */
void net_conn_queue(struct net_conn *conn, const void *data, size_t len);

/* Seal a message of len bytes, which has place for NET_MAC more, and send
 * it. */
void net_conn_send(struct net_conn *conn, void *msg, size_t len);

/* The connection belongs to a peer: it is not counted as unproven. */
void net_conn_whole(struct net_conn *conn);

/* The connection has ended or is of no use. status: 0, it just ended; else the
 * reason, a negative errno. A connection that this side has dialled is dialled
 * again if it just ended before frames could be sent. */
void net_conn_failed(struct net_conn *conn, int status);

/* Close the connection and the link of a peer, as far as there are any. */
void net_peer_unlink(struct net_peer *peer);

/* Close; the peer, if there is one, has no connection then. */
void net_conn_close(struct net_conn *conn);

/* Close all connections and the listener. shut: also where a forked child has
 * the sockets too. */
void net_conns_close(struct net_if *nif, bool shut);

#endif /* HAL_NET_CONN_H */
