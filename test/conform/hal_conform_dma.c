/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_dma.c - laws of cDMA: one completion per transfer, from the poll,
 * after the data, whatever happens.
 */
#include "conform/hal_conform.h"
#include "lib/proc_files.h"

#define GUARD	64
#define BIG	(24u << 20)
#define THREADS	3u
#define SHARE	(64u << 10)	/* bytes of each thread */

/* ---- Helpers --------------------------------------------------------- */

int ct_dma_post(struct ct_if *ci, const struct hal_dma *dma, uint64_t token)
{
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_dma_post(ci->hif, dma, token)) == -FI_EAGAIN) {
		if (ct_now() > end)
			return -FI_ETIMEDOUT;
		ct_step_both(ci);
	}
	return ret;
}

/* The one completion to come; its status, or -FI_ETIMEDOUT. */
static int wait_one(struct ct_if *ci, uint64_t token)
{
	struct hal_dma_comp comp = { 0 };
	uint64_t end = ct_deadline();
	int n;

	while ((n = hal_dma_poll(ci->hif, &comp, 1)) == 0) {
		if (ct_now() > end)
			return -FI_ETIMEDOUT;
		ct_step_both(ci);
	}
	return n == 1 && comp.token == token ? comp.status : -FI_EOTHER;
}

int ct_dma_run(struct ct_if *ci, const struct hal_dma *dma)
{
	static atomic_ulong tokens;
	uint64_t token;
	int ret, tries = 30;		/* a real error comes each time */

	do {
		token = atomic_fetch_add(&tokens, 1) * UINT64_C(0x10001);
		ret = ct_dma_post(ci, dma, token);
		if (ret == 0)
			ret = wait_one(ci, token);
	} while (ret == -FI_EIO && ct_faulty() && --tries != 0);
	return ret;
}

/* Memory of b, imported by a, and memory of a; both dmable. */
struct arena {
	struct ct_pair p;
	struct hal_mem *rmem_own, *lmem;
	struct hal_rmem *rmem;
	uint8_t *remote, *local;
	size_t bytes;
};

static struct arena arena(size_t bytes)
{
	struct arena ar = { .p = ct_pair(0, (int)ct_caps->boards - 1),
			    .bytes = bytes };
	struct hal_key key;
	void *addr;

	assert_int_equal(ct_mem_alloc((int)ct_caps->boards - 1, bytes,
				      &ar.rmem_own, &addr), 0);
	ar.remote = addr;
	assert_int_equal(ct_mem_alloc(0, bytes, &ar.lmem, &addr), 0);
	ar.local = addr;
	assert_int_equal(hal_mem_key(ct_hal, ar.rmem_own, &key), 0);
	assert_int_equal(ct_import(ar.p.ab, &key, &ar.rmem), 0);
	return ar;
}

static void arena_free(struct arena *ar)
{
	if (ar->rmem != NULL)
		hal_mem_release(ar->p.ab, ar->rmem);
	hal_mem_free(ct_hal, ar->rmem_own);
	hal_mem_free(ct_hal, ar->lmem);
}

static struct hal_dma transfer(const struct arena *ar, enum hal_dma_op op,
			       uint64_t roff, uint64_t loff, uint64_t len)
{
	return (struct hal_dma){ .op = op, .peer = ar->p.ab, .rmem = ar->rmem,
				 .raddr = roff, .local = ar->local + loff,
				 .len = len };
}

/* Nothing more may come. */
static void expect_silence(struct ct_if *ci)
{
	struct hal_dma_comp comp[4];

	for (int i = 0; i < 200; i++) {
		assert_int_equal(hal_dma_poll(ci->hif, comp, 4), 0);
		ct_step_all();
		if (i % 50 == 0)
			ct_nap(1000);
	}
}

/* ---- Content --------------------------------------------------------- */

