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

/* The nodes of this host and their number. hwloc counts them from 0. False: for
 * want of memory, or of a topology that can be read, they are not what they
 * will be. */
static bool near_here(const struct rdma *r, uint32_t *order, uint32_t *count)
{
	bool emulated = (r->hal->caps.flags & HAL_CAP_ANY_BOARD) != 0;
	uint32_t boards = r->boards - r->hal->far_boards;
	uint32_t first = r->hal->first_board;
	struct unm_topology *topo = NULL;
	int ret = 0;

	if (!unm_topology_flat())
		ret = unm_topology_open(boards, emulated, &topo);
	*count = unm_topology_near(topo, boards, r->node - first, order,
				   RDMA_NEAR_EACH);
	if (topo != NULL)
		unm_topology_close(topo);
	for (uint32_t i = 0; i < *count; i++)
		order[i] += first;
	return (ret == 0 || ret == -ENOSYS) && (*count != 0 || boards <= 1);
}

static uint32_t near_elsewhere(const struct rdma *r, uint32_t *order)
{
	uint32_t far = r->hal->far_boards, n = 0;

	if (far > RDMA_NEAR_EACH)
		far = RDMA_NEAR_EACH;
	for (uint32_t d = 1; n < far; d++)
		for (int side = 0; side < 2; side++) {
			/* a number below 0 is above all boards */
			uint32_t node = side == 0 ? r->node - d : r->node + d;

			if (n < far && node < r->boards &&
			    !hal_board_here(r->hal, node))
				order[n++] = node;
		}
	return n;
}

uint32_t rdma_near(struct rdma *r, uint32_t order[RDMA_NEAR])
{
	uint32_t n;

	if (near_nodes.boards != r->boards || near_nodes.node != r->node) {
		bool known = near_here(r, near_nodes.order, &n);

		n += near_elsewhere(r, near_nodes.order + n);
		near_nodes.count = n;
		/* There may be memory next time. */
		near_nodes.boards = known ? r->boards : 0;
		near_nodes.node = r->node;
	}
	memcpy(order, near_nodes.order, near_nodes.count * sizeof(order[0]));
	return near_nodes.count;
}
