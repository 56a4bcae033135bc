/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_wide.c - laws of packets that take two slots of a ring
 * (docs/hal.md, section 4.11).
 */
#include <pthread.h>
#include <string.h>

#include "conform/hal_conform.h"

#define NARROW	1			/* types: one slot, ... */
#define WIDE	2			/* ... two slots */

/* Before anything is taken: what is skipped frees nothing. */
#define NEEDS_WIDE()							\
	do { if (!(ct_caps->flags & HAL_CAP_WIDE)) skip(); } while (0)

/* Packet number seed, from whose value its shape follows. */
struct shape {
	uint8_t type;
	unsigned nw;
	size_t len;
	uint64_t w[3];
	uint8_t data[HAL_PKT_WIDE];
};

static struct shape shape_of(uint64_t seed, bool wide)
{
	struct shape s = { .type = wide ? WIDE : NARROW, .nw = seed % 3 };
	uint32_t least = wide ? ct_caps->pkt_payload + 1 : 8 * s.nw;
	uint32_t most = wide ? ct_caps->pkt_wide : ct_caps->pkt_payload;

	s.len = least - 8 * s.nw + seed / 3 % (most - least + 1);
	ct_fill(s.w, 8 * s.nw, seed);
	ct_fill(s.data, s.len, ~seed);
	return s;
}

static int shape_send(struct hal_peer *peer, uint64_t seed, bool wide)
{
	struct shape s = shape_of(seed, wide);
	uint64_t head = hal_head(s.type, seed);

	return wide ? hal_pkt_send_wide(peer, head, s.w, s.nw, s.data, s.len) :
		hal_pkt_send(peer, head, s.w, s.nw, s.data, s.len);
}

/* Take the packet that has come. Does it have this content? */
static bool shape_take(struct hal_peer *peer, const struct hal_cell *cell,
		       uint64_t head, uint64_t seed)
{
	bool wide = hal_head_type(head) == WIDE;
	struct shape s = shape_of(seed, wide);
	uint8_t got[HAL_PKT_WIDE];
	bool same;

	memcpy(got, cell->payload, HAL_PKT_MAX);
	memcpy(got + HAL_PKT_MAX, hal_rx_second(peer), HAL_PKT_MAX);
	same = hal_head_flags(head) == (uint8_t)seed &&
		memcmp(got, s.w, 8 * s.nw) == 0 &&
		memcmp(got + 8 * s.nw, s.data, s.len) == 0;
	hal_rx_release(peer);
	if (wide)
		hal_rx_release(peer);
	return same;
}

static void expect(struct ct_pair *p, uint64_t seed)
{
	const struct hal_cell *cell;
	uint64_t head;

	cell = ct_await(p->ba, &head);
	assert_true(shape_take(p->ba, cell, head, seed));
	hal_rx_flush(p->ba);
}

/* Step until the sender knows of all releases. */
static void settle(const struct ct_pair *p)
{
	uint64_t end = ct_deadline();

	while (hal_tx_done(p->ab) != hal_tx_sent(p->ab)) {
		assert_true(ct_now() < end);
		ct_step_all();
	}
}

/* ---- One thread ------------------------------------------------------ */

static void wide_where_capable(void **state)
{
	assert_true((ct_caps->pkt_wide == 0 &&
		     !(ct_caps->flags & HAL_CAP_WIDE)) ||
		    (ct_caps->pkt_payload == HAL_PKT_MAX &&
		     ct_caps->pkt_wide == HAL_PKT_WIDE));
}

/* Each number of words and each length arrives unchanged, between packets of
 * one slot, wherever in the ring the packet begins. */
static void wide_every_shape(void **state)
{
	struct ct_pair p = ct_pair(0, 0);

	NEEDS_WIDE();
	for (uint64_t seed = 0; seed < 20000; seed++) {
		bool wide = seed * 0x9E3779B97F4A7C15 >> 62 != 0;

		assert_int_equal(shape_send(p.ab, seed, wide), 0);
		expect(&p, seed);
	}
}

/* With one free slot a wide packet is refused and leaves no trace; a packet of
 * one slot is accepted. */
static void wide_needs_two_slots(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t depth = ct_caps->pkt_depth;
	uint64_t sent;

	NEEDS_WIDE();
	for (uint64_t round = 0; round < 2ull * depth; round++) {
		uint64_t first = 1000 * round, n = 1;

		assert_int_equal(shape_send(p.ab, first, false), 0);
		while (shape_send(p.ab, first + n, true) == 0)
			n++;
		assert_int_equal(n, depth / 2);
		sent = hal_tx_sent(p.ab);
		for (int i = 0; i < 100; i++)
			assert_int_equal(shape_send(p.ab, i, true),
					 -FI_EAGAIN);
		assert_true(hal_tx_sent(p.ab) == sent);
		assert_int_equal(shape_send(p.ab, first + n, false), 0);
		assert_int_equal(shape_send(p.ab, 0, false), -FI_EAGAIN);
		for (uint64_t i = 0; i <= n; i++)
			expect(&p, first + i);
		assert_int_equal(ct_drain(p.ba), 0);
		settle(&p);
		/* the next round begins in another slot */
		assert_int_equal(shape_send(p.ab, round, false), 0);
		expect(&p, round);
		settle(&p);
	}
}

