/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_address.c - how an initiator addresses the bytes of a region: keys and
 * addresses under every mr_mode, and addresses that need more than 32 bits.
 */
#include "lib/ep_xfer.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define LEN	((size_t)300000)
#define MODES	(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | \
		 FI_MR_ENDPOINT)

/* A region of one endpoint, as another endpoint addresses it. */
struct reach {
	struct ep *from;
	fi_addr_t to;
	uint8_t *mem;
	uint64_t base, key;
};

static void put(const struct reach *r, const void *buf, size_t len,
		uint64_t addr, int err)
{
	struct fi_context2 ctx;

	EP_OK(fi_write(r->from->ep, buf, len, NULL, r->to, addr, r->key,
		       &ctx));
	assert_int_equal(ep_wait(r->from, &ctx).err, err);
}

static void get(const struct reach *r, void *buf, size_t len, uint64_t addr,
		int err)
{
	struct fi_context2 ctx;

	EP_OK(fi_read(r->from->ep, buf, len, NULL, r->to, addr, r->key, &ctx));
	assert_int_equal(ep_wait(r->from, &ctx).err, err);
}

/* Put len bytes at an offset and get them back. */
static void round_trip(const struct reach *r, size_t len, uint64_t at)
{
	uint8_t *out = malloc(len), *in = calloc(1, len);

	xfer_fill(out, len, len + at, 0);
	put(r, out, len, r->base + at, 0);
	assert_memory_equal(r->mem + at, out, len);
	get(r, in, len, r->base + at, 0);
	assert_memory_equal(in, out, len);
	free(in);
	free(out);
}

/* Add, add and fetch, swap: two words at an offset, aligned or not. */
static void atomics(const struct reach *r, uint64_t at)
{
	uint64_t was[2] = { 1000, UINT64_MAX }, one[2] = { 1, 1 };
	uint64_t got[2] = { 0 }, cmp[2] = { 1002, 1 }, new[2] = { 7, 7 };
	struct fid_ep *ep = r->from->ep;
	uint64_t addr = r->base + at;
	struct fi_context2 ctx[3];

	memcpy(r->mem + at, was, 16);
	EP_OK(fi_atomic(ep, one, 2, NULL, r->to, addr, r->key, FI_UINT64,
			FI_SUM, &ctx[0]));
	assert_int_equal(ep_wait(r->from, &ctx[0]).err, 0);
	EP_OK(fi_fetch_atomic(ep, one, 2, NULL, got, NULL, r->to, addr, r->key,
			      FI_UINT64, FI_SUM, &ctx[1]));
	assert_int_equal(ep_wait(r->from, &ctx[1]).err, 0);
	assert_true(got[0] == 1001 && got[1] == 0);
	EP_OK(fi_compare_atomic(ep, new, 2, NULL, cmp, NULL, got, NULL, r->to,
				addr, r->key, FI_UINT64, FI_CSWAP, &ctx[2]));
	assert_int_equal(ep_wait(r->from, &ctx[2]).err, 0);
	assert_true(got[0] == 1002 && got[1] == 1);
	memcpy(got, r->mem + at, 16);
	assert_true(got[0] == 7 && got[1] == 7);
}

/* ---- Modes --------------------------------------------------------------- */

/* Accesses that are not inside the region's len bytes are refused. */
static void refused(const struct reach *r, int mode, size_t len)
{
	uint64_t other = mode & FI_MR_VIRT_ADDR ? 0 : (uintptr_t)r->mem;
	uint8_t buf[16] = { 0 }, last = r->mem[len - 1];

	put(r, buf, 1, r->base + len, FI_EINVAL);
	get(r, buf, 1, r->base + len, FI_EINVAL);
	put(r, buf, 16, r->base + len - 15, FI_EINVAL);
	put(r, buf, 16, r->base - 1, FI_EINVAL);
	get(r, buf, 1, r->base - 1, FI_EINVAL);
	put(r, buf, 16, other, FI_EINVAL);
	get(r, buf, 16, other, FI_EINVAL);
	assert_int_equal(r->mem[len - 1], last);
}

