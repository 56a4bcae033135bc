/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cancel.c - fi_cancel(): after 0 exactly one entry is reported, after
 * -FI_ENOENT none.
 *
 * MPICH cancels one of two receives for every MPI_ANY_SOURCE.
 */
#include "lib/ep_xfer.h"

#define BIG	100000

static ssize_t cancel(struct ep *e, void *ctx)
{
	return fi_cancel(&e->ep->fid, ctx);
}

static void check_canceled(struct ep *e, void *ctx, uint64_t kind)
{
	struct ep_comp c = ep_wait(e, ctx);

	assert_int_equal(c.err, FI_ECANCELED);
	assert_int_equal(c.flags, FI_RECV | kind);
}

static void test_trap6_cancel_gives_exactly_one_entry(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char in;

	EP_OK(fi_recv(p.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	assert_int_equal(cancel(p.a, &in), 0);
	check_canceled(p.a, &in, FI_MSG);
	assert_int_equal(cancel(p.a, &in), -FI_ENOENT);

	EP_OK(fi_trecv(p.a->ep, &in, 1, NULL, p.ab, 1, 0, &in));
	assert_int_equal(cancel(p.a, &in), 0);
	/* also before the entry is read */
	assert_int_equal(cancel(p.a, &in), -FI_ENOENT);
	check_canceled(p.a, &in, FI_TAGGED);

	EP_OK(fi_trecv(p.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, UINT64_MAX,
		       &in));
	assert_int_equal(cancel(p.a, &in), 0);
	check_canceled(p.a, &in, FI_TAGGED);
	ep_quiet(p.a);
}

static void test_trap6_cancel_of_nothing(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	int ctx, other;
	char in;

	assert_int_equal(cancel(p.a, &ctx), -FI_ENOENT);
	assert_int_equal(cancel(p.a, NULL), -FI_ENOENT);
	EP_OK(fi_recv(p.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &ctx));
	assert_int_equal(cancel(p.a, &other), -FI_ENOENT);
	/* a receive of another endpoint */
	assert_int_equal(cancel(p.b, &ctx), -FI_ENOENT);
	ep_quiet(p.a);
	assert_int_equal(cancel(p.a, &ctx), 0);
	check_canceled(p.a, &ctx, FI_MSG);
}

static void test_canceled_receive_takes_no_message(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char in[3] = "", out = 'x';

	for (int i = 0; i < 3; i++)
		EP_OK(fi_trecv(p.b->ep, &in[i], 1, NULL, p.ba, 7, 0, &in[i]));
	assert_int_equal(cancel(p.b, &in[0]), 0);
	assert_int_equal(cancel(p.b, &in[1]), 0);
	EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	ep_received(p.b, &in[2]);
	check_canceled(p.b, &in[0], FI_TAGGED);
	check_canceled(p.b, &in[1], FI_TAGGED);
	assert_memory_equal(in, "\0\0x", 3);
	ep_quiet(p.b);
}

/* The message has come: the receive is complete, its entry is unread. */
static void test_cancel_after_completion(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_cq_tagged_entry e;
	char in, out = 'x';

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	/* reading 0 entries polls, and must not take the entry */
	EP_FOR_US(20000) {
		ep_poll(p.a);
		assert_true(fi_cq_read(p.b->cq, NULL, 0) <= 0);
	}
	assert_int_equal(in, 'x');
	assert_int_equal(cancel(p.b, &in), -FI_ENOENT);
	assert_int_equal(fi_cq_read(p.b->cq, &e, 1), 1);
	assert_ptr_equal(e.op_context, &in);
	ep_quiet(p.b);
}

/* A transfer under way can not be cancelled: it completes. */
static void test_cancel_of_a_transfer_under_way(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);
	int lost = 0;

	for (int polls = 0; polls < 60; polls++) {
		struct ep_comp c;
		ssize_t ret;

		xfer_fill(out, BIG, polls, 0);
		EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, 7, 0, in));
		EP_OK(fi_tsend(p.a->ep, out, BIG, NULL, p.ab, 7, out));
		for (int i = 0; i < polls; i++)
			ep_poll(i % 2 ? p.a : p.b);
		ret = cancel(p.b, in);
		c = ep_wait(p.b, in);
		if (ret == 0 && c.err == FI_ECANCELED) {
			/* the message can still be received */
			EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, 7, 0,
				       in));
			c = ep_received(p.b, in);
		} else {
			lost++;
			assert_true(ret == 0 || ret == -FI_ENOENT);
		}
		assert_int_equal(c.err, 0);
		assert_int_equal(c.len, BIG);
		assert_true(xfer_filled(in, BIG, polls, 0));
		ep_sent(p.a, out);
	}
	assert_true(lost != 0);
	ep_quiet(p.b);
}

