/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_client.h - queue handles of a thread: notifications that the
 * connection receives, and the end of the thread. Private to libgsas; gsas.h
 * has the calls.
 */
#ifndef GSAS_QUEUE_CLIENT_H
#define GSAS_QUEUE_CLIENT_H

#include <stdint.h>

struct gsas_conn;
struct gsas_thread;

/*
 * The service sent a notification of an ENQUEUE (tag 0) for the queue at an
 * address. words: the number of words that may be sent since the open. error:
 * 0; -FI_EAGAIN: all were sent, and the queue is full; -FI_ENOMEM: all were
 * sent, and there is no memory for more; other: no more words may be put in.
 */
void gsas_queue_notified(struct gsas_conn *conn, uint64_t address, int error,
			 uint64_t words);

/* The thread ends: free its handles (but not in a forked child, where they are
 * the parent's and the program may still use them). */
void gsas_queue_end(struct gsas_thread *t);

#endif /* GSAS_QUEUE_CLIENT_H */
