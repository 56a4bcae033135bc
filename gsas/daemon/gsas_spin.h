/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_spin.h - how gsasd polls its board before it sleeps. Header only, so
 * that a test can count the system calls.
 */
#ifndef GSAS_SPIN_H
#define GSAS_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gsas_yield.h"
#include "service/gsas_board.h"
#include "util/unm_clock.h"
#include "util/unm_yield.h"

#define GSAS_SPIN_NS	50000		/* time of polling before a sleep */
#define GSAS_SPIN_MIN	32		/* polls in vain before a yield, on a
					 * processor shared with clients */
#define GSAS_SPIN_MAX	2048		/* the same where no thread waits for
					 * the processor */

/*
 * Poll for at most GSAS_SPIN_NS. Returns whether there was any work. A client
 * may wait for this processor, so yield it after some polls in vain. A yield
 * for which no thread waits delays the answer to a client that works between
 * its calls, so gsas_yielded() decides after how many polls to yield. Only one
 * thread of a process calls this.
 */
static inline bool gsas_spin(struct gsas_board *board,
			     bool (*poll)(struct gsas_board *board))
{
	static struct gsas_yield yield = {
		.spin = GSAS_SPIN_MIN, .min = GSAS_SPIN_MIN,
		.max = GSAS_SPIN_MAX,
	};
	uint64_t end = unm_now_ns() + GSAS_SPIN_NS;

	do {
		for (uint32_t i = 0; i < yield.spin; i++)
			if (poll(board))
				return true;
		gsas_yielded(&yield, unm_yield());
	} while (unm_now_ns() < end);
	return false;
}

#endif /* GSAS_SPIN_H */
