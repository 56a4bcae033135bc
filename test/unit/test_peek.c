/* SPDX-License-Identifier: BSD-2-Clause */
/* test_peek.c - FI_PEEK, FI_CLAIM, FI_DISCARD: a receiver asks for a message
 * before it receives the message. */
#include "lib/ep_xfer.h"

static const size_t kinds[] = { 8, 4000, 100000 };
#define NKINDS	3
#define BIG	100000

static ssize_t peek(struct ep *e, fi_addr_t src, uint64_t tag, uint64_t ignore,
		    void *ctx, uint64_t flags)
{
	struct fi_msg_tagged msg = {
		.addr = src, .tag = tag, .ignore = ignore, .context = ctx,
	};

	return fi_trecvmsg(e->ep, &msg, FI_PEEK | FI_COMPLETION | flags);
}

/* Receives a claimed message; tag and source are not compared. */
static ssize_t claim(struct ep *e, void *buf, size_t len, uint64_t tag,
		     void *ctx, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = buf != NULL,
		.addr = FI_ADDR_UNSPEC, .tag = tag, .context = ctx,
	};

	return fi_trecvmsg(e->ep, &msg, FI_CLAIM | FI_COMPLETION | flags);
}

/* Sends a message and waits until it is unexpected at b. */
static void leave(struct ep_pair *p, const void *buf, size_t len, uint64_t tag)
{
	EP_OK(fi_tsenddata(p->a->ep, buf, len, NULL, ~tag, p->ab, tag,
			   (void *)buf));
	ep_settle();
}

static void check_peeked(struct ep *e, void *ctx, size_t len, uint64_t tag)
{
	struct ep_comp c = ep_received(e, ctx);

	assert_int_equal(c.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	assert_int_equal(c.len, len);
	assert_int_equal(c.tag, tag);
	assert_int_equal(c.data, ~tag);
}

/* ---- Peek ------------------------------------------------------------ */

static void test_trap6_peek_of_nothing_completes(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	int ctx;

	for (int i = 0; i < 3; i++) {
		ssize_t ret = peek(p.a, i ? p.ab : FI_ADDR_UNSPEC, 5, 0, &ctx,
				   i == 2 ? FI_CLAIM : 0);
		struct ep_comp c;

		if (ret == -FI_ENOMSG)	/* the other way to report this */
			continue;
		assert_int_equal(ret, 0);
		c = ep_wait(p.a, &ctx);
		assert_int_equal(c.err, FI_ENOMSG);
	}
	ep_quiet(p.a);
	/* it has claimed no message */
	assert_int_not_equal(claim(p.a, &ctx, sizeof(ctx), 5, &ctx, 0), 0);
}

static void test_trap5_peek_reports_tag_data_and_length(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);
	const uint64_t tag = 0xfedc000000001234;
	int ctx;

	for (int k = 0; k < NKINDS; k++) {
		xfer_fill(out, kinds[k], k, 0);
		leave(&p, out, kinds[k], tag);
		/* several times, by exact tag, mask and source */
		EP_OK(peek(p.b, FI_ADDR_UNSPEC, tag, 0, &ctx, 0));
		check_peeked(p.b, &ctx, kinds[k], tag);
		EP_OK(peek(p.b, p.ba, tag, 0, &ctx, 0));
		check_peeked(p.b, &ctx, kinds[k], tag);
		EP_OK(peek(p.b, p.ba, 4, ~UINT64_C(0xf), &ctx, 0));
		check_peeked(p.b, &ctx, kinds[k], tag);
		/* but not by another tag */
		EP_OK(peek(p.b, FI_ADDR_UNSPEC, tag + 1, 0, &ctx, 0));
		assert_int_equal(ep_wait(p.b, &ctx).err, FI_ENOMSG);
		EP_OK(peek(p.b, 1, tag, 0, &ctx, 0));
		assert_int_equal(ep_wait(p.b, &ctx).err, FI_ENOMSG);
		/* and it can still be received */
		EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, tag, 0, in));
		check_peeked(p.b, in, kinds[k], tag);
		assert_true(xfer_filled(in, kinds[k], k, 0));
		ep_sent(p.a, out);
	}
	ep_quiet(p.b);
}

