/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pressure.c - overload: all send and nobody receives, memory for
 * unexpected messages runs out, queues are full. Nothing is lost, nothing waits
 * for ever, and applications see no error but -FI_EAGAIN. test_shortage.c has
 * peers for which there is no memory or descriptor.
 *
 * UNM_TEST_MESSAGES: messages in each direction of the long tests (100,000).
 * 1,000,000 between two processes: senders_late in test_crowd.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "lib/ep_xfer.h"
#include "unm_env.h"

#define BIG	100000

static uint32_t messages(void)
{
	return (uint32_t)unit_number("UNM_TEST_MESSAGES",
				     UNIT_SLOW ? 20000 : 100000);
}

/* ---- Both sides only send -------------------------------------------- */

/* As MPI programs do: after a refusal they read their own queue and retry. */
static void only_send(size_t len, bool tagged, uint32_t total)
{
	struct ep_pair p = ep_pair(NULL);
	struct ep *e[2] = { p.a, p.b };
	fi_addr_t to[2] = { p.ab, p.ba };
	uint32_t sent[2] = { 0 }, done[2] = { 0 };
	uint64_t end = ep_deadline();
	char *out = calloc(2 * (size_t)total, len), *buf = malloc(len);

	assert_non_null(out);
	while (done[0] < total || done[1] < total)
		for (int i = 0; i < 2; i++) {
			char *at = out + (2 * (size_t)sent[i] + i) * len;
			ssize_t ret = -FI_EAGAIN;

			if (sent[i] < total) {
				memcpy(at, &sent[i], 4);
				ret = tagged ? fi_tsend(e[i]->ep, at, len,
					NULL, to[i], sent[i], NULL) :
					fi_send(e[i]->ep, at, len, NULL,
						to[i], NULL);
			}
			if (ret == 0)
				sent[i]++;
			else
				assert_int_equal(ret, -FI_EAGAIN);
			if (ret != 0 || sent[i] % 16 == 0) {
				int n = ep_poll(e[i]);

				done[i] += n;
				e[i]->ncomp = 0;
				end = n ? ep_deadline() : end;
				ep_in_time(end, "sends");
			}
		}
	/* receives are posted late */
	for (uint32_t n = 0; n < total; n++)
		for (int i = 0; i < 2; i++) {
			if (tagged)
				EP_OK(fi_trecv(e[i]->ep, buf, len, NULL,
					       to[i], n, 0, buf));
			else
				EP_OK(fi_recv(e[i]->ep, buf, len, NULL,
					      to[i], buf));
			assert_int_equal(ep_received(e[i], buf).len, len);
			assert_memory_equal(buf, &n, 4);
		}
	ep_pair_quiet(&p);
	free(buf);
	free(out);
	ep_pair_close(&p);
}

static void test_trap8_both_only_send_inline(void **state)
{
	only_send(8, false, messages());
	only_send(8, true, messages());
}

static void test_trap8_both_only_send_eager(void **state)
{
	only_send(300, true, messages() / 4);
	only_send(4000, false, messages() / 10);
}

/* ---- All to all ------------------------------------------------------ */

#define NODES	4
#define EACH	8

/* Four endpoints post all their sends, far above the eager limit, before any of
 * them posts a receive. */
static void test_trap8_all_to_all_before_any_receive(void **state)
{
	struct ep *e[NODES];
	fi_addr_t at[NODES][NODES];
	char *out[NODES], *in;

	in = malloc((size_t)NODES * EACH * BIG);
	for (int i = 0; i < NODES; i++) {
		e[i] = ep_open(NULL);
		out[i] = malloc(BIG);
		xfer_fill(out[i], BIG, i, 0);
	}
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < NODES; k++)
			at[i][k] = ep_insert(e[i], e[k]);
	for (int n = 0; n < EACH; n++)
		for (int i = 0; i < NODES; i++)
			for (int k = 0; k < NODES; k++)
				EP_OK(fi_tsend(e[i]->ep, out[i], BIG, NULL,
					       at[i][k], n, out[i]));
	ep_settle();
	for (int k = 0; k < NODES; k++) {
		for (int n = 0; n < NODES * EACH; n++)
			EP_OK(fi_trecv(e[k]->ep, in + (size_t)n * BIG, BIG,
				       NULL, at[k][n % NODES], n / NODES, 0,
				       in + (size_t)n * BIG));
		for (int n = 0; n < NODES * EACH; n++) {
			char *buf = in + (size_t)n * BIG;

			assert_int_equal(ep_received(e[k], buf).len, BIG);
			assert_true(xfer_filled(buf, BIG, n % NODES, 0));
		}
	}
	for (int i = 0; i < NODES; i++) {
		for (int n = 0; n < NODES * EACH; n++)
			ep_sent(e[i], out[i]);
		ep_quiet(e[i]);
		free(out[i]);
	}
	free(in);
}

