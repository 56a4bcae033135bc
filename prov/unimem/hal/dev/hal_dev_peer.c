/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_peer.c - the peers of an interface: their objects, the search for one
 * by identity or address, and the events about them that the caller has not
 * taken yet. hal_dev_life.c decides when a peer ends.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_dma.h"
#include "hal/dev/hal_dev_mem.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_region.h"

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

	/* hal_rx and hal_tx must not share a cache line with other data. */
	peer = aligned_alloc(HAL_LINE, (sizeof(*peer) + HAL_LINE - 1) &
				       ~(size_t)(HAL_LINE - 1));
	if (peer == NULL)
		return -FI_ENOMEM;
	memset(peer, 0, sizeof(*peer));
	peer->p.hif = &dif->i;
	peer->p.ops = dif->i.ops;
	peer->p.addr = *addr;
	peer->p.rx_slot = UINT32_MAX;
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

int dev_inbound_reserve(struct dev_if *dif)
{
	uint32_t max = dif->inbound_max != 0 ? dif->inbound_max : 16;
	struct hal_peer **grown;

	if (dif->npeers <= dif->inbound_max)
		return 0;
	while (max < dif->npeers)
		max *= 2;
	grown = realloc(dif->i.inbound, max * sizeof(*grown));
	if (grown == NULL)
		return -FI_ENOMEM;
	dif->i.inbound = grown;
	dif->inbound_max = max;
	return 0;
}

/* Remove a peer from hif->inbound, if it is listed there. */
static void inbound_remove(struct dev_if *dif, struct dev_peer *peer)
{
	uint32_t slot = peer->p.rx_slot;
	struct hal_peer *last;

	if (slot == UINT32_MAX)
		return;
	last = dif->i.inbound[--dif->i.ninbound];
	dif->i.inbound[slot] = last;
	last->rx_slot = slot;
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
	dev_backlog_remove(peer);
	inbound_remove(dif, peer);
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

static void take_event(struct dev_if *dif, struct dev_peer *peer,
		       struct hal_event *ev)
{
	enum hal_event_type type = HAL_EV_INBOUND;

	while (!(peer->ev_pending & 1u << type))
		type++;
	peer->ev_pending &= (uint8_t)~(1u << type);
	dif->nevents--;
	if (type == HAL_EV_INBOUND) {
		/* The caller may use hif->inbound at any time, so the peer is
		 * not listed before the caller knows it. */
		peer->known = true;
		peer->p.rx_slot = dif->i.ninbound;
		dif->i.inbound[dif->i.ninbound++] = &peer->p;
	}
	ev->type = type;
	ev->status = type == HAL_EV_DEAD ? peer->ev_status : 0;
	ev->peer = &peer->p;
}

int dev_take_events(struct dev_if *dif, struct hal_event *ev, int max)
{
	struct dev_peer *peer;
	int n = 0;

	for (peer = dif->peers; peer != NULL; peer = peer->next) {
		if (peer->ev_pending == 0 || must_wait(peer))
			continue;
		while (n < max && peer->ev_pending != 0)
			take_event(dif, peer, &ev[n++]);
		if (n == max || dif->nevents == 0)
			break;
	}
	return n;
}
