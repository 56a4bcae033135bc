/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_long.h - the receiving side of eager messages in several pieces (LONG):
 * longer than an eager extent, shorter than what is worth a handshake. The
 * sender copies all pieces into receive space within one call, and does not
 * need its buffer any more. unm_send.c has that side; docs/protocol.md, section
 * 5, defines both.
 *
 * The receiver decides whether its peer may send so, because it measures which
 * way long messages take less time (core/unm_way.h). It allows a range of
 * lengths after a stream was faster than a read, and withdraws that for the
 * next trial of a read, and while unexpected messages take much memory or are
 * many of this peer, which gains little then.
 *
 * The domain is locked in all of these calls.
 */
#ifndef UNM_LONG_H
#define UNM_LONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unm_ep;
struct unm_got;
struct unm_msg;
struct unm_peer;
struct unm_rx_op;

/* A message was announced with RTS. streams: for its length, which is in class
 * unm_way_class(), streams are faster than reads. Allow LONG messages of this
 * class, or withdraw that. */
void unm_long_allow(struct unm_peer *peer, unsigned class, bool streams);

/* The first bytes of a message have arrived, and it has matched op, which is
 * set up as for any transfer: copy them. The next pieces follow. */
void unm_long_begin(struct unm_ep *ep, struct unm_rx_op *op,
		    const struct unm_got *got);

/* The same for a message that matched no receive: msg has a buffer for all of
 * it. */
void unm_long_store(struct unm_msg *msg, const struct unm_got *got);

/* A stored message that has a buffer is released: its next pieces, if there are
 * any, are ignored, unless it was passed to unm_long_begin(). */
void unm_long_forget(const struct unm_msg *msg);

/* The next piece has arrived, len bytes. *whole is the receive that is complete
 * with it, or NULL. 0; -FI_EINVAL: none was to come, or it is too long. */
int unm_long_next(struct unm_peer *peer, const void *bytes, uint32_t len,
		  struct unm_rx_op **whole);

#endif /* UNM_LONG_H */
