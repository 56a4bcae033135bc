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
 * Word i of the queue, counted from its beginning, is in the buffer that
 * directory entry (i / buffer) % entries names, at i % buffer. An entry is
 * stored before the tail that passes it, and changed after the head has.
 */
struct gsas_queue_head {
	uint64_t magic;
	uint32_t quota;			/* words */
	uint32_t buffer;		/* words of a buffer, 2^n */
	uint8_t line[48];
	_Atomic uint64_t head;		/* words taken out: by who takes */
	uint8_t head_line[56];
	_Atomic uint64_t tail;		/* words put in: by the service */
	_Atomic uint64_t wanted;	/* who takes the head here or beyond
					 * tells the service; 0: nobody does */
	uint8_t tail_line[48];
	_Atomic uint32_t directory[];	/* numbers of buffers */
};
_Static_assert(offsetof(struct gsas_queue_head, head) == 64, "own line");
_Static_assert(offsetof(struct gsas_queue_head, tail) == 128, "own line");
_Static_assert(offsetof(struct gsas_queue_head, wanted) == 136, "its line");
_Static_assert(offsetof(struct gsas_queue_head, directory) == 192, "");

/* What quota and buffer make of it. */
struct gsas_queue_shape {
	uint32_t quota;
	uint32_t shift;			/* a buffer has 2^shift words */
	uint32_t entries;		/* of the directory, 2^n */
	uint32_t buffers;		/* whole pages of them */
	uint64_t words;			/* where buffer 0 is, in bytes */
	uint64_t bytes;			/* of all */
};

/* false: quota or buffer is out of range. */
bool gsas_queue_shape(uint32_t quota, uint32_t buffer,
		      struct gsas_queue_shape *shape);
/* Bytes of memory a queue needs, whole pages; 0: out of range. */
uint64_t gsas_queue_bytes(uint32_t quota, uint32_t buffer);

/* What a reader copied out of the head, checked: the memory may be written by
 * others of its job. */
struct gsas_queue_view {
	struct gsas_queue_head *head;
	_Atomic uint64_t *words;	/* of buffer 0 */
	struct gsas_queue_shape shape;
};

/* 0; -FI_EINVAL: this is no queue, or not one that fits in so many bytes. */
int gsas_queue_view(void *memory, uint64_t bytes, struct gsas_queue_view *view);

/* 0; -FI_EAGAIN: empty, or others were quicker thousands of times; -FI_EIO:
 * its memory was overwritten. *notify: the service wants to know
 * (gsas_queue_head.wanted); nobody else tells it. Lock-free, thread-safe. */
int gsas_queue_take(const struct gsas_queue_view *view, uint64_t *word,
		    bool *notify);

#endif /* GSAS_QUEUE_TAKE_H */
