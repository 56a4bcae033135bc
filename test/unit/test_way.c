/* SPDX-License-Identifier: BSD-2-Clause */
/* test_way.c - the choice between two data paths: the faster one is found,
 * kept, and found again after a change. */
#include "core/unm_way.h"
#include "lib/unit.h"

#define LEN	100000

/* n messages with these costs of streaming and reading; returns how many were
 * read. */
static int run(struct unm_way *w, int n, uint64_t stream_ns, uint64_t read_ns)
{
	int reads = 0;

	for (int i = 0; i < n; i++) {
		bool read = unm_way_choose(w, LEN, false);

		unm_way_measured(w, read, LEN, read ? read_ns : stream_ns);
		reads += read;
	}
	return reads;
}

/* The first message of each kind may take long for reasons that do not
 * recur. */
static void test_first_messages_go_both_ways(void **state)
{
	struct unm_way w = { .gap = 0 };

	run(&w, 2, 2000000, 1000000);
	assert_in_range(run(&w, UNM_WAY_GAP_MIN - 2, 9000, 4000),
			UNM_WAY_GAP_MIN / 2 - 2, UNM_WAY_GAP_MIN / 2);
	assert_in_range(run(&w, 100, 9000, 4000), 90, 100);
	w = (struct unm_way){ .gap = 0 };
	run(&w, 2, 1000000, 2000000);
	run(&w, UNM_WAY_GAP_MIN - 2, 9000, 4000);
	assert_in_range(run(&w, 100, 9000, 4000), 90, 100);
}

static void test_the_faster_way_is_taken(void **state)
{
	struct unm_way w = { .gap = 0 };

	run(&w, 20, 9000, 4000);
	assert_in_range(run(&w, 1000, 9000, 4000), 970, 999);
	w = (struct unm_way){ .gap = 0 };
	run(&w, 20, 4000, 9000);
	assert_in_range(run(&w, 1000, 4000, 9000), 1, 30);
}

/* The slower path is tried less and less often, but not never. */
static void test_trials_get_rarer(void **state)
{
	struct unm_way w = { .gap = 0 };

	/* a trial costs 5/4 of a message */
	run(&w, 2000, 9000, 4000);
	assert_in_range(10000 - run(&w, 10000, 9000, 4000), 10000 /
			(UNM_WAY_GAP_MAX * 5 / 4) - 2, 10000 /
			(UNM_WAY_GAP_MAX * 5 / 4) + 2);
}

/* n bursts of a window of messages with these costs; returns the time of all
 * messages. */
static uint64_t windows(struct unm_way *w, int n, int window,
			uint64_t stream_ns, uint64_t read_ns)
{
	uint64_t sum = 0;

	for (int i = 0; i < n * window; i++) {
		bool read = unm_way_choose(w, LEN, i % window != 0);
		uint64_t ns = read ? read_ns : stream_ns;

		unm_way_measured(w, read, LEN, ns);
		sum += ns;
	}
	return sum;
}

/* Whatever the window, and however much slower the slower way is: the trials
 * take at most half a percent of the time. */
static void test_trials_cost_little(void **state)
{
	static const int window[] = { 1, 7, 64, UNM_WAY_RUN };

	for (int i = 0; i < 4; i++)
		for (uint64_t slow = 1100; slow <= 3500; slow += 600) {
			struct unm_way w = { .gap = 0 };
			int n = 400000 / window[i];
			uint64_t least = 1000 * (uint64_t)n * window[i];

			windows(&w, n, window[i], 1000, slow);
			assert_in_range(windows(&w, n, window[i], 1000, slow),
					least, least + least / 200);
		}
}

/* The same if each burst takes its own time: a quarter more or less, and one in
 * 50 three times as long, as if the processor had been taken away. */
static void test_trials_cost_little_with_noise(void **state)
{
	static const int window[] = { 1, 7, 64, UNM_WAY_RUN };
	uint32_t random = 1;

	for (int i = 0; i < 4; i++)
		for (uint64_t slow = 1050; slow <= 3500; slow += 350) {
			struct unm_way w = { .gap = 0 };
			uint64_t sum = 0, least = 0;

			for (int n = 400000 / window[i]; n != 0; n--) {
				uint64_t part;

				random = random * 1664525 + 1013904223;
				part = random >> 16;
				part = part % 50 == 0 ? 3000 :
					750 + part % 500;
				sum += windows(&w, 1, window[i], part,
					       slow * part / 1000);
				least += part * window[i];
			}
			assert_in_range(sum, least, least + least / 50);
		}
}

