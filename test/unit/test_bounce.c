/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bounce.c - the parameters that choose the protocol of messages: INLINE,
 * EAGER_MAX, BOUNCE and RKEY_KEEP, alone and together.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "lib/ep_mem.h"
#include "lib/ep_xfer.h"
#include "lib/raw_peer.h"
#include "progress/unm_gauge.h"
#include "rma/unm_bounce.h"
#include "unm_env.h"
#include "util/unm_clock.h"

#define LEN	(100 * 1000)
#define AREA	(256 * 1024)		/* bytes of an area of bounce buffers */
#define MANY	40			/* messages of LEN, more than fit */
#define STATS(e) (((struct unm_ep *)(e)->ep)->stats)

static struct unm_env g_saved;

static int restore(void **state)
{
	int ret = raw_teardown(state);

	g_unm_env = g_saved;
	return ret;
}

#define SWITCH_TEST(f)							\
	{ #f, ep_test_inside, NULL, restore, (void *)f }

/* Let the engine of an endpoint reach dmable memory only, as on a board. */
static void only_dmable(struct ep *e, struct hal_caps *caps)
{
	struct hal_if *hif = ((struct unm_ep *)e->ep)->hif;

	*caps = *hif->caps;
	caps->flags &= ~HAL_CAP_DMA_ANY;
	hif->caps = caps;
}

/* A pair of endpoints with bounce buffers; the test has set other fields of
 * g_unm_env. */
static struct ep_pair bounced_pair(void)
{
	static struct hal_caps caps[2];
	struct ep_pair p;

	g_unm_env.bounce = AREA;
	p = ep_pair(NULL);
	only_dmable(p.a, &caps[0]);
	only_dmable(p.b, &caps[1]);
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

/* ---- INLINE, EAGER_MAX ------------------------------------------------ */

static const size_t few[] = { 0, 1, 8, 16, 24, 40, 64, 112, 200, 256, 1000 };
#define NFEW	(sizeof(few) / sizeof(few[0]))

static void test_nothing_inline(void **state)
{
	struct ep_pair p;
	uint8_t out[1000], in[1000];

	g_unm_env.inline_on = false;
	p = ep_pair(NULL);
	for (size_t i = 0; i < NFEW; i++)
		message(&p, out, in, few[i], i);
	EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, in));
	EP_OK(fi_inject(p.a->ep, out, 8, p.ab));
	ep_received(p.b, in);
	assert_int_equal(STATS(p.a)->tx_inline, 0);
	assert_int_equal(STATS(p.a)->tx_wide, 0);
	assert_int_equal(STATS(p.a)->tx_eager, NFEW + 1);
}

static void test_nothing_eager(void **state)
{
	struct ep_pair p;
	uint8_t out[1000], in[1000];

	g_unm_env.inline_on = false;
	g_unm_env.eager_max = 0;
	p = ep_pair(NULL);
	for (size_t i = 0; i < NFEW; i++)
		message(&p, out, in, few[i], i);
	assert_int_equal(STATS(p.a)->tx_inline, 0);
	assert_int_equal(STATS(p.a)->tx_eager, 0);
	assert_int_equal(STATS(p.a)->tx_rendezvous, NFEW);
	/* an injected message must not need its sender any more */
	EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, in));
	EP_OK(fi_inject(p.a->ep, out, 8, p.ab));
	ep_received(p.b, in);
	assert_int_equal(STATS(p.a)->tx_eager, 1);
}

/* Pieces of streams and parts of requests do not follow a limit of 0. */
static void test_nothing_eager_but_pieces(void **state)
{
	struct ep_pair p;
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN);

	g_unm_env.eager_max = 0;
	g_unm_env.attach = false;
	p = ep_pair(NULL);
	assert_true(((struct unm_ep *)p.a->ep)->piece_max >= 4096);
	for (int i = 0; i < 5; i++)
		message(&p, out, in, LEN, (uint64_t)i);
	assert_int_equal(STATS(p.a)->tx_stream, 5);
}

/* ---- BOUNCE ------------------------------------------------------------ */

static void check_all_free(struct ep *e)
{
	struct unm_ep *ep = (void *)e->ep;

	for (int way = 0; way < 2; way++) {
		void *all = unm_bounce_take(ep, way, AREA);

		if (all == NULL)
			unit_fail("a bounce buffer was not freed");
		unm_bounce_give(ep, way, all);
	}
}

