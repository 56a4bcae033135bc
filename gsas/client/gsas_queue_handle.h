/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_handle.h - the queues that a thread has open: one handle for each
 * queue, in a list of the connection to its service. Private to libgsas.
 * gsas_queue_client.c has the calls of gsas.h.
 */
#ifndef GSAS_QUEUE_HANDLE_H
#define GSAS_QUEUE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/gsas_request.h"
#include "common/gsas_queue_take.h"

struct gsas_conn;

/* A queue that a thread has open. Only that thread uses the handle. The last
 * gsas_queue_close() or the end of the thread frees it. */
struct gsas_queue_handle {
	struct gsas_queue_handle *next;	/* in conn->queues */
	uint64_t owner;		/* gsas_thread.number of the thread */
	uint64_t address;
	struct gsas_conn *conn;
	uint32_t epoch;		/* conn->epoch when the queue was opened: a
				 * later service does not know the queue */
	uint32_t refs;		/* calls of gsas_queue_open() not yet undone */
	bool producer;			/* the service has a window for it */
	int error;			/* errno of gsas_enqueue() from now on;
					 * 0: words may be put in */
	int full;			/* -FI_EAGAIN: the queue is full,
					 * -FI_ENOMEM: the service has no memory
					 * for more words; 0: neither */
	uint64_t granted, used;		/* words that may be sent, and that
					 * were, since it became a producer */
	struct gsas_queue_view view;	/* head NULL: not mapped so far */
	bool waits;			/* wait was sent, and its result was not
					 * read yet */
	struct gsas_request wait;	/* QUEUE_WAIT, if waits */
};

/* The handle of the queue at an address, opened at the present service of the
 * connection; NULL: the queue is not open. */
struct gsas_queue_handle *gsas_handle_find(const struct gsas_conn *conn,
					   uint64_t address);

/* Make a handle for the queue at an address, without a reference. owner:
 * gsas_thread.number of the calling thread. NULL: no memory. */
struct gsas_queue_handle *gsas_handle_new(struct gsas_conn *conn,
					  uint64_t owner, uint64_t address);

/* Remove a handle from the list of its connection, and free it. */
void gsas_handle_free(struct gsas_queue_handle *q);

/* Free all handles of a connection, whose thread ends. */
void gsas_handle_free_all(struct gsas_conn *conn);

/*
 * The service sent a notification of an ENQUEUE (tag 0) for the queue at an
 * address. words: the number of words that may be sent since the open. error:
 * 0; -FI_EAGAIN: all were sent, and the queue is full; -FI_ENOMEM: all were
 * sent, and there is no memory for more; other: no more words may be put in.
 */
void gsas_handle_notified(struct gsas_conn *conn, uint64_t address, int error,
			  uint64_t words);

#endif /* GSAS_QUEUE_HANDLE_H */
