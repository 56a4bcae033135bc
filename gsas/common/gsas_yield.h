/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_yield.h - when a thread that polls in vain yields the processor. Pure.
 * Part of gsasd and of libgsas.
 *
 * The time that sched_yield() takes shows whether another thread waited for the
 * processor. If one did, the next yield comes after few polls. If none did
 * several times in a row, the call only delays the next poll, and the next
 * yield comes after many polls.
 */
#ifndef GSAS_YIELD_H
#define GSAS_YIELD_H

#include <stdint.h>

#define GSAS_YIELD_NS	1000		/* after a longer yield another thread
					 * had waited for the processor */
#define GSAS_YIELD_QUICK 64		/* after so many shorter yields in a
					 * row no thread waits for it */

struct gsas_yield {
	uint32_t spin;			/* polls in vain before a yield */
	uint32_t min, max;		/* of spin, on a shared processor and on
					 * one that no other thread wants */
	uint32_t quick;			/* short yields in a row */
};

/* Adapt spin after a yield that took ns nanoseconds. */
static inline void gsas_yield_took(struct gsas_yield *y, uint64_t ns)
{
	y->quick++;
	if (ns > GSAS_YIELD_NS) {
		y->spin = y->min;
		y->quick = 0;
	} else if (y->quick >= GSAS_YIELD_QUICK) {
		y->spin = y->max;
		y->quick = 0;
	}
}

#endif /* GSAS_YIELD_H */
