/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_util.h - the clock and the random numbers of the device backend
 * (hal_dev_util.c).
 */
#ifndef HAL_DEV_UTIL_H
#define HAL_DEV_UTIL_H

#include <stdint.h>

/* Time of CLOCK_MONOTONIC in ns. Any thread. */
uint64_t dev_now(void);

/* A random number from the kernel, never 0. Any thread. It serves as the secret
 * of a region, so it must not be predictable. */
uint64_t dev_random(void);

#endif /* HAL_DEV_UTIL_H */
