/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_transfer.c - every send call with every receive call, at all lengths
 * around a threshold, expected and unexpected.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/ep_xfer.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_offer.h"

/* around packet payloads of both profiles (less tag and data), both eager
 * limits, size classes of unexpected messages, and receive space */
static const size_t sizes[] = {
	0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 39, 40, 41, 47, 48, 49, 55, 56,
	57, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097,
	16383, 16384, 16385, 65535, 65536, 65537, 200000,
};
#define NSIZES	(sizeof(sizes) / sizeof(sizes[0]))

static uint64_t seed;

static void post_in_order(struct ep_pair *p, struct xfer *x, bool unexpected)
{
	if (!unexpected)
		EP_OK(xfer_recv(p->b, p->ba, x));
	EP_OK(xfer_send(p->a, p->ab, x));
	if (unexpected) {
		ep_settle();
		EP_OK(xfer_recv(p->b, p->ba, x));
	}
}

static void run(struct ep_pair *p, struct xfer *x, bool unexpected)
{
	x->seed = ++seed;
	x->tag = unit_random(&(uint64_t){ seed });
	x->data = ~x->tag;
	if (!xfer_tx_completes(x) || x->tx == XFER_SEND ||
	    x->tx == XFER_SENDDATA)
		x->tx_iov = 1;
	if (x->rx == XFER_RECV)
		x->rx_iov = 1;
	xfer_make(x);
	post_in_order(p, x, unexpected);
	xfer_check(p->b, p->ba, x);
	if (xfer_tx_completes(x))
		ep_sent(p->a, &x->txc);
	xfer_free(x);
}

static void every_call(struct ep_pair *p, bool tagged, bool unexpected)
{
	for (int tx = 0; tx < XFER_TX_CALLS; tx++)
		for (int rx = 0; rx < XFER_RX_CALLS; rx++)
			for (size_t i = 0; i < NSIZES; i++) {
				struct xfer x = {
					.tagged = tagged, .tx = tx, .rx = rx,
					.len = sizes[i], .tx_iov = 1 + i % 3,
					.rx_iov = 1 + i % 4,
				};

				if (xfer_inject(&x) &&
				    x.len > p->a->info->tx_attr->inject_size)
					continue;
				run(p, &x, unexpected);
			}
	ep_pair_quiet(p);
}

static void test_msg_expected(void **state)
{
	struct ep_pair p = ep_pair(NULL);

	every_call(&p, false, false);
}

static void test_msg_unexpected(void **state)
{
	struct ep_pair p = ep_pair(NULL);

	every_call(&p, false, true);
}

static void test_tagged_expected(void **state)
{
	struct ep_pair p = ep_pair(NULL);

	every_call(&p, true, false);
}

static void test_tagged_unexpected(void **state)
{
	struct ep_pair p = ep_pair(NULL);

	every_call(&p, true, true);
}

/* Vectors of any number of pieces on each side, some of them empty. */
static void test_pieces(void **state)
{
	static const size_t lens[] = { 0, 5, 40, 56, 300, 5000, 70000 };
	struct ep_pair p = ep_pair(NULL);

	for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++)
		for (unsigned t = 1; t <= XFER_IOV; t++)
			for (unsigned r = 1; r <= XFER_IOV; r++) {
				struct xfer x = {
					.tagged = (t + r) & 1,
					.tx = XFER_SENDV, .rx = XFER_RECVV,
					.len = lens[k], .tx_iov = t,
					.rx_iov = r,
				};

				run(&p, &x, r & 1);
			}
}

static void test_a_megabyte_and_one(void **state)
{
	static const enum xfer_tx calls[] = {
		XFER_SEND, XFER_SENDV, XFER_SENDMSG_DATA, XFER_SENDDATA,
	};
	struct ep_pair p = ep_pair(NULL);

	for (int i = 0; i < 16; i++) {
		struct xfer x = {
			.tagged = i & 1, .tx = calls[i / 2 % 4],
			.rx = i % XFER_RX_CALLS, .len = (1 << 20) + 1,
			.tx_iov = 1 + i % 8, .rx_iov = 1 + (i + 3) % 8,
		};

		run(&p, &x, i & 2);
	}
}

