/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_multi.c - FI_MULTI_RECV: one buffer for many messages. It is released
 * exactly once, after its last byte was written, and is not written afterwards.
 */
#include "lib/ep_xfer.h"

#define MIN	64			/* the endpoint's default, bytes */

static ssize_t post(struct ep *e, fi_addr_t src, void *buf, size_t len,
		    uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = src, .context = buf,
	};

	return fi_recvmsg(e->ep, &msg, FI_MULTI_RECV | flags);
}

static void set_min(struct ep *e, size_t min)
{
	assert_int_equal(fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
			 0);
}

/* Begins to send a message of this length and seed; returns its buffer. */
static char *send_begin(struct ep_pair *p, size_t len, uint64_t seed)
{
	char *out = malloc(len + 1);

	xfer_fill(out, len, seed, 0);
	EP_OK(fi_senddata(p->a->ep, out, len, NULL, seed, p->ab, out));
	return out;
}

static void send_end(struct ep_pair *p, char *out)
{
	ep_sent(p->a, out);
	free(out);
}

/* Sends a message for which a receive is posted. */
static void send_one(struct ep_pair *p, size_t len, uint64_t seed)
{
	send_end(p, send_begin(p, len, seed));
}

/* Sends 10 bytes that are not received yet. */
static void send_unexpected(struct ep_pair *p, uint64_t seed)
{
	char out[10];

	xfer_fill(out, sizeof(out), seed, 0);
	EP_OK(fi_injectdata(p->a->ep, out, sizeof(out), seed, p->ab));
}

/* Does the entry of a message release its buffer (FI_MULTI_RECV)? */
enum { KEPT, RELEASED };

/* Checks that an entry is a message with the seed c->data, at this place in its
 * buffer. */
static void check_entry(const struct ep_comp *c, char *buf, char *at,
			size_t len, bool released)
{
	assert_int_equal(c->err, 0);
	assert_ptr_equal(c->context, buf);
	assert_int_equal(c->flags & ~FI_MULTI_RECV,
			 FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	assert_int_equal(c->len, len);
	assert_ptr_equal(c->buf, at);
	assert_true(xfer_filled(at, len, c->data, 0));
	assert_int_equal(!!(c->flags & FI_MULTI_RECV), released);
}

/* Checks that the next entry is the message with this seed, at *at in its
 * buffer; advances *at. */
static void check_one(struct ep *e, char *buf, char **at, size_t len,
		      uint64_t seed, bool released)
{
	struct ep_comp c = ep_next(e);

	assert_int_equal(c.data, seed);
	check_entry(&c, buf, *at, len, released);
	*at += len;
}

/* ---- Filling --------------------------------------------------------- */

static void fill(size_t len, bool unexpected)
{
	struct ep_pair p = ep_pair(NULL);
	size_t room = 10 * len;
	char *buf = malloc(room), *out[10];
	unsigned seen = 0;

	set_min(p.b, len);
	if (!unexpected)
		EP_OK(post(p.b, FI_ADDR_UNSPEC, buf, room, FI_COMPLETION));
	for (int i = 0; i < 10; i++)
		out[i] = send_begin(&p, len, i);
	if (unexpected) {
		ep_settle();
		EP_OK(post(p.b, FI_ADDR_UNSPEC, buf, room, FI_COMPLETION));
	}
	for (int i = 0; i < 10; i++) {
		struct ep_comp c = ep_next(p.b);

		/* only rendezvous may end in another order */
		assert_true(c.data < 10);
		if (!ep_rendezvous(len))
			assert_int_equal(c.data, i);
		check_entry(&c, buf, buf + c.data * len, len, i == 9);
		seen |= 1u << c.data;
	}
	assert_int_equal(seen, (1u << 10) - 1);
	for (int i = 0; i < 10; i++)
		send_end(&p, out[i]);
	ep_quiet(p.b);
	ep_pair_close(&p);
	free(buf);
}

static void test_trap8_released_once_with_the_last_message(void **state)
{
	fill(8, false);
	fill(100, false);
	fill(4000, false);
	fill(16384, false);
}

static void test_unexpected_messages_fill_a_buffer(void **state)
{
	fill(8, true);
	fill(100, true);
	fill(4000, true);
}

/* No message is written into a buffer after its release. */
static void test_trap8_no_message_after_release(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = malloc(256), *at = buf, *next = ep_alloc(256);

	EP_OK(post(p.b, p.ba, buf, 256, FI_COMPLETION));
	send_one(&p, 256 - MIN + 1, 1);
	check_one(p.b, buf, &at, 256 - MIN + 1, 1, RELEASED);
	free(buf);			/* ASan reports later writes */
	send_unexpected(&p, 2);
	ep_quiet(p.b);
	at = next;
	EP_OK(post(p.b, p.ba, next, 256, FI_COMPLETION));
	check_one(p.b, next, &at, 10, 2, KEPT);
}

/* ---- Edges of the minimum -------------------------------------------- */

static void edge(size_t min, size_t room, size_t len, bool released)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = malloc(room), *at = buf;

	set_min(p.b, min);
	EP_OK(post(p.b, p.ba, buf, room, FI_COMPLETION));
	send_one(&p, len, 1);
	check_one(p.b, buf, &at, len, 1, released);
	ep_quiet(p.b);
	ep_pair_close(&p);
	free(buf);
}

