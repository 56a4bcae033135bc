/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_pages.c - users, jobs, groups and their regions: limits, addresses,
 * look-up. gsas_segment.c has the memory that regions share, gsas_mmu.c the map
 * from page to memory, gsas_presence.c the processes of jobs.
 */
#include <stdlib.h>
#include <sys/random.h>

#include <rdma/fi_errno.h>

#include "service/gsas_label.h"
#include "service/gsas_pages.h"
#include "service/gsas_presence.h"
#include "service/gsas_segment.h"

#define JOBS_MAX	65536		/* defaults of gsas_pages_attr */
#define GROUPS_MAX	65536
#define REGIONS_MAX	(1 << 22)
#define BUCKETS		65536		/* of each table */
#define USER_BUCKETS	256

_Static_assert(GSAS_PAGES_MAX << GSAS_PAGE_SHIFT >> GSAS_PART_SHIFT == 1,
	       "a partition");

struct gsas_pages {
	struct gsas_pages_attr attr;
	struct gsas_mmu *mmu;
	struct gsas_segment *segments;	/* tree by address; not the segments
					 * without an address yet */
	uint64_t next;			/* the cursor: offset where the search
					 * for a segment's place begins */
	bool round;			/* the cursor has passed the end */
	uint64_t placed;		/* bytes of segments with an address,
					 * without those that are gone */
	uint64_t reserved;		/* bytes of segments without address */
	uint64_t seed;			/* of hashes: clients choose keys, but
					 * cannot choose buckets */
	uint32_t jobs, groups;		/* their number */
	uint32_t job_number, group_number;	/* last given */
	uint64_t pages, regions, nsegments;	/* their number, with plans */
	struct gsas_census census;	/* what a request knows of jobs */
	struct gsas_user *user[USER_BUCKETS];
	struct gsas_job *job[BUCKETS];
	struct gsas_group *group[BUCKETS];
	struct gsas_segment *open[BUCKETS];	/* see gsas_open_add() */
};

static uint64_t gsas_mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
	return h ^ h >> 31;
}

static uint64_t gsas_bucket(const struct gsas_pages *p, uint64_t a, uint64_t b,
			    uint64_t c)
{
	return gsas_mix(gsas_mix(gsas_mix(p->seed ^ a) ^ b) ^ c) % BUCKETS;
}

int gsas_pages_new(const struct gsas_pages_attr *attr, struct gsas_pages **pp)
{
	struct gsas_pages *p;

	if (attr->board >= UINT16_MAX)
		return -FI_EINVAL;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -FI_ENOMEM;
	if (gsas_mmu_new(0, &p->mmu)) {
		free(p);
		return -FI_ENOMEM;
	}
	p->attr = *attr;
	if (p->attr.max_jobs == 0)
		p->attr.max_jobs = JOBS_MAX;
	if (p->attr.max_groups == 0)
		p->attr.max_groups = GROUPS_MAX;
	if (p->attr.max_regions == 0)
		p->attr.max_regions = REGIONS_MAX;
	/* without entropy, early after boot, the seed is 0 */
	(void)!getrandom(&p->seed, sizeof(p->seed), GRND_NONBLOCK);
	if (p->attr.first < GSAS_SEGMENT)
		p->attr.first = GSAS_SEGMENT;	/* keep small offsets invalid */
	if (p->attr.end == 0)
		p->attr.end = UINT64_C(1) << GSAS_PART_SHIFT;
	p->next = p->attr.first;
	p->census.held = attr->held;
	p->census.held_ctx = attr->held_ctx;
	unm_list_init(&p->census.processes);
	*pp = p;
	return 0;
}

static void gsas_pages_free_segments(struct gsas_pages *p)
{
	struct gsas_segment *segment;
	struct gsas_node *node;

	while ((segment = p->segments) != NULL) {
		gsas_segment_remove(&p->segments, segment);
		while ((node = segment->head) != NULL) {
			gsas_segment_take(segment, node);
			free(node);
		}
		if (!segment->gone)
			p->attr.memory.free(p->attr.memory.ctx,
					    &segment->block);
		gsas_segment_free(segment);
	}
}

static void gsas_users_free(struct gsas_pages *p)
{
	struct gsas_user *user;

	for (uint32_t i = 0; i < USER_BUCKETS; i++)
		while ((user = p->user[i]) != NULL) {
			p->user[i] = user->next;
			free(user);
		}
}

