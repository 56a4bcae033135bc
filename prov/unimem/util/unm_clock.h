/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_clock.h - time since a point in the past that stays the same while the
 * system runs (CLOCK_MONOTONIC). Thread-safe; no system call where the kernel
 * offers one in user space.
 */
#ifndef UNM_CLOCK_H
#define UNM_CLOCK_H

#include <stdint.h>

uint64_t unm_now_ns(void);

/* The same in microseconds, rounded down. */
uint64_t unm_now_us(void);

#endif /* UNM_CLOCK_H */