static void test_released_below_the_minimum(void **state)
{
	edge(64, 256, 192, false);	/* 64 bytes left: enough */
	edge(64, 256, 193, true);	/* 63 bytes left */
	edge(64, 256, 256, true);
	edge(1, 256, 255, false);
	edge(1, 256, 256, true);
	edge(256, 256, 0, false);
	edge(256, 256, 1, true);
	edge(300, 256, 1, true);
	edge(1000, 100000, 99000, false);	/* by rendezvous */
	edge(1000, 100000, 99001, true);
}

/* A full buffer is released, whatever the minimum. */
static void test_full_buffer_is_released_with_minimum_0(void **state)
{
	edge(0, 256, 255, false);
	edge(0, 256, 256, true);
	edge(0, 100000, 100000, true);
}

static void test_minimum_by_getopt(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	size_t val = 0, len = sizeof(val);
	int bad;

	assert_int_equal(fi_getopt(&p.a->ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &val, &len), 0);
	assert_int_equal(len, sizeof(val));
	assert_int_equal(val, MIN);
	set_min(p.a, 16384);
	assert_int_equal(fi_getopt(&p.a->ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &val, &len), 0);
	assert_int_equal(val, 16384);
	len = 1;
	assert_int_equal(fi_getopt(&p.a->ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &val, &len),
			 -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(val));
	assert_int_equal(fi_setopt(&p.a->ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &bad, sizeof(bad)),
			 -FI_EINVAL);
	assert_int_equal(fi_setopt(&p.a->ep->fid, FI_OPT_ENDPOINT, 999, &val,
				   sizeof(val)), -FI_ENOPROTOOPT);
	assert_int_equal(fi_getopt(&p.a->ep->fid, 999, FI_OPT_MIN_MULTI_RECV,
				   &val, &len), -FI_ENOPROTOOPT);
}

/* ---- Too long -------------------------------------------------------- */

static void too_long(size_t room, size_t len)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = malloc(room), *at = buf;
	struct ep_comp c;

	EP_OK(post(p.b, p.ba, buf, room, FI_COMPLETION));
	send_one(&p, 100, 1);
	check_one(p.b, buf, &at, 100, 1, KEPT);
	send_one(&p, len, 2);
	c = ep_next(p.b);
	assert_int_equal(c.err, FI_ETRUNC);
	assert_ptr_equal(c.context, buf);
	assert_ptr_equal(c.buf, at);
	assert_int_equal(c.len, room - 100);
	assert_int_equal(c.olen, len - (room - 100));
	assert_int_equal(c.data, 2);
	assert_true(c.flags & FI_MULTI_RECV);
	assert_true(xfer_filled(at, room - 100, 2, 0));
	ep_quiet(p.b);
	ep_pair_close(&p);
	free(buf);
}

static void test_message_longer_than_what_is_left(void **state)
{
	too_long(1000, 901);
	too_long(1000, 4000);
	too_long(20000, 19901);
	too_long(1000, 100000);
	too_long(200000, 200000);
}

/* ---- Several at once ------------------------------------------------- */

/* Several rendezvous into one buffer at the same time: the last one to end
 * releases the buffer, whichever it is. */
