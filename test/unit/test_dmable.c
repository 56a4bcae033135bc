/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dmable.c - messages from dmable buffers, recognised by their address:
 * the receiver reads them in place, also where the kernel does not permit
 * cross-memory attach.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/ep_mem.h"
#include "lib/ep_xfer.h"
#include "lib/raw_peer.h"
#include "unm_env.h"

#define LEN	(100 * 1000)
#define STATS(e) (((struct unm_ep *)(e)->ep)->stats)

static struct fi_unimem_mem_ops *memory(struct ep *e)
{
	struct fi_unimem_mem_ops *ops;

	assert_int_equal(fi_open_ops(&e->domain->fid, FI_UNIMEM_MEM, 0,
				     (void **)&ops, NULL), 0);
	return ops;
}

static uint8_t *dmable(struct ep *e, size_t len)
{
	void *p;

	assert_int_equal(memory(e)->alloc(e->domain, len, 0, 0, &p), 0);
	return p;
}

/* One message of len bytes, from out to in. */
static void message(struct ep_pair *p, void *out, void *in, size_t len,
		    uint64_t seed)
{
	struct ep_comp c;

	xfer_fill(out, len, seed, 0);
	memset(in, 0xEE, len);
	EP_OK(fi_trecv(p->b->ep, in, len, NULL, p->ba, 7, 0, in));
	EP_OK(fi_tsenddata(p->a->ep, out, len, NULL, seed, p->ab, 7, out));
	c = ep_received(p->b, in);
	assert_int_equal(c.len, len);
	assert_int_equal(c.data, seed);
	assert_memory_equal(in, out, len);
	ep_sent(p->a, out);
}

/* Sends messages until one was read in place. */
static void warm(struct ep_pair *p, void *out, void *in)
{
	uint64_t end = ep_deadline();

	while (STATS(p->b)->rx_dmable == 0) {
		message(p, out, in, LEN, 1);
		ep_in_time(end, "the import of the sender's memory");
	}
}

/* All lengths that are sent by rendezvous, and buffers anywhere in the
 * memory. */
static void test_read_in_place(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	bool any = p.b->info != NULL &&
		(((struct unm_ep *)p.b->ep)->hif->caps->flags &
		 HAL_CAP_DMA_ANY);
	uint8_t *out = dmable(p.a, 3 * MIB);
	uint8_t *in = any ? malloc(3 * MIB) : dmable(p.b, 3 * MIB);
	uint64_t rng = 3, n;

	warm(&p, out, in);
	n = STATS(p.b)->rx_dmable;
	for (uint64_t i = 0; i < 60; i++) {
		size_t len = 20000 + unit_below(&rng, 2 * MIB);

		message(&p, out + unit_below(&rng, MIB), in, len, i);
		assert_int_equal(STATS(p.b)->rx_dmable, ++n);
	}
	assert_int_equal(STATS(p.b)->rx_attach, 0);
	if (any)
		free(in);
}

/* An engine that accesses dmable memory only, and a receive buffer that is not
 * dmable. */
static void test_into_ordinary_memory(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *out = dmable(p.a, LEN), *in = ep_alloc(LEN);
	bool any = ((struct unm_ep *)p.b->ep)->hif->caps->flags &
		HAL_CAP_DMA_ANY;

	for (int i = 0; i < 20; i++)
		message(&p, out, in, LEN, (uint64_t)i);
	if (!any)
		assert_int_equal(STATS(p.b)->rx_dmable, 0);
}

/* Unexpected messages, several buffers, truncated ones: on whichever data path,
 * the bytes are right. */
static void test_other_receives(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *out = dmable(p.a, LEN), *in = dmable(p.b, LEN);
	struct iovec iov[3] = {
		{ out, 100 }, { out + 100, LEN - 200 },
		{ out + LEN - 100, 100 },
	};
	struct ep_comp c;

	warm(&p, out, in);
	for (int way = 0; way < 3; way++) {
		xfer_fill(out, LEN, 77 + way, 0);
		memset(in, 0, LEN);
		if (way == 2)
			EP_OK(fi_sendv(p.a->ep, iov, NULL, 3, p.ab, out));
		else
			EP_OK(fi_send(p.a->ep, out, LEN, NULL, p.ab, out));
		ep_settle();		/* no receive is posted */
		iov[0].iov_base = in;
		iov[1].iov_base = in + 100;
		iov[2].iov_base = in + LEN - 100;
		if (way == 0)
			EP_OK(fi_recvv(p.b->ep, iov, NULL, 3, p.ba, in));
		else
			EP_OK(fi_recv(p.b->ep, in, way == 1 ? 5000 : LEN, NULL,
				      p.ba, in));
		c = ep_wait(p.b, in);
		assert_int_equal(c.err, way == 1 ? FI_ETRUNC : 0);
		assert_memory_equal(in, out, way == 1 ? 5000 : LEN);
		assert_int_equal(in[LEN - 1], way == 1 ? 0 : out[LEN - 1]);
		ep_sent(p.a, out);
		iov[0].iov_base = out;
		iov[1].iov_base = out + 100;
		iov[2].iov_base = out + LEN - 100;
	}
}

