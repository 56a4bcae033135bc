/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_buf.h - memory for copies of message bytes that outlive a call, in
 * classes of four sizes; each class is a pool of the endpoint.
 */
#ifndef UNM_BUF_H
#define UNM_BUF_H

#include <stddef.h>
#include <stdint.h>

struct unm_ep;

/* Bytes of an object of a class, with its node. */
uint32_t unm_buf_size(int class);

/* Memory for bytes that outlive a call, up to UNM_WIRE_EAGER_LIMIT, behind the
 * node; its class says which pool it goes back to. NULL: no memory. */
struct unm_pool_node *unm_buf_alloc(struct unm_ep *ep, size_t len,
				   uint8_t *class);

#endif /* UNM_BUF_H */
