/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_wide.c - gsas_op_wide(): which atomic accesses of 16 bytes this
 * machine has.
 */
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "op/gsas_op_wide.h"

#if defined(__x86_64__)

static int ask(void)
{
	unsigned int a, b, c = 0, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_CMPXCHG16B))
		return 0;
	return c & bit_AVX ? GSAS_WIDE_CAS | GSAS_WIDE_LOAD : GSAS_WIDE_CAS;
}

#elif defined(__aarch64__)

/* Every aarch64 processor has LDXP and STXP. With LSE2 a plain LDP is atomic
 * too, but it has no acquire semantics. */
static int ask(void)
{
	return GSAS_WIDE_CAS;
}

#else

static int ask(void)
{
	return 0;
}

#endif

atomic_int g_gsas_op_wide;

/* CPUID takes microseconds in virtual machines, so it is executed once. */
int gsas_op_wide(void)
{
	/* relaxed: all threads that ask store the same value */
	int have = atomic_load_explicit(&g_gsas_op_wide, memory_order_relaxed);

	if (__builtin_expect(have == 0, 0)) {
		have = ask() | GSAS_WIDE_ASKED;
		atomic_store_explicit(&g_gsas_op_wide, have,
				      memory_order_relaxed);
	}
	return have & ~GSAS_WIDE_ASKED;
}
