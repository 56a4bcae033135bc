/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_order.c - FI_ORDER_SAS: messages of one sender match in the order in
 * which they were sent, whatever protocol, send call or receive is used.
 */
#include "lib/ep_xfer.h"

#define N	(UNIT_SLOW ? 1500 : 6000)

/* Mostly short, some eager, a few by rendezvous. */
static size_t any_size(uint64_t *rng)
{
	switch (unit_below(rng, 16)) {
	case 0:
		return 30000 + unit_below(rng, 100000);
	case 1 ... 4:
		return 57 + unit_below(rng, 16000);
	case 5:
		return 0;
	default:
		return unit_below(rng, 57);
	}
}

/* Message i of a stream; the send calls take turns. */
static struct xfer *message(uint64_t *rng, uint32_t i, bool tagged)
{
	struct xfer *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	x->tagged = tagged;
	x->tx = unit_below(rng, XFER_TX_CALLS);
	x->len = any_size(rng);
	if (xfer_inject(x) && x->len > 4096)
		x->tx = XFER_SENDMSG;
	if (x->tx == XFER_SENDV || x->tx == XFER_SENDMSG)
		x->tx_iov = 1 + unit_below(rng, 3);
	if (x->tx == XFER_SENDMSG && unit_below(rng, 2))
		x->tx_flags = FI_DELIVERY_COMPLETE;
	x->rx = unit_below(rng, XFER_RX_CALLS);
	x->seed = i + 1;
	x->tag = 0x77;
	x->data = i;
	xfer_make(x);
	return x;
}

/* Posts a receive that matches any message of the stream, in one of several
 * ways. */
static int post_any(struct ep *e, fi_addr_t src, struct xfer *x, uint64_t *rng)
{
	if (unit_below(rng, 2))
		src = FI_ADDR_UNSPEC;
	switch (unit_below(rng, 4)) {
	case 0:
		x->ignore = UINT64_MAX;
		break;
	case 1:
		x->ignore = UINT64_C(0xffff) << 48;
		break;
	default:
		x->ignore = 0;
	}
	return (int)xfer_recv(e, src, x);
}

/*
 * Message i must match receive i, so its bytes are compared. Receives are
 * posted before or after the messages arrive, by chance.
 */
static void one_stream(bool tagged, uint64_t seed)
{
	struct ep_pair p = ep_pair(NULL);
	struct xfer **x = calloc(N, sizeof(*x));
	uint32_t sent = 0, posted = 0, done = 0;
	uint64_t rng = seed, end = ep_deadline();
	int bias = 0;

	for (uint32_t i = 0; i < (uint32_t)N; i++)
		x[i] = message(&rng, i, tagged);
	while (done < (uint32_t)N) {
		if (unit_below(&rng, 50) == 0)
			bias = unit_below(&rng, 3);
		for (int k = 0; k < 8; k++) {
			if (bias != 1 && posted < (uint32_t)N &&
			    posted < done + 400)
				posted += post_any(p.b, p.ba, x[posted],
						   &rng) == 0;
			if (bias != 2 && sent < (uint32_t)N &&
			    sent < done + 400)
				sent += xfer_send(p.a, p.ab, x[sent]) == 0;
		}
		if (unit_below(&rng, 3) == 0)
			ep_step();
		if (done == posted || done == sent) {
			bias = 0;
			ep_in_time(end, "stream");
			continue;
		}
		xfer_check(p.b, p.ba, x[done]);
		if (xfer_tx_completes(x[done]))
			ep_sent(p.a, &x[done]->txc);
		xfer_free(x[done]);
		free(x[done]);
		done++;
		end = ep_deadline();
	}
	ep_pair_quiet(&p);
	free(x);
}

static void test_tagged_stream_of_all_protocols(void **state)
{
	one_stream(true, 1);
}

static void test_untagged_stream_of_all_protocols(void **state)
{
	one_stream(false, 2);
}

/* ---- Two senders ----------------------------------------------------- */

struct slot {
	fi_addr_t want;			/* FI_ADDR_UNSPEC: any */
	char *buf;
};

#define BIG	20000

/* Receives directed at either sender and undirected ones, in a random mix: the
 * messages of each sender fill the receives that they match in the order of
 * posting. */
static void test_two_senders_any_and_directed(void **state)
{
	const uint32_t total = N / 2;
	struct ep *r = ep_open(NULL), *s[2];
	fi_addr_t to[2], from[2];
	struct slot *slot = ep_alloc(total * sizeof(*slot));
	char *out = ep_alloc(BIG);
	uint32_t sent[2] = { 0 }, quota[2] = { 0 }, posted = 0, seen[2] = { 0 };
	uint64_t rng = 5;

	for (int i = 0; i < 2; i++) {
		s[i] = ep_open(NULL);
		from[i] = ep_insert(r, s[i]);
		to[i] = ep_insert(s[i], r);
	}
	for (uint32_t i = 0; i < total; i++) {
		int who = unit_below(&rng, 2);

		/* enough messages of both, whichever the undirected ones
		 * match */
		slot[i].want = unit_below(&rng, 2) ? from[who] :
			FI_ADDR_UNSPEC;
		quota[0] += slot[i].want != from[1];
		quota[1] += slot[i].want != from[0];
		slot[i].buf = malloc(BIG);
	}
	while (posted < total || sent[0] < quota[0] || sent[1] < quota[1]) {
		int who = unit_below(&rng, 2);
		struct slot *sl = &slot[posted];

		if (posted < total && unit_below(&rng, 3))
			posted += fi_trecv(r->ep, sl->buf, BIG, NULL,
					   sl->want, 1, 0, sl) == 0;
		if (sent[who] < quota[who])
			sent[who] += fi_tsenddata(s[who]->ep, out,
				unit_below(&rng, 9) ? 8 : BIG, NULL,
				sent[who], to[who], 1, out) == 0;
		ep_step();
	}
	for (uint32_t i = 0; i < total; i++) {
		struct ep_comp c = ep_received(r, &slot[i]);
		int who = c.src == from[1];

		assert_true(c.src == from[0] || c.src == from[1]);
		if (slot[i].want != FI_ADDR_UNSPEC)
			assert_int_equal(c.src, slot[i].want);
		assert_int_equal(c.data, seen[who]++);
		free(slot[i].buf);
	}
	assert_int_equal(seen[0] + seen[1], total);
}

/* ---- Through a slow receiver ----------------------------------------- */

/* Sends are refused again and again; repeated ones keep their order. */
static void test_order_under_back_pressure(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint32_t total = 20000, got = 0, refused = 0, in[2];
	char *out = ep_alloc(4000);

	for (uint32_t i = 0; i < total; ) {
		size_t len = i % 5 == 0 ? 4000 : 8;

		memcpy(out, &i, 4);
		if (fi_inject(p.a->ep, out, len, p.ab) == 0) {
			i++;
			continue;
		}
		refused++;
		ep_poll(p.a);
		/* receive a few */
		for (int k = 0; k < 50 && got < i; k++) {
			EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, in));
			ep_wait(p.b, in);
			assert_int_equal(in[0], got++);
		}
	}
	while (got < total) {
		EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, in));
		ep_wait(p.b, in);
		assert_int_equal(in[0], got++);
	}
	assert_true(refused != 0);
	ep_quiet(p.b);
}

UNIT_MAIN(
	EP_TEST(test_tagged_stream_of_all_protocols),
	EP_TEST(test_untagged_stream_of_all_protocols),
	EP_TEST(test_two_senders_any_and_directed),
	EP_TEST(test_order_under_back_pressure),
)
