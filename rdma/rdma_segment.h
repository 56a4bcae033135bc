/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_segment.h - imports of the boards' memory (rdma_segment.c).
 */
#ifndef RDMA_SEGMENT_H
#define RDMA_SEGMENT_H

#include "rdma_state.h"

/*
 * Add a reference to the segment of a global address, importing the segment if
 * it is not known. 0; -EFAULT, -ESTALE, -EACCES: the address; -EPERM: memory
 * that cannot be mapped; -ENOMEM; errors of the connection. May wait.
 */
int rdma_segment_get(struct rdma *r, uint64_t address,
		     struct rdma_segment **segment);

/* Remove a reference; the last one releases import and mapping. */
void rdma_segment_put(struct rdma *r, struct rdma_segment *segment);

/* Free a segment whose interface was closed. child: this is a forked child,
 * which has not inherited the mapping. */
void rdma_segment_free(struct rdma *r, struct rdma_segment *segment,
		       bool child);

/* Does the service live through which the segment was imported? If not, its
 * memory is gone, and rmem is not valid. */
static inline bool rdma_segment_alive(const struct rdma_segment *segment)
{
	return segment->conn->peer != NULL &&
	       segment->conn->epoch == segment->epoch;
}

/* Can the buffer at an address be accessed? 0; -ECONNRESET: its service has
 * ended; -ESTALE: it was freed, which only a process sees that has mapped
 * it. */
int rdma_segment_check(const struct rdma_segment *segment, uint64_t address);

#endif /* RDMA_SEGMENT_H */
