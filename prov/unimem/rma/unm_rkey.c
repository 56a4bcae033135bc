/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rkey.c - the cache of peers' remote keys, and the guard that protects
 * direct accesses from revocations. A "route" in names is a cached remote key.
 *
 * The first request to a region asks its owner for the remote key
 * (unm_route_asked()); the ROUTE message brings the key (unm_route_told()), and
 * unm_direct.c uses it (unm_route_find()). docs/protocol.md, section 11.
 *
 * When the owner closes a region, it stores REVOKED (the number of revocations,
 * and the region's number) to all peers that have remote keys, and then waits
 * for the peers that are inside its memory. An initiator stores GUARD (odd)
 * before it enters, and loads REVOKED afterwards. At least one of the two sides
 * therefore sees the other's store, in any interleaving. The owner does not
 * wait for a process that was killed inside. docs/memory-ordering.md has the
 * proof; progress/unm_revoke.c is the owner's side.
 */
#include <stdlib.h>

#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "rma/unm_import.h"
#include "rma/unm_rkey.h"
#include "unm_env.h"
#include "util/unm_list.h"

#define UNM_ROUTES_MAX	1024	/* most cached remote keys of a peer */
#define UNM_ROUTE_BITS	4	/* log2 of the initial number of buckets */

/* ---- Entries --------------------------------------------------------- */

/*
 * A peer's remote keys are in a list, last used first, and in a hash table by
 * key. The table has 2^route_bits buckets. It is allocated with the first
 * remote key, and doubles when another key is added to as many as buckets.
 */
static struct unm_route **unm_route_bucket(const struct unm_peer *peer,
					   uint64_t key)
{
	/* applications use counters, shifted values or random numbers as keys,
	 * so mix all bits */
	uint64_t h = (key ^ key >> 32) * UINT64_C(0x9E3779B97F4A7C15);

	return &peer->route_hash[h >> (64 - peer->route_bits)];
}

/* The cache's entry of a key, also one whose ROUTE has not arrived; or NULL. */
static struct unm_route *unm_route_entry(const struct unm_peer *peer,
					 uint64_t key)
{
	struct unm_route *r = unm_container(peer->routes.next,
					    struct unm_route, link);

	if (unm_list_empty(&peer->routes))
		return NULL;
	if (r->key == key)		/* used last, most likely again */
		return r;
	r = *unm_route_bucket(peer, key);
	while (r != NULL && r->key != key)
		r = r->chain;
	return r;
}

static void unm_route_hash(struct unm_peer *peer, struct unm_route *r)
{
	struct unm_route **bucket = unm_route_bucket(peer, r->key);

	r->chain = *bucket;
	*bucket = r;
}

static void unm_route_unhash(struct unm_peer *peer, struct unm_route *r)
{
	struct unm_route **pos = unm_route_bucket(peer, r->key);

	while (*pos != r)
		pos = &(*pos)->chain;
	*pos = r->chain;
}

/* Make buckets for another remote key. False if the first table cannot be
 * allocated. */
static bool unm_route_grow(struct unm_peer *peer)
{
	uint8_t bits = peer->route_hash == NULL ? UNM_ROUTE_BITS :
		peer->route_bits + 1;
	struct unm_route **table;

	if (peer->route_hash != NULL &&
	    peer->nroutes < UINT32_C(1) << peer->route_bits)
		return true;
	table = calloc(UINT64_C(1) << bits, sizeof(*table));
	if (table == NULL)		/* keep the old one: longer chains */
		return peer->route_hash != NULL;
	free(peer->route_hash);
	peer->route_hash = table;
	peer->route_bits = bits;
	unm_list_for_each(pos, &peer->routes)
		unm_route_hash(peer, unm_container(pos, struct unm_route,
						   link));
	return true;
}

static void unm_route_free(struct unm_route *r)
{
	if (r->mem != NULL)
		unm_import_put(r->mem);
	if (r->alias != NULL)
		hal_alias_close(r->alias, &r->win);
	free(r);
}

/* Take an entry out of the cache. It is freed now, or when the operations that
 * use it release it. */
static void unm_route_drop(struct unm_peer *peer, struct unm_route *r)
{
	unm_list_remove(&r->link);
	unm_route_unhash(peer, r);
	peer->nroutes--;
	r->stale = true;
	if (r->refs == 0)
		unm_route_free(r);
}

void unm_route_put(struct unm_route *r)
{
	if (--r->refs == 0 && r->stale)
		unm_route_free(r);
}

void unm_route_forget(struct unm_peer *peer)
{
	unm_list_for_each_safe(pos, tmp, &peer->routes)
		unm_route_drop(peer, unm_container(pos, struct unm_route,
						   link));
	free(peer->route_hash);
	peer->route_hash = NULL;
}

void unm_route_clear(struct unm_peer *peer)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&peer->routes)) != NULL) {
		struct unm_route *r = unm_container(node, struct unm_route,
						    link);

		if (r->alias != NULL)
			hal_alias_close(r->alias, &r->win);
		free(r);		/* unm_import_clear() frees r->mem */
	}
	free(peer->route_hash);
	peer->route_hash = NULL;
}

/* ---- Requesting ------------------------------------------------------ */

/* The remote key that was used least recently, if it may be evicted: not while
 * it is in use or its ROUTE is expected. Else NULL. */
static struct unm_route *unm_route_oldest(const struct unm_peer *peer)
{
	struct unm_route *r = unm_container(peer->routes.prev,
					    struct unm_route, link);

	return r->told && r->refs == 0 ? r : NULL;
}

bool unm_route_wanted(const struct unm_peer *peer, uint64_t key)
{
	return g_unm_env.direct && unm_route_entry(peer, key) == NULL &&
		(peer->nroutes < UNM_ROUTES_MAX ||
		 unm_route_oldest(peer) != NULL);
}

