/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_clock.c - reads the monotonic clock by clock_gettime(2). */
#include <time.h>

#include "util/unm_clock.h"

uint64_t unm_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t unm_now_us(void)
{
	return unm_now_ns() / 1000;
}