static void test_peek_finds_the_oldest(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char out[3] = "abc";
	int ctx;

	leave(&p, out, 1, 7);
	leave(&p, out, 2, 8);
	leave(&p, out, 3, 7);
	EP_OK(peek(p.b, p.ba, 0, UINT64_MAX, &ctx, 0));
	check_peeked(p.b, &ctx, 1, 7);
	EP_OK(peek(p.b, p.ba, 8, 0, &ctx, 0));
	check_peeked(p.b, &ctx, 2, 8);
	EP_OK(peek(p.b, p.ba, 7, 0, &ctx, FI_DISCARD));
	check_peeked(p.b, &ctx, 1, 7);
	EP_OK(peek(p.b, p.ba, 7, 0, &ctx, 0));
	check_peeked(p.b, &ctx, 3, 7);
}

/* Counters count received messages only, no peeks. */
static void test_peek_is_not_counted(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep_pair p = ep_pair(&want);
	uint64_t out = 1, in;
	int ctx;

	EP_OK(peek(p.b, FI_ADDR_UNSPEC, 7, 0, &ctx, 0));
	assert_int_equal(ep_wait(p.b, &ctx).err, FI_ENOMSG);
	leave(&p, &out, sizeof(out), 7);
	EP_OK(peek(p.b, FI_ADDR_UNSPEC, 7, 0, &ctx, 0));
	check_peeked(p.b, &ctx, sizeof(out), 7);
	assert_int_equal(fi_cntr_read(p.b->rxcntr), 0);
	assert_int_equal(fi_cntr_readerr(p.b->rxcntr), 0);
	EP_OK(fi_trecv(p.b->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 7, 0,
		       &ctx));
	ep_received(p.b, &ctx);
	assert_int_equal(fi_cntr_read(p.b->rxcntr), 1);
	ep_wait(p.a, &out);
}

/* A program that only peeks sees new messages. */
static void test_peek_drives_progress(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint64_t end = ep_deadline();
	char out = 1;
	int ctx;

	EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	for (;;) {
		struct fi_cq_err_entry err = { 0 };
		struct fi_cq_tagged_entry e;
		ssize_t ret;

		EP_OK(peek(p.b, FI_ADDR_UNSPEC, 7, 0, &ctx, 0));
		ret = fi_cq_read(p.b->cq, &e, 1);
		if (ret == 1)
			break;
		assert_int_equal(ret, -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(p.b->cq, &err, 0), 1);
		assert_int_equal(err.err, FI_ENOMSG);
		ep_in_time(end, "peek");
	}
}

static void test_peek_does_not_see_untagged(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char out = 1;
	int ctx;

	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	ep_settle();
	EP_OK(peek(p.b, FI_ADDR_UNSPEC, 0, UINT64_MAX, &ctx, 0));
	assert_int_equal(ep_wait(p.b, &ctx).err, FI_ENOMSG);
}

/* ---- Claim ----------------------------------------------------------- */

/* Two equal messages, claimed and received in the other order, with wrong
 * tags. */
