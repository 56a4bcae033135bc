/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mr.c - memory regions: which memory may be registered, keys of the
 * application and of the provider, refusals and their errors, binding, closing.
 *
 * test_mr_reach.c tests which bytes an access reaches.
 */
#include <endian.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "api/unm_domain.h"
#include "api/unm_mr.h"
#include "core/unm_region.h"
#include "lib/ep_xfer.h"
#include "unm_offer.h"
#include "util/unm_list.h"

#define LOCAL	(FI_SEND | FI_RECV)
#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MANY	2000
#define BIT63	(UINT64_C(1) << 63)

static int reg(struct ep *e, const void *buf, size_t len, uint64_t key,
	       struct fid_mr **mr)
{
	*mr = NULL;
	return fi_mr_reg(e->domain, buf, len, LOCAL | REMOTE, 0, key, 0, mr,
			 NULL);
}

static void close_mr(struct fid_mr *mr)
{
	assert_int_equal(fi_close(&mr->fid), 0);
}

static struct unm_mr *inside(struct fid_mr *mr)
{
	return unm_container(mr, struct unm_mr, fid);
}

static struct ep *open_mode(int mr_mode)
{
	struct ep_want want = { .mr_mode = mr_mode };
	struct ep *e = ep_open(&want);

	assert_int_equal(e->info->domain_attr->mr_mode, mr_mode);
	return e;
}

/* A domain of e's fabric with capabilities beyond those of e. */
static struct fid_domain *open_more(struct ep *e, uint64_t caps)
{
	struct fi_info *info = fi_dupinfo(e->info);
	struct fid_domain *domain;

	info->caps |= caps;
	assert_int_equal(fi_domain(e->fabric, info, &domain, NULL), 0);
	fi_freeinfo(info);
	return domain;
}

/* Replaces the C library's: returns these numbers first, then those of the
 * kernel. */
static uint64_t drawn[4];
static int ndrawn;
static bool draw_fails;

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
	if (draw_fails) {
		errno = ENOSYS;
		return -1;
	}
	if (ndrawn == 0 || len != sizeof(drawn[0]))
		return syscall(SYS_getrandom, buf, len, flags);
	memcpy(buf, &drawn[--ndrawn], len);
	return (ssize_t)len;
}

/* ---- Memory that may be registered ----------------------------------- */

/* Trap 1: the registrations of MPICH and others. */
static void test_trap1_any_memory_any_key(void **state)
{
	static char fixed[100];
	char *heap = ep_alloc(1);
	const struct {
		const void *buf;
		size_t len;
		uint64_t key;
	} t[] = {
		{ NULL, UINTPTR_MAX, BIT63 },
		{ NULL, SIZE_MAX, 0 },
		{ NULL, 0, 1 },
		{ fixed, 0, 5 | BIT63 },
		{ fixed, sizeof(fixed), UINT64_MAX },
		{ fixed + 1, sizeof(fixed) - 1, UINT64_C(1) << 32 },
		{ heap, 1, UINT32_MAX },
		{ (void *)4096, SIZE_MAX - 4095, 2 },	/* up to the last
							 * byte */
		{ (void *)UINTPTR_MAX, 1, 3 },
	};
	struct ep *e = ep_open(NULL);
	struct fid_mr *mr[9];

	for (int i = 0; i < 9; i++) {
		assert_int_equal(reg(e, t[i].buf, t[i].len, t[i].key, &mr[i]),
				 0);
		assert_true(fi_mr_key(mr[i]) == t[i].key);
	}
	for (int i = 0; i < 9; i++)
		close_mr(mr[i]);
	ep_close(e);
}

/* Also without any right: fabtests use all combinations. */
static void test_every_combination_of_rights(void **state)
{
	static const uint64_t right[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE,
		FI_REMOTE_READ, FI_REMOTE_WRITE };
	struct ep *e = ep_open(NULL);
	struct fid_mr *mr;

	for (int i = 0; i < 64; i++) {
		uint64_t access = 0;

		for (int k = 0; k < 6; k++)
			access |= i & 1 << k ? right[k] : 0;
		assert_int_equal(fi_mr_reg(e->domain, e, 8, access, 0, 1, 0,
					   &mr, NULL), 0);
		assert_true(inside(mr)->access == access);
		close_mr(mr);
	}
	ep_close(e);
}