/* The faster way becomes slower, but not as slow as the other way was when it
 * was tried. Both ways have changed, and no trial was due for long. */
static void test_a_slower_way_ends_the_pause(void **state)
{
	struct unm_way w = { .gap = 0 };
	uint64_t ns;

	windows(&w, 1000, 64, 1000, 3500);
	assert_true(w.wait > 10000);
	windows(&w, 20, 64, 2000, 1500);
	ns = windows(&w, 100, 64, 2000, 1500);
	assert_in_range(ns, 100 * 64 * 1500, 100 * 64 * 1600);
}

/* Only the way that is not used becomes faster. A trial notices it, and the
 * pause until then is bounded, however long the messages take. */
static void test_a_faster_way_is_noticed(void **state)
{
	enum { US = 1000, WINDOW = 64 };
	struct unm_way w = { .gap = 0 };
	uint64_t ns = 0;

	windows(&w, 1000, WINDOW, 95 * US, 332 * US);
	assert_false(unm_way_attach_wins(&w));
	while (!unm_way_attach_wins(&w))
		ns += windows(&w, 1, WINDOW, 95 * US, 40 * US);
	/* its average has to fall from 332 to 95 us */
	assert_in_range(ns, 1, 3 * (uint64_t)UNM_WAY_WAIT_NS);
}

/* One way was slow at first, and is not any more: the first trial that shows it
 * decides, whatever was measured before. */
static void test_one_trial_decides(void **state)
{
	enum { WINDOW = 64 };
	struct unm_way w = { .gap = 0 };
	int streams = 0;

	windows(&w, 200, WINDOW, 9000, 2000);
	assert_true(unm_way_attach_wins(&w));
	while (unm_way_attach_wins(&w))
		streams += windows(&w, 1, WINDOW, 1000, 2000) == WINDOW * 1000;
	/* the trial, and the burst whose begin ends it */
	assert_int_equal(streams, 2);
}

/* The fastest of the first bursts counts. */
static void test_slow_first_bursts(void **state)
{
	struct unm_way w = { .gap = 0 };

	windows(&w, 1, 4, 90000, 2000);
	windows(&w, 1, 4, 90000, 2000);
	windows(&w, 1, 4, 1000, 2000);
	windows(&w, 1, 4, 1000, 2000);
	unm_way_choose(&w, LEN, false);
	assert_false(unm_way_attach_wins(&w));
}

/* Some bursts of the faster way are disturbed, so that the slower way seems to
 * be the faster one: the mistake does not last for a long pause. */
static void test_a_mistake_is_short(void **state)
{
	struct unm_way w = { .gap = 0 };

	windows(&w, 1000, UNM_WAY_RUN, 1000, 1400);
	while (w.wait < 20 * UNM_WAY_RUN * LEN)
		windows(&w, 1, UNM_WAY_RUN, 1000, 1400);
	for (int i = 0; !unm_way_attach_wins(&w); i++) {
		assert_true(i < 5);
		windows(&w, 1, UNM_WAY_RUN, 2600, 1400);
	}
	windows(&w, 10, UNM_WAY_RUN, 1000, 1400);
	assert_false(unm_way_attach_wins(&w));
}

/* Times of the slower way cannot be measured any more, because other messages
 * go the faster way at once: trials stay rare. */
static void test_trials_without_a_measurement(void **state)
{
	struct unm_way w = { .gap = 0 };
	int streams = 0;

	run(&w, 2000, 9000, 4000);
	for (int i = 0; i < 10000; i++) {
		bool read = unm_way_choose(&w, LEN, false);

		if (read)
			unm_way_measured(&w, read, LEN, 4000);
		streams += !read;
	}
	assert_in_range(streams, 10, 40);
}

/* Processes moved to other processors: the slow path is the faster one now. */
static void test_a_change_is_noticed(void **state)
{
	struct unm_way w = { .gap = 0 };

	for (int i = 0; i < 4; i++) {
		run(&w, 3000, 9000, 4000);
		assert_in_range(run(&w, 100, 9000, 4000), 90, 100);
		run(&w, 3000, 2000, 4000);
		assert_in_range(run(&w, 100, 2000, 4000), 0, 10);
	}
}

/* A single message that takes a thousand times as long does not decide. */
static void test_exceptions_do_not_count(void **state)
{
	struct unm_way w = { .gap = 0 };
	int reads = 0;

	run(&w, 100, 2000, 4000);
	for (int i = 0; i < 100; i++) {
		unm_way_measured(&w, false, LEN, 2000000);
		reads += run(&w, 50, 2000, 4000);
	}
	assert_in_range(reads, 0, 1000);
}

