/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_pages.c - regions and their segments, one law at a time.
 *
 * The same at random against a model is in fuzz/fuzz_gsas_pages.c, jobs and
 * shares are in test_gsas_jobs.c.
 */
#include "lib/gsas_pages_fixture.h"
#include "service/gsas_segment.h"

#define PARTITION	(UINT64_C(1) << 36)	/* pages */

/* ---- Replacements of system calls --------------------------------------- */

static int g_bad_advice;		/* madvise() that fails: 0 none, -1
					 * any */
static long g_page;			/* page size; 0: the system's */

int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);
long __real_sysconf(int name);
long __wrap_sysconf(int name);

int __wrap_madvise(void *at, size_t len, int advice)
{
	if (advice == g_bad_advice || g_bad_advice < 0) {
		errno = EINVAL;
		return -1;
	}
	/* like a system with such pages */
	if (g_page) {
		assert_int_equal((uintptr_t)at % (size_t)g_page, 0);
		len += -len % (size_t)g_page;
	}
	return __real_madvise(at, len, advice);
}

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE && g_page ? g_page : __real_sysconf(name);
}

/* ---- Addresses ---------------------------------------------------------- */

static void test_addresses_are_of_the_board(void **state)
{
	struct gsas_region *r[3];

	board(NULL);
	r[0] = alloc(g_job, 1, 0);
	r[1] = alloc(g_job, 255, 0);
	r[2] = alloc(g_job, 1000, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gsas_board_of(r[i]->address), BOARD);
		assert_int_equal(r[i]->address % PAGE, 0);
		assert_true(r[i]->address >= gsas_base(BOARD) + GSAS_SEGMENT);
	}
	/* small ones are adjacent in a segment, a large one has its own */
	assert_int_equal(r[1]->address, r[0]->address + PAGE);
	assert_int_equal(r[2]->address % GSAS_SEGMENT, 0);
	assert_int_equal(stat_of().segments, 2);
	assert_ptr_equal(gsas_region_at(g_p, r[1]->address), r[1]);
	assert_ptr_equal(gsas_region_at(g_p, r[1]->address + 5), r[1]);
	assert_null(gsas_region_at(g_p, r[1]->address + PAGE));
	assert_null(gsas_region_at(g_p, r[2]->address - PAGE));
	assert_int_equal(at(r[1]->address + 5) - at(r[0]->address),
			 PAGE + 5);
	assert_int_equal(at(r[2]->address + 999 * PAGE) - at(r[2]->address),
			 999 * PAGE);
	board_end();
}

static void test_why_not(void **state)
{
	struct gsas_region *r, *big, *mapped;
	uint64_t gone, base = gsas_base(BOARD);

	board(NULL);
	assert_int_equal(why(0), GSAS_E_ADDRESS);
	assert_int_equal(why(base), GSAS_E_ADDRESS);
	assert_int_equal(why(base + GSAS_SEGMENT), GSAS_E_ADDRESS);
	r = alloc(g_job, 3, 0);
	big = alloc(g_job, 300, 0);
	mapped = alloc(g_job, 3, MAPPED);
	assert_int_equal(why(r->address - 1), GSAS_E_ADDRESS);
	assert_int_equal(why(r->address + 3 * PAGE), GSAS_E_ADDRESS);
	assert_int_equal(why(big->address + 300 * PAGE), GSAS_E_ADDRESS);
	assert_int_equal(why(mapped->address - 1), GSAS_E_ADDRESS);
	assert_int_equal(why(mapped->address + 3 * PAGE), GSAS_E_ADDRESS);
	assert_int_equal(why(mapped->address + GSAS_SEGMENT), GSAS_E_ADDRESS);
	/* the same offset in the neighbours' partitions */
	assert_int_equal(why(r->address - (UINT64_C(1) << 48)),
			 GSAS_E_ADDRESS);
	assert_int_equal(why(r->address + (UINT64_C(1) << 48)),
			 GSAS_E_ADDRESS);
	assert_int_equal(why(UINT64_MAX), GSAS_E_ADDRESS);

	gone = big->address;
	assert_true(release(big));
	assert_int_equal(why(gone), GSAS_E_FREED);
	assert_int_equal(why(gone + 300 * PAGE - 1), GSAS_E_FREED);
	/* also in a segment that is still used */
	alloc(g_job, 1, 0);
	gone = r->address;
	assert_false(release(r));
	assert_int_equal(why(gone), GSAS_E_FREED);
	assert_int_equal(why(gone + 3 * PAGE - 1), GSAS_E_FREED);
	at(gone + 3 * PAGE);
	board_end();
}