static void test_trap6_claim_goes_by_context(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(3 * BIG), *in = ep_alloc(BIG);
	int ctx[3];

	for (int k = 0; k < NKINDS; k++) {
		for (int i = 0; i < 3; i++) {
			xfer_fill(out + i * BIG, kinds[k], 10 * k + i, 0);
			leave(&p, out + i * BIG, kinds[k], 7);
		}
		for (int i = 0; i < 2; i++) {
			EP_OK(peek(p.b, p.ba, 7, 0, &ctx[i], FI_CLAIM));
			check_peeked(p.b, &ctx[i], kinds[k], 7);
		}
		/* no other call matches a claimed message */
		EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, 7, 0, in));
		check_peeked(p.b, in, kinds[k], 7);
		assert_true(xfer_filled(in, kinds[k], 10 * k + 2, 0));
		EP_OK(peek(p.b, p.ba, 7, 0, &ctx[2], 0));
		assert_int_equal(ep_wait(p.b, &ctx[2]).err, FI_ENOMSG);

		for (int i = 1; i >= 0; i--) {
			memset(in, 0, BIG);
			EP_OK(claim(p.b, in, BIG, 12345, &ctx[i], 0));
			check_peeked(p.b, &ctx[i], kinds[k], 7);
			assert_true(xfer_filled(in, kinds[k], 10 * k + i, 0));
			/* only once */
			assert_int_not_equal(claim(p.b, in, BIG, 7, &ctx[i],
						   0), 0);
		}
		for (int i = 0; i < 3; i++)
			ep_sent(p.a, out + i * BIG);
	}
	ep_pair_quiet(&p);
}

/* Receives posted after the claim wait for the next message. */
static void test_claimed_message_passes_posted_receives(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char out[2] = "12", in[2] = "";
	int ctx;

	leave(&p, &out[0], 1, 7);
	EP_OK(peek(p.b, FI_ADDR_UNSPEC, 7, 0, &ctx, FI_CLAIM));
	check_peeked(p.b, &ctx, 1, 7);
	EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 7, 0,
		       &in[1]));
	ep_quiet(p.b);
	leave(&p, &out[1], 1, 7);
	check_peeked(p.b, &in[1], 1, 7);
	EP_OK(claim(p.b, &in[0], 1, 0, &ctx, 0));
	check_peeked(p.b, &ctx, 1, 7);
	assert_memory_equal(in, "12", 2);
}

static void test_claim_truncates(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);
	int ctx;

	for (int k = 0; k < NKINDS; k++) {
		struct ep_comp c;

		xfer_fill(out, kinds[k], k, 0);
		leave(&p, out, kinds[k], 7);
		EP_OK(peek(p.b, p.ba, 7, 0, &ctx, FI_CLAIM));
		check_peeked(p.b, &ctx, kinds[k], 7);
		memset(in, 0, BIG);
		EP_OK(claim(p.b, in, 5, 7, &ctx, 0));
		c = ep_wait(p.b, &ctx);
		assert_int_equal(c.err, FI_ETRUNC);
		assert_int_equal(c.len, 5);
		assert_int_equal(c.olen, kinds[k] - 5);
		assert_int_equal(c.tag, 7);
		assert_int_equal(c.data, ~UINT64_C(7));
		assert_true(xfer_filled(in, 5, k, 0));
		assert_int_equal(in[5], 0);
		ep_sent(p.a, out);
	}
}

static void test_claim_of_a_message_whose_sender_closed(void **state)
{
	for (int k = 0; k < NKINDS; k++) {
		struct ep_pair p = ep_pair(NULL);
		char *out = calloc(1, BIG), *in = calloc(1, BIG);
		struct ep_comp c;
		int ctx;

			xfer_fill(out, kinds[k], k, 0);
		leave(&p, out, kinds[k], 7);
		EP_OK(peek(p.b, p.ba, 7, 0, &ctx, FI_CLAIM));
		check_peeked(p.b, &ctx, kinds[k], 7);
		ep_close(p.a);
		ep_settle();
		EP_OK(claim(p.b, in, BIG, 7, &ctx, 0));
		c = ep_wait(p.b, &ctx);
		if (ep_rendezvous(kinds[k])) {	/* discarded with its bytes */
			assert_int_not_equal(c.err, 0);
		} else {
			assert_int_equal(c.err, 0);
			assert_true(xfer_filled(in, kinds[k], k, 0));
		}
		ep_quiet(p.b);
		ep_close(p.b);
		free(out);
		free(in);
	}
}

