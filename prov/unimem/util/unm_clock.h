/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_clock.h - the monotonic clock (unm_clock.c).
 *
 * Both functions read CLOCK_MONOTONIC: time since an unspecified point in the
 * past, unaffected by changes of the wall-clock time. They are thread-safe and
 * make no system call where the kernel provides the clock through its vDSO.
 */
#ifndef UNM_CLOCK_H
#define UNM_CLOCK_H

#include <stdint.h>

/* The current time in nanoseconds. */
uint64_t unm_now_ns(void);

/* The current time in microseconds, rounded down. */
uint64_t unm_now_us(void);

#endif /* UNM_CLOCK_H */
