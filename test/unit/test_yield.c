/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_yield.c - whether a thread waited for the processor is seen by the time
 * of a yield, on machines with fast and with slow system calls; and how often a
 * thread that polls in vain yields then. The clock is simulated.
 */
#include "core/unm_idle.h"
#include "lib/unit.h"
#include "unm_env.h"
#include "util/unm_yield.h"

static uint64_t now = 1;		/* ns, of the clock below */
static uint64_t call_ns[UNM_YIELD_PROBES]; /* that system calls take */
static unsigned calls;
static uint64_t yield_ns;		/* that a yield takes */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
pid_t __wrap_getppid(void);
int __wrap_sched_yield(void);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	ts->tv_sec = (time_t)(now / 1000000000);
	ts->tv_nsec = (long)(now % 1000000000);
	return 0;
}

pid_t __wrap_getppid(void)
{
	now += call_ns[calls++ % UNM_YIELD_PROBES];
	return 1;
}

int __wrap_sched_yield(void)
{
	now += yield_ns;
	return 0;
}

/* All system calls take so long, but for those that are interrupted. */
static void calls_take(uint64_t ns)
{
	for (unsigned i = 0; i < UNM_YIELD_PROBES; i++)
		call_ns[i] = i == UNM_YIELD_PROBES / 2 ? ns : 50 * ns;
}

static void test_limit_follows_the_system_calls(void **state)
{
	calls_take(50);
	assert_int_equal(unm_yield_limit(), UNM_YIELD_NS);
	calls_take(960);
	assert_int_equal(unm_yield_limit(), 960 * UNM_YIELD_CALLS);
	calls_take(10000);
	assert_int_equal(unm_yield_limit(), 10000 * UNM_YIELD_CALLS);
}

/* Figures of a virtual machine without hardware-assisted virtualization: a
 * system call, a yield in vain, and one that let another thread run. */
static void test_slow_system_calls(void **state)
{
	calls_take(960);
	yield_ns = 1200;
	assert_false(unm_yield());
	yield_ns = 9000;
	assert_true(unm_yield());
	yield_ns = 1200;
	assert_false(unm_yield());
}

/* The process moves to a machine with slower system calls, or is traced. */
static void test_system_calls_become_slow(void **state)
{
	calls_take(960);
	yield_ns = 12000;
	assert_true(unm_yield());
	calls_take(10000);
	for (int i = 0; i < UNM_YIELD_AGAIN; i++)
		unm_yield();
	assert_false(unm_yield());
	/* and back */
	calls_take(960);
	for (int i = 0; i < UNM_YIELD_AGAIN; i++)
		unm_yield();
	assert_true(unm_yield());
}

static void test_yields_of_a_poll(void **state)
{
	struct unm_idle idle = { 0 };
	uint32_t spin;

	calls_take(960);
	g_unm_env.spin = 2000;
	idle.spin = 10;
	yield_ns = 1200;
	for (int i = 1; i < UNM_YIELD_QUICK; i++) {
		unm_idle_yield(&idle);
		spin = unm_idle_get(&idle.spin);
		assert_int_equal(spin, 10);
	}
	unm_idle_yield(&idle);
	spin = unm_idle_get(&idle.spin);
	assert_int_equal(spin, 2000);
	assert_false(unm_idle_shared(&idle));
	yield_ns = 9000;
	unm_idle_yield(&idle);
	assert_true(unm_idle_shared(&idle));
	/* one thread that waits now and then is enough */
	for (int i = 0; i < 3 * UNM_YIELD_QUICK; i++) {
		yield_ns = i % UNM_YIELD_QUICK == 0 ? 9000 : 1200;
		unm_idle_yield(&idle);
		assert_true(unm_idle_shared(&idle));
	}
}

UNIT_MAIN(
	cmocka_unit_test(test_limit_follows_the_system_calls),
	cmocka_unit_test(test_slow_system_calls),
	cmocka_unit_test(test_system_calls_become_slow),
	cmocka_unit_test(test_yields_of_a_poll),
)