/* One transfer each way between two buffers; no byte beside it is touched. */
static void copy_both_ways(struct ct_if *ci, struct hal_dma *d, uint8_t *target,
			   uint64_t len)
{
	uint8_t *local = d->local;

	for (int op = HAL_DMA_GET; op <= HAL_DMA_PUT; op++) {
		uint8_t *to = op == HAL_DMA_GET ? local : target;
		uint8_t *from = op == HAL_DMA_GET ? target : local;

		memset(from - GUARD, 0x5a, len + 2 * GUARD);
		memset(to - GUARD, 0xa5, len + 2 * GUARD);
		ct_fill(from, len, len + op);
		d->op = op;
		d->len = len;
		assert_int_equal(ct_dma_run(ci, d), 0);
		assert_true(ct_filled(to, len, len + op));
		for (int i = 0; i < GUARD; i++) {
			assert_int_equal(to[-1 - i], 0xa5);
			assert_int_equal(to[len + i], 0xa5);
		}
	}
}

static const uint64_t sizes[] = { 1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 4095,
	4096, 4097, 65537, (1 << 18) - 1, (1 << 20) + 13, (8 << 20) + 5 };

/* Every size and alignment, get and put, arrives, and nothing beside it. */
static void dma_every_size(void **state)
{
	struct arena ar = arena(9 << 20);

	for (unsigned i = 0; i < CT_COUNT(sizes); i++) {
		for (unsigned shift = 0; shift < 4; shift++) {
			uint64_t roff = GUARD + shift * 5;
			uint64_t loff = GUARD + shift * 3;
			struct hal_dma d = transfer(&ar, HAL_DMA_GET, roff,
						    loff, 0);

			if (sizes[i] > 100000 && shift > 1)
				break;
			copy_both_ways(ar.p.a, &d, ar.remote + roff, sizes[i]);
		}
	}
	arena_free(&ar);
}

/* No byte is a transfer, too: accepted, completed, nothing moved. */
static void dma_of_nothing(void **state)
{
	struct arena ar = arena(4096);

	memset(ar.local, 1, 4096);
	memset(ar.remote, 2, 4096);
	for (int op = HAL_DMA_GET; op <= HAL_DMA_PUT; op++) {
		struct hal_dma d = transfer(&ar, op, 4096, 0, 0);

		assert_int_equal(ct_dma_run(ar.p.a, &d), 0);
		d.raddr = 17;
		assert_int_equal(ct_dma_run(ar.p.a, &d), 0);
	}
	for (int i = 0; i < 4096; i++)
		assert_true(ar.local[i] == 1 && ar.remote[i] == 2);
	expect_silence(ar.p.a);
	arena_free(&ar);
}

/* Outside the region nothing is accepted, whatever wraps around. */
static void dma_bounds(void **state)
{
	static const struct { uint64_t at, len; } bad[] = {
		{ 0, 8193 }, { 1, 8192 }, { 8192, 1 }, { 8193, 0 },
		{ 1 << 20, 1 }, { UINT64_MAX, 2 }, { UINT64_MAX - 4, 8 },
		{ 8, UINT64_MAX }, { 8, UINT64_MAX - 7 },
		{ UINT64_C(1) << 63, UINT64_C(1) << 63 },
	};
	struct arena ar = arena(8192);
	struct hal_dma d;

	for (int op = HAL_DMA_GET; op <= HAL_DMA_PUT; op++) {
		for (unsigned i = 0; i < CT_COUNT(bad); i++) {
			d = transfer(&ar, op, bad[i].at, 0, bad[i].len);
			assert_int_equal(ct_dma_post(ar.p.a, &d, i),
					 -FI_EINVAL);
		}
		d = transfer(&ar, op, 8191, 0, 1);
		assert_int_equal(ct_dma_run(ar.p.a, &d), 0);
	}
	d = transfer(&ar, 3, 0, 0, 1);
	assert_int_equal(ct_dma_post(ar.p.a, &d, 1), -FI_EINVAL);
	expect_silence(ar.p.a);
	arena_free(&ar);
}

