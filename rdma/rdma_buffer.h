/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_buffer.h - buffers (rdma_buffer.c).
 */
#ifndef RDMA_BUFFER_H
#define RDMA_BUFFER_H

#include "rdma_state.h"

/* The pointer of this process to an offset of a buffer, or NULL. */
static inline uint8_t *rdma_buffer_at(const struct unim_dma_buffer *buf,
				      uint64_t off)
{
	const struct rdma_segment *s = buf->segment;

	return s->ptr == NULL ? NULL : s->ptr + (buf->address - s->base) + off;
}

#endif /* RDMA_BUFFER_H */