static void test_trap8_release_waits_for_transfers(void **state)
{
	enum { MSGS = 6, LEN = 90000 };
	struct ep_pair p = ep_pair(NULL);
	char *buf = ep_alloc(MSGS * LEN), *out = ep_alloc(MSGS * LEN);
	int seen = 0;

	for (int round = 0; round < 2; round++) {
		EP_OK(post(p.b, p.ba, buf, MSGS * LEN, FI_COMPLETION));
		for (int i = 0; i < MSGS; i++) {
			xfer_fill(out + i * LEN, LEN, i, 0);
			EP_OK(fi_senddata(p.a->ep, out + i * LEN, LEN, NULL, i,
					  p.ab, out + i * LEN));
		}
		for (int i = 0; i < MSGS; i++) {
			struct ep_comp c = ep_next(p.b);

			assert_int_equal(c.err, 0);
			assert_int_equal(c.len, LEN);
			/* placed in order of matching, not of completion */
			assert_ptr_equal(c.buf, buf + c.data * LEN);
			assert_true(xfer_filled(c.buf, LEN, c.data, 0));
			seen |= 1 << c.data;
			assert_int_equal(!!(c.flags & FI_MULTI_RECV),
					 i == MSGS - 1);
		}
		assert_int_equal(seen, (1 << MSGS) - 1);
		for (int i = 0; i < MSGS; i++)
			ep_sent(p.a, out + i * LEN);
		ep_quiet(p.b);
	}
}

/* An inline message completes before the rendezvous that was sent before it. */
static void test_short_message_overtakes_a_long_one(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = ep_alloc(100000), *out = ep_alloc(99000), small[950];
	int released = 0;

	xfer_fill(out, 99000, 1, 0);
	xfer_fill(small, sizeof(small), 2, 0);
	EP_OK(post(p.b, p.ba, buf, 100000, FI_COMPLETION));
	EP_OK(fi_send(p.a->ep, out, 99000, NULL, p.ab, out));
	EP_OK(fi_inject(p.a->ep, small, sizeof(small), p.ab));
	for (int i = 0; i < 2; i++) {
		struct ep_comp c = ep_next(p.b);

		assert_int_equal(c.err, 0);
		if (c.len == 99000)
			assert_ptr_equal(c.buf, buf);
		else
			assert_ptr_equal(c.buf, buf + 99000);
		released += !!(c.flags & FI_MULTI_RECV);
		assert_int_equal(released, i);
	}
	assert_true(xfer_filled(buf, 99000, 1, 0));
	assert_true(xfer_filled(buf + 99000, sizeof(small), 2, 0));
	ep_sent(p.a, out);
	ep_quiet(p.b);
}

static void test_second_buffer_takes_over(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf[2] = { malloc(1000), malloc(1000) };
	char *at[2] = { buf[0], buf[1] };

	for (int i = 0; i < 2; i++)
		EP_OK(post(p.b, FI_ADDR_UNSPEC, buf[i], 1000, FI_COMPLETION));
	for (int i = 0; i < 4; i++)
		send_one(&p, 480, i);
	check_one(p.b, buf[0], &at[0], 480, 0, KEPT);
	check_one(p.b, buf[0], &at[0], 480, 1, RELEASED);
	check_one(p.b, buf[1], &at[1], 480, 2, KEPT);
	check_one(p.b, buf[1], &at[1], 480, 3, RELEASED);
	ep_quiet(p.b);
	free(buf[0]);
	free(buf[1]);
}

static void test_directed_buffer_takes_its_source_only(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = ep_alloc(1000), *at = buf, in[10];
	fi_addr_t self = 1;		/* b's index in its own vector */

	EP_OK(post(p.b, self, buf, 1000, FI_COMPLETION));
	EP_OK(fi_recv(p.b->ep, in, 10, NULL, FI_ADDR_UNSPEC, in));
	send_one(&p, 10, 1);
	assert_int_equal(ep_received(p.b, in).src, p.ba);
	xfer_fill(in, 10, 2, 0);
	EP_OK(fi_injectdata(p.b->ep, in, 10, 2, self));
	check_one(p.b, buf, &at, 10, 2, KEPT);
}

static void test_what_a_buffer_may_not_be(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char buf[2][100];
	struct iovec iov[2] = { { buf[0], 100 }, { buf[1], 100 } };
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC,
	};

	assert_int_equal(fi_recvmsg(p.a->ep, &msg, FI_MULTI_RECV),
			 -FI_EINVAL);
	msg.iov_count = 0;
	assert_int_equal(fi_recvmsg(p.a->ep, &msg, FI_MULTI_RECV),
			 -FI_EINVAL);
}

/* ---- Completions ----------------------------------------------------- */