/* An import is released when the owner frees the memory. */
static void test_let_go(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *out = dmable(p.a, 40 * MIB), *in = dmable(p.b, LEN);
	struct unm_peer *peer;

	warm(&p, out, in);
	peer = unm_container(((struct unm_ep *)p.b->ep)->peers.next,
			     struct unm_peer, all);
	assert_int_equal(peer->ncached, 1);
	assert_int_equal(memory(p.a)->free(p.a->domain, out), 0);
	EP_UNTIL(peer->ncached == 0);
	/* another block, with another key */
	out = dmable(p.a, 40 * MIB);
	STATS(p.b)->rx_dmable = 0;
	warm(&p, out, in);
	assert_int_equal(peer->ncached, 1);
}

/* FI_UNIMEM_DIRECT=0. */
static void test_switched_off(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *out = dmable(p.a, LEN), *in = dmable(p.b, LEN);

	g_unm_env.direct = false;
	for (int i = 0; i < 10; i++)
		message(&p, out, in, LEN, (uint64_t)i);
	assert_int_equal(STATS(p.b)->rx_dmable, 0);
	g_unm_env.direct = true;
}

/* ---- On the wire ------------------------------------------------------- */

static struct raw *g_raw;

/* The words of the packets that are sent. */
static void test_wire(void **state)
{
	struct ep *e = ep_open(NULL);
	struct raw *r = raw_open();
	fi_addr_t to = raw_insert(e, r);
	uint8_t *out = dmable(e, 2 * LEN);
	struct unm_mem_seg *seg = unm_mem_find(unm_domain(e->domain), out, 1);
	uint64_t w[UNM_WIRE_WORDS_MAX], head;

	EP_OK(fi_tsenddata(e->ep, out + 64, LEN, NULL, 5, to, 6, out));
	raw_expect(r, UNM_WIRE_HELLO, w);
	head = raw_expect(r, UNM_WIRE_RTS_TAGGED, w);
	assert_int_equal(hal_head_flags(head), 0x41);
	assert_int_equal(w[0], 6);
	assert_int_equal(w[1], 5);
	assert_int_equal(w[2], LEN);
	assert_int_equal(w[4], (uintptr_t)out + 64 - seg->base);
	assert_int_equal(w[5], seg->key.word[0]);
	assert_int_equal(w[6], seg->key.word[1]);
}

static void hello(struct ep *e)
{
	g_raw = raw_open();
	raw_insert(e, g_raw);
	raw_connect(g_raw, e);
	assert_true(raw_hello(g_raw));
}

/* With a key of no memory the receiver asks for pieces. */
static void test_forged_key(void **state)
{
	struct ep *e = ep_open(NULL);
	const uint64_t rts[] = { LEN, 0x0000000700000005, 0, 0x99, 0x98 };
	uint64_t w[UNM_WIRE_WORDS_MAX];
	uint8_t *in = dmable(e, LEN);

	hello(e);
	for (int i = 0; i < 5; i++) {
		EP_OK(fi_recv(e->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in));
		raw_space(g_raw, 0, rts, sizeof(rts));
		assert_true(raw_send(g_raw, hal_head(UNM_WIRE_CARRIED, 0),
				     (const uint64_t[]){ sizeof(rts) *
				     UINT64_C(1) << 32, hal_head(UNM_WIRE_RTS,
				     UNM_WIRE_DMABLE) }, 2, NULL, 0));
		if (i == 0)
			raw_expect(g_raw, UNM_WIRE_HELLO, w);
		raw_expect(g_raw, UNM_WIRE_CTS, w);
		assert_int_equal(w[0], rts[1]);
		assert_int_equal(w[2], LEN);
	}
	assert_int_equal(STATS(e)->rx_dmable, 0);
}

/* A message that the bare interface announces to e, from its dmable memory. */
struct announced {
	struct ep *e;
	struct hal_mem *mem;
	void *addr;
	uint8_t *in;			/* e's buffer */
	uint64_t rts[5];
};