/* A packet stays as it is until both slots are released. */
static void wide_stays_until_released(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	const struct hal_cell *cell;
	uint64_t head;

	NEEDS_WIDE();
	for (uint64_t round = 0; round < 3ull * ct_caps->pkt_depth; round++) {
		uint64_t n = 1;

		assert_int_equal(shape_send(p.ab, round, true), 0);
		while (shape_send(p.ab, round + n, n % 2 != 0) == 0)
			n++;
		cell = ct_await(p.ba, &head);
		assert_true(shape_take(p.ba, cell, head, round));
		for (uint64_t i = 1; i < n; i++) {
			cell = ct_await(p.ba, &head);
			assert_true(shape_take(p.ba, cell, head, round + i));
		}
		hal_rx_flush(p.ba);
		settle(&p);
	}
}

/* ---- A sleeping receiver ---------------------------------------------- */

/* The packet whose receiver sleeps; of the running test. */
static struct {
	struct hal_ops ops;		/* of the sender's peer object, but for
					 * ops.wake */
	void (*wake)(struct hal_peer *peer);	/* of the backend */
	struct hal_peer *ba;		/* receiver's object of the sender */
	uint64_t seed;			/* the packet */
	bool complete;			/* was so when the receiver was woken */
} asleep;

/* In the sender, after it has published the packet and before it returns. */
static void take_and_wake(struct hal_peer *peer)
{
	uint64_t head;
	const struct hal_cell *cell = hal_rx_peek(asleep.ba, &head);

	asleep.complete = cell != NULL &&
		shape_take(asleep.ba, cell, head, asleep.seed);
	asleep.wake(peer);
}

static void arm(struct ct_if *ci)
{
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_if_arm(ci->hif)) == -FI_EAGAIN) {
		assert_true(ct_now() < end);
		ct_step_all();
	}
	assert_int_equal(ret, 0);
}

/* Both halves are in the ring when the receiver is woken, which is the first
 * moment after the head was published at which this test can look. */
static void wide_complete_when_woken(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	const struct hal_ops *ops = p.ab->ops;

	NEEDS_WIDE();
	asleep.ops = *ops;
	asleep.ops.wake = take_and_wake;
	asleep.wake = ops->wake;
	asleep.ba = p.ba;
	for (uint64_t seed = 0; seed < 200; seed++) {
		asleep.seed = seed;
		asleep.complete = false;
		arm(p.b);
		p.ab->ops = &asleep.ops;
		assert_int_equal(shape_send(p.ab, seed, true), 0);
		p.ab->ops = ops;
		hal_if_disarm(p.b->hif);
		/* else the backend sends, and wakes in its own way */
		if (p.ab->tx.cells != NULL)
			assert_true(asleep.complete);
		else
			expect(&p, seed);
		hal_rx_flush(p.ba);
		settle(&p);
	}
}

/* ---- Two threads ----------------------------------------------------- */

struct lane {
	struct ct_if *ci;
	struct hal_peer *peer;
	uint64_t total;
	_Atomic bool stop;
};

static void *lane_send(void *arg)
{
	struct lane *l = arg;
	uint64_t rng = 7;

	for (uint64_t seed = 0; seed < l->total; seed++) {
		bool wide = ct_random(&rng) % 3 != 0;

		while (shape_send(l->peer, seed, wide) != 0) {
			if (atomic_load(&l->stop))
				return NULL;
			ct_step(l->ci);
		}
	}
	while (!atomic_load(&l->stop))
		ct_step(l->ci);
	return NULL;
}

/* The receiver sees both halves as soon as it sees the head. */
static void wide_stream(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct lane l = { .ci = p.a, .peer = p.ab,
			  .total = (uint64_t)ct_opt.packets / 4 };
	uint64_t end = ct_deadline(), head, n = 0;
	const struct hal_cell *cell;
	bool good = true;
	pthread_t thread;

	NEEDS_WIDE();
	assert_int_equal(pthread_create(&thread, NULL, lane_send, &l), 0);
	while (n < l.total && good && ct_now() < end) {
		cell = hal_rx_peek(p.ba, &head);
		if (cell == NULL) {
			ct_step(p.b);
			continue;
		}
		good = shape_take(p.ba, cell, head, n++);
		if (n % 3 == 0)
			hal_rx_flush(p.ba);
		end = ct_deadline();
	}
	/* before any assertion: the thread uses this stack */
	atomic_store(&l.stop, true);
	pthread_join(thread, NULL);
	assert_true(good);
	assert_true(n == l.total);
}

const struct CMUnitTest ct_wide_tests[] = {
	CT_TEST(wide_where_capable),
	CT_TEST(wide_every_shape),
	CT_TEST(wide_needs_two_slots),
	CT_TEST(wide_stays_until_released),
	CT_TEST(wide_complete_when_woken),
	CT_TEST(wide_stream),
};
const size_t ct_wide_count = CT_COUNT(ct_wide_tests);