/* Addresses and memory are not used a second time. */
static void test_nothing_is_used_twice(void **state)
{
	struct gsas_region *r, *stay;
	uint64_t last = 0;

	board(NULL);
	stay = alloc(g_job, 1, 0);
	for (int i = 0; i < 2000; i++) {
		r = alloc(g_job, i % 7 + 1, 0);
		assert_true(r->address > last);
		last = r->address + r->pages * PAGE - 1;
		for (uint64_t k = 0; k < r->pages; k++) {
			assert_int_equal(at(r->address + k * PAGE)[7], 0);
			at(r->address + k * PAGE)[7] = 1;
		}
		release(r);
	}
	assert_int_equal(stat_of().pages, 1);
	assert_int_equal(at(stay->address)[0], 0);
	release(stay);
	assert_int_equal(g_mem.blocks, 0);
	board_end();
}

static void test_addresses_end(void **state)
{
	struct gsas_plan plan, more;
	uint64_t most = PARTITION - GSAS_SEGMENT / PAGE;

	board(NULL);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, most + 1, 0,
					  &plan), GSAS_E_MEMORY);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, most, MAPPED,
					  &plan), GSAS_E_MEMORY);
	g_mem.none = true;
	/* a failed plan uses up no addresses */
	for (int i = 0; i < 5; i++) {
		assert_int_equal(gsas_region_plan(g_p, g_job, NULL, most, 0,
						  &plan), GSAS_OK);
		assert_true(plan.fill);
		assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 1, 0,
						  &more), GSAS_E_MEMORY);
		assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_E_MEMORY);
		assert_int_equal(gsas_region_add(g_p, &plan), GSAS_E_MEMORY);
		gsas_region_cancel(g_p, &plan);
		assert_int_equal(stat_of().pages, 0);
	}
	g_mem.none = false;
	/* one segment, then all other addresses */
	alloc(g_job, 1, 0);
	most -= GSAS_SEGMENT / PAGE;
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, most + 1, 0,
					  &plan), GSAS_E_MEMORY);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, most, 0, &plan),
			 GSAS_OK);
	gsas_region_cancel(g_p, &plan);
	board_end();
}

/* The partition ends 8 MiB behind the first address: allocating and freeing can
 * go on for ever, beside a region that stays. */
static void test_addresses_are_used_again(void **state)
{
	const struct gsas_pages_attr near = {
		.first = (UINT64_C(1) << 48) - (UINT64_C(8) << 20),
	};
	struct gsas_region *r, *stay;
	uint64_t last = 0;
	int rounds = 0;

	board(&near);
	stay = alloc(g_job, 300, 0);
	at(stay->address)[0] = 1;
	for (int i = 0; i < 100; i++) {
		r = alloc(g_job, 300, 0);
		rounds += r->address < last;
		last = r->address;
		assert_int_equal(gsas_board_of(last), BOARD);
		assert_true(last >= gsas_base(BOARD) + GSAS_SEGMENT);
		assert_int_equal(at(last + 299 * PAGE)[7], 0);
		release(r);
		assert_int_equal(why(last), GSAS_E_FREED);
	}
	assert_int_equal(rounds, 1);
	assert_int_equal(at(stay->address)[0], 1);
	assert_ptr_equal(gsas_region_at(g_p, stay->address), stay);
	assert_int_equal(why(gsas_base(BOARD)), GSAS_E_ADDRESS);
	assert_int_equal(stat_of().segments, 1);
	board_end();
}

