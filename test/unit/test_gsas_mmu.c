/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_mmu.c - the software MMU compared with an array, and its tables:
 * each change moves a bounded number of entries, and long use does not make
 * lookups longer.
 */
#include "lib/unit.h"

static bool g_no_memory;

static void *test_mmap(void *at, size_t len, int prot, int flags, int fd,
		       off_t off)
{
	if (g_no_memory) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return mmap(at, len, prot, flags, fd, off);
}

#define mmap	test_mmap
#include "service/gsas_mmu.c"
#undef mmap

#define BASE	(UINT64_C(1) << 36)	/* first page of board 0 */
#define MANY	(UNIT_SLOW ? 100000 : 1000000)

/* The memory is never accessed, so any address will do. */
static uint8_t *memory_of(uint64_t number)
{
	return (uint8_t *)(uintptr_t)((number - BASE + 1) * GSAS_PAGE_BYTES);
}

static struct gsas_region *region_of(uint64_t n)
{
	return (struct gsas_region *)(uintptr_t)(n * 64 + 64);
}

static struct gsas_mmu *mmu_new(uint64_t pages)
{
	struct gsas_mmu *mmu;

	assert_int_equal(gsas_mmu_new(pages, &mmu), 0);
	return mmu;
}

static void insert(struct gsas_mmu *mmu, uint64_t number, uint64_t count)
{
	assert_int_equal(gsas_mmu_insert(mmu, number, count, memory_of(number),
					 region_of(number)), 0);
}

/* Single pages: they cannot become part of a larger page. */
static void insert_each(struct gsas_mmu *mmu, uint64_t number, uint64_t count)
{
	for (; count > 0; count--)
		insert(mmu, number++, 1);
}

static void remove_each(struct gsas_mmu *mmu, uint64_t number, uint64_t count)
{
	for (; count > 0; count--)
		gsas_mmu_remove(mmu, number++, 1);
}

/* ---- The tables --------------------------------------------------------- */

/* Look-ups find every entry, and the table has no others. */
static void check_table(const struct gsas_table *t, uint64_t cursor)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i <= t->mask; i++) {
		if (t->slot[i].memory == NULL)
			continue;
		count++;
		assert_true(i >= cursor);
		for (uint64_t j = gsas_table_home(t, t->slot[i].key); j != i;
		     j = (j + 1) & t->mask)
			assert_non_null(t->slot[j].memory);
	}
	assert_int_equal(count, t->count);
	assert_true(count <= (t->mask + 1) / 4 * 3);
}

static void check_inside(const struct gsas_mmu *mmu)
{
	check_table(&mmu->cur, 0);
	if (mmu->old.slot != NULL)
		check_table(&mmu->old, mmu->cursor);
}

/* The work that is left: slots to pass and entries to move. */
static uint64_t left_to_move(const struct gsas_mmu *mmu)
{
	if (mmu->old.slot == NULL)
		return 0;
	return mmu->old.mask + 1 - mmu->cursor + mmu->old.count;
}

/* Inserts or removes one page. At most STEPS_INSERT or STEPS_REMOVE entries are
 * moved, and a new table is begun only after the last one was moved. */
static void change(struct gsas_mmu *mmu, uint64_t number, bool in)
{
	struct gsas_page *table = mmu->cur.slot;
	uint64_t left = left_to_move(mmu), now, moved;
	bool more = mmu->old.slot != NULL;

	if (in)
		insert(mmu, number, 1);
	else
		gsas_mmu_remove(mmu, number, 1);
	now = left_to_move(mmu);
	if (mmu->cur.slot != table) {
		if (in) {
			assert_false(more);
			assert_true(mmu->cursor + mmu->cur.count <=
				    STEPS_INSERT + 1);
		} else {
			assert_true(left <= STEPS_REMOVE);
			assert_int_equal(mmu->cursor, 0);
		}
		return;
	}
	/* a removal from the old table leaves one entry less to move */
	moved = left - now;
	assert_true(now <= left);
	assert_true(moved <= (in ? STEPS_INSERT : STEPS_REMOVE + 1));
}

/* ---- Tests -------------------------------------------------------------- */

static void test_empty_has_nothing(void **state)
{
	struct gsas_mmu *mmu = mmu_new(0);

	assert_null(gsas_mmu_find(mmu, BASE));
	assert_null(gsas_mmu_find(mmu, 0));
	assert_null(gsas_mmu_find(mmu, UINT64_MAX));
	assert_int_equal(gsas_mmu_count(mmu), 0);
	gsas_mmu_free(mmu);
	gsas_mmu_free(NULL);
}

