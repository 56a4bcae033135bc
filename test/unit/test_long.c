/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_long.c - eager messages in several pieces (LONG, docs/protocol.md,
 * section 5): when they are sent, and what becomes of one of which not all
 * pieces have arrived when it is matched, peeked at, discarded, or its sender
 * dies.
 */
#include "core/unm_cq_ring.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "core/unm_stats.h"
#include "core/unm_way.h"
#include "lib/ep_xfer.h"
#include "lib/raw_peer.h"
#include "msg/unm_long.h"
#include "unm_env.h"

#define PIECE	16384
#define EXT(off, len)	((uint64_t)(len) << 32 | (uint32_t)(off))

static struct unm_ep *inside(const struct ep *e)
{
	return (struct unm_ep *)e->ep;
}

/* ---- Sending --------------------------------------------------------- */

/* b allows LONG messages to a, and a uses all of the receive space. False: not
 * with this backend or these parameters. */
static bool allow(struct ep_pair *p)
{
	struct unm_peer *of_a, *of_b;
	uint32_t all = inside(p->a)->hif->caps->space_bytes;
	char c;

	EP_OK(fi_recv(p->b->ep, &c, 1, NULL, p->ba, &c));
	EP_OK(fi_inject(p->a->ep, "", 1, p->ab));
	ep_received(p->b, &c);
	of_b = inside(p->a)->peer_of[p->ab];
	of_a = unm_container(inside(p->b)->peers.next, struct unm_peer, all);
	unm_long_allow(of_a, 0, true);
	unm_long_allow(of_a, 1, true);
	if (inside(p->a)->long_max < UNM_WIRE_LONG_LIMIT || all < 1 << 18 ||
	    hal_tx_room(of_b->hp) == 0 || hal_space_ready(of_b->hp, all) != 0)
		return false;
	EP_OK(fi_recv(p->b->ep, &c, 1, NULL, p->ba, &c));
	if (of_b->space == NULL)
		assert_int_equal(unm_peer_find_space(of_b, 1), 0);
	unm_space_resize(of_b->space, all);
	/* unm_peer_space_fit() gives an empty ring this size */
	of_b->space_used = of_b->space->bytes;
	EP_OK(fi_inject(p->a->ep, "", 1, p->ab));
	ep_received(p->b, &c);
	return true;
}

/* A message by any call, of any length around the pieces, arrives whole, posted
 * before or after it. */
static void test_every_length(void **state)
{
	static const size_t lens[] = {
		PIECE + 1, PIECE + 63, 2 * PIECE - 1, 2 * PIECE, 2 * PIECE + 1,
		3 * PIECE + 64, 4 * PIECE - 1, 4 * PIECE,
	};
	struct ep_pair p = ep_pair(NULL);
	uint64_t sent = 0, seed = 0;

	unit_needs(allow(&p));
	for (size_t i = 0; i < 4 * sizeof(lens) / sizeof(lens[0]); i++) {
		struct xfer x = { .tagged = i & 1, .len = lens[i / 4],
				  .tx = i & 2 ? XFER_SENDDATA : XFER_SENDV,
				  .rx = i & 2 ? XFER_RECV : XFER_RECVV,
				  .tx_iov = i & 2 ? 1 : 3,
				  .rx_iov = i & 2 ? 1 : 4,
				  .tag = i, .data = i, .seed = ++seed };

		xfer_make(&x);
		if (i & 1)
			EP_OK(xfer_recv(p.b, p.ba, &x));
		EP_OK(xfer_send(p.a, p.ab, &x));
		sent++;
		if (!(i & 1)) {
			ep_settle();
			EP_OK(xfer_recv(p.b, p.ba, &x));
		}
		xfer_check(p.b, p.ba, &x);
		ep_sent(p.a, &x.txc);
		xfer_free(&x);
		assert_int_equal(inside(p.a)->stats->tx_long, sent);
	}
	ep_pair_quiet(&p);
	ep_pair_close(&p);
}

/* The receiver has hardly anything else to copy: short pieces. It is busy: the
 * first one, and the rest. */
