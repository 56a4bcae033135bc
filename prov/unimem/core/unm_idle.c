/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_idle.c - yields the processor after empty polls, see unm_idle.h. */
#include <sched.h>

#include "core/unm_idle.h"
#include "unm_env.h"
#include "util/unm_clock.h"

#define UNM_YIELD_NS	1000		/* longer yield: another thread ran */
#define UNM_YIELD_QUICK	64		/* short yields in a row: none did */

/*
 * The duration of a yield shows whether another thread was waiting for the
 * processor. If so, it may be the one that is to send: from now on yield after
 * each empty poll. If many yields in a row were short, no thread waits: spin
 * longer, and save the system calls.
 */
void unm_yield(struct unm_idle *idle)
{
	uint64_t start = unm_now_ns();
	uint32_t quick;

	sched_yield();
	quick = unm_idle_get(&idle->quick) + 1;
	if (unm_now_ns() - start > UNM_YIELD_NS) {
		unm_idle_set(&idle->spin, 0);
		quick = 0;
	} else if (quick >= UNM_YIELD_QUICK) {
		unm_idle_set(&idle->spin, (uint32_t)g_unm_env.spin);
		unm_idle_set(&idle->polls, 0);
		quick = 0;
	}
	unm_idle_set(&idle->quick, quick);
}
