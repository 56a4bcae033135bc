/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_golden.c - the bytes that an endpoint sends, compared with
 * docs/protocol.md: every type, by both profiles, with and without tag and
 * data.
 *
 * If this test fails, versions of the provider are no longer compatible.
 */
#include <rdma/fi_rma.h>

#include "lib/ep_xfer.h"
#include "lib/raw_peer.h"

#define TAG	UINT64_C(0x123456789abcdef0)
#define DATA	UINT64_C(0x8807060504030201)

struct wire {
	struct ep *e;
	struct raw *r;
	fi_addr_t to;
	uint64_t head;
	uint64_t w[HAL_PKT_MAX / 8];	/* words after the head */
};

static struct wire wire(void)
{
	struct wire g = { .e = ep_open(NULL), .r = raw_open() };

	g.to = raw_insert(g.e, g.r);
	return g;
}

static void next(struct wire *g)
{
	const struct hal_cell *cell = raw_next(g->r, &g->head);

	memcpy(g->w, cell->payload, sizeof(g->w));
	assert_int_equal(g->head & HAL_HEAD_ID_MASK,
			 g->r->peer->rx.identity);
	g->head &= ~HAL_HEAD_ID_MASK;
}

/* Receives the first message, behind the HELLO. */
static void begin(struct wire *g)
{
	next(g);
	assert_int_equal(g->head, UINT64_C(0x0100000000000000));
	assert_int_equal(g->w[0], UINT64_C(0x0000000000060006));
}

static uint32_t payload(const struct wire *g)
{
	return g->r->hif->caps->pkt_payload;
}

/* Sends by the call that has this tag and data. */
static void send_it(struct wire *g, const void *buf, size_t len, bool tagged,
		    bool data)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = g->to,
			      .data = DATA };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov, .iov_count = 1,
				      .addr = g->to, .data = DATA,
				      .tag = TAG };
	uint64_t flags = data ? FI_REMOTE_CQ_DATA : 0;

	if (tagged)
		EP_OK(fi_tsendmsg(g->e->ep, &tmsg, flags));
	else
		EP_OK(fi_sendmsg(g->e->ep, &msg, flags));
}

/* Sends by the call without tag and data. */
static void send_plain(struct wire *g, const void *buf, size_t len)
{
	const bool tagged = false, data = false;

	send_it(g, buf, len, tagged, data);
}

/* Checks tag and data; returns the number of words that they use. */
static unsigned lead(const uint64_t *w, bool tagged, bool data)
{
	unsigned n = 0;

	if (tagged)
		assert_int_equal(w[n++], TAG);
	if (data)
		assert_int_equal(w[n++], DATA);
	return n;
}

/* ---- Packets that an endpoint sends ---------------------------------- */

static void test_hello_comes_first_and_once(void **state)
{
	struct wire g = wire();
	char c = 0x5A;

	send_plain(&g, &c, 1);
	begin(&g);
	for (int i = 0; i < 3; i++) {
		next(&g);
		assert_int_equal(g.head, UINT64_C(0x1001000000000000));
		assert_int_equal((uint8_t)g.w[0], 0x5A);
		send_plain(&g, &c, 1);
	}
}

static void test_inline(void **state)
{
	char buf[HAL_PKT_MAX];
	struct wire g = wire();

	xfer_fill(buf, sizeof(buf), 1, 0);
	send_plain(&g, buf, 0);
	begin(&g);
	next(&g);
	for (int tagged = 0; tagged < 2; tagged++)
		for (int data = 0; data < 2; data++) {
			uint32_t max = payload(&g) - 8 * tagged - 8 * data;

			for (uint32_t len = 0; len <= max; len++) {
				unsigned n;

				send_it(&g, buf, len, tagged, data);
				next(&g);
				assert_int_equal(g.head >> 56, 0x10 | tagged);
				assert_int_equal(g.head >> 48 & 0xff,
						 data << 6 | len);
				n = lead(g.w, tagged, data);
				assert_memory_equal(&g.w[n], buf, len);
			}
		}
}

