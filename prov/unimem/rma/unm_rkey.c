/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rkey.c - the cache of peers' remote keys, and the guard that protects
 * direct accesses from revocations.
 *
 * The first request to a region asks its owner for the remote key
 * (unm_rkey_requested()); the RKEY message brings the key
 * (unm_rkey_received()), and unm_direct.c uses it (unm_rkey_find()).
 * docs/protocol.md, section 11.
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

#define UNM_RKEYS_MAX	1024	/* most cached remote keys of a peer */
#define UNM_RKEY_BITS	4	/* log2 of the initial number of buckets */

/* ---- Entries --------------------------------------------------------- */

/*
 * A peer's remote keys are in a list, last used first, and in a hash table by
 * key. The table has 2^rkey_bits buckets. It is allocated with the first
 * remote key, and doubles when another key is added to as many as buckets.
 */
static struct unm_rkey **unm_rkey_bucket(const struct unm_peer *peer,
					 uint64_t key)
{
	/* applications use counters, shifted values or random numbers as keys,
	 * so mix all bits */
	uint64_t h = (key ^ key >> 32) * UINT64_C(0x9E3779B97F4A7C15);

	return &peer->rkey_hash[h >> (64 - peer->rkey_bits)];
}

/* The cache's entry of a key, also one whose RKEY has not arrived; or NULL. */
static struct unm_rkey *unm_rkey_entry(const struct unm_peer *peer,
				       uint64_t key)
{
	struct unm_rkey *r = unm_container(peer->rkeys.next,
					   struct unm_rkey, link);

	if (unm_list_empty(&peer->rkeys))
		return NULL;
	if (r->key == key)		/* used last, most likely again */
		return r;
	r = *unm_rkey_bucket(peer, key);
	while (r != NULL && r->key != key)
		r = r->chain;
	return r;
}

static void unm_rkey_hash(struct unm_peer *peer, struct unm_rkey *r)
{
	struct unm_rkey **bucket = unm_rkey_bucket(peer, r->key);

	r->chain = *bucket;
	*bucket = r;
}

static void unm_rkey_unhash(struct unm_peer *peer, struct unm_rkey *r)
{
	struct unm_rkey **pos = unm_rkey_bucket(peer, r->key);

	while (*pos != r)
		pos = &(*pos)->chain;
	*pos = r->chain;
}

/* Make buckets for another remote key. False if the first table cannot be
 * allocated. */
static bool unm_rkey_grow(struct unm_peer *peer)
{
	uint8_t bits = peer->rkey_hash == NULL ? UNM_RKEY_BITS :
		peer->rkey_bits + 1;
	struct unm_rkey **table;

	if (peer->rkey_hash != NULL &&
	    peer->nrkeys < UINT32_C(1) << peer->rkey_bits)
		return true;
	table = calloc(UINT64_C(1) << bits, sizeof(*table));
	if (table == NULL)		/* keep the old one: longer chains */
		return peer->rkey_hash != NULL;
	free(peer->rkey_hash);
	peer->rkey_hash = table;
	peer->rkey_bits = bits;
	unm_list_for_each(pos, &peer->rkeys)
		unm_rkey_hash(peer, unm_container(pos, struct unm_rkey,
						  link));
	return true;
}

static void unm_rkey_free(struct unm_rkey *r)
{
	if (r->mem != NULL)
		unm_import_put(r->mem);
	if (r->alias != NULL)
		hal_alias_close(r->alias, &r->win);
	free(r);
}

/* Take an entry out of the cache. It is freed now, or when the operations that
 * use it release it. */
static void unm_rkey_evict(struct unm_peer *peer, struct unm_rkey *r)
{
	unm_list_remove(&r->link);
	unm_rkey_unhash(peer, r);
	peer->nrkeys--;
	r->stale = true;
	if (r->refs == 0)
		unm_rkey_free(r);
}

void unm_rkey_put(struct unm_rkey *r)
{
	if (--r->refs == 0 && r->stale)
		unm_rkey_free(r);
}

void unm_rkey_evict_all(struct unm_peer *peer)
{
	unm_list_for_each_safe(pos, tmp, &peer->rkeys)
		unm_rkey_evict(peer, unm_container(pos, struct unm_rkey,
						   link));
	free(peer->rkey_hash);
	peer->rkey_hash = NULL;
}

void unm_rkey_free_all(struct unm_peer *peer)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&peer->rkeys)) != NULL) {
		struct unm_rkey *r = unm_container(node, struct unm_rkey,
						   link);

		if (r->alias != NULL)
			hal_alias_close(r->alias, &r->win);
		free(r);		/* unm_import_free_all() frees r->mem */
	}
	free(peer->rkey_hash);
	peer->rkey_hash = NULL;
}

/* ---- Requesting ------------------------------------------------------ */

/* The remote key that was used least recently, if it may be evicted: not while
 * it is in use or its RKEY is expected. Else NULL. */
