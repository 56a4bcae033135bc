/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mem_find.c - how data calls and peers find dmable memory: by address,
 * while other threads allocate and free memory, and by key.
 */
#include "lib/ep_mem.h"

/* ---- By address ------------------------------------------------------ */

#define FIND(addr, len)	unm_mem_find(unm_domain(domain), addr, len)

/* Every edge of a segment. */
static void find_edges(struct fid_domain *domain, const uint8_t *p)
{
	struct unm_mem_seg *seg = FIND(p, 1);
	uint8_t *base, *end;

	assert_non_null(seg);
	base = (uint8_t *)seg->base;
	end = base + seg->bytes;
	assert_true(base <= p && p < end);
	assert_ptr_equal(FIND(base, 0), seg);
	assert_ptr_equal(FIND(base, 1), seg);
	assert_ptr_equal(FIND(base, seg->bytes), seg);
	assert_ptr_equal(FIND(end - 1, 0), seg);
	assert_ptr_equal(FIND(end - 1, 1), seg);
	assert_null(FIND(base, seg->bytes + 1));
	assert_null(FIND(base + 1, seg->bytes));
	assert_null(FIND(base, SIZE_MAX));
	assert_null(FIND(end - 1, 2));
	assert_null(FIND(end - 1, SIZE_MAX));
	assert_null(FIND(base - 1, 2));
	assert_ptr_not_equal(FIND(base - 1, 1), seg);
	assert_ptr_not_equal(FIND(end, 0), seg);
	assert_ptr_not_equal(FIND(end, 1), seg);
}