/* Memory that is not accessed: an eighth of the partition at a time. */
#define FAR_PAGES	(PARTITION / 8)

static int far_alloc(void *ctx, uint64_t bytes, bool mapped,
		     struct gsas_block *block)
{
	static uint8_t nowhere;

	if (bytes < UINT64_C(1) << 40)
		return gsas_mem_alloc(ctx, bytes, mapped, block);
	*block = (struct gsas_block){ .memory = &nowhere, .bytes = bytes };
	return 0;
}

static uint64_t far_away(void)
{
	struct gsas_region *r = alloc(g_job, FAR_PAGES, 0);
	uint64_t address = r->address;
	struct gsas_block trash;

	gsas_region_free(g_p, r, &trash);
	return address;
}

/* A board whose memory is from far_alloc(). */
static void board_far(void)
{
	struct gsas_pages_attr attr = { .board = BOARD };

	memset(&g_mem, 0, sizeof(g_mem));
	attr.memory = gsas_mem(&g_mem);
	attr.memory.alloc = far_alloc;
	assert_int_equal(gsas_pages_new(&attr, &g_p), 0);
	g_job = job_get(1);
}

/* An address that is freed just before the cursor reaches it stays refused
 * until the cursor has passed all addresses once more. */
static void test_quarantine(void **state)
{
	uint64_t gone, end, got = 0;
	struct gsas_region *old;

	board_far();
	alloc(g_job, 1, 0);
	old = alloc(g_job, 300, 0);
	gone = old->address;
	end = gone + 2 * GSAS_SEGMENT;
	for (int i = 0; i < 5; i++)
		assert_true(far_away() >= end);
	release(old);
	assert_int_equal(why(gone), GSAS_E_FREED);
	/* to the end of the partition, and from its start */
	for (int i = 0; i < 3; i++)
		got = far_away();
	assert_int_equal(got, end);
	assert_int_equal(why(gone), GSAS_E_FREED);
	for (int i = 0; i < 6; i++)
		assert_true(far_away() > end);
	assert_int_equal(why(gone), GSAS_E_FREED);
	assert_int_equal(far_away(), gone);
	assert_int_equal(stat_of().segments, 1);
	board_end();
}

/* Segments in quarantine are freed with the board. */
static void test_quarantine_ends_with_the_board(void **state)
{
	struct gsas_region *old;

	board_far();
	old = alloc(g_job, 300, MAPPED);
	for (int i = 0; i < 5; i++)
		far_away();
	release(old);
	assert_null(gsas_region_from(g_p, 0));
	assert_int_equal(stat_of().segments, 0);
	board_end();
}

static void test_boards(void **state)
{
	struct gsas_pages_attr attr = { .memory = gsas_mem(&g_mem) };

	attr.board = 65535;
	assert_int_equal(gsas_pages_new(&attr, &g_p), -FI_EINVAL);
	attr.board = 65534;
	assert_int_equal(gsas_pages_new(&attr, &g_p), 0);
	g_job = job_get(1);
	assert_int_equal(gsas_board_of(alloc(g_job, 1, 0)->address), 65534);
	board_end();
	gsas_pages_free(NULL);
}

/* ---- Segments and words ------------------------------------------------- */