/* Sends messages until one was read in place. */
static void warm(struct ep_pair *p, void *out, void *in)
{
	uint64_t end = ep_deadline();

	while (STATS(p->b)->rx_dmable == 0) {
		message(p, out, in, LEN, 1);
		ep_in_time(end, "the import of the sender's bounce buffers");
	}
	check_all_free(p->a);
	check_all_free(p->b);
}

static void test_ordinary_memory(void **state)
{
	struct ep_pair p = bounced_pair();
	uint8_t *out = ep_alloc(AREA + 1), *in = ep_alloc(AREA + 1);
	const size_t lens[] = { 20000, 20001, LEN, AREA - 64, AREA };
	uint64_t n, sent;

	warm(&p, out, in);
	n = STATS(p.b)->rx_dmable;
	sent = STATS(p.a)->tx_bounce;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		message(&p, out, in, lens[i], i);
		assert_int_equal(STATS(p.b)->rx_dmable, n + i + 1);
		assert_int_equal(STATS(p.a)->tx_bounce, sent + i + 1);
		assert_int_equal(STATS(p.b)->rx_bounce, n + i + 1);
	}
	/* longer than the area */
	sent = STATS(p.a)->tx_bounce;
	message(&p, out, in, AREA + 1, 9);
	assert_int_equal(STATS(p.a)->tx_bounce, sent);
}

/* Buffers of several pieces, truncated and unexpected messages. */
static void test_pieces_and_truncation(void **state)
{
	struct ep_pair p = bounced_pair();
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN);
	struct iovec from[3] = {
		{ out, 100 }, { out + 100, LEN - 200 },
		{ out + LEN - 100, 100 },
	};
	struct iovec to[3] = {
		{ in, 50000 }, { in + 50000, 1 }, { in + 50001, LEN - 50001 },
	};
	struct ep_comp c;

	warm(&p, out, in);
	for (int way = 0; way < 4; way++) {
		xfer_fill(out, LEN, 77 + way, 0);
		memset(in, 0, LEN);
		EP_OK(fi_sendv(p.a->ep, from, NULL, 3, p.ab, out));
		if (way & 1)
			ep_settle();	/* no receive is posted */
		if (way < 2)
			EP_OK(fi_recvv(p.b->ep, to, NULL, 3, p.ba, in));
		else
			EP_OK(fi_recv(p.b->ep, in, 5000, NULL, p.ba, in));
		c = ep_wait(p.b, in);
		assert_int_equal(c.err, way < 2 ? 0 : FI_ETRUNC);
		assert_memory_equal(in, out, way < 2 ? LEN : 5000);
		if (way >= 2)
			assert_int_equal(in[5000], 0);
		ep_sent(p.a, out);
	}
}

/* More messages under way than bounce buffers, in both directions: each one
 * arrives, and every buffer is free again. */
static void test_more_than_fit(void **state)
{
	struct ep_pair p = bounced_pair();
	uint8_t *out = ep_alloc(MANY * LEN), *in = ep_alloc(2 * MANY * LEN);

	warm(&p, out, in);
	xfer_fill(out, MANY * LEN, 5, 0);
	for (int i = 0; i < MANY; i++) {
		EP_OK(fi_send(p.a->ep, out + i * LEN, LEN, NULL, p.ab, out));
		EP_OK(fi_send(p.b->ep, out + i * LEN, LEN, NULL, p.ba, out));
	}
	for (int i = 0; i < MANY; i++) {
		EP_OK(fi_recv(p.b->ep, in + i * LEN, LEN, NULL, p.ba, in));
		EP_OK(fi_recv(p.a->ep, in + (MANY + i) * LEN, LEN, NULL, p.ab,
			      in));
	}
	for (int i = 0; i < MANY; i++) {
		ep_received(p.b, in);
		ep_received(p.a, in);
		ep_sent(p.a, out);
		ep_sent(p.b, out);
	}
	assert_memory_equal(in, out, MANY * LEN);
	assert_memory_equal(in + MANY * LEN, out, MANY * LEN);
	check_all_free(p.a);
	check_all_free(p.b);
}

/* Messages without a receive keep all bounce buffers. Later messages to the
 * same peer do not wait for one. */
