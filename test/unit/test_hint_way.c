/* SPDX-License-Identifier: BSD-2-Clause */
/* test_hint_way.c - which hints make messages faster is found by measurement: a
 * simulated peer answers fastest in one of the ways. */
#include "core/unm_hint_way.h"
#include "lib/unit.h"

#define ROUND	(UNM_HINT_SKIP + UNM_HINT_ROUND + 1)	/* messages */

/* A simulated exchange of messages. */
struct times {
	uint64_t now;
	uint64_t took[UNM_HINT_WAYS];	/* until the peer answers, by way */
	uint64_t first[UNM_HINT_WAYS];	/* the first time in a way: longer */
	uint64_t pause;			/* of the peer, which computes ... */
	uint8_t pause_way;		/* ... in rounds of this way ... */
	unsigned pauses;		/* ... but for those whose bit is 0 */
	uint8_t last;			/* way of the last message */
};

/* Send n messages, and count those of each way. */
static void simulate(struct unm_hint_way *h, uint8_t ways, struct times *t,
		     int n, int count[UNM_HINT_WAYS])
{
	memset(count, 0, UNM_HINT_WAYS * sizeof(count[0]));
	for (int i = 0; i < n; i++) {
		uint8_t round = h->round, at = h->count;
		uint8_t way = h->held != 0 ? unm_hint_way_held(h) :
			unm_hint_way_measure(h, ways, t->now);

		assert_in_range(way, 0, ways - 1);
		t->now += t->took[way];
		if (way != t->last)
			t->now += t->first[way];
		if (at == UNM_HINT_SKIP + 1 && way == t->pause_way &&
		    (t->pauses >> round & 1))
			t->now += t->pause;
		t->last = way;
		count[way]++;
	}
}

/* Wait, measure, and hold: returns the way that was held. */
static uint8_t found(struct unm_hint_way *h, uint8_t ways, struct times *t)
{
	int count[UNM_HINT_WAYS];
	uint8_t way;

	simulate(h, ways, t, h->held, count);
	assert_int_equal(h->held, 0);
	simulate(h, ways, t, ways * UNM_HINT_ROUNDS * ROUND, count);
	for (uint8_t w = 0; w < ways; w++)
		assert_int_equal(count[w], UNM_HINT_ROUNDS * ROUND);
	assert_int_equal(h->held, UNM_HINT_HOLD);
	way = h->way;
	simulate(h, ways, t, UNM_HINT_HOLD, count);
	assert_int_equal(count[way], UNM_HINT_HOLD);
	return way;
}

static struct unm_hint_way fresh(void)
{
	struct unm_hint_ways all;

	memset(&all, 0xA5, sizeof(all));
	unm_hint_ways_start(&all);
	for (int i = 0; i < UNM_HINT_CLASSES; i++)
		for (int waits = 0; waits < 2; waits++)
			assert_memory_equal(&all.kind[waits][i],
					    &all.kind[0][0],
					    sizeof(all.kind[0][0]));
	return all.kind[1][UNM_HINT_CLASSES - 1];
}

/* The first messages get no hint. */
static void test_few_messages(void **state)
{
	struct unm_hint_way h = fresh();
	struct times t = { .took = { 500, 400, 300 } };
	int count[UNM_HINT_WAYS];

	simulate(&h, UNM_HINT_WAYS, &t, UNM_HINT_FIRST, count);
	assert_int_equal(count[UNM_HINT_NONE], UNM_HINT_FIRST);
	assert_int_equal(h.held, 0);
}

/* The fastest way is found, also when it changes. */
static void test_fastest_way_is_found(void **state)
{
	struct unm_hint_way h = fresh();
	struct times t = { .now = 12345 };

	for (uint8_t ways = 1; ways <= UNM_HINT_WAYS; ways++)
		for (uint8_t fast = 0; fast < ways; fast++) {
			for (uint8_t w = 0; w < UNM_HINT_WAYS; w++) {
				t.took[w] = w == fast ? 500 : 600 - w;
				t.first[w] = w == fast ? 10000 : 0;
			}
			assert_int_equal(found(&h, ways, &t), fast);
		}
}

/* A gain that is not more than an error of the measurement: no hint, which is
 * work for nothing. */
static void test_nearly_equal_ways(void **state)
{
	struct unm_hint_way h = fresh();
	struct times t = { .took = { 500, 495, 495 } };

	assert_int_equal(found(&h, UNM_HINT_WAYS, &t), UNM_HINT_NONE);
}

/* The peer computes in all rounds without a hint but for one, whichever that
 * is: the hints have not saved that time. */
static void test_pauses_are_no_gain(void **state)
{
	struct unm_hint_way h = fresh();
	struct times t = { .took = { 500, 510, 510 }, .pause = 20000,
			   .pause_way = UNM_HINT_NONE };

	for (int quiet = 0; quiet < UNM_HINT_ROUNDS; quiet++) {
		t.pauses = ~(1u << quiet);
		assert_int_equal(found(&h, UNM_HINT_WAYS, &t), UNM_HINT_NONE);
	}
}

/* Of two hints that save time, the one whose shortest round is shorter: the
 * peer computed in another one. */
static void test_pauses_are_no_loss(void **state)
{
	struct unm_hint_way h = fresh();
	struct times t = { .took = { 500, 450, 400 }, .pause = 4000,
			   .pause_way = UNM_HINT_DEMOTE };

	for (int busy = 0; busy < UNM_HINT_ROUNDS; busy++) {
		t.pauses = 1u << busy;
		assert_int_equal(found(&h, UNM_HINT_WAYS, &t),
				 UNM_HINT_DEMOTE);
	}
}

/* A message takes longer than the measurements can count, as its process was
 * stopped. */
static void test_endless_rounds(void **state)
{
	const uint64_t stopped = UINT64_C(1) << 33;
	struct unm_hint_way h = fresh();
	struct times t = { .took = { stopped, 500, stopped } };

	assert_int_equal(found(&h, UNM_HINT_WAYS, &t), UNM_HINT_CLAIM);
}

static void test_ranges_of_lengths(void **state)
{
	assert_int_equal(unm_hint_class(1), 0);
	for (unsigned i = 0; i < UNM_HINT_CLASSES - 1; i++) {
		assert_int_equal(unm_hint_class((1024 << i) + 128), i);
		assert_int_equal(unm_hint_class((1024 << i) + 129), i + 1);
	}
	assert_int_equal(unm_hint_class(UINT32_MAX), UNM_HINT_CLASSES - 1);
}

UNIT_MAIN(
	cmocka_unit_test(test_few_messages),
	cmocka_unit_test(test_fastest_way_is_found),
	cmocka_unit_test(test_nearly_equal_ways),
	cmocka_unit_test(test_pauses_are_no_gain),
	cmocka_unit_test(test_pauses_are_no_loss),
	cmocka_unit_test(test_endless_rounds),
	cmocka_unit_test(test_ranges_of_lengths),
)
