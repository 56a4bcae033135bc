/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * litmus.h - helpers of the litmus tests, which check each ordering guarantee
 * that fi_info reports (test_litmus.c: atomics, test_litmus_msg.c: messages)
 *
 * The environment variable UNM_TEST_LITMUS sets how many pairs of operations,
 * or messages, each test runs (default: 20,000).
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <inttypes.h>

#include "lib/ep_pair.h"
#include "unm_env.h"
#include "api/unm_ep.h"

#define HANG_US	(UINT64_C(60000000) * (UNIT_SLOW ? 5 : 1))

/* The number of rounds of a test. */
static inline uint64_t count(void)
{
	return unit_number("UNM_TEST_LITMUS", UNIT_SLOW ? 2000 : 20000);
}

/* True with probability 1/n. */
static inline bool one_in(uint64_t *rng, uint32_t n)
{
	return unit_below(rng, n) == 0;
}

/* The first failed CHECK() of either thread: cmocka's asserts may only run in
 * the main thread. */
static _Atomic int g_line;		/* its line; 0: none has failed */
static char g_why[200];			/* its message */

#define CHECK(cond, ...)	do {					\
		int none = 0;						\
		if (!(cond) && atomic_compare_exchange_strong(&g_line,	\
						&none, __LINE__))	\
			snprintf(g_why, sizeof(g_why), __VA_ARGS__);	\
	} while (0)

/* In a loop that waits until the time end, at round i: returns whether to
 * continue. Reads the clock in one round of 1024. */
static inline bool goes_on(uint32_t i, uint64_t end)
{
	if (i % 1024 == 1023)
		CHECK(ep_now() < end, "it hangs");
	return g_line == 0;
}

/* Fail the test if a CHECK() has failed. Call when the second thread has
 * ended. */
static inline void all_well(void)
{
	if (g_line != 0)
		unit_fail("line %d: %s", g_line, g_why);
}

/* Define two tests that call run(how, threads): one thread polls both
 * endpoints, or each endpoint has its thread. They are skipped unless "goes"
 * holds. */
#define LITMUS(name, goes, run, how)					\
	static void test_##name##_by_turns(void **state)		\
	{								\
		EP_NEEDS_INSIDE();					\
		if (!(goes))						\
			skip();						\
		run(how, false);					\
	}								\
	static void test_##name##_in_threads(void **state)		\
	{								\
		EP_NEEDS_INSIDE();					\
		if (!(goes))						\
			skip();						\
		run(how, true);						\
	}
#define BOTH(name)	EP_TEST(test_##name##_by_turns),		\
			EP_TEST(test_##name##_in_threads)

#endif /* LITMUS_H */
