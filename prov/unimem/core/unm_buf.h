/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_buf.h - memory for copies of message bytes that outlive a call
 * (unm_buf.c). There are UNM_BUF_CLASSES size classes; each is a pool of the
 * endpoint, under the lock of the endpoint's domain.
 */
#ifndef UNM_BUF_H
#define UNM_BUF_H

#include <stddef.h>
#include <stdint.h>

struct unm_ep;

/* Bytes of an object of a size class, its node included. */
uint32_t unm_buf_size(int class);

/* Allocate a buffer of len bytes, at most UNM_WIRE_LONG_LIMIT. The bytes begin
 * behind the node. The caller releases the buffer to ep->buf_pool[*class]. NULL
 * without memory. */
struct unm_pool_node *unm_buf_alloc(struct unm_ep *ep, size_t len,
				   uint8_t *class);

#endif /* UNM_BUF_H */