/* ---- Completions ----------------------------------------------------- */

/* A post only starts: five big ones cannot all be over when it returns. */
static void dma_never_inline(void **state)
{
	struct arena ar = arena(BIG);
	int inline_done = 0;

	for (int i = 0; i < 5; i++) {
		struct hal_dma d = transfer(&ar, i & 1 ? HAL_DMA_GET :
					    HAL_DMA_PUT, 0, 0, BIG);
		uint8_t *to = i & 1 ? ar.local : ar.remote;

		memset(i & 1 ? ar.remote : ar.local, i + 1, BIG);
		to[BIG - 1] = 0;
		to[0] = 0;
		assert_int_equal(ct_dma_post(ar.p.a, &d, i), 0);
		inline_done += to[BIG - 1] != 0 && to[0] != 0;
		assert_true(wait_one(ar.p.a, i) == 0 || ct_faulty());
	}
	assert_in_range(inline_done, 0, 4);
	arena_free(&ar);
}

/* One poll does a bounded amount of work, however much there is. */
static void dma_poll_is_bounded(void **state)
{
	struct arena ar = arena(BIG);
	struct hal_dma d = transfer(&ar, HAL_DMA_PUT, 0, 0, BIG);
	struct hal_dma_comp comp;
	int all_done = 0;

	for (int i = 0; i < 5; i++) {
		memset(ar.local, i + 1, BIG);
		assert_int_equal(ct_dma_post(ar.p.a, &d, i), 0);
		if (hal_dma_poll(ar.p.a->hif, &comp, 1) == 1)
			all_done++;
		else
			assert_true(wait_one(ar.p.a, i) == 0 || ct_faulty());
	}
	assert_in_range(all_done, 0, 4);
	arena_free(&ar);
}

/* Where transfer i of a batch lies, how long it is, which way it goes. */
static struct hal_dma nth(const struct arena *ar, uint64_t i, uint64_t slots)
{
	uint64_t rng = i, slot = ar->bytes / slots;
	uint64_t r = ct_random(&rng);
	uint64_t at = i % slots * slot;

	return transfer(ar, r & 1 ? HAL_DMA_GET : HAL_DMA_PUT, at, at,
			(r >> 8) % (r & 2 ? 64 : slot) + 1);
}

static uint8_t *source(const struct arena *ar, const struct hal_dma *d)
{
	return d->op == HAL_DMA_GET ? ar->remote + d->raddr : d->local;
}

static uint8_t *target(const struct arena *ar, const struct hal_dma *d)
{
	return d->op == HAL_DMA_GET ? d->local : ar->remote + d->raddr;
}

/* Post until refused or all are posted. */
static void post_some(struct arena *ar, uint64_t *posted, uint64_t done,
		      uint64_t total)
{
	while (*posted < total && *posted - done < ct_caps->dma_depth) {
		struct hal_dma d = nth(ar, *posted, ct_caps->dma_depth);
		int ret;

		ct_fill(source(ar, &d), d.len, *posted);
		memset(target(ar, &d), 0, d.len);
		ret = hal_dma_post(ar->p.a->hif, &d, ~*posted);
		if (ret == -FI_EAGAIN)
			return;
		assert_int_equal(ret, 0);
		++*posted;
	}
}

/*
 * Batches of full depth: each token comes once, with its data there, and a
 * place in the arena is used again only when its transfer is over.
 */