void unm_route_asked(struct unm_peer *peer, uint64_t key)
{
	struct unm_route *r = calloc(1, sizeof(*r));

	if (peer->nroutes == UNM_ROUTES_MAX)
		unm_route_drop(peer, unm_route_oldest(peer));
	if (r == NULL || !unm_route_grow(peer)) {
		free(r);		/* the next request asks again */
		return;
	}
	r->key = key;
	unm_list_append(peer->routes.next, &r->link);
	unm_route_hash(peer, r);
	peer->nroutes++;
}

void unm_route_unasked(struct unm_peer *peer, uint64_t key)
{
	struct unm_route *r = unm_route_entry(peer, key);

	if (r != NULL && !r->told)
		unm_route_drop(peer, r);
}

/* Import the dmable memory of a region, or continue the import. True if the
 * memory can be accessed. A failed import makes requests the only access. */
static bool unm_route_import(struct unm_peer *peer, struct unm_route *r)
{
	struct unm_import *mem;
	int ret;

	if (r->mem != NULL)
		return true;
	ret = unm_import_get(peer, &r->mem_key, &mem);
	if (ret == 0) {
		/* the peer's description of its region is not trusted */
		if (unm_import_covers(mem, r->base, r->len)) {
			r->mem = mem;
			r->win = mem->win;
			return true;
		}
		unm_import_put(mem);
	}
	if (ret != -FI_EAGAIN)
		r->reach = UNM_REACH_ASK;
	return false;
}

/*
 * The region is a shared mapping of its owner. If this process has mapped the
 * memory as well, access it through an alias of this mapping; else by
 * cross-memory attach, as other memory of the owner.
 */
static void unm_route_alias(struct unm_peer *peer, struct unm_route *r)
{
	uint32_t access = (r->reach & UNM_REACH_READ ? HAL_ALIAS_READ : 0) |
		(r->reach & UNM_REACH_WRITE ? HAL_ALIAS_WRITE : 0);

	if (!g_unm_env.alias ||
	    hal_alias_open(peer->hp, &r->mem_key, r->len, access,
			   &r->win) != 0) {
		r->reach = (r->reach & ~UNM_REACH_HOW) | UNM_REACH_ATTACH;
		return;
	}
	r->alias = peer->ep->hif->hal;
	r->base = 0;			/* offset in the alias */
	peer->ep->stats->aliases++;
}

int unm_route_told(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_route *r = unm_route_entry(peer, m->key);

	if (r == NULL || r->told)	/* not requested */
		return 0;
	/* the owner revoked keys after it had sent this ROUTE: drop it, so that
	 * the next request asks again */
	unm_route_look(peer);
	if ((uint32_t)m->epoch != (uint32_t)(peer->revoked >> 32)) {
		unm_route_drop(peer, r);
		return 0;
	}
	r->told = true;
	r->region = m->region;
	r->reach = m->reach;
	r->start = m->addr;
	r->len = m->len;
	r->base = m->base;
	r->mem_key.word[0] = m->mem_key[0];
	r->mem_key.word[1] = m->mem_key[1];
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_DMABLE)
		unm_route_import(peer, r);
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_SHARED)
		unm_route_alias(peer, r);
	peer->ep->stats->routes++;
	return 0;
}

struct unm_route *unm_route_find(struct unm_peer *peer, uint64_t key)
{
	struct unm_route *r;

	if (!g_unm_env.direct)
		return NULL;
	r = unm_route_entry(peer, key);
	if (r == NULL || !r->told)
		return NULL;
	if (peer->routes.next != &r->link) {
		unm_list_remove(&r->link);
		unm_list_append(peer->routes.next, &r->link);
	}
	switch (r->reach & UNM_REACH_HOW) {
	case UNM_REACH_DMABLE:
		return unm_route_import(peer, r) ? r : NULL;
	case UNM_REACH_SHARED:
		return r;
	case UNM_REACH_ATTACH:
		return peer->hp->dma_any && !peer->attach_off &&
			g_unm_env.attach ? r : NULL;
	default:
		return NULL;
	}
}

/* ---- Revoking -------------------------------------------------------- */

void unm_route_look(struct unm_peer *peer)
{
	uint64_t word = hal_tx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED);
	bool one = (uint32_t)(word >> 32) ==
		(uint32_t)(peer->revoked >> 32) + 1;

	if (word == peer->revoked || peer->inside != 0)
		return;
	peer->revoked = word;
	unm_list_for_each_safe(pos, tmp, &peer->routes) {
		struct unm_route *r = unm_container(pos, struct unm_route,
						    link);

		/* an entry whose ROUTE has not arrived stays: its epoch shows
		 * whether the ROUTE is valid */
		if (r->told && (!one || r->region == (uint32_t)word))
			unm_route_drop(peer, r);
	}
}

bool unm_guard_enter(struct unm_peer *peer)
{
	if (peer->inside == 0) {
		if (hal_rx_back_sync(peer->hp, UNM_PEER_BACK_GUARD,
				     peer->guard + 1) != 0) {
			/* the odd value may have reached the owner although
			 * the store failed */
			hal_rx_back(peer->hp, UNM_PEER_BACK_GUARD,
				    peer->guard);
			return false;
		}
		peer->guard++;
	}
	peer->inside++;
	if (hal_tx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED) == peer->revoked)
		return true;
	unm_guard_leave(peer);
	unm_route_look(peer);
	return false;
}

void unm_guard_leave(struct unm_peer *peer)
{
	if (--peer->inside != 0 || peer->hp == NULL)
		return;
	peer->guard++;
	/* all accesses to the peer's memory are ordered before this store */
	hal_rx_back(peer->hp, UNM_PEER_BACK_GUARD, peer->guard);
}
