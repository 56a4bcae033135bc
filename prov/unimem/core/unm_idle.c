/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_idle.c - yields the processor after empty polls, see unm_idle.h. */
#include "core/unm_idle.h"
#include "unm_env.h"
#include "util/unm_yield.h"

/*
 * A thread that waited for the processor may be the one that is to send: from
 * now on yield after each empty poll. If none waited many times in a row, spin
 * longer, and save the system calls.
 */
void unm_idle_yield(struct unm_idle *idle)
{
	bool waited = unm_yield();
	uint32_t quick = unm_idle_get(&idle->quick) + 1;

	if (waited) {
		unm_idle_set(&idle->spin, 0);
		quick = 0;
	} else if (quick >= UNM_YIELD_QUICK) {
		unm_idle_set(&idle->spin, (uint32_t)g_unm_env.spin);
		unm_idle_set(&idle->polls, 0);
		quick = 0;
	}
	unm_idle_set(&idle->quick, quick);
}
