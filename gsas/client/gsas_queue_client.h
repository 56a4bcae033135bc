/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_client.h - queue handles of a thread: what the connection and the
 * end of the thread do with them. Private to libgsas; gsas.h has the calls.
 */
#ifndef GSAS_QUEUE_CLIENT_H
#define GSAS_QUEUE_CLIENT_H

#include <stdint.h>

struct gsas_conn;
struct gsas_thread;

/*
 * The service sent a notification of an ENQUEUE (tag 0) for the queue at an
 * address. error 0: words may be sent in all since the open; -FI_EAGAIN: the
 * queue is full; -FI_ENOMEM: no memory for more words; other: the queue takes
 * no more words.
 */
void gsas_queue_notified(struct gsas_conn *conn, uint64_t address, int error,
			 uint64_t words);

/* The thread ends: free its handles. */
void gsas_queue_end(struct gsas_thread *t);

#endif /* GSAS_QUEUE_CLIENT_H */
