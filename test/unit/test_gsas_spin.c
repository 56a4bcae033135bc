/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_spin.c - gsasd yields the processor often only while a thread waits
 * for it: each yield in vain delays the answer to a client that works between
 * its calls
 */
#include "daemon/gsas_spin.h"
#include "lib/unit.h"

#define POLL_NS		100
#define CALLS		200		/* more than it takes to learn */

static uint64_t g_now = 1;		/* ns, of the clock below */
static uint64_t g_yield_ns;		/* that a yield takes */
static uint64_t g_polls, g_yields, g_work_at;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_sched_yield(void);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	ts->tv_sec = (time_t)(g_now / 1000000000);
	ts->tv_nsec = (long)(g_now % 1000000000);
	return 0;
}

int __wrap_sched_yield(void)
{
	g_yields++;
	g_now += g_yield_ns;
	return 0;
}

static bool fake_poll(struct gsas_board *board)
{
	g_now += POLL_NS;
	return ++g_polls == g_work_at;
}

/* Polls for each yield, after CALLS calls with yields of so many ns. */
static uint64_t polls_for_a_yield(uint64_t yield_ns)
{
	g_yield_ns = yield_ns;
	for (int i = 0; i < CALLS; i++)
		assert_false(gsas_spin(NULL, fake_poll));
	g_polls = 0;
	g_yields = 0;
	for (int i = 0; i < CALLS; i++)
		assert_false(gsas_spin(NULL, fake_poll));
	return g_polls / g_yields;
}

static void test_yield_while_it_helps(void **state)
{
	const uint64_t vain = UNM_YIELD_NS / 3, waited = 5 * UNM_YIELD_NS;

	assert_int_equal(polls_for_a_yield(vain), GSAS_SPIN_MAX);
	assert_int_equal(polls_for_a_yield(waited), GSAS_SPIN_MIN);
	assert_int_equal(polls_for_a_yield(vain), GSAS_SPIN_MAX);
	assert_true(GSAS_SPIN_MAX > 10 * GSAS_SPIN_MIN);
}

/* Work ends the polling, without a yield. */
static void test_work_at_once(void **state)
{
	polls_for_a_yield(UNM_YIELD_NS / 3);
	g_polls = 0;
	g_yields = 0;
	g_work_at = 40;
	assert_true(gsas_spin(NULL, fake_poll));
	assert_int_equal(g_polls, 40);
	assert_int_equal(g_yields, 0);
	g_work_at = 0;
}

UNIT_MAIN(
	cmocka_unit_test(test_yield_while_it_helps),
	cmocka_unit_test(test_work_at_once),
)
