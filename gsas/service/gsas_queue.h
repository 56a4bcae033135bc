/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue.h - remote enqueue (The Remote Enqueue Operation on Networks of
 * Workstations, FORTH): words go in by packets from any board, and out at the
 * owner's. Pure: memory and numbers.
 *
 * In the queue's memory are a head, a directory and buffers. One side puts in,
 * the board's service, and needs nobody's leave; any number of threads take
 * out, each word with one compare-and-swap of the count of words taken, and
 * none of them can stop another, wherever it is killed. A full buffer is
 * followed by another one, as the paper's handler does, up to the quota; a
 * drained one is used again.
 *
 * A producer sends words within its window, each of them a place under the
 * quota, and is sent cumulative acknowledgements: how many words it may send in
 * all, or that there is no place for more.
 */
#ifndef GSAS_QUEUE_H
#define GSAS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gsas_pkt.h"
#include "common/gsas_queue_take.h"

#define GSAS_QUEUE_WINDOW	64	/* words a producer may send, at most */

struct gsas_queue;
struct gsas_producer;			/* one interface that enqueues */

/*
 * Whole pages of a queue's memory, and the system. A queue uses no memory of
 * buffers that it has not populated, and keeps little of what it does not use.
 */
struct gsas_queue_system {
	/* It may have these bytes; they are zero when touched again. NULL: no
	 * such thing. */
	void (*give_back)(void *memory, uint64_t bytes);
	/* They shall have memory; false: there is none. NULL: they have. */
	bool (*populate)(void *ctx, void *memory, uint64_t bytes);
	void *ctx;			/* of populate */
};

/* Lay out a new queue in zeroed memory of gsas_queue_bytes(). 0, -FI_ENOMEM,
 * -FI_EINVAL. */
int gsas_queue_new(void *memory, uint32_t quota, uint32_t buffer,
		   const struct gsas_queue_system *system,
		   struct gsas_queue **queue);
void gsas_queue_free(struct gsas_queue *queue);	/* with its producers */

/*
 * A new producer may send its window at once, less or nothing if the queue is
 * full or others wait: then gsas_queue_grant() returns it when it may.
 * GSAS_OK; GSAS_E_QUOTA: too many producers for its words, which is so with as
 * many as words, and never below half as many; GSAS_E_STATE: see
 * gsas_queue_put(); GSAS_E_MEMORY: also if the system has none for its window,
 * or for those that wait.
 */
enum gsas_error gsas_producer_open(struct gsas_queue *queue, void *user,
				struct gsas_producer **producer);
/* Its window goes back to the others. */
void gsas_producer_close(struct gsas_producer *producer);

/* Words it may send since it was opened, put in or not. */
uint64_t gsas_producer_granted(const struct gsas_producer *producer);
/* It has put all of them in, and there is no place or memory for more. */
bool gsas_producer_full(const struct gsas_producer *producer);
void *gsas_producer_user(const struct gsas_producer *producer);

/* There is place for more words, but the system had no memory for them when it
 * was last asked. */
bool gsas_queue_starved(const struct gsas_queue *queue);

/*
 * GSAS_OK; GSAS_E_AGAIN: it was not granted, nothing is put in; GSAS_E_STATE:
 * the head was overwritten, the queue is of no use any more. Then all are
 * granted words, so that nobody waits, and get this for each of them.
 */
enum gsas_error gsas_queue_put(struct gsas_producer *producer, uint64_t word);

/*
 * Look at what was taken out, and grant: the next producer that may send more
 * than the last time it was returned, or that has just become full, or is full
 * for another reason (gsas_queue_starved()), or NULL. Then *waits: some want
 * more than there is, or memory is still to be given back. Call again when a
 * taker notifies the service (gsas_queue_head.wanted), and by clock: a taker
 * that is killed before that notifies nobody.
 */
struct gsas_producer *gsas_queue_grant(struct gsas_queue *queue, bool *waits);

/* Inside, now. */
uint64_t gsas_queue_words(const struct gsas_queue *queue);

#endif /* GSAS_QUEUE_H */
