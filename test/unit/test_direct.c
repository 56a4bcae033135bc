/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_direct.c - the checks of an initiator that has a cached remote key
 * before it accesses a peer's memory directly: rights, bounds, revocation. Also
 * the operations that it executes in steps when the peer ends.
 *
 * Each case first does what caches the remote key, and then asserts by the
 * endpoint's counters whether an access was executed directly or was sent as a
 * request. (If no access could be executed directly, a refusal would prove
 * nothing.)
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/ep_xfer.h"
#include "lib/os_pair.h"

#define ROOM	((size_t)2 << 20)
#define START	((size_t)128 << 10)	/* offset of the region in the memory */
#define LONG	((size_t)700 << 10)	/* bytes, in three steps */
#define KEY	77
#define R	FI_REMOTE_READ
#define W	FI_REMOTE_WRITE

enum kind { PUT, GET, ADD, FETCH_ADD, FETCH_READ, SWAP, KINDS };

static const uint64_t needs[] = {
	[PUT] = W, [GET] = R, [ADD] = W, [FETCH_ADD] = R | W,
	[FETCH_READ] = R, [SWAP] = R | W,
};

/* A region in the middle of b's memory, and the operations of a on it. */
struct scene {
	struct os_pair p;
	struct fid_mr *mr;
	size_t len;
	uint64_t base;			/* remote address of its first byte */
	uint8_t *buf, *cmp;
};

static void scene_reg(struct scene *s, size_t len, uint64_t access)
{
	s->mr = os_reg(s->p.b, s->p.mem + START, len, access, KEY);
	s->len = len;
}

static struct scene scene_open(enum os_way way, int mr_mode, size_t len,
			       uint64_t access)
{
	const struct ep_want want = { .mr_mode = mr_mode };
	struct scene s = { .p = os_open_as(way, ROOM, &want, &want) };

	s.buf = malloc(ROOM);
	s.cmp = calloc(1, ROOM);
	if (mr_mode & FI_MR_VIRT_ADDR)
		s.base = (uintptr_t)s.p.mem + START;
	scene_reg(&s, len, access);
	return s;
}

static void scene_close(struct scene *s)
{
	if (s->mr != NULL)
		assert_int_equal(fi_close(&s->mr->fid), 0);
	os_close(&s->p);
	free(s->buf);
	free(s->cmp);
}

static ssize_t issue(struct scene *s, enum kind kind, uint64_t off, size_t len,
		     void *context)
{
	uint64_t at = s->base + off;
	struct fid_ep *ep = s->p.a->ep;
	fi_addr_t to = s->p.ab;
	size_t n = len / 8;

	switch (kind) {
	case PUT:
		return fi_write(ep, s->buf, len, NULL, to, at, KEY, context);
	case GET:
		return fi_read(ep, s->buf, len, NULL, to, at, KEY, context);
	case ADD:
		return fi_atomic(ep, s->buf, n, NULL, to, at, KEY, FI_UINT64,
				 FI_SUM, context);
	case FETCH_ADD:
		return fi_fetch_atomic(ep, s->buf, n, NULL, s->buf, NULL, to,
				       at, KEY, FI_UINT64, FI_SUM, context);
	case FETCH_READ:
		return fi_fetch_atomic(ep, NULL, n, NULL, s->buf, NULL, to, at,
				       KEY, FI_UINT64, FI_ATOMIC_READ,
				       context);
	default:
		return fi_compare_atomic(ep, s->buf, n, NULL, s->cmp, NULL,
					 s->buf, NULL, to, at, KEY, FI_UINT64,
					 FI_CSWAP_NE, context);
	}
}

/* Is it executed without b, once the remote key is known? */
static bool is_direct(const struct scene *s, enum kind kind)
{
	return os_window(s->p.way) || (s->p.way == OS_ATTACH && kind <= GET);
}

static void same(const uint8_t *bytes, uint8_t value, size_t len)
{
	assert_true(len == 0 || (bytes[0] == value &&
				 memcmp(bytes, bytes + 1, len - 1) == 0));
}