/* A message that does not fit one slot beside tag and data is in two. */
static void test_wide(void **state)
{
	char buf[HAL_PKT_WIDE], got[HAL_PKT_WIDE];
	struct wire g = wire();
	uint32_t wide = g.r->hif->caps->pkt_wide;

	unit_needs(g.r->hif->caps->flags & HAL_CAP_WIDE);
	xfer_fill(buf, sizeof(buf), 1, 0);
	send_plain(&g, buf, 0);
	begin(&g);
	next(&g);
	for (int tagged = 0; tagged < 2; tagged++)
		for (int data = 0; data < 2; data++) {
			uint32_t words = 8 * tagged + 8 * data;

			for (uint32_t len = payload(&g) - words + 1;
			     len <= wide - words; len++) {
				send_it(&g, buf, len, tagged, data);
				next(&g);
				memcpy(got, g.w, HAL_PKT_MAX);
				memcpy(got + HAL_PKT_MAX, g.r->second,
				       HAL_PKT_MAX);
				assert_int_equal(g.head >> 56, 0x16 | tagged);
				assert_int_equal(g.head >> 48 & 0xff,
						 data << 6 | (len & 0x3f) |
						 (len & 0x40) << 1);
				lead(g.w, tagged, data);
				assert_memory_equal(got + words, buf, len);
			}
		}
}

static void test_eager(void **state)
{
	static char buf[4096];
	struct wire g = wire();

	xfer_fill(buf, sizeof(buf), 1, 0);
	send_plain(&g, buf, 0);
	begin(&g);
	next(&g);
	for (int k = 0; k < 4; k++)
		for (size_t len = HAL_PKT_WIDE + 1; len <= 4096; len += 337) {
			bool tagged = k & 1, data = k & 2;
			uint32_t off, bytes;
			unsigned n;

			send_it(&g, buf, len, tagged, data);
			next(&g);
			assert_int_equal(g.head >> 56, 0x12 | tagged);
			assert_int_equal(g.head >> 48 & 0xff,
					 data ? 0x40 : 0);
			n = lead(g.w, tagged, data);
			off = (uint32_t)g.w[n];
			bytes = g.w[n] >> 32;
			assert_int_equal(bytes, len);
			assert_int_equal(off % 64, 0);
			assert_true(off + bytes <=
				    g.r->hif->caps->space_bytes);
			assert_memory_equal(hal_space(g.r->peer, off), buf,
					    len);
		}
}

/* A message from one buffer has an address, one from several buffers has none.
 * Words that do not fit into the packet are carried in receive space. */
static void test_rts(void **state)
{
	static char buf[100000];
	struct wire g = wire();

	send_plain(&g, buf, 0);
	begin(&g);
	next(&g);
	for (int k = 0; k < 4; k++) {
		bool tagged = k & 1, data = k & 2;
		unsigned words = 3 + tagged + data, n;
		uint64_t w[UNM_WIRE_WORDS_MAX];

		send_it(&g, buf, sizeof(buf), tagged, data);
		next(&g);
		if (8 * words > payload(&g)) {
			assert_int_equal(g.head,
					 UINT64_C(0x0200000000000000));
			assert_int_equal(g.w[0] >> 32, 8 * words);
			memcpy(w, hal_space(g.r->peer, (uint32_t)g.w[0]),
			       8 * words);
			g.head = g.w[1];
		} else {
			memcpy(w, g.w, 8 * words);
		}
		assert_int_equal(g.head, UINT64_C(0x14) << 56 |
				 (uint64_t)tagged << 56 |
				 (uint64_t)(data ? 0x40 : 0) << 48);
		n = lead(w, tagged, data);
		assert_int_equal(w[n], sizeof(buf));
		assert_true(w[n + 1] >> 32 & 1);	/* odd: generation of an
							 * object in use */
		assert_int_equal(w[n + 2], (uintptr_t)buf);
	}
}

static void test_rts_of_pieces_has_no_address(void **state)
{
	static char buf[100000];
	struct iovec iov[2] = { { buf, 50000 }, { buf + 50000, 50000 } };
	uint64_t w[UNM_WIRE_WORDS_MAX];
	struct wire g = wire();

	EP_OK(fi_sendv(g.e->ep, iov, NULL, 2, g.to, buf));
	begin(&g);
	raw_expect(g.r, UNM_WIRE_RTS, w);
	assert_int_equal(w[0], 100000);
	assert_int_equal(w[2], 0);
}

/* ---- The receiving side of rendezvous -------------------------------- */

#define LEN	40000

/* The bare interface announces a message, the endpoint asks for pieces and gets
 * them; its buffer has the bytes that were sent. */