static void test_context_and_pieces(void **state)
{
	static char bytes[8 * 16];
	struct iovec iov[UNM_IOV_MAX];
	struct ep *e = ep_open(NULL);
	struct fid_mr *mr;
	char context;

	assert_int_equal(e->info->domain_attr->mr_iov_limit, UNM_IOV_MAX);
	for (size_t n = 1; n <= UNM_IOV_MAX; n++) {
		struct fi_mr_attr attr = {
			.mr_iov = iov, .iov_count = n, .access = REMOTE,
			.requested_key = n, .context = &context,
		};

		iov[n - 1] = (struct iovec){ bytes + 16 * (n - 1), n };
		assert_int_equal(fi_mr_regattr(e->domain, &attr, 0, &mr), 0);
		assert_ptr_equal(mr->fid.context, &context);
		assert_int_equal(mr->fid.fclass, FI_CLASS_MR);
		assert_int_equal(inside(mr)->count, n);
		assert_int_equal(inside(mr)->len, n * (n + 1) / 2);
		close_mr(mr);
		assert_int_equal(fi_mr_regv(e->domain, iov, n, REMOTE, 0, n, 0,
					    &mr, &context), 0);
		assert_ptr_equal(mr->fid.context, &context);
		assert_int_equal(inside(mr)->count, n);
		close_mr(mr);
	}
	ep_close(e);
}

/* ---- Refusals --------------------------------------------------------- */

static char some[64];
static const struct iovec nine[UNM_IOV_MAX + 1] = {
	{ some, 1 }, { some + 1, 1 }, { some + 2, 1 }, { some + 3, 1 },
	{ some + 4, 1 }, { some + 5, 1 }, { some + 6, 1 }, { some + 7, 1 },
	{ some + 8, 1 },
};
static const struct iovec wraps = { (void *)2, SIZE_MAX };
static const struct iovec wraps_later[2] = { { some, 1 },
	{ (void *)UINTPTR_MAX, 2 } };
static const struct iovec too_long[2] = { { NULL, SIZE_MAX }, { some, 1 } };

#define ATTR(iov, n, ...)						\
	{ .mr_iov = iov, .iov_count = n, .requested_key = 3, __VA_ARGS__ }
static const struct {
	const char *what;
	struct fi_mr_attr attr;
	uint64_t flags;
	int err;
} bad[] = {
	{ "no pieces", ATTR(nine, 0, 0), 0, -FI_EINVAL },
	{ "nine pieces", ATTR(nine, 9, 0), 0, -FI_EINVAL },
	{ "too many", ATTR(nine, SIZE_MAX, 0), 0, -FI_EINVAL },
	{ "no vector", ATTR(NULL, 1, 0), 0, -FI_EINVAL },
	{ "beyond the end", ATTR(&wraps, 1, 0), 0, -FI_EINVAL },
	{ "second beyond", ATTR(wraps_later, 2, 0), 0, -FI_EINVAL },
	{ "2^64 bytes", ATTR(too_long, 2, 0), 0, -FI_EINVAL },
	{ "offset", ATTR(nine, 1, .offset = 1), 0, -FI_EINVAL },
	{ "collective", ATTR(nine, 1, .access = FI_COLLECTIVE), 0,
	  -FI_EINVAL },
	{ "no such right", ATTR(nine, 1, .access = REMOTE | 1), 0,
	  -FI_EINVAL },
	{ "auth key", ATTR(nine, 1, .auth_key_size = 8,
			   .auth_key = (uint8_t *)some), 0, -FI_EINVAL },
	{ "event", ATTR(nine, 1, 0), FI_RMA_EVENT, -FI_EBADFLAGS },
	{ "pmem", ATTR(nine, 1, 0), FI_RMA_PMEM, -FI_EBADFLAGS },
	{ "device", ATTR(nine, 1, 0), FI_HMEM_DEVICE_ONLY, -FI_EBADFLAGS },
	{ "any flag", ATTR(nine, 1, 0), 1, -FI_EBADFLAGS },
};