static void test_who_shares_a_segment(void **state)
{
	const uint64_t name[2] = { 1, 2 };
	struct gsas_region *r[8], *same;
	struct gsas_job *other;
	struct gsas_group *group;
	struct gsas_plan plan;

	board(NULL);
	other = job_get(2);
	group = gsas_group_get(g_p, 1000, name);
	r[0] = alloc(g_job, 1, GSAS_MODE_JOB);
	r[1] = alloc(g_job, 1, GSAS_MODE_WORLD);
	r[2] = alloc(g_job, 1, GSAS_MODE_JOB | MAPPED);
	r[3] = alloc(g_job, 1, GSAS_MODE_WORLD | MAPPED);
	r[4] = alloc(other, 1, GSAS_MODE_JOB);
	r[5] = alloc(g_job, 1, GSAS_MODE_JOB | GSAS_ATTR_QUEUE);
	r[6] = alloc(g_job, 257, GSAS_MODE_JOB);
	assert_int_equal(gsas_region_plan(g_p, g_job, group, 1,
					  GSAS_MODE_GROUP, &plan), GSAS_OK);
	assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_OK);
	assert_int_equal(gsas_region_add(g_p, &plan), GSAS_OK);
	r[7] = plan.region;
	assert_int_equal(stat_of().segments, 8);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < i; j++)
			assert_true(r[i]->address >> GSAS_SEGMENT_SHIFT !=
				    r[j]->address >> GSAS_SEGMENT_SHIFT);
	/* no region joins the segment of the queue or of the large one */
	same = alloc(g_job, 1, GSAS_MODE_JOB);
	assert_ptr_equal(same->segment, r[0]->segment);
	assert_int_equal(same->attr, GSAS_MODE_JOB);
	assert_int_equal(r[5]->attr, GSAS_ATTR_QUEUE);
	gsas_group_put(g_p, group);
	board_end();
}

/* A region is put into a segment with enough free pages. Of two segments, the
 * one with more free pages stays open. */
static void test_room_is_used(void **state)
{
	struct gsas_plan plan;
	struct gsas_segment *first, *second;

	board(NULL);
	first = alloc(g_job, 200, 0)->segment;
	assert_ptr_equal(alloc(g_job, 50, 0)->segment, first);
	second = alloc(g_job, 100, 0)->segment;
	assert_ptr_not_equal(second, first);
	assert_ptr_equal(alloc(g_job, 6, 0)->segment, second);
	/* too large for the free pages of the open segment */
	assert_ptr_not_equal(alloc(g_job, 250, 0)->segment, second);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 150, 0, &plan),
			 GSAS_OK);
	assert_false(plan.fill);
	assert_ptr_equal(plan.region->segment, second);
	assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_OK);
	assert_int_equal(gsas_region_add(g_p, &plan), GSAS_OK);
	assert_int_equal(stat_of().segments, 3);
	assert_int_equal(g_mem.calls, 3);
	board_end();
}

/* Sizes around each at which one more page of words is needed. */
static void words_of_size(uint64_t pages)
{
	struct gsas_region *r;
	struct gsas_map_info info;
	uint64_t first;

	board(NULL);
	r = alloc(g_job, pages, MAPPED);
	info = info_of(r);
	assert_int_equal(info.base % GSAS_SEGMENT, 0);
	assert_int_equal(info.bytes % GSAS_SEGMENT, 0);
	assert_int_equal(g_mem.bytes, info.bytes);
	assert_true(r->address + pages * PAGE <= info.base + info.bytes);
	/* all words lie before all pages; each page has a word */
	first = r->address - info.base;
	assert_true(gsas_page_word(info.base, info.base + info.bytes - PAGE) <
		    first);
	assert_true(first <= PAGE + gsas_page_word(info.base, info.base +
						   info.bytes - PAGE));
	assert_int_equal(word_of(&info, info.base), 0);
	assert_int_equal(word_of(&info, r->address - PAGE), 0);
	assert_int_equal(word_of(&info, r->address), first / PAGE);
	assert_int_equal(word_of(&info, r->address + (pages - 1) * PAGE),
			 first / PAGE);
	if (r->address + pages * PAGE < info.base + info.bytes)
		assert_int_equal(word_of(&info, r->address + pages * PAGE), 0);
	memset(at(r->address), 0xff, PAGE);
	assert_int_equal(word_of(&info, info.base), 0);
	board_end();
}

static void test_words_have_their_pages(void **state)
{
	for (uint64_t n = 1; n < 8; n++)
		words_of_size(n);
	for (uint64_t k = 256; k <= 4096; k += 256)
		for (uint64_t n = k - 6; n < k + 6; n++)
			words_of_size(n);
}

