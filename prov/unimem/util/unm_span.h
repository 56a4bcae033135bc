/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_span.h - allocator of blocks of any size and alignment from one range of
 * addresses (unm_span.c).
 *
 * The allocator never reads or writes the range itself, which may be shared
 * memory that peers write. It keeps 12 bytes of private memory for each 64
 * bytes of the range, and touches only the entries where a block begins or
 * ends. Adjacent free extents are merged by unm_span_free(), so that a range
 * without blocks is one extent again. unm_span_alloc() searches a list of
 * extents of similar size; unm_span_free() takes constant time. Not
 * thread-safe.
 */
#ifndef UNM_SPAN_H
#define UNM_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNM_SPAN_UNIT	((size_t)64)	/* bytes of the allocation unit */
#define UNM_SPAN_MAX	((size_t)1 << 34)	/* most bytes of a range */
#define UNM_SPAN_BINS	29		/* list i: extents of 2^i units and
					 * more, below 2^(i + 1) */

struct unm_span_unit;

/* An allocator. It is embedded in its owner, whose lock protects it. */
struct unm_span {
	uintptr_t base;			/* first address of the range */
	struct unm_span_unit *unit;	/* bookkeeping, one entry a unit */
	uint32_t units;			/* units in the range */
	uint32_t used;			/* units in blocks */
	uint32_t bins;			/* bit i: list i is not empty */
	uint32_t head[UNM_SPAN_BINS];	/* lists of free extents: first unit
					 * plus 1, 0: empty */
};

/* Make an allocator for a range that is all free. base: not 0, a multiple of
 * 64; bytes: not 0, a multiple of 64, up to UNM_SPAN_MAX. False if there is no
 * memory for the bookkeeping. */
bool unm_span_construct(struct unm_span *span, uintptr_t base, size_t bytes);
/* Free the bookkeeping; the blocks are gone with it. */
void unm_span_destruct(struct unm_span *span);

/* Allocate a block. bytes: 1 or more, rounded up to units; align: a power of
 * two, 64 or more. Returns its address, or 0 if no free extent is large enough.
 */
uintptr_t unm_span_alloc(struct unm_span *span, size_t bytes, size_t align);

/* Free the block that begins at addr and return its bytes. 0: no block begins
 * there, and nothing changed. */
size_t unm_span_free(struct unm_span *span, uintptr_t addr);

/* The first address of the block that contains addr, and the block's size in
 * *bytes. 0: addr is free or outside the range. Takes time in proportion to the
 * distance between the two addresses. */
uintptr_t unm_span_find(const struct unm_span *span, uintptr_t addr,
			size_t *bytes);

/*
 * The block that follows, in the order of addresses: addr is 0 for the first
 * block, else the end of the block before. Sets *bytes to its size. 0: there is
 * none. Takes time in proportion to the free extents between.
 */
uintptr_t unm_span_next(const struct unm_span *span, uintptr_t addr,
			size_t *bytes);

/* True if no block is allocated. */
static inline bool unm_span_empty(const struct unm_span *span)
{
	return span->used == 0;
}

#endif /* UNM_SPAN_H */