static void test_cts_and_data(void **state)
{
	char *in = ep_alloc(LEN), *out = ep_alloc(LEN);
	uint64_t w[UNM_WIRE_WORDS_MAX], head;
	const uint64_t rts[] = { TAG, LEN, 0x0000000900000003, 0 };
	struct ep_comp c;
	struct wire g = wire();
	uint64_t want;

	xfer_fill(out, LEN, 3, 0);
	EP_OK(fi_trecv(g.e->ep, in, LEN, NULL, g.to, TAG, 0, in));
	raw_connect(g.r, g.e);
	assert_true(raw_hello(g.r));
	raw_space(g.r, 0, rts, sizeof(rts));
	assert_true(raw_send(g.r, hal_head(UNM_WIRE_CARRIED, 0),
			     (const uint64_t[]){ sizeof(rts) * UINT64_C(1)
			     << 32, hal_head(UNM_WIRE_RTS_TAGGED, 0) }, 2,
			     NULL, 0));
	begin(&g);
	head = raw_expect(g.r, UNM_WIRE_CTS, w);
	assert_int_equal(head & ~HAL_HEAD_ID_MASK,
			 UINT64_C(0x2000000000000000));
	assert_int_equal(w[0], rts[2]);
	want = w[1];
	assert_int_equal(w[2], LEN);
	for (uint32_t at = 0, n; at < LEN; at += n) {
		n = LEN - at < 4000 ? LEN - at : 4000;
		raw_space(g.r, 4096, out + at, n);
		w[0] = want;
		w[1] = unm_wire_extent_word(4096, n);
		assert_true(raw_send(g.r, hal_head(UNM_WIRE_DATA, 0), w, 2,
				     NULL, 0));
		/* one piece at a time: its space is free again when done */
		RAW_UNTIL(hal_tx_done(g.r->peer) == hal_tx_sent(g.r->peer));
	}
	c = ep_received(g.e, in);
	assert_int_equal(c.len, LEN);
	assert_int_equal(c.tag, TAG);
	assert_int_equal(c.src, g.to);
	assert_true(xfer_filled(in, LEN, 3, 0));
}

/* A receiver that wants no bytes answers with FIN. */
static void test_fin(void **state)
{
	uint64_t w[UNM_WIRE_WORDS_MAX], head;
	const uint64_t rts[] = { LEN, 0x0000000700000005, 0 };
	struct ep_comp c;
	struct wire g = wire();
	char in;

	EP_OK(fi_recv(g.e->ep, &in, 0, NULL, FI_ADDR_UNSPEC, &in));
	raw_connect(g.r, g.e);
	assert_true(raw_hello(g.r));
	assert_true(raw_send(g.r, hal_head(UNM_WIRE_RTS, 0), rts, 3, NULL,
			     0));
	begin(&g);
	head = raw_expect(g.r, UNM_WIRE_FIN, w);
	assert_int_equal(head & ~HAL_HEAD_ID_MASK,
			 UINT64_C(0x2200000000000000));
	assert_int_equal(w[0], rts[1]);
	assert_int_equal(w[1], 0);
	c = ep_wait(g.e, &in);
	assert_int_equal(c.err, FI_ETRUNC);
	assert_int_equal(c.olen, LEN);
}

/* The sender answers CTS with DATA whose extents add up. */
static void test_data_follows_cts(void **state)
{
	char *out = ep_alloc(LEN), *got = ep_alloc(LEN);
	uint64_t w[UNM_WIRE_WORDS_MAX], token;
	struct wire g = wire();

	xfer_fill(out, LEN, 4, 0);
	EP_OK(fi_send(g.e->ep, out, LEN, NULL, g.to, out));
	begin(&g);
	raw_expect(g.r, UNM_WIRE_RTS, w);
	token = w[1];
	raw_connect(g.r, g.e);
	assert_true(raw_hello(g.r));
	w[0] = token;
	w[1] = 0x123;
	w[2] = LEN - 7;			/* less than the message has */
	assert_true(raw_send(g.r, hal_head(UNM_WIRE_CTS, 0), w, 3, NULL, 0));
	for (uint32_t at = 0; at < LEN - 7; at += w[1] >> 32) {
		raw_expect(g.r, UNM_WIRE_DATA, w);
		assert_int_equal(w[0], 0x123);
		assert_true(at + (w[1] >> 32) <= LEN - 7);
		memcpy(got + at, hal_space(g.r->peer, (uint32_t)w[1]),
		       w[1] >> 32);
	}
	/* every piece is released, but the receiver may be reading the rest */
	ep_settle();
	assert_int_equal(g.e->ncomp, 0);
	w[0] = token;
	w[1] = 0;
	assert_true(raw_send(g.r, hal_head(UNM_WIRE_FIN, 0), w, 2, NULL, 0));
	ep_sent(g.e, out);
	assert_true(xfer_filled(got, LEN - 7, 4, 0));
}

