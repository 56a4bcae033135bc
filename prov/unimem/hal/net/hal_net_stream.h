/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_stream.h - frames between two interfaces on different hosts: their
 * layout, their numbers, and their acknowledgements.
 *
 * Pure: no engine, no object of the HAL. A frame is one message of the engine.
 * It carries records; the frames of one direction are numbered from 1. The
 * engine loses nothing while a connection lasts, but promises no order, so the
 * receiver puts frames back into order, within a window. It acknowledges
 * cumulatively, so that a sender knows which frames the peer has processed, and
 * which were lost with the connection. docs/net.md, section 3.
 */
#ifndef HAL_NET_STREAM_H
#define HAL_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_FRAME_MAX	67584		/* bytes of a frame with its head: a
					 * piece of 64 KiB, the packet that
					 * names it, and other records */
#define NET_WINDOW	64		/* frames kept that come too early */

/* Start of each frame. */
struct net_head {
	uint64_t token;			/* random, from the receiver */
	uint32_t slot;			/* the receiver's number of the peer */
	uint32_t flags;			/* NET_F_ASK */
	uint64_t seq;			/* number; 0: no records, ack only */
	uint64_t ack;			/* all frames up to this number of the
					 * other direction are processed */
};
_Static_assert(sizeof(struct net_head) == 32, "head is wire format");

#define NET_F_ASK	1		/* acknowledge at once */

enum net_rec_type {
	NET_OPEN = 1,			/* the outbound half is open; arg:
					 * number of the first packet */
	NET_PACKET,			/* arg: head, low 48 bits 0; payload */
	NET_SPACE,			/* store to space; arg: offset */
	NET_BACK,			/* arg: value of back word `word` */
	NET_WAKE,			/* ends a sleep */
	NET_IMPORT,			/* arg: request; key */
	NET_IMPORTED,			/* arg: request; status, bytes */
	NET_GET,			/* arg: piece; net_access */
	NET_GOT,			/* arg: piece; status, bytes read */
	NET_PUT,			/* arg: piece; net_access, data */
	NET_DONE,			/* arg: piece; status */
	NET_REC_END
};

#define NET_BACK_DONE	255		/* net_rec.word: released slots */

/* Start of a record; len bytes follow, padded to a multiple of 8. */
struct net_rec {
	uint8_t type;			/* enum net_rec_type */
	uint8_t word;
	uint16_t zero;
	uint32_t len;
	uint64_t arg;
};
_Static_assert(sizeof(struct net_rec) == 16, "record is wire format");

static inline uint32_t net_rec_bytes(uint32_t len)
{
	return (uint32_t)sizeof(struct net_rec) + ((len + 7) & ~7u);
}

/* Longest data of a record in a frame of its own. */
#define NET_REC_MAX	((uint32_t)(NET_FRAME_MAX - sizeof(struct net_head) - \
				    sizeof(struct net_rec)))

/*
 * Read the record at *off of a frame of len bytes: *rec and *data are set, *off
 * moves behind it. 1: there is one; 0: the end; -EPROTO: a malformed record.
 */
int net_rec_next(const uint8_t *frame, size_t len, size_t *off,
		 struct net_rec *rec, const uint8_t **data);

/* Numbers of both directions. The thread of the interface uses it. */
struct net_stream {
	uint64_t sent;			/* number of the last frame sent */
	uint64_t acked;			/* of the last one that the peer has
					 * acknowledged */
	uint64_t taken;			/* of the last one processed here */
	uint64_t reported;		/* the last acknowledgement sent */
	void *early[NET_WINDOW];	/* copies of frames that came too early,
					 * by number; NULL: not there */
	size_t early_len[NET_WINDOW];
	uint32_t kept;			/* copies in early[] */
};

/* Note an acknowledgement. -EPROTO: of a frame that was never sent. */
int net_stream_ack(struct net_stream *s, uint64_t ack);

/*
 * A frame with this number has come. 1: process it now, then call
 * net_stream_early(); 0: a copy was kept; -EPROTO: it came twice, or is not
 * in the window; -FI_ENOMEM.
 */
int net_stream_take(struct net_stream *s, uint64_t seq, const void *frame,
		    size_t len);

/* The kept frame whose turn it is, or NULL. The caller processes it and frees
 * it. */
void *net_stream_early(struct net_stream *s, size_t *len);

/* Free all copies. */
void net_stream_clear(struct net_stream *s);

#endif /* HAL_NET_STREAM_H */