static void test_full_of_unexpected(void **state)
{
	struct ep_pair p = bounced_pair();
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN), *late[4];

	warm(&p, out, in);
	for (int i = 0; i < 4; i++) {	/* two fit */
		late[i] = ep_alloc(LEN);
		xfer_fill(late[i], LEN, 50 + i, 0);
		EP_OK(fi_tsend(p.a->ep, late[i], LEN, NULL, p.ab, 100 + i,
			       late[i]));
	}
	assert_null(unm_bounce_take((void *)p.a->ep, UNM_BOUNCE_TX,
				    LEN));
	for (uint64_t i = 0; i < 3; i++)
		message(&p, out, in, LEN, i);
	for (int i = 0; i < 4; i++) {
		EP_OK(fi_trecv(p.b->ep, in, LEN, NULL, p.ba, 100 + i, 0, in));
		ep_received(p.b, in);
		assert_true(xfer_filled(in, LEN, 50 + i, 0));
		ep_sent(p.a, late[i]);
	}
	check_all_free(p.a);
	check_all_free(p.b);
}

/* The buffer of an injected message may be reused at once, and the message
 * needs its sender no more: it is received although the sender has closed. */
static void test_injected_outlives_its_sender(void **state)
{
	struct ep_pair p;
	uint8_t out[4096], in[4096];
	struct iovec iov = { out, sizeof(out) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	const uint64_t end = ep_deadline();

	g_unm_env.inline_on = false;
	g_unm_env.eager_max = 0;
	p = bounced_pair();
	msg.addr = p.ab;
	xfer_fill(out, sizeof(out), 1, 0);
	/* by the slow path, because they are not connected, or by flags */
	EP_OK(fi_inject(p.a->ep, out, sizeof(out), p.ab));
	EP_OK(fi_sendmsg(p.a->ep, &msg, FI_INJECT));
	EP_OK(fi_inject(p.a->ep, out, sizeof(out), p.ab));
	memset(out, 0, sizeof(out));
	while (((struct unm_ep *)p.b->ep)->match[0].nmsg != 3) {
		ep_step();
		ep_in_time(end, "three messages");
	}
	assert_int_equal(STATS(p.a)->tx_rendezvous, 0);
	ep_close(p.a);
	for (int i = 0; i < 3; i++) {
		EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC,
			      in));
		assert_int_equal(ep_received(p.b, in).len, sizeof(in));
		assert_true(xfer_filled(in, sizeof(in), 1, 0));
	}
}

/* ---- RKEY_KEEP --------------------------------------------------------- */

static struct unm_peer *first_peer(struct ep *e)
{
	return unm_container(((struct unm_ep *)e->ep)->peers.next,
			     struct unm_peer, all);
}

/* A peer has come, and a remote key of it is in the cache. */
static bool has_rkey(struct ep *e)
{
	return !unm_list_empty(&((struct unm_ep *)e->ep)->peers) &&
		first_peer(e)->ncached != 0;
}

static void test_import_for_each_message(void **state)
{
	struct ep_pair p;
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN);

	g_unm_env.rkey_keep = false;
	p = bounced_pair();
	for (uint64_t i = 1; i <= 5; i++) {
		message(&p, out, in, LEN, i);
		assert_int_equal(STATS(p.b)->rx_dmable, i);
		assert_int_equal(STATS(p.b)->rkey_misses, i);
	}
	assert_int_equal(first_peer(p.b)->ncached, 0);
	assert_int_equal(STATS(p.b)->rkey_hits, 0);
}

/* The sender dies before its memory is imported: the receive ends, and was not
 * counted among the messages whose time is measured. */
static void test_sender_closes_before_the_import(void **state)
{
	struct ep_pair p;
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN);
	struct unm_ep *ep;
	uint64_t end = ep_deadline();

	g_unm_env.rkey_keep = false;
	p = bounced_pair();
	ep = (void *)p.b->ep;
	message(&p, out, in, LEN, 1);		/* connects them */
	EP_OK(fi_recv(p.b->ep, in, LEN, NULL, p.ba, in));
	EP_OK(fi_send(p.a->ep, out, LEN, NULL, p.ab, out));
	do {
		ep_poll(p.b);
		ep_in_time(end, "the message");
	} while (unm_list_empty(&first_peer(p.b)->recvs) && p.b->ncomp == 0);
	ep_close(p.a);
	ep_wait(p.b, in);
	assert_int_equal(ep->msg_clock.count[0], 0);
	assert_int_equal(ep->msg_clock.count[1], 0);
	assert_true(unm_list_empty(&ep->streams));
	check_all_free(p.b);
}

/* A bare interface that announces messages in dmable memory, and answers
 * requests for this memory only in raw_step(). */
struct owner {
	struct raw *r;
	struct hal_mem *mem;
	struct hal_key key;
};

static struct owner owner(struct ep *e)
{
	struct owner o = { .r = raw_open() };
	void *addr;