static void test_few_pieces_for_a_busy_receiver(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(4 * PIECE), *in = ep_alloc(4 * PIECE);
	struct hal_peer *hp;
	uint64_t sent;

	unit_needs(allow(&p));
	hp = inside(p.a)->peer_of[p.ab]->hp;
	EP_OK(fi_inject(p.a->ep, out, 200, p.ab));
	for (int busy = 0; busy < 2; busy++) {
		sent = hal_tx_sent(hp);
		EP_OK(fi_send(p.a->ep, out, 4 * PIECE, NULL, p.ab, out));
		assert_int_equal(hal_tx_sent(hp) - sent, busy ? 2 : 4);
	}
	EP_OK(fi_recv(p.b->ep, in, 200, NULL, p.ba, in));
	ep_received(p.b, in);
	for (int i = 0; i < 2; i++) {
		EP_OK(fi_recv(p.b->ep, in, 4 * PIECE, NULL, p.ba, in));
		assert_int_equal(ep_received(p.b, in).len, 4 * PIECE);
		ep_sent(p.a, out);
	}
	assert_int_equal(inside(p.a)->stats->tx_long, 2);
	ep_pair_close(&p);
}

/* The send is complete when the call returns, so that the buffer may change. */
static void test_the_buffer_is_free_at_once(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(4 * PIECE), *in = ep_alloc(4 * PIECE);

	unit_needs(allow(&p));
	memset(out, 1, 4 * PIECE);
	EP_OK(fi_send(p.a->ep, out, 4 * PIECE, NULL, p.ab, out));
	assert_int_equal(ep_poll(p.a), 1);
	ep_sent(p.a, out);
	memset(out, 2, 4 * PIECE);
	EP_OK(fi_recv(p.b->ep, in, 4 * PIECE, NULL, p.ba, in));
	assert_int_equal(ep_received(p.b, in).len, 4 * PIECE);
	for (size_t i = 0; i < 4 * PIECE; i++)
		assert_int_equal(in[i], 1);
	ep_pair_close(&p);
}

/* Without room for all pieces, without permission, or longer: rendezvous. */
static void test_else_by_rendezvous(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_stats *stats = inside(p.a)->stats;
	char *out = ep_alloc(8 * PIECE), *in = ep_alloc(8 * PIECE);
	struct unm_peer *of_b;
	int n = 1;

	unit_needs(allow(&p));
	of_b = inside(p.a)->peer_of[p.ab];
	EP_OK(fi_send(p.a->ep, out, PIECE + 1, NULL, p.ab, out));
	while (unm_peer_find_space(of_b, 4 * PIECE) != UNM_SPACE_NONE) {
		EP_OK(fi_send(p.a->ep, out, 4 * PIECE, NULL, p.ab, out));
		n++;
	}
	assert_int_equal(stats->tx_long, n);
	assert_int_equal(stats->tx_rendezvous, 0);
	EP_OK(fi_send(p.a->ep, out, 4 * PIECE, NULL, p.ab, out));
	EP_OK(fi_send(p.a->ep, out, 4 * PIECE + 1, NULL, p.ab, out));
	assert_int_equal(stats->tx_long, n);
	assert_int_equal(stats->tx_rendezvous, 2);
	for (int i = 0; i < n + 2; i++) {
		EP_OK(fi_recv(p.b->ep, in, 8 * PIECE, NULL, p.ba, in));
		assert_int_equal(ep_received(p.b, in).len, i == 0 ? PIECE + 1 :
				 4 * PIECE + (i == n + 1));
		ep_sent(p.a, out);
	}
	unm_long_allow(unm_container(inside(p.b)->peers.next, struct unm_peer,
				     all), 1, false);
	EP_OK(fi_recv(p.b->ep, in, 4 * PIECE, NULL, p.ba, in));
	EP_OK(fi_send(p.a->ep, out, 4 * PIECE, NULL, p.ab, out));
	ep_received(p.b, in);
	ep_sent(p.a, out);
	assert_int_equal(stats->tx_long, n);
	ep_pair_close(&p);
}

/* Streams that are measured to be faster than reads become LONG messages, and
 * one of so many is announced again, so that reads are tried. */
