/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_hold.c - released slots wait for a frame that is sent anyway, but
 * not for ever: for NET_DONE_NS, those of a stream until it pauses for
 * NET_GAP_NS, until the sender may lack slots or receive space, and until the
 * interface is armed; and not if the user of the interface may not call again.
 * hold() and let_go() set the times of the first release and the last frame.
 */
#include "hal/net/hal_net_send.h"
#include "lib/net_pair.h"
#include "util/unm_clock.h"

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
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0 &&
		       unm_list_empty(&b->nif->dirty));
	assert_non_null(b->hif->peer_waits);
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

/* Until let_go() is called the time of the first release is not over, nor that
 * of the last frame of a stream. */
static void hold(void)
{
	net_peer(b->peer)->done_at = UINT64_MAX - NET_DONE_NS;
	net_peer(b->peer)->came_at = UINT64_MAX - NET_GAP_NS;
}

static void let_go(void)
{
	net_peer(b->peer)->done_at = 0;
	net_peer(b->peer)->came_at = 0;
}

/* Let b receive and release a packet. */
static void release(void)
{
	uint64_t head;

	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif),
			  hal_rx_peek(b->peer, &head) != NULL);
	hal_rx_release(b->peer);
	hal_rx_flush(b->peer);
}

static void release_packet(void)
{
	release();
	hold();
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
	for (unsigned i = 1; i <= 3; i++) {
		packet();
		pumps(10);
		assert_int_equal(g_sent, i - 1);
		assert_false(a_knows());
		let_go();
		pumps(10);
		assert_int_equal(g_sent, i);
		NET_PAIR_DO_UNTIL(hal_if_pump(a->hif), a_knows());
	}
}

/* By the clock, from the first release on that the peer does not know. */
static void test_time_is_over(void **state)
{
	struct net_peer *peer;
	uint64_t begin;

	talk();
	peer = net_peer(b->peer);
	for (unsigned i = 1; i <= 2; i++) {
		begin = unm_now_ns();
		send_packet();
		release();
		assert_true(peer->done_at >= begin);
		begin = peer->done_at;
		NET_PAIR_DO_UNTIL(hal_if_pump(b->hif), g_sent == i);
		assert_true(unm_now_ns() >= begin + NET_DONE_NS);
	}
	packet();
	begin = peer->done_at;
	send_packet();
	release();
	assert_true(peer->done_at == begin);
}

/* Releases wait for the next frame of a stream. */
static void test_stream(void **state)
{
	struct net_peer *peer;

	talk();
	peer = net_peer(b->peer);
	packet();
	peer->done_at = 0;
	peer->stream = true;
	pumps(10);
	assert_int_equal(g_sent, 0);
	peer->came_at = 0;
	pumps(1);
	assert_int_equal(g_sent, 1);
}

/* It is a stream if more than one frame came before b has sent one. */
static void test_stream_begins(void **state)
{
	struct net_peer *peer;
	uint64_t begin;

	talk();
	peer = net_peer(b->peer);
	for (unsigned i = 1; i <= 4; i++) {
		begin = unm_now_ns();
		send_packet();
		release();
		assert_true(peer->came_at >= begin &&
			    peer->came_at <= unm_now_ns());
		hold();
		if (i % 2 == 0)
			packet();
		let_go();
		pumps(1);
		assert_int_equal(g_sent, i);
		assert_true(peer->stream == (i % 2 == 0));
	}
}