static void test_send_ends_by_fin(void **state)
{
	static char out[LEN];
	uint64_t w[UNM_WIRE_WORDS_MAX];

	for (uint64_t status = 0; status < 20; status += 5) {
		struct wire g = wire();
		struct ep_comp c;

		EP_OK(fi_send(g.e->ep, out, LEN, NULL, g.to, out));
		begin(&g);
		raw_expect(g.r, UNM_WIRE_RTS, w);
		raw_connect(g.r, g.e);
		assert_true(raw_hello(g.r));
		w[0] = w[1];
		w[1] = status;
		assert_true(raw_send(g.r, hal_head(UNM_WIRE_FIN, 0), w, 2,
				     NULL, 0));
		c = ep_wait(g.e, out);
		assert_int_equal(c.err != 0, status != 0);
		raw_teardown(NULL);
	}
}

/* ---- One-sided operations -------------------------------------------- */

/* The words and bytes of a long put are in one extent, and the bytes begin a
 * cache line. */
static void test_long_put(void **state)
{
	static char buf[2048] = "long";
	struct wire g = wire();
	const uint8_t *at;
	uint64_t word[2];

	for (int i = 0; i < 3; i++) {
		EP_OK(fi_write(g.e->ep, buf, sizeof(buf), NULL, g.to, 0x1234,
			       7, buf));
		if (i == 0)
			begin(&g);
		next(&g);
		assert_int_equal(hal_head_type(g.head), UNM_WIRE_CARRIED);
		assert_int_equal(hal_head_type(g.w[1]), UNM_WIRE_PUT);
		assert_int_equal(g.w[0] >> 32, 16 + sizeof(buf));
		assert_int_equal(((uint32_t)g.w[0] + 16) % 64, 0);
		at = hal_space(g.r->peer, (uint32_t)g.w[0]);
		memcpy(word, at, 16);
		assert_int_equal(word[0], 7);
		assert_int_equal(word[1], 0x1234);
		assert_memory_equal(at + 16, buf, sizeof(buf));
	}
}

/* ---- Versions -------------------------------------------------------- */

/* A later provider that still supports version 6 is accepted, with unknown
 * feature bits; a provider that does not is disconnected. */
static void test_other_versions(void **state)
{
	static const struct { uint64_t hello; bool fine; } t[] = {
		{ 0x0000000000060006, true }, { 0x0000000000060008, true },
		{ 0xffffffff00060008, true }, { 0x0000000000000006, true },
		{ 0x0000000000070007, false }, { 0x00000000ffffffff, false },
		{ 0x0000000000050005, false }, { 0x0000000000000000, false },
	};
	char in;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct wire g = wire();

		EP_OK(fi_recv(g.e->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
		raw_connect(g.r, g.e);
		raw_send(g.r, hal_head(UNM_WIRE_HELLO, 0), &t[i].hello, 1,
			 NULL, 0);
		raw_send(g.r, hal_head(UNM_WIRE_INLINE, 1), NULL, 0, "x", 1);
		if (t[i].fine) {
			assert_int_equal(ep_received(g.e, &in).len, 1);
		} else {
			RAW_UNTIL(g.r->dead);
			ep_quiet(g.e);
		}
		raw_teardown(NULL);
	}
}

UNIT_MAIN(
	RAW_TEST_INSIDE(test_hello_comes_first_and_once),
	RAW_TEST_INSIDE(test_inline),
	RAW_TEST_INSIDE(test_wide),
	RAW_TEST_INSIDE(test_eager),
	RAW_TEST_INSIDE(test_rts),
	RAW_TEST_INSIDE(test_rts_of_pieces_has_no_address),
	RAW_TEST_INSIDE(test_cts_and_data),
	RAW_TEST_INSIDE(test_fin),
	RAW_TEST_INSIDE(test_data_follows_cts),
	RAW_TEST_INSIDE(test_send_ends_by_fin),
	RAW_TEST_INSIDE(test_long_put),
	RAW_TEST_INSIDE(test_other_versions),
)
