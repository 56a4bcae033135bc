/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_random.h - random numbers: some that nobody can guess, others that a seed
 * repeats.
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

/* Mix the bits of a number, as SplitMix64 does: each bit of the result depends
 * on every bit of x. */
static inline uint64_t unm_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The next pseudo-random number (SplitMix64). The first value of *state is the
 * seed, which determines all of them. */
static inline uint64_t unm_random_next(uint64_t *state)
{
	return unm_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#endif /* UNM_RANDOM_H */