/* An operation that must succeed, on the expected data path. */
static void allowed(struct scene *s, enum kind kind, uint64_t off, size_t len)
{
	uint64_t direct = os_direct(&s->p), asked = os_requests(&s->p);

	memset(s->buf, 0x22, len);
	EP_OK(issue(s, kind, off, len, s));
	assert_int_equal(ep_wait(s->p.a, s).err, 0);
	assert_int_equal(os_direct(&s->p) - direct, is_direct(s, kind));
	assert_int_equal(os_requests(&s->p) != asked, !is_direct(s, kind));
}

/* An operation that must fail: the error comes from b, and no byte is
 * changed. */
static void refused(struct scene *s, enum kind kind, uint64_t off, size_t len,
		    int err)
{
	uint64_t direct = os_direct(&s->p);

	memset(s->p.mem, 0x11, ROOM);
	memset(s->buf, 0x22, len);
	EP_OK(issue(s, kind, off, len, s));
	assert_int_equal(ep_wait(s->p.a, s).err, err);
	same(s->p.mem, 0x11, ROOM);
	same(s->buf, 0x22, len);
	assert_int_equal(os_direct(&s->p), direct);
}

/* The first request asks for the remote key, which arrives after the answer. */
static void learn(struct scene *s, uint64_t access)
{
	enum kind kind = access & W ? PUT : GET;
	uint64_t known = ((struct unm_ep *)s->p.a->ep)->stats->rkeys;

	EP_OK(issue(s, kind, 0, 8, s));
	assert_int_equal(ep_wait(s->p.a, s).err, 0);
	if (s->p.way == OS_REQUESTS)
		return;
	EP_UNTIL(((struct unm_ep *)s->p.a->ep)->stats->rkeys == known + 1);
	/* and it is used from here on */
	allowed(s, kind, 0, 8);
}

/* ---- Rights ---------------------------------------------------------- */

static void rights(enum os_way way, uint64_t access)
{
	static const size_t lens[] = { 8, 64, LONG };
	struct scene s = scene_open(way, 0, LONG, access);

	learn(&s, access);
	for (int round = 0; round < 2; round++)
		for (int kind = 0; kind < KINDS; kind++)
			for (int i = 0; i < (kind <= GET ? 3 : 2); i++)
				if ((needs[kind] & ~access) == 0)
					allowed(&s, kind, 0, lens[i]);
				else
					refused(&s, kind, 0, lens[i],
						FI_EACCES);
	ep_quiet(s.p.a);
	scene_close(&s);
}

/* With the cached remote key of a region that may be only read, only written,
 * or both: every kind of access, in one step and in several. */
static void test_rights(void **state)
{
	for (int way = 0; way < OS_WAYS; way++) {
		if (!os_runs(way))
			continue;
		rights(way, R);
		rights(way, W);
		rights(way, R | W);
	}
}

/* ---- Bounds ---------------------------------------------------------- */

#define LEN	(LONG - 8)

static void bounds(enum os_way way, int mr_mode)
{
	static const struct { uint64_t off; size_t len; } in[] = {
		{ 0, 8 }, { LEN - 8, 8 }, { 0, LEN }, { LEN - 64, 64 },
	}, out[] = {
		{ LEN - 7, 8 }, { LEN, 8 }, { LEN + 8, 8 }, { LEN - 8, 16 },
		{ -(uint64_t)8, 8 }, { -(uint64_t)4, 8 },
		{ -(uint64_t)8, 16 }, { UINT64_MAX / 2 + 1, 8 },
		{ 0, LEN + 8 }, { 8, LEN }, { -(uint64_t)8, LEN + 16 },
	};
	struct scene s = scene_open(way, mr_mode, LEN, R | W);

	learn(&s, R | W);
	for (int kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < 4; i++)
			if (kind <= GET || in[i].len <= 64)
				allowed(&s, kind, in[i].off, in[i].len);
		for (int i = 0; i < 11; i++)
			refused(&s, kind, out[i].off, out[i].len, FI_EINVAL);
	}
	/* no bytes: allowed at the end, not beyond */
	allowed(&s, PUT, LEN, 0);
	refused(&s, PUT, LEN + 1, 0, FI_EINVAL);
	refused(&s, GET, -(uint64_t)1, 0, FI_EINVAL);
	ep_quiet(s.p.a);
	scene_close(&s);
}

