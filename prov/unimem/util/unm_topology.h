/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_topology.h - on which memory nodes of the machine the boards are, by
 * hwloc (unm_topology.c).
 *
 * A topology has a Misc object for each board, below the memory node of the
 * board, if unm_topology_write() wrote the topology and the environment names
 * the file (HWLOC_XMLFILE): subtype "UnimemBoard", info "Number". They are no
 * Group objects, because hwloc merges groups of the same processors, and
 * emulated boards may all lie on one memory node. Without such objects the
 * boards of one host lie on its memory nodes in blocks, as the emulation places
 * them. One thread at a time uses an object.
 */
#ifndef UNM_TOPOLOGY_H
#define UNM_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_TOPOLOGY_BOARDS	256u	/* most boards that are written */

struct unm_topology;

/* Is it known without hwloc that all boards are equally far apart? The machine
 * has one memory node, and the environment names no other topology. */
bool unm_topology_flat(void);

/*
 * Load hwloc, and the topology that the environment names, or the machine's.
 * emulated: all of the boards are on this host, so boards without an object
 * have memory nodes too. Returns 0; -ENOSYS: built without hwloc, or this is a
 * set-id program, in which hwloc would load plug-ins that its caller names, or
 * there is no libhwloc; -EINVAL: hwloc refuses the topology, or the file that
 * HWLOC_XMLFILE names does not exist; -ENOMEM.
 */
int unm_topology_open(uint32_t boards, bool emulated,
		      struct unm_topology **topo);
void unm_topology_close(struct unm_topology *topo);

/*
 * The boards that are nearest to a board, the nearest first, without the board
 * itself. The distance is that between their memory nodes: the latency that the
 * machine reports, if it does so for the memory nodes of all boards, or else
 * the number of levels up to their common object. Boards of equal distance are
 * in the order of the difference of their numbers, the lower number first. topo
 * NULL: all distances are equal. Stores at most max numbers to order, and
 * returns how many.
 */
uint32_t unm_topology_near(const struct unm_topology *topo, uint32_t boards,
			   uint32_t board, uint32_t *order, uint32_t max);

/*
 * Insert an object for each board, with the infos "Number", "MemoryBytes" and
 * "FreeBytes" (bytes: memory and free), and write the topology to a file of
 * XML. Returns 0; -E2BIG: more than UNM_TOPOLOGY_BOARDS; -EEXIST: the topology
 * has such objects already; -ENODEV: the memory node of a board is not known;
 * -EIO: the file cannot be written; -ENOMEM.
 */
int unm_topology_write(struct unm_topology *topo, uint64_t memory,
		       uint64_t free, const char *path);

#endif /* UNM_TOPOLOGY_H */
