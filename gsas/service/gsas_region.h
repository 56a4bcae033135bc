/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_region.h - the objects of a board's memory: users, jobs, groups,
 * regions, and where memory comes from. Structures only; gsas_pages.h explains
 * them.
 */
#ifndef GSAS_REGION_H
#define GSAS_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "util/unm_list.h"

/* A block of memory, zero when it is new. */
struct gsas_block {
	uint8_t *memory;
	uint64_t bytes;
	void *cookie;			/* of gsas_memory.alloc() */
};

/* The source of memory. Several threads call these functions. */
struct gsas_memory {
	/* mapped: other processes can map it by its key. 0, -FI_ENOMEM. */
	int (*alloc)(void *ctx, uint64_t bytes, bool mapped,
		     struct gsas_block *block);
	void (*free)(void *ctx, struct gsas_block *block);
	/* The key of a mapped block. 0, or an error. */
	int (*key)(void *ctx, const struct gsas_block *block, uint64_t key[2]);
	void *ctx;
	/* Get memory for bytes of a mapped block whose memory was returned to
	 * the system; only a few bytes, because the thread of the service
	 * calls it. false: there is no memory. NULL: they get it at first
	 * use. */
	bool (*refill)(void *ctx, void *at, uint64_t bytes);
};

/* Numbers of things that all jobs of a user have together, or their limits. */
struct gsas_account {
	uint64_t pages, regions;
	uint32_t jobs, groups;
	uint32_t mapped;		/* segments that can be mapped */
};

/* A user of the board, while the user has a job or a group. The HAL vouches for
 * the uid, so a client cannot have a second account. */
struct gsas_user {
	struct gsas_user *next;
	uint32_t uid;
	struct gsas_account has;	/* pages and regions include plans */
};

struct gsas_job {
	struct gsas_job *next;		/* in a bucket of gsas_pages.job */
	uint64_t key[2];
	struct gsas_user *user;		/* the same key of another user is
					 * another job */
	uint32_t number;		/* from 1, never used again */
	uint32_t clients;		/* interfaces that joined */
	struct unm_list process;	/* list of processes that joined and
					 * may still live */
	uint32_t processes;		/* their number */
	uint64_t regions;		/* with plans */
	struct gsas_label *labels;	/* list of names of regions */
	uint64_t checked;		/* gsas_census.request that last checked
					 * whether the job is held; 0: none */
	bool unheld;			/* the result: no process holds it */
};

/* A group of a user. A client that knows the name is a member. */
struct gsas_group {
	struct gsas_group *next;	/* in a bucket of gsas_pages.group */
	uint64_t name[2];
	struct gsas_user *user;
	uint32_t number;		/* from 1, never used again */
	uint64_t refs;			/* interfaces and regions */
};

struct gsas_segment;

/* An allocation, from gsas_region_add() to gsas_region_free(); before, it is
 * part of a plan. */
struct gsas_region {
	uint64_t address, pages;
	uint64_t attr;			/* of ALLOC, and GSAS_ATTR_QUEUE */
	struct gsas_job *job;
	struct gsas_group *group;	/* NULL: none */
	struct gsas_segment *segment;
	void *queue;			/* struct served_queue, or NULL */
	struct unm_list owned;		/* GSAS_ATTR_OWNED: in the list of its
					 * client, or of ended clients */
};

#endif /* GSAS_REGION_H */