/* ---- Unexpected messages --------------------------------------------- */

/* Sends until sends are refused for good, however long it polls. */
static uint32_t fill(struct ep *from, fi_addr_t to, char *buf, size_t len,
		     uint32_t first)
{
	uint32_t n = first;

	for (int refused = 0; refused < 2000; ) {
		ssize_t ret;

		memcpy(buf, &n, 4);
		ret = fi_tinject(from->ep, buf, len, to, n);
		if (ret == 0) {
			n++;
			refused = 0;
			continue;
		}
		assert_int_equal(ret, -FI_EAGAIN);
		refused++;
		ep_step();
	}
	return n;
}

static void take(struct ep *at, uint32_t n, char *buf, size_t len)
{
	EP_OK(fi_trecv(at->ep, buf, len, NULL, FI_ADDR_UNSPEC, n, 0, buf));
	assert_int_equal(ep_received(at, buf).len, len);
	assert_memory_equal(buf, &n, 4);
}

/* Bytes of the endpoint's memory that unexpected messages use. */
static uint64_t in_pools(const struct unm_ep *ep)
{
	uint64_t sum = (uint64_t)ep->msg_pool.used * ep->msg_pool.size;

	for (int i = 0; i < UNM_BUF_CLASSES; i++)
		sum += (uint64_t)ep->buf_pool[i].used * ep->buf_pool[i].size;
	return sum;
}

static void bounded(size_t len, size_t max)
{
	size_t was = g_unm_env.unexpected_max;
	struct ep_pair p = ep_pair(NULL);
	char *buf = calloc(1, len);
	uint32_t sent = 0, got = 0;
	uint64_t held;

	g_unm_env.unexpected_max = max;
	for (int round = 0; round < 4; round++) {
		sent = fill(p.a, p.ab, buf, len, sent);
		held = ((struct unm_ep *)p.b->ep)->unexpected_bytes;
		assert_int_equal(held, in_pools((struct unm_ep *)p.b->ep));
		/* the bound, and the messages for which credits were sent
		 * before */
		assert_true(held >= max);
		assert_true(held <= max + UNM_PEER_CREDITS *
			    (2 * len + sizeof(struct unm_msg) + 4096));
		assert_true(((struct unm_ep *)p.a->ep)->stats->again_credit >
			    0);
		/* half are received, so sending continues; then all */
		for (uint32_t half = got + (sent - got) / 2; got < half; )
			take(p.b, got++, buf, len);
		sent = fill(p.a, p.ab, buf, len, sent);
		while (got < sent)
			take(p.b, got++, buf, len);
	}
	g_unm_env.unexpected_max = was;
	ep_quiet(p.b);
	assert_int_equal(((struct unm_ep *)p.b->ep)->unexpected_bytes, 0);
	free(buf);
	ep_pair_close(&p);
}

static void test_unexpected_memory_is_bounded(void **state)
{
	bounded(8, 4096);
	bounded(8, 1 << 20);
	bounded(500, 100000);
	bounded(4000, 1 << 20);
}

/* Two senders: both continue when memory is free again, also if the messages of
 * only one of them are received first. */
static void test_two_senders_share_what_there_is(void **state)
{
	size_t was = g_unm_env.unexpected_max;
	struct ep *r, *s[2];
	fi_addr_t to[2], from[2];
	uint32_t sent[2] = { 0 }, got[2] = { 0 };
	char buf[4000];

	g_unm_env.unexpected_max = 65536;
	r = ep_open(NULL);
	for (int i = 0; i < 2; i++) {
		s[i] = ep_open(NULL);
		to[i] = ep_insert(s[i], r);
		from[i] = ep_insert(r, s[i]);
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++)
			sent[i] = fill(s[i], to[i], buf, sizeof(buf),
				       sent[i]);
		for (int i = 1; i >= 0; i--)
			while (got[i] < sent[i]) {
				EP_OK(fi_trecv(r->ep, buf, sizeof(buf), NULL,
					       from[i], got[i], 0, buf));
				ep_received(r, buf);
				assert_memory_equal(buf, &got[i], 4);
				got[i]++;
			}
	}
	g_unm_env.unexpected_max = was;
	assert_true(got[0] > 32 && got[1] > 32);
	ep_quiet(r);
}