/* Buffers at any address. */
static void test_odd_addresses(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(70064), *in = ep_alloc(70064);
	int txc, rxc;

	for (size_t off = 0; off < 16; off++) {
		for (size_t i = 0; i < NSIZES && sizes[i] <= 70000; i++) {
			xfer_fill(out + off, sizes[i], ++seed, 0);
			EP_OK(fi_recv(p.b->ep, in + 15 - off, sizes[i], NULL,
				      p.ba, &rxc));
			EP_OK(fi_send(p.a->ep, out + off, sizes[i], NULL, p.ab,
				      &txc));
			ep_received(p.b, &rxc);
			ep_sent(p.a, &txc);
			assert_true(xfer_filled(in + 15 - off, sizes[i], seed,
						0));
		}
	}
}

/* All lengths from 0 to more than two packets, both ways at once. */
static void test_every_small_length_both_ways(void **state)
{
	struct ep_pair p = ep_pair(NULL);

	for (size_t len = 0; len < 160; len++) {
		struct xfer x = { .tagged = true, .tx = XFER_SENDDATA,
				  .len = len, .tag = len, .data = 1,
				  .seed = ++seed };
		struct xfer y = { .tx = XFER_SEND, .len = len, .tag = len,
				  .seed = ++seed };

		xfer_make(&x);
		xfer_make(&y);
		EP_OK(xfer_recv(p.b, FI_ADDR_UNSPEC, &x));
		EP_OK(xfer_recv(p.a, FI_ADDR_UNSPEC, &y));
		EP_OK(xfer_send(p.a, p.ab, &x));
		EP_OK(xfer_send(p.b, p.ba, &y));
		xfer_check(p.b, p.ba, &x);
		xfer_check(p.a, p.ab, &y);
		ep_sent(p.a, &x.txc);
		ep_sent(p.b, &y.txc);
		xfer_free(&x);
		xfer_free(&y);
	}
}

/* ---- Loopback -------------------------------------------------------- */

static void test_loopback_to_self(void **state)
{
	struct ep_pair p = { .a = ep_open(NULL) };

	p.b = p.a;
	p.ab = p.ba = ep_insert(p.a, p.a);
	for (int call = 0; call < XFER_TX_CALLS; call++)
		for (size_t i = 0; i < NSIZES; i++)
			for (int unexpected = 0; unexpected < 2; unexpected++) {
				struct xfer x = {
					.tagged = i & 1, .tx = call,
					.rx = call % XFER_RX_CALLS,
					.len = sizes[i],
				};

				if (xfer_inject(&x) && x.len > 4096)
					continue;
				run(&p, &x, unexpected);
			}
	ep_quiet(p.a);
}

/* ---- Choice of the data path ----------------------------------------- */

/* Rendezvous in pieces, from buffers that attach could read. */
static void test_stream_instead_of_attach(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	bool was = g_unm_env.attach;

	g_unm_env.attach = false;
	for (int call = 0; call < XFER_TX_CALLS; call++)
		for (size_t i = 0; i < NSIZES; i++) {
			struct xfer x = {
				.tagged = i & 1, .tx = call,
				.rx = call % XFER_RX_CALLS, .len = sizes[i],
				.rx_iov = 1 + i % 8,
			};

			if (!xfer_inject(&x))
				run(&p, &x, call & 1);
		}
	g_unm_env.attach = was;
	ep_quiet(p.a);
}

/* The sender unmapped its buffer: no bytes arrive, and both sides get an error
 * entry. */
