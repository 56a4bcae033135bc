/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_mem.h - heap of dmable memory for the application, fi_unimem_mem(3), and
 * the lookup by which data calls recognise its addresses (unm_mem.c).
 *
 * The heap of a domain consists of segments. A segment is a memory region of
 * the HAL, and has a key. Blocks up to half of the largest shared segment share
 * segments; each larger block has a segment of its own. When the last block of
 * a segment is freed, the segment returns to the HAL and its key becomes
 * invalid; one empty segment is kept.
 *
 * Any thread allocates and frees blocks, under the heap's own lock. Data calls
 * look addresses up without a lock, in a table of segments that exists twice. A
 * writer changes the copy that is not valid, publishes this copy by turn, then
 * changes the other copy. A reader that finds another turn after its lookup
 * repeats the lookup. Readers therefore never wait for a writer that was
 * stopped in the middle of a change. Linux calls this a sequence-count latch
 * (seqcount_latch_t).
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

#define UNM_MEM_SEGS	4096		/* most segments of a domain */
#define UNM_MEM_WHY	400		/* bytes of a log line of the HAL */

/*
 * A segment. base, bytes, mem and key are constant while a block of the segment
 * is in use. The structure is reused for later segments, and freed only when
 * the domain is closed, so that a reader without the lock may still read it.
 */
struct unm_mem_seg {
	uintptr_t base;			/* first address */
	size_t bytes;			/* size */
	struct hal_mem *mem;		/* the HAL's handle */
	struct hal_key key;		/* by which peers import the segment */
	/* protected by unm_heap.lock */
	struct unm_list link;		/* in unm_heap.shared or .spare */
	bool shared;			/* holds any number of blocks; false:
					 * one block */
	bool adopted;			/* arena of libunimem-malloc.so, holds
					 * no block */
	struct unm_span span;		/* shared: allocator of its blocks */
	uintptr_t block;		/* not shared: address of the block */
	size_t block_bytes;		/* not shared: size of the block */
};

/* A copy of base and bytes of a segment, for lookups. */
struct unm_mem_row {
	_Atomic uintptr_t base;
	_Atomic size_t bytes;
	_Atomic(struct unm_mem_seg *) seg;
};

/* One of the two copies of the table of segments. */
struct unm_mem_view {
	_Atomic uint32_t count;			/* valid rows */
	struct unm_mem_row row[UNM_MEM_SEGS];	/* ordered by base */
};

/* The heap of a domain: created by the first unm_mem_open(), freed by
 * unm_mem_close(). Writers of any field hold lock. */
struct unm_heap {
	_Atomic uint64_t turn;		/* view[turn & 1] is valid; incremented
					 * by each change of the table */
	struct unm_mem_view view[2];
	struct hal *hal;		/* device that allocates segments */
	pid_t pid;			/* process that opened the heap */
	pthread_mutex_t lock;		/* protects all fields below, and
					 * serialises writers of the table */
	struct unm_list shared;		/* segments that hold several blocks */
	struct unm_list spare;		/* structures without a segment */
	struct unm_mem_seg *empty;	/* shared segment without blocks, or
					 * NULL */
	size_t bytes;			/* bytes of all segments but adopted */
	size_t blocks, used;		/* blocks in use, and their bytes */
	char why[UNM_MEM_WHY];		/* what the HAL logged when it last
					 * allocated a region */
};

/* fi_open_ops(domain, FI_UNIMEM_MEM): set *ops to struct fi_unimem_mem_ops. The
 * first call creates the heap. flags: 0. Returns 0, -FI_EBADFLAGS or
 * -FI_ENOMEM. Thread-safe. */
int unm_mem_open(struct unm_domain *domain, uint64_t flags, void **ops);

/*
 * Make the arena of libunimem-malloc.so, if the program runs with it, a segment
 * of the domain, so that messages from the large blocks of the program's heap
 * are read from there. Called once, before the domain is used. Without an arena
 * nothing changes.
 */
void unm_mem_adopt(struct unm_domain *domain);

/* Free the heap of a domain that is being closed, with all blocks in use. */
void unm_mem_close(struct unm_domain *domain);

/* Allocate a block of dmable memory for the provider itself, of bytes, a
 * multiple of UNM_SPAN_UNIT; creates the heap. NULL: no memory, and no line is
 * logged. */
void *unm_mem_take(struct unm_domain *domain, size_t bytes);

/* Free a block of unm_mem_take(). */
void unm_mem_give(struct unm_domain *domain, void *block);

/* Offer a line that the HAL wants to log. Returns true if the calling thread is
 * allocating a segment: then the line becomes part of the heap's own log line,
 * and the caller must not print it. */
bool unm_mem_hears(const char *line);

/* Add a segment to the table of unm_heap_find(), or remove it. The caller holds
 * the lock. A segment to insert overlaps no other segment, and the table has
 * fewer than UNM_MEM_SEGS; a segment to remove is in the table. */
void unm_heap_insert(struct unm_heap *heap, struct unm_mem_seg *seg);
void unm_heap_remove(struct unm_heap *heap, struct unm_mem_seg *seg);

/*
 * Look [at, at + len) up in one view, by binary search. All loads are acquires,
 * so that none is executed after the reader's second load of turn. If a load
 * returns a row of a later turn, the second load of turn returns the later turn
 * as well, and the result is discarded.
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

	while (from < to) {		/* find the last row with base <= at */
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

/* As unm_mem_find(), for a heap. */
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
 * The segment that contains all of [addr, addr + len), or NULL; with len 0, the
 * segment that contains addr. Any thread, without a lock or a system call. The
 * memory must not be freed during the call: this holds for the buffers of a
 * data call, which the application may not free before the completion.
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
