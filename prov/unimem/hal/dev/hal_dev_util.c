/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_util.c - the clock and the random numbers of the device backend.
 */
#define _GNU_SOURCE
#include <sys/random.h>
#include <time.h>

#include "hal/dev/hal_dev_util.h"

uint64_t dev_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t dev_random(void)
{
	uint64_t val = 0;

	while (val == 0)
		if (getrandom(&val, sizeof(val), 0) != (ssize_t)sizeof(val))
			val = 0;
	return val;
}
