/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_send.h - frames that go out; private to hal/net. */
#ifndef HAL_NET_SEND_H
#define HAL_NET_SEND_H

#include "hal/net/hal_net_types.h"

/* Begin a record with len bytes of data in the frame that is being filled.
 * Returns where the data go, which the caller writes before any other call.
 * NULL: the peer has ended, or there is no memory, and the peer ends now. */
uint8_t *net_rec_add(struct net_peer *peer, enum net_rec_type type,
		     uint8_t word, uint64_t arg, uint32_t len);

/* Bytes of data that a record can have in the frame that is being filled. */
uint32_t net_rec_room(const struct net_peer *peer);

/* Send what there is: records, back words, an acknowledgement that is due.
 * flags: NET_F_ASK or 0. */
void net_flush(struct net_peer *peer, uint32_t flags);

/* Have the next pump, service or arm send what there is. */
void net_later(struct net_peer *peer);
/* For all callers but pumps: send what net_later() has noted. */
void net_flush_later(struct net_if *nif);
/* For pumps: the same, except released slots that may wait for a frame. */
void net_flush_due(struct net_if *nif);

/* The peer's worker is known: send the frames that wait. */
void net_queue_send(struct net_peer *peer);

/* Free all frames of a peer that wait. */
void net_send_drop(struct net_peer *peer);

/* A frame of the engine is free again. */
void net_frame_put(struct net_if *nif, struct net_frame *frame);

#endif /* HAL_NET_SEND_H */
