/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_take.c - the layout of a queue's memory, and how a thread takes a
 * word out of it. Part of gsasd and of libgsas.
 */
#include <rdma/fi_errno.h>

#include "common/gsas_pkt.h"
#include "common/gsas_queue_take.h"

/* Attempts of gsas_queue_take() while other takers are faster. The limit ends
 * the loop if a process of the job keeps changing the head. */
#define TRIES	1000

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + GSAS_PAGE_BYTES - 1) & ~(GSAS_PAGE_BYTES - 1);
}

/*
 * The words of a full queue lie in at most quota / buffer + 2 buffers, wherever
 * the first word is in its buffer. All buffers together are whole pages, so
 * that the service can return the memory of unused buffers to the system.
 */
bool gsas_queue_shape(uint32_t quota, uint32_t buffer,
		      struct gsas_queue_shape *shape)
{
	uint64_t size = (uint64_t)buffer * sizeof(uint64_t), bytes;

	if (quota == 0 || quota > GSAS_QUEUE_QUOTA_MAX ||
	    buffer < GSAS_QUEUE_BUFFER_MIN || buffer > GSAS_QUEUE_BUFFER_MAX ||
	    (buffer & (buffer - 1)) != 0)
		return false;
	bytes = whole_pages((quota / buffer + 2) * size);
	shape->quota = quota;
	shape->shift = (uint32_t)__builtin_ctz(buffer);
	shape->buffers = (uint32_t)(bytes / size);
	shape->entries = 1;
	while (shape->entries < shape->buffers)
		shape->entries *= 2;
	shape->words = whole_pages(sizeof(struct gsas_queue_head) +
				   shape->entries * sizeof(uint32_t));
	shape->bytes = shape->words + bytes;
	return true;
}

uint64_t gsas_queue_bytes(uint32_t quota, uint32_t buffer)
{
	struct gsas_queue_shape shape;

	return gsas_queue_shape(quota, buffer, &shape) ? shape.bytes : 0;
}

int gsas_queue_view(void *memory, uint64_t bytes, struct gsas_queue_view *view)
{
	/* volatile: each field is read once and then checked */
	const volatile struct gsas_queue_head *head = memory;
	struct gsas_queue_shape shape;

	if (bytes < sizeof(*head) || head->magic != GSAS_QUEUE_MAGIC ||
	    !gsas_queue_shape(head->quota, head->buffer, &shape) ||
	    shape.bytes > bytes)
		return -FI_EINVAL;
	view->head = memory;
	view->words = (void *)((char *)memory + shape.words);
	view->shape = shape;
	return 0;
}

/*
 * Must this taker, which moved the head to taken, notify the service? The head
 * was stored (seq_cst) before wanted is loaded (seq_cst), and the service
 * stores wanted before it loads the head. So either the service reads this head
 * or this taker reads wanted. Of all takers at or beyond wanted the one that
 * clears it notifies.
 */
static bool is_wanted(struct gsas_queue_head *head, uint64_t taken)
{
	uint64_t at = atomic_load(&head->wanted);

	return at != 0 && taken >= at &&
	       atomic_compare_exchange_strong(&head->wanted, &at, 0);
}

/*
 * A taker owns a word when its compare-and-swap moves the head past the word.
 * The service changes a word and its directory entry only after the head has
 * passed them, so the values that were read are valid while the head has not
 * moved. If the head has moved, the compare-and-swap fails and the values are
 * dropped. A taker that is killed before its compare-and-swap has changed
 * nothing.
 */
int gsas_queue_take(const struct gsas_queue_view *view, uint64_t *word,
		    bool *notify)
{
	const struct gsas_queue_shape *shape = &view->shape;
	struct gsas_queue_head *head = view->head;
	/* pairs with the release of the taker of the word before: the tail
	 * loaded below is not behind this head */
	uint64_t at = atomic_load_explicit(&head->head, memory_order_acquire);

	for (int tries = 0; tries < TRIES; tries++) {
		/* pairs with the release in gsas_queue_put() */
		uint64_t tail = atomic_load_explicit(&head->tail,
						     memory_order_acquire);
		uint64_t was = at, is, in;
		uint32_t buffer;

		if (tail == at)
			return -FI_EAGAIN;
		buffer = atomic_load_explicit(&head->directory[
			at >> shape->shift & (shape->entries - 1)],
			memory_order_relaxed);
		if (tail - at > shape->quota || buffer >= shape->buffers) {
			/* The head may have moved since it was loaded, so that
			 * the new tail is too far from it: load it again
			 * (acquire pairs as above). If it has not moved, the
			 * memory was overwritten. */
			at = atomic_load_explicit(&head->head,
						  memory_order_acquire);
			if (at == was)
				return -FI_EIO;
			continue;
		}
		in = at & ((UINT64_C(1) << shape->shift) - 1);
		is = atomic_load_explicit(&view->words[
			((uint64_t)buffer << shape->shift) + in],
			memory_order_relaxed);
		/* release: pairs with the acquire in update_taken() of
		 * gsas_queue.c, after which the service reuses the buffer */
		if (atomic_compare_exchange_strong_explicit(&head->head, &at,
				at + 1, memory_order_seq_cst,
				memory_order_acquire)) {
			*word = is;
			*notify = is_wanted(head, at + 1);
			return 0;
		}
	}
	return -FI_EAGAIN;
}