/* The messages of a burst go one way, whatever their number, but a burst does
 * not last for ever. */
static void test_a_burst_goes_one_way(void **state)
{
	struct unm_way w = { .gap = 0 };

	for (int burst = 0; burst < 100; burst++) {
		bool read = unm_way_choose(&w, LEN, false);

		for (int i = 1; i < UNM_WAY_RUN; i++) {
			assert_int_equal(unm_way_choose(&w, LEN, true), read);
			unm_way_measured(&w, read, LEN, read ? 9000 : 4000);
		}
	}
	assert_false(unm_way_attach_wins(&w));
	for (int i = 0; i < 2 * UNM_WAY_GAP_MAX * UNM_WAY_RUN; i++) {
		bool read = unm_way_choose(&w, LEN, true);

		unm_way_measured(&w, read, LEN, read ? 4000 : 9000);
	}
	assert_true(unm_way_attach_wins(&w));
}

/* Reads end in groups, of which only the first seems to take time. */
static void test_ends_in_groups(void **state)
{
	struct unm_way w = { .gap = 0 };
	int reads = 0;

	for (int burst = 0; burst < 1000; burst++) {
		bool read = unm_way_choose(&w, LEN, false);

		for (int i = 1; i < 64; i++)
			unm_way_choose(&w, LEN, true);
		for (int i = 0; i < 64; i++)
			unm_way_measured(&w, read, LEN, !read ? 3000 :
					 i % 8 == 0 ? 40000 : 500);
		reads += read;
	}
	assert_in_range(reads, 1, 30);
}

/* Requests are bursts of as many transfers as the application has under way,
 * while attach ends before the call returns: trials take a small part of the
 * transfers nevertheless. */
static void test_trials_are_a_small_part(void **state)
{
	for (int window = 1; window < 600; window += 7) {
		struct unm_way w = { .gap = 0 };
		int assisted = 0, sent = 0;

		run(&w, 100, 9000, 4000);
		for (int i = 0; i < 100000; i++) {
			bool attach;

			if (i % window == 0)
				sent = 0;
			attach = unm_way_choose(&w, LEN, sent != 0);
			unm_way_measured(&w, attach, LEN, attach ? 4000 : 9000);
			sent += !attach;
			assisted += !attach;
		}
		assert_in_range(assisted, 1, 100000 / UNM_WAY_GAP_MIN);
	}
}

/* Receive space becomes larger, so that each of the next FIRST assisted
 * transfers uses some of it for the first time, and takes ten times as long:
 * neither the measurements nor the choice change. Only the bytes count. */
static void test_first_use_is_no_measurement(void **state)
{
	enum { FIRST = 100 };

	for (int trial = 0; trial < 2; trial++) {
		struct unm_way w = { .gap = 0 }, was;
		uint64_t stream = 4000, read = trial ? 3000 : 9000;

		run(&w, 2000, stream, read);
		while (w.how != UNM_WAY_ASSISTED || w.trial != trial)
			run(&w, 1, stream, read);
		was = w;
		for (int i = 0; i < FIRST; i++) {
			unm_way_first_use(&w, UNM_WAY_ASSISTED);
			assert_int_equal(unm_way_choose(&w, LEN, false),
					 UNM_WAY_ASSISTED);
			unm_way_measured(&w, UNM_WAY_ASSISTED, LEN,
					 10 * stream);
			/* it ends together with the one before */
			assert_int_equal(unm_way_choose(&w, LEN, true),
					 UNM_WAY_ASSISTED);
			unm_way_measured(&w, UNM_WAY_ASSISTED, LEN, 0);
		}
		unm_way_first_use(&w, UNM_WAY_ASSISTED);
		unm_way_choose(&w, LEN, false);
		unm_way_measured(&w, UNM_WAY_ASSISTED, LEN, stream);
		assert_int_equal(w.bytes, was.bytes);
		assert_int_equal(w.ns, was.ns);
		assert_int_equal(w.sum, was.sum + (2 * FIRST + 1) * LEN);
		w.run = was.run;
		w.sum = was.sum;
		assert_memory_equal(&w, &was, sizeof(w));
	}
}

/* A transfer that went the other way, in a burst before, ends late. */
static void test_late_first_use(void **state)
{
	struct unm_way w = { .gap = 0 };

	run(&w, 100, 9000, 4000);
	assert_int_equal(unm_way_choose(&w, LEN, false), UNM_WAY_ATTACH);
	unm_way_first_use(&w, UNM_WAY_ASSISTED);
	assert_false(w.first_use);
}

