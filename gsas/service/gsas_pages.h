/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_pages.h - the memory of a board's partition: who owns which pages, where
 * they are, what is left of whom. Knows no packet and no HAL; memory comes from
 * a table of functions.
 *
 *   user	has an account, on which all jobs of the user draw
 *   job	who owns pages: the processes that know a key. It stays while it
 *		has an interface or a page.
 *   region	one allocation, of one job, with one mode
 *   segment	memory for the regions of one job, mode and group, of which
 *		GSAS_ATTR_MAPPED tells whether it can be mapped. No memory goes
 *		from one region to another: freed pages are given back to the
 *		system, and a segment goes with its last region.
 *
 * A cursor goes round the partition and places segments in ascending order.
 * Freed addresses are in quarantine: the cursor has to pass half of the
 * partition before it places a segment there again. Until then the addresses
 * are refused with GSAS_E_FREED.
 *
 * All but gsas_region_fill() and gsas_memory's functions: one thread at a time.
 */
#ifndef GSAS_PAGES_H
#define GSAS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "service/gsas_mmu.h"
#include "common/gsas_pkt.h"

/* A piece of memory: zero when it is new. */
struct gsas_block {
	uint8_t *memory;
	uint64_t bytes;
	void *cookie;			/* the provider's */
};

/* Where memory comes from. Called by several threads. */
struct gsas_memory {
	/* mapped: others may map it by its key. 0, -FI_ENOMEM. */
	int (*alloc)(void *ctx, uint64_t bytes, bool mapped,
		     struct gsas_block *block);
	void (*free)(void *ctx, struct gsas_block *block);
	int (*key)(void *ctx, const struct gsas_block *block, uint64_t key[2]);
	void *ctx;
	/* Bytes of a block that can be mapped were given back to the system,
	 * and shall have memory again: few, as the caller serves meanwhile.
	 * false: there is none. NULL: they get memory when they are touched. */
	bool (*refill)(void *ctx, void *at, uint64_t bytes);
};

/* What all jobs of a user have together, or may have. */
struct gsas_account {
	uint64_t pages, regions;
	uint32_t jobs, groups;
	uint32_t mapped;		/* segments that can be mapped */
};

/* A user of the board, as long as there is a job or group of that user. The
 * number is from the HAL, so a client cannot have a second account. */
struct gsas_user {
	struct gsas_user *next;
	uint32_t uid;
	struct gsas_account has;	/* plans are among pages and regions */
};

struct gsas_job {
	struct gsas_job *next;
	uint64_t key[2];
	struct gsas_user *user;		/* keys of different users differ */
	uint32_t number;		/* from 1, never used again */
	uint32_t clients;		/* interfaces that joined */
	struct gsas_process *process;	/* that joined and may live still */
	uint32_t processes, prune_at;
	uint64_t regions;
};

/* A group: members know its name. */
struct gsas_group {
	struct gsas_group *next;
	uint64_t name[2];
	struct gsas_user *user;
	uint32_t number;
	uint64_t refs;			/* interfaces and regions */
};

struct gsas_segment;

struct gsas_region {
	uint64_t address, pages;
	uint64_t attr;			/* as allocated, and GSAS_ATTR_QUEUE */
	struct gsas_job *job;
	struct gsas_group *group;	/* NULL: none */
	struct gsas_segment *segment;
	void *queue;			/* the service's, if it is one */
};

struct gsas_pages;

struct gsas_pages_attr {
	uint32_t board;
	uint64_t max_pages;		/* of the board, 0: no limit */
	uint32_t max_jobs, max_groups, max_regions;	/* 0: a default */
	struct gsas_account max_user;	/* of each user, 0: no limit */
	/* Where addresses begin, 0: as low as can be; a multiple of
	 * GSAS_SEGMENT. By chance, so that one of an earlier service is known
	 * to be none of this one's. */
	uint64_t first;
	uint64_t end;			/* where addresses end, 0: with the
					 * partition; in GSAS_SEGMENTs */
	struct gsas_memory memory;
	/* Does a process hold that job? NULL: nobody knows. */
	bool (*held)(void *ctx, uint32_t uid, const uint64_t key[2]);
	void *held_ctx;
};

/* 0; -FI_ENOMEM, -FI_EINVAL: no such board. */
int gsas_pages_new(const struct gsas_pages_attr *attr, struct gsas_pages **p);
/* With all that is left, but for plans: they were added or dropped. */
void gsas_pages_free(struct gsas_pages *p);

/* ---- Jobs and groups ----------------------------------------------------- */