static void test_a_buffer_that_went_away(void **state)
{
	enum { LEN = 1 << 20 };
	struct ep_pair p = ep_pair(NULL);
	char *in = malloc(LEN), *out;
	struct ep_comp c;
	int was;

	EP_OK(fi_inject(p.a->ep, in, 1, p.ab));
	ep_settle();
	if (!g_unm_env.attach || !unit_attach() ||
	    !((struct unm_ep *)p.a->ep)->peer_of[p.ab]->hp->dma_any) {
		free(in);
		skip();			/* the sender reads it itself: a
					 * signal */
	}
	was = g_unm_env.stream_us;
	g_unm_env.stream_us = 0;	/* the receiver reads at once */
	EP_OK(fi_recv(p.b->ep, in, 1, NULL, p.ba, in));
	ep_received(p.b, in);
	out = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(out, MAP_FAILED);
	EP_OK(fi_send(p.a->ep, out, LEN, NULL, p.ab, out));
	unit_take_memory(out, LEN);
	EP_OK(fi_recv(p.b->ep, in, LEN, NULL, p.ba, in));
	c = ep_wait(p.b, in);
	assert_int_equal(c.err, FI_EIO);
	c = ep_wait(p.a, out);
	assert_int_equal(c.err, FI_EFAULT);
	g_unm_env.stream_us = was;
	/* both peers still work */
	EP_OK(fi_inject(p.a->ep, in, 1, p.ab));
	EP_OK(fi_recv(p.b->ep, in, 1, NULL, p.ba, in));
	ep_received(p.b, in);
	free(in);
}

/* With a low eager limit there are injected messages above it: their buffers
 * may be reused at once nevertheless. */
static void test_inject_above_a_low_eager_limit(void **state)
{
	size_t was = g_unm_env.eager_max;
	struct ep_pair p;

	g_unm_env.eager_max = 256;
	p = ep_pair(NULL);
	g_unm_env.eager_max = was;
	for (int call = 0; call < XFER_TX_CALLS; call++)
		for (size_t i = 0; i < NSIZES; i++) {
			struct xfer x = {
				.tagged = i & 1, .tx = call, .len = sizes[i],
				.rx = call % XFER_RX_CALLS,
			};

			if (xfer_inject(&x) && x.len > 4096)
				continue;
			run(&p, &x, i & 2);
		}
}

/* The longest injected message may be as long as the smallest receive space: it
 * is accepted once the space is empty, wherever the last message ended. */
static void test_injects_of_every_length_in_turn(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	static char out[UNM_INJECT_MAX], in[UNM_INJECT_MAX];

	for (size_t len = 64; len <= UNM_INJECT_MAX; len += 448) {
		const size_t both[] = { len, UNM_INJECT_MAX };

		for (int i = 0; i < 2; i++) {
			xfer_fill(out, both[i], len + i, 0);
			EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba,
				      in));
			EP_OK(fi_inject(p.a->ep, out, both[i], p.ab));
			assert_int_equal(ep_received(p.b, in).len, both[i]);
			assert_true(xfer_filled(in, both[i], len + i, 0));
		}
	}
}

/* ---- Refused --------------------------------------------------------- */

static void test_inject_beyond_the_limit(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	size_t max = p.a->info->tx_attr->inject_size;
	char *buf = ep_alloc(max + 1);
	struct iovec iov = { buf, max + 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = p.ab };

	assert_int_equal(max, UNM_INJECT_MAX);
	assert_int_equal(EP_TRY(fi_inject(p.a->ep, buf, max, p.ab)), 0);
	assert_int_equal(EP_TRY(fi_inject(p.a->ep, buf, max + 1, p.ab)),
			 -FI_EMSGSIZE);
	assert_int_equal(EP_TRY(fi_tinject(p.a->ep, buf, max + 1, p.ab, 1)),
			 -FI_EMSGSIZE);
	assert_int_equal(EP_TRY(fi_injectdata(p.a->ep, buf, max + 1, 1,
					      p.ab)), -FI_EMSGSIZE);
	assert_int_equal(EP_TRY(fi_sendmsg(p.a->ep, &msg, FI_INJECT)),
			 -FI_EMSGSIZE);
}

