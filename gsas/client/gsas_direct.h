/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_direct.h - the shortest path to memory that this thread has mapped: one
 * look at a table, one at the page's word in the segment. Private to libgsas.
 */
#ifndef GSAS_DIRECT_H
#define GSAS_DIRECT_H

#include <stdatomic.h>

#include "client/gsas_thread.h"
#include "common/gsas_pkt.h"

/* The word of a page of a segment: 0 unless it is allocated, the same in all
 * pages of an allocation, and another in all others of the segment. */
static inline uint32_t gsas_direct_load(uintptr_t at)
{
	/* pairs with the release in gsas_segment_publish(): the page is zero */
	return atomic_load_explicit((const _Atomic uint32_t *)at,
				    memory_order_acquire);
}

static inline uint32_t gsas_direct_word(const uint8_t *memory, uint64_t page)
{
	return gsas_direct_load((uintptr_t)memory + page * sizeof(uint32_t));
}

/* boards differ in what is above 2^28 granules */
static inline struct gsas_hot_segment *gsas_hot_slot(struct gsas_hot *hot,
						     uint64_t granule)
{
	return &hot->segment[(granule + (granule >> 28)) % GSAS_HOT];
}

/* Where an address is, or NULL: not known, or nothing is allocated there. */
static inline void *gsas_direct(uint64_t address)
{
	uint64_t granule = address >> GSAS_SEGMENT_SHIFT;
	const struct gsas_hot_segment *hot = gsas_hot_slot(gsas_hot, granule);

	if (__builtin_expect(hot->granule != granule + 1 ||
			     gsas_direct_load(hot->words + sizeof(uint32_t) *
				(address >> GSAS_PAGE_SHIFT)) == 0, 0))
		return NULL;
	return (void *)((uintptr_t)address + hot->delta);
}

#endif /* GSAS_DIRECT_H */
