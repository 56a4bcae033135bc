/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_near.c - the order of nodes for UNIM_DMA_NEAREST.
 *
 * util/unm_topology.c knows the distances. The order is kept, because hwloc
 * needs milliseconds to load a topology; an order that was found without a
 * topology, because of an error, is not. It belongs to the library of the
 * process, whose lock protects it, and is computed anew if the library is
 * initialized for another node.
 */
#include <errno.h>
#include <string.h>

#include "rdma_near.h"
#include "util/unm_topology.h"

static struct {
	uint32_t node, boards;		/* what the order is for; boards 0: none
					 * yet */
	uint32_t count;
	uint32_t order[RDMA_NEAR];
} near_nodes;

uint32_t rdma_near(struct rdma *r, uint32_t order[RDMA_NEAR])
{
	bool here = (r->hal->caps.flags & HAL_CAP_ANY_BOARD) != 0;
	struct unm_topology *topo = NULL;
	int ret = 0;

	if (near_nodes.boards != r->boards || near_nodes.node != r->node) {
		if (!unm_topology_flat())
			ret = unm_topology_open(r->boards, here, &topo);
		near_nodes.count = unm_topology_near(topo, r->boards, r->node,
						     near_nodes.order,
						     RDMA_NEAR);
		if (topo != NULL)
			unm_topology_close(topo);
		if (near_nodes.count == 0 && r->boards > 1)
			ret = -ENOMEM;
		/* There may be memory next time. */
		near_nodes.boards = ret == 0 || ret == -ENOSYS ? r->boards : 0;
		near_nodes.node = r->node;
	}
	memcpy(order, near_nodes.order, near_nodes.count * sizeof(order[0]));
	return near_nodes.count;
}
