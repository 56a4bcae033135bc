/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_hold.c - released slots wait for a frame that is sent anyway, but
 * not for ever: for some pumps, until an eighth of the receive space is free
 * again, and until the interface is armed. And how many are free.
 */
#include <rdma/fi_errno.h>

#include "hal/net/hal_net_send.h"
#include "lib/net_pair.h"

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

static const struct net_engine *g_engine;
static unsigned g_sent;			/* frames of b */

static int send_frame(struct net_link *link, struct net_message *message,
		      const void *data, size_t len)
{
	g_sent++;
	return g_engine->send(link, message, data, len);
}

/* Connect both ways, exchange packets, and count the frames of b. */
static void talk(void)
{
	static struct net_engine engine;

	net_pair_talk();
	for (int i = 0; i < 2 * NET_HOLD_PUMPS; i++)
		net_pair_pump();
	assert_int_equal(net_pair_frames(a) + net_pair_frames(b), 0);
	g_engine = b->nif->engine;
	engine = *g_engine;
	engine.send = send_frame;
	b->nif->engine = &engine;
	g_sent = 0;
}

/* Let a send a packet. */
static void send_packet(void)
{
	const uint64_t word = 7;

	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
}

/* Let b receive and release a packet. */
static void release_packet(void)
{
	uint64_t head;

	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif),
			  hal_rx_peek(b->peer, &head) != NULL);
	hal_rx_release(b->peer);
	hal_rx_flush(b->peer);
}

static void packet(void)
{
	send_packet();
	release_packet();
}

/* Let a side store bytes. */
static void write_space(struct net_side *side, uint32_t off, uint32_t len)
{
	static const uint8_t data[32768];

	assert_true(len <= sizeof(data));
	assert_int_equal(hal_space_ready(side->peer, off + len), 0);
	hal_space_write(side->peer, off, data, len);
	hal_space_barrier(side->peer);
}

/* Let a store bytes, and b receive and release the packet behind them. */
static void store(uint32_t off, uint32_t len)
{
	write_space(a, off, len);
	packet();
}

static void pumps(int n)
{
	while (n-- > 0)
		hal_if_pump(b->hif);
}

static bool a_knows(void)
{
	return hal_tx_done(a->peer) == hal_tx_sent(a->peer);
}

static void test_waits(void **state)
{
	talk();
	for (int i = 1; i <= 3; i++) {
		packet();
		pumps(NET_HOLD_PUMPS - 1);
		assert_int_equal(g_sent, i - 1);
		assert_false(a_knows());
		pumps(1);
		assert_int_equal(g_sent, i);
		NET_PAIR_DO_UNTIL(hal_if_pump(a->hif), a_knows());
	}
	pumps(10 * NET_HOLD_PUMPS);
	assert_int_equal(g_sent, 3);
}

/* A packet of b carries the release. */
static void test_rides(void **state)
{
	const uint64_t word = 8;

	talk();
	packet();
	pumps(NET_HOLD_PUMPS - 1);
	assert_int_equal(hal_pkt_send(b->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	assert_int_equal(g_sent, 1);
	NET_PAIR_DO_UNTIL(hal_if_pump(a->hif), a_knows());
	pumps(2 * NET_HOLD_PUMPS);
	assert_int_equal(g_sent, 1);
	/* the next release waits as long as the first one */
	packet();
	pumps(NET_HOLD_PUMPS - 1);
	assert_int_equal(g_sent, 1);
	pumps(1);
	assert_int_equal(g_sent, 2);
}

/* A sender that fills its space is not kept waiting. */
static void test_space(void **state)
{
	talk();
	store(0, 32768);
	assert_int_equal(g_sent, 0);
	pumps(1);
	assert_int_equal(g_sent, 1);
	store(0, 2048);			/* a sixteenth of what was used */
	pumps(1);
	assert_int_equal(g_sent, 1);
	store(2048, 2112);		/* with this an eighth, and 64 bytes */
	pumps(1);
	assert_int_equal(g_sent, 2);
	store(0, 4096);			/* counts from the report on */
	pumps(NET_HOLD_PUMPS - 1);
	assert_int_equal(g_sent, 2);
	pumps(1);
	assert_int_equal(g_sent, 3);
}

/* The bytes of two packets that have arrived count for the first one that is
 * released; the second does not wait for that. */
static void test_space_of_two(void **state)
{
	uint64_t frames;

	talk();
	frames = b->nif->nframes;
	write_space(a, 0, 16384);
	send_packet();
	write_space(a, 16384, 16384);
	send_packet();
	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif), b->nif->nframes == frames + 2);
	assert_int_equal(g_sent, 0);
	for (int i = 1; i <= 2; i++) {
		release_packet();
		pumps(1);
		assert_int_equal(g_sent, i);
	}
	packet();			/* frees nothing */
	pumps(NET_HOLD_PUMPS - 1);
	assert_int_equal(g_sent, 2);
	pumps(1);
	assert_int_equal(g_sent, 3);
}