static void test_measured(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_stats *stats = inside(p.a)->stats;
	char *out = ep_alloc(2 * PIECE), *in = ep_alloc(2 * PIECE);
	struct unm_peer *of_a;
	uint64_t rts;

	unit_needs(allow(&p));
	of_a = unm_container(inside(p.b)->peers.next, struct unm_peer, all);
	unit_needs(of_a->hp->dma_any && g_unm_env.attach &&
		   g_unm_env.stream_us != 0);
	unm_peer_ways(of_a)->msg[0] = (struct unm_way){
		.cost = { 1, UINT32_MAX / 8 }, .gap = UNM_WAY_GAP_MAX,
		.wait = 3ull * UNM_WAY_RUN * 2 * PIECE };
	unm_long_allow(of_a, 0, false);
	rts = stats->tx_rendezvous;
	for (int i = 0; i < 10 * UNM_WAY_RUN && stats->tx_long < 6 *
	     UNM_WAY_RUN; i++) {
		EP_OK(fi_recv(p.b->ep, in, 2 * PIECE, NULL, p.ba, in));
		EP_OK(fi_send(p.a->ep, out, 2 * PIECE, NULL, p.ab, out));
		ep_received(p.b, in);
		ep_sent(p.a, out);
	}
	assert_int_equal(stats->tx_long, 6 * UNM_WAY_RUN);
	assert_in_range(stats->tx_rendezvous - rts, 6, 4 * UNM_WAY_RUN);
	assert_true(inside(p.b)->stats->rx_attach > 0);	/* the trial */
	ep_pair_close(&p);
}

/* Where other threads wait for the processor, reads are not faster, whatever
 * was measured. */
static void test_shared_processor(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_idle *idle = &inside(p.b)->rx_cq->idle;
	struct unm_peer *of_a;
	uint32_t was = unm_idle_get(&idle->spin);

	unit_needs(allow(&p));
	of_a = unm_container(inside(p.b)->peers.next, struct unm_peer, all);
	unm_idle_set(&idle->spin, 1);
	unm_long_allow(of_a, 0, false);
	assert_int_equal(of_a->long_classes & 1, 0);
	unm_idle_set(&idle->spin, 0);
	unm_long_allow(of_a, 0, false);
	assert_int_equal(of_a->long_classes & 1, 1);
	unm_idle_set(&idle->spin, was);
	ep_pair_close(&p);
}

/* A message whose receive is posted, while other threads wait for the
 * processor of b (spin is 0), or do not. Its length is in class 0. */
static void send_spin(struct ep_pair *p, char *out, char *in, uint32_t spin)
{
	EP_OK(fi_recv(p->b->ep, in, 2 * PIECE, NULL, p->ba, in));
	EP_OK(fi_send(p->a->ep, out, 2 * PIECE, NULL, p->ab, out));
	unm_idle_set(&inside(p->b)->rx_cq->idle.spin, spin);
	ep_received(p->b, in);
	ep_sent(p->a, out);
}

/* Messages that were allowed because the processor was shared are announced
 * again when it is not, if reads are faster and possible. */
static void test_no_longer_shared(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_stats *stats = inside(p.a)->stats;
	struct unm_idle *idle = &inside(p.b)->rx_cq->idle;
	char *out = ep_alloc(2 * PIECE), *in = ep_alloc(2 * PIECE);
	uint32_t was = unm_idle_get(&idle->spin);
	struct unm_peer *of_a;

	unit_needs(allow(&p));
	of_a = unm_container(inside(p.b)->peers.next, struct unm_peer, all);
	unit_needs(of_a->hp->dma_any && g_unm_env.attach &&
		   g_unm_env.stream_us != 0);
	unm_peer_ways(of_a)->msg[0] = (struct unm_way){
		.cost = { UINT32_MAX / 8, 1 }, .how = UNM_WAY_ATTACH,
		.gap = UNM_WAY_GAP_MAX, .wait = UINT64_MAX };
	unm_idle_set(&idle->spin, 0);
	unm_long_allow(of_a, 0, false);
	send_spin(&p, out, in, 0);
	assert_int_equal(of_a->long_classes & 1, 1);
	of_a->attach_off = true;
	send_spin(&p, out, in, was);
	assert_int_equal(of_a->long_classes & 1, 1);
	of_a->attach_off = false;
	send_spin(&p, out, in, was);
	assert_int_equal(of_a->long_classes & 1, 0);
	assert_int_equal(stats->tx_long, 3);
	assert_int_equal(stats->tx_rendezvous, 0);
	send_spin(&p, out, in, was);
	assert_int_equal(stats->tx_rendezvous, 1);
	assert_int_equal(inside(p.b)->stats->rx_attach, 1);
	ep_pair_close(&p);
}