void gsas_pages_free(struct gsas_pages *p)
{
	struct gsas_job *job;
	struct gsas_group *group;

	if (p == NULL)
		return;
	gsas_pages_free_segments(p);
	for (uint32_t i = 0; i < BUCKETS; i++) {
		while ((job = p->job[i]) != NULL) {
			p->job[i] = job->next;
			gsas_job_end_processes(job);
			gsas_label_free_all(job);
			free(job);
		}
		while ((group = p->group[i]) != NULL) {
			p->group[i] = group->next;
			free(group);
		}
	}
	gsas_users_free(p);
	gsas_mmu_free(p->mmu);
	free(p);
}

struct gsas_census *gsas_pages_census(struct gsas_pages *p)
{
	return &p->census;
}

/* Number of regions of jobs of which no process lives. */
static uint64_t gsas_orphans(struct gsas_pages *p)
{
	uint64_t count = 0;

	gsas_census_begin(&p->census);
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct gsas_job *job = p->job[i]; job != NULL;
		     job = job->next)
			if (!gsas_job_lives(&p->census, job))
				count += job->regions;
	return count;
}

void gsas_pages_stat(struct gsas_pages *p, struct gsas_stat *stat)
{
	stat->pages = p->pages;
	stat->pages_max = p->attr.max_pages;
	stat->regions = p->regions;
	stat->segments = p->nsegments;
	stat->jobs = p->jobs;
	stat->orphans = gsas_orphans(p);
}

/* ---- Users -------------------------------------------------------------- */

/* Is used + more above max? max 0: no limit. used is never above max. */
static bool gsas_above(uint64_t used, uint64_t more, uint64_t max)
{
	return max != 0 && more > max - used;
}

/* The user with a uid, made if there is none. NULL: no memory. If the caller
 * adds no job or group it has to call gsas_user_release(). */
static struct gsas_user *gsas_user_get(struct gsas_pages *p, uint32_t uid)
{
	struct gsas_user **head = &p->user[uid % USER_BUCKETS], *user = *head;

	while (user != NULL && user->uid != uid)
		user = user->next;
	if (user != NULL)
		return user;
	user = calloc(1, sizeof(*user));
	if (user == NULL)
		return NULL;
	user->uid = uid;
	user->next = *head;
	*head = user;
	return user;
}

/* Free a user without jobs and groups. */
static void gsas_user_release(struct gsas_pages *p, struct gsas_user *user)
{
	struct gsas_user **at = &p->user[user->uid % USER_BUCKETS];

	if (user->has.jobs > 0 || user->has.groups > 0)
		return;
	while (*at != user)
		at = &(*at)->next;
	*at = user->next;
	free(user);
}

/* ---- Jobs and groups ---------------------------------------------------- */

/* A new job without a client. NULL: no memory, or the user's limit is
 * reached. */
static struct gsas_job *gsas_job_new(struct gsas_pages *p, uint32_t uid)
{
	struct gsas_user *user = gsas_user_get(p, uid);
	struct gsas_job *job = NULL;

	if (user == NULL)
		return NULL;
	if (!gsas_above(user->has.jobs, 1, p->attr.max_user.jobs))
		job = calloc(1, sizeof(*job));
	if (job == NULL) {
		gsas_user_release(p, user);
		return NULL;
	}
	job->user = user;
	unm_list_init(&job->process);
	user->has.jobs++;
	return job;
}

struct gsas_job *gsas_job_get(struct gsas_pages *p, uint32_t uid,
			      const uint64_t key[2])
{
	struct gsas_job **head = &p->job[gsas_bucket(p, key[0], key[1], uid)];
	struct gsas_job *job;

	for (job = *head; job != NULL; job = job->next) {
		if (job->user->uid != uid || job->key[0] != key[0] ||
		    job->key[1] != key[1])
			continue;
		job->clients++;
		return job;
	}
	if (p->jobs >= p->attr.max_jobs || p->job_number == UINT32_MAX)
		return NULL;
	job = gsas_job_new(p, uid);
	if (job == NULL)
		return NULL;
	job->key[0] = key[0];
	job->key[1] = key[1];
	job->number = ++p->job_number;
	job->clients = 1;
	job->next = *head;
	*head = job;
	p->jobs++;
	return job;
}

