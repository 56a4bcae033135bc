/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_span.h - blocks of any size and alignment out of one range of addresses.
 *
 * Nothing of the range itself is read or written: it may be shared memory that
 * others write. What is kept is 12 bytes for each 64, of which only those are
 * touched where a block begins or ends. Free neighbours are one at once, so a
 * range from which all was freed is whole again. Finding room for a block of
 * ordinary alignment takes the time of one list of similar sizes, freeing is
 * constant. Not thread-safe.
 */
#ifndef UNM_SPAN_H
#define UNM_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNM_SPAN_UNIT	((size_t)64)	/* bytes; sizes are multiples */
#define UNM_SPAN_MAX	((size_t)1 << 34)	/* bytes of a span */
#define UNM_SPAN_BINS	29		/* of 2^i and more units, i from 0 */

struct unm_span_unit;

struct unm_span {
	uintptr_t base;			/* of the range */
	struct unm_span_unit *unit;
	uint32_t units;			/* in the range */
	uint32_t used;			/* of them, in blocks */
	uint32_t bins;			/* bit per list that is not empty */
	uint32_t head[UNM_SPAN_BINS];	/* lists of free extents */
};

/* base: not 0, a multiple of 64; bytes: the same, up to UNM_SPAN_MAX. false: no
 * memory to keep the books. */
bool unm_span_construct(struct unm_span *span, uintptr_t base, size_t bytes);
void unm_span_destruct(struct unm_span *span);

/* bytes: 1 or more; align: a power of two, 64 or more. 0: there is no room. */
uintptr_t unm_span_alloc(struct unm_span *span, size_t bytes, size_t align);

/* Gives the block back that begins there; returns its bytes. 0: none does. */
size_t unm_span_free(struct unm_span *span, uintptr_t addr);

/* Where the block begins that an address of the range lies in, and its bytes.
 * 0: it is free. Takes time with the distance. */
uintptr_t unm_span_find(const struct unm_span *span, uintptr_t addr,
			size_t *bytes);

static inline bool unm_span_empty(const struct unm_span *span)
{
	return span->used == 0;
}

#endif /* UNM_SPAN_H */
