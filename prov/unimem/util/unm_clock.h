/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_clock.h - the monotonic clock, and the processor's counter of time.
 *
 * unm_now_ns() and unm_now_us() read CLOCK_MONOTONIC: time since an unspecified
 * point in the past, unaffected by changes of the wall-clock time. They make no
 * system call where the kernel provides the clock through its vDSO. unm_ticks()
 * reads a counter of the processor: on x86-64 in less than half of the time of
 * the clock, and on processors without such a counter it is the clock. struct
 * unm_tick_rate measures the counter's rate. All functions that read the clock
 * or the counter are thread-safe.
 */
#ifndef UNM_CLOCK_H
#define UNM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The current time in nanoseconds. */
static inline uint64_t unm_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The current time in microseconds, rounded down. */
static inline uint64_t unm_now_us(void)
{
	return unm_now_ns() / 1000;
}

/*
 * The processor's counter of time: the time-stamp counter of x86-64, the
 * virtual counter of arm64, elsewhere the clock. Its rate is constant on all
 * arm64 and current x86-64 processors, but is not known, and the value is not
 * reliable: on x86-64 processors without an invariant counter the rate follows
 * the processor's frequency and each core has another value; on some x86-64
 * processors the counter stops while the core is in a deep idle state, for
 * example while the thread sleeps; and the value jumps, in either direction,
 * when a virtual machine moves to another host or the machine wakes up. So use
 * differences of values only, where an error costs no more than time, and limit
 * that time by another measure.
 */
static inline uint64_t unm_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return unm_now_ns();
#endif
}

#define UNM_TICK_RATE_NS	100000	/* shortest measurement of the rate */
#define UNM_TICK_RATE_MAX	7	/* ticks per ns: no counter is faster,
					 * so the value jumped. Less than 8, so
					 * that 2^61 ns are less than 2^64
					 * ticks. On arm64 few jumps forward are
					 * detected: the counter has 1 tick per
					 * ns at most, often 0.025 to 0.1. */

/* The rate of unm_ticks(), measured again and again, so that a jump of the
 * counter has no lasting effect. The owner sets all fields to 0 at first. */
struct unm_tick_rate {
	uint64_t ns;			/* start of the measurement under way:
					 * the clock; 0: there is none */
	uint64_t ticks;			/* the counter, read after the clock */
	double per_ns;			/* ticks per ns of the last measurement;
					 * 0: not known */
};

/* Call unm_tick_rate_measure() at the time now (in ns)? */
static inline bool unm_tick_rate_due(const struct unm_tick_rate *rate,
				     uint64_t now)
{
	return rate->ns == 0 || now - rate->ns >= UNM_TICK_RATE_NS;
}

/*
 * End the measurement under way, and start the next one. The counter was before
 * when it was read just before the clock, which was now (in ns), and after when
 * it was read just after the clock. If the thread was interrupted between these
 * readings, the rate is too low, never too high.
 */
static inline void unm_tick_rate_measure(struct unm_tick_rate *rate,
					 uint64_t before, uint64_t now,
					 uint64_t after)
{
	if (rate->ns != 0)
		rate->per_ns = (double)(before - rate->ticks) /
			(double)(now - rate->ns);
	/* a counter that went back gives a number near 2^64 */
	if (rate->per_ns > UNM_TICK_RATE_MAX)
		rate->per_ns = 0;
	rate->ns = now;
	rate->ticks = after;
}

#endif /* UNM_CLOCK_H */
