/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mr_reach.c - the bytes that an access by a peer reaches: the region of a
 * key, and the bytes of the region that an address and a length select. All
 * addresses and lengths around each edge are compared with a list of single
 * bytes.
 */
#include "api/unm_domain.h"
#include "api/unm_ep.h"
#include "api/unm_mr.h"
#include "core/unm_ep_state.h"
#include "core/unm_region.h"
#include "lib/ep_pair.h"
#include "unm_offer.h"

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define BIT63	(UINT64_C(1) << 63)
#define TOP	UINT64_MAX

static struct unm_domain *domain_of(struct ep *e)
{
	return unm_domain(e->domain);
}

static struct fid_mr *reg(struct ep *e, const struct iovec *iov, size_t n,
			  uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_regv(e->domain, iov, n, access, 0, key, 0, &mr,
				    NULL), 0);
	return mr;
}

static struct fid_mr *reg_one(struct ep *e, const void *buf, size_t len,
			      uint64_t access, uint64_t key)
{
	struct iovec iov = { (void *)buf, len };

	return reg(e, &iov, 1, access, key);
}

static struct unm_mr *inside(struct fid_mr *mr)
{
	return unm_container(mr, struct unm_mr, fid);
}

static void close_mr(struct fid_mr *mr)
{
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* ---- Bounds ------------------------------------------------------------ */

#define BYTES_MAX	128

/* A region as a list of the addresses of its bytes. */
struct plan {
	char *byte[BYTES_MAX];
	uint64_t len;
};

static void plan_add(struct plan *p, const struct iovec *iov)
{
	for (size_t i = 0; i < iov->iov_len; i++)
		p->byte[p->len++] = (char *)iov->iov_base + i;
}

/* Are these pieces the bytes from..from + len of the plan, in order? */
static void check_pieces(const struct plan *p, uint64_t from, uint64_t len,
			 const struct iovec *pieces, size_t count)
{
	uint64_t at = from;

	assert_in_range(count, 1, UNM_IOV_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_true(pieces[i].iov_len != 0 || (len == 0 && count == 1));
		for (size_t b = 0; b < pieces[i].iov_len; b++) {
			assert_true(at < from + len);
			assert_ptr_equal((char *)pieces[i].iov_base + b,
					 p->byte[at++]);
		}
	}
	assert_true(at == from + len);
}

static void check_access(const struct unm_mr *mr, const struct plan *p,
			 uint64_t off, uint64_t len)
{
	struct iovec pieces[UNM_IOV_MAX + 1];
	bool fits = off <= p->len && len <= p->len - off;
	size_t count = 99;
	int ret;

	memset(pieces, 0x5a, sizeof(pieces));
	ret = unm_mr_reach(mr, mr->base + off, len, FI_REMOTE_READ, pieces,
			   &count);
	if (ret != (fits ? 0 : -FI_EINVAL))
		unit_fail("offset %lld, %llu bytes of %llu: %d",
			  (long long)off, (unsigned long long)len,
			  (unsigned long long)p->len, ret);
	if (ret == 0)
		check_pieces(p, off, len, pieces, count);
	else
		assert_int_equal(count, 99);
	assert_int_equal(((uint8_t *)&pieces[UNM_IOV_MAX])[0], 0x5a);
}

/* All accesses from 3 bytes before the region to 3 bytes behind it, also with
 * lengths and offsets whose sum wraps. */
static void walk(const struct unm_mr *mr, const struct plan *p)
{
	for (uint64_t off = -(uint64_t)3; off != p->len + 4; off++) {
		for (uint64_t len = 0; len <= p->len + 4; len++)
			check_access(mr, p, off, len);
		for (uint64_t len = TOP - p->len - 4; len != 0; len++)
			check_access(mr, p, off, len);
		check_access(mr, p, off, TOP / 2);
		check_access(mr, p, off, -off);
	}
	check_access(mr, p, TOP / 2 + 1, 0);
	check_access(mr, p, TOP / 2 + 1, TOP / 2 + 1);
}

static void test_every_edge_of_one_piece(void **state)
{
	static char bytes[32];

	for (int virt = 0; virt < 2; virt++) {
		struct ep_want want = { .mr_mode = virt ? FI_MR_VIRT_ADDR : 0 };
		struct ep *e = ep_open(&want);

		for (size_t len = 0; len < sizeof(bytes); len++) {
			struct iovec iov = { bytes + len % 3, len };
			struct fid_mr *mr = reg(e, &iov, 1, REMOTE, 1);
			struct plan p = { .len = 0 };

			assert_true(inside(mr)->base ==
				    (virt ? (uintptr_t)iov.iov_base : 0));
			plan_add(&p, &iov);
			walk(inside(mr), &p);
			close_mr(mr);
		}
		ep_close(e);
	}
}

/* Regions of 1 to 8 pieces, some of them empty, not ordered by address. */
static void test_every_edge_of_many_pieces(void **state)
{
	static char bytes[256];
	uint64_t rng = 7;

	for (int virt = 0; virt < 2; virt++) {
		struct ep_want want = { .mr_mode = virt ? FI_MR_VIRT_ADDR : 0 };
		struct ep *e = ep_open(&want);

		for (int round = 0; round < 80; round++) {
			size_t n = 1 + (size_t)round % UNM_IOV_MAX;
			struct iovec iov[UNM_IOV_MAX];
			struct plan p = { .len = 0 };
			struct fid_mr *mr;

			for (size_t i = 0; i < n; i++) {
				iov[i].iov_base = bytes +
					unit_below(&rng, 240);
				iov[i].iov_len = unit_below(&rng, 6);
				plan_add(&p, &iov[i]);
			}
			mr = reg(e, iov, n, REMOTE, 1);
			walk(inside(mr), &p);
			close_mr(mr);
		}
		ep_close(e);
	}
}

/* Checks an access of len bytes from addr on: accepted at the right address, or
 * refused. */
static void check_far(const struct unm_mr *mr, uint64_t addr, uint64_t len,
		      int err, uint64_t place)
{
	struct iovec pieces[UNM_IOV_MAX];
	size_t count = 0;
	int ret = unm_mr_reach(mr, addr, len, FI_REMOTE_WRITE, pieces, &count);

	if (ret != err)
		unit_fail("0x%llx, 0x%llx bytes: %d", (unsigned long long)addr,
			  (unsigned long long)len, ret);
	if (ret != 0)
		return;
	assert_int_equal(count, 1);
	assert_true((uintptr_t)pieces[0].iov_base == place);
	assert_true(pieces[0].iov_len == len);
}

/* A region (NULL, SIZE_MAX): its offsets are addresses, in every mode. */
static void test_the_whole_address_space(void **state)
{
	for (int virt = 0; virt < 2; virt++) {
		struct ep_want want = { .mr_mode = virt ? FI_MR_VIRT_ADDR : 0 };
		struct ep *e = ep_open(&want);
		struct fid_mr *mr = reg_one(e, NULL, SIZE_MAX, REMOTE, BIT63);
		const struct unm_mr *in = inside(mr);
		uint64_t here = (uintptr_t)&here;

		check_far(in, here, sizeof(here), 0, here);
		check_far(in, 0, 0, 0, 0);
		check_far(in, 0, SIZE_MAX, 0, 0);
		check_far(in, 1, SIZE_MAX - 1, 0, 1);
		check_far(in, 1, SIZE_MAX, -FI_EINVAL, 0);
		check_far(in, TOP, 0, 0, TOP);
		check_far(in, TOP, 1, -FI_EINVAL, 0);
		check_far(in, TOP - 7, 7, 0, TOP - 7);
		check_far(in, TOP - 7, 8, -FI_EINVAL, 0);
		check_far(in, here, TOP - here, 0, here);
		check_far(in, here, TOP - here + 1, -FI_EINVAL, 0);
		check_far(in, BIT63, BIT63, -FI_EINVAL, 0);
		check_far(in, BIT63, BIT63 - 1, 0, BIT63);
		close_mr(mr);
		ep_close(e);
	}
}

/* A region that ends with the last byte of the address space: its end is 0. */
static void test_a_region_at_the_top(void **state)
{
	const uint64_t base = TOP - 9;

	for (int virt = 0; virt < 2; virt++) {
		struct ep_want want = { .mr_mode = virt ? FI_MR_VIRT_ADDR : 0 };
		struct ep *e = ep_open(&want);
		struct fid_mr *mr = reg_one(e, (void *)base, 10, REMOTE, 1);
		const struct unm_mr *in = inside(mr);
		uint64_t first = virt ? base : 0;

		check_far(in, first, 10, 0, base);
		check_far(in, first, 11, -FI_EINVAL, 0);
		check_far(in, first + 9, 1, 0, TOP);
		check_far(in, first + 9, 2, -FI_EINVAL, 0);
		check_far(in, first + 10, 0, 0, 0);
		check_far(in, first + 10, 1, -FI_EINVAL, 0);
		check_far(in, first - 1, 1, -FI_EINVAL, 0);
		check_far(in, first - 1, 0, -FI_EINVAL, 0);
		check_far(in, first, TOP, -FI_EINVAL, 0);
		close_mr(mr);
		ep_close(e);
	}
}

static void test_rights(void **state)
{
	static const uint64_t right[] = { 0, FI_REMOTE_READ, FI_REMOTE_WRITE,
		REMOTE };
	static char bytes[8];
	struct ep *e = ep_open(NULL);
	struct iovec two[2] = { { bytes, 4 }, { bytes + 4, 4 } };

	for (int i = 0; i < 32; i++) {
		uint64_t has = right[i & 3], asks = right[i >> 2 & 3];
		struct fid_mr *mr = reg(e, two, 1 + (size_t)(i >> 4),
					has | FI_SEND | FI_WRITE, 1);
		struct iovec pieces[UNM_IOV_MAX];
		size_t count = 99;
		int err = asks & ~has ? -FI_EACCES : 0;

		assert_int_equal(unm_mr_reach(inside(mr), 0, 4, asks, pieces,
					      &count), err);
		assert_int_equal(count, err == 0 ? 1 : 99);
		/* without the right the error does not reveal the bounds */
		assert_int_equal(unm_mr_reach(inside(mr), 0, 99, asks, pieces,
					      &count),
				 err != 0 ? err : -FI_EINVAL);
		close_mr(mr);
	}
	ep_close(e);
}

/* ---- Keys -------------------------------------------------------------- */

static void test_found_by_its_key_only(void **state)
{
	static const uint64_t keys[] = { 0, 1, BIT63, BIT63 | 1, UINT32_MAX,
		UINT64_C(1) << 32, TOP, TOP - 1 };
	static char bytes[8];
	struct ep *e = ep_open(NULL), *other = ep_open(NULL);
	struct unm_mr *found = NULL;
	struct fid_mr *mr[8];

	for (int open = 0; open < 8; open++) {
		for (int i = 0; i < 8; i++) {
			int ret;

			found = NULL;
			ret = unm_mr_find(domain_of(e), keys[i], &found);
			assert_int_equal(ret, i < open ? 0 : -FI_EKEYREJECTED);
			assert_ptr_equal(found, i < open ? inside(mr[i]) :
					 NULL);
			assert_int_equal(unm_mr_find(domain_of(other),
						     keys[i], &found),
					 -FI_EKEYREJECTED);
		}
		mr[open] = reg_one(e, bytes + open, 1, REMOTE, keys[open]);
	}
	for (int i = 0; i < 8; i++)
		close_mr(mr[i]);
	ep_close(other);
	ep_close(e);
}

/* The region found last is cached, until it is closed. */
static void test_closed_is_not_found(void **state)
{
	static char old[8], new[16];
	struct ep *e = ep_open(NULL);
	struct fid_mr *mr = reg_one(e, old, 8, REMOTE, 5);
	struct fid_mr *next = reg_one(e, old, 8, REMOTE, 6);
	uint32_t number = inside(mr)->number;
	struct unm_mr *found;

	for (int i = 0; i < 2; i++)
		assert_int_equal(unm_mr_find(domain_of(e), 5, &found), 0);
	close_mr(mr);
	assert_int_equal(unm_mr_find(domain_of(e), 5, &found),
			 -FI_EKEYREJECTED);
	mr = reg_one(e, new, 16, FI_REMOTE_READ, 5);
	assert_true(inside(mr)->number != number);
	assert_true(inside(mr)->number != inside(next)->number);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(unm_mr_find(domain_of(e), 5 + i % 2, &found),
				 0);
		assert_ptr_equal(found, inside(i % 2 ? next : mr));
	}
	assert_int_equal(unm_mr_find(domain_of(e), 5, &found), 0);
	assert_ptr_equal(found->iov[0].iov_base, new);
	assert_int_equal(found->len, 16);
	close_mr(next);
	assert_int_equal(unm_mr_find(domain_of(e), 5, &found), 0);
	close_mr(mr);
	ep_close(e);
}

