/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_gsas_pages.c - fuzz target: several jobs plan, fill, add and free
 * regions of a board. A model knows of each page what it was, which job owns
 * it and what is in it; the board has to agree with the model.
 */
#include "lib/gsas_pages_fixture.h"

#include "fuzz.h"

#define JOBS		4
#define USERS		2			/* each has half of the jobs */
#define GROUPS		3
#define REGIONS		300		/* at a time */
#define PLANS		8
#define PAGES		(1 << 18)	/* of the partition that are watched */
#define USER_SHARE	1600
#define BOARD_SHARE	2800		/* less than all users may have */
#define STEPS_STAT	32		/* steps between checks of the counts,
					 * of which one walks a large table */
#define STEPS_ALL	512		/* and at all pages */

enum page_state { NEVER, LIVE, FREED };

struct model_region {
	struct gsas_region *region;
	uint64_t address, pages, attr;
	int job, group;			/* -1: none */
	uint8_t mark;
};

struct model_plan {
	struct gsas_plan plan;
	uint64_t pages, attr;
	int job, group;
	bool used, filled;
};

static struct model_region g_region[REGIONS];
static int g_nregions;
static struct model_plan g_plan[PLANS];
static uint8_t g_state[PAGES];		/* enum page_state */
static struct gsas_job *g_jobs[JOBS];
static int g_clients[JOBS];		/* jobs with 0 may be gone */
static struct gsas_group *g_groups[GROUPS];
static uint64_t g_user_pages[USERS], g_job_regions[JOBS], g_all_pages;
static struct fuzz_input g_in;
static uint64_t g_rng;			/* what is checked, if not all is */
static uint8_t g_mark;

/* The input chooses the next operation. */
static uint32_t below(uint32_t n)
{
	return (uint32_t)fuzz_take(&g_in, n > 256 ? 2 : 1) % n;
}

static uint32_t sample(uint32_t n)
{
	return unit_below(&g_rng, n);
}

static uint8_t *state_of(uint64_t address)
{
	uint64_t i = (address - gsas_base(BOARD)) / PAGE;

	assert_true(i < PAGES);
	return &g_state[i];
}

/* ---- Plans -------------------------------------------------------------- */

static void count(int job, uint64_t pages, int sign)
{
	g_user_pages[job % USERS] += (uint64_t)sign * pages;
	g_job_regions[job] += (uint64_t)sign;
	g_all_pages += (uint64_t)sign * pages;
}

static enum gsas_error expected(int job, uint64_t pages)
{
	if (g_user_pages[job % USERS] + pages > USER_SHARE)
		return GSAS_E_QUOTA;
	if (g_all_pages + pages > BOARD_SHARE)
		return GSAS_E_MEMORY;
	return GSAS_OK;
}

static uint64_t some_pages(void)
{
	switch (below(12)) {
	case 0:
		return 1 + below(800);
	case 1:
		return 1 + below(100);
	default:
		return 1 + below(20);
	}
}

static void plan(struct model_plan *m)
{
	struct gsas_group *group;
	enum gsas_error error;

	m->job = (int)below(JOBS);
	if (g_clients[m->job] == 0)
		return;
	m->pages = some_pages();
	m->attr = below(3);
	m->group = m->attr == GSAS_MODE_GROUP ? (int)below(GROUPS) : -1;
	group = m->group < 0 ? NULL : g_groups[m->group];
	m->attr |= below(2) ? MAPPED : 0;
	m->attr |= below(20) == 0 ? GSAS_ATTR_QUEUE : 0;
	error = gsas_region_plan(g_p, g_jobs[m->job], group, m->pages, m->attr,
				 &m->plan);
	assert_int_equal(error, expected(m->job, m->pages));
	if (error != GSAS_OK)
		return;
	m->used = true;
	m->filled = false;
	count(m->job, m->pages, 1);
}

