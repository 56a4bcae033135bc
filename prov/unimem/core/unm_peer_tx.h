/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer_tx.h - what an endpoint sends to a peer (unm_peer_tx.c): the receive
 * space that it uses there, and messages of words and bytes.
 *
 * The domain is locked in all of these calls.
 */
#ifndef UNM_PEER_TX_H
#define UNM_PEER_TX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct unm_peer;

#define UNM_PEER_SPACE		32768	/* bytes of a new receive space: two of
					 * the longest eager messages */
#define UNM_PEER_SPACE_FIRST	4096	/* bytes of it with memory, while one
					 * short message follows the other */
#define UNM_PEER_SPACE_SHORT	262144	/* bytes that short messages use */

/* Find len free bytes in the peer's receive space. Returns their offset, or
 * UNM_SPACE_NONE. They are allocated by unm_space_take() only. */
uint32_t unm_peer_find_space(struct unm_peer *peer, uint32_t len);

/* The endpoint uses no more than the first part of the peer's receive space, or
 * none, any more: what it used besides is there for other peers. */
void unm_peer_space_leave(struct unm_peer *peer);

/* Copy len bytes of a vector, from its byte skip on, to offset off of the
 * peer's receive space. */
void unm_peer_put(struct unm_peer *peer, uint32_t off, const struct iovec *iov,
		  size_t count, size_t skip, size_t len);

/* Bytes of a message: len bytes of a vector, from its byte off on. */
struct unm_part {
	const struct iovec *iov;
	size_t count;
	uint64_t off;
	uint32_t len;
};

/* Send a message of nw words and the bytes of nparts parts: in a packet if it
 * fits, else through receive space. Connects if that was not done yet.
 * 0; -FI_EAGAIN, also while there is no memory or descriptor to connect; errors
 * of hal_connect(). If there is none for 30 s, the peer is disconnected. This
 * time counts while the application makes progress: it begins anew if more than
 * 5 s pass without an attempt. */
int unm_peer_send(struct unm_peer *peer, uint64_t head, const uint64_t *w,
		  unsigned nw, const struct unm_part *part, unsigned nparts);

#endif /* UNM_PEER_TX_H */
