/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_peer_life.h - what happens to an endpoint's operations when a peer dies,
 * is disconnected, or when the endpoint is closed. */
#ifndef UNM_PEER_LIFE_H
#define UNM_PEER_LIFE_H

#include <stdbool.h>

struct hal_peer;
struct unm_ep;
struct unm_peer;

/*
 * Tear down the connection to a peer: operations with it complete with err (a
 * positive fi_errno), and later sends to it fail. Unless the peer closed its
 * endpoint in order, receives that name it complete with err too. The caller
 * has processed the packets that the peer had sent. The domain is locked. May
 * free the peer.
 */
void unm_peer_tear_down(struct unm_peer *peer, int err);

/* Is an operation with this peer of the HAL in progress, so that the end of the
 * peer has to be noticed? For hal_if.peer_waits. */
bool unm_peer_waits(struct hal_peer *hp);

/* Free all peers of an endpoint that is being closed, whose HAL interface is
 * closed. No operation is completed. The domain is locked. */
void unm_peer_close_all(struct unm_ep *ep);

#endif /* UNM_PEER_LIFE_H */
