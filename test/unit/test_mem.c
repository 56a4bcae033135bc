/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mem.c - dmable memory for the application, fi_unimem_mem(3).
 *
 * UNM_TEST_PAIRS: pairs of allocation and free.
 */
#include <sys/resource.h>

#include "lib/ep_mem.h"
#include "lib/proc_files.h"

#define PAIRS		100000
#define MEMORY		"unimem-mem"	/* in the names of segments */

/* ---- The calls ------------------------------------------------------- */

static void test_open(void **state)
{
	struct ep *e = ep_open(NULL);
	void *ops = NULL, *again = NULL;

	assert_int_equal(fi_open_ops(&e->domain->fid, "unimem_men", 0, &ops,
				     NULL), -FI_ENOSYS);
	assert_int_equal(fi_open_ops(&e->domain->fid, NULL, 0, &ops, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_open_ops(&e->domain->fid, FI_UNIMEM_MEM, 1, &ops,
				     NULL), -FI_EBADFLAGS);
	assert_null(ops);
	assert_int_equal(fi_open_ops(&e->domain->fid, "unimem_mem", 0, &ops,
				     NULL), 0);
	assert_int_equal(((struct fi_unimem_mem_ops *)ops)->size,
			 sizeof(struct fi_unimem_mem_ops));
	assert_int_equal(fi_open_ops(&e->domain->fid, FI_UNIMEM_MEM, 0, &again,
				     NULL), 0);
	assert_ptr_equal(ops, again);
	ep_close(e);
}

/* Each wrong argument is refused with one line, which names the size. */
static void test_nonsense_is_refused(void **state)
{
	static const struct {
		size_t bytes, align;
		uint64_t flags;
		int ret;
		const char *word;
	} t[] = {
		{ 0, 0, 0, -FI_EINVAL, "0 bytes" },
		{ 4711, 3, 0, -FI_EINVAL, "4711" },
		{ 4711, 65, 0, -FI_EINVAL, "4711" },
		{ 4711, (size_t)1 << 22, 0, -FI_EINVAL, "4711" },
		{ 4711, SIZE_MAX, 0, -FI_EINVAL, "4711" },
		{ 4711, 0, 1, -FI_EBADFLAGS, "4711" },
		{ 4711, 0, UINT64_C(1) << 63, -FI_EBADFLAGS, "4711" },
		{ (size_t)1 << 45, 0, 0, -FI_ENOMEM, "35184372088832" },
		{ ((size_t)1 << 46) + 1, 0, 0, -FI_ENOMEM, "70368744177665" },
		{ SIZE_MAX, 0, 0, -FI_ENOMEM, "18446744073709551615" },
		{ SIZE_MAX - 64, (size_t)2 << 20, 0, -FI_ENOMEM, "18446744" },
	};
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	uint8_t *block = get(domain, 1000, 0);
	uint8_t *big = get(domain, 33 * MIB, 0);
	char text[1024];

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct unit_capture ear = unit_capture_begin();
		void *addr = NULL;
		int ret = g_ops->alloc(domain, t[i].bytes, t[i].align,
				       t[i].flags, &addr);

		assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 1);
		assert_int_equal(ret, t[i].ret);
		assert_null(addr);
		if (strstr(text, t[i].word) == NULL)
			unit_fail("%s is not in: %s", t[i].word, text);
	}
	put(domain, block);
	for (int i = 0; i < 7; i++) {
		void *const bad[] = { NULL, block, block + 64, e, &ep_now,
				      big + 64, big + 33 * MIB };
		struct unit_capture ear = unit_capture_begin();
		int ret = g_ops->free(domain, bad[i]);

		assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 1);
		assert_int_equal(ret, -FI_EINVAL);
	}
	put(domain, big);
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

