/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_mmu.h - the software MMU [D 2.2.5]: where in memory a page of the global
 * address space is, and whose it is. Pure.
 *
 * A hash map from page to entry: a look-up costs the same however many pages
 * there are, and so do, each page, insertion and removal: the table grows and
 * shrinks by moving a bounded number of entries with every change. One thread
 * at a time.
 */
#ifndef GSAS_MMU_H
#define GSAS_MMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gsas_region;

/* What the paper has in an entry: the physical page and its attributes. */
struct gsas_page {
	uint64_t number;		/* address >> GSAS_PAGE_SHIFT */
	uint8_t *memory;
	struct gsas_region *region;	/* owner and mode */
};

struct gsas_mmu;

/* pages: to be ready for at once. 0, -FI_ENOMEM. */
int gsas_mmu_new(uint64_t pages, struct gsas_mmu **mmu);
void gsas_mmu_free(struct gsas_mmu *mmu);

/* Install pages number .. number + count - 1, none of which is there, at
 * consecutive memory, not NULL. 0, or -FI_ENOMEM and none is there. */
int gsas_mmu_insert(struct gsas_mmu *mmu, uint64_t number, uint64_t count,
		    uint8_t *memory, struct gsas_region *region);

/* Remove pages, all of which are there. */
void gsas_mmu_remove(struct gsas_mmu *mmu, uint64_t number, uint64_t count);

/* NULL: no such page. Valid until the next insertion or removal. */
const struct gsas_page *gsas_mmu_find(const struct gsas_mmu *mmu,
				      uint64_t number);

uint64_t gsas_mmu_count(const struct gsas_mmu *mmu);

#endif /* GSAS_MMU_H */