/* ---- Discard --------------------------------------------------------- */

static void test_peek_and_discard(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(BIG);
	int ctx;

	for (int k = 0; k < NKINDS; k++) {
		leave(&p, out, kinds[k], 7);
		EP_OK(peek(p.b, p.ba, 7, 0, &ctx, FI_DISCARD));
		check_peeked(p.b, &ctx, kinds[k], 7);
		ep_sent(p.a, out);	/* the sender of a rendezvous sees
					 * success */
		EP_OK(peek(p.b, p.ba, 7, 0, &ctx, 0));
		assert_int_equal(ep_wait(p.b, &ctx).err, FI_ENOMSG);
	}
	ep_pair_quiet(&p);
}

static void test_claim_and_discard(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(BIG);
	int ctx;

	for (int k = 0; k < NKINDS; k++) {
		leave(&p, out, kinds[k], 7);
		EP_OK(peek(p.b, p.ba, 7, 0, &ctx, FI_CLAIM));
		check_peeked(p.b, &ctx, kinds[k], 7);
		EP_OK(claim(p.b, NULL, 0, 7, &ctx, FI_DISCARD));
		check_peeked(p.b, &ctx, kinds[k], 7);
		ep_sent(p.a, out);
		assert_int_not_equal(claim(p.b, NULL, 0, 7, &ctx, 0), 0);
	}
	ep_pair_quiet(&p);
}

/* ---- Many ------------------------------------------------------------ */

/* Claims and discards at random; the remaining messages are received in
 * order. */
static void test_random_claims(void **state)
{
	enum { MSGS = 300 };
	struct ep_pair p = ep_pair(NULL);
	static char out[MSGS][64];
	struct fi_context2 ctx[MSGS];
	char fate[MSGS], in[64];
	uint64_t rng = 3;
	int i;

	for (i = 0; i < MSGS; i++) {
		xfer_fill(out[i], 64, i, 0);
		EP_OK(fi_tinject(p.a->ep, out[i], 64, p.ab, i % 5));
	}
	ep_settle();
	for (i = 0; i < MSGS; i++) {
		/* message i is the oldest one left with its tag */
		fate[i] = "rcd"[unit_below(&rng, 3)];
		if (fate[i] == 'r') {
			EP_OK(fi_trecv(p.b->ep, in, 64, NULL, p.ba, i % 5, 0,
				       in));
			ep_received(p.b, in);
			assert_true(xfer_filled(in, 64, i, 0));
			continue;
		}
		EP_OK(peek(p.b, p.ba, i % 5, 0, &ctx[i],
			   fate[i] == 'c' ? FI_CLAIM : FI_DISCARD));
		ep_received(p.b, &ctx[i]);
	}
	for (i = MSGS - 1; i >= 0; i--) {
		if (fate[i] != 'c') {
			assert_int_not_equal(claim(p.b, in, 64, i, &ctx[i],
						   0), 0);
			continue;
		}
		EP_OK(claim(p.b, in, 64, i, &ctx[i], 0));
		ep_received(p.b, &ctx[i]);
		assert_true(xfer_filled(in, 64, i, 0));
	}
	ep_quiet(p.b);
}

UNIT_MAIN(
	EP_TEST(test_trap6_peek_of_nothing_completes),
	EP_TEST(test_trap5_peek_reports_tag_data_and_length),
	EP_TEST(test_peek_finds_the_oldest),
	EP_TEST(test_peek_is_not_counted),
	EP_TEST(test_peek_drives_progress),
	EP_TEST(test_peek_does_not_see_untagged),
	EP_TEST(test_trap6_claim_goes_by_context),
	EP_TEST(test_claimed_message_passes_posted_receives),
	EP_TEST(test_claim_truncates),
	EP_TEST(test_claim_of_a_message_whose_sender_closed),
	EP_TEST(test_peek_and_discard),
	EP_TEST(test_claim_and_discard),
	EP_TEST(test_random_claims),
)