/* Unexpected messages that take half of what they may take withdraw the
 * permission; it comes back after they were received. */
static void test_unexpected_memory_is_bounded(void **state)
{
	size_t was = g_unm_env.unexpected_max;
	struct ep_pair p = ep_pair(NULL);
	struct unm_stats *stats = inside(p.a)->stats;
	char *out = ep_alloc(2 * PIECE), *in = ep_alloc(2 * PIECE);
	struct unm_peer *of_a;
	int n = 0;

	unit_needs(allow(&p));
	of_a = unm_container(inside(p.b)->peers.next, struct unm_peer, all);
	g_unm_env.unexpected_max = 1 << 18;
	while (n < 40 && of_a->long_classes & 1) {
		EP_OK(fi_send(p.a->ep, out, 2 * PIECE, NULL, p.ab, out));
		ep_sent(p.a, out);
		ep_settle();
		n++;
	}
	assert_in_range(n, 4, 6);
	assert_int_equal(stats->tx_long, n);
	unm_long_allow(of_a, 0, true);		/* not yet */
	assert_int_equal(of_a->long_classes & 1, 0);
	for (int i = 0; i < n; i++) {
		EP_OK(fi_recv(p.b->ep, in, 2 * PIECE, NULL, p.ba, in));
		ep_received(p.b, in);
	}
	unm_long_allow(of_a, 0, true);
	assert_int_equal(of_a->long_classes & 1, 1);
	g_unm_env.unexpected_max = was;
	ep_pair_close(&p);
}

/* Messages of a peer that are unexpected are announced after some of them, so
 * that they take no memory; when these were received, they are not. */
static void test_unexpected_messages_of_a_peer(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_stats *stats = inside(p.a)->stats;
	char *out = ep_alloc(2 * PIECE), *in = ep_alloc(2 * PIECE);
	struct unm_peer *of_a;

	unit_needs(allow(&p));
	of_a = unm_container(inside(p.b)->peers.next, struct unm_peer, all);
	for (int i = 0; i < 256; i++) {
		EP_OK(fi_send(p.a->ep, out, 2 * PIECE, NULL, p.ab, out));
		ep_settle();
		assert_in_range(inside(p.b)->unexpected_bytes, 1,
				10 * (2 * PIECE + 512) + 256 * 512);
	}
	assert_in_range(stats->tx_long, 4, 10);
	assert_int_equal(stats->tx_long + stats->tx_rendezvous, 256);
	unm_long_allow(of_a, 0, true);		/* not yet */
	assert_int_equal(of_a->long_classes & 1, 0);
	for (int i = 0; i < 256; i++) {
		EP_OK(fi_recv(p.b->ep, in, 2 * PIECE, NULL, p.ba, in));
		ep_received(p.b, in);
		ep_sent(p.a, out);
	}
	assert_int_equal(inside(p.b)->unexpected_bytes, 0);
	assert_int_equal(of_a->long_stored, 0);
	unm_long_allow(of_a, 0, true);
	assert_int_equal(of_a->long_classes & 1, 1);
	ep_pair_close(&p);
}

/* ---- Receiving ------------------------------------------------------- */

/* A receiver, and a bare interface that sends hand-made pieces. */
struct talk {
	struct ep *v;
	struct raw *r;
	fi_addr_t vr;
	char *in;
};

static struct talk talk(void)
{
	struct talk t = { .v = ep_open(NULL), .r = raw_open(),
			  .in = ep_alloc(4 * PIECE) };

	t.vr = raw_insert(t.v, t.r);
	raw_connect(t.r, t.v);
	raw_hello(t.r);
	return t;
}