static void dma_one_completion_after_data(void **state)
{
	struct arena ar = arena(2 << 20);
	uint64_t total = (uint64_t)ct_opt.packets / 100, end = ct_deadline();
	uint64_t posted = 0, done = 0;
	bool *seen = test_calloc(total, sizeof(*seen));

	while (done < total) {
		struct hal_dma_comp comp[7];
		uint64_t batch = posted;
		int n;

		if (posted == done) {
			batch = posted + ct_caps->dma_depth;
			if (batch > total)
				batch = total;
			while (posted < batch)
				post_some(&ar, &posted, done, batch);
		}
		n = hal_dma_poll(ar.p.a->hif, comp, 7);
		assert_in_range(n, 0, 7);
		for (int i = 0; i < n; i++) {
			uint64_t k = ~comp[i].token;
			struct hal_dma d = nth(&ar, k, ct_caps->dma_depth);

			assert_true(k < posted && !seen[k]);
			seen[k] = true;
			done++;
			end = ct_deadline();
			if (comp[i].status == -FI_EIO && ct_faulty())
				continue;
			assert_int_equal(comp[i].status, 0);
			assert_true(ct_filled(target(&ar, &d), d.len, k));
		}
		if (ct_now() > end)
			ct_fail("%llu of %llu completions came",
				(unsigned long long)done,
				(unsigned long long)posted);
		if (n == 0)
			ct_step_both(ar.p.a);
	}
	expect_silence(ar.p.a);
	test_free(seen);
	arena_free(&ar);
}

/* dma_depth transfers may be outstanding, not one more, not one less. */
static void dma_depth_exact(void **state)
{
	struct arena ar = arena(64 * 1024);
	uint32_t depth = ct_caps->dma_depth, n;
	struct hal_dma_comp comp;
	struct hal_dma d = transfer(&ar, HAL_DMA_PUT, 0, 0, 1024);
	uint64_t end;

	for (int round = 0; round < 5; round++) {
		for (n = 0; n < depth; n++)
			assert_int_equal(ct_faulty() ?
				ct_dma_post(ar.p.a, &d, n) :
				hal_dma_post(ar.p.a->hif, &d, n), 0);
		for (int i = 0; i < 100; i++)
			assert_int_equal(hal_dma_post(ar.p.a->hif, &d, n),
					 -FI_EAGAIN);
		for (n = 0, end = ct_deadline(); n < depth; ) {
			assert_true(ct_now() < end);
			if (hal_dma_poll(ar.p.a->hif, &comp, 1) == 0) {
				ct_step_both(ar.p.a);
				continue;
			}
			/* each makes room for one */
			if (n++ == 0) {
				assert_int_equal(ct_dma_post(ar.p.a, &d, 99),
						 0);
				assert_int_equal(hal_dma_post(ar.p.a->hif, &d,
							      99), -FI_EAGAIN);
			}
		}
		assert_true(wait_one(ar.p.a, comp.token) != -FI_ETIMEDOUT);
		expect_silence(ar.p.a);
	}
	arena_free(&ar);
}

/* Room for no completion takes none; room for one takes one. */
static void dma_poll_obeys_max(void **state)
{
	struct arena ar = arena(4096);
	struct hal_dma d = transfer(&ar, HAL_DMA_GET, 0, 0, 8);
	struct hal_dma_comp comp[2];
	uint64_t end = ct_deadline();
	int n = 0;

	for (int i = 0; i < 4; i++)
		assert_int_equal(ct_dma_post(ar.p.a, &d, i), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(hal_dma_poll(ar.p.a->hif, comp, 0), 0);
	while (n < 4) {
		comp[1].token = 77;
		assert_true(ct_now() < end);
		n += hal_dma_poll(ar.p.a->hif, comp, 1);
		assert_true(comp[1].token == 77);
		ct_step_both(ar.p.a);
	}
	expect_silence(ar.p.a);
	arena_free(&ar);
}

/* ---- Ends ------------------------------------------------------------ */

/* Take n completions of tokens 0 .. n-1; how many were cancelled. */
static unsigned take_cancelled(struct ct_if *ci, unsigned n)
{
	bool seen[256] = { false };
	struct hal_dma_comp comp;
	uint64_t end = ct_deadline();
	unsigned cancelled = 0;

	assert_true(n <= 256);
	for (unsigned got = 0; got < n;) {
		if (ct_now() > end)
			ct_fail("%u of %u completions came", got, n);
		ct_step_all();
		if (hal_dma_poll(ci->hif, &comp, 1) == 0)
			continue;
		assert_true(comp.token < n && !seen[comp.token]);
		seen[comp.token] = true;
		assert_true(comp.status == 0 || comp.status == -FI_ECANCELED ||
			    (comp.status == -FI_EIO && ct_faulty()));
		cancelled += comp.status == -FI_ECANCELED;
		got++;
	}
	expect_silence(ci);
	return cancelled;
}

static unsigned post_big(struct arena *ar, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct hal_dma d = transfer(ar, i & 1 ? HAL_DMA_GET :
					    HAL_DMA_PUT, 0, 0, ar->bytes);

		assert_int_equal(ct_dma_post(ar->p.a, &d, i), 0);
	}
	return n;
}

