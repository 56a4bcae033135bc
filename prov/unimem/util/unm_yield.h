/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_yield.h - yields the processor, and finds out whether another thread
 * waited for it. The time that the yield takes shows it: if no thread waits,
 * that is little more than any system call; else it is two changes of threads,
 * and the time for which the other one ran.
 *
 * A system call takes from 50 ns to more than 1 us, by processor and kind of
 * virtual machine, and 10 us under a tracer. So it is measured, now and then.
 */
#ifndef UNM_YIELD_H
#define UNM_YIELD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "util/unm_clock.h"

#define UNM_YIELD_NS	1000		/* no thread waited for a shorter
					 * yield */
#define UNM_YIELD_CALLS	3		/* nor for a yield that is shorter than
					 * so many system calls */
#define UNM_YIELD_PROBES 8		/* the shortest of so many is measured,
					 * as the thread may be interrupted */
#define UNM_YIELD_AGAIN	4096		/* yields until it is measured again */
#define UNM_YIELD_QUICK	64		/* yields in a row for which no thread
					 * waited: then no thread waits */

/* The longest yield for which no thread waited, in ns: measured in each call,
 * by system calls. */
static inline uint64_t unm_yield_limit(void)
{
	uint64_t start, ns, least = UINT64_MAX;

	for (int i = 0; i < UNM_YIELD_PROBES; i++) {
		start = unm_now_ns();
		getppid();
		ns = unm_now_ns() - start;
		if (ns < least)
			least = ns;
	}
	ns = least * UNM_YIELD_CALLS;
	return ns > UNM_YIELD_NS ? ns : UNM_YIELD_NS;
}

/* Yield the processor. Returns whether another thread waited for it. Any thread
 * may call it; a caller that holds a lock delays others. */
static inline bool unm_yield(void)
{
	static _Atomic uint64_t limit;	/* 0: not measured yet */
	static _Atomic uint32_t left;	/* yields until it is measured */
	uint64_t most = atomic_load_explicit(&limit, memory_order_relaxed);
	uint32_t n = atomic_load_explicit(&left, memory_order_relaxed);
	uint64_t start;

	if (__builtin_expect(n == 0 || most == 0, 0)) {
		most = unm_yield_limit();
		atomic_store_explicit(&limit, most, memory_order_relaxed);
		n = UNM_YIELD_AGAIN;
	}
	atomic_store_explicit(&left, n - 1, memory_order_relaxed);
	start = unm_now_ns();
	sched_yield();
	return unm_now_ns() - start > most;
}

#endif /* UNM_YIELD_H */