static void test_bounds(void **state)
{
	for (int way = 0; way < OS_WAYS; way++) {
		if (!os_runs(way))
			continue;
		bounds(way, 0);
		bounds(way, FI_MR_VIRT_ADDR);
	}
}

/* ---- Revocation ------------------------------------------------------ */

static void scene_unreg(struct scene *s)
{
	assert_int_equal(fi_close(&s->mr->fid), 0);
	s->mr = NULL;
}

static void revoked(enum os_way way)
{
	struct scene s = scene_open(way, 0, LONG, R | W);

	learn(&s, R | W);
	scene_unreg(&s);
	for (int kind = 0; kind < KINDS; kind++)
		refused(&s, kind, 0, 8, FI_EKEYREJECTED);
	refused(&s, PUT, 0, LONG, FI_EKEYREJECTED);
	refused(&s, GET, 0, LONG, FI_EKEYREJECTED);
	/* the same key, with fewer rights, then with fewer bytes */
	scene_reg(&s, LONG, R);
	refused(&s, PUT, 0, 8, FI_EACCES);
	refused(&s, FETCH_ADD, 0, 8, FI_EACCES);
	learn(&s, R);
	refused(&s, PUT, 0, 8, FI_EACCES);
	scene_unreg(&s);
	scene_reg(&s, 64, R | W);
	refused(&s, PUT, 64, 8, FI_EINVAL);
	refused(&s, GET, 0, LONG, FI_EINVAL);
	learn(&s, R | W);
	refused(&s, PUT, 64, 8, FI_EINVAL);
	ep_quiet(s.p.a);
	scene_close(&s);
}

/* Cached remote keys of regions that are closed, and opened again with other
 * properties. */
static void test_revocation(void **state)
{
	for (int way = 0; way < OS_WAYS; way++)
		if (os_runs(way))
			revoked(way);
}

/* ---- The peer is disconnected ---------------------------------------- */

#define OPS	6

/* Reads and writes in steps, some of which are done when a disconnects b, as it
 * does after a protocol error. */
static void dropped(enum os_way way)
{
	struct scene s = scene_open(way, 0, ROOM - START, R | W);
	struct unm_ep *ep = (struct unm_ep *)s.p.a->ep;
	struct fi_context2 ctx[OPS];
	uint64_t direct;
	struct ep_comp c;

	learn(&s, R | W);
	direct = os_direct(&s.p);
	for (int i = 0; i < OPS; i++)
		assert_int_equal(issue(&s, i % 2 ? PUT : GET, 0, s.len,
				       &ctx[i]), 0);
	assert_false(unm_list_empty(&ep->direct));
	unm_peer_disconnect(ep->peer_of[s.p.ab]);
	for (int i = 0; i < OPS; i++) {
		c = ep_wait(s.p.a, &ctx[i]);
		assert_int_equal(c.err, FI_ECONNABORTED);
		assert_int_equal(c.flags, FI_RMA | (i % 2 ? FI_WRITE :
						    FI_READ));
	}
	ep_quiet(s.p.a);		/* no second completion */
	assert_true(unm_list_empty(&ep->direct));
	assert_int_equal(os_direct(&s.p), direct);
	assert_int_equal(fi_cntr_readerr(s.p.rd), OPS / 2);
	assert_int_equal(fi_cntr_readerr(s.p.wr), OPS / 2);
	scene_close(&s);
}

static void test_a_peer_dropped_between_two_steps(void **state)
{
	for (int way = OS_ATTACH; way < OS_WAYS; way++)
		if (os_runs(way))
			dropped(way);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_rights),
	EP_TEST_INSIDE(test_bounds),
	EP_TEST_INSIDE(test_revocation),
	EP_TEST_INSIDE(test_a_peer_dropped_between_two_steps),
)
