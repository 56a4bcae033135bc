/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_forged.c - a peer that forges messages of one-sided operations: every
 * wrong field of requests to a region, of answers to the endpoint's operations,
 * and of remote keys.
 *
 * The peer is disconnected or gets an error, memory without remote access is
 * not changed, and other peers are served meanwhile. Best run under ASan.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/os_pair.h"
#include "lib/raw_peer.h"
#include "op/gsas_op.h"

#define ROOM	4096
#define KEY	9
#define READ_KEY 10			/* of a region that may only be read */
#define WRITE_KEY 11			/* of a region that may only be
					 * written */
#define BIG_KEY	12

struct scene {
	struct ep *v, *t;		/* victim, third party */
	fi_addr_t tv, vr;
	struct raw *r;			/* the peer that forges */
	uint8_t *mem;
	struct fid_mr *mr[3];
	uint64_t beat;
};

static struct scene scene(void)
{
	struct scene s = { .v = ep_open(NULL), .t = ep_open(NULL),
			   .r = raw_open() };

	s.tv = ep_insert(s.t, s.v);
	s.vr = raw_insert(s.v, s.r);
	/* between pages without access rights */
	s.mem = mmap(NULL, 3 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	assert_true(s.mem != MAP_FAILED);
	s.mem += ROOM;
	assert_int_equal(mprotect(s.mem, ROOM, PROT_READ | PROT_WRITE), 0);
	s.mr[0] = os_reg(s.v, s.mem, ROOM, OS_ALL, KEY);
	s.mr[1] = os_reg(s.v, s.mem, ROOM, FI_REMOTE_READ, READ_KEY);
	s.mr[2] = os_reg(s.v, s.mem, ROOM, FI_REMOTE_WRITE, WRITE_KEY);
	raw_connect(s.r, s.v);
	raw_hello(s.r);
	memset(s.mem, 0x3C, ROOM);
	return s;
}

/* The third party writes and reads without errors. */
static void others_are_well(struct scene *s)
{
	uint64_t v = ++s->beat, was = 0;

	EP_OK(fi_write(s->t->ep, &v, 8, NULL, s->tv, 0, KEY, &v));
	assert_int_equal(ep_wait(s->t, &v).err, 0);
	EP_OK(fi_read(s->t->ep, &was, 8, NULL, s->tv, 0, KEY, &was));
	assert_int_equal(ep_wait(s->t, &was).err, 0);
	assert_int_equal(was, v);
	memset(s->mem, 0x3C, 8);
}

static void untouched(const struct scene *s)
{
	for (int i = 0; i < ROOM; i++)
		assert_int_equal(s->mem[i], 0x3C);
}

static void scene_ends(struct scene *s)
{
	untouched(s);
	others_are_well(s);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_close(&s->mr[i]->fid), 0);
	raw_teardown(NULL);
	munmap(s->mem - ROOM, 3 * ROOM);
}

static void dropped(struct scene *s, const char *what, size_t i)
{
	for (uint64_t end = ep_deadline(); !s->r->dead; raw_step())
		if (ep_now() > end)
			unit_fail("accepted: %s %zu", what, i);
	scene_ends(s);
}

struct packet {
	uint8_t type, flags;
	uint64_t w[6];
};

static bool send_packet(struct scene *s, const struct packet *p)
{
	return raw_send(s->r, hal_head(p->type, p->flags), p->w, 6, NULL, 0);
}

#define HOW(op, type, count)						\
	((uint64_t)(op) | (uint64_t)(type) << 8 | (uint64_t)(count) << 32)
#define HEAD(type)	((uint64_t)(type) << 56)
#define EXT(off, len)	((uint64_t)(len) << 32 | (uint32_t)(off))
#define SUM8(n)		HOW(GSAS_OP_SUM, GSAS_TYPE_UINT64, n)

enum {
	PUT = UNM_WIRE_PUT, PUT_DATA = UNM_WIRE_PUT_DATA,
	ATOMIC = UNM_WIRE_ATOMIC, GET = UNM_WIRE_GET, FETCH = UNM_WIRE_FETCH,
	COMPARE = UNM_WIRE_COMPARE, RESULT = UNM_WIRE_RESULT,
	REFUSED = UNM_WIRE_REFUSED, RKEY = UNM_WIRE_RKEY,
	PROBE = UNM_WIRE_PROBE,
	CARRIED = UNM_WIRE_CARRIED, MORE = UNM_WIRE_MORE,
	ASK = UNM_WIRE_ASK_RKEY, PUT_CHECK = UNM_WIRE_PUT_CHECK,
	GET_CHECK = UNM_WIRE_GET_CHECK,
};

