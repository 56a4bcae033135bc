/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_take.c - what everybody knows of a queue: where things are in its
 * memory, and how a word is taken out. Part of gsasd and of the client library.
 */
#include <rdma/fi_errno.h>

#include "common/gsas_pkt.h"
#include "common/gsas_queue_take.h"

/* Who is later than others so often looks again later. It bounds what somebody
 * who scribbles over the head can do to us. */
#define TRIES	1000

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + GSAS_PAGE_BYTES - 1) & ~(GSAS_PAGE_BYTES - 1);
}

/*
 * Words of the quota, wherever the first one is in its buffer, are in at most
 * quota / buffer + 2 buffers. There are whole pages of them, so that a page, or
 * the pages of one, can be given back.
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
	/* volatile: read once, and then checked */
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
 * The head is what it was all the time, as it only grows. It was stored
 * (seq_cst) before wanted is loaded (seq_cst), and the service stores wanted
 * before it looks at the head: so it sees this head, or we see what it wants.
 * One of those who are beyond it clears it, and tells.
 */
static bool is_wanted(struct gsas_queue_head *head, uint64_t taken)
{
	uint64_t at = atomic_load(&head->wanted);

	return at != 0 && taken >= at &&
	       atomic_compare_exchange_strong(&head->wanted, &at, 0);
}

/*
 * A word is ours when the head goes from before it to behind it by us. Until
 * then it did not move, so neither directory entry nor word were changed, which
 * the service does behind the head only; what we read of one that did move is
 * thrown away. Whoever stops or dies before has done nothing.
 */
int gsas_queue_take(const struct gsas_queue_view *view, uint64_t *word,
		    bool *notify)
{
	const struct gsas_queue_shape *shape = &view->shape;
	struct gsas_queue_head *head = view->head;
	/* pairs with the release of who took the word before: it knew a tail
	 * that is not behind this */
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
			/* a tail of now is too far for a head of before, which
			 * pairs as above: then there is a newer one */
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
		/* release: pairs with the acquire of accept_head() in
		 * gsas_queue.c, after which the buffer is used again */
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