static void test_find(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain;
	uint8_t *p[60], *plain = ep_alloc(MIB);
	uint64_t rng = 2;

	assert_int_equal(fi_domain(e->fabric, e->info, &domain, NULL), 0);
	assert_null(FIND(plain, 1));	/* no memory was allocated yet */
	assert_int_equal(fi_close(&domain->fid), 0);
	domain = domain_open(e);
	assert_null(FIND(plain, 1));
	for (int i = 0; i < 60; i++) {
		p[i] = get(domain, i % 6 == 0 ? 33 * MIB : 2 * MIB, 0);
		for (int k = 0; k <= i; k++)
			find_edges(domain, p[k]);
		assert_null(FIND(plain, MIB));
		assert_null(FIND(NULL, 0));
		assert_null(FIND(NULL, UINTPTR_MAX));
		assert_null(FIND((void *)UINTPTR_MAX, 1));
	}
	for (int n = 60; n > 0; n--) {
		int i = (int)unit_below(&rng, (uint32_t)n);
		uint8_t *gone = p[i];
		bool own = FIND(gone, 33 * MIB) != NULL &&
			   !FIND(gone, 1)->shared;

		p[i] = p[n - 1];
		put(domain, gone);
		if (own)
			assert_null(FIND(gone, 1));
		for (int k = 0; k < n - 1; k++)
			find_edges(domain, p[k]);
	}
	assert_int_equal(segments(domain), 1);
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* A large segment is aligned so that it may have huge pages, and all of it is
 * writable. */
static void test_large_segments_are_aligned(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain;

	if (!on_emu(e))
		skip();			/* elsewhere the driver chooses
					 * addresses */
	domain = domain_open(e);
	for (int i = 0; i < 12; i++) {
		uint8_t *p = get(domain, 3 * MIB + i * 9 * MIB, 0);
		struct unm_mem_seg *seg = FIND(p, 1);

		assert_int_equal(seg->base % (2 * MIB), 0);
		memset((void *)seg->base, i, seg->bytes);
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* ---- Keys ------------------------------------------------------------ */

static void serve(struct hal_if *hif)
{
	struct hal_event ev[8];

	assert_true(hal_if_service(hif, ev, 8) >= 0);
	hal_if_pump(hif);
}

static int import(struct hal_if *a, struct hal_if *b, struct hal_peer *ab,
		  const struct hal_key *key)
{
	uint64_t end = ep_deadline();
	struct hal_rmem *rmem;
	int ret;

	while ((ret = hal_mem_import(ab, key, &rmem)) == -FI_EAGAIN) {
		serve(a);
		serve(b);
		ep_in_time(end, "import");
	}
	if (ret == 0)
		hal_mem_release(ab, rmem);
	return ret;
}

/* The key of a freed segment is refused. */
static void test_freed_memory_is_out_of_reach(void **state)
{
	struct ep *e = ep_open(NULL);
	uint64_t end = ep_deadline();
	struct fid_domain *domain = domain_open(e);
	struct hal_if *a, *b;
	struct hal_peer *ab;
	struct hal *hal = unm_domain(domain)->hal;
	int ret;

	assert_int_equal(hal_if_open(hal, -1, &a), 0);
	assert_int_equal(hal_if_open(hal, -1, &b), 0);
	while ((ret = hal_connect(a, &b->addr, &ab)) == -FI_EAGAIN) {
		serve(b);
		ep_in_time(end, "connect");
	}
	assert_int_equal(ret, 0);
	for (int i = 0; i < 8; i++) {
		uint8_t *keep = get(domain, MIB, 0);
		uint8_t *p = get(domain, (i & 1 ? 40 : 30) * MIB, 0);
		struct hal_key key = FIND(p, 1)->key;

		assert_ptr_not_equal(FIND(p, 1), FIND(keep, 1));
		if (i & 2)
			assert_int_equal(import(a, b, ab, &key), 0);
		put(domain, p);
		if (!(i & 1)) {		/* one empty segment is kept: fill it */
			put(domain, keep);
			keep = NULL;
		}
		if (FIND(p, 1) == NULL)
			assert_int_equal(import(a, b, ab, &key),
					 -FI_EKEYREJECTED);
		else
			assert_int_equal(import(a, b, ab, &key), 0);
		if (keep != NULL)
			put(domain, keep);
	}
	hal_if_close(a);
	hal_if_close(b);
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* ---- Threads --------------------------------------------------------- */

#define NROWS		24
#define LOOKS		(UNIT_SLOW ? 200000 : 3000000)

static struct {
	struct unm_heap heap;
	struct unm_mem_seg seg[NROWS + 1];
	_Atomic long wrong, looked;
} g_table;

/* The table alone, under constant change: a row before all others is inserted
 * and removed, which moves all other rows each time. */
static void *looker(void *arg)
{
	uint64_t rng = (uintptr_t)arg;
	long wrong = 0;

	while (atomic_load(&g_table.looked) < LOOKS) {
		for (int i = 0; i < 100; i++) {
			struct unm_mem_seg *seg = &g_table.seg[1 +
						unit_below(&rng, NROWS)];
			const void *addr = (void *)(seg->base + 100);

			wrong += unm_heap_find(&g_table.heap, addr, 1) != seg;
		}
		atomic_fetch_add(&g_table.looked, 100);
		sched_yield();
	}
	atomic_fetch_add(&g_table.wrong, wrong);
	return NULL;
}

static void test_find_while_the_table_changes(void **state)
{
	pthread_t t[2];

	for (int i = 0; i <= NROWS; i++) {
		g_table.seg[i].base = 0x100000 + (uintptr_t)i * 8192;
		g_table.seg[i].bytes = 4096;
		if (i > 0)
			unm_heap_insert(&g_table.heap, &g_table.seg[i]);
	}
	for (uintptr_t i = 0; i < 2; i++)
		t[i] = unit_thread(looker, (void *)i);
	while (atomic_load(&g_table.looked) < LOOKS) {
		unm_heap_insert(&g_table.heap, &g_table.seg[0]);
		unm_heap_remove(&g_table.heap, &g_table.seg[0]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&g_table.wrong), 0);
}

#define NWRITERS	4
#define ROUNDS		(UNIT_SLOW ? 300 : 1500)

static struct {
	struct fid_domain *domain;
	uint8_t *stays;			/* not freed during the test */
	uint8_t *plain;			/* from malloc() */
	_Atomic int writing;
	_Atomic bool bad;
} g_t;

struct block {
	uint8_t *p;
	size_t bytes;
	uint8_t mark;
};

/* No assertions in threads, because cmocka's jump out of them. */
static bool write_once(struct block *b, uint64_t *rng)
{
	void *addr = NULL;

	if (b->p != NULL) {
		bool good = all(b->p, b->bytes, b->mark) &&
			    unm_mem_find(unm_domain(g_t.domain), b->p,
					 b->bytes) != NULL &&
			    g_ops->free(g_t.domain, b->p) == 0;

		b->p = NULL;
		return good;
	}
	/* now and then a block with a segment of its own */
	b->bytes = unit_below(rng, 40) == 0 ? 33 * MIB :
		1 + unit_below(rng, 200000);
	if (g_ops->alloc(g_t.domain, b->bytes, 0, 0, &addr) != 0)
		return false;
	b->p = addr;
	b->mark = (uint8_t)unit_random(rng);
	if (b->bytes > MIB)		/* mark only a part, to save time */
		b->bytes = 5000;
	memset(b->p, b->mark, b->bytes);
	return true;
}

static void *writer(void *arg)
{
	struct block block[16] = { 0 };
	uint64_t rng = (uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++)
		if (!write_once(&block[unit_below(&rng, 16)], &rng))
			atomic_store(&g_t.bad, true);
	for (int i = 0; i < 16; i++)
		if (block[i].p != NULL && !write_once(&block[i], &rng))
			atomic_store(&g_t.bad, true);
	atomic_fetch_sub(&g_t.writing, 1);
	return NULL;
}

/* Memory that is not freed is found, and memory that is not dmable is not
 * found, at any time. */
static void *reader(void *arg)
{
	const struct unm_domain *domain = unm_domain(g_t.domain);
	struct unm_mem_seg *seg = arg;

	while (atomic_load(&g_t.writing) != 0) {
		for (int i = 0; i < 100; i++)
			if (unm_mem_find(domain, g_t.stays, MIB) != seg ||
			    unm_mem_find(domain, g_t.plain, 1000) != NULL)
				atomic_store(&g_t.bad, true);
		sched_yield();
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct ep *e = ep_open(NULL);
	pthread_t t[NWRITERS + 2];
	struct unm_mem_seg *seg;

	g_t.domain = domain_open(e);
	g_t.stays = get(g_t.domain, MIB, 0);
	g_t.plain = malloc(1000);
	atomic_store(&g_t.writing, NWRITERS);
	seg = unm_mem_find(unm_domain(g_t.domain), g_t.stays, MIB);
	for (uintptr_t i = 0; i < NWRITERS + 2; i++)
		t[i] = i < NWRITERS ? unit_thread(writer, (void *)i) :
		       unit_thread(reader, seg);
	for (int i = 0; i < NWRITERS + 2; i++)
		pthread_join(t[i], NULL);
	assert_false(atomic_load(&g_t.bad));
	put(g_t.domain, g_t.stays);
	assert_int_equal(heap_of(g_t.domain)->blocks, 0);
	assert_int_equal(segments(g_t.domain), 1);
	free(g_t.plain);
	assert_int_equal(fi_close(&g_t.domain->fid), 0);
	ep_close(e);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_find),
	EP_TEST_INSIDE(test_large_segments_are_aligned),
	EP_TEST_INSIDE(test_freed_memory_is_out_of_reach),
	EP_TEST(test_find_while_the_table_changes),
	EP_TEST_INSIDE(test_threads),
)