/* One sender's messages use up the memory: another sender whose messages have
 * posted receives is not delayed, however long that lasts. */
static void test_a_flood_holds_back_nobody_else(void **state)
{
	size_t was = g_unm_env.unexpected_max;
	struct ep *r, *flood, *well;
	fi_addr_t to, from, flooded;
	uint32_t sent, in, most;
	char buf[1000];

	g_unm_env.unexpected_max = 65536;
	r = ep_open(NULL);
	flood = ep_open(NULL);
	well = ep_open(NULL);
	to = ep_insert(well, r);
	from = ep_insert(r, well);
	flooded = ep_insert(flood, r);
	sent = fill(flood, flooded, buf, sizeof(buf), 0);
	for (uint32_t i = 0; i < 5 * UNM_PEER_CREDITS; i++) {
		EP_OK(fi_recv(r->ep, &in, 4, NULL, from, &in));
		EP_OK(fi_inject(well->ep, &i, 4, to));
		ep_received(r, &in);
		assert_int_equal(in, i);
	}
	/* it has a bound, too, which ends when its messages are received */
	well->ncomp = 0;
	in = fill(well, to, buf, sizeof(buf), 0);
	most = UNM_PEER_CREDITS + well->info->tx_attr->size;
	assert_in_range(in, 1, most);
	while (in-- > 0) {
		EP_OK(fi_trecv(r->ep, buf, sizeof(buf), NULL, from, 0,
			       UINT64_MAX, buf));
		ep_received(r, buf);
	}
	assert_in_range(fill(well, to, buf, sizeof(buf), 0), 1, most);
	/* the first sender is still throttled */
	assert_int_equal(fill(flood, flooded, buf, sizeof(buf), sent), sent);
	g_unm_env.unexpected_max = was;
}

/* Discarding and claiming free memory as receiving does. */
static void test_discards_free_space(void **state)
{
	size_t was = g_unm_env.unexpected_max;
	uint32_t sent = 0, got = 0;
	uint64_t end = ep_deadline();
	struct ep_pair p;
	char buf[1000];

	g_unm_env.unexpected_max = 20000;
	p = ep_pair(NULL);
	for (int round = 0; round < 3; round++) {
		sent = fill(p.a, p.ab, buf, sizeof(buf), sent);
		for (; got < sent; got++) {
			struct fi_msg_tagged msg = {
				.addr = FI_ADDR_UNSPEC, .tag = got,
				.context = &msg,
			};

			struct ep_comp c;

			do {		/* until the message has come and is
					 * unexpected */
				ep_in_time(end, "messages");
				EP_OK(fi_trecvmsg(p.b->ep, &msg, FI_PEEK |
						  FI_COMPLETION | FI_DISCARD));
				c = ep_wait(p.b, &msg);
			} while (c.err == FI_ENOMSG);
			assert_int_equal(c.err, 0);
			assert_int_equal(c.tag, got);
		}
	}
	assert_true(sent > 60);
	g_unm_env.unexpected_max = was;
}

/* Memory becomes free while the completion queue is full: a sender that was
 * throttled for lack of memory continues once the queue is read. */