/* Giving up on a peer ends its transfers: each once, most of them cancelled. */
static void dma_cancelled_by_peer_free(void **state)
{
	struct arena ar = arena(4 << 20);
	unsigned n = post_big(&ar, ct_caps->dma_depth / 2);

	hal_mem_release(ar.p.ab, ar.rmem);
	ar.rmem = NULL;
	ct_peer_free(ar.p.ab);
	assert_true(take_cancelled(ar.p.a, n) > 0);
	arena_free(&ar);
}

static void dma_cancelled_by_peer_close(void **state)
{
	struct arena ar = arena(4 << 20);
	unsigned n = post_big(&ar, ct_caps->dma_depth / 2);

	ct_close(ar.p.b);
	ct_wait_event(ar.p.a, HAL_EV_DEAD, ar.p.ab);
	assert_true(take_cancelled(ar.p.a, n) > 0);
	arena_free(&ar);
}

/* One's own close drops them: afterwards nobody touches the memory. */
static void dma_dropped_by_close(void **state)
{
	struct arena ar = arena(4 << 20);
	uint8_t *copy = test_malloc(ar.bytes);
	struct hal_dma_comp comp;

	memset(ar.remote, 3, ar.bytes);
	post_big(&ar, ct_caps->dma_depth / 2);
	hal_dma_poll(ar.p.a->hif, &comp, 1);
	ar.rmem = NULL;			/* goes with its peer */
	ct_close(ar.p.a);
	memcpy(copy, ar.local, ar.bytes);
	memset(ar.remote, 4, ar.bytes);
	for (int i = 0; i < 20; i++) {
		ct_step_all();
		ct_nap(500);
	}
	assert_memory_equal(copy, ar.local, ar.bytes);
	test_free(copy);
	arena_free(&ar);
}

/* One who ends does not end the transfers with others. */
static void dma_others_go_on(void **state)
{
	struct arena ar = arena(4 << 20);
	struct ct_if *c = ct_open(0);
	struct ct_pair other = { ar.p.a, c, NULL, NULL };
	struct hal_dma d;
	unsigned n = ct_caps->dma_depth / 4;
	struct hal_key key;
	struct hal_rmem *rmem;

	ct_join(&other);
	assert_int_equal(hal_mem_key(ct_hal, ar.rmem_own, &key), 0);
	assert_int_equal(ct_import(other.ab, &key, &rmem), 0);
	for (unsigned i = 0; i < n; i++) {
		d = transfer(&ar, HAL_DMA_PUT, 0, 0, 1 << 20);
		if (i & 1) {
			d.peer = other.ab;
			d.rmem = rmem;
		}
		assert_int_equal(ct_dma_post(ar.p.a, &d, i), 0);
	}
	ct_close(ar.p.b);
	ct_wait_event(ar.p.a, HAL_EV_DEAD, ar.p.ab);
	/* those to c, at least, are not cancelled */
	assert_in_range(take_cancelled(ar.p.a, n), 1, n / 2);
	hal_mem_release(other.ab, rmem);
	arena_free(&ar);
}