/* Bytes at offset off of the space, all of them with this value. */
static void fill(struct talk *t, uint32_t off, uint32_t len, int value)
{
	char bytes[256];

	memset(bytes, value, sizeof(bytes));
	for (uint32_t at = 0; at < len; at += sizeof(bytes))
		raw_space(t->r, off + at, bytes, len - at < sizeof(bytes) ?
			  len - at : sizeof(bytes));
}

static void first(struct talk *t, uint64_t tag, uint64_t len, uint32_t here)
{
	const uint64_t w[] = { tag, len, EXT(0, here) };

	fill(t, 0, here, 1);
	raw_send(t->r, hal_head(UNM_WIRE_LONG_TAGGED, 0), w, 3, NULL, 0);
}

static void raw_settle(void)
{
	for (int i = 0; i < 300; i++)
		raw_step();
}

/* The piece before this one was in the same place: it has to be copied. */
static void next(struct talk *t, uint32_t len, int value)
{
	const uint64_t w = EXT(4096, len);

	raw_settle();
	fill(t, 4096, len, value);
	raw_send(t->r, hal_head(UNM_WIRE_NEXT, 0), &w, 1, NULL, 0);
}

static bool all(const char *p, int value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void recv_tag(struct talk *t, size_t len, uint64_t tag)
{
	EP_OK(fi_trecv(t->v->ep, t->in, len, NULL, t->vr, tag, 0, t->in));
}

static void is_alive(struct talk *t)
{
	char c = 0;

	raw_settle();
	assert_false(t->r->dead);
	EP_OK(fi_inject(t->v->ep, &c, 1, t->vr));
}

/* Each message is received in another state of arrival. An inline message that
 * follows the first piece does not overtake it. */
static void test_matched_in_the_middle(void **state)
{
	for (int pieces = 0; pieces < 4; pieces++) {
		struct talk t = talk();
		uint64_t tag = 7;

		first(&t, 7, 1300, 300);
		raw_send(t.r, hal_head(UNM_WIRE_INLINE_TAGGED, 1), &tag, 1, "x",
			 1);
		for (int i = 0; i < pieces; i++)
			next(&t, i == 0 ? 900 : 50, 2 + i);
		raw_settle();
		recv_tag(&t, 1300, 7);
		assert_int_equal(ep_poll(t.v), pieces == 3);
		for (int i = pieces; i < 3; i++)
			next(&t, i == 0 ? 900 : 50, 2 + i);
		assert_int_equal(ep_received(t.v, t.in).len, 1300);
		assert_true(all(t.in, 1, 300) && all(t.in + 300, 2, 900) &&
			    all(t.in + 1200, 3, 50) && all(t.in + 1250, 4, 50));
		recv_tag(&t, 1, 7);
		assert_int_equal(ep_received(t.v, t.in).len, 1);
		is_alive(&t);
		raw_close(t.r);
		ep_close(t.v);
	}
}

/* A receive that is too short, also by more than a piece. */
static void test_truncated(void **state)
{
	static const size_t rooms[] = { 0, 100, 300, 301, 1299 };

	for (size_t i = 0; i < 2 * sizeof(rooms) / sizeof(rooms[0]); i++) {
		size_t room = rooms[i / 2];
		struct talk t = talk();
		struct ep_comp c;

		if (i & 1)
			recv_tag(&t, room, 7);
		first(&t, 7, 1300, 300);
		raw_settle();
		if (!(i & 1))
			recv_tag(&t, room, 7);
		next(&t, 900, 1);
		next(&t, 100, 1);
		c = ep_wait(t.v, t.in);
		assert_int_equal(c.err, FI_ETRUNC);
		assert_int_equal(c.olen, 1300 - room);
		assert_true(all(t.in, 1, room));
		assert_int_equal(t.in[room], 0);
		is_alive(&t);
		raw_close(t.r);
		ep_close(t.v);
	}
}

/* Peek at a message of len bytes. */
static void peek_len(struct talk *t, uint64_t tag, uint64_t flags, int err,
		     size_t len)
{
	struct fi_msg_tagged msg = { .addr = t->vr, .tag = tag,
				     .context = t->in };
	struct ep_comp c;

	EP_OK(fi_trecvmsg(t->v->ep, &msg, FI_PEEK | flags));
	c = ep_wait(t->v, t->in);
	assert_int_equal(c.err, err);
	if (err == 0)
		assert_int_equal(c.len, len);
}

static void peek(struct talk *t, uint64_t tag, uint64_t flags, int err)
{
	peek_len(t, tag, flags, err, 1300);
}

/* A message that is peeked at, claimed or discarded in the middle. */
static void test_peeked_in_the_middle(void **state)
{
	struct talk t = talk();
	struct iovec iov = { t.in, 1300 };
	struct fi_msg_tagged claimed = { .msg_iov = &iov, .iov_count = 1,
					 .addr = t.vr, .context = t.in };
	const uint64_t w[] = { 10, EXT(8192, 1300) };

	first(&t, 7, 1300, 300);
	raw_settle();
	peek(&t, 7, 0, 0);
	peek(&t, 7, FI_CLAIM, 0);
	peek(&t, 7, 0, FI_ENOMSG);
	next(&t, 900, 2);
	raw_settle();
	EP_OK(fi_trecvmsg(t.v->ep, &claimed, FI_CLAIM));
	next(&t, 100, 3);
	assert_int_equal(ep_received(t.v, t.in).len, 1300);
	assert_true(all(t.in, 1, 300) && all(t.in + 300, 2, 900) &&
		    all(t.in + 1200, 3, 100));
	/* discarded: the rest is ignored, the next message is not */
	first(&t, 8, 1300, 300);
	raw_settle();
	peek(&t, 8, FI_DISCARD, 0);
	assert_int_equal(inside(t.v)->unexpected_bytes, 0);
	fill(&t, 8192, 1300, 5);	/* it may get the same buffer */
	raw_send(t.r, hal_head(UNM_WIRE_EAGER_TAGGED, 0), w, 2, NULL, 0);
	next(&t, 1000, 2);
	raw_settle();
	recv_tag(&t, 1300, 10);
	assert_int_equal(ep_received(t.v, t.in).len, 1300);
	assert_true(all(t.in, 5, 1300));
	first(&t, 9, 600, 300);
	recv_tag(&t, 600, 9);
	next(&t, 300, 2);
	assert_int_equal(ep_received(t.v, t.in).len, 600);
	assert_true(all(t.in, 1, 300) && all(t.in + 300, 2, 300));
	is_alive(&t);
}

/* The sender ends in the middle: no half of a message is delivered. */
static void test_ended_in_the_middle(void **state)
{
	struct talk t = talk();

	recv_tag(&t, 1300, 7);
	first(&t, 7, 1300, 300);
	raw_settle();
	next(&t, 900, 2);
	raw_settle();
	raw_close(t.r);
	assert_int_equal(ep_wait(t.v, t.in).err, FI_ECONNRESET);
	ep_close(t.v);
	/* the same, stored */
	t = talk();
	first(&t, 7, 1300, 300);
	raw_settle();
	assert_true(inside(t.v)->unexpected_bytes > 0);
	raw_close(t.r);
	EP_UNTIL(unm_container(inside(t.v)->peers.next, struct unm_peer,
			       all)->hp == NULL);
	EP_OK(fi_trecv(t.v->ep, t.in, 1300, NULL, FI_ADDR_UNSPEC, 7, 0, t.in));
	assert_int_equal(ep_wait(t.v, t.in).err, FI_ECONNRESET);
	assert_int_equal(inside(t.v)->unexpected_bytes, 0);
	assert_true(all(t.in, 0, 1300));
	ep_close(t.v);
}

/* A peer may send a LONG message that is no longer than an inline message. No
 * byte beyond the piece is read, which may be the last byte of the space. */
static void test_short(void **state)
{
	struct talk t = talk();
	uint32_t last = inside(t.v)->hif->caps->space_bytes - 1;
	const uint64_t w[] = { 8, 100, EXT(last, 1) };

	for (int pieces = 0; pieces < 2; pieces++) {
		first(&t, 7, 100, 50);
		if (pieces != 0)
			next(&t, 50, 2);
		raw_settle();
		memset(t.in, 0, 100);
		recv_tag(&t, 100, 7);
		if (pieces == 0)
			next(&t, 50, 2);
		assert_int_equal(ep_received(t.v, t.in).len, 100);
		assert_true(all(t.in, 1, 50) && all(t.in + 50, 2, 50));
	}
	first(&t, 9, 100, 50);
	raw_settle();
	peek_len(&t, 9, FI_DISCARD, 0, 100);
	next(&t, 50, 2);
	fill(&t, last, 1, 3);
	raw_send(t.r, hal_head(UNM_WIRE_LONG_TAGGED, 0), w, 3, NULL, 0);
	next(&t, 99, 4);
	raw_settle();
	recv_tag(&t, 100, 8);
	assert_int_equal(ep_received(t.v, t.in).len, 100);
	assert_true(t.in[0] == 3 && all(t.in + 1, 4, 99));
	assert_int_equal(inside(t.v)->unexpected_bytes, 0);
	is_alive(&t);
}

/* A multi-receive buffer takes it, and an inline message behind it. */
static void test_into_a_multi_receive(void **state)
{
	struct talk t = talk();
	struct iovec iov = { t.in, 4 * PIECE };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = t.in };
	const uint64_t w[] = { 1300, EXT(0, 300) };
	struct ep_comp c;

	EP_OK(fi_recvmsg(t.v->ep, &msg, FI_MULTI_RECV));
	fill(&t, 0, 300, 1);
	raw_send(t.r, hal_head(UNM_WIRE_LONG, 0), w, 2, NULL, 0);
	raw_send(t.r, hal_head(UNM_WIRE_INLINE, 1), NULL, 0, "x", 1);
	c = ep_next(t.v);
	assert_int_equal(c.len, 1);
	assert_ptr_equal(c.buf, t.in + 1300);
	next(&t, 1000, 2);
	c = ep_next(t.v);
	assert_int_equal(c.len, 1300);
	assert_ptr_equal(c.buf, t.in);
	assert_true(all(t.in, 1, 300) && all(t.in + 300, 2, 1000));
	is_alive(&t);
}