static void test_page_words_follow_the_pages(void **state)
{
	struct gsas_region *a, *b;
	struct gsas_map_info info;
	struct gsas_plan plan;
	uint64_t gone, first;

	board(NULL);
	a = alloc(g_job, 2, MAPPED);
	info = info_of(a);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 3, MAPPED, &plan),
			 GSAS_OK);
	b = plan.region;
	assert_int_equal(b->address, a->address + 2 * PAGE);
	assert_int_equal(word_of(&info, b->address), 0);
	assert_int_equal(gsas_region_add(g_p, &plan), GSAS_OK);
	first = (a->address - info.base) / PAGE;
	for (int i = 0; i < 5; i++)
		assert_int_equal(word_of(&info, a->address + i * PAGE),
				 i < 2 ? first : first + 2);
	assert_int_equal(word_of(&info, a->address + 5 * PAGE), 0);
	gone = a->address;
	assert_false(release(a));
	for (int i = 0; i < 6; i++)
		assert_int_equal(word_of(&info, gone + i * PAGE),
				 i >= 2 && i < 5 ? first + 2 : 0);
	assert_int_equal(info_of(b).key[0], info.key[0]);
	assert_int_equal(info_of(b).base, info.base);
	board_end();
}

/* The service does not read the words that clients can write. */
static void test_words_are_not_read(void **state)
{
	struct gsas_region *a, *b;
	struct gsas_map_info info;
	uint8_t *map;

	board(NULL);
	a = alloc(g_job, 2, MAPPED);
	b = alloc(g_job, 2, MAPPED);
	info = info_of(a);
	map = mmap(NULL, info.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			  (int)info.key[0], 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 0xa5, PAGE);
	assert_int_equal(at(b->address)[0], 0);
	assert_false(release(a));
	memset(map, 0, PAGE);
	at(b->address);
	assert_int_equal(alloc(g_job, 1, MAPPED)->address,
			 b->address + 2 * PAGE);
	assert_true(!release(b));
	munmap(map, info.bytes);
	board_end();
}

static void test_only_mapped_ones_are_mapped(void **state)
{
	struct gsas_map_info info = { .key = { 1, 1 } };
	struct gsas_region *region;

	board(NULL);
	region = alloc(g_job, 1, 0);
	assert_int_equal(gsas_region_map_info(g_p, region, &info), GSAS_OK);
	assert_true((info.key[0] | info.key[1]) == 0);
	assert_true(region->address - info.base < info.bytes);
	board_end();
}

/* Freed pages read as zero, whatever kind of memory backs them; the contents of
 * neighbours stay. */
static void punched(uint64_t attr)
{
	struct gsas_region *r[9];
	uint8_t *memory[9];

	board(NULL);
	for (int i = 0; i < 9; i++) {
		r[i] = alloc(g_job, 1 + i % 5, attr);
		memory[i] = at(r[i]->address);
		memset(memory[i], 0x10 + i, r[i]->pages * PAGE);
	}
	for (int i = 1; i < 8; i += 2) {
		uint64_t bytes = r[i]->pages * PAGE;

		assert_false(release(r[i]));
		for (uint64_t k = 0; k < bytes; k++)
			assert_int_equal(memory[i][k], 0);
	}
	for (int i = 0; i < 9; i += 2)
		for (uint64_t k = 0; k < r[i]->pages * PAGE; k++)
			assert_int_equal(memory[i][k], 0x10 + i);
	board_end();
}

static void test_freed_pages_are_gone(void **state)
{
	static const int bad[] = { 0, MADV_REMOVE, -1 };

	for (int i = 0; i < 3; i++) {
		g_bad_advice = bad[i];
		punched(0);
		punched(MAPPED);
	}
	g_bad_advice = 0;
	/* a system with larger pages */
	g_page = 16384;
	punched(0);
	punched(MAPPED);
	g_page = 65536;
	punched(0);
	g_page = 0;
}

