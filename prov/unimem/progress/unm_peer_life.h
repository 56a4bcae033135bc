/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_peer_life.h - the end of a peer, and of all peers of an endpoint. */
#ifndef UNM_PEER_LIFE_H
#define UNM_PEER_LIFE_H

struct unm_ep;
struct unm_peer;

/* It is gone (what it had sent is drained): fail what is under way. */
void unm_peer_gone(struct unm_peer *peer, int err);

/* Close: forget every peer, with nothing completed any more. */
void unm_peer_close_all(struct unm_ep *ep);

#endif /* UNM_PEER_LIFE_H */