/* ---- Ordinary memory ------------------------------------------------- */

static void dma_ordinary_memory(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint8_t *a, *b;

	unit_needs(p.ab->dma_any);
	a = test_malloc((9 << 20) + 2 * GUARD);
	b = test_malloc((9 << 20) + 2 * GUARD);
	for (unsigned i = 0; i < CT_COUNT(sizes); i++) {
		struct hal_dma d = {
			.peer = p.ab, .local = a + GUARD,
			.raddr = (uintptr_t)(b + GUARD),
		};

		copy_both_ways(p.a, &d, b + GUARD, sizes[i]);
	}
	test_free(a);
	test_free(b);
}

/* Addresses that are not there: one completion, an error, no signal. */
static void dma_ordinary_bad_address(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	size_t page = 4096, len = 4 * page;
	uint8_t *local, *map;
	struct hal_dma d;

	unit_needs(p.ab->dma_any);
	local = test_malloc(len);
	map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + 2 * page, 2 * page, PROT_NONE), 0);
	for (int i = 0; i < 40; i++) {
		const uint64_t at[] = { (uintptr_t)(map + 2 * page),
			(uintptr_t)(map + page), 4096, UINT64_MAX - 4095,
			UINT64_C(1) << 63 };

		d = (struct hal_dma){ .op = i & 1 ? HAL_DMA_GET : HAL_DMA_PUT,
				      .peer = p.ab, .raddr = at[i / 2 % 5],
				      .local = local, .len = 2 * page };
		assert_true(ct_dma_run(p.a, &d) < 0);
		expect_silence(p.a);
	}
	/* the peer is none the worse for it */
	d.raddr = (uintptr_t)map;
	assert_int_equal(ct_dma_run(p.a, &d), 0);
	munmap(map, len);
	test_free(local);
}

/* Memory that its owner may only read is not written: no kernel interface that
 * overrides page protections. Nor does reaching memory cost a descriptor. */
static void dma_ordinary_read_only(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	size_t len = 4 * 4096;
	uint8_t *local, *map;
	struct hal_dma d;
	int fds;

	unit_needs(p.ab->dma_any);
	local = test_calloc(1, len);
	map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(map != MAP_FAILED);
	memset(map, 0x3C, len);
	d = (struct hal_dma){ .peer = p.ab, .raddr = (uintptr_t)map,
			      .local = local };
	fds = proc_self_fds();
	for (int i = 0; i < 4; i++) {
		d.len = i & 1 ? 8 : len;
		d.op = HAL_DMA_PUT;
		assert_int_equal(mprotect(map, len, PROT_READ), 0);
		assert_int_equal(ct_dma_run(p.a, &d), -FI_EFAULT);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(map[k], 0x3C);
		d.op = HAL_DMA_GET;
		assert_int_equal(ct_dma_run(p.a, &d), 0);
		assert_int_equal(local[d.len - 1], 0x3C);
		assert_int_equal(mprotect(map, len, PROT_NONE), 0);
		assert_int_equal(ct_dma_run(p.a, &d), -FI_EFAULT);
		d.op = HAL_DMA_PUT;
		assert_int_equal(ct_dma_run(p.a, &d), -FI_EFAULT);
		assert_int_equal(mprotect(map, len, PROT_READ | PROT_WRITE),
				 0);
		assert_int_equal(ct_dma_run(p.a, &d), 0);
	}
	assert_int_equal(proc_self_fds(), fds);
	munmap(map, len);
	test_free(local);
}