static void test_room_comes_while_the_queue_is_full(void **state)
{
	const struct ep_want want = { .cq_size = 64 };
	size_t was = g_unm_env.unexpected_max;
	struct iovec iov = { NULL, 1 << 20 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC };
	uint32_t sent = 0;
	struct ep_pair p;

	iov.iov_base = malloc(iov.iov_len);
	g_unm_env.unexpected_max = 4096;
	p = ep_pair(&want);
	/* one is never received, so that some are always unexpected */
	EP_OK(fi_tinject(p.a->ep, &sent, 4, p.ab, 1));
	for (int refused = 0; refused < 2000; refused++) {
		if (fi_inject(p.a->ep, &sent, 4, p.ab) == 0) {
			sent++;
			refused = 0;
		}
		ep_step();
	}
	assert_true(sent > want.cq_size);
	EP_OK(fi_recvmsg(p.b->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	EP_UNTIL(p.b->ncomp == sent);
	for (uint32_t i = 0; i < 3 * UNM_PEER_CREDITS; i++)
		EP_OK(fi_inject(p.a->ep, &i, 4, p.ab));
	EP_UNTIL(p.b->ncomp == sent + 3 * UNM_PEER_CREDITS);
	g_unm_env.unexpected_max = was;
	ep_close(p.b);
	free(iov.iov_base);
}

/* Without memory for unexpected messages, rendezvous under way still end. */
static void test_rendezvous_ends_while_memory_is_out(void **state)
{
	size_t was = g_unm_env.unexpected_max;
	char *out, *in, buf[1000];
	struct ep_pair p;
	uint32_t sent;

	out = malloc(BIG);
	in = malloc(BIG);
	g_unm_env.unexpected_max = 4096;
	p = ep_pair(NULL);
	xfer_fill(out, BIG, 1, 0);
	EP_OK(fi_tsend(p.a->ep, out, BIG, NULL, p.ab, UINT64_MAX, out));
	EP_OK(fi_trecv(p.a->ep, in, BIG, NULL, p.ab, 5, 0, in));
	sent = fill(p.a, p.ab, buf, sizeof(buf), 0);
	assert_true(sent > 4);
	/* the other direction, with both halves of the pair */
	EP_OK(fi_tsend(p.b->ep, out, BIG, NULL, p.ba, 5, out));
	ep_received(p.a, in);
	ep_sent(p.b, out);
	EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, UINT64_MAX, 0, in));
	ep_received(p.b, in);
	ep_sent(p.a, out);
	assert_true(xfer_filled(in, BIG, 1, 0));
	g_unm_env.unexpected_max = was;
	free(out);
	free(in);
}

/* ---- Full queues ----------------------------------------------------- */

/* The receiver does not poll: sends are refused and do not block, and another
 * peer is served. */
static void test_a_peer_that_never_polls_delays_nobody(void **state)
{
	struct ep *s = ep_open(NULL), *deaf = ep_open(NULL);
	struct ep *well = ep_open(NULL);
	fi_addr_t to_deaf = ep_insert(s, deaf), to_well = ep_insert(s, well);
	uint32_t n = 0, in, refused = 0;

	for (uint32_t i = 0; i < 5000; i++) {
		ssize_t ret = fi_inject(s->ep, &n, 4, to_deaf);

		if (ret == 0)
			n++;
		else
			refused++;
		EP_OK(fi_recv(well->ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
		while (fi_inject(s->ep, &i, 4, to_well) != 0)
			ep_poll(well);
		for (struct ep_comp c; !ep_take(well, &in, &c); ) {
			ep_poll(s);
			ep_poll(well);
		}
		assert_int_equal(in, i);
	}
	assert_true(refused > 0 && n > 0);
	for (uint32_t i = 0; i < n; i++) {
		EP_OK(fi_recv(deaf->ep, &in, 4, NULL, FI_ADDR_UNSPEC, &in));
		ep_received(deaf, &in);
		assert_int_equal(in, i);
	}
	ep_quiet(deaf);
}

static uint64_t packets_to(struct ep *e, fi_addr_t dest)
{
	return hal_tx_sent(((struct unm_ep *)e->ep)->peer_of[dest]->hp);
}

/* A long message in pieces: each call sends a few of them, so that other work
 * is not delayed; two such messages share the calls. */
static void test_a_stream_is_sent_in_steps(void **state)
{
	enum { STEP = 16, LEN = 10 * BIG };
	size_t eager = g_unm_env.eager_max;
	bool attach = g_unm_env.attach;
	struct ep *s, *r[2];
	fi_addr_t to[2];
	uint64_t before[2], sent[2] = { 0 }, end = ep_deadline();
	char *out = ep_alloc(LEN), *in[2];

	g_unm_env.eager_max = 256;
	g_unm_env.attach = false;
	s = ep_open(NULL);
	for (int i = 0; i < 2; i++) {
		in[i] = malloc(LEN);
		r[i] = ep_open(NULL);
		to[i] = ep_insert(s, r[i]);
		EP_OK(fi_recv(r[i]->ep, in[i], LEN, NULL, FI_ADDR_UNSPEC,
			      in[i]));
		EP_OK(fi_send(s->ep, out, LEN, NULL, to[i], in[i]));
	}
	EP_FOR_US(2000) {			/* the receivers ask for
						 * pieces */
		ep_poll(r[0]);
		ep_poll(r[1]);
	}
	while (sent[0] == 0 || sent[1] == 0) {
		for (int i = 0; i < 2; i++)
			before[i] = packets_to(s, to[i]);
		ep_poll(s);
		for (int i = 0; i < 2; i++) {
			sent[i] = packets_to(s, to[i]) - before[i];
			assert_in_range(sent[i], 0, STEP);
		}
		ep_in_time(end, "streams");
	}
	for (int i = 0; i < 2; i++) {
		ep_received(r[i], in[i]);
		ep_sent(s, in[i]);
		free(in[i]);
	}
	g_unm_env.eager_max = eager;
	g_unm_env.attach = attach;
}

/* More rendezvous than may be in flight. */
static void test_sends_in_flight_are_bounded(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	size_t max = p.a->info->tx_attr->size;
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);
	uint32_t sent = 0, got = 0;

	for (int refused = 0; refused < 200; ep_step()) {
		ssize_t ret = fi_send(p.a->ep, out, BIG, NULL, p.ab, out);

		assert_int_equal(p.a->ep->ops->tx_size_left(p.a->ep),
				 max - sent - (ret == 0));
		if (ret == 0) {
			refused = 0;
			assert_true(++sent <= max);
		} else {
			assert_int_equal(ret, -FI_EAGAIN);
			refused++;
		}
	}
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 20; i++, got++) {
			EP_OK(fi_recv(p.b->ep, in, BIG, NULL, p.ba, in));
			ep_received(p.b, in);
			ep_sent(p.a, out);
		}
		for (int i = 0; i < 20; i++, sent++)
			EP_OK(fi_send(p.a->ep, out, BIG, NULL, p.ab, out));
	}
	for (; got < sent; got++) {
		EP_OK(fi_recv(p.b->ep, in, BIG, NULL, p.ba, in));
		ep_received(p.b, in);
		ep_sent(p.a, out);
	}
	ep_quiet(p.a);
}