/* Entries of messages are suppressed without FI_COMPLETION; the release of the
 * buffer is always reported. */
static void test_release_is_reported_without_completions(void **state)
{
	struct ep_want want = { .cq_flags = FI_SELECTIVE_COMPLETION };
	struct ep_pair p = ep_pair(&want);
	char *buf = ep_alloc(1000), out[480];
	struct ep_comp c;

	EP_OK(post(p.b, p.ba, buf, 1000, 0));
	for (int i = 0; i < 2; i++) {
		xfer_fill(out, 480, i, 0);
		EP_OK(fi_inject(p.a->ep, out, 480, p.ab));
	}
	c = ep_next(p.b);
	assert_true(c.flags & FI_MULTI_RECV);
	assert_ptr_equal(c.context, buf);
	assert_true(xfer_filled(buf, 480, 0, 0));
	assert_true(xfer_filled(buf + 480, 480, 1, 0));
	ep_quiet(p.b);
}

/* FI_MULTI_RECV in op_flags applies to every fi_recv(). */
static void test_op_flags_make_buffers(void **state)
{
	struct ep_want want = { .rx_op_flags = FI_MULTI_RECV };
	struct ep_pair p = ep_pair(&want);
	char *buf = ep_alloc(1000), *at = buf;

	EP_OK(fi_recv(p.b->ep, buf, 1000, NULL, FI_ADDR_UNSPEC, buf));
	for (int i = 0; i < 2; i++)
		send_one(&p, 480, i);
	check_one(p.b, buf, &at, 480, 0, KEPT);
	check_one(p.b, buf, &at, 480, 1, RELEASED);
	ep_quiet(p.b);
}

/* ---- Cancel and close ------------------------------------------------ */

static void test_cancel_gives_one_entry(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = ep_alloc(1000), *at = buf;
	struct ep_comp c;

	EP_OK(post(p.b, p.ba, buf, 1000, FI_COMPLETION));
	send_one(&p, 10, 1);
	check_one(p.b, buf, &at, 10, 1, KEPT);
	assert_int_equal(fi_cancel(&p.b->ep->fid, buf), 0);
	c = ep_wait(p.b, buf);
	assert_int_equal(c.err, FI_ECANCELED);
	assert_int_equal(fi_cancel(&p.b->ep->fid, buf), -FI_ENOENT);
	send_unexpected(&p, 2);
	ep_quiet(p.b);
}

/* When FI_ECANCELED is read, no transfer writes to the buffer any more, and no
 * entry of it follows. */
static void test_cancel_waits_for_transfers(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = malloc(200000), *out = malloc(90000);
	struct ep_comp c;

	xfer_fill(out, 90000, 1, 0);
	EP_OK(post(p.b, p.ba, buf, 200000, FI_COMPLETION));
	EP_OK(fi_send(p.a->ep, out, 90000, NULL, p.ab, out));
	/* the message may match, but has not ended yet */
	while (fi_cancel(&p.b->ep->fid, buf) != 0)
		fail();
	c = ep_next(p.b);
	if (c.err == 0) {		/* matched before the cancel */
		assert_true(xfer_filled(buf, 90000, 1, 0));
		c = ep_next(p.b);
	}
	assert_int_equal(c.err, FI_ECANCELED);
	ep_quiet(p.b);
	ep_close(p.b);
	free(buf);
	ep_teardown(NULL);
	free(out);
}

/* The same with the cancel after each possible number of polls. */
static void test_cancel_at_any_moment(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = ep_alloc(200000), *out = ep_alloc(90000), in[8];
	int both = 0;

	xfer_fill(out, 90000, 1, 0);
	for (int polls = 0; polls < 40; polls++) {
		struct ep_comp c;

		memset(buf, 0, 200000);
		EP_OK(post(p.b, p.ba, buf, 200000, FI_COMPLETION));
		EP_OK(fi_send(p.a->ep, out, 90000, NULL, p.ab, out));
		for (int i = 0; i < polls; i++)
			ep_poll(i % 4 == 3 ? p.a : p.b);
		assert_int_equal(fi_cancel(&p.b->ep->fid, buf), 0);
		c = ep_next(p.b);
		if (c.err == 0) {
			both++;
			assert_int_equal(c.len, 90000);
			assert_true(xfer_filled(buf, 90000, 1, 0));
			c = ep_next(p.b);
		} else {		/* the message is not received yet */
			EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, in));
			assert_int_equal(ep_wait(p.b, in).err, FI_ETRUNC);
		}
		assert_int_equal(c.err, FI_ECANCELED);
		assert_ptr_equal(c.context, buf);
		ep_sent(p.a, out);
		assert_int_equal(p.b->ncomp, 0);
	}
	assert_true(both != 0);
	ep_quiet(p.b);
}

