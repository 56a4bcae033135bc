/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_peer.c - the peers of an interface: their objects, the search for one
 * by identity or address, and the events about them that the caller has not
 * taken yet. hal_dev_life.c decides when a peer ends.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_dma.h"
#include "hal/dev/hal_dev_mem.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_region.h"
#include "hal/hal_peer.h"

/* ---- Peers by identity and by address ---------------------------------- */

static struct dev_peer **bucket(struct dev_if *dif, uint64_t identity)
{
	uint64_t key = (identity ^ identity >> 24 ^ identity >> 32) *
		       UINT64_C(2654435761);

	return &dif->hash[key >> 16 & (DEV_PEERS_HASH - 1)];
}

struct dev_peer *dev_peer_of(struct dev_if *dif, uint64_t identity)
{
	struct dev_peer *peer = *bucket(dif, identity);

	while (peer != NULL && peer->identity != identity)
		peer = peer->hash_next;
	return peer;
}

struct dev_peer *dev_peer_find(struct dev_if *dif, const struct hal_addr *addr)
{
	struct dev_peer *peer, *dead = NULL;

	for (peer = dif->peers; peer != NULL; peer = peer->next) {
		const struct hal_addr *a = &peer->p.addr;

		if (a->board != addr->board || a->iface != addr->iface ||
		    a->uid != addr->uid)
			continue;
		if (dev_lives(peer) && (a->nonce == addr->nonce ||
					addr->nonce == HAL_ADDR_ANY))
			return peer;
		if (a->nonce == addr->nonce)
			dead = peer;
	}
	return dead;
}

int dev_peer_new(struct dev_if *dif, const struct hal_addr *addr,
		 uint64_t identity, struct dev_peer **out)
{
	struct dev_peer *peer, **at = bucket(dif, identity);

	peer = hal_peer_alloc(&dif->i, addr, sizeof(*peer));
	if (peer == NULL)
		return -FI_ENOMEM;
	unm_list_init(&peer->waiting);
	peer->identity = identity;
	peer->session = ++dif->sessions;
	peer->dest = hal_dest(addr->board, addr->iface, dif->info.base_dest);
	peer->hash_next = *at;
	*at = peer;
	peer->next = dif->peers;
	peer->pprev = &dif->peers;
	if (peer->next != NULL)
		peer->next->pprev = &peer->next;
	dif->peers = peer;
	dif->npeers++;
	*out = peer;
	return 0;
}

static void lists_remove(struct dev_if *dif, struct dev_peer *peer)
{
	struct dev_peer **at = bucket(dif, peer->identity);

	while (*at != peer)
		at = &(*at)->hash_next;
	*at = peer->hash_next;
	if (dif->poll_next == peer)
		dif->poll_next = peer->next;
	if (dif->lookup_next == peer)
		dif->lookup_next = peer->next;
	*peer->pprev = peer->next;
	if (peer->next != NULL)
		peer->next->pprev = peer->pprev;
	dif->npeers--;
}

void dev_peer_forget(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);

	lists_remove(dif, peer);
	dev_rmems_free(peer);
	dev_region_drop(&peer->space);
	dev_region_drop(&peer->link);
	dev_region_drop(&peer->back);
	dev_region_abandon(dif->mm, &peer->rspace);
	dev_region_drop(&peer->rspace);
	dev_region_drop(&peer->rlink);
	dev_region_abandon(dif->mm, &peer->rback);
	dev_region_drop(&peer->rback);
	free(peer->cells);
	free(peer->queue);
	free(peer);
}

void dev_peer_drop(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);

	dev_dma_cancel(dif, peer);
	unm_list_remove(&peer->waiting);
	hal_inbound_remove(&peer->p);
	dif->nevents -= (uint32_t)__builtin_popcount(peer->ev_pending);
	if (peer->accept == DEV_ACCEPT_BACK)
		dif->naccepting--;
	if (peer->dying != 0 && !peer->p.dead)
		dif->ndying--;
	if (dif->pif_peer == peer)
		dif->pif_peer = NULL;
	dev_peer_forget(peer);
}

/* ---- Events ------------------------------------------------------------ */

void dev_event(struct dev_peer *peer, enum hal_event_type type, int status)
{
	if (type == HAL_EV_DEAD)
		peer->ev_status = status;
	peer->ev_pending |= (uint8_t)(1u << type);
	dev_if(peer->p.hif)->nevents++;
}

/*
 * Must the events of this peer wait? The caller knows one object of an identity
 * at a time: an older one, which has ended since there is a newer one, is
 * reported first, with its end, and freed.
 */
static bool must_wait(const struct dev_peer *peer)
{
	const struct dev_peer *old = peer->hash_next;

	while (old != NULL && old->identity != peer->identity)
		old = old->hash_next;
	return old != NULL && peer->p.rx_slot == UINT32_MAX;
}

int dev_take_events(struct dev_if *dif, struct hal_event *ev, int max)
{
	struct dev_peer *peer;
	int n = 0;

	for (peer = dif->peers; peer != NULL; peer = peer->next) {
		if (peer->ev_pending == 0 || must_wait(peer))
			continue;
		while (n < max && peer->ev_pending != 0) {
			peer->ev_pending = hal_peer_event(&peer->p,
				peer->ev_pending, peer->ev_status, &ev[n++]);
			peer->known = true;
			dif->nevents--;
		}
		if (n == max || dif->nevents == 0)
			break;
	}
	return n;
}