/* Only releases and acknowledgements wait: not stores, whether or not there are
 * released slots, nor an acknowledgement that the peer has asked for. */
static void test_only_releases(void **state)
{
	uint64_t frames;

	talk();
	write_space(b, 0, 64);
	pumps(1);
	assert_int_equal(g_sent, 1);
	packet();
	pumps(1);
	assert_int_equal(g_sent, 1);
	write_space(b, 64, 64);
	pumps(1);
	assert_int_equal(g_sent, 2);
	frames = b->nif->nframes;
	net_flush(net_peer(a->peer), NET_F_ASK);
	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif), b->nif->nframes != frames);
	assert_int_equal(g_sent, 3);
}

/* A process that sleeps has sent all, and so has one that calls service. */
static void test_sleeps(void **state)
{
	struct hal_event ev[4];

	talk();
	packet();
	pumps(1);
	assert_int_equal(g_sent, 0);
	NET_PAIR_DO_UNTIL((void)0, hal_if_arm(b->hif) == 0);
	assert_int_equal(g_sent, 1);
	hal_if_disarm(b->hif);
	packet();
	pumps(1);
	assert_int_equal(g_sent, 1);
	hal_if_service(b->hif, ev, 4);
	assert_int_equal(g_sent, 2);
}

/* As many packets are accepted as hal_tx_room() says, those of two slots too,
 * and they change it. */
static void test_room(void **state)
{
	const uint64_t words[8] = { 9 };
	uint64_t depth = b->hif->caps->pkt_depth;

	talk();
	unit_needs(b->hif->caps->pkt_wide >= sizeof(words));
	assert_true(a_knows());
	assert_int_equal(hal_tx_room(a->peer), depth);
	assert_int_equal(hal_pkt_send_wide(a->peer, hal_head(1, 0), words, 1,
					   &words[1], 7 * sizeof(words[0])), 0);
	for (uint64_t room = depth - 2; room > 0; room--) {
		assert_int_equal(hal_tx_room(a->peer), room);
		assert_true(hal_tx_free(a->peer));
		assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), words,
					      1, NULL, 0), 0);
	}
	assert_int_equal(hal_tx_room(a->peer), 0);
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), words, 1, NULL,
				      0), -FI_EAGAIN);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t head;

		NET_PAIR_DO_UNTIL(hal_if_pump(b->hif),
				  hal_rx_peek(b->peer, &head) != NULL);
		hal_rx_release(b->peer);
		if (i == 0)		/* the wide one */
			hal_rx_release(b->peer);
	}
	hal_rx_flush(b->peer);
	pumps(NET_HOLD_PUMPS);
	NET_PAIR_DO_UNTIL(hal_if_pump(a->hif), hal_tx_room(a->peer) != 0);
	assert_int_equal(hal_tx_room(a->peer), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_waits),
		NET_PAIR_TEST(test_rides),
		NET_PAIR_TEST(test_space),
		NET_PAIR_TEST(test_space_of_two),
		NET_PAIR_TEST(test_only_releases),
		NET_PAIR_TEST(test_sleeps),
		NET_PAIR_TEST(test_room),
	};

	return unit_run(tests);
}
