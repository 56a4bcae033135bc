/* SPDX-License-Identifier: BSD-2-Clause */
/* unimem_topology.h - unimem_info --topology (unimem_topology.c). */
#ifndef UNIMEM_TOPOLOGY_H
#define UNIMEM_TOPOLOGY_H

/* Write the machine's topology with its boards to a file of XML. Exit code: 0,
 * 2 error, which was printed. */
int topology_write(const char *path);

#endif /* UNIMEM_TOPOLOGY_H */