/* ---- FI_MR_ENDPOINT ---------------------------------------------------- */

static int find(struct ep *e, uint64_t key)
{
	struct unm_mr *mr;

	return unm_mr_find(domain_of(e), key, &mr);
}

static uint64_t nonce_of(struct ep *e)
{
	return unm_ep(e->ep)->hif->addr.nonce;
}

/* A region is found only after it was registered, bound and enabled, and only
 * by the endpoint that it is bound to. */
static void test_bound_then_enabled(void **state)
{
	struct ep_want want = { .mr_mode = FI_MR_ENDPOINT };
	struct ep *e = ep_open(&want), *strange = ep_open(&want), *guest;
	static char bytes[8];
	uint8_t raw[8];
	size_t size = sizeof(raw);
	uint64_t base;
	struct fid_mr *mr;

	want.with = e;
	guest = ep_open(&want);
	mr = reg_one(e, bytes, 8, REMOTE, 5);
	assert_int_equal(find(e, 5), -FI_EKEYREJECTED);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0),
			 -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_enable(mr), -FI_EOPBADSTATE);
	assert_int_equal(find(e, 5), -FI_EKEYREJECTED);
	assert_int_equal(fi_mr_bind(mr, &e->ep->fid, FI_REMOTE_WRITE),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &strange->ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_enable(mr), -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_bind(mr, &e->ep->fid, 0), 0);
	assert_int_equal(fi_mr_bind(mr, &guest->ep->fid, 0), -FI_EINVAL);
	assert_int_equal(find(e, 5), -FI_EKEYREJECTED);
	/* but the key is in use */
	assert_int_equal(fi_mr_reg(e->domain, bytes, 8, REMOTE, 0, 5, 0,
				   &(struct fid_mr *){ NULL }, NULL),
			 -FI_ENOKEY);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(find(e, 5), 0);
	assert_true(unm_mr_serves(inside(mr), nonce_of(e)));
	assert_false(unm_mr_serves(inside(mr), nonce_of(guest)));
	assert_int_equal(fi_mr_bind(mr, &e->ep->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_enable(mr), 0);
	close_mr(mr);
	assert_int_equal(find(e, 5), -FI_EKEYREJECTED);
	/* closed before it is enabled; an endpoint closed before its region */
	mr = reg_one(e, bytes, 8, REMOTE, 5);
	assert_int_equal(fi_mr_bind(mr, &guest->ep->fid, 0), 0);
	close_mr(mr);
	mr = reg_one(e, bytes, 8, REMOTE, 5);
	assert_int_equal(fi_mr_bind(mr, &guest->ep->fid, 0), 0);
	assert_int_equal(fi_mr_enable(mr), 0);
	ep_close(guest);
	close_mr(mr);
	ep_close(strange);
	ep_close(e);
}

