/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_segment.h - memory for regions of the same job, mode and group, and the
 * tree of a board's segments by address. Private to gsas_pages.c. A segment's
 * pages are assigned to regions in ascending order, each page once.
 */
#ifndef GSAS_SEGMENT_H
#define GSAS_SEGMENT_H

#include <pthread.h>

#include "service/gsas_mmu.h"
#include "service/gsas_region.h"

/* A region or plan in the list of its segment, in the order of addresses. */
struct gsas_node {
	struct gsas_region region;	/* first: gsas_pages.c casts the region
					 * to its node */
	struct gsas_node *prev, *next;
	bool added;			/* true: a region; false: a plan */
};

/* The regions of a segment have these in common. */
struct gsas_share {
	struct gsas_job *job;
	const struct gsas_group *group;
	uint64_t attr;			/* mode and GSAS_ATTR_MAPPED */
};

/* A segment. The thread of the service uses it; gsas_segment_fill() may run in
 * a worker thread, so the lock protects block until the segment has a base. */
struct gsas_segment {
	struct gsas_share share;
	struct gsas_segment *open_next;	/* in a bucket of gsas_pages.open */
	bool open;			/* in that list: further regions get
					 * their pages from this segment */

	struct gsas_segment *left, *right;	/* in gsas_pages.segments */
	uint64_t weight;		/* of the treap */

	pthread_mutex_t lock;
	struct gsas_block block;	/* memory NULL: not filled yet */
	uint64_t base;			/* address; 0: none of the plans was
					 * added yet, and their addresses are
					 * offsets in the segment */
	uint64_t bytes;
	uint64_t first;			/* pages of words at the beginning */
	uint64_t used;			/* pages assigned, and first */
	uint64_t pages;			/* all pages */
	struct gsas_node *head, *tail;	/* regions and plans; the segment is
					 * freed after the last */
	bool gone;			/* the last region was freed: no memory,
					 * the addresses are in quarantine */
};

/* Make a segment with so many pages for regions, at least. NULL: no memory. */
struct gsas_segment *gsas_segment_new(const struct gsas_share *share,
				      uint64_t pages);

/* Free a segment, but not the memory of its block. */
void gsas_segment_free(struct gsas_segment *segment);

/* Bytes of address space that a segment for so many pages needs. */
uint64_t gsas_segment_bytes(uint64_t pages, bool mapped);

/* Pages that are not assigned yet. */
static inline uint64_t gsas_segment_room(const struct gsas_segment *segment)
{
	return segment->pages - segment->used;
}

/* Assign the next pages to a region or plan. */
void gsas_segment_put(struct gsas_segment *segment, struct gsas_node *node);
/* Remove a region or plan. Its pages are not assigned again. */
void gsas_segment_take(struct gsas_segment *segment, struct gsas_node *node);

/* Allocate the memory of a segment if it has none. Any thread may call it.
 * GSAS_OK, GSAS_E_MEMORY. */
enum gsas_error gsas_segment_fill(struct gsas_segment *segment,
				  const struct gsas_memory *memory);

/* Set the address of a segment and of its plans. false: it has no memory. */
bool gsas_segment_place(struct gsas_segment *segment, uint64_t base);

/* The memory of a region. */
uint8_t *gsas_segment_memory(const struct gsas_segment *segment,
			     const struct gsas_region *region);

/* The value of a region's page words: the number of its first page in the
 * segment. It is not 0, because the pages of words come first. */
static inline uint32_t gsas_segment_word(const struct gsas_segment *segment,
					 const struct gsas_region *region)
{
	return (uint32_t)((region->address - segment->base) / GSAS_PAGE_BYTES);
}

/* Store the words of a region's pages: gsas_segment_word(); 0: the region is
 * freed. Clients that have mapped the segment read them. No effect if the
 * segment cannot be mapped. */
void gsas_segment_publish(struct gsas_segment *segment,
			  const struct gsas_region *region, uint32_t word);

/* Return the memory of a region to the system; it is zero afterwards. */
void gsas_segment_punch(struct gsas_segment *segment,
			const struct gsas_region *region);

/* ---- Segments by address ------------------------------------------------ */

/* Insert a segment, whose addresses no other segment of the tree has. */
void gsas_segment_insert(struct gsas_segment **root,
			 struct gsas_segment *segment);
void gsas_segment_remove(struct gsas_segment **root,
			 struct gsas_segment *segment);

/* The first segment that ends behind an address, or NULL. */
struct gsas_segment *gsas_segment_from(struct gsas_segment *root,
				       uint64_t address);

#endif /* GSAS_SEGMENT_H */