/* ---- Protocol errors ------------------------------------------------- */

static void refused(struct talk *t)
{
	RAW_UNTIL(t->r->dead);
	raw_close(t->r);
	ep_close(t->v);
}

static void test_wrong_pieces_are_refused(void **state)
{
	static const struct {
		uint64_t len;
		uint32_t here, next;
	} bad[] = {
		{ 1300, 1300, 0 },	/* the first is all of it */
		{ 1300, 1301, 0 },
		{ 1300, 0, 0 },		/* an empty one */
		{ UNM_WIRE_LONG_LIMIT + 1, 300, 0 },
		{ 1300, 300, 1001 },	/* too long */
	};
	struct talk t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t = talk();
		recv_tag(&t, 1300, 7);
		first(&t, 7, bad[i].len, bad[i].here);
		if (bad[i].next != 0)
			next(&t, bad[i].next, 1);
		refused(&t);
	}
	t = talk();
	next(&t, 8, 1);			/* none was to come */
	refused(&t);
	t = talk();
	first(&t, 7, 1300, 300);
	next(&t, 0, 1);			/* an empty one */
	refused(&t);
	t = talk();
	first(&t, 7, 1300, 300);
	first(&t, 7, 1300, 300);	/* before the end of the one before */
	refused(&t);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_every_length),
	EP_TEST_INSIDE(test_few_pieces_for_a_busy_receiver),
	EP_TEST_INSIDE(test_the_buffer_is_free_at_once),
	EP_TEST_INSIDE(test_else_by_rendezvous),
	EP_TEST_INSIDE(test_measured),
	EP_TEST_INSIDE(test_shared_processor),
	EP_TEST_INSIDE(test_no_longer_shared),
	EP_TEST_INSIDE(test_unexpected_memory_is_bounded),
	EP_TEST_INSIDE(test_unexpected_messages_of_a_peer),
	RAW_TEST_INSIDE(test_matched_in_the_middle),
	RAW_TEST_INSIDE(test_truncated),
	RAW_TEST_INSIDE(test_peeked_in_the_middle),
	RAW_TEST_INSIDE(test_ended_in_the_middle),
	RAW_TEST_INSIDE(test_short),
	RAW_TEST_INSIDE(test_into_a_multi_receive),
	RAW_TEST_INSIDE(test_wrong_pieces_are_refused),
)