/* Its pages are new, empty, and of nobody else from now on. */
static void add(struct model_plan *m)
{
	struct model_region *r = &g_region[g_nregions++];
	struct gsas_region *region = m->plan.region;
	uint8_t *memory;

	assert_int_equal(gsas_region_add(g_p, &m->plan), GSAS_OK);
	m->used = false;
	*r = (struct model_region){
		.region = region, .address = region->address,
		.pages = m->pages, .attr = m->attr, .job = m->job,
		.group = m->group, .mark = g_mark = g_mark % 255 + 1,
	};
	assert_int_equal(region->pages, r->pages);
	assert_int_equal(region->attr, r->attr);
	assert_ptr_equal(region->job, g_jobs[r->job]);
	memory = at(r->address);
	for (uint64_t i = 0; i < r->pages; i++) {
		assert_int_equal(*state_of(r->address + i * PAGE), NEVER);
		*state_of(r->address + i * PAGE) = LIVE;
		for (uint64_t k = 0; k < PAGE; k += 512)
			assert_int_equal(memory[i * PAGE + k], 0);
		memset(memory + i * PAGE, r->mark, PAGE);
	}
}

static void drop(struct model_plan *m)
{
	count(m->job, m->pages, -1);
	gsas_region_cancel(g_p, &m->plan);
	m->used = false;
}

static void plan_step(void)
{
	struct model_plan *m = &g_plan[below(PLANS)];

	if (!m->used) {
		plan(m);
	} else if (below(10) == 0) {
		drop(m);
	} else if (!m->filled) {
		g_mem.none = below(10) == 0;
		if (gsas_region_fill(g_p, &m->plan) == GSAS_OK)
			m->filled = true;
		else
			drop(m);
		g_mem.none = false;
	} else if (g_nregions < REGIONS) {
		add(m);
	}
}

/* ---- Regions ------------------------------------------------------------ */

static void check_contents(const struct model_region *r)
{
	const uint8_t *memory = at(r->address);

	for (uint64_t i = 0; i < r->pages * PAGE; i += 256)
		assert_int_equal(memory[i], r->mark);
}

static void free_one(int i)
{
	struct model_region r = g_region[i];

	check_contents(&r);
	assert_ptr_equal(gsas_region_at(g_p, r.address + sample(PAGE)),
			 r.region);
	g_region[i] = g_region[--g_nregions];
	release(r.region);
	count(r.job, r.pages, -1);
	for (uint64_t k = 0; k < r.pages; k++) {
		*state_of(r.address + k * PAGE) = FREED;
		assert_int_equal(why(r.address + k * PAGE), GSAS_E_FREED);
	}
	assert_null(gsas_region_at(g_p, r.address));
}

/* Clients come and go; with the last one of a job it has orphans. */
static void client_step(void)
{
	int job = (int)below(JOBS);
	bool come = g_clients[job] == 0 || (g_clients[job] < 3 && below(2));

	if (come) {
		g_jobs[job] = job_of(2000 + (uint32_t)job % USERS,
				     100 + (uint64_t)job);
		g_clients[job]++;
		assert_int_equal(g_jobs[job]->clients, g_clients[job]);
		assert_int_equal(g_jobs[job]->user->has.pages,
				 g_user_pages[job % USERS]);
	} else {
		g_clients[job]--;
		gsas_job_put(g_p, g_jobs[job]);
	}
}

/* ---- The whole ---------------------------------------------------------- */

static void check_stat(void)
{
	struct gsas_stat stat = stat_of();
	uint64_t orphans = 0, regions = 0, jobs = 1;	/* the rig's */

	for (int i = 0; i < JOBS; i++) {
		regions += g_job_regions[i];
		jobs += g_clients[i] > 0 || g_job_regions[i] > 0;
		if (g_clients[i] == 0)
			orphans += g_job_regions[i];
	}
	assert_int_equal(stat.pages, g_all_pages);
	assert_int_equal(stat.regions, regions);
	assert_int_equal(stat.jobs, jobs);
	assert_int_equal(stat.orphans, orphans);
	assert_true(stat.segments >= g_mem.blocks);
}

