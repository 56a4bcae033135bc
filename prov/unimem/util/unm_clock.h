/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_clock.h - the monotonic clock.
 *
 * Both functions read CLOCK_MONOTONIC: time since an unspecified point in the
 * past, unaffected by changes of the wall-clock time. They are thread-safe and
 * make no system call where the kernel provides the clock through its vDSO.
 */
#ifndef UNM_CLOCK_H
#define UNM_CLOCK_H

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

#endif /* UNM_CLOCK_H */