static void gsas_job_release(struct gsas_pages *p, struct gsas_job *job)
{
	struct gsas_job **at;

	if (job->clients > 0 || job->regions > 0)
		return;
	at = &p->job[gsas_bucket(p, job->key[0], job->key[1], job->user->uid)];
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	p->jobs--;
	job->user->has.jobs--;
	gsas_user_release(p, job->user);
	gsas_job_end_processes(job);
	gsas_label_free_all(job);
	free(job);
}

void gsas_job_put(struct gsas_pages *p, struct gsas_job *job)
{
	job->clients--;
	gsas_job_release(p, job);
	gsas_census_sweep(&p->census);
}

/* A new group; NULL as for gsas_job_new(). */
static struct gsas_group *gsas_group_new(struct gsas_pages *p, uint32_t uid)
{
	struct gsas_user *user = gsas_user_get(p, uid);
	struct gsas_group *group = NULL;

	if (user == NULL)
		return NULL;
	if (!gsas_above(user->has.groups, 1, p->attr.max_user.groups))
		group = calloc(1, sizeof(*group));
	if (group == NULL) {
		gsas_user_release(p, user);
		return NULL;
	}
	group->user = user;
	user->has.groups++;
	return group;
}

struct gsas_group *gsas_group_get(struct gsas_pages *p, uint32_t uid,
				  const uint64_t name[2])
{
	struct gsas_group **head, *group;

	head = &p->group[gsas_bucket(p, name[0], name[1], uid)];
	for (group = *head; group != NULL; group = group->next) {
		if (group->user->uid != uid || group->name[0] != name[0] ||
		    group->name[1] != name[1])
			continue;
		group->refs++;
		return group;
	}
	if (p->groups >= p->attr.max_groups || p->group_number == UINT32_MAX)
		return NULL;
	group = gsas_group_new(p, uid);
	if (group == NULL)
		return NULL;
	group->name[0] = name[0];
	group->name[1] = name[1];
	group->number = ++p->group_number;
	group->refs = 1;
	group->next = *head;
	*head = group;
	p->groups++;
	return group;
}

void gsas_group_put(struct gsas_pages *p, struct gsas_group *group)
{
	struct gsas_group **at;

	if (--group->refs > 0)
		return;
	at = &p->group[gsas_bucket(p, group->name[0], group->name[1],
				   group->user->uid)];
	while (*at != group)
		at = &(*at)->next;
	*at = group->next;
	p->groups--;
	group->user->has.groups--;
	gsas_user_release(p, group->user);
	free(group);
}

/* ---- Limits ------------------------------------------------------------- */
static enum gsas_error gsas_region_check(const struct gsas_pages *p,
					 const struct gsas_job *job,
					 uint64_t pages)
{
	const struct gsas_account *has = &job->user->has;
	const struct gsas_account *max = &p->attr.max_user;

	if (pages == 0 || pages > GSAS_PAGES_MAX)
		return GSAS_E_ARGUMENT;
	if (p->regions >= p->attr.max_regions ||
	    gsas_above(has->regions, 1, max->regions) ||
	    gsas_above(has->pages, pages, max->pages))
		return GSAS_E_QUOTA;
	if (gsas_above(p->pages, pages, p->attr.max_pages))
		return GSAS_E_MEMORY;
	return GSAS_OK;
}

static void gsas_region_charge(struct gsas_pages *p,
			       const struct gsas_region *region)
{
	struct gsas_job *job = region->job;

	job->regions++;
	job->user->has.regions++;
	job->user->has.pages += region->pages;
	p->regions++;
	p->pages += region->pages;
	if (region->group != NULL)
		region->group->refs++;
}

static void gsas_region_uncharge(struct gsas_pages *p,
				 const struct gsas_region *region)
{
	struct gsas_job *job = region->job;

	job->regions--;
	job->user->has.regions--;
	job->user->has.pages -= region->pages;
	p->regions--;
	p->pages -= region->pages;
	gsas_job_release(p, job);
	if (region->group != NULL)
		gsas_group_put(p, region->group);
}

/* ---- Segments ----------------------------------------------------------- */

/* Where the list of its bucket refers to the open segment of a share, or to
 * NULL at the end of the list. */
static struct gsas_segment **gsas_open(struct gsas_pages *p,
				       const struct gsas_share *share)
{
	struct gsas_segment **at;

	at = &p->open[gsas_bucket(p, (uintptr_t)share->job,
				  (uintptr_t)share->group, share->attr)];
	while (*at != NULL && ((*at)->share.job != share->job ||
			       (*at)->share.group != share->group ||
			       (*at)->share.attr != share->attr))
		at = &(*at)->open_next;
	return at;
}