static int by_address(const void *a, const void *b)
{
	const struct model_region *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* All regions, in order; and the next one from anywhere. */
static void check_order(void)
{
	struct gsas_region *region;
	uint64_t from = 0, some;
	int next = 0;

	qsort(g_region, (size_t)g_nregions, sizeof(*g_region), by_address);
	for (int i = 0; i < g_nregions; i++) {
		region = gsas_region_from(g_p, from);
		assert_ptr_equal(region, g_region[i].region);
		assert_int_equal(region->address, g_region[i].address);
		from = region->address + 1;
	}
	assert_null(gsas_region_from(g_p, from));
	for (int i = 0; i < 50; i++) {
		some = gsas_base(BOARD) + sample(PAGES) * PAGE + sample(2);
		for (next = 0; next < g_nregions; next++)
			if (g_region[next].address >= some)
				break;
		assert_ptr_equal(gsas_region_from(g_p, some),
				 next < g_nregions ? g_region[next].region :
				 NULL);
	}
}

static void check_pages(void)
{
	struct gsas_region *region;
	enum gsas_error error;
	uint64_t left, address;
	uint8_t *memory;

	for (uint64_t i = 0; i < PAGES; i += 1 + sample(64)) {
		address = gsas_base(BOARD) + i * PAGE + sample(PAGE);
		memory = gsas_pages_find(g_p, address, &region, &left, &error);
		assert_int_equal(memory != NULL, g_state[i] == LIVE);
		if (g_state[i] == FREED)
			assert_int_equal(error, GSAS_E_FREED);
		/* of what is not handed out yet, nothing was ever freed */
		if (memory == NULL && i < GSAS_SEGMENT / PAGE)
			assert_int_equal(error, GSAS_E_ADDRESS);
	}
	for (int i = 0; i < g_nregions; i++)
		check_contents(&g_region[i]);
}

/* The words of all segments that can be mapped say what lives. */
static void check_words(void)
{
	struct gsas_map_info info;
	uint64_t address, last = 0;
	_Atomic uint32_t *words;
	uint64_t n;

	for (int i = 0; i < g_nregions; i++) {
		if (!(g_region[i].attr & MAPPED))
			continue;
		info = info_of(g_region[i].region);
		if (info.base == last)
			continue;
		last = info.base;
		words = mmap(NULL, info.bytes, PROT_READ, MAP_SHARED,
			     (int)info.key[0], 0);
		assert_ptr_not_equal(words, MAP_FAILED);
		for (n = 0; n < info.bytes / PAGE; n++) {
			address = info.base + n * PAGE;
			assert_int_equal(words[n] != 0,
					 *state_of(address) == LIVE);
			/* of a region: its first page, or as the one before */
			assert_true(words[n] == 0 || words[n] == n ||
				    (words[n] < n && words[n] == words[n - 1]));
		}
		munmap((void *)words, info.bytes);
	}
}

static void check_all(void)
{
	check_stat();
	check_order();
	check_pages();
	check_words();
}

static void end(void)
{
	for (int i = 0; i < PLANS; i++)
		if (g_plan[i].used)
			drop(&g_plan[i]);
	while (g_nregions > 0)
		free_one((int)sample((uint32_t)g_nregions));
	for (int i = 0; i < JOBS; i++)
		for (; g_clients[i] > 0; g_clients[i]--)
			gsas_job_put(g_p, g_jobs[i]);
	check_all();
	assert_int_equal(stat_of().segments, 0);
	assert_int_equal(g_mem.blocks, 0);
	for (int i = 0; i < GROUPS; i++) {
		assert_int_equal(g_groups[i]->refs, 1);
		gsas_group_put(g_p, g_groups[i]);
	}
	board_end();
}

static void begin(void)
{
	struct gsas_pages_attr limits = {
		.max_pages = BOARD_SHARE, .max_user.pages = USER_SHARE,
	};

	memset(g_state, NEVER, sizeof(g_state));
	g_rng = 1;
	g_mark = 0;
	board(&limits);
	for (uint64_t i = 0; i < GROUPS; i++)
		g_groups[i] = gsas_group_get(g_p, 1000, (uint64_t[]){ i, i });
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	g_in = (struct fuzz_input){ bytes, len };
	begin();
	for (unsigned int i = 1; g_in.len > 0; i++) {
		uint32_t what = below(100);

		if (what < 60)
			plan_step();
		else if (what < 72 && g_nregions > 0)
			free_one((int)below((uint32_t)g_nregions));
		else if (what > 97)
			client_step();
		if (i % STEPS_STAT == 0)
			check_stat();
		if (i % STEPS_ALL == 0)
			check_all();
	}
	check_stat();
	end();
	return 0;
}
