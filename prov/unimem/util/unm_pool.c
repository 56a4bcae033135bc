/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_pool.c - allocates the chunks of a pool. Allocation and release of an
 * object are inline in unm_pool.h.
 */
#include <stdlib.h>
#include <string.h>

#include "util/unm_pool.h"

#define UNM_POOL_BYTES	32768	/* approximate size of a chunk */
#define UNM_POOL_MOST	64	/* most objects of a chunk */
#define UNM_POOL_ZERO	1024	/* bytes of a new object that are zero */

void unm_pool_construct(struct unm_pool *pool, size_t size, uint32_t max)
{
	memset(pool, 0, sizeof(*pool));
	pool->size = (size + 63) & ~(size_t)63;
	pool->max = max;
}

void unm_pool_destruct(struct unm_pool *pool)
{
	for (uint32_t i = 0; i < pool->nchunks; i++)
		free(pool->chunk[i]);
	free(pool->chunk);
	free(pool->node);
	memset(pool, 0, sizeof(*pool));
}

/* Make node[] large enough for count objects. 0, or -1 without memory. */
static int unm_pool_room(struct unm_pool *pool, uint32_t count)
{
	uint32_t n = pool->nodes != 0 ? pool->nodes : UNM_POOL_MOST;
	struct unm_pool_node **node;

	if (count <= pool->nodes)
		return 0;
	while (n < count)
		n *= 2;
	node = realloc(pool->node, n * sizeof(*node));
	if (node == NULL)
		return -1;
	pool->node = node;
	pool->nodes = n;
	return 0;
}

struct unm_pool_node *unm_pool_grow(struct unm_pool *pool)
{
	uint32_t n = UNM_POOL_BYTES / pool->size;
	void **chunk;
	char *mem;

	if (pool->count >= pool->max)
		return NULL;
	n = n == 0 ? 1 : n > UNM_POOL_MOST ? UNM_POOL_MOST : n;
	if (n > pool->max - pool->count)
		n = pool->max - pool->count;
	chunk = realloc(pool->chunk, (pool->nchunks + 1) * sizeof(*chunk));
	if (chunk == NULL)
		return NULL;
	pool->chunk = chunk;
	if (unm_pool_room(pool, pool->count + n) != 0)
		return NULL;
	mem = aligned_alloc(64, n * pool->size);
	if (mem == NULL)
		return NULL;
	pool->chunk[pool->nchunks++] = mem;
	for (uint32_t i = n; i-- > 0; ) {
		struct unm_pool_node *node = (void *)(mem + i * pool->size);

		/* large buffers are not zeroed: their pages need not exist
		 * before their first use */
		memset(node, 0, pool->size < UNM_POOL_ZERO ? pool->size :
		       UNM_POOL_ZERO);
		node->index = pool->count + i;
		node->next_free = pool->free;
		pool->free = node;
		pool->node[node->index] = node;
	}
	pool->count += n;
	return pool->free;
}
