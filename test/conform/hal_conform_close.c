/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_close.c - conformance tests of closing an interface: packets that
 * were accepted are received, each peer gets HAL_EV_DEAD once, and other
 * connections are not disturbed
 */
#include "conform/hal_conform.h"

static void send_words(struct ct_if *ci, struct hal_peer *peer, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ct_send(ci, peer, CT_TYPE_PING, i), 0);
}

/* Connect without stepping any interface but ci. */
static struct hal_peer *connect_blind(struct ct_if *ci,
				      const struct hal_addr *to)
{
	uint64_t end = ct_deadline();
	struct hal_peer *peer = NULL;
	int ret;

	do {
		ret = ct_hal_connect(ci->hif, to, &peer);
		assert_true(ct_now() < end);
	} while (ret == -FI_EAGAIN);
	assert_int_equal(ret, 0);
	return peer;
}

/*
 * Receive the words 0 to n - 1 from a peer that closes, before and after
 * HAL_EV_DEAD: the backend may order packets and event either way. Then free
 * the peer.
 */
static void expect_end(struct ct_if *ci, struct hal_peer *peer, unsigned n,
		       unsigned pause)
{
	uint64_t end = ct_deadline(), head;
	const struct hal_cell *cell;
	struct hal_event ev;
	bool dead = false;
	unsigned got = 0;

	while (!dead || got < n) {
		for (unsigned i = 0; i < pause; i++)
			ct_step_all();
		ct_step_all();
		cell = ct_peek(peer, &head);
		if (cell != NULL) {
			assert_true(hal_cell_word(cell, 0) == got);
			got++;
			hal_rx_release(peer);
			hal_rx_flush(peer);
		}
		if (!dead && ct_take_event(ci, HAL_EV_DEAD, peer, &ev)) {
			dead = true;
			assert_true(ev.status < 0);
			assert_true(peer->dead);
		}
		if (ct_now() > end)
			ct_fail("%u of %u packets came, the end was%s told",
				got, n, dead ? "" : " not");
	}
	for (int i = 0; i < 30; i++)
		ct_step_all();
	assert_null(ct_peek(peer, &head));
	assert_int_equal(ct_count_events(ci, HAL_EV_DEAD, peer), 0);
	hal_peer_free(peer);
}

/* Packets that were accepted before the close are received after it, in
 * order. */
static void close_is_drained(void **state)
{
	unsigned depth = ct_caps->pkt_depth;
	const unsigned counts[] = { 0, 1, depth / 2, depth };

	for (unsigned i = 0; i < 24; i++) {
		struct ct_pair p = ct_pair(0, 0);
		unsigned n = counts[i % 4];

		send_words(p.a, p.ab, n);
		ct_close(p.a);
		expect_end(p.b, p.ba, n, i / 4 % 3);
		ct_close(p.b);
	}
}

/* The same if the receiver was not stepped since before the connection. */
static void close_before_the_first_step(void **state)
{
	unsigned depth = ct_caps->pkt_depth;

	for (unsigned i = 0; i < 20; i++) {
		struct ct_if *a = ct_open(0), *b = ct_open(0);
		struct hal_addr from = a->hif->addr;
		struct hal_peer *ab = ct_connect(a, &b->hif->addr), *ba;

		send_words(a, ab, i % 2 ? depth : 3);
		ct_close(a);
		ba = ct_inbound_from(b, &from);
		expect_end(b, ba, i % 2 ? depth : 3, 0);
		ct_close(b);
	}
}

/*
 * Two interfaces connect to each other before either is stepped; then one sends
 * and closes. The other has opened its half of the same peer, and receives all
 * packets.
 */
static void close_after_crossing(void **state)
{
	for (unsigned i = 0; i < 24; i++) {
		struct ct_if *a = ct_open(0), *b = ct_open(0);
		struct hal_addr from = b->hif->addr;
		unsigned n = i % 3 ? 3 : ct_caps->pkt_depth;
		struct hal_peer *ab, *ba;

		ab = connect_blind(a, &b->hif->addr);
		ba = connect_blind(b, &a->hif->addr);
		if (i & 1)		/* b receives HAL_EV_INBOUND */
			for (int k = 0; k < 10; k++)
				ct_step(b);
		send_words(b, ba, n);
		if (i & 2)
			ct_peer_free(ba);
		else
			ct_close(b);
		assert_ptr_equal(ct_inbound_from(a, &from), ab);
		expect_end(a, ab, n, i / 8);
		for (int k = 0; k < 30; k++)
			ct_step(a);
		/* No inbound connection is left, and there is no second
		 * event. */
		assert_int_equal(a->hif->ninbound, 0);
		assert_int_equal(ct_count_events(a, HAL_EV_INBOUND, NULL), 0);
		ct_close(a);
		if (i & 2)
			ct_close(b);
	}
}