/* Without FI_MR_ENDPOINT a binding has no effect: all endpoints of the domain
 * serve the region. */
static void test_a_binding_nobody_asked_for(void **state)
{
	struct ep *e = ep_open(NULL), *strange = ep_open(NULL);
	static char bytes[8];
	struct fid_mr *mr = reg_one(e, bytes, 8, REMOTE, 5);

	assert_int_equal(find(e, 5), 0);
	assert_int_equal(fi_mr_bind(mr, &strange->ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &e->ep->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &e->ep->fid, 0), 0);
	assert_int_equal(fi_mr_bind(mr, &e->ep->fid, 0), 0);
	assert_true(unm_mr_serves(inside(mr), nonce_of(e)));
	assert_true(unm_mr_serves(inside(mr), nonce_of(e) + 1));
	close_mr(mr);
	ep_close(strange);
	ep_close(e);
}

UNIT_MAIN(
	EP_TEST(test_every_edge_of_one_piece),
	EP_TEST(test_every_edge_of_many_pieces),
	EP_TEST(test_the_whole_address_space),
	EP_TEST(test_a_region_at_the_top),
	EP_TEST(test_rights),
	EP_TEST(test_found_by_its_key_only),
	EP_TEST(test_closed_is_not_found),
	EP_TEST(test_bound_then_enabled),
	EP_TEST(test_a_binding_nobody_asked_for),
)
