/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_bounce.c - bounce buffers of an endpoint, see unm_bounce.h.
 *
 * rma/unm_mem.c provides the areas, util/unm_span.c divides them. Which
 * messages use bounce buffers is decided in msg/unm_send.c and
 * msg/unm_rendezvous.c.
 */
#include <stdlib.h>

#include "core/unm_ep_state.h"
#include "rma/unm_bounce.h"
#include "rma/unm_mem.h"
#include "unm_env.h"
#include "unm_log.h"
#include "util/unm_span.h"

/* An area. It belongs to its endpoint, under the lock of the domain. */
struct unm_bounce {
	void *base;			/* first byte; NULL: there was no memory
					 * for the area */
	struct unm_span span;		/* allocator of its buffers */
};

/* The area of an endpoint, allocated at the first call. NULL: no memory. */
static struct unm_bounce *unm_bounce_area(struct unm_ep *ep,
					  enum unm_bounce_way way)
{
	size_t bytes = (g_unm_env.bounce + UNM_SPAN_UNIT - 1) &
		~(UNM_SPAN_UNIT - 1);
	struct unm_bounce *b = ep->bounce[way];

	if (b != NULL)
		return b->base != NULL ? b : NULL;
	b = ep->bounce[way] = calloc(1, sizeof(*b));
	if (b == NULL)
		return NULL;
	b->base = unm_mem_take(ep->domain, bytes);
	if (b->base != NULL &&
	    !unm_span_construct(&b->span, (uintptr_t)b->base, bytes)) {
		unm_mem_give(ep->domain, b->base);
		b->base = NULL;
	}
	if (b->base != NULL)
		return b;
	UNM_INFO(EP_DATA, "no memory for %zu bytes of bounce buffers, messages "
		 "are streamed\n", g_unm_env.bounce);
	return NULL;
}

void *unm_bounce_take(struct unm_ep *ep, enum unm_bounce_way way, uint64_t len)
{
	struct unm_bounce *b;

	if (len == 0 || len > g_unm_env.bounce)
		return NULL;
	b = unm_bounce_area(ep, way);
	if (b == NULL)
		return NULL;
	return (void *)unm_span_alloc(&b->span, len, UNM_SPAN_UNIT);
}

void unm_bounce_give(struct unm_ep *ep, enum unm_bounce_way way, void *buf)
{
	unm_span_free(&ep->bounce[way]->span, (uintptr_t)buf);
}

void unm_bounce_close(struct unm_ep *ep)
{
	for (int way = 0; way < 2; way++) {
		struct unm_bounce *b = ep->bounce[way];

		if (b != NULL && b->base != NULL) {
			unm_span_destruct(&b->span);
			unm_mem_give(ep->domain, b->base);
		}
		free(b);
		ep->bounce[way] = NULL;
	}
}