static void test_bad_regions_are_refused(void **state)
{
	const struct ep_want want = { .caps = FI_MSG | FI_RMA };
	struct ep *e = ep_open(&want);	/* without FI_RMA_EVENT */
	struct fid_domain *domain = e->domain;
	struct fid_mr *mr = NULL, *const was = (struct fid_mr *)&mr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int ret;

		mr = was;
		ret = fi_mr_regattr(domain, &bad[i].attr, bad[i].flags, &mr);
		if (ret != bad[i].err || mr != was)
			unit_fail("%s: %d", bad[i].what, ret);
		/* its key is still free */
		assert_int_equal(reg(e, some, 1, 3, &mr), 0);
		close_mr(mr);
	}
	assert_int_equal(domain->mr->regattr(&domain->fid, NULL, 0, &mr),
			 -FI_EINVAL);
	assert_int_equal(domain->mr->reg(&e->av->fid, some, 1, REMOTE, 0, 3, 0,
					 &mr, NULL), -FI_EINVAL);
	ep_close(e);
}

/* Programs built for APIs before 1.5 do not have this field. */
static void test_old_programs_have_no_auth_key(void **state)
{
	struct fi_mr_attr attr = ATTR(nine, 1, .auth_key_size = 99);
	struct ep *e = ep_open(NULL);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_mr *mr;

	e->info->fabric_attr->api_version = FI_VERSION(1, 4);
	assert_int_equal(ep_fabric(e->info, &fabric), 0);
	assert_int_equal(fi_domain(fabric, e->info, &domain, NULL), 0);
	assert_int_equal(fi_mr_regattr(domain, &attr, 0, &mr), 0);
	close_mr(mr);
	EP_CLOSE(&domain->fid, &fabric->fid);
	ep_close(e);
}

/* ---- Keys ------------------------------------------------------------ */

static void test_a_key_in_use_is_refused(void **state)
{
	const uint64_t key = 7 | BIT63;
	struct ep *e = ep_open(NULL), *other = ep_open(NULL);
	struct fid_mr *mr, *twin, *third;
	static char buf[8];

	assert_int_equal(reg(e, buf, 8, key, &mr), 0);
	assert_int_equal(reg(e, buf, 8, key, &twin), -FI_ENOKEY);
	assert_null(twin);
	/* all 64 bits count; another domain has its own keys */
	assert_int_equal(reg(e, buf, 8, 7, &twin), 0);
	assert_int_equal(reg(other, buf, 8, key, &third), 0);
	close_mr(third);
	assert_int_equal(reg(e, buf, 8, key, &third), -FI_ENOKEY);
	/* the refused one did not change the open one */
	assert_true(fi_mr_key(mr) == key);
	close_mr(mr);
	assert_int_equal(reg(e, buf, 8, key, &mr), 0);
	close_mr(mr);
	close_mr(twin);
	ep_close(other);
	ep_close(e);
}

static void test_many_sparse_keys(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);
	static struct fid_mr *mr[MANY];
	uint64_t rng = 1;

	for (int i = 0; i < MANY; i++)
		assert_int_equal(reg(e, mr, sizeof(mr), unit_random(&rng),
				     &mr[i]), 0);
	for (int i = 0; i < MANY; i++) {
		uint32_t k = unit_below(&rng, MANY);
		uint64_t key = fi_mr_key(mr[k]);
		struct fid_mr *twin;

		assert_int_equal(reg(e, mr, 1, key, &twin), -FI_ENOKEY);
		close_mr(mr[k]);
		assert_int_equal(reg(e, mr, 1, key, &mr[k]), 0);
	}
	for (int i = 0; i < MANY; i++)
		close_mr(mr[i]);
	ep_close(e);
}