static void test_query(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	uint8_t *small = get(domain, 65, 0);
	uint8_t *big = get(domain, 40 * MIB + 1, 0);
	struct fi_unimem_mem_attr a, untouched;

	memset(&untouched, 0xee, sizeof(untouched));
	for (int i = 0; i < 128; i++) {
		memset(&a, 0xff, sizeof(a));
		assert_int_equal(g_ops->query(domain, small + i, &a), 0);
		assert_ptr_equal(a.addr, small);
		assert_int_equal(a.bytes, 128);
		assert_true((uint8_t *)a.segment <= small && small + 128 <=
			    (uint8_t *)a.segment + a.segment_bytes);
		for (int k = 0; k < 4; k++)
			assert_int_equal(a.reserved[k], 0);
	}
	assert_int_equal(g_ops->query(domain, big + 40 * MIB, &a), 0);
	assert_ptr_equal(a.addr, big);
	assert_int_equal(a.bytes, 40 * MIB + 64);
	a = untouched;
	assert_int_equal(g_ops->query(domain, small + 128, &a), -FI_ENOENT);
	assert_int_equal(g_ops->query(domain, big - 1, &a), -FI_ENOENT);
	assert_int_equal(g_ops->query(domain, big + 40 * MIB + 64, &a),
			 -FI_ENOENT);
	assert_int_equal(g_ops->query(domain, &a, &a), -FI_ENOENT);
	assert_int_equal(g_ops->query(domain, NULL, &a), -FI_ENOENT);
	put(domain, small);
	assert_int_equal(g_ops->query(domain, small, &a), -FI_ENOENT);
	put(domain, big);
	assert_int_equal(g_ops->query(domain, big, &a), -FI_ENOENT);
	assert_memory_equal(&a, &untouched, sizeof(a));
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* ---- Blocks ---------------------------------------------------------- */

static void test_alignment(void **state)
{
	static const size_t sizes[] = { 1, 64, 4097, 3 * MIB, 33 * MIB };
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);

	for (size_t align = 1; align <= FI_UNIMEM_MEM_ALIGN_MAX; align *= 2) {
		for (int i = 0; i < (align < MIB / 2 ? 4 : 5); i++) {
			uint8_t *odd = get(domain, 100, 0);
			uint8_t *p = get(domain, sizes[i], align);

			assert_int_equal((uintptr_t)p % align, 0);
			assert_int_equal((uintptr_t)p % 64, 0);
			p[0] = p[sizes[i] - 1] = 1;
			put(domain, p);
			put(domain, odd);
		}
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* Memory that was not allocated before is zero, in several segments. */
static void test_new_memory_is_zero(void **state)
{
	static const size_t bytes[] = { MIB, 100000, 64, 5 * MIB, 33 * MIB };
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);

	for (int i = 0; i < 15; i++) {
		uint8_t *p = get(domain, bytes[i % 5], 0);

		assert_true(all(p, bytes[i % 5], 0));
		if (i % 5 == 4)
			put(domain, p);
		else
			memset(p, 0xff, bytes[i % 5]);
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	/* the next domain does not see what this one wrote */
	domain = domain_open(e);
	for (int i = 0; i < 5; i++)
		assert_true(all(get(domain, bytes[i], 0), bytes[i], 0));
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

struct block {
	uint8_t *p;
	size_t bytes;
	uint8_t mark;
};

/* Allocates or frees a block. All of its bytes must be its own. */
static void toggle(struct fid_domain *domain, struct block *b, uint64_t *rng,
		   unsigned bits)
{
	if (b->p != NULL) {
		assert_true(all(b->p, b->bytes, b->mark));
		put(domain, b->p);
		b->p = NULL;
		return;
	}
	b->bytes = 1 + unit_below(rng, 1u << (1 + unit_below(rng, bits)));
	b->p = get(domain, b->bytes, unit_below(rng, 4) != 0 ? 0 :
		   (size_t)1 << unit_below(rng, 15));
	b->mark = (uint8_t)unit_random(rng);
	memset(b->p, b->mark, b->bytes);
}

static void test_random_blocks_are_apart(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	struct block block[128] = { 0 };
	uint64_t rng = 3;

	for (int i = 0; i < (UNIT_SLOW ? 1000 : 4000); i++)
		toggle(domain, &block[unit_below(&rng, 128)], &rng, 21);
	for (int i = 0; i < 128; i++)
		if (block[i].p != NULL)
			toggle(domain, &block[i], &rng, 21);
	if (ep_inside()) {
		assert_int_equal(heap_of(domain)->blocks, 0);
		assert_int_equal(heap_of(domain)->used, 0);
		assert_in_range(segments(domain), 0, 1);
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* The allocator's data are not in the segments: a peer may write over all bytes
 * of them. */
static void test_what_peers_write_harms_nobody(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	struct block block[64] = { 0 };
	uint64_t rng = 9;

	for (int i = 0; i < 600; i++) {
		struct block *b = &block[unit_below(&rng, 64)];
		struct fi_unimem_mem_attr a;

		if (b->p != NULL && i % 3 == 0) {
			assert_int_equal(g_ops->query(domain, b->p, &a), 0);
			memset(a.segment, 0x55, a.segment_bytes);
			for (int k = 0; k < 64; k++)
				if (block[k].p != NULL)
					memset(block[k].p, block[k].mark,
					       block[k].bytes);
		}
		toggle(domain, b, &rng, 14);
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* ---- Segments -------------------------------------------------------- */

static void test_segments_go_back(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	unsigned fds = proc_self_fds(), maps = proc_self_mappings(MEMORY);
	uint8_t *p[120];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 120; i++)
			p[i] = get(domain, MIB, 0);
		/* a few blocks keep all segments */
		for (int i = 0; i < 120; i++)
			if (i % 4 != 0)
				put(domain, p[i]);
		if (ep_inside())
			assert_in_range(segments(domain), 2, 8);
		for (int i = 0; i < 120; i += 4)
			put(domain, p[i]);
		if (ep_inside())
			assert_int_equal(segments(domain), 1);
		assert_in_range(proc_self_fds(), fds, fds + 1);
		assert_in_range(proc_self_mappings(MEMORY), maps, maps + 1);
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(proc_self_fds(), fds);
	assert_int_equal(proc_self_mappings(MEMORY), maps);
	ep_close(e);
}

/* Mappings and descriptors do not grow, and no segment is made again. */
static void test_pairs_grow_nothing(void **state)
{
	static const size_t bytes[] = { 1, 4096, MIB, 3 * MIB, 32 * MIB };
	const uint64_t pairs = unit_number("UNM_TEST_PAIRS", PAIRS) / 5;
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	size_t space;

	for (int i = 0; i < 5; i++) {
		uint8_t *p = get(domain, bytes[i], 0);
		struct hal_key key = { { 0 } };
		unsigned fds, maps;

		put(domain, p);		/* this segment is the one that is
					 * kept */
		p = get(domain, bytes[i], 0);
		fds = proc_self_fds();
		maps = proc_self_mappings(MEMORY);
		if (ep_inside())
			key = unm_mem_find(unm_domain(domain), p, 1)->key;
		for (uint64_t n = pairs; n > 0; n--) {
			put(domain, p);
			p = get(domain, bytes[i], 0);
		}
		assert_int_equal(proc_self_fds(), fds);
		assert_int_equal(proc_self_mappings(MEMORY), maps);
		if (ep_inside())
			assert_memory_equal(&unm_mem_find(unm_domain(domain),
							  p, 1)->key, &key,
					    sizeof(key));
		put(domain, p);
	}
	space = proc_self_space();
	for (int n = 0; n < 20; n++)	/* segments of a single block are
					 * freed */
		put(domain, get(domain, 33 * MIB, 0));
	assert_in_range(proc_self_space(), 0, space + 4 * MIB);
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* Closing a domain succeeds and frees the blocks that were not freed. */
static void test_close_with_blocks_in_use(void **state)
{
	struct ep *e = ep_open(NULL);
	unsigned fds = proc_self_fds(), maps = proc_self_mappings(MEMORY);
	struct fid_domain *domain = domain_open(e);
	struct unit_capture ear;
	char text[256];

	for (int i = 0; i < 20; i++)
		get(domain, i * MIB + 1, 0);
	get(domain, 70 * MIB, 0);
	ear = unit_capture_begin();
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 0);
	assert_int_equal(proc_self_fds(), fds);
	assert_int_equal(proc_self_mappings(MEMORY), maps);
	ep_close(e);
}

/* ---- Limits ---------------------------------------------------------- */

/*
 * If the usual segment can not be allocated, a smaller one is used and nothing
 * is logged. If the block can not, one line names the reason.
 */
static void test_a_limit_is_an_error(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain;
	struct rlimit lim;
	uint8_t *p, *q;
	struct unit_capture ear;
	void *addr = NULL;
	char text[1024];
	int ret;

	unit_needs(on_emu(e));	/* others do not know limits of files */
	domain = domain_open(e);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &lim), 0);
	ear = unit_capture_begin();
	lim.rlim_cur = MIB;
	setrlimit(RLIMIT_FSIZE, &lim);
	p = get(domain, 100000, 0);
	q = get(domain, MIB, 0);
	ret = g_ops->alloc(domain, MIB + 1, 0, 0, &addr);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_FSIZE, &lim);
	assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 1);
	assert_int_equal(ret, -FI_ENOMEM);
	assert_non_null(strstr(text, "1048577"));
	assert_non_null(strstr(text, "RLIMIT_FSIZE"));
	assert_null(addr);
	put(domain, p);
	put(domain, q);
	put(domain, get(domain, MIB + 1, 0));
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* All memory of a small board (check-ep-sim.sh), several times. */
static void test_small_board(void **state)
{
	enum { MAX = 1 << 10, BYTES = 65536 };
	const char *text = getenv("FI_UNIMEM_SIM");
	struct ep *e;
	struct fid_domain *domain;
	uint8_t *p[MAX];
	int had = 0;

	unit_needs(text != NULL && strcmp(text, "mem=15") == 0);
	e = ep_open(NULL);
	domain = domain_open(e);
	for (int round = 0; round < 3; round++) {
		struct unit_capture ear = unit_capture_begin();
		char line[512];
		void *addr;
		int n = 0;

		while (n < MAX && g_ops->alloc(domain, BYTES, 0, 0,
					       &addr) == 0) {
			p[n] = addr;
			memset(p[n++], round, BYTES);
		}
		assert_int_equal(unit_capture_end(&ear, line, sizeof(line)), 1);
		/* all of it, in any pieces, every time */
		assert_in_range(n, 14 * MIB / BYTES, 15 * MIB / BYTES);
		assert_true(round == 0 || n == had);
		had = n;
		while (n > 0) {
			assert_true(all(p[--n], BYTES, (uint8_t)round));
			put(domain, p[n]);
		}
	}
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* ---- Forked children ------------------------------------------------- */

static int child(struct fid_domain *domain, uint8_t *p)
{
	struct unit_capture ear = unit_capture_begin();
	struct fi_unimem_mem_attr a;
	void *addr = NULL;
	char text[512];
	int ret = g_ops->alloc(domain, 4711, 0, 0, &addr);

	if (unit_capture_end(&ear, text, sizeof(text)) != 1 || addr != NULL ||
	    strstr(text, "4711") == NULL || strstr(text, "fork") == NULL)
		return 1;
	if (ret != -FI_EPERM)
		return 2;
	if (g_ops->query(domain, p, &a) != -FI_ENOENT)
		return 3;
	if (g_ops->free(domain, p) != 0)
		return 4;
	return fi_close(&domain->fid) != 0 ? 5 : 0;
}

static void test_a_forked_child_has_none(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_domain *domain = domain_open(e);
	uint8_t *p = get(domain, 5 * MIB, 0), *q = get(domain, 50 * MIB, 0);
	pid_t pid;

	memset(p, 1, 5 * MIB);
	memset(q, 2, 50 * MIB);
	pid = unit_fork();
	if (pid == 0)
		_exit(child(domain, p));
	assert_int_equal(unit_exit_code(pid), 0);
	assert_true(all(p, 5 * MIB, 1) && all(q, 50 * MIB, 2));
	put(domain, p);
	put(domain, q);
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

/* ---- While another thread allocates ---------------------------------- */

/* The log function of the HAL blocks its caller until g_leave is set; g_inside
 * is set when it was called. */
static _Atomic bool g_inside, g_leave;

static void held_line(int level, const char *line)
{
	(void)level;
	(void)unm_mem_hears(line);
	g_inside = true;
	while (!g_leave)
		sched_yield();
}

static void *alloc_too_much(void *domain)
{
	void *addr = NULL;

	return (void *)(intptr_t)g_ops->alloc(domain, (size_t)1 << 45, 0, 0,
					      &addr);
}

static void begin(pthread_t *thread, struct fid_domain *domain)
{
	hal_log_set(held_line);
	g_inside = false;
	g_leave = false;
	*thread = unit_thread(alloc_too_much, domain);
	while (!g_inside)
		sched_yield();
}

/* The allocation is refused in one log line. */
static void end(pthread_t thread)
{
	struct unit_capture ear = unit_capture_begin();
	char text[1024];
	void *ret;
	int lines;

	g_leave = true;
	pthread_join(thread, &ret);
	lines = unit_capture_end(&ear, text, sizeof(text));
	assert_int_equal(lines, 1);
	assert_int_equal((intptr_t)ret, -FI_ENOMEM);
}

static void *alloc_small(void *domain)
{
	void *addr = NULL;

	return g_ops->alloc(domain, 100, 0, 0, &addr) == 0 ? addr : NULL;
}

/* An allocation that waits in the HAL does not delay another domain. */
static void test_domains_do_not_wait(void **state)
{
	struct fid_domain *slow, *quick;
	pthread_t thread, other;
	struct ep *e = ep_open(NULL);
	uint8_t *p;
	void *q;

	slow = domain_open(e);
	quick = domain_open(e);
	p = get(quick, 100, 0);
	begin(&thread, slow);
	alarm(60);			/* ends a test that hangs */
	other = unit_thread(alloc_small, quick);
	pthread_join(other, &q);
	alarm(0);
	end(thread);
	assert_non_null(q);
	put(quick, p);
	put(quick, q);
	EP_CLOSE(&quick->fid, &slow->fid);
	ep_close(e);
}

/* The child opens its own objects. */
static int child_allocates(struct fi_info *info)
{
	struct fi_unimem_mem_ops *ops;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	void *addr = NULL;

	alarm(60);
	if (ep_fabric(info, &fabric) != 0)
		return 1;
	if (fi_domain(fabric, info, &domain, NULL) != 0)
		return 2;
	if (fi_open_ops(&domain->fid, FI_UNIMEM_MEM, 0, (void **)&ops,
			NULL) != 0)
		return 3;
	if (ops->alloc(domain, 100, 0, 0, &addr) != 0)
		return 4;
	memset(addr, 1, 100);
	if (ops->free(domain, addr) != 0)
		return 5;
	return fi_close(&domain->fid) != 0 || fi_close(&fabric->fid) != 0 ?
		6 : 0;
}

static void test_fork_during_an_alloc(void **state)
{
	struct fid_domain *domain;
	pthread_t thread;
	struct ep *e = ep_open(NULL);
	pid_t pid;
	int code;

	domain = domain_open(e);
	begin(&thread, domain);
	pid = unit_fork();
	if (pid == 0)
		_exit(child_allocates(e->info));
	code = unit_exit_code(pid);
	end(thread);
	assert_int_equal(code, 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	ep_close(e);
}

UNIT_MAIN(
	EP_TEST(test_open),
	EP_TEST(test_nonsense_is_refused),
	EP_TEST(test_query),
	EP_TEST(test_alignment),
	EP_TEST(test_new_memory_is_zero),
	EP_TEST(test_random_blocks_are_apart),
	EP_TEST(test_what_peers_write_harms_nobody),
	EP_TEST(test_segments_go_back),
	EP_TEST(test_pairs_grow_nothing),
	EP_TEST(test_close_with_blocks_in_use),
	EP_TEST_INSIDE(test_a_limit_is_an_error),
	EP_TEST(test_small_board),
	EP_TEST(test_a_forked_child_has_none),
	EP_TEST_INSIDE(test_domains_do_not_wait),
	EP_TEST_INSIDE(test_fork_during_an_alloc),
)
