/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rkey.c - remote keys of peers' regions, and the guard that protects
 * direct accesses from revocations. unm_cache.c holds the keys.
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
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_stats.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "rma/unm_cache.h"
#include "rma/unm_rkey.h"
#include "unm_env.h"
#include "util/unm_list.h"

/* ---- Requesting ------------------------------------------------------ */

/* The cache's entry of a key, also one whose RKEY has not arrived; or NULL. */
static struct unm_cached *unm_rkey_entry(const struct unm_peer *peer,
					 uint64_t key)
{
	return unm_cache_find(peer, key, 0, UNM_CACHED_REGION);
}

bool unm_rkey_wanted(struct unm_peer *peer, uint64_t key)
{
	return g_unm_env.direct && unm_rkey_entry(peer, key) == NULL &&
		unm_cache_room(peer);
}

void unm_rkey_requested(struct unm_peer *peer, uint64_t key)
{
	/* if there is no memory, the next request asks again */
	unm_cache_add(peer, key, 0, UNM_CACHED_REGION);
}

void unm_rkey_request_failed(struct unm_peer *peer, uint64_t key)
{
	struct unm_cached *r = unm_rkey_entry(peer, key);

	if (r != NULL && !r->arrived)
		unm_cache_evict(peer, r);
}

/* Import the dmable memory of a region, or continue the import. True if the
 * memory can be accessed. A failed import makes requests the only access. */
static bool unm_rkey_import(struct unm_peer *peer, struct unm_cached *r)
{
	struct unm_cached *mem;
	int ret;

	if (r->mem != NULL)
		return true;
	r->refs++;			/* not evicted for its own memory */
	ret = unm_cache_import(peer, &r->mem_key, &mem);
	r->refs--;
	if (ret == 0) {
		/* the peer's description of its region is not trusted */
		if (unm_cached_covers(mem, r->base, r->len)) {
			r->mem = mem;
			r->win = mem->win;
			return true;
		}
		unm_cached_put(mem);
	}
	if (ret != -FI_EAGAIN && ret != -FI_ENOSPC)
		r->reach = UNM_REACH_REQUEST;
	return false;
}

/*
 * The region is a shared mapping of its owner. If this process has mapped the
 * memory as well, access it through an alias of this mapping; else by
 * cross-memory attach, as other memory of the owner.
 */
static void unm_rkey_alias(struct unm_peer *peer, struct unm_cached *r)
{
	uint32_t access = (r->reach & UNM_REACH_READ ? HAL_ALIAS_READ : 0) |
		(r->reach & UNM_REACH_WRITE ? HAL_ALIAS_WRITE : 0);

	if (!g_unm_env.alias ||
	    hal_alias_open(peer->hp, &r->mem_key, r->len, access,
			   &r->win) != 0) {
		r->reach = (r->reach & ~UNM_REACH_HOW) | UNM_REACH_ATTACH;
		return;
	}
	/* after it was opened: most memory of peers is not mapped here, and
	 * nothing must be evicted for it */
	if (!unm_cache_space(peer, r->len)) {
		hal_alias_close(peer->ep->hif->hal, &r->win);
		r->reach = (r->reach & ~UNM_REACH_HOW) | UNM_REACH_ATTACH;
		return;
	}
	r->alias = peer->ep->hif->hal;
	r->base = 0;			/* offset in the alias */
	unm_cache_mapped(peer, r, r->len);
	peer->ep->stats->aliases++;
}

int unm_rkey_received(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_cached *r = unm_rkey_entry(peer, m->key);

	if (r == NULL || r->arrived)	/* not requested */
		return 0;
	/* the owner revoked keys after it had sent this RKEY: drop it, so that
	 * the next request asks again */
	unm_rkey_poll_revoked(peer);
	if ((uint32_t)m->epoch != (uint32_t)(peer->revoked >> 32)) {
		peer->ep->stats->rkey_stale++;
		unm_cache_evict(peer, r);
		return 0;
	}
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
	r->arrived = true;		/* before, it is not evicted */
	peer->ep->stats->rkeys++;
	return 0;
}

/* True if the region can be accessed directly now. */
static bool unm_rkey_usable(struct unm_peer *peer, struct unm_cached *r)
{
	switch (r->reach & UNM_REACH_HOW) {
	case UNM_REACH_DMABLE:
		return unm_rkey_import(peer, r);
	case UNM_REACH_SHARED:
		return true;
	case UNM_REACH_ATTACH:
		return peer->hp->dma_any && !peer->attach_off &&
			g_unm_env.attach;
	default:
		return false;
	}
}

struct unm_cached *unm_rkey_find(struct unm_peer *peer, uint64_t key)
{
	struct unm_cached *r;

	if (!g_unm_env.direct)
		return NULL;
	r = unm_rkey_entry(peer, key);
	if (r == NULL || !r->arrived)
		return NULL;
	unm_cache_used(peer, r);
	if (!unm_rkey_usable(peer, r))
		return NULL;
	peer->ep->stats->rkey_hits++;
	return r;
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
	unm_list_for_each_safe(pos, tmp, &peer->cached) {
		struct unm_cached *r = unm_container(pos, struct unm_cached,
						     link);

		/* an entry whose RKEY has not arrived stays: its epoch shows
		 * whether the RKEY is valid; imported memory never arrives */
		if (!r->arrived || (one && r->region != (uint32_t)word))
			continue;
		peer->ep->stats->rkey_stale++;
		unm_cache_evict(peer, r);
	}
}

bool unm_guard_enter(struct unm_peer *peer)
{
	if (peer->accesses == 0) {
		/* a peer on another host confirms the odd value after a round
		 * trip: then the next call finds it confirmed */
		peer->guard_entering = true;
		if (hal_rx_back_sync(peer->hp, UNM_PEER_BACK_GUARD,
				     peer->guard + 1) != 0)
			return false;
		peer->guard_entering = false;
		peer->guard++;
	}
	peer->accesses++;
	if (hal_tx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED) == peer->revoked)
		return true;
	unm_guard_leave(peer);
	unm_rkey_poll_revoked(peer);
	return false;
}

void unm_guard_withdraw(struct unm_peer *peer)
{
	if (!peer->guard_entering)
		return;
	peer->guard_entering = false;
	/* the odd value may have reached the owner */
	if (peer->hp != NULL)
		hal_rx_back(peer->hp, UNM_PEER_BACK_GUARD, peer->guard);
}

void unm_guard_leave(struct unm_peer *peer)
{
	if (--peer->accesses != 0 || peer->hp == NULL)
		return;
	peer->guard++;
	/* all accesses to the peer's memory are ordered before this store */
	hal_rx_back(peer->hp, UNM_PEER_BACK_GUARD, peer->guard);
}
