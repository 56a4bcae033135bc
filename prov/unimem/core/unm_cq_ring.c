/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cq_ring.c - grows the ring of a completion queue. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/unm_cq_ring.h"
#include "unm_log.h"

/* Called while half of the ring is free, so that a failed allocation loses no
 * entry: the next entry tries again. */
bool unm_cq_grow(struct unm_cq *cq)
{
	uint64_t old = cq->mask + 1;
	struct unm_cqe *ring = malloc(2 * old * sizeof(*ring));

	if (ring == NULL) {
		if (cq->tail - cq->head <= cq->mask)
			return true;
		if (!cq->overrun)
			UNM_WARN(CQ, "out of memory: completions are lost from "
				 "here on, after %" PRIu64 " that wait to be "
				 "read", old);
		cq->overrun = true;
		return false;
	}
	for (uint64_t i = cq->head; i != cq->tail; i++)
		ring[i & (2 * old - 1)] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = 2 * old - 1;
	return true;
}