static void test_posted_receives_are_bounded(void **state)
{
	int was = g_unm_env.rx_size;
	struct ep_pair p;
	ssize_t ret;
	char in;
	int n;

	g_unm_env.rx_size = 100;
	p = ep_pair(NULL);
	for (n = 0; n < 200; n++) {
		ret = fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in);
		if (ret != 0)
			break;
	}
	assert_int_equal(n, 100);
	assert_int_equal(ret, -FI_EAGAIN);
	assert_int_equal(p.b->ep->ops->rx_size_left(p.b->ep), 0);
	/* all receives: tagged ones count, too */
	assert_int_equal(fi_trecv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0,
				  &in), -FI_EAGAIN);
	EP_OK(fi_inject(p.a->ep, &in, 1, p.ab));
	ep_received(p.b, &in);
	assert_int_equal(p.b->ep->ops->rx_size_left(p.b->ep), 1);
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	g_unm_env.rx_size = was;
}

/* A million receives with different tags: matching stays fast. */
static void test_many_receives_posted(void **state)
{
	uint32_t total = messages();
	struct ep_pair p = ep_pair(NULL);
	uint32_t *in = ep_alloc(total * sizeof(*in));

	for (uint32_t i = 0; i < total; i++)
		EP_OK(fi_trecv(p.b->ep, &in[i], 4, NULL, p.ba, i, 0, NULL));
	for (uint32_t i = total; i-- > 0; )
		EP_OK(fi_tinject(p.a->ep, &i, 4, p.ab, i));
	for (uint32_t i = total; i > 0; ) {
		ep_step();
		i -= p.b->ncomp;
		p.b->ncomp = 0;
	}
	for (uint32_t i = 0; i < total; i++)
		assert_int_equal(in[i], i);
}

UNIT_MAIN(
	EP_TEST(test_trap8_both_only_send_inline),
	EP_TEST(test_trap8_both_only_send_eager),
	EP_TEST(test_trap8_all_to_all_before_any_receive),
	EP_TEST_INSIDE(test_unexpected_memory_is_bounded),
	EP_TEST_INSIDE(test_two_senders_share_what_there_is),
	EP_TEST_INSIDE(test_a_flood_holds_back_nobody_else),
	EP_TEST_INSIDE(test_discards_free_space),
	EP_TEST_INSIDE(test_room_comes_while_the_queue_is_full),
	EP_TEST_INSIDE(test_rendezvous_ends_while_memory_is_out),
	EP_TEST(test_a_peer_that_never_polls_delays_nobody),
	EP_TEST_INSIDE(test_a_stream_is_sent_in_steps),
	EP_TEST(test_sends_in_flight_are_bounded),
	EP_TEST_INSIDE(test_posted_receives_are_bounded),
	EP_TEST(test_many_receives_posted),
)
