/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cache.c - the cache of a peer's remote keys and imported dmable memory:
 * its table, its bounds, and imports.
 *
 * unm_cache.h describes it. unm_rkey.c requests and revokes remote keys;
 * hal_mem_import() of the HAL maps memory.
 */
#include <stdlib.h>

#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_stats.h"
#include "hal/hal.h"
#include "rma/unm_cache.h"
#include "unm_env.h"
#include "util/unm_list.h"

#define UNM_CACHE_BITS	4	/* log2 of the initial number of lists */
#define UNM_CACHE_US	1000000	/* us, lifetime of unused memory */

/* ---- Table ----------------------------------------------------------- */

static void unm_cache_hash(struct unm_peer *peer, struct unm_cached *c)
{
	struct unm_cached **bucket = unm_cache_bucket(peer, c->id.word[0],
						      c->id.word[1]);

	c->chain = *bucket;
	*bucket = c;
}

static void unm_cache_unhash(struct unm_peer *peer, struct unm_cached *c)
{
	struct unm_cached **pos = unm_cache_bucket(peer, c->id.word[0],
						   c->id.word[1]);

	while (*pos != c)
		pos = &(*pos)->chain;
	*pos = c->chain;
}

/* Make lists for another entry. The table is allocated with the first entry,
 * and doubles when an entry is added to as many as lists. False if the first
 * table cannot be allocated. */
static bool unm_cache_grow(struct unm_peer *peer)
{
	uint8_t bits = peer->cached_hash == NULL ? UNM_CACHE_BITS :
		peer->cached_bits + 1;
	struct unm_cached **table;

	if (peer->cached_hash != NULL &&
	    peer->ncached < UINT32_C(1) << peer->cached_bits)
		return true;
	table = calloc(UINT64_C(1) << bits, sizeof(*table));
	if (table == NULL)		/* keep the old one: longer chains */
		return peer->cached_hash != NULL;
	free(peer->cached_hash);
	peer->cached_hash = table;
	peer->cached_bits = bits;
	unm_list_for_each(pos, &peer->cached)
		unm_cache_hash(peer, unm_container(pos, struct unm_cached,
						   link));
	return true;
}

struct unm_cached *unm_cache_add(struct unm_peer *peer, uint64_t word0,
				 uint64_t word1, enum unm_cached_kind kind)
{
	struct unm_cached *c = calloc(1, sizeof(*c));

	if (c == NULL || !unm_cache_grow(peer)) {
		free(c);
		return NULL;
	}
	c->id.word[0] = word0;
	c->id.word[1] = word1;
	c->kind = kind;
	unm_list_init(&c->import);
	unm_list_append(peer->cached.next, &c->link);
	unm_cache_hash(peer, c);
	peer->ncached++;
	peer->ep->stats->rkey_misses++;
	return c;
}

void unm_cache_mapped(struct unm_peer *peer, struct unm_cached *c,
		      uint64_t bytes)
{
	c->bytes = bytes;
	peer->cached_bytes += bytes;
}

/* ---- Releasing ------------------------------------------------------- */

static void unm_cached_free(struct unm_cached *c)
{
	if (c->mem != NULL)
		unm_cached_put(c->mem);
	if (c->alias != NULL)
		hal_alias_close(c->alias, &c->win);
	free(c);
}

void unm_cached_put(struct unm_cached *c)
{
	if (--c->refs == 0 && c->stale)
		unm_cached_free(c);
}

void unm_cache_evict(struct unm_peer *peer, struct unm_cached *c)
{
	if (c->rmem != NULL)
		hal_mem_release(peer->hp, c->rmem);
	c->rmem = NULL;
	unm_list_remove(&c->link);
	unm_list_remove(&c->import);
	unm_cache_unhash(peer, c);
	peer->ncached--;
	peer->cached_bytes -= c->bytes;
	c->stale = true;
	if (c->refs == 0)
		unm_cached_free(c);
}

void unm_cache_read(struct unm_peer *peer, struct unm_cached *mem)
{
	bool last = !g_unm_env.rkey_keep && mem->refs == 1 && !mem->stale;

	unm_cached_put(mem);
	if (last)
		unm_cache_evict(peer, mem);
}

void unm_cache_evict_idle(struct unm_peer *peer, uint64_t now_us)
{
	unm_list_for_each_safe(pos, tmp, &peer->imports) {
		struct unm_cached *mem = unm_container(pos, struct unm_cached,
						       import);

		if (mem->refs != 0)
			continue;
		if (mem->idle == 0)
			mem->idle = now_us;
		else if (now_us - mem->idle >= UNM_CACHE_US)
			unm_cache_evict(peer, mem);
	}
}