/* The memory of freed pages is given back. */
static void test_freed_pages_take_no_memory(void **state)
{
	struct gsas_region *r, *stay;
	unsigned char in[200];
	uint8_t *memory;

	for (int i = 0; i < 2; i++) {
		board(NULL);
		stay = alloc(g_job, 1, i ? MAPPED : 0);
		r = alloc(g_job, 200, i ? MAPPED : 0);
		memory = at(r->address);
		memset(memory, 1, 200 * PAGE);
		at(stay->address)[0] = 1;
		assert_false(release(r));
		assert_int_equal(mincore(memory, 200 * PAGE, in), 0);
		for (int k = 0; k < 200; k++)
			assert_int_equal(in[k] & 1, 0);
		assert_true(release(stay));
		board_end();
	}
}

/* ---- Segments by address ------------------------------------------------ */

#define SEGMENTS	20000

static int depth_of(const struct gsas_segment *segment)
{
	int left, right;

	if (segment == NULL)
		return 0;
	left = depth_of(segment->left);
	right = depth_of(segment->right);
	return 1 + (left > right ? left : right);
}

/* A search from any address finds the right segment, at a bounded depth. */
static void test_the_tree_of_segments(void **state)
{
	struct gsas_segment *s = calloc(SEGMENTS, sizeof(*s)), *root = NULL;
	struct gsas_segment *next;

	assert_non_null(s);
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		s[i].base = gsas_base(BOARD) + (i + 1) * GSAS_SEGMENT;
		s[i].bytes = GSAS_SEGMENT;
	}
	for (uint64_t i = 0, k = 0; i < SEGMENTS; i++) {
		k = (k + 6733) % SEGMENTS;
		gsas_segment_insert(&root, &s[k]);
	}
	assert_true(depth_of(root) < 60);
	/* all but every seventh; 7919 and 6733 are prime to SEGMENTS */
	for (uint64_t i = 0, k = 0; i < SEGMENTS; i++) {
		k = (k + 7919) % SEGMENTS;
		if (k % 7 != 0)
			gsas_segment_remove(&root, &s[k]);
	}
	assert_true(depth_of(root) < 60);
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		next = i <= (SEGMENTS - 1) / 7 * 7 ? &s[(i + 6) / 7 * 7] : NULL;
		assert_ptr_equal(gsas_segment_from(root, s[i].base), next);
		assert_ptr_equal(gsas_segment_from(root, s[i].base +
						   GSAS_SEGMENT - 1), next);
	}
	for (uint64_t i = 0; i < SEGMENTS; i += 7)
		gsas_segment_remove(&root, &s[i]);
	assert_null(root);
	free(s);
}

/* ---- Plans -------------------------------------------------------------- */

/* Several plans for a segment that has no memory yet: it is allocated once. */
static void test_plans_share_a_segment(void **state)
{
	struct gsas_plan plan[4];
	uint64_t base;

	board(NULL);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 10, MAPPED,
						  &plan[i]), GSAS_OK);
		assert_true(plan[i].fill);
	}
	assert_int_equal(stat_of().segments, 1);
	assert_int_equal(gsas_region_add(g_p, &plan[2]), GSAS_E_MEMORY);
	assert_null(gsas_region_from(g_p, 0));
	/* the first allocation fails, the next does not */
	g_mem.fail_at = 1;
	assert_int_equal(gsas_region_fill(g_p, &plan[0]), GSAS_E_MEMORY);
	gsas_region_cancel(g_p, &plan[0]);
	assert_int_equal(gsas_region_fill(g_p, &plan[2]), GSAS_OK);
	assert_int_equal(gsas_region_fill(g_p, &plan[1]), GSAS_OK);
	assert_int_equal(gsas_region_fill(g_p, &plan[3]), GSAS_OK);
	assert_int_equal(g_mem.calls, 2);
	assert_int_equal(gsas_region_add(g_p, &plan[2]), GSAS_OK);
	base = plan[2].region->address - 21 * PAGE;
	assert_int_equal(base, gsas_base(BOARD) + GSAS_SEGMENT);
	assert_int_equal(plan[3].region->address, base + 31 * PAGE);
	assert_ptr_equal(gsas_region_from(g_p, 0), plan[2].region);
	assert_int_equal(gsas_region_add(g_p, &plan[3]), GSAS_OK);
	/* the remaining plan keeps the segment */
	assert_false(release(plan[2].region));
	assert_false(release(plan[3].region));
	assert_null(gsas_region_from(g_p, 0));
	assert_int_equal(g_mem.blocks, 1);
	assert_int_equal(gsas_region_add(g_p, &plan[1]), GSAS_OK);
	assert_int_equal(plan[1].region->address, base + 11 * PAGE);
	memset(at(plan[1].region->address), 1, 10 * PAGE);
	assert_true(release(plan[1].region));
	board_end();
}

