/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue.h - the service's side of a queue (The Remote Enqueue Operation on
 * Networks of Workstations, FORTH): put words in, manage buffers, grant words
 * to producers. Pure: memory and numbers. One thread at a time.
 *
 * The memory of a queue has a head, a directory and buffers
 * (common/gsas_queue_take.h). The service alone puts words in and never waits
 * for a taker. A full buffer is followed by another one, as in the handler of
 * the paper, up to the quota; a drained buffer is used again.
 *
 * A producer sends words within its window; each word has its place under the
 * quota. It is sent cumulative acknowledgements: the number of words that it
 * may send in all, or that the queue is full.
 */
#ifndef GSAS_QUEUE_H
#define GSAS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gsas_pkt.h"
#include "common/gsas_queue_take.h"

#define GSAS_QUEUE_WINDOW	64	/* most unacknowledged words */

struct gsas_queue;
struct gsas_producer;			/* a client that enqueues */

/*
 * How a queue gets memory from the system and returns it, in pages of 4 KiB. A
 * queue touches a buffer only after populate(), and returns the memory of most
 * free buffers.
 */
struct gsas_queue_system {
	/* The system may take these bytes; those that it takes are zero when
	 * they are populated again. NULL: nothing is given back. */
	void (*give_back)(void *memory, uint64_t bytes);
	/* Back these bytes by memory; false: the system has none. NULL: they
	 * have memory already. */
	bool (*populate)(void *ctx, void *memory, uint64_t bytes);
	void *ctx;			/* argument of populate() */
};

/* Lay out a new queue in zeroed memory of gsas_queue_bytes(). 0, -FI_ENOMEM,
 * -FI_EINVAL. */
int gsas_queue_new(void *memory, uint32_t quota, uint32_t buffer,
		   const struct gsas_queue_system *system,
		   struct gsas_queue **queue);
/* Free the queue and its producers, not the memory. */
void gsas_queue_free(struct gsas_queue *queue);

/*
 * Add a producer; user is what gsas_producer_user() returns. It may send its
 * window at once; less or nothing if the queue is full or other producers wait:
 * then gsas_queue_grant() returns it when it may send more. GSAS_OK;
 * GSAS_E_QUOTA: too many producers (the limit is between half of the quota and
 * the quota); GSAS_E_STATE: see gsas_queue_put(); GSAS_E_MEMORY: also if the
 * system has no memory for its window, or for producers that wait.
 */
enum gsas_error gsas_producer_open(struct gsas_queue *queue, void *user,
				struct gsas_producer **producer);
/* Remove a producer; other producers can use its window. */
void gsas_producer_close(struct gsas_producer *producer);

/* Number of words that the producer may send in all since it was opened. */
uint64_t gsas_producer_granted(const struct gsas_producer *producer);
/* Has the producer put in all words that were granted? */
bool gsas_producer_full(const struct gsas_producer *producer);
void *gsas_producer_user(const struct gsas_producer *producer);

/* The quota allows more words, but the last populate() found no memory. */
bool gsas_queue_starved(const struct gsas_queue *queue);

/*
 * Put a word in. GSAS_OK; GSAS_E_AGAIN: the word was not granted, nothing is
 * put in; GSAS_E_STATE: a process of the job has overwritten the head, so the
 * queue is unusable. Then all producers are granted words, so that none waits,
 * and each word is refused with this error.
 */
enum gsas_error gsas_queue_put(struct gsas_producer *producer, uint64_t word);

/*
 * Read how many words were taken out, and grant words to producers. Returns the
 * next producer to be notified: it may send more than when it was last
 * returned, or it has become full, or it is full for another reason than before
 * (gsas_queue_starved()). NULL: there is none; then *waits says whether
 * producers wait for words, or drained buffers are still to be taken back. In
 * that case call again when a taker notifies the service
 * (gsas_queue_head.wanted) and periodically, as a taker may be killed before it
 * notifies the service.
 */
struct gsas_producer *gsas_queue_grant(struct gsas_queue *queue, bool *waits);

/* Words in the queue, now. */
uint64_t gsas_queue_words(const struct gsas_queue *queue);

#endif /* GSAS_QUEUE_H */