/* As MPICH does for MPI_ANY_SOURCE: post two receives, cancel the one that did
 * not match. */
static void test_trap6_lost_races(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint64_t rng = 9;
	int canceled = 0, won = 0;
	char in[2], out = 'x';

	for (int i = 0; i < 3000; i++) {
		int first = unit_below(&rng, 2), n[2] = { 0 }, ret;
		struct ep_comp c;

		EP_OK(fi_trecv(p.b->ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, 7, 0,
			       &in[0]));
		EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, p.ba, 7, 0, &in[1]));
		EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
		for (int k = unit_below(&rng, 20); k > 0; k--)
			ep_poll(p.b);
		ret = (int)cancel(p.b, &in[first]);
		assert_true(ret == 0 || ret == -FI_ENOENT);
		/* the message goes to one of them, the other is cancelled */
		while (n[0] + n[1] < 2) {
			c = ep_next(p.b);
			n[c.context == &in[1]]++;
			if (c.err == 0) {
				won++;
				if (c.context == &in[first])
					EP_OK(cancel(p.b, &in[!first]));
			} else {
				assert_int_equal(c.err, FI_ECANCELED);
				canceled++;
			}
		}
		assert_int_equal(n[0], 1);
		assert_int_equal(won, i + 1);
		assert_int_equal(canceled, i + 1);
	}
	ep_quiet(p.b);
}

static void test_many_canceled(void **state)
{
	enum { N = 20000 };
	struct ep_pair p = ep_pair(NULL);
	struct fi_context2 *ctx = ep_alloc(N * sizeof(*ctx));
	uint64_t rng = 11;
	char in, out = 'x';
	int live = 0;

	for (int i = 0; i < N; i++)
		EP_OK(fi_trecv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, i, 0,
			       &ctx[i]));
	for (int i = 0; i < N; i++) {
		if (unit_below(&rng, 4) == 0) {
			live++;
			continue;
		}
		assert_int_equal(cancel(p.b, &ctx[i]), 0);
		assert_int_equal(ep_next(p.b).err, FI_ECANCELED);
		ctx[i].internal[0] = p.b;
	}
	for (int i = 0; i < N; i++) {
		if (ctx[i].internal[0] != NULL)
			continue;
		EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, i));
		ep_received(p.b, &ctx[i]);
		live--;
	}
	assert_int_equal(live, 0);
	ep_quiet(p.b);
}

/* One context for several receives: each call cancels the oldest. */
static void test_cancel_of_equal_contexts(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char in[4] = "", out = 'x';
	int ctx;

	for (int i = 0; i < 4; i++)
		EP_OK(fi_trecv(p.b->ep, &in[i], 1, NULL, p.ba, 7, 0, &ctx));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cancel(p.b, &ctx), 0);
		check_canceled(p.b, &ctx, FI_TAGGED);
	}
	EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	ep_received(p.b, &ctx);
	assert_memory_equal(in, "\0\0x", 4);
	assert_int_equal(cancel(p.b, &ctx), 0);
	check_canceled(p.b, &ctx, FI_TAGGED);
	assert_int_equal(cancel(p.b, &ctx), -FI_ENOENT);
	ep_quiet(p.b);
}

/* A receive from a peer that has ended stays posted, and can be cancelled. */
static void test_cancel_of_a_receive_from_the_dead(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char in, out = 1;

	EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 1));
	EP_OK(fi_trecv(p.b->ep, &in, 1, NULL, p.ba, 1, 0, &in));
	ep_received(p.b, &in);
	EP_OK(fi_trecv(p.b->ep, &in, 1, NULL, p.ba, 7, 0, &in));
	ep_close(p.a);
	ep_quiet(p.b);
	assert_int_equal(cancel(p.b, &in), 0);
	check_canceled(p.b, &in, FI_TAGGED);
	ep_quiet(p.b);
}

UNIT_MAIN(
	EP_TEST(test_trap6_cancel_gives_exactly_one_entry),
	EP_TEST(test_trap6_cancel_of_nothing),
	EP_TEST(test_canceled_receive_takes_no_message),
	EP_TEST(test_cancel_after_completion),
	EP_TEST(test_cancel_of_a_transfer_under_way),
	EP_TEST(test_trap6_lost_races),
	EP_TEST(test_many_canceled),
	EP_TEST(test_cancel_of_equal_contexts),
	EP_TEST(test_cancel_of_a_receive_from_the_dead),
)
