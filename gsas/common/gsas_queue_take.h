/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_take.h - the memory of a queue, and how a word is taken out. Part
 * of gsasd and of libgsas. Pure: memory and numbers.
 *
 * Any number of threads take words out, each with one compare-and-swap of the
 * number of words taken; a thread that is killed at any place blocks no other.
 * Only the service of the board puts words in: service/gsas_queue.h.
 */
#ifndef GSAS_QUEUE_TAKE_H
#define GSAS_QUEUE_TAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GSAS_QUEUE_MAGIC	UINT64_C(0x5175657565533031)
#define GSAS_QUEUE_QUOTA_MAX	(UINT32_C(1) << 24)	/* words */
#define GSAS_QUEUE_BUFFER_MIN	8			/* words, 2^n */
#define GSAS_QUEUE_BUFFER_MAX	4096

/*
 * The beginning of a queue's memory, shared by the service and all processes of
 * the job. Words are numbered from 0 as they are put in. Word i is in the
 * buffer whose number is in directory[(i / buffer) % entries], at index i %
 * buffer. The service stores a directory entry before the tail passes it, and
 * changes the entry only after the head has passed it. A process of the job may
 * overwrite all of this; each side checks what it reads.
 */
struct gsas_queue_head {
	uint64_t magic;
	uint32_t quota;			/* words */
	uint32_t buffer;		/* words of a buffer, 2^n */
	uint8_t line[48];
	_Atomic uint64_t head;		/* words taken out; by takers */
	uint8_t head_line[56];
	_Atomic uint64_t tail;		/* words put in; by the service */
	_Atomic uint64_t wanted;	/* the taker that moves the head to
					 * this number or beyond notifies the
					 * service; 0: no taker does */
	uint8_t tail_line[48];
	_Atomic uint32_t directory[];	/* numbers of buffers */
};
_Static_assert(offsetof(struct gsas_queue_head, head) == 64, "own line");
_Static_assert(offsetof(struct gsas_queue_head, tail) == 128, "own line");
_Static_assert(offsetof(struct gsas_queue_head, wanted) == 136, "its line");
_Static_assert(offsetof(struct gsas_queue_head, directory) == 192, "");

/* Sizes that follow from quota and buffer. */
struct gsas_queue_shape {
	uint32_t quota;			/* words */
	uint32_t shift;			/* a buffer has 2^shift words */
	uint32_t entries;		/* directory entries, 2^n */
	uint32_t buffers;		/* buffers; together whole pages */
	uint64_t words;			/* byte offset of buffer 0 */
	uint64_t bytes;			/* bytes of the whole queue */
};

/* Compute the shape. false: quota or buffer (both in words) is out of range. */
bool gsas_queue_shape(uint32_t quota, uint32_t buffer,
		      struct gsas_queue_shape *shape);

/* Bytes of memory that a queue needs, in whole pages; 0: quota or buffer is out
 * of range. */
uint64_t gsas_queue_bytes(uint32_t quota, uint32_t buffer);

/* A queue as a taker sees it. The shape is a checked copy, because other
 * processes of the job may overwrite the head. */
struct gsas_queue_view {
	struct gsas_queue_head *head;
	_Atomic uint64_t *words;	/* first word of buffer 0 */
	struct gsas_queue_shape shape;
};

/* Read the head of a queue in bytes of memory. 0; -FI_EINVAL: there is no queue
 * that fits into so many bytes. */
int gsas_queue_view(void *memory, uint64_t bytes, struct gsas_queue_view *view);

/*
 * Take out the next word. 0; -FI_EAGAIN: the queue is empty, or other takers
 * were faster 1000 times in a row; -FI_EIO: the memory was overwritten. If
 * *notify is set, the caller must notify the service (a client by a DEQUEUE of
 * 0 words): the service waits for it (gsas_queue_head.wanted) and no other
 * taker will do it. Any thread; lock-free.
 */
int gsas_queue_take(const struct gsas_queue_view *view, uint64_t *word,
		    bool *notify);

#endif /* GSAS_QUEUE_TAKE_H */
