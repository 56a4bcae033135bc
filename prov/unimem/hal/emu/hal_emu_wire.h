/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_wire.h - messages on the connections of the emulation; private to
 * hal/emu.
 */
#ifndef HAL_EMU_WIRE_H
#define HAL_EMU_WIRE_H

#include "hal/hal.h"

#define EMU_MAGIC	UINT32_C(0x6d696e55)	/* "Unim" */
#define EMU_WIRE	3		/* raise when a layout changes */
#define EMU_FDS_MAX	3		/* descriptors of a message, at most */
#define EMU_REQS_MAX	16		/* imports asked for and unanswered */

/* Geometry of a link; both ends must have the same. */
struct emu_geo {
	uint32_t depth;			/* ring slots, 2^n */
	uint32_t payload;		/* packet bytes after the head */
	uint32_t space_off;		/* where the receive space starts */
	uint32_t space_bytes;
	uint32_t bytes;			/* of the whole link */
};

enum emu_msg_type {
	EMU_HELLO = 1,		/* sender to receiver: own pidfd, link, proof */
	EMU_WELCOME,		/* its answer: own pidfd, or a refusal */
	EMU_LINK,		/* the reverse direction: link */
	EMU_LINK_OK,		/* its answer */
	EMU_WAKE,		/* packets came after hal_if_arm() */
	EMU_MEM_REQ,		/* may I have the region of this key */
	EMU_MEM_REP,		/* its answer: region */
	EMU_BYE,		/* closing on purpose */
};

/* The same in all versions, so that two of them can say what they are. */
struct emu_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t bytes;			/* of the whole message */
	int32_t status;			/* 0 or negative errno */
};

#define EMU_F_BARRIER	1		/* registered for global membarriers */
#define EMU_F_CROSSED	2		/* welcome: I have called you, too */

/* Status of a welcome: I took your hello and freed you before I could say so.
 * A welcome that refuses may end after its head, which is no flags. */
#define EMU_LET_GO	(-FI_ECONNRESET)

/* Hello, and welcome, where first means nothing. */
struct emu_hello {
	struct emu_head head;
	struct hal_addr from, to;
	struct emu_geo geo;
	uint32_t flags;
	uint64_t first;			/* number of the first packet */
	uint64_t probe_addr, probe_word;
};
_Static_assert(sizeof(struct emu_hello) == 112, "hello is wire format");

struct emu_link_msg {
	struct emu_head head;
	struct emu_geo geo;
	uint32_t reserved;
	uint64_t first;
};
_Static_assert(sizeof(struct emu_link_msg) == 48, "link is wire format");

struct emu_mem_msg {
	struct emu_head head;
	struct hal_key key;
	uint64_t bytes;			/* reply: size of the region */
};
_Static_assert(sizeof(struct emu_mem_msg) == 40, "mem is wire format");

union emu_msg {
	struct emu_head head;
	struct emu_hello hello;
	struct emu_link_msg link;
	struct emu_mem_msg mem;
};

#endif /* HAL_EMU_WIRE_H */