static void expect_page(const struct gsas_mmu *mmu, uint64_t number,
			uint64_t first)
{
	const struct gsas_page *page = gsas_mmu_find(mmu, number);

	assert_non_null(page);
	assert_ptr_equal(gsas_page_memory(page, number), memory_of(number));
	assert_ptr_equal(page->region, region_of(first));
}

/* Runs at and around the bounds of larger pages: each uses as few entries as
 * possible, has all its pages and no other, and is removed without a trace. */
static void test_runs(void **state)
{
	static const struct { uint64_t at, count, entries; } run[] = {
		{ 0, 1, 1 }, { 0, 255, 255 }, { 0, 256, 1 }, { 0, 257, 2 },
		{ 1, 256, 256 }, { 255, 257, 2 }, { 100, 1000, 156 + 3 + 76 },
		{ 256, 512, 2 }, { 0, (1 << 18) - 1, 1023 + 255 },
		{ 0, 1 << 18, 1 }, { 1, 1 << 18, 255 + 1023 + 1 },
		{ 256, 1 << 18, 1023 + 1 }, { (1 << 18) - 1, 2 + (1 << 18), 3 },
		{ 3 << 18, (5 << 18) + 258, 5 + 1 + 2 },
		{ 255, (3 << 18) + 2, 1 + 1023 + 2 + 1 + 1 },
		{ (1 << 18) - 300, (1 << 20) + 600, 44 + 1 + 4 + 1 + 44 },
	};
	struct gsas_mmu *mmu = mmu_new(0);

	for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
		uint64_t at = BASE + run[i].at, end = at + run[i].count;

		insert(mmu, at, run[i].count);
		assert_int_equal(gsas_mmu_count(mmu), run[i].entries);
		for (uint64_t n = at; n < end; n += n % 251 + 1)
			expect_page(mmu, n, at);
		expect_page(mmu, end - 1, at);
		assert_null(gsas_mmu_find(mmu, at - 1));
		assert_null(gsas_mmu_find(mmu, end));
		check_inside(mmu);
		gsas_mmu_remove(mmu, at, run[i].count);
		assert_int_equal(gsas_mmu_count(mmu), 0);
		assert_null(gsas_mmu_find(mmu, at));
		assert_null(gsas_mmu_find(mmu, end - 1));
	}
	gsas_mmu_free(mmu);
}

#define RUNS	40

/* Runs of all lengths, side by side, are inserted and removed. */
static void test_runs_side_by_side(void **state)
{
	struct { uint64_t at, count; bool in; } run[RUNS];
	struct gsas_mmu *mmu = mmu_new(0);
	uint64_t rng = 3, at = BASE + 77;

	for (int i = 0; i < RUNS; i++) {
		run[i].at = at;
		run[i].count = 1 + unit_below(&rng, UINT64_C(1) <<
					      unit_below(&rng, 21));
		run[i].in = false;
		at += run[i].count;
	}
	for (int k = 0; k < 4000; k++) {
		int i = (int)unit_below(&rng, RUNS);
		uint64_t n = run[i].at + unit_below(&rng, run[i].count);

		if (unit_below(&rng, 4) == 0) {
			if (run[i].in)
				gsas_mmu_remove(mmu, run[i].at, run[i].count);
			else
				insert(mmu, run[i].at, run[i].count);
			run[i].in = !run[i].in;
		}
		if (run[i].in)
			expect_page(mmu, n, run[i].at);
		else
			assert_null(gsas_mmu_find(mmu, n));
	}
	check_inside(mmu);
	gsas_mmu_free(mmu);
}

#define SPAN	8192			/* page numbers of the model */

struct model {
	struct gsas_mmu *mmu;
	uint64_t region[SPAN];		/* 0: none */
	uint64_t count, serial;
};

static void model_check(const struct model *m)
{
	const struct gsas_page *page;

	assert_int_equal(gsas_mmu_count(m->mmu), m->count);
	for (uint64_t i = 0; i < SPAN; i++) {
		page = gsas_mmu_find(m->mmu, BASE + i);
		if (m->region[i] == 0) {
			assert_null(page);
			continue;
		}
		assert_non_null(page);
		assert_ptr_equal(page->region, region_of(m->region[i]));
		assert_ptr_equal(gsas_page_memory(page, BASE + i),
				 memory_of(BASE + i));
	}
	check_inside(m->mmu);
}

/* The longest run of pages from there that are all present or all absent. */
static uint64_t model_run(const struct model *m, uint64_t at, uint64_t max)
{
	uint64_t n = 1;

	while (n < max && at + n < SPAN &&
	       (m->region[at + n] != 0) == (m->region[at] != 0))
		n++;
	return n;
}