void unm_cache_evict_all(struct unm_peer *peer)
{
	unm_list_for_each_safe(pos, tmp, &peer->cached)
		unm_cache_evict(peer, unm_container(pos, struct unm_cached,
						    link));
	free(peer->cached_hash);
	peer->cached_hash = NULL;
}

void unm_cache_free_all(struct unm_peer *peer)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&peer->cached)) != NULL) {
		struct unm_cached *c = unm_container(node, struct unm_cached,
						     link);

		if (c->alias != NULL)
			hal_alias_close(c->alias, &c->win);
		free(c);		/* c->mem is in the list, too */
	}
	free(peer->cached_hash);
	peer->cached_hash = NULL;
}

/* ---- Bounds ---------------------------------------------------------- */

/* Evict the entry that was used least recently, of those that are not in use;
 * mapped: of those that keep memory mapped. False if there is none. */
static bool unm_cache_evict_oldest(struct unm_peer *peer, bool mapped)
{
	struct unm_list *pos = peer->cached.prev;

	for (; pos != &peer->cached; pos = pos->prev) {
		struct unm_cached *c = unm_container(pos, struct unm_cached,
						     link);

		if (c->refs != 0 ||
		    (c->kind == UNM_CACHED_REGION && !c->arrived) ||
		    (mapped && (c->mem != NULL ? c->mem : c)->bytes == 0))
			continue;
		unm_cache_evict(peer, c);
		peer->ep->stats->rkey_evicted++;
		return true;
	}
	return false;
}

bool unm_cache_room(struct unm_peer *peer)
{
	while (peer->ncached >= (uint32_t)g_unm_env.rkey_max)
		if (!unm_cache_evict_oldest(peer, false))
			return false;
	return true;
}

bool unm_cache_space(struct unm_peer *peer, uint64_t bytes)
{
	if (bytes > g_unm_env.rkey_bytes)
		return false;
	/* memory is unmapped once the last region in it is evicted */
	while (peer->cached_bytes > g_unm_env.rkey_bytes - bytes)
		if (!unm_cache_evict_oldest(peer, true))
			return false;
	return true;
}

/* ---- Imports --------------------------------------------------------- */

/* Import memory that is not in the cache. A failed import is cached, too, and
 * so is one for which there is no space. Returns as unm_cache_import() does. */
static int unm_cache_import_new(struct unm_peer *peer,
				const struct hal_key *key,
				struct unm_cached **out)
{
	struct hal_rmem *rmem = NULL;
	struct unm_cached *mem;
	int ret;

	if (!unm_cache_room(peer))
		return -FI_EAGAIN;
	ret = hal_mem_import(peer->hp, key, &rmem);
	if (ret == -FI_EAGAIN)
		return ret;
	peer->ep->stats->rkey_stale += ret == -FI_EKEYREJECTED;
	/* only now the size is known */
	if (ret == 0 &&
	    !unm_cache_space(peer, hal_mem_bytes(peer->hp, rmem)))
		ret = -FI_ENOSPC;
	mem = unm_cache_add(peer, key->word[0], key->word[1],
			    UNM_CACHED_MEMORY);
	if (rmem != NULL && (mem == NULL || ret != 0)) {
		hal_mem_release(peer->hp, rmem);
		rmem = NULL;
	}
	if (mem == NULL)
		return -FI_ENOMEM;
	unm_list_append(&peer->imports, &mem->import);
	mem->status = ret;
	if (ret != 0)
		return ret;
	mem->rmem = rmem;
	hal_mem_window(peer->hp, rmem, &mem->win);
	unm_cache_mapped(peer, mem, hal_mem_bytes(peer->hp, rmem));
	*out = mem;
	return 0;
}

int unm_cache_import(struct unm_peer *peer, const struct hal_key *key,
		     struct unm_cached **out)
{
	struct unm_cached *mem = unm_cache_find(peer, key->word[0],
						key->word[1],
						UNM_CACHED_MEMORY);
	int ret;

	if (mem != NULL) {
		ret = mem->status;
		peer->ep->stats->rkey_hits += ret == 0;
	} else {
		ret = unm_cache_import_new(peer, key, &mem);
	}
	if (ret != 0)
		return ret;
	unm_cache_used(peer, mem);
	mem->refs++;
	mem->idle = 0;
	*out = mem;
	return 0;
}