/* ---- Protocol errors ----------------------------------------------------- */

static const struct packet broken[] = {
	/* more bytes than the packet holds */
	{ PUT, 63, { KEY } }, { PUT, 57, { KEY } }, { ATOMIC, 33, { KEY } },
	{ PUT_CHECK, 63, { KEY } },
	{ RESULT, 63, { 0 } },
	/* unknown operations, or not defined for the type */
	{ ATOMIC, 8, { KEY, 0, HOW(19, 7, 1) } },
	{ ATOMIC, 8, { KEY, 0, HOW(255, 7, 1) } },
	{ ATOMIC, 8, { KEY, 0, HOW(2, 16, 1) } },
	{ ATOMIC, 8, { KEY, 0, HOW(2, 255, 1) } },
	{ ATOMIC, 8, { KEY, 0, HOW(GSAS_OP_BOR, GSAS_TYPE_DOUBLE, 1) } },
	{ ATOMIC, 8, { KEY, 0, HOW(GSAS_OP_READ, 7, 1) } },
	{ ATOMIC, 8, { KEY, 0, HOW(GSAS_OP_CSWAP, 7, 1) } },
	{ FETCH, 8, { KEY, 0, HOW(GSAS_OP_CSWAP, 7, 1), 1 } },
	{ FETCH, 8, { KEY, 0, HOW(2, 16, 1), 1 } },
	{ COMPARE, 16, { KEY, 0, HOW(GSAS_OP_SUM, 7, 1), 1 } },
	{ ATOMIC, 8, { KEY, 0, SUM8(1) | 1 << 16 } },
	/* numbers of elements that do not match the operands */
	{ ATOMIC, 8, { KEY, 0, SUM8(0) } }, { ATOMIC, 8, { KEY, 0, SUM8(2) } },
	{ ATOMIC, 0, { KEY, 0, SUM8(1) } }, { ATOMIC, 7, { KEY, 0, SUM8(1) } },
	{ ATOMIC, 8, { KEY, 0, SUM8(0xffffffff) } },
	{ ATOMIC, 8, { KEY, 0, SUM8(0x20000001) } },
	{ FETCH, 8, { KEY, 0, SUM8(3), 1 } },
	{ FETCH, 8, { KEY, 0, HOW(GSAS_OP_READ, 7, 1), 1 } },
	{ FETCH, 0, { KEY, 0, HOW(GSAS_OP_READ, 7, 2049), 1 } },
	{ FETCH, 0, { KEY, 0, HOW(GSAS_OP_READ, 7, 0xffffffff), 1 } },
	{ COMPARE, 8, { KEY, 0, HOW(GSAS_OP_CSWAP, 7, 1), 1 } },
	{ COMPARE, 16, { KEY, 0, HOW(GSAS_OP_CSWAP, 7, 2), 1 } },
	{ COMPARE, 16, { KEY, 0, HOW(GSAS_OP_CSWAP, 7, 0x80000001), 1 } },
	/* a GET has no bytes and is never split */
	{ GET, 1, { KEY, 0, 8, 1 } }, { GET, MORE, { KEY, 0, 8, 1, 8 } },
	{ GET_CHECK, 1, { KEY, 0, 8, 1 } },
	{ GET_CHECK, MORE, { KEY, 0, 8, 1, 8 } },
	/* results of no operation */
	{ RESULT, 0, { 0, 0 } }, { RESULT, 8, { 1, 0 } },
	{ RESULT, MORE, { UINT64_C(1) << 32, 0 } },
	{ RESULT, 0, { UINT64_MAX, 5 } }, { RESULT, ASK, { 0, 0 } },
	/* refusals of no operation, or without an error */
	{ REFUSED, 0, { 1, FI_EINVAL } }, { REFUSED, 0, { 0, FI_EINVAL } },
	{ REFUSED, 0, { UINT64_MAX, FI_EINVAL } }, { REFUSED, 0, { 1, 0 } },
	{ REFUSED, MORE, { 1, 5 } },
	/* a write of more than 2^64 bytes */
	{ PUT_DATA, UNM_WIRE_EARLIER | 8, { KEY, 0, 1, UINT64_MAX - 7 } },
	/* flags that PROBE does not have; unknown types */
	{ PROBE, 8, { 0 } }, { PROBE, ASK, { 0 } }, { PROBE, MORE, { 0 } },
	{ 0x3C, 0, { 0 } }, { 0x3D, 0, { 0 } }, { 0x3F, 0, { 0 } },
	/* carried: too short, outside of the space, with a length in the
	 * head */
	{ CARRIED, 0, { EXT(0, 0), HEAD(PUT) } },
	{ CARRIED, 0, { EXT(0, 8), HEAD(PUT) } },
	{ CARRIED, 0, { EXT(0, 15), HEAD(PUT) } },
	{ CARRIED, 0, { EXT(0, 23), HEAD(PUT) | (uint64_t)MORE << 48 } },
	{ CARRIED, 0, { EXT(0, 31), HEAD(GET) } },
	{ CARRIED, 0, { EXT(0, 39), HEAD(FETCH) | (uint64_t)MORE << 48 } },
	{ CARRIED, 0, { EXT(0, 63), HEAD(RKEY) } },
	{ CARRIED, 0, { EXT(-8, 16), HEAD(PUT) } },
	{ CARRIED, 0, { EXT(0, 0xffffffff), HEAD(PUT) } },
	{ CARRIED, 0, { EXT(4, 16), HEAD(PUT) } },
	{ CARRIED, 0, { EXT(0, 16), HEAD(PUT) | UINT64_C(1) << 48 } },
	{ CARRIED, 0, { EXT(0, 16), HEAD(PROBE) } },
};

