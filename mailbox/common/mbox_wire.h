/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_wire.h - the formats between libunimem-mailbox and unimem-mailboxd, and
 * between the daemons of two nodes. docs/mailbox.md defines them.
 */
#ifndef MBOX_WIRE_H
#define MBOX_WIRE_H

#include <assert.h>
#include <stdint.h>

#include "unimem/mailbox.h"

#define MBOX_VERSION	1
#define MBOX_MESSAGE	8		/* bytes of a message */
_Static_assert(sizeof(struct mailbox_action_t) == 12, "as published");

/* ---- Library and daemon: packets of a SOCK_SEQPACKET socket -------------- */

/* First packet of a connection, from the library. A struct mbox_answer comes
 * back; afterwards a connection carries messages and actions only. */
struct mbox_hello {
	uint32_t magic;			/* MBOX_MAGIC */
	uint32_t version;		/* MBOX_VERSION */
	int32_t node;			/* whose mailbox; not MAILBOX_LOCAL */
	uint32_t reserved;		/* 0 */
};
#define MBOX_MAGIC	UINT32_C(0x784f424d)	/* "MBOx" */

/* Answer to a hello, and to an action that carries a socket for its answer. */
struct mbox_answer {
	int32_t status;			/* 0 or a negative errno */
	uint32_t reserved;		/* 0 */
};

/* An action of the library carries descriptors: the socket for the answer, then
 * the event fd of 'e'. */
#define MBOX_ACTION_FDS	2

/* ---- Daemon and daemon: packets of the HAL ------------------------------- */

/* Types of packets. Payload: one word. */
#define MBOX_PKT_MESSAGE 1		/* the message */
#define MBOX_PKT_OPEN	2		/* MBOX_VERSION. A process of the sender
					 * has the receiver's mailbox open */
#define MBOX_PKT_CLOSE	3		/* 0. No process has it open any more */

/* Messages of an opcode that a daemon may have sent to another one and that no
 * reader has got yet. */
#define MBOX_WINDOW	16

/* Back words of hal_rx_back(). Word n from 0 to 3 has, of opcode 4n + i, in its
 * bits 16i to 16i + 15, the number of messages that were delivered so far. */
#define MBOX_BACK_OPENED 4		/* number of OPEN packets received */

static inline unsigned mbox_back_word(unsigned opcode)
{
	return opcode / 4;
}

static inline unsigned mbox_back_shift(unsigned opcode)
{
	return opcode % 4 * 16;
}

#endif /* MBOX_WIRE_H */