	raw_insert(e, o.r);
	raw_connect(o.r, e);
	assert_true(raw_hello(o.r));
	assert_int_equal(hal_mem_alloc(o.r->hal, -1, LEN, &o.mem, &addr), 0);
	assert_int_equal(hal_mem_key(o.r->hal, o.mem, &o.key), 0);
	return o;
}

static void announce(struct owner *o)
{
	const uint64_t rts[] = {
		LEN, 0x0000000700000005, 0, o->key.word[0], o->key.word[1],
	};
	const uint64_t carried[] = {
		unm_wire_extent_word(0, sizeof(rts)),
		hal_head(UNM_WIRE_RTS, UNM_WIRE_DMABLE),
	};

	raw_space(o->r, 0, rts, sizeof(rts));
	assert_true(raw_send(o->r, hal_head(UNM_WIRE_CARRIED, 0), carried, 2,
			     NULL, 0));
}

static bool imports(struct unm_ep *ep)
{
	unm_list_for_each(pos, &ep->streams)
		if (unm_container(pos, struct unm_rx_op,
				  control)->state == UNM_RX_IMPORT)
			return true;
	return false;
}

/* An owner that is stopped does not answer the import. Messages of other peers
 * are read meanwhile. */
static void test_a_stopped_owner_delays_no_other_peer(void **state)
{
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN);
	uint8_t *never = ep_alloc(LEN);
	uint64_t end = ep_deadline();
	struct ep_pair p;
	struct unm_ep *ep;
	struct owner o;
	bool still;

	g_unm_env.rkey_keep = false;
	p = bounced_pair();
	ep = (void *)p.b->ep;
	message(&p, out, in, LEN, 1);
	o = owner(p.b);
	do {		/* again, if this process was stopped for too long */
		EP_OK(fi_recv(p.b->ep, never, LEN, NULL, FI_ADDR_UNSPEC,
			      never));
		announce(&o);
		EP_UNTIL(imports(ep));
		message(&p, out, in, LEN, 2);
		still = imports(ep);
		ep_in_time(end, "a message while another one waits");
	} while (!still);
}

/* Memory is imported from a peer that this endpoint has sent nothing yet. The
 * gauges do not read words of such a peer. */
static void test_import_without_a_return_path(void **state)
{
	uint8_t *in = ep_alloc(LEN);
	struct ep *e;
	struct owner o;

	g_unm_env.rkey_keep = false;
	g_unm_env.bounce = AREA;
	e = ep_open(NULL);
	o = owner(e);
	EP_OK(fi_recv(e->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in));
	announce(&o);
	EP_UNTIL(imports((void *)e->ep));
	RAW_UNTIL(has_rkey(e));
	assert_false(first_peer(e)->hello_sent);
	unm_gauge_refresh((void *)e->ep, unm_now_us());
	assert_int_equal(STATS(e)->rkey_entries, 1);
	ep_received(e, in);
}

/* A message in memory that the cache has no space for is streamed. */
static void test_import_without_space(void **state)
{
	uint8_t *in = ep_alloc(LEN);
	uint64_t w[UNM_WIRE_WORDS_MAX];
	struct ep *e;
	struct owner o;

	g_unm_env.rkey_keep = false;
	g_unm_env.rkey_bytes = 4096;
	g_unm_env.bounce = AREA;
	e = ep_open(NULL);
	o = owner(e);
	for (int i = 0; i < 3; i++) {
		EP_OK(fi_recv(e->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in));
		announce(&o);
		RAW_UNTIL(has_rkey(e));
		assert_false(imports((void *)e->ep));
		if (i == 0)
			raw_expect(o.r, UNM_WIRE_HELLO, w);
		raw_expect(o.r, UNM_WIRE_CTS, w);
	}
	assert_int_equal(STATS(e)->rkey_misses, 1);
}

/* A long message follows one whose memory cannot be imported, because the cache
 * has no space: both arrive. */
static void test_read_behind_a_failed_import(void **state)
{
	uint8_t *out = ep_alloc(LEN), *in = ep_alloc(LEN);
	uint8_t *long_out = ep_alloc(4 * LEN), *long_in = ep_alloc(4 * LEN);
	struct ep_pair p;

	g_unm_env.rkey_bytes = 4096;
	g_unm_env.bounce = AREA;
	g_unm_env.stream_us = 0;
	p = ep_pair(NULL);
	message(&p, out, in, 8, 1);		/* connects them */
	xfer_fill(out, LEN, 2, 0);
	xfer_fill(long_out, 4 * LEN, 3, 0);
	EP_OK(fi_recv(p.b->ep, in, LEN, NULL, p.ba, in));
	EP_OK(fi_recv(p.b->ep, long_in, 4 * LEN, NULL, p.ba, long_in));
	EP_OK(fi_send(p.a->ep, out, LEN, NULL, p.ab, out));
	EP_OK(fi_send(p.a->ep, long_out, 4 * LEN, NULL, p.ab, long_out));
	ep_received(p.b, in);
	ep_received(p.b, long_in);
	assert_memory_equal(in, out, LEN);
	assert_memory_equal(long_in, long_out, 4 * LEN);
	ep_sent(p.a, out);
	ep_sent(p.a, long_out);
}

