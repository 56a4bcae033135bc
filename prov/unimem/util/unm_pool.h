/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_pool.h - growing pool of fixed-size objects named by tokens.
 *
 * A token is index | generation << 32: it names an object to a peer without a
 * pointer, and a token of an object released since is refused. Memory is taken
 * in chunks and returned with the pool. Not thread-safe.
 */
#ifndef UNM_POOL_H
#define UNM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First member of every pooled object; a new object is zero behind it,
 * its first KiB. */
struct unm_pool_node {
	struct unm_pool_node *next_free;
	uint32_t index;
	uint32_t gen;		/* odd: in use */
};

struct unm_pool {
	struct unm_pool_node *free;
	struct unm_pool_node **node;	/* by index */
	void **chunk;
	uint32_t nchunks;
	uint32_t nodes;			/* room in node[] */
	uint32_t count;			/* objects made */
	uint32_t used;			/* objects in use */
	uint32_t max;			/* objects allowed */
	size_t size;			/* bytes each */
};

/* size: bytes of an object; max: objects it may hold. Allocates nothing. */
void unm_pool_construct(struct unm_pool *pool, size_t size, uint32_t max);
void unm_pool_destruct(struct unm_pool *pool);

/* Slow path of unm_pool_alloc: make a chunk. NULL: full or out of memory. */
struct unm_pool_node *unm_pool_grow(struct unm_pool *pool);

static inline void *unm_pool_alloc(struct unm_pool *pool)
{
	struct unm_pool_node *node = pool->free;

	if (__builtin_expect(node == NULL, 0)) {
		node = unm_pool_grow(pool);
		if (node == NULL)
			return NULL;
	}
	pool->free = node->next_free;
	node->gen++;
	pool->used++;
	return node;
}

static inline void unm_pool_release(struct unm_pool *pool, void *obj)
{
	struct unm_pool_node *node = obj;

	node->gen++;
	node->next_free = pool->free;
	pool->free = node;
	pool->used--;
}

static inline uint64_t unm_pool_token(const void *obj)
{
	const struct unm_pool_node *node = obj;

	return (uint64_t)node->gen << 32 | node->index;
}

/* The object a token names, or NULL if there is none (any more). */
static inline void *unm_pool_find(const struct unm_pool *pool, uint64_t token)
{
	uint32_t index = (uint32_t)token;
	uint32_t gen = token >> 32;

	if (index >= pool->count || !(gen & 1) ||
	    pool->node[index]->gen != gen)
		return NULL;
	return pool->node[index];
}

/* Did a token name an object that was released since? */
static inline bool unm_pool_released(const struct unm_pool *pool,
				     uint64_t token)
{
	uint32_t index = (uint32_t)token;
	uint32_t gen = token >> 32;

	return index < pool->count && (gen & 1) &&
		(int32_t)(pool->node[index]->gen - gen) > 0;
}

#endif /* UNM_POOL_H */
