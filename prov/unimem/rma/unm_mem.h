/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_mem.h - dmable memory for the application, fi_unimem_mem(3), and how the
 * data calls recognise it.
 *
 * A domain's heap has segments, each a region of the HAL's with a key. Blocks
 * up to half of the largest shared segment share segments, larger ones have one
 * each. A segment whose last block was freed goes back to the HAL, and its key
 * opens nothing any more; one empty one is kept.
 *
 * Blocks are taken and freed under the heap's own lock, by any thread, while
 * data calls look addresses up without one: the table of segments exists twice.
 * A change is made first in the copy that nobody is told of, then told, then
 * made in the other one; who looked meanwhile looks again. So nobody waits for
 * a thread that stopped in the middle of a change.
 */
#ifndef UNM_MEM_H
#define UNM_MEM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "core/unm_domain_state.h"
#include "hal/hal.h"
#include "util/unm_list.h"
#include "util/unm_span.h"

#define UNM_MEM_SEGS	4096		/* segments of a domain */
#define UNM_MEM_WHY	400		/* bytes of what the HAL said */

/*
 * One region of the HAL's. base to key stay as they are while a block of it is
 * in use; the structure itself can be read until the domain is closed.
 */
struct unm_mem_seg {
	uintptr_t base;
	size_t bytes;
	struct hal_mem *mem;
	struct hal_key key;
	/* the heap's */
	struct unm_list link;		/* among the shared or the spare ones */
	bool shared;			/* false: of one block */
	struct unm_span span;		/* of a shared one */
	uintptr_t block;		/* of one that is not: where it is */
	size_t block_bytes;
};

struct unm_mem_row {
	_Atomic uintptr_t base;
	_Atomic size_t bytes;
	_Atomic(struct unm_mem_seg *) seg;
};

struct unm_mem_view {
	_Atomic uint32_t count;
	struct unm_mem_row row[UNM_MEM_SEGS];	/* by address */
};

struct unm_heap {
	_Atomic uint64_t turn;		/* odd: the second view is valid */
	struct unm_mem_view view[2];
	struct hal *hal;
	pid_t pid;			/* of the process that opened it */
	pthread_mutex_t lock;		/* all below, and changing the above */
	struct unm_list shared;
	struct unm_list spare;		/* structures of segments that went */
	struct unm_mem_seg *empty;	/* shared, without a block, or NULL */
	size_t bytes;			/* of all segments */
	size_t blocks, used;		/* in use, and their bytes */
	char why[UNM_MEM_WHY];		/* the last region was refused */
};

/* fi_open_ops(domain, FI_UNIMEM_MEM): the heap is made at the first. 0,
 * -FI_EBADFLAGS, -FI_ENOMEM. Thread-safe. */
int unm_mem_open(struct unm_domain *domain, uint64_t flags, void **ops);
/* The domain is closed: whatever is still in use goes with it. */
void unm_mem_close(struct unm_domain *domain);
/* Is this line of the HAL's kept by an allocation that this thread makes, to
 * become part of its own? */
bool unm_mem_hears(const char *line);

/* What unm_heap_find() knows, from here on; the caller holds the lock. There is
 * room for UNM_MEM_SEGS, which do not overlap; one to remove is there. */
void unm_heap_insert(struct unm_heap *heap, struct unm_mem_seg *seg);
void unm_heap_remove(struct unm_heap *heap, struct unm_mem_seg *seg);

/*
 * All loads are acquires, so that none is made after the last look at turn; a
 * row that does not belong to this turn shows that turn is another by now.
 */
static inline struct unm_mem_seg *
unm_mem_view_find(const struct unm_mem_view *view, uintptr_t at, size_t len)
{
	/* these pair with the releases in unm_mem.c, row_set() and publish() */
	uint32_t from = 0, to = atomic_load_explicit(&view->count,
						     memory_order_acquire);
	const struct unm_mem_row *row;
	uintptr_t off;
	size_t bytes;

	while (from < to) {		/* the last row not beyond at */
		uint32_t mid = (from + to) / 2;

		if (atomic_load_explicit(&view->row[mid].base,
					 memory_order_acquire) <= at)
			from = mid + 1;
		else
			to = mid;
	}
	if (from == 0)
		return NULL;
	row = &view->row[from - 1];
	off = at - atomic_load_explicit(&row->base, memory_order_acquire);
	bytes = atomic_load_explicit(&row->bytes, memory_order_acquire);
	if (off >= bytes || len > bytes - off)
		return NULL;
	return atomic_load_explicit(&row->seg, memory_order_acquire);
}

static inline struct unm_mem_seg *unm_heap_find(const struct unm_heap *heap,
						const void *addr, size_t len)
{
	struct unm_mem_seg *seg;
	uint64_t turn;

	do {
		/* pairs with the release in publish() */
		turn = atomic_load_explicit(&heap->turn, memory_order_acquire);
		seg = unm_mem_view_find(&heap->view[turn & 1],
					(uintptr_t)addr, len);
	} while (__builtin_expect(atomic_load_explicit(&heap->turn,
					memory_order_relaxed) != turn, 0));
	return seg;
}

/*
 * The segment all of [addr, addr + len) lies in, or NULL; of no bytes, the one
 * addr lies in. No lock, no system call; any thread. Whoever asks has a promise
 * that the memory is not freed meanwhile: that of a data call's buffers.
 */
static inline struct unm_mem_seg *unm_mem_find(const struct unm_domain *domain,
					       const void *addr, size_t len)
{
	/* pairs with the release in unm_mem_open() */
	const struct unm_heap *heap = atomic_load_explicit(&domain->heap,
						memory_order_acquire);

	return heap != NULL ? unm_heap_find(heap, addr, len) : NULL;
}

#endif /* UNM_MEM_H */
