/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_idle.c - giving the processor away, see unm_idle.h. */
#include <sched.h>

#include "core/unm_idle.h"
#include "unm_env.h"
#include "util/unm_clock.h"

#define UNM_YIELD_NS	1000		/* a yield this long helped someone */
#define UNM_YIELD_QUICK	64		/* so many did not: we are alone */
#define UNM_SPIN_MIN	8		/* polls before a yield, crowded */

/*
 * How long a yield took tells whether somebody was waiting for the processor:
 * then we hardly spin at all next time; if not, it was a system call for
 * nothing and we spin longer first.
 */
void unm_yield(struct unm_idle *idle)
{
	uint64_t start = unm_now_ns();
	uint32_t quick;

	sched_yield();
	quick = unm_idle_get(&idle->quick) + 1;
	if (unm_now_ns() - start > UNM_YIELD_NS) {
		unm_idle_set(&idle->spin, UNM_SPIN_MIN);
		quick = 0;
	} else if (quick >= UNM_YIELD_QUICK) {
		unm_idle_set(&idle->spin, (uint32_t)g_unm_env.spin);
		unm_idle_set(&idle->polls, 0);
		quick = 0;
	}
	unm_idle_set(&idle->quick, quick);
}
