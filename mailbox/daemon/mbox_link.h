/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_link.h - the daemon's side of the HAL: the mailbox interface of the
 * board, one link for each remote daemon, and the messages that have come and
 * wait for their readers.
 *
 * A daemon sends at most MBOX_WINDOW messages of an opcode to another daemon
 * beyond those that readers have got. So the receiver always has a place for
 * the messages of each opcode, and an opcode without a reader delays no other.
 * One thread uses all of this.
 */
#ifndef MBOX_LINK_H
#define MBOX_LINK_H

#include "common/mbox_wire.h"
#include "hal/hal.h"
#include "util/unm_list.h"

/* A message that waits for its reader; in struct mbox_link. */
struct mbox_entry {
	struct unm_list node;		/* in mbox_hal.waiting[opcode] */
	uint64_t message;
	uint64_t arrival;		/* number of the message among all that
					 * have come, from 0 */
	struct mbox_link *link;		/* the daemon it came from */
};

/*
 * The connection with a remote daemon, whichever side has opened it. Freed once
 * the peer is dead, no client of this daemon uses the link, and its last
 * message was taken.
 */
struct mbox_link {
	struct mbox_hal *mh;
	struct unm_list node;		/* in mbox_hal.links */
	struct hal_peer *peer;		/* NULL: dead */
	unsigned board;
	/* outbound */
	bool open;			/* hal_connect() succeeded */
	bool announced;			/* OPEN was sent, and no CLOSE since */
	bool wanted;			/* a send waits for the peer */
	bool asked;			/* by hal_tx_sleep() for a wake-up */
	uint64_t opens;			/* OPEN packets sent */
	uint32_t writers;		/* clients that have the mailbox open */
	uint32_t users;			/* clients that refer to the link */
	uint16_t sent[MAILBOX_OPCODES];	/* messages, modulo 2^16 */
	/* inbound */
	bool used;			/* OPEN was received, no CLOSE since */
	uint64_t opened;		/* OPEN packets received */
	uint32_t held;			/* entries in mbox_hal.waiting[] */
	uint16_t received[MAILBOX_OPCODES];
	uint16_t taken[MAILBOX_OPCODES];
	struct mbox_entry entries[MAILBOX_OPCODES][MBOX_WINDOW];
};

/* The interface of the board. Owned by the program, from mbox_hal_open() to
 * mbox_hal_close(). */
struct mbox_hal {
	struct hal *hal;
	struct hal_if *hif;		/* NULL: closed */
	struct unm_list links;		/* of struct mbox_link, oldest first */
	struct unm_list waiting[MAILBOX_OPCODES]; /* messages of each opcode, of
						   * struct mbox_entry */
	uint64_t arrivals;		/* messages that have come */
	uint64_t discarded;		/* messages that found no reader */
	uint64_t ends;			/* links that have become dead */
	bool connecting;		/* in hal_connect(), which logs that a
					 * node has no daemon; that is no
					 * failure */
	bool refused;			/* an inbound peer has no link */
	void (*log)(const char *line);
};

/* Open the mailbox interface of a board, which is the one with the highest
 * number. 0; errors of hal_if_open_number(). */
int mbox_hal_open(struct mbox_hal *mh, struct hal *hal, int board,
		  void (*log)(const char *line));
/* End all links. */
void mbox_hal_close(struct mbox_hal *mh);

/* Receive packets, accept and end links. Returns whether there was any. */
bool mbox_hal_poll(struct mbox_hal *mh);
/* Does a remote process have the local mailbox open? */
bool mbox_hal_used(const struct mbox_hal *mh);
/* Does a message wait for a reader? */
bool mbox_hal_holds(const struct mbox_hal *mh);
/* Ask those peers for which a send waits for a wake-up (on), or no longer. */
void mbox_hal_sleep(struct mbox_hal *mh, bool on);
/* Send each OPEN and CLOSE that could not be sent before. mbox_hal_poll() does
 * it too. */
void mbox_hal_announce(struct mbox_hal *mh);
/* Does a send wait for a peer that was not asked for a wake-up? */
bool mbox_hal_wants(const struct mbox_hal *mh);

/* The oldest message of an opcode; NULL: none. */
struct mbox_entry *mbox_hal_first(struct mbox_hal *mh, unsigned opcode);
/* A reader has got the message: remove it, and let its sender send another. */
void mbox_hal_take(struct mbox_entry *entry);

/* A link to a board, with a writer and a user more. 0; -FI_EAGAIN: try again;
 * -FI_ECONNREFUSED: the board has no daemon; other errors of hal_connect(). */
int mbox_link_get(struct mbox_hal *mh, int board, struct mbox_link **link);
/* Has the remote daemon learnt that its mailbox is open? 0: yes; -FI_EAGAIN:
 * not yet; -FI_ECONNREFUSED: it has ended. */
int mbox_link_opened(struct mbox_link *link);
/* A writer has closed the mailbox. Its messages may still be sent. */
void mbox_link_close(struct mbox_link *link);
/* A user less: the caller does not refer to the link any more. */
void mbox_link_put(struct mbox_link *link);
/* Send a message. 0; -FI_EAGAIN: the mailbox is full; -FI_ECONNRESET: the
 * remote daemon has ended. */
int mbox_link_send(struct mbox_link *link, uint64_t message);

#endif /* MBOX_LINK_H */
