/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_near.h - the nodes that are nearest to the node of the process
 * (rdma_near.c).
 */
#ifndef RDMA_NEAR_H
#define RDMA_NEAR_H

#include "rdma_state.h"

#define RDMA_NEAR_EACH	16u		/* most nodes of this host, and most of
					 * other hosts */
#define RDMA_NEAR	(2 * RDMA_NEAR_EACH)

/*
 * The nodes nearest to r->node, the nearest first. Those of this host come
 * first, by the distances of hwloc where boards have memory nodes of their own,
 * else by their numbers; then those of other hosts, by their numbers. Stores up
 * to RDMA_NEAR numbers to order, and returns how many. hwloc is loaded by the
 * first call only.
 */
uint32_t rdma_near(struct rdma *r, uint32_t order[RDMA_NEAR]);

#endif /* RDMA_NEAR_H */
