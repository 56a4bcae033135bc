/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_mmu.h - the software MMU [D 2.2.5]: where in memory a page of the global
 * address space is, and whose it is. Pure.
 *
 * A hash map from page to entry: a look-up costs the same however many pages
 * there are, and so do, each entry, insertion and removal: the table grows and
 * shrinks by moving a bounded number of entries with every change. A run of
 * pages takes entries of up to 1 GiB: at most 2556 at its ragged ends, and one
 * for each GiB between them. One thread at a time.
 */
#ifndef GSAS_MMU_H
#define GSAS_MMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/gsas_pkt.h"

struct gsas_region;

#define GSAS_PAGES_MAX	(UINT64_C(1) << 36)	/* of a partition */

/* Pages are of 4 KiB, 1 MiB or 1 GiB; all numbers count the first. */
#define GSAS_PAGE_SIZES		3
#define GSAS_PAGE_SIZE_SHIFT	60
static const unsigned char gsas_page_shift[GSAS_PAGE_SIZES] = { 0, 8, 18 };

/* What the paper has in an entry: the physical page and its attributes. */
struct gsas_page {
	uint64_t key;			/* its number, in its size, and that in
					 * the bits from 60 up */
	uint8_t *memory;
	struct gsas_region *region;	/* owner and mode */
};

/* Where page number is: in that, perhaps larger one. */
static inline uint8_t *gsas_page_memory(const struct gsas_page *page,
					uint64_t number)
{
	unsigned shift = gsas_page_shift[page->key >> GSAS_PAGE_SIZE_SHIFT];

	return page->memory +
		(number & ((UINT64_C(1) << shift) - 1)) * GSAS_PAGE_BYTES;
}

struct gsas_mmu;

/* entries: to be ready for at once. 0, -FI_ENOMEM. */
int gsas_mmu_new(uint64_t entries, struct gsas_mmu **mmu);
void gsas_mmu_free(struct gsas_mmu *mmu);

/* Install pages number .. number + count - 1, none of which is there, at
 * consecutive memory, not NULL. 0, or -FI_ENOMEM and none is there: also for
 * more than GSAS_PAGES_MAX. */
int gsas_mmu_insert(struct gsas_mmu *mmu, uint64_t number, uint64_t count,
		    uint8_t *memory, struct gsas_region *region);

/* Remove pages that were installed together. */
void gsas_mmu_remove(struct gsas_mmu *mmu, uint64_t number, uint64_t count);

/* The entry that has a page, or NULL. Valid until the next insertion or
 * removal. */
const struct gsas_page *gsas_mmu_find(const struct gsas_mmu *mmu,
				      uint64_t number);

/* Entries that there are. */
uint64_t gsas_mmu_count(const struct gsas_mmu *mmu);

#endif /* GSAS_MMU_H */