/* The pause after a trial pays for the bursts that were discarded, too. */
static void test_discarded_bursts_cost_a_pause(void **state)
{
	enum { FIRST = 50 };
	struct unm_way w = { .gap = 0 };
	uint64_t pause[2];

	for (int i = 0; i < 2; i++) {
		w = (struct unm_way){ .gap = 0 };
		run(&w, 20, 9000, 4000);
		while (!w.trial)
			run(&w, 1, 9000, 4000);
		for (int k = 0; k < i * FIRST; k++) {
			unm_way_first_use(&w, UNM_WAY_ASSISTED);
			run(&w, 1, 9000, 4000);
			assert_true(w.trial);
		}
		run(&w, 1, 9000, 4000);
		assert_false(w.trial);
		pause[i] = w.wait;
	}
	assert_int_equal(pause[1], (FIRST + 1) * pause[0]);
}

/* If transfers always go both ways at once, the choice follows their times
 * all the same. */
static void test_never_pure(void **state)
{
	struct unm_way_clock clock = { .count = { 1, 1 } };
	struct unm_way w = { .gap = 0 };
	uint64_t now = 1;
	int reads = 0;

	for (int i = 0; i < 1000; i++) {
		bool attach = unm_way_choose(&w, LEN, false);
		uint64_t begun = now;

		clock.count[attach]++;
		now += attach ? 4000 : 9000;
		unm_way_end(&clock, &w, attach, LEN, begun, now);
		reads += attach;
	}
	assert_int_equal(clock.count[0], 1);
	assert_int_equal(clock.count[1], 1);
	assert_in_range(reads, 900, 999);
}

/* A message of the burst before, which went the other way, ends late. */
static void test_late_ends_do_not_count(void **state)
{
	struct unm_way w = { .cost = { 1000, 2000 }, .gap = UNM_WAY_GAP_MAX,
			     .wait = UINT64_MAX };

	assert_false(unm_way_choose(&w, LEN, false));
	unm_way_measured(&w, true, LEN, 1);
	assert_int_equal(w.bytes, 0);
	assert_int_equal(w.ns, 0);
}

static void test_extremes(void **state)
{
	struct unm_way w = { .gap = 0 };

	for (int i = 0; i < 100; i++) {
		bool read = unm_way_choose(&w, LEN, false);

		unm_way_measured(&w, read, 1, UINT64_MAX);
		unm_way_measured(&w, read, UINT64_MAX, UINT64_MAX);
		unm_way_measured(&w, read, UINT64_MAX, 0);
		unm_way_choose(&w, LEN, false);
		assert_int_not_equal(w.cost[read], 0);
	}
	assert_true(unm_way_attach_ns(&w, UINT64_MAX) > 0);
	assert_int_equal(unm_way_attach_ns(&w, 0), 0);
	assert_int_equal(unm_way_class(0), 0);
	assert_int_equal(unm_way_class(UINT64_MAX), UNM_WAY_CLASSES - 1);
}

UNIT_MAIN(
	cmocka_unit_test(test_first_messages_go_both_ways),
	cmocka_unit_test(test_the_faster_way_is_taken),
	cmocka_unit_test(test_trials_get_rarer),
	cmocka_unit_test(test_trials_cost_little),
	cmocka_unit_test(test_trials_cost_little_with_noise),
	cmocka_unit_test(test_a_slower_way_ends_the_pause),
	cmocka_unit_test(test_a_faster_way_is_noticed),
	cmocka_unit_test(test_one_trial_decides),
	cmocka_unit_test(test_slow_first_bursts),
	cmocka_unit_test(test_a_mistake_is_short),
	cmocka_unit_test(test_trials_without_a_measurement),
	cmocka_unit_test(test_a_change_is_noticed),
	cmocka_unit_test(test_exceptions_do_not_count),
	cmocka_unit_test(test_a_burst_goes_one_way),
	cmocka_unit_test(test_ends_in_groups),
	cmocka_unit_test(test_trials_are_a_small_part),
	cmocka_unit_test(test_first_use_is_no_measurement),
	cmocka_unit_test(test_late_first_use),
	cmocka_unit_test(test_discarded_bursts_cost_a_pause),
	cmocka_unit_test(test_never_pure),
	cmocka_unit_test(test_late_ends_do_not_count),
	cmocka_unit_test(test_extremes),
)