/* ---- Multi-receive ----------------------------------------------------- */

#define FLOOD	1500			/* messages */
#define WINDOW	16			/* of them under way */
#define PART	(16 * 1024)		/* bytes of the longest */
#define INJECTED 200			/* bytes; shorter ones are injected */
#define BUFS	4
#define BUF	(8 * PART)

static void post_multi(struct ep *e, uint8_t *buf)
{
	struct iovec iov = { buf, BUF };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = buf,
	};

	EP_OK(fi_recvmsg(e->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
}

/* Checks every completion of e, and the order of those that were not injected;
 * *last is the last one. Returns how many messages it was. */
static int take_multi(struct ep *e, int *last)
{
	int n = 0;

	for (; e->ncomp != 0; n++) {
		struct ep_comp c = ep_next(e);

		assert_int_equal(c.err, 0);
		assert_true(xfer_filled(c.buf, c.len, c.data, 0));
		if (c.len >= INJECTED) {
			assert_true((int)c.data > *last);
			*last = (int)c.data;
		}
		if (c.flags & FI_MULTI_RECV)
			post_multi(e, c.context);
	}
	return n;
}

/* As an MPI of active messages: many of all lengths into dmable buffers. */
static void test_multi_receive_in_dmable_memory(void **state)
{
	uint8_t *out = ep_alloc(WINDOW * PART);
	struct ep_pair p;
	size_t min = PART;
	int got = 0, last = -1;
	uint64_t end = ep_deadline();

	g_unm_env.inline_on = false;
	g_unm_env.eager_max = 0;
	p = bounced_pair();
	assert_int_equal(fi_open_ops(&p.b->domain->fid, FI_UNIMEM_MEM, 0,
				     (void **)&g_ops, NULL), 0);
	EP_OK(fi_setopt(&p.b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, sizeof(min)));
	for (int i = 0; i < BUFS; i++)
		post_multi(p.b, get(p.b->domain, BUF, 4096));
	for (int i = 0; i < FLOOD; i++) {
		uint8_t *at = out + i % WINDOW * PART;
		size_t len = i * 7919u % PART;

		while (i - got >= WINDOW) {
			ep_step();
			got += take_multi(p.b, &last);
			ep_in_time(end, "a window of messages");
		}
		xfer_fill(at, len, i, 0);
		if (len < INJECTED)
			EP_OK(fi_injectdata(p.a->ep, at, len, i, p.ab));
		else
			EP_OK(fi_senddata(p.a->ep, at, len, NULL, i, p.ab, at));
	}
	while (got < FLOOD) {
		ep_step();
		got += take_multi(p.b, &last);
		ep_in_time(end, "the last messages");
	}
	assert_true(STATS(p.b)->rx_dmable > FLOOD / 2);
}

static int keep_env(void **state)
{
	assert_int_equal(unm_env_load(), 0);
	g_saved = g_unm_env;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SWITCH_TEST(test_nothing_inline),
		SWITCH_TEST(test_nothing_eager),
		SWITCH_TEST(test_nothing_eager_but_pieces),
		SWITCH_TEST(test_ordinary_memory),
		SWITCH_TEST(test_pieces_and_truncation),
		SWITCH_TEST(test_more_than_fit),
		SWITCH_TEST(test_full_of_unexpected),
		SWITCH_TEST(test_injected_outlives_its_sender),
		SWITCH_TEST(test_import_for_each_message),
		SWITCH_TEST(test_sender_closes_before_the_import),
		SWITCH_TEST(test_a_stopped_owner_delays_no_other_peer),
		SWITCH_TEST(test_import_without_a_return_path),
		SWITCH_TEST(test_import_without_space),
		SWITCH_TEST(test_read_behind_a_failed_import),
		SWITCH_TEST(test_multi_receive_in_dmable_memory),
	};

	keep_env(NULL);
	return unit_run(tests);
}
