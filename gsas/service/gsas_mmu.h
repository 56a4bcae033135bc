/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_mmu.h - the software MMU [D 2.2.5]: the map from a page of the global
 * address space to its memory and its region. Pure.
 *
 * It is a hash map. The cost of a look-up does not depend on the number of
 * pages, nor does the cost of inserting or removing an entry: each change moves
 * a bounded number of entries when the table grows or shrinks. A run of pages
 * takes one entry for each whole GiB and at most 2556 entries of 4 KiB or 1 MiB
 * at its two ends. One thread at a time.
 */
#ifndef GSAS_MMU_H
#define GSAS_MMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/gsas_pkt.h"

struct gsas_region;

#define GSAS_PAGES_MAX	(UINT64_C(1) << 36)	/* pages of a partition */

/* Pages are of 4 KiB, 1 MiB or 1 GiB. Page numbers and counts are in pages of
 * 4 KiB. */
#define GSAS_PAGE_SIZES		3
#define GSAS_PAGE_SIZE_SHIFT	60
static const unsigned char gsas_page_shift[GSAS_PAGE_SIZES] = { 0, 8, 18 };

/* An entry; as in the paper the physical page and its attributes. */
struct gsas_page {
	uint64_t key;			/* number of the page, in pages of its
					 * size; bits from 60 up: the size */
	uint8_t *memory;
	struct gsas_region *region;	/* owner and mode */
};

/* The memory of a page of 4 KiB, which is in the page of an entry. */
static inline uint8_t *gsas_page_memory(const struct gsas_page *page,
					uint64_t number)
{
	unsigned shift = gsas_page_shift[page->key >> GSAS_PAGE_SIZE_SHIFT];

	return page->memory +
		(number & ((UINT64_C(1) << shift) - 1)) * GSAS_PAGE_BYTES;
}

struct gsas_mmu;

/* Make a map with room for so many entries. 0, -FI_ENOMEM. */
int gsas_mmu_new(uint64_t entries, struct gsas_mmu **mmu);
void gsas_mmu_free(struct gsas_mmu *mmu);

/* Insert pages number .. number + count - 1, none of which is in the map, with
 * consecutive memory, not NULL. 0; -FI_ENOMEM, also if count is above
 * GSAS_PAGES_MAX: no page was inserted. */
int gsas_mmu_insert(struct gsas_mmu *mmu, uint64_t number, uint64_t count,
		    uint8_t *memory, struct gsas_region *region);

/* Remove all pages that one gsas_mmu_insert() inserted. */
void gsas_mmu_remove(struct gsas_mmu *mmu, uint64_t number, uint64_t count);

/* The entry with a page, or NULL. Valid until the next insertion or removal. */
const struct gsas_page *gsas_mmu_find(const struct gsas_mmu *mmu,
				      uint64_t number);

/* Number of entries. */
uint64_t gsas_mmu_count(const struct gsas_mmu *mmu);

#endif /* GSAS_MMU_H */