static void test_too_many_pieces(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct iovec iov[UNM_IOV_MAX + 1] = { { NULL, 0 } };
	const size_t n = UNM_IOV_MAX + 1;
	struct fi_msg msg = { .msg_iov = iov, .iov_count = n, .addr = p.ab };
	struct fi_msg_tagged tmsg = {
		.msg_iov = iov, .iov_count = n, .addr = p.ab,
	};

	assert_int_equal(fi_sendv(p.a->ep, iov, NULL, n, p.ab, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_tsendv(p.a->ep, iov, NULL, n, p.ab, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_sendmsg(p.a->ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_tsendmsg(p.a->ep, &tmsg, 0), -FI_EINVAL);
	assert_int_equal(fi_recvv(p.a->ep, iov, NULL, n, p.ab, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_trecvv(p.a->ep, iov, NULL, n, p.ab, 0, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_recvmsg(p.a->ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_trecvmsg(p.a->ep, &tmsg, 0), -FI_EINVAL);
}

static void test_flags_that_are_not_offered(void **state)
{
	static const uint64_t bad[] = {
		FI_FENCE, FI_MATCH_COMPLETE, FI_MULTICAST, UINT64_C(1) << 62,
	};
	struct ep_pair p = ep_pair(NULL);
	struct iovec iov = { NULL, 0 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = p.ab };
	struct fi_msg_tagged tmsg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p.ab,
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(fi_sendmsg(p.a->ep, &msg, bad[i]),
				 -FI_EBADFLAGS);
		assert_int_equal(fi_tsendmsg(p.a->ep, &tmsg, bad[i]),
				 -FI_EBADFLAGS);
		assert_int_equal(fi_recvmsg(p.a->ep, &msg, bad[i]),
				 -FI_EBADFLAGS);
		assert_int_equal(fi_trecvmsg(p.a->ep, &tmsg, bad[i]),
				 -FI_EBADFLAGS);
	}
	assert_int_equal(fi_recvmsg(p.a->ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(p.a->ep, &tmsg, FI_MULTI_RECV),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(p.a->ep, &tmsg, FI_DISCARD), -FI_EINVAL);
}

static void test_addresses_that_are_not_there(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	static const fi_addr_t bad[] = {
		2, 1000, UINT32_MAX, FI_ADDR_NOTAVAIL - 1, FI_ADDR_NOTAVAIL,
	};
	char c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(fi_send(p.a->ep, &c, 1, NULL, bad[i], NULL),
				 -FI_EINVAL);
		assert_int_equal(fi_tinject(p.a->ep, &c, 1, bad[i], 0),
				 -FI_EINVAL);
	}
	assert_int_equal(fi_recv(p.a->ep, &c, 1, NULL, 2, NULL), -FI_EINVAL);
	assert_int_equal(fi_trecv(p.a->ep, &c, 1, NULL, 1000, 0, 0, NULL),
			 -FI_EINVAL);
}

UNIT_MAIN(
	EP_TEST(test_msg_expected),
	EP_TEST(test_msg_unexpected),
	EP_TEST(test_tagged_expected),
	EP_TEST(test_tagged_unexpected),
	EP_TEST(test_pieces),
	EP_TEST(test_a_megabyte_and_one),
	EP_TEST(test_odd_addresses),
	EP_TEST(test_every_small_length_both_ways),
	EP_TEST(test_loopback_to_self),
	EP_TEST_INSIDE(test_stream_instead_of_attach),
	EP_TEST_INSIDE(test_a_buffer_that_went_away),
	EP_TEST_INSIDE(test_inject_above_a_low_eager_limit),
	EP_TEST(test_injects_of_every_length_in_turn),
	EP_TEST(test_inject_beyond_the_limit),
	EP_TEST(test_too_many_pieces),
	EP_TEST(test_flags_that_are_not_offered),
	EP_TEST(test_addresses_that_are_not_there),
)
