/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_op_wide.c - has this machine atomic accesses of 16 bytes? */
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

/* Every one has LDXP and STXP. With LSE2 a plain LDP is atomic too, but it has
 * no acquire. */
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

/* Virtual machines take microseconds to answer: once is enough. */
int gsas_op_wide(void)
{
	/* relaxed: whoever asks finds the same */
	int have = atomic_load_explicit(&g_gsas_op_wide, memory_order_relaxed);

	if (__builtin_expect(have == 0, 0)) {
		have = ask() | GSAS_WIDE_ASKED;
		atomic_store_explicit(&g_gsas_op_wide, have,
				      memory_order_relaxed);
	}
	return have & ~GSAS_WIDE_ASKED;
}