static void gsas_open_remove(struct gsas_pages *p,
			     struct gsas_segment *segment)
{
	struct gsas_segment **at;

	if (!segment->open)
		return;
	at = gsas_open(p, &segment->share);
	*at = segment->open_next;
	segment->open = false;
}

/* Has the user as many mapped segments as allowed? Each takes a descriptor of
 * this process and a slot of the HAL. */
static bool at_mapped_limit(const struct gsas_pages *p,
			    const struct gsas_job *job)
{
	return gsas_above(job->user->has.mapped, 1, p->attr.max_user.mapped);
}

static struct gsas_segment *gsas_segment_make(struct gsas_pages *p,
					      const struct gsas_share *share,
					      uint64_t pages)
{
	bool mapped = share->attr & GSAS_ATTR_MAPPED;
	uint64_t bytes = gsas_segment_bytes(pages, mapped);
	struct gsas_segment *segment;

	if (mapped && at_mapped_limit(p, share->job))
		return NULL;
	if (bytes > p->attr.end - GSAS_SEGMENT - p->placed - p->reserved)
		return NULL;
	segment = gsas_segment_new(share, pages);
	if (segment == NULL)
		return NULL;
	p->reserved += bytes;
	p->nsegments++;
	share->job->user->has.mapped += mapped;
	return segment;
}

/* Make a segment the open one of its share, from which further regions get
 * their pages, if it has more free pages than the present one. */
static void gsas_open_add(struct gsas_pages *p, struct gsas_segment *segment)
{
	struct gsas_segment **at = gsas_open(p, &segment->share), *was = *at;

	if (was == segment || (was != NULL && gsas_segment_room(was) >=
			       gsas_segment_room(segment)))
		return;
	if (was != NULL)
		gsas_open_remove(p, was);
	at = gsas_open(p, &segment->share);
	segment->open_next = *at;
	*at = segment;
	segment->open = true;
}

/* Put a region in a segment with enough free pages, a new one if needed. NULL:
 * no memory, no addresses, or the limit of mapped segments. */
static struct gsas_segment *gsas_segment_get(struct gsas_pages *p,
					     struct gsas_node *node)
{
	const struct gsas_region *region = &node->region;
	uint64_t attr = region->attr;
	struct gsas_share share = {
		.job = region->job, .group = region->group,
		.attr = GSAS_ATTR_MODE(attr) | (attr & GSAS_ATTR_MAPPED),
	};
	bool alone = attr & GSAS_ATTR_QUEUE ||
		gsas_segment_bytes(region->pages, attr & GSAS_ATTR_MAPPED) >
		GSAS_SEGMENT;
	struct gsas_segment *segment = alone ? NULL : *gsas_open(p, &share);

	if (segment == NULL || gsas_segment_room(segment) < region->pages)
		segment = gsas_segment_make(p, &share, region->pages);
	if (segment == NULL)
		return NULL;
	gsas_segment_put(segment, node);
	if (!alone)
		gsas_open_add(p, segment);
	return segment;
}

/*
 * Will the cursor reach a segment before it has passed half of the partition?
 * Then the segment, when it is freed, stays in the tree without memory until
 * the cursor has passed it, so that its addresses are not used again too soon.
 * Such a segment is old: the cursor has passed half of the partition since it
 * was placed. So the tree never has more of them than it had segments in use.
 */
static bool gsas_soon_reached(const struct gsas_pages *p,
			      const struct gsas_segment *segment)
{
	uint64_t off = segment->base - gsas_base(p->attr.board);

	if (off < p->next)
		off += p->attr.end;	/* on its next round */
	return off - p->next < p->attr.end / 2;
}

/* Remove a region or plan from its segment. If it was the last, free the
 * segment, and *freed is the segment's memory. */
static void gsas_segment_drop(struct gsas_pages *p, struct gsas_node *node,
			      struct gsas_block *freed)
{
	struct gsas_segment *segment = node->region.segment;

	*freed = (struct gsas_block){ .memory = NULL };
	gsas_segment_take(segment, node);
	if (segment->head != NULL)
		return;
	gsas_open_remove(p, segment);
	*freed = segment->block;
	segment->share.job->user->has.mapped -=
		(segment->share.attr & GSAS_ATTR_MAPPED) != 0;
	p->nsegments--;
	if (segment->base == 0) {
		p->reserved -= segment->bytes;
		gsas_segment_free(segment);
		return;
	}
	p->placed -= segment->bytes;
	if (gsas_soon_reached(p, segment)) {
		segment->gone = true;
		return;
	}
	gsas_segment_remove(&p->segments, segment);
	gsas_segment_free(segment);
}