/* A packet of b carries the release. */
static void test_rides(void **state)
{
	const uint64_t word = 8;

	talk();
	packet();
	pumps(1);
	assert_int_equal(hal_pkt_send(b->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	assert_int_equal(g_sent, 1);
	NET_PAIR_DO_UNTIL(hal_if_pump(a->hif), a_knows());
	let_go();
	pumps(10);
	assert_int_equal(g_sent, 1);
}

/* A user that may not call again, as a client of GSAS. */
static void test_last_call(void **state)
{
	talk();
	b->hif->peer_waits = NULL;
	packet();
	pumps(1);
	assert_int_equal(g_sent, 1);
}

/* A sender that fills its space is not kept waiting. */
static void test_space(void **state)
{
	talk();
	store(0, NET_DONE_BYTES);
	pumps(1);
	assert_int_equal(g_sent, 0);
	let_go();
	pumps(1);
	store(0, NET_DONE_BYTES + 64);
	assert_int_equal(g_sent, 1);
	pumps(1);
	assert_int_equal(g_sent, 2);
	store(0, NET_DONE_BYTES);	/* counts from there on */
	pumps(1);
	assert_int_equal(g_sent, 2);
}

/* Nor is one whose space is smaller. */
static void test_small_space(void **state)
{
	const struct hal_caps *caps = b->hif->caps;
	struct hal_caps small = *caps;

	talk();
	small.space_bytes = NET_DONE_BYTES;
	b->hif->caps = &small;
	store(0, NET_DONE_BYTES / 4);
	pumps(1);
	assert_int_equal(g_sent, 0);
	let_go();
	pumps(1);
	store(0, NET_DONE_BYTES / 4 + 64);
	pumps(1);
	assert_int_equal(g_sent, 2);
	b->hif->caps = caps;
}

/* The bytes of two packets that have arrived count for the first one that is
 * released; the second does not wait for that. */
static void test_space_of_two(void **state)
{
	uint64_t frames;

	talk();
	frames = b->nif->nframes;
	write_space(a, 0, NET_DONE_BYTES);
	send_packet();
	write_space(a, NET_DONE_BYTES, NET_DONE_BYTES);
	send_packet();
	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif), b->nif->nframes == frames + 2);
	assert_int_equal(g_sent, 0);
	for (unsigned i = 1; i <= 2; i++) {
		release_packet();
		pumps(1);
		assert_int_equal(g_sent, i);
	}
	packet();			/* frees nothing */
	pumps(1);
	assert_int_equal(g_sent, 2);
}

/* A sender that fills its ring is not kept waiting. */
static void test_slots(void **state)
{
	unsigned half, came;
	uint64_t head;

	talk();
	half = (unsigned)b->peer->rx.mask / 2;
	for (unsigned i = 0; i <= half; i++)
		send_packet();
	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif),
			  net_peer(b->peer)->rx_fill - b->peer->rx.next ==
			  half + 1);
	came = g_sent;			/* acknowledgements */
	for (unsigned i = 0; i <= half; i++) {
		assert_non_null(hal_rx_peek(b->peer, &head));
		hal_rx_release(b->peer);
		hal_rx_flush(b->peer);
		assert_int_equal(g_sent, came + (i == half));
	}
}

/* Only releases wait: not stores, whether or not there are released slots, nor
 * an acknowledgement that the peer has asked for, or that is due. */
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
	packet();
	pumps(1);
	assert_int_equal(g_sent, 2);
	frames = b->nif->nframes;
	net_flush(net_peer(a->peer), NET_F_ASK);
	NET_PAIR_DO_UNTIL(hal_if_pump(b->hif), b->nif->nframes != frames);
	assert_int_equal(g_sent, 3);
	for (int i = 0; i < NET_ACK_EVERY; i++)
		packet();
	pumps(1);
	assert_int_equal(g_sent, 4);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_waits),
		NET_PAIR_TEST(test_time_is_over),
		NET_PAIR_TEST(test_stream),
		NET_PAIR_TEST(test_stream_begins),
		NET_PAIR_TEST(test_rides),
		NET_PAIR_TEST(test_last_call),
		NET_PAIR_TEST(test_space),
		NET_PAIR_TEST(test_small_space),
		NET_PAIR_TEST(test_space_of_two),
		NET_PAIR_TEST(test_slots),
		NET_PAIR_TEST(test_only_releases),
		NET_PAIR_TEST(test_sleeps),
	};

	return unit_run(tests);
}
