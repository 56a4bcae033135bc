/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_wire.h - messages on the connections of the emulation; private to
 * hal/emu.
 *
 * Each is one datagram of a SOCK_SEQPACKET socket in the byte order of the
 * host. The other side may be hostile or of another version: hal_emu_recv.c
 * and hal_emu_msg.c check each field before it is used.
 */
#ifndef HAL_EMU_WIRE_H
#define HAL_EMU_WIRE_H

#include "hal/hal_types.h"

#define EMU_MAGIC	UINT32_C(0x6d696e55)	/* "Unim" */
#define EMU_WIRE	5		/* raise when a layout changes */
#define EMU_FDS_MAX	3		/* descriptors of a message, at most */
#define EMU_REQS_MAX	16		/* requests without answer, each way */

/* Sizes of a link. The profile fixes them; both peers must have the same. */
struct emu_geo {
	uint32_t depth;			/* ring slots, 2^n */
	uint32_t payload;		/* packet bytes after the head */
	uint32_t space_off;		/* offset of the receive space */
	uint32_t space_bytes;		/* size of the receive space */
	uint32_t bytes;			/* size of the whole link */
};

/* Message types; in brackets the descriptors that a message carries. */
enum emu_msg_type {
	EMU_HELLO = 1,		/* first message of a connection: outbound link
				 * of its sender [pidfd, link, proof socket] */
	EMU_WELCOME,		/* answer: link mapped [pidfd]; or a refusal */
	EMU_LINK,		/* link of the reverse direction [link] */
	EMU_LINK_OK,		/* answer: link mapped; or a refusal */
	EMU_WAKE,		/* ends the sleep after hal_if_arm() */
	EMU_MEM_REQ,		/* request for the region of a key */
	EMU_MEM_REP,		/* answer [memfd of the region]; or an error */
	EMU_BYE,		/* the interface is closed */
};

/* Start of each message. All versions have the same, so that a process can log
 * the version of a peer that has another one. */
struct emu_head {
	uint32_t magic;			/* EMU_MAGIC */
	uint16_t version;		/* EMU_WIRE */
	uint16_t type;			/* enum emu_msg_type */
	uint32_t bytes;			/* of the whole message */
	int32_t status;			/* 0, or a refusal: negative errno */
};

#define EMU_F_BARRIER	1		/* sender takes part in global expedited
					 * membarriers */
#define EMU_F_CROSSED	2		/* WELCOME: its sender has connected to
					 * the receiver as well */

/* Status of a WELCOME: the HELLO was taken, but the peer object was freed
 * before the answer was sent. A refusal may be the head alone, without
 * flags. */
#define EMU_LET_GO	(-FI_ECONNRESET)

/* HELLO and WELCOME. */
struct emu_hello {
	struct emu_head head;
	struct hal_addr from, to;
	struct emu_geo geo;
	uint32_t flags;			/* EMU_F_BARRIER, EMU_F_CROSSED */
	uint64_t first;			/* HELLO: number of the first packet */
	uint64_t probe_addr;		/* address and value of the sender's */
	uint64_t probe_word;		/* hal_emu.word; 0: it has none */
};
_Static_assert(sizeof(struct emu_hello) == 112, "hello is wire format");

/* LINK. */
struct emu_link_msg {
	struct emu_head head;
	struct emu_geo geo;
	uint32_t reserved;		/* 0 */
	uint64_t first;			/* number of the first packet */
};
_Static_assert(sizeof(struct emu_link_msg) == 48, "link is wire format");

/* MEM_REQ and MEM_REP. */
struct emu_mem_msg {
	struct emu_head head;
	struct hal_key key;
	uint64_t bytes;			/* MEM_REP: size of the region */
	uint32_t board;			/* MEM_REP: the region's */
	uint32_t reserved;		/* 0 */
};
_Static_assert(sizeof(struct emu_mem_msg) == 48, "mem is wire format");

/* Any message. LINK_OK, WAKE, BYE and short refusals are the head alone. */
union emu_msg {
	struct emu_head head;
	struct emu_hello hello;
	struct emu_link_msg link;
	struct emu_mem_msg mem;
};

#endif /* HAL_EMU_WIRE_H */