static struct announced announced(size_t len)
{
	struct announced a = { .e = ep_open(NULL) };
	struct hal_key key;

	hello(a.e);
	a.in = dmable(a.e, len);
	assert_int_equal(hal_mem_alloc(g_raw->hal, -1, len, &a.mem, &a.addr),
			 0);
	assert_int_equal(hal_mem_key(g_raw->hal, a.mem, &key), 0);
	a.rts[0] = len;
	a.rts[1] = 0x0000000700000005;
	a.rts[3] = key.word[0];
	a.rts[4] = key.word[1];
	return a;
}

/* e posts a receive and gets the announcement. */
static void announce(struct announced *a)
{
	EP_OK(fi_recv(a->e->ep, a->in, a->rts[0], NULL, FI_ADDR_UNSPEC, a->in));
	raw_space(g_raw, 0, a->rts, sizeof(a->rts));
	assert_true(raw_send(g_raw, hal_head(UNM_WIRE_CARRIED, 0),
			     (const uint64_t[]){ sizeof(a->rts) *
			     UINT64_C(1) << 32, hal_head(UNM_WIRE_RTS,
			     UNM_WIRE_DMABLE) }, 2, NULL, 0));
}

static uint8_t answer(void)
{
	uint64_t head;

	do
		raw_next(g_raw, &head);
	while (hal_head_type(head) == UNM_WIRE_HELLO);
	return hal_head_type(head);
}

/* FI_UNIMEM_DIRECT=0 at the receiver. */
static void test_receiver_switched_off(void **state)
{
	struct announced a = announced(LEN);

	g_unm_env.direct = false;
	for (int i = 0; i < 20; i++) {
		announce(&a);
		assert_int_equal(answer(), UNM_WIRE_CTS);
	}
	g_unm_env.direct = true;
	hal_mem_free(g_raw->hal, a.mem);
}

/* The sender closes while the receiver reads its memory: the import lives as
 * long as the read. */
static void test_sender_goes(void **state)
{
	uint64_t end = ep_deadline();
	struct announced a = announced(24 * MIB);
	struct ep_comp c;

	a.rts[0] = 4096;		/* short until the memory is imported */
	do {
		announce(&a);
		ep_in_time(end, "an import");
	} while (answer() != UNM_WIRE_FIN);
	assert_int_equal(ep_received(a.e, a.in).len, 4096);
	a.rts[0] = 24 * MIB;
	announce(&a);
	ep_poll(a.e);
	raw_close(g_raw);
	c = ep_wait(a.e, a.in);
	while (c.err == FI_ECONNRESET && c.len != 0)
		c = ep_wait(a.e, a.in);	/* earlier ones that waited for
					 * pieces */
	assert_int_equal(c.err, FI_ECONNRESET);
	hal_mem_free(g_raw->hal, a.mem);
	EP_UNTIL(STATS(a.e)->deaths == 1);
}

/* A valid key, and a buffer that is not entirely in its memory. */
static void test_forged_offset(void **state)
{
	uint64_t end = ep_deadline();
	struct announced a = announced(LEN);
	struct ep_comp c;

	/* in bounds first, until it is read in place; then beyond */
	for (bool beyond = false;;) {
		uint8_t type;

		a.rts[2] = beyond ? UINT64_MAX - 50 : 0;
		announce(&a);
		type = answer();
		if (type == UNM_WIRE_CTS) {
			assert_false(beyond);
			ep_in_time(end, "an import");
			continue;
		}
		assert_int_equal(type, UNM_WIRE_FIN);
		c = ep_wait(a.e, a.in);
		assert_int_equal(c.err, beyond ? FI_EIO : 0);
		if (beyond)
			break;
		beyond = true;
	}
	hal_mem_free(g_raw->hal, a.mem);
}

UNIT_MAIN(
	RAW_TEST_INSIDE(test_read_in_place),
	RAW_TEST_INSIDE(test_into_ordinary_memory),
	RAW_TEST_INSIDE(test_other_receives),
	RAW_TEST_INSIDE(test_let_go),
	RAW_TEST_INSIDE(test_switched_off),
	RAW_TEST_INSIDE(test_wire),
	RAW_TEST_INSIDE(test_forged_key),
	RAW_TEST_INSIDE(test_forged_offset),
	RAW_TEST_INSIDE(test_receiver_switched_off),
	RAW_TEST_INSIDE(test_sender_goes),
)