static void one_mode(enum os_way way, int mode)
{
	struct ep_want want = { .mr_mode = mode };
	struct os_pair p = os_open_as(way, LEN, &want, &want);
	uint8_t *back = os_alloc(p.a, way, LEN);
	struct fid_mr *mr = os_reg(p.a, back, LEN, OS_ALL, 55);
	struct reach r[2] = {
		{ p.a, p.ab, p.mem, p.base, p.key },
		{ p.b, p.ba, back, 0, fi_mr_key(mr) },
	};
	uint64_t direct = os_direct(&p);

	if (mode & FI_MR_VIRT_ADDR)
		r[1].base = (uintptr_t)back;
	assert_int_equal(p.b->info->domain_attr->mr_mode, mode);
	assert_int_equal(r[1].key == 55, !(mode & FI_MR_PROV_KEY));
	for (int i = 0; i < 2; i++) {
		round_trip(&r[i], 8, 0);
		round_trip(&r[i], 8, LEN - 8);
		round_trip(&r[i], 5000, 77);
		round_trip(&r[i], LEN, 0);
		atomics(&r[i], 64);
		atomics(&r[i], 4099);
		refused(&r[i], mode, LEN);
		if (mode & FI_MR_PROV_KEY) {	/* the requested key */
			r[i].key = 55;
			put(&r[i], "", 1, r[i].base, FI_EKEYREJECTED);
		}
	}
	/* the mode does not change the data path */
	assert_true(way == OS_REQUESTS ? os_direct(&p) == 0 :
		    os_direct(&p) >= direct + 8);
	assert_int_equal(fi_close(&mr->fid), 0);
	os_free(p.a, way, back);
	os_close(&p);
}

static void test_every_mode_both_directions(void **state)
{
	for (int way = 0; way < OS_WAYS; way++)
		for (int mode = 0; mode <= MODES; mode++)
			if ((mode & ~MODES) == 0 && os_runs(way))
				one_mode(way, mode);
}

/* With FI_MR_ENDPOINT a region belongs to the endpoint that it is bound to,
 * from the time when it is enabled. The domain's other endpoint does not accept
 * its key. */
static void test_only_where_it_was_bound(void **state)
{
	for (int way = 0; way < OS_WAYS; way++) {
		struct ep_want want = { .mr_mode = FI_MR_ENDPOINT };
		struct reach here, there;
		struct fid_mr *mr;
		struct os_pair p;
		struct ep *other;
		uint8_t mem[64] = { 0 };

		if (!os_runs(way))
			continue;
		p = os_open_as(way, 4096, &want, &want);
		want.with = p.b;
		other = ep_open(&want);
		here = (struct reach){ p.a, p.ab, mem, 0, 77 };
		there = (struct reach){ p.a, ep_insert(p.a, other), mem, 0,
					77 };
		assert_int_equal(fi_mr_reg(p.b->domain, mem, 64, OS_ALL, 0, 77,
					   0, &mr, NULL), 0);
		put(&here, "a", 1, 0, FI_EKEYREJECTED);
		assert_int_equal(fi_mr_bind(mr, &p.b->ep->fid, 0), 0);
		put(&here, "a", 1, 0, FI_EKEYREJECTED);
		assert_int_equal(fi_mr_enable(mr), 0);
		for (int i = 0; i < 4; i++) {	/* also with a cached remote
						 * key */
			put(&there, "a", 1, 0, FI_EKEYREJECTED);
			assert_int_equal(mem[0], 0);
			put(&here, "b", 1, 1, 0);
			assert_int_equal(mem[1], 'b');
			ep_settle();
		}
		assert_int_equal(fi_close(&mr->fid), 0);
		put(&here, "a", 1, 0, FI_EKEYREJECTED);
		ep_close(other);
		os_close(&p);
	}
}

/* A raw key, as programs exchange it, together with its base address. */
static void test_raw_keys_lead_there(void **state)
{
	for (int virt = 0; virt < 2; virt++) {
		struct ep_want want = {
			.mr_mode = FI_MR_PROV_KEY | (virt ? FI_MR_VIRT_ADDR :
						     0),
		};
		struct os_pair p = os_open_as(OS_REQUESTS, LEN, &want, &want);
		struct reach r = { p.a, p.ab, p.mem, 0, 0 };
		uint8_t raw[8];
		size_t size = sizeof(raw);

		assert_int_equal(fi_mr_raw_attr(p.mr, &r.base, raw, &size, 0),
				 0);
		assert_int_equal(fi_mr_map_raw(p.a->domain, r.base, raw, size,
					       &r.key, 0), 0);
		round_trip(&r, 5000, 11);
		atomics(&r, 64);
		assert_int_equal(fi_mr_unmap_key(p.a->domain, r.key), 0);
		os_close(&p);
	}
}

