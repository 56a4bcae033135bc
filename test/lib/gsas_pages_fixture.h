/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_pages_fixture.h - the pages of one board and one job, for tests of
 * service/gsas_pages.h; the memory is that of gsas_memory_fixture.h */
#ifndef GSAS_PAGES_FIXTURE_H
#define GSAS_PAGES_FIXTURE_H

#include "lib/gsas_memory_fixture.h"

#define BOARD		2
#define PAGE		GSAS_PAGE_BYTES
#define MAPPED		GSAS_ATTR_MAPPED

/* All three are created by board() and released by board_end(). */
static struct gsas_mem g_mem;
static struct gsas_pages *g_p;
static struct gsas_job *g_job;

/* The job of a user with this key, which is created if there is none. */
static inline struct gsas_job *job_of(uint32_t uid, uint64_t key)
{
	const uint64_t k[2] = { key, ~key };
	struct gsas_job *job = gsas_job_get(g_p, uid, k);

	assert_non_null(job);
	return job;
}

static inline struct gsas_job *job_get(uint64_t key)
{
	return job_of(1000, key);
}

/* Create the pages of the board with these limits (NULL: none), and job 1. */
static inline void board(const struct gsas_pages_attr *limits)
{
	struct gsas_pages_attr attr = { 0 };

	if (limits != NULL)
		attr = *limits;
	memset(&g_mem, 0, sizeof(g_mem));
	attr.board = BOARD;
	attr.memory = gsas_mem(&g_mem);
	assert_int_equal(gsas_pages_new(&attr, &g_p), 0);
	g_job = job_get(1);
}

static inline struct gsas_stat stat_of(void)
{
	struct gsas_stat stat = { 0 };

	gsas_pages_stat(g_p, &stat);
	return stat;
}

/* Free the pages with all regions and jobs, and check that all memory was
 * freed. */
static inline void board_end(void)
{
	gsas_pages_free(g_p);
	assert_int_equal(g_mem.blocks, 0);
	assert_int_equal(g_mem.bytes, 0);
}

/* Allocate a region of this many pages. */
static inline struct gsas_region *alloc(struct gsas_job *job, uint64_t pages,
				 uint64_t attr)
{
	struct gsas_plan plan;

	assert_int_equal(gsas_region_plan(g_p, job, NULL, pages, attr, &plan),
			 GSAS_OK);
	assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_OK);
	assert_int_equal(gsas_region_add(g_p, &plan), GSAS_OK);
	return plan.region;
}

/* Free a region. Returns whether its segment was freed with it. */
static inline bool release(struct gsas_region *region)
{
	struct gsas_block trash;

	gsas_region_free(g_p, region, &trash);
	if (trash.memory == NULL)
		return false;
	gsas_mem_free(&g_mem, &trash);
	return true;
}

/* The memory at an address, which must be allocated. */
static inline uint8_t *at(uint64_t address)
{
	struct gsas_region *region;
	enum gsas_error error;
	uint64_t left;
	uint8_t *memory;

	memory = gsas_pages_find(g_p, address, &region, &left, &error);
	assert_non_null(memory);
	assert_true(address >= region->address);
	assert_int_equal(left, region->address + region->pages * PAGE -
			 address);
	return memory;
}

/* The error of an address that is not allocated. */
static inline enum gsas_error why(uint64_t address)
{
	struct gsas_region *region = NULL;
	enum gsas_error error = GSAS_OK;
	uint64_t left = 77;

	assert_null(gsas_pages_find(g_p, address, &region, &left, &error));
	assert_null(region);
	assert_int_equal(left, 77);
	return error;
}

static inline struct gsas_map_info info_of(const struct gsas_region *region)
{
	struct gsas_map_info info;

	assert_int_equal(gsas_region_map_info(g_p, region, &info), GSAS_OK);
	return info;
}

/* The page word of an address, read through a second mapping of the segment, as
 * a client reads it. */
static inline uint32_t word_of(const struct gsas_map_info *info,
			       uint64_t address)
{
	uint8_t *map = mmap(NULL, info->bytes, PROT_READ, MAP_SHARED,
				   (int)info->key[0], 0);
	uint32_t word;

	assert_ptr_not_equal(map, MAP_FAILED);
	memcpy(&word, map + gsas_page_word(info->base, address), sizeof(word));
	munmap(map, info->bytes);
	return word;
}

#endif /* GSAS_PAGES_FIXTURE_H */
