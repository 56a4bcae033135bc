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
	g_unm_env.unexpected_max = 1 << 20;
	while (n < 40 && of_a->long_classes & 1) {
		EP_OK(fi_send(p.a->ep, out, 2 * PIECE, NULL, p.ab, out));
		ep_sent(p.a, out);
		ep_settle();
		n++;
	}
	assert_in_range(n, 4, 20);
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

UNIT_MAIN(
	EP_TEST_INSIDE(test_every_length),
	EP_TEST_INSIDE(test_the_buffer_is_free_at_once),
	EP_TEST_INSIDE(test_else_by_rendezvous),
	EP_TEST_INSIDE(test_measured),
	EP_TEST_INSIDE(test_shared_processor),
	EP_TEST_INSIDE(test_unexpected_memory_is_bounded),
)