/* ---- Offsets above 4 GiB ------------------------------------------------- */

#define GIB4	(UINT64_C(1) << 32)
#define TAIL	((size_t)1 << 20)	/* bytes behind GIB4 */

static bool all_zero(const uint8_t *p, size_t len)
{
	return p[0] == 0 && memcmp(p, p + 1, len - 1) == 0;
}

/* Accesses across the 4 GiB boundary and beyond it. Nothing is written where
 * the lower 32 bits of an offset would point. */
static void across(const struct reach *r)
{
	round_trip(r, 8, GIB4 - 4);
	round_trip(r, 5000, GIB4 - 2500);
	round_trip(r, 600000, GIB4 - 300000);
	round_trip(r, 8, GIB4);
	round_trip(r, 5000, GIB4 + TAIL - 5000);
	atomics(r, GIB4 - 8);
	atomics(r, GIB4 - 11);
	atomics(r, GIB4 + 64);
	refused(r, r->base != 0 ? FI_MR_VIRT_ADDR : 0, GIB4 + TAIL);
	assert_true(all_zero(r->mem, TAIL));
}

/* A region of two pieces, of which the first is longer than 4 GiB. */
static void second_piece(const struct os_pair *p, const struct reach *r)
{
	uint8_t more[4096] = { 0 }, in[300];
	struct iovec iov[2] = {
		{ r->mem, GIB4 + TAIL }, { more, sizeof(more) },
	};
	struct reach both = *r;
	struct fid_mr *mr;

	xfer_fill(in, sizeof(in), 3, 0);
	both.key = 99;
	assert_int_equal(fi_mr_regv(p->b->domain, iov, 2, OS_ALL, 0, 99, 0,
				    &mr, NULL), 0);
	put(&both, in, sizeof(in), r->base + GIB4 + TAIL - 100, 0);
	assert_memory_equal(r->mem + GIB4 + TAIL - 100, in, 100);
	assert_memory_equal(more, in + 100, 200);
	memset(in, 0, sizeof(in));
	get(&both, in, sizeof(in), r->base + GIB4 + TAIL - 100, 0);
	assert_true(xfer_filled(in, sizeof(in), 3, 0));
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_true(all_zero(r->mem, TAIL));
}

/* Sparse memory: only the pages that are accessed are allocated. */
static uint8_t *sparse(void)
{
	void *mem = mmap(NULL, GIB4 + TAIL, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem != MAP_FAILED ? mem : NULL;
}

static void test_across_4_gib(void **state)
{
	for (int i = 0; i < 4; i++) {
		enum os_way way = i & 1 ? OS_ATTACH : OS_REQUESTS;
		struct ep_want want = { .mr_mode = i & 2 ? FI_MR_VIRT_ADDR :
						0 };
		struct reach r;
		struct os_pair p;
		struct fid_mr *mr;
		uint64_t direct;

		if (!os_runs(way))
			continue;
		r.mem = sparse();
		if (r.mem == NULL) {
			print_message("no 4 GiB of addresses to be had\n");
			skip();
		}
		p = os_open_as(way, 64, &want, &want);
		mr = os_reg(p.b, r.mem, GIB4 + TAIL, OS_ALL, 88);
		r.from = p.a;
		r.to = p.ab;
		r.base = i & 2 ? (uintptr_t)r.mem : 0;
		r.key = 88;
		direct = os_direct(&p);
		across(&r);
		assert_true(way == OS_REQUESTS ? os_direct(&p) == 0 :
			    os_direct(&p) >= direct + 5);
		second_piece(&p, &r);
		assert_int_equal(fi_close(&mr->fid), 0);
		os_close(&p);
		munmap(r.mem, GIB4 + TAIL);
	}
}

UNIT_MAIN(
	EP_TEST(test_every_mode_both_directions),
	EP_TEST(test_only_where_it_was_bound),
	EP_TEST(test_raw_keys_lead_there),
	EP_TEST(test_across_4_gib),
)