static struct unm_rkey *unm_rkey_lru(const struct unm_peer *peer)
{
	struct unm_rkey *r = unm_container(peer->rkeys.prev,
					   struct unm_rkey, link);

	return r->arrived && r->refs == 0 ? r : NULL;
}

bool unm_rkey_wanted(const struct unm_peer *peer, uint64_t key)
{
	return g_unm_env.direct && unm_rkey_entry(peer, key) == NULL &&
		(peer->nrkeys < UNM_RKEYS_MAX ||
		 unm_rkey_lru(peer) != NULL);
}

void unm_rkey_requested(struct unm_peer *peer, uint64_t key)
{
	struct unm_rkey *r = calloc(1, sizeof(*r));

	if (peer->nrkeys == UNM_RKEYS_MAX)
		unm_rkey_evict(peer, unm_rkey_lru(peer));
	if (r == NULL || !unm_rkey_grow(peer)) {
		free(r);		/* the next request asks again */
		return;
	}
	r->key = key;
	unm_list_append(peer->rkeys.next, &r->link);
	unm_rkey_hash(peer, r);
	peer->nrkeys++;
}

void unm_rkey_request_failed(struct unm_peer *peer, uint64_t key)
{
	struct unm_rkey *r = unm_rkey_entry(peer, key);

	if (r != NULL && !r->arrived)
		unm_rkey_evict(peer, r);
}

/* Import the dmable memory of a region, or continue the import. True if the
 * memory can be accessed. A failed import makes requests the only access. */
static bool unm_rkey_import(struct unm_peer *peer, struct unm_rkey *r)
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
		r->reach = UNM_REACH_REQUEST;
	return false;
}

/*
 * The region is a shared mapping of its owner. If this process has mapped the
 * memory as well, access it through an alias of this mapping; else by
 * cross-memory attach, as other memory of the owner.
 */
static void unm_rkey_alias(struct unm_peer *peer, struct unm_rkey *r)
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

int unm_rkey_received(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_rkey *r = unm_rkey_entry(peer, m->key);

	if (r == NULL || r->arrived)	/* not requested */
		return 0;
	/* the owner revoked keys after it had sent this RKEY: drop it, so that
	 * the next request asks again */
	unm_rkey_poll_revoked(peer);
	if ((uint32_t)m->epoch != (uint32_t)(peer->revoked >> 32)) {
		unm_rkey_evict(peer, r);
		return 0;
	}
	r->arrived = true;
	r->region = m->region;
	r->reach = m->reach;
	r->start = m->addr;
	r->len = m->len;
	r->base = m->base;
	r->mem_key.word[0] = m->mem_key[0];
	r->mem_key.word[1] = m->mem_key[1];
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_DMABLE)
		unm_rkey_import(peer, r);
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_SHARED)
		unm_rkey_alias(peer, r);
	peer->ep->stats->rkeys++;
	return 0;
}

struct unm_rkey *unm_rkey_find(struct unm_peer *peer, uint64_t key)
{
	struct unm_rkey *r;

	if (!g_unm_env.direct)
		return NULL;
	r = unm_rkey_entry(peer, key);
	if (r == NULL || !r->arrived)
		return NULL;
	if (peer->rkeys.next != &r->link) {
		unm_list_remove(&r->link);
		unm_list_append(peer->rkeys.next, &r->link);
	}
	switch (r->reach & UNM_REACH_HOW) {
	case UNM_REACH_DMABLE:
		return unm_rkey_import(peer, r) ? r : NULL;
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

void unm_rkey_poll_revoked(struct unm_peer *peer)
{
	uint64_t word = hal_tx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED);
	bool one = (uint32_t)(word >> 32) ==
		(uint32_t)(peer->revoked >> 32) + 1;

	if (word == peer->revoked || peer->accesses != 0)
		return;
	peer->revoked = word;
	unm_list_for_each_safe(pos, tmp, &peer->rkeys) {
		struct unm_rkey *r = unm_container(pos, struct unm_rkey,
						   link);

		/* an entry whose RKEY has not arrived stays: its epoch shows
		 * whether the RKEY is valid */
		if (r->arrived && (!one || r->region == (uint32_t)word))
			unm_rkey_evict(peer, r);
	}
}

bool unm_guard_enter(struct unm_peer *peer)
{
	if (peer->accesses == 0) {
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
	peer->accesses++;
	if (hal_tx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED) == peer->revoked)
		return true;
	unm_guard_leave(peer);
	unm_rkey_poll_revoked(peer);
	return false;
}

void unm_guard_leave(struct unm_peer *peer)
{
	if (--peer->accesses != 0 || peer->hp == NULL)
		return;
	peer->guard++;
	/* all accesses to the peer's memory are ordered before this store */
	hal_rx_back(peer->hp, UNM_PEER_BACK_GUARD, peer->guard);
}