/* Where only dmable memory is reached, the post says so. */
static void dma_ordinary_refused(void **state)
{
	struct arena ar = arena(4096);
	struct hal_dma d = transfer(&ar, HAL_DMA_PUT, 0, 0, 64);
	uint8_t *ordinary = test_malloc(64);
	int ret;

	if (ct_caps->flags & HAL_CAP_DMA_ANY && !ct_net()) {
		test_free(ordinary);
		arena_free(&ar);
		skip();
	}
	assert_false(ar.p.ab->dma_any);
	d.rmem = NULL;
	d.raddr = (uintptr_t)ordinary;
	ret = ct_dma_post(ar.p.a, &d, 1);
	assert_true(ret == -FI_EACCES || ret == -FI_EINVAL);
	d = transfer(&ar, HAL_DMA_PUT, 0, 0, 64);
	d.local = ordinary;
	if (ct_caps->flags & HAL_CAP_DMA_ANY) {	/* local memory may be any */
		assert_int_equal(ct_dma_run(ar.p.a, &d), 0);
	} else {
		ret = ct_dma_post(ar.p.a, &d, 1);
		assert_true(ret == -FI_EACCES || ret == -FI_EINVAL);
	}
	expect_silence(ar.p.a);
	test_free(ordinary);
	arena_free(&ar);
}

/* ---- Threads --------------------------------------------------------- */

struct busy {
	struct arena ar;
	uint64_t seed;
	const char *error;
};

/* New memory, put to the peer's and got back. */
static const char *there_and_back(struct busy *b, uint64_t seed)
{
	struct hal_dma d = transfer(&b->ar, HAL_DMA_PUT, 0, 0, SHARE);
	const char *error = NULL;
	struct hal_mem *mem;
	void *addr;

	if (hal_mem_alloc(ct_hal, -1, SHARE, &mem, &addr) != 0)
		return "no memory";
	d.local = addr;
	ct_fill(addr, SHARE, seed);
	if (ct_dma_run(b->ar.p.a, &d) != 0)
		error = "put";
	else if (!ct_filled(b->ar.remote, SHARE, seed))
		error = "its completion came before its data";
	memset(addr, 0, SHARE);
	d.op = HAL_DMA_GET;
	if (error == NULL && ct_dma_run(b->ar.p.a, &d) != 0)
		error = "get";
	else if (error == NULL && !ct_filled(addr, SHARE, seed))
		error = "what came back is not what went";
	hal_mem_free(ct_hal, mem);
	return error;
}

static void *busy_thread(void *arg)
{
	struct busy *b = arg;

	for (uint64_t i = 0; i < 50 && b->error == NULL; i++)
		b->error = there_and_back(b, b->seed << 32 | i);
	return NULL;
}

/* Threads with interfaces of their own share memory and engine (law 1.2). */
static void dma_between_threads(void **state)
{
	pthread_t thread[THREADS];
	struct busy busy[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		busy[i] = (struct busy){ .ar = arena(SHARE), .seed = i + 1 };
	for (unsigned i = 0; i < THREADS; i++)
		thread[i] = unit_thread(busy_thread, &busy[i]);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		if (busy[i].error != NULL)
			ct_fail("thread %u: %s", i, busy[i].error);
		arena_free(&busy[i].ar);
	}
}

const struct CMUnitTest ct_dma_tests[] = {
	CT_TEST(dma_every_size),
	CT_TEST(dma_of_nothing),
	CT_TEST(dma_bounds),
	CT_TEST(dma_never_inline),
	CT_TEST(dma_poll_is_bounded),
	CT_TEST(dma_one_completion_after_data),
	CT_TEST(dma_depth_exact),
	CT_TEST(dma_poll_obeys_max),
	CT_TEST(dma_cancelled_by_peer_free),
	CT_TEST(dma_cancelled_by_peer_close),
	CT_TEST(dma_dropped_by_close),
	CT_TEST(dma_others_go_on),
	CT_TEST(dma_between_threads),
	CT_TEST(dma_ordinary_memory),
	CT_TEST(dma_ordinary_bad_address),
	CT_TEST(dma_ordinary_read_only),
	CT_TEST(dma_ordinary_refused),
};
const size_t ct_dma_count = CT_COUNT(ct_dma_tests);
