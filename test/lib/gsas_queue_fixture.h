/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_queue_fixture.h - a queue in private memory and its producers, for tests
 * of service/gsas_queue.h without a service */
#ifndef GSAS_QUEUE_FIXTURE_H
#define GSAS_QUEUE_FIXTURE_H

#include <rdma/fi_errno.h>

#include "lib/unit.h"
#include "service/gsas_queue.h"

/* A test queue and its consumer; the test holds it by value, from tq_new() to
 * tq_free(). */
struct tq {
	struct gsas_queue *queue;
	struct gsas_queue_head *head;	/* memory of the queue */
	struct gsas_queue_view view;	/* the consumer's view */
	uint64_t bytes;			/* length of the memory */
};

/* The bytes of the whole pages that so many bytes need. */
static inline uint64_t tq_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Memory for a queue of this shape, between two pages without access rights, so
 * that an access beyond the memory is a fault. The words begin a page of the
 * system, which may be longer than GSAS_PAGE_BYTES; the head is at the end of
 * the pages before. Freed by memory_free(). */
static inline void *memory_new(const struct gsas_queue_shape *shape)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t head = tq_pages(shape->words);
	uint64_t all = head + tq_pages(shape->bytes - shape->words);
	char *p = mmap(NULL, all + 2 * page, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + page, all, PROT_READ | PROT_WRITE), 0);
	return p + page + head - shape->words;
}

static inline void memory_free(void *memory,
			       const struct gsas_queue_shape *shape)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t head = tq_pages(shape->words);

	munmap((char *)memory + shape->words - head - page,
	       head + tq_pages(shape->bytes - shape->words) + 2 * page);
}

/* Create a queue with these limits; tq_new() with the system function
 * give_back() only. */
static inline struct tq tq_new_of(uint32_t quota, uint32_t buffer,
				  const struct gsas_queue_system *system)
{
	struct gsas_queue_shape shape;
	struct tq b;

	assert_true(gsas_queue_shape(quota, buffer, &shape));
	b.bytes = shape.bytes;
	b.head = memory_new(&shape);
	assert_int_equal(gsas_queue_new(b.head, quota, buffer, system,
					&b.queue), 0);
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &b.view), 0);
	return b;
}

static inline struct tq tq_new(uint32_t quota, uint32_t buffer,
			       void (*give_back)(void *memory,
						 uint64_t bytes))
{
	const struct gsas_queue_system system = { .give_back = give_back };

	return tq_new_of(quota, buffer, &system);
}

static inline void tq_free(struct tq *b)
{
	gsas_queue_free(b->queue);
	memory_free(b->head, &b->view.shape);
}

/* Open a producer. */
static inline struct gsas_producer *tq_open(struct tq *b, void *user)
{
	struct gsas_producer *p = NULL;

	assert_int_equal(gsas_producer_open(b->queue, user, &p), GSAS_OK);
	assert_ptr_equal(gsas_producer_user(p), user);
	return p;
}

/* Take one word, which must be there. */
static inline uint64_t tq_take(struct tq *b, bool *tell)
{
	uint64_t word = 0;

	assert_int_equal(gsas_queue_take(&b->view, &word, tell), 0);
	return word;
}

/* Grant all free entries. Returns whether a producer still waits. */
static inline bool tq_grant(struct tq *b)
{
	bool waits;

	while (gsas_queue_grant(b->queue, &waits) != NULL)
		;
	return waits;
}

/* Put words into the queue as producer p: the numbers from *n on, at most max,
 * until there is neither a granted nor a free entry. Returns how many. */
static inline uint32_t tq_fill(struct tq *b, struct gsas_producer *p,
			       uint64_t *n, uint64_t max)
{
	uint32_t count = 0;

	while (count < max) {
		enum gsas_error err = gsas_queue_put(p, *n);
		bool waits;

		if (err == GSAS_OK) {
			++*n;
			count++;
			continue;
		}
		assert_int_equal(err, GSAS_E_AGAIN);
		if (gsas_queue_grant(b->queue, &waits) == NULL) {
			assert_true(waits);
			break;
		}
	}
	return count;
}

/* Check that the queue is empty. */
static inline void tq_empty(struct tq *b)
{
	uint64_t word = 77;
	bool tell = true;

	assert_int_equal(gsas_queue_take(&b->view, &word, &tell), -FI_EAGAIN);
	assert_true(word == 77 && tell);	/* outputs on success only */
	assert_int_equal(gsas_queue_words(b->queue), 0);
}

/* ---- Producers ----------------------------------------------------------- */

/* A producer and what the test has done with it. */
struct user {
	struct gsas_producer *p;
	uint64_t used, told, full;	/* words put; granted entries that it
					 * was notified of; refusals */
};

/* The entries that are granted to a producer and not used yet. */
static inline uint64_t unused(const struct user *u)
{
	return gsas_producer_granted(u->p) - u->used;
}

#endif /* GSAS_QUEUE_FIXTURE_H */
