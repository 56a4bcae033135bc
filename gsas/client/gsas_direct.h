/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_direct.h - the short path to memory that this thread has mapped: one
 * entry of a table, then the page's word in the segment. Inlined into each
 * operation. gsas_window.c finds what is not in the table. Private to libgsas.
 *
 * Each thread has a table, which no other thread uses.
 */
#ifndef GSAS_DIRECT_H
#define GSAS_DIRECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/gsas_pkt.h"

#define GSAS_HOT	1024	/* slots, for 1 GiB of memory in all */

/* A slot of the table of the short path: one granule, that is GSAS_SEGMENT
 * bytes, of a mapped segment. All zero: the slot is empty. */
struct gsas_hot_segment {
	uint64_t granule;	/* (address >> GSAS_SEGMENT_SHIFT) + 1 */
	uintptr_t delta;	/* an address + delta is where it is mapped */
	uintptr_t words;	/* words + 4 * (address >> GSAS_PAGE_SHIFT) is
				 * where the word of its page is mapped */
	uint64_t pad;
};

/*
 * The table of the short path. The kernel zeroes its pages in a forked child
 * (MADV_WIPEONFORK), because the child has neither the mappings nor the
 * interface of its parent.
 */
struct gsas_hot {
	struct gsas_hot_segment segment[GSAS_HOT];
	bool live;		/* false: in a forked child */
};

/* The table of the calling thread; an empty one before its first call, and
 * where the kernel cannot wipe it. */
extern _Thread_local struct gsas_hot *gsas_hot
	__attribute__((tls_model("initial-exec")));

/* Make a table for the calling thread. *wiped: the kernel zeroes it in a forked
 * child; qemu-user does not. NULL: no memory. */
struct gsas_hot *gsas_hot_new(bool *wiped);
/* Free a table; NULL: nothing to do. */
void gsas_hot_free(struct gsas_hot *hot);
/* Make hot the table of the calling thread; NULL: an empty table. */
void gsas_hot_use(struct gsas_hot *hot);
/* Enter the granule of an address, of a segment that begins at address base and
 * is mapped at memory. */
void gsas_hot_fill(struct gsas_hot *hot, uint64_t address, uint64_t base,
		   const uint8_t *memory);
/* Empty all slots. */
void gsas_hot_clear(struct gsas_hot *hot);

/* Load the word of a page: 0 if the page is free; else the same number for all
 * pages of its allocation, and different ones for different allocations of the
 * segment. at: address of the word in this process. */
static inline uint32_t gsas_direct_load(uintptr_t at)
{
	/* pairs with the release in gsas_segment_publish(): the page was
	 * zeroed before */
	return atomic_load_explicit((const _Atomic uint32_t *)at,
				    memory_order_acquire);
}

/* As gsas_direct_load(), for page number page of a segment mapped at memory */
static inline uint32_t gsas_direct_word(const uint8_t *memory, uint64_t page)
{
	return gsas_direct_load((uintptr_t)memory + page * sizeof(uint32_t));
}

/* The slot of a granule (address >> GSAS_SEGMENT_SHIFT). Bits 28 and up are the
 * board, so the same offsets on different boards use different slots. */
static inline struct gsas_hot_segment *gsas_hot_slot(struct gsas_hot *hot,
						     uint64_t granule)
{
	return &hot->segment[(granule + (granule >> 28)) % GSAS_HOT];
}

/* Where an address is mapped. NULL: not in the table, or not allocated. */
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