/* ---- Allocations -------------------------------------------------------- */

enum gsas_error gsas_region_plan(struct gsas_pages *p, struct gsas_job *job,
				 struct gsas_group *group, uint64_t pages,
				 uint64_t attr, struct gsas_plan *plan)
{
	enum gsas_error error = gsas_region_check(p, job, pages);
	struct gsas_segment *segment;
	struct gsas_node *node;

	if (error != GSAS_OK)
		return error;
	node = calloc(1, sizeof(*node));
	if (node == NULL)
		return GSAS_E_MEMORY;
	node->region.pages = pages;
	node->region.attr = attr;
	node->region.job = job;
	node->region.group = group;
	unm_list_init(&node->region.owned);
	segment = gsas_segment_get(p, node);
	if (segment == NULL) {
		free(node);
		return attr & GSAS_ATTR_MAPPED && at_mapped_limit(p, job) ?
		       GSAS_E_QUOTA : GSAS_E_MEMORY;
	}
	gsas_region_charge(p, &node->region);
	plan->region = &node->region;
	plan->fill = segment->base == 0;
	return GSAS_OK;
}

enum gsas_error gsas_region_fill(const struct gsas_pages *p,
				 struct gsas_plan *plan)
{
	if (!plan->fill)
		return GSAS_OK;
	return gsas_segment_fill(plan->region->segment, &p->attr.memory);
}

/*
 * The first offset from off on with so many free bytes; 0: there is none. It
 * takes a step for each segment in between. A segment has a MiB at least, so
 * there are at most as many as the board has, or had, MiB of memory.
 */
static uint64_t gsas_gap_from(const struct gsas_pages *p, uint64_t off,
			      uint64_t bytes)
{
	uint64_t base = gsas_base(p->attr.board);
	const struct gsas_segment *segment;

	while (off < p->attr.end && bytes <= p->attr.end - off) {
		segment = gsas_segment_from(p->segments, base + off);
		if (segment == NULL || segment->base - base >= off + bytes)
			return off;
		off = segment->base + segment->bytes - base;
	}
	return 0;
}

/* Move the cursor forward. Removed segments that it passes leave the tree: it
 * reaches their addresses again only on its next round. */
static void gsas_cursor_move(struct gsas_pages *p, uint64_t next)
{
	uint64_t base = gsas_base(p->attr.board);
	uint64_t off = p->next;
	struct gsas_segment *segment;

	for (;;) {
		segment = gsas_segment_from(p->segments, base + off);
		if (segment == NULL || segment->base - base >= next)
			break;
		off = segment->base + segment->bytes - base;
		if (segment->gone) {
			gsas_segment_remove(&p->segments, segment);
			gsas_segment_free(segment);
		}
	}
	p->next = next;
}

/* Assign an address to a segment, if it has none, when its first plan is
 * added. false: no memory was filled in, or no address is free. */
static bool gsas_region_place(struct gsas_pages *p,
			      struct gsas_segment *segment)
{
	uint64_t off;
	bool round = false;

	if (segment->base != 0)
		return true;
	off = gsas_gap_from(p, p->next, segment->bytes);
	if (off == 0) {
		off = gsas_gap_from(p, GSAS_SEGMENT, segment->bytes);
		round = true;
	}
	if (off == 0 ||
	    !gsas_segment_place(segment, gsas_base(p->attr.board) + off))
		return false;
	if (round) {
		gsas_cursor_move(p, p->attr.end);
		p->next = GSAS_SEGMENT;
		p->round = true;
	}
	gsas_cursor_move(p, off + segment->bytes);
	p->reserved -= segment->bytes;
	p->placed += segment->bytes;
	gsas_segment_insert(&p->segments, segment);
	return true;
}

enum gsas_error gsas_region_add(struct gsas_pages *p, struct gsas_plan *plan)
{
	struct gsas_region *region = plan->region;
	struct gsas_segment *segment = region->segment;

