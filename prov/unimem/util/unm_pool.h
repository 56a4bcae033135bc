/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_pool.h - growing pool of fixed-size objects that tokens name
 * (unm_pool.c).
 *
 * A token is index | generation << 32. It names an object to a peer without a
 * pointer, and unm_pool_find() rejects the token of an object that was released
 * since. The pool allocates memory in chunks and frees it in
 * unm_pool_destruct() only. Not thread-safe: the pool's owner locks.
 */
#ifndef UNM_POOL_H
#define UNM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * First member of every pooled object. An object that is allocated for the
 * first time is zero after this node, up to its first KiB; later allocations
 * find the contents that the previous user left.
 */
struct unm_pool_node {
	struct unm_pool_node *next_free;	/* next object on the free list
						 */
	uint32_t index;		/* position in unm_pool.node, never changes */
	uint32_t gen;		/* generation: incremented by each allocation
				 * and each release, odd while in use */
};

/* A pool. It is embedded in its owner, and lives between unm_pool_construct()
 * and unm_pool_destruct(). */
struct unm_pool {
	struct unm_pool_node *free;	/* free list, released last first */
	struct unm_pool_node **node;	/* all objects, by index */
	void **chunk;			/* allocations that hold the objects */
	uint32_t nchunks;		/* entries of chunk[] */
	uint32_t nodes;			/* allocated entries of node[] */
	uint32_t count;			/* objects that exist, free or in use */
	uint32_t used;			/* objects in use */
	uint32_t max;			/* most objects that may exist */
	size_t size;			/* bytes of an object, a multiple of 64
					 */
};

/* Make an empty pool, without allocating memory. size: bytes of an object with
 * its node, rounded up to a multiple of 64; max: most objects in the pool. */
void unm_pool_construct(struct unm_pool *pool, size_t size, uint32_t max);
/* Free the memory of all objects, also of those in use. */
void unm_pool_destruct(struct unm_pool *pool);

/* Slow path of unm_pool_alloc(): allocate a chunk, and return the first free
 * object. NULL if the pool is full or memory ran out. */
struct unm_pool_node *unm_pool_grow(struct unm_pool *pool);

/* Allocate an object. NULL if the pool is full or memory ran out. */
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

/* Return an object to its pool; its tokens are invalid from now on. */
static inline void unm_pool_release(struct unm_pool *pool, void *obj)
{
	struct unm_pool_node *node = obj;

	node->gen++;
	node->next_free = pool->free;
	pool->free = node;
	pool->used--;
}

/* The token of an object in use. */
static inline uint64_t unm_pool_token(const void *obj)
{
	const struct unm_pool_node *node = obj;

	return (uint64_t)node->gen << 32 | node->index;
}

/* The object that a token names, or NULL if the object was released or never
 * existed. Any token may be passed: it may come from a peer. */
static inline void *unm_pool_find(const struct unm_pool *pool, uint64_t token)
{
	uint32_t index = (uint32_t)token;
	uint32_t gen = token >> 32;

	if (index >= pool->count || !(gen & 1) ||
	    pool->node[index]->gen != gen)
		return NULL;
	return pool->node[index];
}

/* True if the token named an object that was released since. */
static inline bool unm_pool_released(const struct unm_pool *pool,
				     uint64_t token)
{
	uint32_t index = (uint32_t)token;
	uint32_t gen = token >> 32;

	return index < pool->count && (gen & 1) &&
		(int32_t)(pool->node[index]->gen - gen) > 0;
}

#endif /* UNM_POOL_H */