/* One more interface of that job. NULL: the table is full, or the user has all
 * jobs that a user may have. */
struct gsas_job *gsas_job_get(struct gsas_pages *p, uint32_t uid,
			      const uint64_t key[2]);
void gsas_job_put(struct gsas_pages *p, struct gsas_job *job);
/*
 * A process belongs to the job until it ends, whatever becomes of its
 * interfaces. fd becomes readable then, and is ours from now on; id is the same
 * for a process that is known. 0, -FI_ENOMEM.
 */
int gsas_job_process(struct gsas_job *job, uint64_t id, int fd);
/* Is there an interface of it, or a process that had one? */
bool gsas_job_present(struct gsas_job *job);
/* Or one that holds the job and has not joined here? If there is none the
 * regions of the job are orphans. */
bool gsas_job_lives(const struct gsas_pages *p, struct gsas_job *job);
void gsas_job_end_processes(struct gsas_job *job);	/* all its processes */
/* One more member of a group. NULL: as above. */
struct gsas_group *gsas_group_get(struct gsas_pages *p, uint32_t uid,
				  const uint64_t name[2]);
void gsas_group_put(struct gsas_pages *p, struct gsas_group *group);

/* ---- Allocations ---------------------------------------------------------
 *
 * In three steps, of which the second may be done by another thread while the
 * first goes on serving: gsas_region_plan() reserves pages and shares,
 * gsas_region_fill() gets memory if the plan says so (and only then takes
 * time), gsas_region_add() makes it reachable. gsas_region_cancel() undoes a
 * plan that was not added, filled or not: in the caller's time, so that what is
 * large is better added and freed.
 *
 * Plans may share a segment that is not filled: who comes first fills it.
 */
struct gsas_plan {
	struct gsas_region *region;	/* its address: once it is added */
	bool fill;			/* gsas_region_fill() has work to do */
};

/*
 * GSAS_OK, or an error and nothing is left of it: GSAS_E_ARGUMENT: no pages, or
 * more than a partition has; GSAS_E_QUOTA: max_user, or max_regions;
 * GSAS_E_MEMORY: max_pages, or too few addresses are left. Only pages of
 * regions count, and plans like regions. The attributes and the group, if any,
 * are the caller's to have checked.
 */
enum gsas_error gsas_region_plan(struct gsas_pages *p, struct gsas_job *job,
				 struct gsas_group *group, uint64_t pages,
				 uint64_t attr, struct gsas_plan *plan);
/* GSAS_OK, or GSAS_E_MEMORY: then, and when adding says so, drop it. */
enum gsas_error gsas_region_fill(const struct gsas_pages *p,
				 struct gsas_plan *plan);
enum gsas_error gsas_region_add(struct gsas_pages *p, struct gsas_plan *plan);
void gsas_region_cancel(struct gsas_pages *p, struct gsas_plan *plan);

/*
 * Make it unreachable and give its memory back. What takes long (a segment that
 * goes) is in *trash, for gsas_memory.free() by whatever thread.
 * trash->memory NULL: nothing is left to do.
 */
void gsas_region_free(struct gsas_pages *p, struct gsas_region *region,
		      struct gsas_block *trash);

/* The region that begins with the page of an address, or NULL. */
struct gsas_region *gsas_region_at(const struct gsas_pages *p,
				   uint64_t address);
/* The first that begins at an address or behind it, or NULL. */
struct gsas_region *gsas_region_from(const struct gsas_pages *p,
				     uint64_t address);

/* ---- Look-up ------------------------------------------------------------- */

/*
 * Where an address is, or NULL, and then why: GSAS_E_FREED, if it was once of a
 * region, or GSAS_E_ADDRESS. (Of a segment that is gone all is taken for freed,
 * its words and what it never handed out as well; and so is all that is not
 * allocated, once the cursor has been round the partition.)
 * From there to the end of its region memory is consecutive: *left bytes.
 */
uint8_t *gsas_pages_find(const struct gsas_pages *p, uint64_t address,
			 struct gsas_region **region, uint64_t *left,
			 enum gsas_error *error);

/* What is needed to map the segment of a region; key 0: it is not for that.
 * GSAS_OK or GSAS_E_MAPPED: there is no key. */
enum gsas_error gsas_region_map_info(const struct gsas_pages *p,
				     const struct gsas_region *region,
				     struct gsas_map_info *info);

/* Fills in what it knows: pages, pages_max, regions, segments, jobs, orphans;
 * plans are among them. */
void gsas_pages_stat(const struct gsas_pages *p, struct gsas_stat *stat);

#endif /* GSAS_PAGES_H */
