/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_wire.h - what two interfaces of the device backend exchange: packets,
 * and pages that one side stores into and the other side reads.
 *
 * Take the direction from interface A to interface B. The packetizer of A sends
 * packets into the mailbox of B. B sorts its mailbox into one ring per sender.
 * Three more pieces of memory belong to this direction:
 *
 *   back page      on A's board, B stores into it: what B has released
 *   link page      on B's board, A stores into it: parameters, and the end
 *   receive space  on B's board, A stores into it: data of larger messages
 *
 * A allocates all three, so that A can send before B has made any call. A names
 * the back page and the link page in a HELLO packet, and the receive space in
 * the link page. All values are little-endian.
 */
#ifndef HAL_DEV_WIRE_H
#define HAL_DEV_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "hal/hal_types.h"
#include "hal/dev/hal_regs.h"

#define DEV_WIRE	2u	/* version of the layouts in this file: raise it
				 * when one changes */
#define DEV_DEPTH_MAX	64u	/* largest pkt_depth: packets per peer that are
				 * not released */
#define DEV_PAGE	4096u	/* bytes of a link page, of a back page and of a
				 * table of holders */

/*
 * Types of the packets that the backend itself sends; no packet of the HAL's
 * user has a type from HAL_PKT_RESERVED to HAL_PKT_EMPTY.
 */
enum dev_pkt_type {
	/* Opens the direction. Flags: DEV_WIRE << 4 | log2(pkt_depth). Payload:
	 * nonce of the receiver, reference of the back page, reference of the
	 * link page. The secret of both pages is the receiver's nonce. */
	DEV_PKT_HELLO = HAL_PKT_RESERVED,
	/* Wakes a process that sleeps. No payload. */
	DEV_PKT_WAKE,
	/* From an interface to itself (hal_dev_echo.c). Payload: a number. */
	DEV_PKT_ECHO,
};

struct dev_pkt {
	uint64_t w[HAL_PKT_WORDS];	/* as in hal_regs.h, section Packets */
};
_Static_assert(sizeof(struct dev_pkt) == 32, "a packet is 256 bits");

/*
 * Link page: in the receiver's memory, written by the sender, read by the
 * receiver. All versions have magic and wire at these offsets. The sender
 * writes magic, wire, first, space_bytes and session before it sends the HELLO,
 * and space_ref, last, end and words[] later.
 */
#define DEV_LINK_MAGIC	UINT32_C(0x4b4c4e55)	/* "UNLK" */
struct dev_link {
	uint32_t magic;			/* DEV_LINK_MAGIC */
	uint32_t wire;			/* DEV_WIRE of the sender */
	uint64_t first;			/* number of the first packet */
	uint64_t space_bytes;		/* size of the receive space */
	uint64_t space_secret;		/* secret of the receive space, visible
					 * before space_ref */
	_Atomic uint64_t space_ref;	/* reference of the receive space, which
					 * stays; 0: not allocated yet */
	/* The end of the direction. Packets from number last on were not sent
	 * through the mailbox; words[] has them. */
	uint64_t last;
	_Atomic uint64_t end;		/* 1 + number after the last packet, a
					 * release of last, words[] and orderly;
					 * 0: the direction is open */
	uint64_t session;		/* dev_peer.session of the sender, not
					 * 0 */
	struct dev_pkt words[DEV_DEPTH_MAX];
	uint64_t orderly;		/* 1: the sender closed its interface;
					 * 0: it ended this connection only */
};
_Static_assert(sizeof(struct dev_link) <= DEV_PAGE, "a link is a page");
_Static_assert(offsetof(struct dev_link, words) == 64, "wire format");

/* Back page: in the sender's memory, written by the receiver, read by the
 * sender. All versions have answer at this offset. */
struct dev_back {
	_Atomic uint64_t answer;	/* to the HELLO: enum dev_answer */
	uint64_t orderly;		/* as dev_link.orderly, of closed */
	uint64_t reserved[6];		/* 0 */
	struct hal_back back;		/* closed: dev_peer.session of the
					 * receiver's peer that ended */
};
_Static_assert(sizeof(struct dev_back) == 128, "wire format");

enum dev_answer {
	DEV_ANSWER_NONE = 0,
	DEV_ANSWER_WELCOME = 1,		/* accepted */
	DEV_ANSWER_VERSION = 2,		/* refused: DEV_WIRE, pkt_depth or
					 * space_bytes differ */
	DEV_ANSWER_FAILED = 3,		/* refused: no memory */
};

#endif /* HAL_DEV_WIRE_H */