/* As MPI_Finalize does: with 8 buffers posted, fi_close() must return 0. */
static void test_trap10_close_with_posted_buffers(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *buf = ep_alloc(8 << 20);

	set_min(p.b, 16384);
	for (int i = 0; i < 8; i++)
		EP_OK(post(p.b, FI_ADDR_UNSPEC, buf + (i << 20), 1 << 20,
			   FI_COMPLETION));
	send_one(&p, 100, 1);
	ep_close(p.b);
	ep_settle();
}

/* ---- Many messages --------------------------------------------------- */

struct pool {
	char *buf[8];
	uint32_t reposts;
};

/* Length of message i of the stream. */
static size_t length_of(uint32_t i)
{
	uint64_t rng = i;

	return unit_below(&rng, 3) ? 16 : unit_below(&rng, 16385);
}

static void one_arrival(struct ep *e, struct pool *pl, uint32_t number)
{
	struct ep_comp c = ep_next(e);
	int i = 0;

	assert_int_equal(c.err, 0);
	while (pl->buf[i] != c.context)
		assert_true(++i < 8);
	assert_int_equal(c.data, number);
	assert_int_equal(c.len, length_of(number));
	assert_true((char *)c.buf >= pl->buf[i] &&
		    (char *)c.buf + c.len <= pl->buf[i] + 65536);
	assert_true(xfer_filled(c.buf, c.len, number, 0));
	if (!(c.flags & FI_MULTI_RECV))
		return;
	/* posted again at once, as by a handler */
	memset(pl->buf[i], 0, 65536);
	EP_OK(post(e, FI_ADDR_UNSPEC, pl->buf[i], 65536, FI_COMPLETION));
	pl->reposts++;
}

/* As MPICH's active messages: 8 buffers that are posted again, messages of up
 * to 16 KiB. */
static void test_trap8_nothing_is_lost_over_many_buffers(void **state)
{
	uint32_t total = UNIT_SLOW ? 3000 : 20000, got = 0, sent = 0;
	struct ep_pair p = ep_pair(NULL);
	struct pool pl = { .reposts = 0 };
	uint64_t rng = 1;

	set_min(p.b, 16384);
	for (int i = 0; i < 8; i++) {
		pl.buf[i] = malloc(65536);
		EP_OK(post(p.b, FI_ADDR_UNSPEC, pl.buf[i], 65536,
			   FI_COMPLETION));
	}
	while (got < total) {
		uint32_t burst = sent + unit_below(&rng, 60);

		for (; sent < burst && sent < total; sent++)
			send_one(&p, length_of(sent), sent);
		while (got < sent)
			one_arrival(p.b, &pl, got++);
	}
	assert_true(pl.reposts > 8);
	ep_quiet(p.b);
	ep_close(p.b);
	for (int i = 0; i < 8; i++)
		free(pl.buf[i]);
}

UNIT_MAIN(
	EP_TEST(test_trap8_released_once_with_the_last_message),
	EP_TEST(test_unexpected_messages_fill_a_buffer),
	EP_TEST(test_trap8_no_message_after_release),
	EP_TEST(test_released_below_the_minimum),
	EP_TEST(test_full_buffer_is_released_with_minimum_0),
	EP_TEST(test_minimum_by_getopt),
	EP_TEST(test_message_longer_than_what_is_left),
	EP_TEST(test_trap8_release_waits_for_transfers),
	EP_TEST(test_short_message_overtakes_a_long_one),
	EP_TEST(test_second_buffer_takes_over),
	EP_TEST(test_directed_buffer_takes_its_source_only),
	EP_TEST(test_what_a_buffer_may_not_be),
	EP_TEST(test_release_is_reported_without_completions),
	EP_TEST(test_op_flags_make_buffers),
	EP_TEST(test_cancel_gives_one_entry),
	EP_TEST(test_cancel_waits_for_transfers),
	EP_TEST(test_cancel_at_any_moment),
	EP_TEST(test_trap10_close_with_posted_buffers),
	EP_TEST(test_trap8_nothing_is_lost_over_many_buffers),
)