/* fill: percentage towards which the model is filled */
static void model_step(struct model *m, uint64_t *rng, uint32_t fill)
{
	uint64_t at = unit_below(rng, SPAN);
	uint64_t n = model_run(m, at, 1 + unit_below(rng, 40));
	bool in = m->region[at] == 0;

	if (in != (unit_below(rng, 100) < fill))
		return;
	if (in) {
		m->serial++;
		assert_int_equal(gsas_mmu_insert(m->mmu, BASE + at, n,
						 memory_of(BASE + at),
						 region_of(m->serial)), 0);
		m->count += n;
	} else {
		gsas_mmu_remove(m->mmu, BASE + at, n);
		m->count -= n;
	}
	for (uint64_t i = at; i < at + n; i++)
		m->region[i] = in ? m->serial : 0;
}

/* Filling and draining at random, through many sizes of the table. */
static void test_like_an_array(void **state)
{
	static const uint32_t fill[] = { 95, 5, 60, 99, 1, 50, 100, 0 };
	struct model m = { .mmu = mmu_new(0) };
	uint64_t rng = 5;

	for (int round = 0; round < 8 * (UNIT_SLOW ? 1 : 4); round++)
		for (int i = 0; i < 4000; i++) {
			model_step(&m, &rng, fill[round % 8]);
			if (i % 97 == 0)
				model_check(&m);
		}
	model_check(&m);
	gsas_mmu_free(m.mmu);
}

static void test_no_change_moves_much(void **state)
{
	struct gsas_mmu *mmu = mmu_new(0);
	uint64_t rng = 9, first = BASE, end = BASE;

	while (end < BASE + MANY)
		change(mmu, end++, true);
	/* through every size, up and down */
	while (first < end)
		if (unit_below(&rng, 3) == 0)
			change(mmu, end++, true);
		else
			change(mmu, first++, false);
	assert_int_equal(gsas_mmu_count(mmu), 0);
	gsas_mmu_free(mmu);
}

/* A constant number of changing entries: removed ones leave no trace. */
static void test_nothing_decays(void **state)
{
	struct gsas_mmu *mmu = mmu_new(0);
	uint64_t n = 0;

	insert_each(mmu, BASE, 700);
	for (n = 0; n < 100000; n++) {
		change(mmu, BASE + 700 + n, true);
		change(mmu, BASE + n, false);
		if (n % 1009 == 0)
			check_inside(mmu);
	}
	assert_int_equal(gsas_mmu_count(mmu), 700);
	assert_true(mmu->cur.mask + 1 <= 2048);
	gsas_mmu_free(mmu);
}

static void test_memory_goes_back(void **state)
{
	struct gsas_mmu *mmu = mmu_new(0);

	for (int round = 0; round < 2; round++) {
		insert_each(mmu, BASE, MANY);
		assert_true(mmu->cur.mask + 1 >= MANY);
		assert_true(mmu->cur.mask + 1 < 4 * (uint64_t)MANY);
		for (uint64_t n = BASE; n < BASE + MANY; n++)
			change(mmu, n, false);
		/* the size that half of these entries need, at most */
		assert_true(mmu->cur.mask + 1 <= 4 * SIZE_MIN);
		assert_true(mmu->old.slot == NULL ||
			    mmu->old.mask + 1 <= 8 * SIZE_MIN);
	}
	gsas_mmu_free(mmu);
}

/* A run of any length is inserted at any stage of a move. */
static void run_while_moving(uint64_t moved, uint64_t run)
{
	struct gsas_mmu *mmu = mmu_new(0);
	uint64_t n = BASE, at;

	while (mmu->cur.mask + 1 < 1024)
		insert(mmu, n++, 1);
	insert_each(mmu, n, moved);
	n += moved;
	assert_non_null(mmu->old.slot);
	/* (misaligned, so that it needs pages of several sizes) */
	at = BASE + (7 << 18) + 1;
	insert(mmu, at, run);
	assert_int_equal(gsas_mmu_count(mmu), n - BASE +
			 gsas_page_entries(at, run));
	check_inside(mmu);
	for (uint64_t i = BASE; i < n; i++)
		assert_non_null(gsas_mmu_find(mmu, i));
	for (uint64_t i = at; i < at + run; i++)
		expect_page(mmu, i, at);
	remove_each(mmu, BASE, n - BASE);
	gsas_mmu_remove(mmu, at, run);
	assert_int_equal(gsas_mmu_count(mmu), 0);
	check_inside(mmu);
	gsas_mmu_free(mmu);
}

static void test_a_run_while_moving(void **state)
{
	for (uint64_t moved = 0; moved < 60; moved += 7)
		for (uint64_t run = 1; run < 3000; run += 97)
			run_while_moving(moved, run);
}