	if (!gsas_region_place(p, segment) ||
	    gsas_mmu_insert(p->mmu, region->address >> GSAS_PAGE_SHIFT,
			    region->pages,
			    gsas_segment_memory(segment, region), region))
		return GSAS_E_MEMORY;
	gsas_segment_publish(segment, region,
			     gsas_segment_word(segment, region));
	((struct gsas_node *)region)->added = true;
	return GSAS_OK;
}

void gsas_region_cancel(struct gsas_pages *p, struct gsas_plan *plan)
{
	struct gsas_node *node = (struct gsas_node *)plan->region;
	struct gsas_block freed;

	gsas_segment_drop(p, node, &freed);
	if (freed.memory != NULL)
		p->attr.memory.free(p->attr.memory.ctx, &freed);
	gsas_region_uncharge(p, &node->region);
	plan->region = NULL;
	free(node);
}

void gsas_region_free(struct gsas_pages *p, struct gsas_region *region,
		      struct gsas_block *freed)
{
	struct gsas_segment *segment = region->segment;
	struct gsas_node *node = (struct gsas_node *)region;

	gsas_label_remove(region->job, region->address);
	gsas_segment_publish(segment, region, 0);
	gsas_mmu_remove(p->mmu, region->address >> GSAS_PAGE_SHIFT,
			region->pages);
	if (segment->head != segment->tail)
		gsas_segment_punch(segment, region);
	gsas_segment_drop(p, node, freed);
	gsas_region_uncharge(p, region);
	free(node);
}

struct gsas_region *gsas_region_at(const struct gsas_pages *p,
				   uint64_t address)
{
	uint64_t number = address >> GSAS_PAGE_SHIFT;
	const struct gsas_page *page = gsas_mmu_find(p->mmu, number);

	if (page == NULL || page->region->address >> GSAS_PAGE_SHIFT != number)
		return NULL;
	return page->region;
}

struct gsas_region *gsas_region_from(const struct gsas_pages *p,
				     uint64_t address)
{
	struct gsas_segment *segment;
	struct gsas_node *node;

	segment = gsas_segment_from(p->segments, address);
	while (segment != NULL) {
		for (node = segment->head; node != NULL; node = node->next)
			if (node->added && node->region.address >= address)
				return &node->region;
		segment = gsas_segment_from(p->segments,
					    segment->base + segment->bytes);
	}
	return NULL;
}

/* ---- Look-up ------------------------------------------------------------ */

/* The error of an address that is not allocated; see gsas_pages_find(). */
static enum gsas_error gsas_pages_why(const struct gsas_pages *p,
				      uint64_t address)
{
	const struct gsas_segment *segment;
	uint64_t page, base = gsas_base(p->attr.board);

	if (address - base >= p->attr.end || address - base < GSAS_SEGMENT)
		return GSAS_E_ADDRESS;
	if (!p->round && (address - base >= p->next ||
			  address - base < p->attr.first))
		return GSAS_E_ADDRESS;
	segment = gsas_segment_from(p->segments, address);
	if (segment == NULL || address < segment->base || segment->gone)
		return GSAS_E_FREED;	/* the whole segment was freed */
	page = (address - segment->base) >> GSAS_PAGE_SHIFT;
	return page >= segment->first && page < segment->used ?
		GSAS_E_FREED : GSAS_E_ADDRESS;
}

uint8_t *gsas_pages_find(const struct gsas_pages *p, uint64_t address,
			 struct gsas_region **region, uint64_t *left,
			 enum gsas_error *error)
{
	uint64_t number = address >> GSAS_PAGE_SHIFT;
	const struct gsas_page *page = gsas_mmu_find(p->mmu, number);

	if (page == NULL) {
		*error = gsas_pages_why(p, address);
		return NULL;
	}
	*region = page->region;
	*left = page->region->address +
		page->region->pages * GSAS_PAGE_BYTES - address;
	return gsas_page_memory(page, number) + address % GSAS_PAGE_BYTES;
}

enum gsas_error gsas_region_map_info(const struct gsas_pages *p,
				     const struct gsas_region *region,
				     struct gsas_map_info *info)
{
	const struct gsas_segment *segment = region->segment;
	const struct gsas_memory *memory = &p->attr.memory;
	uint64_t key[2] = { 0, 0 };

	if (region->attr & GSAS_ATTR_MAPPED &&
	    memory->key(memory->ctx, &segment->block, key))
		return GSAS_E_MAPPED;
	info->key[0] = key[0];
	info->key[1] = key[1];
	info->base = segment->base;
	info->bytes = segment->bytes;
	return GSAS_OK;
}
