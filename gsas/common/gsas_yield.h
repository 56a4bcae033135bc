/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_yield.h - when a thread that polls in vain gives the processor away.
 * Pure; part of gsasd and of the client library.
 *
 * The time that sched_yield() takes shows whether another thread waited for the
 * processor. If one did, the next yield comes after few polls. If none did
 * several times in a row, the call only delays the next poll, and the next
 * yield comes after many polls.
 */
#ifndef GSAS_YIELD_H
#define GSAS_YIELD_H

#include <stdint.h>

#define GSAS_YIELD_NS	1000		/* a yield this long helped a thread */
#define GSAS_YIELD_QUICK 64		/* shorter yields in a row: alone */

struct gsas_yield {
	uint32_t spin;			/* polls in vain before a yield */
	uint32_t min, max;		/* of spin: shared processor, alone */
	uint32_t quick;			/* yields in a row that helped nobody */
};

/* A yield took so many nanoseconds. */
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
