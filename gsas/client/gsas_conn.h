/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_conn.h - the connection of a thread to the service of a board: sends
 * messages by tag, completes them by their answers, shares out the receive
 * spaces. Nothing here waits. Private to libgsas.
 *
 * gsas_connect.h connects, gsas_progress.h polls and closes connections.
 */
#ifndef GSAS_CONN_H
#define GSAS_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "client/gsas_job.h"
#include "client/gsas_request.h"
#include "common/gsas_pkt.h"
#include "hal/hal.h"

/*
 * Each of the two receive spaces, the local one and the service's, is divided
 * into 64 units with a bit each. The lowest free units are allocated first, so
 * that a thread that needs little space touches little memory.
 */
#define GSAS_UNITS	64

/* A message to be sent: a request of docs/gsas.md, section 3, and what it uses
 * of the receive spaces until it is answered. On the stack of the sender. */
struct gsas_msg {
	uint8_t opcode;		/* enum gsas_opcode */
	uint64_t address, arg1, arg2;
	void *into;		/* where data of the answer is copied to */
	uint32_t len;		/* bytes of that data, 0: none */
	uint32_t off;		/* offset of that data in the local space */
	uint64_t local, remote;	/* units held: local space, service's space; a
				 * bit each */
};

/* A message that was sent and is not answered yet; fields as in gsas_msg. */
struct gsas_tag {
	struct gsas_request *request;	/* NULL: the tag is free */
	void *into;
	uint32_t len, off;
	uint64_t local, remote;
	uint8_t opcode;
};

/*
 * A connection. Made at the first request to the board and freed when the
 * thread ends; used by this thread only. When the service ends, peer becomes
 * NULL and the next request connects again.
 */
struct gsas_conn {
	struct hal_peer *peer;	/* NULL: not connected */
	struct gsas_thread *thread;
	uint16_t board;
	bool posted;		/* posted messages since the last fence */
	bool lost;		/* a service with posted messages ended */
	int kept;		/* -errno of a fence that no call has returned
				 * yet, 0: none */
	bool blocked;		/* the thread waits for the service in
				 * gsas_conn_wait_step() */
	bool probed;		/* a probe is sent and not answered */
	bool joining;		/* JOIN was sent, and nobody has waited for its
				 * answer, which is the request join */
	int closed_error;	/* -errno of calls while peer is NULL */
	uint64_t waited;	/* ns that the thread waited since the last
				 * answer, or since the end of a wait for a
				 * credit or an import */
	int status;		/* of the HAL at the last connect, 0 or -errno;
				 * -errno when the service ended */
	int reported;		/* the status in the last line about the host of
				 * this board, 0: no line since a connect */
	uint32_t epoch;		/* number of connects so far */
	uint32_t groups;	/* groups of gsas_job.h sent to the service */
	uint32_t group[GSAS_GROUPS];	/* their numbers there, 0: refused */
	struct gsas_request join;	/* the JOIN of this connect */
	struct gsas_request ignored;	/* of messages whose answer is not
					 * needed */
	struct gsas_request *bulk;	/* bulk request of which messages are
					 * still to be sent, or NULL; other
					 * messages are sent after it */
	struct gsas_queue_handle *queues;	/* list of open queues */
	uint64_t local, remote;	/* free units of the two spaces, a bit each */
	uint32_t unit;		/* bytes of a unit, the same in both spaces */
	uint32_t ready;		/* first bytes of the service's space that
				 * hal_space_ready() made writable */
	uint16_t nfree;		/* free tags */
	uint8_t free[GSAS_TAGS];	/* the free tags, a stack */
	struct gsas_tag tag[GSAS_TAGS + 1];	/* by tag; 0 is not used */
};

/* A peer is connected: all tags and all units of the spaces are free. */
void gsas_conn_attach(struct gsas_conn *conn, struct hal_peer *peer);

/* Detach the peer, and complete all messages with conn->closed_error. */
void gsas_conn_detach(struct gsas_conn *conn);

/*
 * Send a message. The answer completes request; NULL: a posted message, which
 * is not answered. 0: sent; -FI_EAGAIN: no tag or no credit is free, for which
 * gsas_conn_send() waits; -FI_ECONNRESET, -FI_ETIMEDOUT: the connection is
 * closed.
 */
int gsas_conn_try_send(struct gsas_conn *conn, const struct gsas_msg *msg,
		       struct gsas_request *request);

/* Complete the message that a packet of the service answers; head: of the
 * packet. false: no such message was sent, which is logged. The peer is not a
 * GSAS service then, so the caller disconnects. */
bool gsas_conn_answer(struct gsas_conn *conn, const struct hal_cell *cell,
		      uint64_t head);

/* Allocate units for bytes (one page at most: every space has that much) from
 * the set *free. Returns the units and their offset at *off; 0: not enough
 * adjacent units are free. */
uint64_t gsas_space_take(uint64_t *free, uint32_t unit, uint32_t bytes,
			 uint32_t *off);

/*
 * Allocate units for a message, as far as it has none: in bytes of the
 * service's space, whose offset is stored at *at, and out bytes of the local
 * space, whose offset is stored at msg->off; 0: none. false: not all are free;
 * call it again. gsas_space_wait() waits.
 */
bool gsas_space_try(struct gsas_conn *conn, uint32_t in, uint32_t out,
		    struct gsas_msg *msg, uint32_t *at);

/* Free the units of a message that was not sent. */
void gsas_space_undo(struct gsas_conn *conn, const struct gsas_msg *msg);

/* Store len bytes at offset off of the service's space, before the next
 * message. 0, -FI_ENOMEM, or conn->closed_error. */
int gsas_space_put(struct gsas_conn *conn, uint32_t off, const void *src,
		   uint32_t len);

#endif /* GSAS_CONN_H */
