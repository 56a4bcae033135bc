/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_buf.c - size classes of copies of message bytes, see unm_buf.h. */
#include "core/unm_buf.h"
#include "core/unm_ep_state.h"
#include "core/unm_wire.h"
#include "util/unm_pool.h"

static const uint32_t unm_buf_bytes[UNM_BUF_CLASSES] = {
	256, 1024, 4096, UNM_WIRE_EAGER_LIMIT, 2 * UNM_WIRE_EAGER_LIMIT,
	UNM_WIRE_LONG_LIMIT,
};

uint32_t unm_buf_size(int class)
{
	return unm_buf_bytes[class] + sizeof(struct unm_pool_node);
}

struct unm_pool_node *unm_buf_alloc(struct unm_ep *ep, size_t len,
				    uint8_t *class)
{
	*class = 0;
	while (len > unm_buf_bytes[*class])
		++*class;
	return unm_pool_alloc(&ep->buf_pool[*class]);
}
