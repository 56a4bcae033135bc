/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_segment.h - memory for regions of the same job, mode and group, private
 * to gsas_pages.c: its pages are handed out one after the other, none twice.
 */
#ifndef GSAS_SEGMENT_H
#define GSAS_SEGMENT_H

#include <pthread.h>

#include "service/gsas_pages.h"

/* A region and its neighbours in the segment, by address. */
struct gsas_node {
	struct gsas_region region;	/* first: one is the other */
	struct gsas_node *prev, *next;
	bool added;			/* else it is a plan */
};

/* Whose regions a segment is for. */
struct gsas_share {
	struct gsas_job *job;
	const struct gsas_group *group;
	uint64_t attr;			/* mode and GSAS_ATTR_MAPPED */
};

struct gsas_segment {
	struct gsas_share share;
	struct gsas_segment *open_next;	/* of those with room for others */
	bool open;

	struct gsas_segment *left, *right;	/* by address */
	uint64_t weight;

	pthread_mutex_t lock;		/* of block, until there is a base */
	struct gsas_block block;	/* memory NULL: not filled yet */
	uint64_t base;			/* 0: none of its plans was added yet;
					 * their addresses are offsets */
	uint64_t bytes;
	uint64_t first, used, pages;	/* first that is not words, first that
					 * is not handed out, all */
	struct gsas_node *head, *tail;	/* regions and plans: it lives as long
					 * as there are any */
	bool gone;			/* its last region was freed: it only
					 * keeps its addresses from use */
};

/* One that has place for so many pages. NULL: no memory. */
struct gsas_segment *gsas_segment_new(const struct gsas_share *share,
				      uint64_t pages);

/* Its memory is left to the caller. */
void gsas_segment_free(struct gsas_segment *segment);

/* Bytes of address space it needs. */
uint64_t gsas_segment_bytes(uint64_t pages, bool mapped);

static inline uint64_t gsas_segment_room(const struct gsas_segment *segment)
{
	return segment->pages - segment->used;
}

/* The next pages are this region's; and no longer, but no others' either. */
void gsas_segment_put(struct gsas_segment *segment, struct gsas_node *node);
void gsas_segment_take(struct gsas_segment *segment, struct gsas_node *node);

/* Get memory, once. By any thread. GSAS_OK, GSAS_E_MEMORY. */
enum gsas_error gsas_segment_fill(struct gsas_segment *segment,
				  const struct gsas_memory *memory);

/* It has memory, and from now on this address. false: it has no memory. */
bool gsas_segment_place(struct gsas_segment *segment, uint64_t base);

/* Where in memory a region is. */
uint8_t *gsas_segment_memory(const struct gsas_segment *segment,
			     const struct gsas_region *region);

/* What the words of its pages are while it is there: the number of its first
 * page, which is not 0, as the words come before it. */
static inline uint32_t gsas_segment_word(const struct gsas_segment *segment,
					 const struct gsas_region *region)
{
	return (uint32_t)((region->address - segment->base) / GSAS_PAGE_BYTES);
}

/* Tell those who have it mapped whether the pages of a region are there. */
void gsas_segment_publish(struct gsas_segment *segment,
			  const struct gsas_region *region, uint32_t word);

/* Give the memory of a region back to the system. */
void gsas_segment_punch(struct gsas_segment *segment,
			const struct gsas_region *region);

/* ---- Segments by address ------------------------------------------------ */

/* base: apart from all others */
void gsas_segment_insert(struct gsas_segment **root,
			 struct gsas_segment *segment);
void gsas_segment_remove(struct gsas_segment **root,
			 struct gsas_segment *segment);

/* The first that ends behind an address, or NULL. */
struct gsas_segment *gsas_segment_from(struct gsas_segment *root,
				       uint64_t address);

#endif /* GSAS_SEGMENT_H */
