/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_space.c - makes an allocator of receive space, see unm_space.h. */
#include <stdlib.h>

#include "core/unm_space.h"

struct unm_space *unm_space_new(uint32_t bytes, uint32_t depth)
{
	struct unm_space *s;

	s = calloc(1, sizeof(*s) + depth * sizeof(s->mark[0]));
	if (s == NULL)
		return NULL;
	s->bytes = unm_space_pow2(bytes);
	s->ready = s->bytes;
	s->mark_mask = depth - 1;
	return s;
}

void unm_space_complete(struct unm_space *s)
{
	uint64_t lap = s->head & ~(uint64_t)(s->bytes - 1);

	for (uint32_t m = s->mark_head; m != s->mark_tail; m++)
		s->mark[m & s->mark_mask].end -= lap;
	s->head -= lap;
	s->tail -= lap;
	s->ready = s->bytes;
}
