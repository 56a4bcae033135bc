/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_pages.h - the memory of a board's partition: users and their accounts,
 * jobs, groups, regions, and the look-up of addresses. It uses neither packets
 * nor the HAL; memory comes from a table of functions.
 *
 *   user	has an account, on which all jobs of the user draw
 *   job	the processes that know a key; owns regions. It exists while it
 *		has an interface or a region.
 *   region	one allocation, of one job, with one mode
 *   segment	memory for the regions of one job, mode and group; either all of
 *		it can be mapped (GSAS_ATTR_MAPPED) or none. No memory is used
 *		for a second region: freed pages are returned to the system, and
 *		the segment is freed with its last region.
 *
 * A cursor passes through the partition, from its end back to its beginning,
 * and places segments at ascending addresses. Freed addresses are in
 * quarantine: the cursor has to pass half of the partition before it places a
 * segment there again. Until then they are refused with GSAS_E_FREED.
 *
 * One thread at a time, except gsas_region_fill() and the functions of struct
 * gsas_memory.
 */
#ifndef GSAS_PAGES_H
#define GSAS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gsas_pkt.h"
#include "service/gsas_mmu.h"
#include "service/gsas_region.h"

struct gsas_census;
struct gsas_pages;

struct gsas_pages_attr {
	uint32_t board;
	uint64_t max_pages;		/* of the board, 0: no limit */
	uint32_t max_jobs, max_groups, max_regions;	/* 0: a default */
	struct gsas_account max_user;	/* of each user, 0: no limit */
	/* Offset where the cursor begins, a multiple of GSAS_SEGMENT; 0: the
	 * lowest. It should be random, so that an address of an earlier service
	 * is not valid in this one. */
	uint64_t first;
	uint64_t end;			/* offset where addresses end, a
					 * multiple of GSAS_SEGMENT; 0: end of
					 * the partition */
	struct gsas_memory memory;
	/* Does a process hold the job (gsas_hold.h)? NULL: unknown, so none. */
	bool (*held)(void *ctx, uint32_t uid, const uint64_t key[2]);
	void *held_ctx;
};

/* 0; -FI_ENOMEM, -FI_EINVAL: no such board. */
int gsas_pages_new(const struct gsas_pages_attr *attr, struct gsas_pages **p);
/* Free all users, jobs, groups and regions. All plans must have been added or
 * canceled. */
void gsas_pages_free(struct gsas_pages *p);

/* ---- Jobs and groups ----------------------------------------------------- */

/* Add an interface to a job, which is made if there is none with this key.
 * NULL: no memory, the table is full, or the user's limit is reached. */
struct gsas_job *gsas_job_get(struct gsas_pages *p, uint32_t uid,
			      const uint64_t key[2]);
/* Remove an interface from a job. */
void gsas_job_put(struct gsas_pages *p, struct gsas_job *job);
/* To find out which jobs live (gsas_presence.h). */
struct gsas_census *gsas_pages_census(struct gsas_pages *p);
/* Add a reference to a group, which is made if there is none of this name.
 * NULL: as gsas_job_get(). */
struct gsas_group *gsas_group_get(struct gsas_pages *p, uint32_t uid,
				  const uint64_t name[2]);
void gsas_group_put(struct gsas_pages *p, struct gsas_group *group);

/* ---- Allocations ---------------------------------------------------------
 *
 * An allocation takes three steps. gsas_region_plan() charges the pages to the
 * account and reserves address space. gsas_region_fill() allocates memory, if
 * plan->fill says so; only this step takes long, so a worker thread may do it
 * while the thread of the service continues. gsas_region_add() assigns the
 * address, so that look-ups find the region. gsas_region_cancel() undoes a plan
 * that was not added, filled or not; it frees the memory in the calling thread,
 * so it is faster to add a large region and free it.
 *
 * Several plans may share a segment without memory. The first one that is
 * filled allocates it.
 */
struct gsas_plan {
	struct gsas_region *region;	/* has an address after the add */
	bool fill;			/* call gsas_region_fill() */
};

/*
 * Begin an allocation. The caller has checked attributes and group (or NULL).
 * GSAS_OK; GSAS_E_ARGUMENT: no pages, or more than a partition has;
 * GSAS_E_QUOTA: max_user or max_regions is reached; GSAS_E_MEMORY: max_pages is
 * reached, or too few addresses are left. The limits count the pages of regions
 * and plans, without what segments need beside them.
 */
enum gsas_error gsas_region_plan(struct gsas_pages *p, struct gsas_job *job,
				 struct gsas_group *group, uint64_t pages,
				 uint64_t attr, struct gsas_plan *plan);
/* GSAS_OK, or GSAS_E_MEMORY. After an error, here or of gsas_region_add(), the
 * caller has to cancel the plan. */
enum gsas_error gsas_region_fill(const struct gsas_pages *p,
				 struct gsas_plan *plan);
enum gsas_error gsas_region_add(struct gsas_pages *p, struct gsas_plan *plan);
void gsas_region_cancel(struct gsas_pages *p, struct gsas_plan *plan);

/*
 * Free a region: look-ups do not find it any more, and its memory is returned
 * to the system. If it was the last of its segment, *freed is the memory of the
 * segment, which any thread frees by gsas_memory.free(), as that takes long.
 * freed->memory NULL: nothing is left to be freed.
 */
void gsas_region_free(struct gsas_pages *p, struct gsas_region *region,
		      struct gsas_block *freed);

/* The region that begins with the page of an address, or NULL. */
struct gsas_region *gsas_region_at(const struct gsas_pages *p,
				   uint64_t address);
/* The first region that begins at an address or behind it, or NULL. */
struct gsas_region *gsas_region_from(const struct gsas_pages *p,
				     uint64_t address);

/* ---- Look-up ------------------------------------------------------------- */

/*
 * The memory of an address; *left: bytes from there to the end of the region,
 * which are consecutive. NULL: not allocated, and *error says why: GSAS_E_FREED
 * if the address was of a region, else GSAS_E_ADDRESS. GSAS_E_FREED is also the
 * error of any address of a removed segment, and of all addresses that are not
 * allocated once the cursor has passed the end of the partition.
 */
uint8_t *gsas_pages_find(const struct gsas_pages *p, uint64_t address,
			 struct gsas_region **region, uint64_t *left,
			 enum gsas_error *error);

/* How to map the segment of a region; key 0: it cannot be mapped. GSAS_OK;
 * GSAS_E_MAPPED: no key can be made. */
enum gsas_error gsas_region_map_info(const struct gsas_pages *p,
				     const struct gsas_region *region,
				     struct gsas_map_info *info);

/* Set pages, pages_max, regions, segments, jobs and orphans of *stat. Plans
 * count like regions. It is a request of gsas_census_begin(). */
void gsas_pages_stat(struct gsas_pages *p, struct gsas_stat *stat);

#endif /* GSAS_PAGES_H */
