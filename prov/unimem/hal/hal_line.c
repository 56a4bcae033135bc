/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_line.c - which hints on cache lines a processor has, see hal_line.h. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "hal/hal_line.h"

/* leaves of the instruction cpuid, and bits of its register ecx */
#define LEAF_CLAIM	0x80000001u
#define ECX_PREFETCHW	(1u << 8)
#define LEAF_DEMOTE	7u
#define ECX_CLDEMOTE	(1u << 25)

bool hal_line_can_claim(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(LEAF_CLAIM, &a, &b, &c, &d) != 0 &&
		(c & ECX_PREFETCHW) != 0;
#else
	return true;
#endif
}

bool hal_line_can_demote(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid_count(LEAF_DEMOTE, 0, &a, &b, &c, &d) != 0 &&
		(c & ECX_CLDEMOTE) != 0;
#else
	return false;
#endif
}