static void test_drop_gives_memory_back(void **state)
{
	struct gsas_plan plan;
	struct gsas_region *r;

	board(NULL);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 10, 0, &plan),
			 GSAS_OK);
	gsas_region_cancel(g_p, &plan);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 10, 0, &plan),
			 GSAS_OK);
	assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_OK);
	assert_int_equal(g_mem.blocks, 1);
	gsas_region_cancel(g_p, &plan);
	assert_int_equal(g_mem.blocks, 0);
	r = alloc(g_job, 1, 0);
	assert_int_equal(r->address, gsas_base(BOARD) + GSAS_SEGMENT);
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 10, 0, &plan),
			 GSAS_OK);
	assert_false(release(r));
	gsas_region_cancel(g_p, &plan);
	assert_int_equal(g_mem.blocks, 0);
	assert_int_equal(stat_of().segments, 0);
	assert_int_equal(stat_of().regions, 0);
	board_end();
}

/* As many regions as a board may have: each is found by its address. */
static void test_a_million_regions(void **state)
{
	uint64_t many = UNIT_SLOW ? 20000 : 1000000, n = 0, from = 0;
	struct gsas_region *region;
	uint64_t base;

	board(NULL);
	base = alloc(g_job, 1, 0)->address;
	for (uint64_t i = 1; i < many; i++)
		alloc(g_job, 1, 0);
	while ((region = gsas_region_from(g_p, from)) != NULL) {
		assert_true(region->address >= from);
		from = region->address + 1;
		n++;
	}
	assert_int_equal(n, many);
	/* freed in another order: the stride is prime to their number */
	for (uint64_t i = 0; i < many; i++) {
		from = base + i * 7919 % many * PAGE;
		release(gsas_region_at(g_p, from));
	}
	assert_int_equal(stat_of().segments, 0);
	board_end();
}

UNIT_MAIN(
	cmocka_unit_test(test_addresses_are_of_the_board),
	cmocka_unit_test(test_why_not),
	cmocka_unit_test(test_nothing_is_used_twice),
	cmocka_unit_test(test_addresses_end),
	cmocka_unit_test(test_addresses_are_used_again),
	cmocka_unit_test(test_quarantine),
	cmocka_unit_test(test_quarantine_ends_with_the_board),
	cmocka_unit_test(test_boards),
	cmocka_unit_test(test_who_shares_a_segment),
	cmocka_unit_test(test_room_is_used),
	cmocka_unit_test(test_words_have_their_pages),
	cmocka_unit_test(test_page_words_follow_the_pages),
	cmocka_unit_test(test_words_are_not_read),
	cmocka_unit_test(test_only_mapped_ones_are_mapped),
	cmocka_unit_test(test_freed_pages_are_gone),
	cmocka_unit_test(test_freed_pages_take_no_memory),
	cmocka_unit_test(test_the_tree_of_segments),
	cmocka_unit_test(test_plans_share_a_segment),
	cmocka_unit_test(test_drop_gives_memory_back),
	cmocka_unit_test(test_a_million_regions),
)
