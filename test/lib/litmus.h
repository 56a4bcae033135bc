/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * litmus.h - for the tests of each order that fi_info claims (test_litmus.c:
 * atomics, test_litmus_msg.c: messages), one program each.
 *
 * UNM_TEST_LITMUS: pairs of operations, or messages, of each order in each
 * test; 20,000 unless set.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/ep_pair.h"
#include "unm_env.h"
#include "api/unm_ep.h"

#define HANG_US	(UINT64_C(60000000) * (UNIT_SLOW ? 5 : 1))

static inline uint64_t count(void)
{
	const char *env = getenv("UNM_TEST_LITMUS");

	return env != NULL ? strtoull(env, NULL, 0) : UNIT_SLOW ? 2000 : 20000;
}

static inline bool one_in(uint64_t *rng, uint32_t n)
{
	return unit_below(rng, n) == 0;
}

/* What went wrong first, in either thread: no asserts while there are two. */
static _Atomic int g_line;
static char g_why[200];

#define CHECK(cond, ...)	do {					\
		int none = 0;						\
		if (!(cond) && atomic_compare_exchange_strong(&g_line,	\
						&none, __LINE__))	\
			snprintf(g_why, sizeof(g_why), __VA_ARGS__);	\
	} while (0)

/* Try number i of something that has until end: another one? */
static inline bool goes_on(uint32_t i, uint64_t end)
{
	if (i % 1024 == 1023)
		CHECK(ep_now() < end, "it hangs");
	return g_line == 0;
}

/* When there is but one thread. */
static inline void all_well(void)
{
	if (g_line != 0)
		unit_fail("line %d: %s", g_line, g_why);
}

/* The same test in one thread that polls both, and with a thread for each. */
#define LITMUS(name, goes, run, how)					\
	static void test_##name##_by_turns(void **state)		\
	{								\
		(void)state;						\
		EP_NEEDS_INSIDE();					\
		if (!(goes))						\
			skip();						\
		run(how, false);					\
	}								\
	static void test_##name##_in_threads(void **state)		\
	{								\
		(void)state;						\
		EP_NEEDS_INSIDE();					\
		if (!(goes))						\
			skip();						\
		run(how, true);						\
	}
#define BOTH(name)	EP_TEST(test_##name##_by_turns),		\
			EP_TEST(test_##name##_in_threads)

#endif /* LITMUS_H */
