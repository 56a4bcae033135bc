/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_random.h - random numbers that nobody can guess.
 */
#ifndef UNM_RANDOM_H
#define UNM_RANDOM_H

#include <stdint.h>
#include <sys/random.h>

/* A random number from the kernel, never 0: for secrets and nonces. Waits until
 * the kernel has gathered randomness, which is the case soon after it has
 * started. Any thread may call it. */
static inline uint64_t unm_random(void)
{
	uint64_t val = 0;

	while (val == 0)
		if (getrandom(&val, sizeof(val), 0) != (ssize_t)sizeof(val))
			val = 0;
	return val;
}

#endif /* UNM_RANDOM_H */