static void test_broken_packets(void **state)
{
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct scene s = scene();

		send_packet(&s, &broken[i]);
		/* the next request is not executed */
		send_packet(&s, &(struct packet){ PUT, 8, { KEY, 0, 1 } });
		dropped(&s, "packet", i);
	}
}

/* ---- Refused requests ---------------------------------------------------- */

/* Wrong keys, rights and bounds: each gets its error, and no byte is
 * changed. */
static const struct {
	struct packet p;
	int err;
} refused[] = {
	{ { PUT, 8, { KEY + 70, 0 } }, FI_EKEYREJECTED },
	{ { PUT, 8, { READ_KEY, 0 } }, FI_EACCES },
	{ { PUT, 8, { KEY, ROOM - 7 } }, FI_EINVAL },
	{ { PUT, 8, { KEY, ROOM } }, FI_EINVAL },
	{ { PUT, 8, { KEY, UINT64_MAX } }, FI_EINVAL },
	{ { PUT, 8, { KEY, -8 } }, FI_EINVAL },
	{ { PUT, MORE | 8, { KEY, 0, ROOM - 7 } }, FI_EINVAL },
	{ { PUT, MORE | 8, { KEY, 0, UINT64_MAX } }, FI_EINVAL },
	{ { PUT, MORE | 8, { KEY, 0, UINT64_MAX - 7 } }, FI_EINVAL },
	{ { PUT, ASK | 8, { KEY, ROOM } }, FI_EINVAL },
	{ { PUT_CHECK, 8, { READ_KEY, 0 } }, FI_EACCES },
	{ { PUT_CHECK, 8, { KEY, ROOM - 7 } }, FI_EINVAL },
	{ { PUT_DATA, 8, { KEY, ROOM, 1 } }, FI_EINVAL },
	{ { ATOMIC, 8, { KEY, ROOM - 7, SUM8(1) } }, FI_EINVAL },
	{ { ATOMIC, 8, { READ_KEY, 0, SUM8(1) } }, FI_EACCES },
	{ { ATOMIC, MORE | 8, { KEY, 0, SUM8(1), ROOM - 7 } }, FI_EINVAL },
	{ { GET, 0, { KEY + 70, 0, 8, 1 } }, FI_EKEYREJECTED },
	{ { GET, 0, { WRITE_KEY, 0, 8, 1 } }, FI_EACCES },
	{ { GET, 0, { KEY, 0, ROOM + 1, 1 } }, FI_EINVAL },
	{ { GET, 0, { KEY, 8, UINT64_MAX - 7, 1 } }, FI_EINVAL },
	{ { GET_CHECK, 0, { WRITE_KEY, 0, 8, 1 } }, FI_EACCES },
	{ { GET_CHECK, 0, { KEY, 0, UINT64_MAX, 1 } }, FI_EINVAL },
	{ { GET, 0, { KEY, 0, UINT64_MAX, 1 } }, FI_EINVAL },
	{ { FETCH, 8, { KEY, ROOM - 4, SUM8(1), 1 } }, FI_EINVAL },
	{ { FETCH, 8, { WRITE_KEY, 0, SUM8(1), 1 } }, FI_EACCES },
	{ { FETCH, 0, { KEY, 8, HOW(GSAS_OP_READ, 7, 512), 1 } }, FI_EINVAL },
	{ { FETCH, MORE | 8, { KEY, 0, SUM8(1), 1, UINT64_MAX } }, FI_EINVAL },
};