/* Bytes in the receive space stay after their sender has closed. */
static void close_keeps_space(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint8_t buf[1000];

	assert_int_equal(hal_space_ready(p.ab, UINT32_MAX), 0);
	ct_fill(buf, sizeof(buf), 9);
	hal_space_write(p.ab, 96, buf, sizeof(buf));
	hal_space_barrier(p.ab);
	send_words(p.a, p.ab, 1);
	ct_close(p.a);
	ct_wait_event(p.b, HAL_EV_DEAD, p.ba);
	assert_true(ct_recv(p.ba, CT_TYPE_PING) == 0);
	assert_true(ct_filled(hal_space(p.ba, 96), sizeof(buf), 9));
	hal_peer_free(p.ba);
}

/* Sending to a closed peer is harmless, before and after HAL_EV_DEAD. */
static void close_send_to_the_dead(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct hal_event ev;
	uint8_t buf[64] = { 0 };
	int ret;

	assert_int_equal(hal_space_ready(p.ab, UINT32_MAX), 0);
	ct_close(p.b);
	for (unsigned i = 0; i < 3 * ct_caps->pkt_depth; i++) {
		ret = hal_pkt_send(p.ab, hal_head(1, 0), NULL, 0, buf, 8);
		assert_true(ret == 0 || ret == -FI_EAGAIN);
		hal_space_write(p.ab, 64, buf, sizeof(buf));
		if (i == ct_caps->pkt_depth) {
			ev = ct_wait_event(p.a, HAL_EV_DEAD, p.ab);
			assert_true(ev.status < 0);
		}
	}
	hal_rx_back(p.ab, 0, 1);
	hal_peer_wake(p.ab);
	hal_peer_free(p.ab);
}

/* The status of HAL_EV_DEAD: the peer closed its interface, or it ended this
 * connection only. Either side may have opened its half. */
static void close_has_a_status(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		struct ct_if *a = ct_open(0), *b = ct_open(0);
		struct ct_pair p = { .a = a, .b = b };
		struct hal_event ev;

		p.ab = ct_connect(a, &b->hif->addr);
		p.ba = ct_inbound_from(b, &a->hif->addr);
		if (i & 1)
			ct_connect(b, &a->hif->addr);
		if (i & 2)
			hal_peer_free(p.ba);
		else
			ct_close(p.b);
		ev = ct_wait_event(p.a, HAL_EV_DEAD, p.ab);
		assert_int_equal(ev.status, i & 2 ? -FI_ECONNRESET :
				 -FI_ESHUTDOWN);
		hal_peer_free(p.ab);
		ct_close(p.a);
		if (i & 2)
			ct_close(p.b);
	}
}

/* One peer closes: the other peers continue to send and to connect. */
static void close_harms_nobody_else(void **state)
{
	struct ct_pair p = ct_pair(0, 0);

	for (uint64_t i = 0; i < 100; i++) {
		struct ct_if *c = ct_open(0);
		struct hal_peer *ac = ct_connect(p.a, &c->hif->addr);
		struct hal_peer *cb = ct_connect(c, &p.b->hif->addr);
		struct hal_event ev;

		send_words(p.a, ac, 3);
		send_words(c, cb, 3);
		ct_step_all();
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		ct_close(c);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
		ct_wait_event(p.a, HAL_EV_DEAD, ac);
		hal_peer_free(ac);
		assert_int_equal(ct_send(p.b, p.ba, CT_TYPE_PING, ~i), 0);
		assert_true(ct_recv(p.ab, CT_TYPE_PING) == ~i);
		ev = ct_wait_event(p.b, HAL_EV_DEAD, NULL);
		assert_int_equal(ct_drain(ev.peer), 3);
		hal_peer_free(ev.peer);
		p.a->nev = 0;
		p.b->nev = 0;
	}
}

/* Close with pending events, half-open connections and unread packets. */
static void close_in_any_state(void **state)
{
	for (int i = 0; i < 64; i++) {
		struct ct_if *a = ct_open(0), *b = ct_open(0), *c = ct_open(0);
		struct hal_peer *peer = ct_connect(a, &b->hif->addr);

		if (i & 1)
			send_words(a, peer, 5);
		if (i & 2)
			ct_step(b);
		if (i & 4)
			ct_connect(b, &a->hif->addr);
		if (i & 8)
			ct_step(a);
		if (i & 16)
			ct_connect(c, &a->hif->addr);
		if (i & 32)
			ct_connect(b, &b->hif->addr);
		ct_close(i & 1 ? a : b);
		ct_step_all();
		ct_close(i & 1 ? b : a);
		ct_step_all();
		ct_close(c);
	}
}

const struct CMUnitTest ct_close_tests[] = {
	CT_TEST(close_is_drained),
	CT_TEST(close_before_the_first_step),
	CT_TEST(close_after_crossing),
	CT_TEST(close_keeps_space),
	CT_TEST(close_send_to_the_dead),
	CT_TEST(close_has_a_status),
	CT_TEST(close_harms_nobody_else),
	CT_TEST(close_in_any_state),
};
const size_t ct_close_count = CT_COUNT(ct_close_tests);