/* The moved part of the old table is given back before the move ends. */
static void test_moving_takes_no_more_memory(void **state)
{
	struct gsas_mmu *mmu = mmu_new(0);
	unsigned char in[64];
	uint64_t n = BASE, size = 16 * CHUNK;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	while (mmu->cur.mask + 1 <= size)
		insert(mmu, n++, 1);
	assert_int_equal(mmu->old.mask + 1, size);
	while (mmu->cursor < 8 * CHUNK)
		insert(mmu, n++, 1);
	for (int i = 0; i < 7; i++) {
		memset(in, 1, sizeof(in));
		assert_int_equal(mincore(&mmu->old.slot[i * CHUNK], page, in),
				 0);
		assert_int_equal(in[0] & 1, 0);
	}
	check_inside(mmu);
	gsas_mmu_free(mmu);
}

static void test_no_memory(void **state)
{
	struct gsas_mmu *mmu = mmu_new(0);
	uint64_t n = BASE, size;

	g_no_memory = true;
	while (gsas_mmu_insert(mmu, n, 1, memory_of(n), region_of(n)) == 0)
		n++;
	assert_int_equal(n - BASE, SIZE_MIN / 4 * 3);
	assert_int_equal(gsas_mmu_insert(mmu, n, 5, memory_of(n),
					 region_of(n)), -FI_ENOMEM);
	assert_int_equal(gsas_mmu_count(mmu), n - BASE);
	assert_null(gsas_mmu_find(mmu, n));
	check_inside(mmu);
	g_no_memory = false;
	assert_int_equal(gsas_mmu_insert(mmu, n, GSAS_PAGES_MAX + 1,
					 memory_of(n), region_of(n)),
			 -FI_ENOMEM);
	assert_int_equal(gsas_mmu_insert(mmu, n, UINT64_MAX, memory_of(n),
					 region_of(n)), -FI_ENOMEM);
	insert_each(mmu, n, 10000);
	n += 10000;
	/* without memory for a smaller table the larger one stays */
	g_no_memory = true;
	size = mmu->cur.mask + 1;
	remove_each(mmu, BASE, n - BASE);
	assert_int_equal(mmu->cur.mask + 1, size);
	check_inside(mmu);
	g_no_memory = false;
	assert_int_equal(gsas_mmu_count(mmu), 0);
	gsas_mmu_free(mmu);
}

static void test_new_without_memory(void **state)
{
	struct gsas_mmu *mmu;

	g_no_memory = true;
	assert_int_equal(gsas_mmu_new(0, &mmu), -FI_ENOMEM);
	g_no_memory = false;
	assert_int_equal(gsas_mmu_new(UINT64_MAX, &mmu), -FI_ENOMEM);
}

/* A table that has space for these pages from the start is never replaced. */
static void test_ready_for(void **state)
{
	struct gsas_mmu *mmu = mmu_new(50000);
	struct gsas_page *table = mmu->cur.slot;

	insert_each(mmu, BASE, 50000);
	assert_ptr_equal(mmu->cur.slot, table);
	remove_each(mmu, BASE, 50000);
	assert_ptr_equal(mmu->cur.slot, table);
	gsas_mmu_free(mmu);
}

/* Pages at equal distances, like those of large segments, are spread evenly. */
static void test_distances_do_not_crowd(void **state)
{
	for (int log = 0; log <= 24; log++) {
		struct gsas_mmu *mmu = mmu_new(0);
		uint64_t longest = 0, run = 0;

		for (uint64_t i = 0; i < 4096; i++)
			insert(mmu, BASE + (i << log), 1);
		gsas_mmu_move(mmu, UINT64_MAX);
		for (uint64_t i = 0; i <= mmu->cur.mask; i++) {
			run = mmu->cur.slot[i].memory != NULL ? run + 1 : 0;
			longest = run > longest ? run : longest;
		}
		/* half full: random keys make runs of about 40 entries */
		assert_int_equal(mmu->cur.mask + 1, 8192);
		if (longest > 150)
			unit_fail("2^%d: %lu in a row", log,
				  (unsigned long)longest);
		gsas_mmu_free(mmu);
	}
}

UNIT_MAIN(
	cmocka_unit_test(test_empty_has_nothing),
	cmocka_unit_test(test_runs),
	cmocka_unit_test(test_runs_side_by_side),
	cmocka_unit_test(test_like_an_array),
	cmocka_unit_test(test_no_change_moves_much),
	cmocka_unit_test(test_nothing_decays),
	cmocka_unit_test(test_memory_goes_back),
	cmocka_unit_test(test_a_run_while_moving),
	cmocka_unit_test(test_moving_takes_no_more_memory),
	cmocka_unit_test(test_no_memory),
	cmocka_unit_test(test_new_without_memory),
	cmocka_unit_test(test_ready_for),
	cmocka_unit_test(test_distances_do_not_crowd),
)