static void test_refused_requests(void **state)
{
	struct scene s = scene();

	for (size_t i = 0, number = 0; i < sizeof(refused) /
	     sizeof(refused[0]); i++) {
		bool posted = refused[i].p.type <= ATOMIC ||
			refused[i].p.type == PUT_CHECK;
		uint64_t w[UNM_WIRE_WORDS_MAX];

		number += posted;
		send_packet(&s, &refused[i].p);
		if (i == 0)
			raw_expect(s.r, UNM_WIRE_HELLO, w);
		raw_expect(s.r, posted ? REFUSED : RESULT, w);
		assert_int_equal(w[0], posted ? number : 1);
		assert_int_equal(w[1], refused[i].err);
		untouched(&s);
		others_are_well(&s);
	}
	assert_false(s.r->dead);
	scene_ends(&s);
}

/* ---- Long requests ------------------------------------------------------- */

/* Bytes of a mapping that are in memory. */
static size_t resident(void *mem, size_t len)
{
	size_t pages = len / 4096, n = 0;
	unsigned char *in = malloc(pages);

	assert_non_null(in);
	assert_int_equal(mincore(mem, len, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	free(in);
	return n * 4096;
}

/* One packet asks for a long region to be checked and read. The target checks
 * the part that it is about to send, not the whole region in one call. */
static void test_long_gets_with_check(void **state)
{
	const size_t len = (size_t)128 << 20;
	struct packet get = { GET_CHECK, 0, { BIG_KEY, 0, len, 1 } };
	uint64_t w[UNM_WIRE_WORDS_MAX], head;
	struct fid_mr *mr;
	struct scene s = scene();
	void *mem;

	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED |
		   MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(mem != MAP_FAILED);
	mr = os_reg(s.v, mem, len, OS_ALL, BIG_KEY);
	send_packet(&s, &get);
	raw_expect(s.r, UNM_WIRE_HELLO, w);
	/* the first parts of the result arrive, and are not released */
	RAW_UNTIL(raw_next(s.r, &head) != NULL);
	for (int i = 0; i < 200; i++)
		raw_step();
	assert_true(resident(mem, len) > 0);
	assert_true(resident(mem, len) <= len / 8);
	assert_int_equal(fi_close(&mr->fid), 0);
	munmap(mem, len);
	scene_ends(&s);
}

/* Wait for the next RESULT, in a packet or in receive space. Returns the token;
 * *more: further RESULTs of this request follow. */
static uint64_t next_result(struct raw *r, bool *more)
{
	const struct hal_cell *cell;
	uint64_t head, token;

	cell = raw_next(r, &head);
	token = hal_cell_word(cell, 0);
	if (hal_head_type(head) == CARRIED) {
		memcpy(&token, hal_space(r->peer, (uint32_t)token), 8);
		head = hal_cell_word(cell, 1);
	}
	assert_int_equal(hal_head_type(head), RESULT);
	*more = hal_head_flags(head) & UNM_WIRE_MORE;
	return token;
}

/* Results come in the order of their requests: a short one does not overtake a
 * long one that waits for receive space. */
static void test_results_in_order(void **state)
{
	const size_t len = (size_t)1 << 20;
	struct packet get[] = { { GET, 0, { BIG_KEY, 0, len, 1 } },
				{ GET, 0, { KEY, 0, 8, 2 } } };
	uint64_t w[UNM_WIRE_WORDS_MAX];
	struct scene s = scene();
	bool more = true;
	void *mem = calloc(1, len);
	struct fid_mr *mr;

	assert_non_null(mem);
	mr = os_reg(s.v, mem, len, OS_ALL, BIG_KEY);
	send_packet(&s, &get[0]);
	send_packet(&s, &get[1]);
	for (int i = 0; i < 100; i++)
		raw_step();
	raw_expect(s.r, UNM_WIRE_HELLO, w);
	while (more)
		assert_int_equal(next_result(s.r, &more), 1);
	assert_int_equal(next_result(s.r, &more), 2);
	assert_false(more);
	assert_int_equal(fi_close(&mr->fid), 0);
	free(mem);
	scene_ends(&s);
}

/* ---- Floods -------------------------------------------------------------- */

/* A peer that takes no answers is disconnected after twice the number of
 * requests that a peer may have pending. */
static void flood(const struct packet *p)
{
	struct scene s = scene();
	uint32_t n = 0;

	while (n < 200000 && send_packet(&s, p))
		n++;
	assert_in_range(n, 32768, 199999);
	dropped(&s, "flood", p->type);
}

static void test_floods(void **state)
{
	flood(&(struct packet){ GET, 0, { KEY, 0, 8, 1 } });
	flood(&(struct packet){ PUT, 8, { KEY, ROOM } });
	flood(&(struct packet){ FETCH, ASK, { KEY, 0, HOW(GSAS_OP_READ, 7, 4),
			      1 } });
}

/* ---- Answers to the victim's operations ---------------------------------- */

/* The victim starts an operation; *w gets the words of its request. */
static void asked(struct scene *s, uint8_t kind, uint8_t *buf, uint64_t *w)
{
	struct fid_ep *ep = s->v->ep;

	if (kind == PUT)
		EP_OK(fi_write(ep, buf, 16, NULL, s->vr, 0, 1, buf));
	else if (kind == GET)
		EP_OK(fi_read(ep, buf, 16, NULL, s->vr, 0, 1, buf));
	else
		EP_OK(fi_fetch_atomic(ep, buf, 2, NULL, buf, NULL, s->vr, 0, 1,
				      FI_UINT64, FI_SUM, buf));
	raw_expect(s->r, UNM_WIRE_HELLO, w);
	raw_expect(s->r, kind, w);
}

/* The right token with a wrong answer: the operation asks for 16 bytes. */
static void test_bad_results(void **state)
{
	static const struct {
		uint8_t kind, flags;
		uint64_t status;
		bool twice;
	} t[] = {
		{ GET, 15, 0, false }, { GET, 17, 0, false },
		{ GET, 0, 0, false }, { GET, 40, 0, false },
		{ GET, MORE | 17, 0, false }, { GET, MORE | 9, 0, true },
		{ GET, 16, 0, true }, { GET, 0, FI_EINVAL, true },
		{ FETCH, 8, 0, false }, { FETCH, 24, 0, false },
		{ FETCH, MORE | 16, 0, true },
		{ GET, 0, UINT64_C(1) << 31, false },
		{ GET, 0, UINT64_C(1) << 32, false },
		{ GET, 0, UINT64_C(1) << 63, false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct scene s = scene();
		uint64_t w[UNM_WIRE_WORDS_MAX] = { 0 };
		struct packet p = { RESULT, t[i].flags, { 0, t[i].status } };
		uint8_t buf[64];
		struct ep_comp c;

		memset(buf, 0x22, sizeof(buf));
		asked(&s, t[i].kind, buf, w);
		/* words of the request: "key, address, length or how, token" */
		p.w[0] = w[3];
		send_packet(&s, &p);
		if (t[i].twice)
			send_packet(&s, &p);
		for (int k = 16; k < 64; k++)
			assert_int_equal(buf[k], 0x22);
		c = ep_wait(s.v, buf);
		/* the first of two answers may have been valid */
		if (!t[i].twice || t[i].flags & MORE)
			assert_int_equal(c.err, FI_ECONNABORTED);
		for (int k = 16; k < 64; k++)
			assert_int_equal(buf[k], 0x22);
		dropped(&s, "result", i);
	}
}

static void test_bad_refusals(void **state)
{
	static const uint64_t t[][2] = {
		{ 0, FI_EINVAL }, { 2, FI_EINVAL }, { UINT64_MAX, FI_EINVAL },
		{ 1, 0 }, { 1, UINT64_C(1) << 31 }, { 1, UINT64_C(1) << 40 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct scene s = scene();
		uint64_t w[UNM_WIRE_WORDS_MAX] = { 0 };
		uint8_t buf[64] = { 0 };

		asked(&s, PUT, buf, w);
		send_packet(&s, &(struct packet){ REFUSED, 0,
			    { t[i][0], t[i][1] } });
		assert_int_equal(ep_wait(s.v, buf).err, FI_ECONNABORTED);
		dropped(&s, "refusal", i);
	}
}

/* A count that exceeds what was sent completes operations to that peer only. */
static void test_counts_beyond(void **state)
{
	struct scene s = scene();
	uint64_t w[UNM_WIRE_WORDS_MAX] = { 0 };
	uint8_t buf[64] = { 0 };

	asked(&s, PUT, buf, w);
	hal_rx_back(s.r->peer, UNM_PEER_BACK_APPLIED, UINT64_MAX);
	assert_int_equal(ep_wait(s.v, buf).err, 0);
	/* the same for the guard (odd) and for changing revocations */
	for (uint64_t i = 1; i < 100; i++) {
		hal_rx_back(s.r->peer, UNM_PEER_BACK_REVOKED, i << 32 | i);
		hal_rx_back(s.r->peer, UNM_PEER_BACK_GUARD, 2 * i);
		EP_OK(fi_write(s.v->ep, buf, 16, NULL, s.vr, 0, 1, buf));
		assert_int_equal(ep_wait(s.v, buf).err, 0);
	}
	assert_false(s.r->dead);
	scene_ends(&s);
}

/* ---- Remote keys --------------------------------------------------------- */

static void send_rkey(struct scene *s, const uint64_t *w)
{
	if (s->v->info != NULL && ((struct unm_ep *)s->v->ep)->
	    limits.pkt_payload >= 64) {
		raw_send(s->r, hal_head(RKEY, 0), w, 8, NULL, 0);
		return;
	}
	raw_space(s->r, 0, w, 64);
	raw_send(s->r, hal_head(CARRIED, 0), (uint64_t[2]){ EXT(0, 64),
		 HEAD(RKEY) }, 2, NULL, 0);
}

#define REACH(how)	((uint64_t)(how) | UNM_REACH_READ | UNM_REACH_WRITE)

/* Key, reach, epoch, address, length, base, key of the memory. The victim's
 * operations must end, and access only memory that they may access. */
static const uint64_t rkeys[][8] = {
	/* a key that was not asked for */
	{ 2, REACH(1), 0, 0, ROOM, 0x1000 },
	/* memory that is not mapped */
	{ 1, REACH(1), 0, 0, ROOM, 0 }, { 1, REACH(1), 0, 0, ROOM, 0x1000 },
	{ 1, REACH(1), 0, 0, UINT64_MAX, UINT64_MAX - 4095 },
	{ 1, REACH(1), 0, 0, UINT64_MAX, 1ull << 63 },
	{ 1, REACH(1), 0, -8, UINT64_MAX, 8 },
	/* dmable memory that does not exist, offsets beyond it */
	{ 1, REACH(2), 0, 0, ROOM, 0, 0, 0 },
	{ 1, REACH(2), 0, 0, ROOM, 0, -1, -1 },
	{ 1, REACH(2), 0, 0, UINT64_MAX, UINT64_MAX, 1, 1 },
	/* unknown kinds of reach */
	{ 1, REACH(3), 0, 0, ROOM, 0x1000 }, { 1, REACH(15), 0, 0, ROOM, 8 },
	{ 1, 0xffffffff, 0, 0, ROOM, 8 },
	/* another epoch; no bytes; another address */
	{ 1, REACH(1), 1, 0, ROOM, 8 }, { 1, REACH(1), -1, 0, ROOM, 8 },
	{ 1, REACH(1), 0, 0, 0, 8 }, { 1, REACH(1), 0, ROOM, ROOM, 8 },
};

static void accesses_end(struct scene *s)
{
	uint8_t buf[64] = { 0 };
	struct ep_comp c = { 0 };

	for (int i = 0; i < 3; i++) {
		ssize_t ret = fi_write(s->v->ep, buf, 16, NULL, s->vr, 0, 1,
				       buf);

		if (ret == -FI_ECONNRESET)
			return;
		assert_int_equal(ret, 0);
		/* requests are counted as executed */
		for (uint64_t end = ep_deadline(); !ep_take(s->v, buf, &c);
		     raw_step()) {
			ep_in_time(end, "an access");
			if (s->r->peer != NULL)
				hal_rx_back(s->r->peer, UNM_PEER_BACK_APPLIED,
					    1000);
		}
	}
}

static void test_forged_remote_keys(void **state)
{
	for (size_t i = 0; i < sizeof(rkeys) / sizeof(rkeys[0]); i++) {
		struct scene s = scene();
		uint64_t w[UNM_WIRE_WORDS_MAX] = { 0 };
		bool asked_for = rkeys[i][0] == 1, stale = rkeys[i][2] != 0;
		const struct unm_stats *stats;
		uint8_t buf[64] = { 0 };

		asked(&s, PUT, buf, w);
		assert_int_equal(w[0], 1);
		send_rkey(&s, rkeys[i]);
		send_rkey(&s, rkeys[i]);	/* again, not asked for */
		hal_rx_back(s.r->peer, UNM_PEER_BACK_APPLIED, 1);
		assert_int_equal(ep_wait(s.v, buf).err, 0);
		for (int k = 0; k < 50; k++)
			raw_step();
		stats = ((struct unm_ep *)s.v->ep)->stats;
		assert_int_equal(stats->rkeys, asked_for && !stale);
		assert_int_equal(stats->rkey_stale, stale);
		accesses_end(&s);
		scene_ends(&s);
	}
}

/* Existing dmable memory, and a region that is longer than the memory. */
static void test_remote_keys_beyond_their_memory(void **state)
{
	static const uint64_t beyond[][2] = {	/* base, length */
		{ 0, UINT64_MAX }, { UINT64_MAX - 7, 16 }, { 1ull << 40, 16 },
		{ 0, 1ull << 40 }, { UINT64_MAX, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		struct scene s = scene();
		uint64_t w[UNM_WIRE_WORDS_MAX] = { 0 };
		uint64_t rkey[8] = { 1, REACH(2) };
		uint8_t buf[64] = { 0 };
		struct hal_key key;
		struct hal_mem *mem;
		void *addr;

		assert_int_equal(hal_mem_alloc(s.r->hal, s.r->hif->addr.board,
					       65536, &mem, &addr), 0);
		assert_int_equal(hal_mem_key(s.r->hal, mem, &key), 0);
		asked(&s, PUT, buf, w);
		rkey[4] = beyond[i][1];
		rkey[5] = beyond[i][0];
		rkey[6] = key.word[0];
		rkey[7] = key.word[1];
		send_rkey(&s, rkey);
		hal_rx_back(s.r->peer, UNM_PEER_BACK_APPLIED, 1);
		assert_int_equal(ep_wait(s.v, buf).err, 0);
		for (int k = 0; k < 200; k++)
			raw_step();
		accesses_end(&s);
		hal_mem_free(s.r->hal, mem);
		scene_ends(&s);
	}
}

UNIT_MAIN(
	RAW_TEST_INSIDE(test_broken_packets),
	RAW_TEST_INSIDE(test_refused_requests),
	RAW_TEST_INSIDE(test_long_gets_with_check),
	RAW_TEST_INSIDE(test_results_in_order),
	RAW_TEST_INSIDE(test_floods),
	RAW_TEST_INSIDE(test_bad_results),
	RAW_TEST_INSIDE(test_bad_refusals),
	RAW_TEST_INSIDE(test_counts_beyond),
	RAW_TEST_INSIDE(test_forged_remote_keys),
	RAW_TEST_INSIDE(test_remote_keys_beyond_their_memory),
)