static int by_key(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The requested key is ignored; the provider's keys are random in every bit. */
static void test_keys_of_the_provider(void **state)
{
	struct ep *e = open_mode(FI_MR_PROV_KEY);
	static struct fid_mr *mr[MANY];
	static uint64_t key[MANY];
	uint64_t ones = 0, zeros = 0;

	for (int i = 0; i < MANY; i++) {
		assert_int_equal(reg(e, some, 8, 42, &mr[i]), 0);
		key[i] = fi_mr_key(mr[i]);
		assert_true(key[i] != FI_KEY_NOTAVAIL);
		ones |= key[i];
		zeros |= ~key[i];
	}
	assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
	qsort(key, MANY, sizeof(key[0]), by_key);
	for (int i = 1; i < MANY; i++)
		assert_true(key[i] != key[i - 1]);
	for (int i = 0; i < MANY; i++)
		close_mr(mr[i]);
	ep_close(e);
}

static void test_a_key_drawn_twice(void **state)
{
	struct ep *e = open_mode(FI_MR_PROV_KEY);
	struct fid_mr *mr, *next;

	drawn[0] = 1234;
	ndrawn = 1;
	assert_int_equal(reg(e, some, 8, 0, &mr), 0);
	assert_int_equal(fi_mr_key(mr), 1234);
	/* a key in use, FI_KEY_NOTAVAIL, a free key */
	drawn[2] = 1234;
	drawn[1] = FI_KEY_NOTAVAIL;
	drawn[0] = 99;
	ndrawn = 3;
	assert_int_equal(reg(e, some, 8, 0, &next), 0);
	assert_int_equal(ndrawn, 0);
	assert_int_equal(fi_mr_key(next), 99);
	assert_int_equal(fi_mr_key(mr), 1234);
	close_mr(next);
	close_mr(mr);
	ep_close(e);
}

static void test_no_random_numbers(void **state)
{
	struct ep *e = open_mode(FI_MR_PROV_KEY);
	struct fid_mr *mr;
	struct unit_capture ear = unit_capture_begin();
	char text[256];
	int ret, said;

	draw_fails = true;
	ret = reg(e, some, 8, 0, &mr);
	draw_fails = false;
	said = unit_capture_end(&ear, text, sizeof(text));
	assert_int_equal(ret, -FI_EIO);
	assert_null(mr);
	assert_int_equal(said, 1);
	assert_non_null(strstr(text, "getrandom"));
	ep_close(e);
}

/* ---- Modes ------------------------------------------------------------ */

static void check_mode(int mode, bool virt, bool prov_key, bool endpoint)
{
	struct ep *e = open_mode(mode);
	struct fid_mr *mr;
	uint64_t base = 77;
	uint8_t raw[8];
	size_t size = sizeof(raw);

	assert_int_equal(reg(e, some + 5, 8, 42, &mr), 0);
	assert_int_equal(inside(mr)->enabled, !endpoint);
	if (endpoint) {
		assert_true(fi_mr_key(mr) ==
			    (prov_key ? FI_KEY_NOTAVAIL : 42));
		assert_int_equal(fi_mr_bind(mr, &e->ep->fid, 0), 0);
	}
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(fi_mr_key(mr) == 42, !prov_key);
	assert_true(fi_mr_key(mr) != FI_KEY_NOTAVAIL);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	assert_true(base == (virt ? (uintptr_t)some + 5 : 0));
	close_mr(mr);
	ep_close(e);
}

/* Each mode bit alone and with every other one; the modes of old APIs. */
static void test_every_mode(void **state)
{
	static const int bit[] = { FI_MR_VIRT_ADDR, FI_MR_PROV_KEY,
		FI_MR_ENDPOINT, FI_MR_ALLOCATED };

	for (int i = 0; i < 16; i++) {
		int mode = 0;

		for (int k = 0; k < 4; k++)
			mode |= i & 1 << k ? bit[k] : 0;
		check_mode(mode, i & 1, i & 2, i & 4);
	}
	check_mode(FI_MR_SCALABLE, false, false, false);
	check_mode(FI_MR_BASIC, true, true, false);
}

/* ---- Raw keys, refreshing ---------------------------------------------- */

static void test_raw_keys_are_the_keys(void **state)
{
	struct ep *e = open_mode(FI_MR_PROV_KEY | FI_MR_VIRT_ADDR);
	struct fid_domain *d = e->domain;
	uint64_t base = 0, key = 0;
	uint8_t raw[9] = { 0 };
	size_t size = 0;
	struct fid_mr *mr;

	assert_int_equal(e->info->domain_attr->mr_key_size, 8);
	assert_int_equal(reg(e, some, 8, 0, &mr), 0);
	assert_int_equal(fi_mr_raw_attr(mr, &base, NULL, &size, 0),
			 -FI_ETOOSMALL);
	assert_int_equal(size, 8);
	size = 7;
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0),
			 -FI_ETOOSMALL);
	assert_int_equal(raw[0], 0);
	assert_int_equal(base, 0);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 1),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_mr_raw_attr(mr, &base, NULL, &size, 0),
			 -FI_EINVAL);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, NULL, 0), -FI_EINVAL);
	size = sizeof(raw);
	assert_int_equal(fi_mr_raw_attr(mr, NULL, raw, &size, 0), 0);
	assert_int_equal(size, 8);
	for (int i = 0; i < 8; i++)	/* little-endian on every machine */
		assert_int_equal(raw[i], fi_mr_key(mr) >> 8 * i & 255);

	assert_int_equal(fi_mr_map_raw(d, base, raw, 8, &key, 0), 0);
	assert_true(key == fi_mr_key(mr));
	assert_int_equal(fi_mr_unmap_key(d, key), 0);
	key = 5;
	assert_int_equal(fi_mr_map_raw(d, base, raw, 7, &key, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_map_raw(d, base, raw, 9, &key, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_map_raw(d, base, NULL, 8, &key, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_map_raw(d, base, raw, 8, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_map_raw(d, base, raw, 8, &key, 1),
			 -FI_EBADFLAGS);
	assert_int_equal(key, 5);
	assert_int_equal(d->fid.ops->control(&d->fid, FI_GETWAIT, &key),
			 -FI_ENOSYS);
	close_mr(mr);
	ep_close(e);
}

static void test_other_calls_on_regions(void **state)
{
	struct ep *e = ep_open(NULL);
	struct iovec iov = { some, 8 };
	struct fid_mr *mr;
	int fd;

	assert_int_equal(reg(e, some, 8, 0, &mr), 0);
	assert_int_equal(fi_mr_refresh(mr, NULL, 0, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, &iov, 1, 0), 0);
	assert_int_equal(fi_mr_refresh(mr, NULL, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_refresh(mr, &iov, 1, 1), -FI_EBADFLAGS);
	assert_int_equal(mr->fid.ops->control(&mr->fid, FI_REFRESH, NULL),
			 -FI_EINVAL);
	assert_int_equal(mr->fid.ops->control(&mr->fid, FI_GET_RAW_MR, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_control(&mr->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	assert_int_equal(fi_mr_enable(mr), 0);	/* already enabled */
	assert_int_equal(fi_mr_enable(mr), 0);
	close_mr(mr);
	ep_close(e);
}

/* ---- Counters ---------------------------------------------------------- */

static void test_binding_a_counter(void **state)
{
	const struct ep_want want = { .caps = FI_MSG | FI_RMA };
	struct ep *e = ep_open(&want);
	struct fid_domain *d = open_more(e, FI_RMA_EVENT);
	struct fid_cntr *cntr, *other, *strange;
	struct fid_mr *mr;

	assert_int_equal(fi_cntr_open(d, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(d, NULL, &other, NULL), 0);
	assert_int_equal(fi_cntr_open(e->domain, NULL, &strange, NULL), 0);
	assert_int_equal(fi_mr_reg(d, some, 8, REMOTE, 0, 1, FI_RMA_EVENT, &mr,
				   NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, 0), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &strange->fid, FI_REMOTE_WRITE),
			 -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &e->av->fid, 0), -FI_EINVAL);
	assert_null(inside(mr)->remote_cntr);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_ptr_equal(inside(mr)->remote_cntr, cntr);
	assert_int_equal(fi_mr_bind(mr, &other->fid, FI_REMOTE_WRITE),
			 -FI_EINVAL);
	assert_int_equal(fi_close(&other->fid), 0);
	/* the region keeps the counter open */
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
	close_mr(mr);
	assert_int_equal(fi_close(&cntr->fid), 0);
	/* a domain without FI_RMA_EVENT */
	assert_int_equal(reg(e, some, 8, 1, &mr), 0);
	assert_int_equal(fi_mr_bind(mr, &strange->fid, FI_REMOTE_WRITE),
			 -FI_ENOSYS);
	close_mr(mr);
	EP_CLOSE(&strange->fid, &d->fid);
	ep_close(e);
}

/* ---- Closing ----------------------------------------------------------- */

static void test_a_region_keeps_its_domain(void **state)
{
	static char out[100] = "registered", in[100];
	struct ep_pair p = ep_pair(NULL);
	struct fid_mr *mr, *to;
	struct fi_context2 tx, rx;

	assert_int_equal(reg(p.a, out, sizeof(out), 1, &mr), 0);
	assert_int_equal(reg(p.b, in, sizeof(in), 1, &to), 0);
	EP_OK(fi_recv(p.b->ep, in, sizeof(in), fi_mr_desc(to), p.ba, &rx));
	EP_OK(fi_send(p.a->ep, out, sizeof(out), fi_mr_desc(mr), p.ab, &tx));
	ep_sent(p.a, &tx);
	ep_received(p.b, &rx);
	assert_string_equal(in, "registered");
	close_mr(to);
	ep_close(p.b);

	EP_CLOSE(&p.a->ep->fid, &p.a->cq->fid, &p.a->av->fid);
	p.a->ep = NULL;
	p.a->cq = NULL;
	p.a->av = NULL;
	assert_int_equal(fi_close(&p.a->domain->fid), -FI_EBUSY);
	close_mr(mr);
	ep_close(p.a);
}

/* A thread that takes the domain's lock all the time, like a thread that
 * polls. */
static atomic_bool busy_end;
static atomic_int busy_turns;

static void *busy(void *arg)
{
	struct ep *e = arg;
	struct unm_domain *d = unm_domain(e->domain);

	while (!atomic_load(&busy_end)) {
		struct fi_cq_tagged_entry entry;
		struct unm_mr *mr;

		fi_cq_read(e->cq, &entry, 1);
		unm_lock(d);
		for (uint64_t key = 0; key < 8; key++)
			if (unm_mr_find(d, key, &mr) == 0 &&
			    (mr->key != key || mr->iov[0].iov_base !=
			     some + key || mr->len != 8 - key))
				abort();
		unm_unlock(d);
		atomic_fetch_add(&busy_turns, 1);
	}
	return NULL;
}

static void test_closing_while_the_domain_is_busy(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);
	struct fid_mr *mr[8];
	pthread_t thread;

	atomic_store(&busy_end, false);
	thread = unit_thread(busy, e);
	for (int i = 0; i < MANY || atomic_load(&busy_turns) < 100; i++) {
		size_t k = (size_t)i % 8;

		if (i >= 8)
			close_mr(mr[k]);
		assert_int_equal(reg(e, some + k, 8 - k, k, &mr[k]), 0);
	}
	for (int k = 0; k < 8; k++)
		close_mr(mr[k]);
	atomic_store(&busy_end, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ep_close(e);
}

/* In the child. Returns 0 on success. */
static int child_closes(struct ep *e, struct fid_mr *mr, bool locked)
{
	struct unm_domain *d = unm_domain(e->domain);
	int users = atomic_load(&d->ref.users);
	struct unm_mr *left;

	alarm(60);			/* ends a test that hangs */
	if (fi_close(&mr->fid) != 0)
		return 1;
	if (atomic_load(&d->ref.users) != users - 1)
		return 2;
	if (!locked && unm_mr_find(d, 5, &left) != -FI_EKEYREJECTED)
		return 3;
	return 0;
}

/* A child closes a region like a destructor, whatever other threads did at the
 * time of fork(). */
static void test_a_child_closes_and_waits_for_nobody(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);
	struct unm_domain *d = unm_domain(e->domain);
	struct unm_mr *found;
	struct fid_mr *mr;

	assert_int_equal(reg(e, some, 8, 5, &mr), 0);
	for (int locked = 0; locked < 2; locked++) {
		pid_t pid;

		if (locked)
			unm_lock(d);
		pid = unit_fork();
		if (pid == 0)
			_exit(child_closes(e, mr, locked));
		if (locked)
			unm_unlock(d);
		assert_int_equal(unit_exit_code(pid), 0);
		assert_int_equal(unm_mr_find(d, 5, &found), 0);
	}
	close_mr(mr);
	ep_close(e);
}

UNIT_MAIN(
	EP_TEST(test_trap1_any_memory_any_key),
	EP_TEST(test_every_combination_of_rights),
	EP_TEST(test_context_and_pieces),
	EP_TEST(test_bad_regions_are_refused),
	EP_TEST_INSIDE(test_old_programs_have_no_auth_key),
	EP_TEST(test_a_key_in_use_is_refused),
	EP_TEST(test_many_sparse_keys),
	EP_TEST(test_keys_of_the_provider),
	EP_TEST_INSIDE(test_a_key_drawn_twice),
	EP_TEST_INSIDE(test_no_random_numbers),
	EP_TEST(test_every_mode),
	EP_TEST(test_raw_keys_are_the_keys),
	EP_TEST(test_other_calls_on_regions),
	EP_TEST(test_binding_a_counter),
	EP_TEST(test_a_region_keeps_its_domain),
	EP_TEST_INSIDE(test_closing_while_the_domain_is_busy),
	EP_TEST_INSIDE(test_a_child_closes_and_waits_for_nobody),
)
