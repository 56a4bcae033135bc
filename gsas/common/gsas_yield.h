/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_yield.h - when a thread that polls in vain yields the processor.
 * Part of gsasd and of libgsas.
 *
 * unm_yield() returns whether another thread waited for the processor. If one
 * did, the next yield comes after few polls. If none did several times in a
 * row, the call only delays the next poll, and the next yield comes after many
 * polls.
 */
#ifndef GSAS_YIELD_H
#define GSAS_YIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "util/unm_yield.h"

struct gsas_yield {
	uint32_t spin;			/* polls in vain before a yield */
	uint32_t min, max;		/* of spin, on a shared processor and on
					 * one that no other thread wants */
	uint32_t quick;			/* yields in a row for which no thread
					 * waited */
};

/* Adapt spin after a yield for which another thread waited, or none did. */
static inline void gsas_yielded(struct gsas_yield *y, bool waited)
{
	y->quick++;
	if (waited) {
		y->spin = y->min;
		y->quick = 0;
	} else if (y->quick >= UNM_YIELD_QUICK) {
		y->spin = y->max;
		y->quick = 0;
	}
}

#endif /* GSAS_YIELD_H */
