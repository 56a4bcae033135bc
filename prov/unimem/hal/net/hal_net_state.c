/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_state.c - the objects of peers on other hosts: by number and by
 * address, their events, and the first notice of their ends.
 *
 * hal_net_state.h declares the entry points. Connections are in
 * hal_net_conn.c, what callers of the HAL do with peers in hal_net_peer.c.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/hal_fault_point.h"
#include "hal/hal_peer.h"
#include "hal/net/hal_net_dir.h"
#include "hal/net/hal_net_state.h"
#include "util/unm_clock.h"
#include "util/unm_random.h"

#define REACH_MIN	16		/* places for connections for awaited
					 * packets in any case */
#define RESUME_MAX	7		/* of net_peer.resumes: 64 s */
#define RESUME_NS	UINT64_C(1000000000)	/* pause after the first turn;
						 * then doubles */

/* ---- The table of peers -------------------------------------------- */

struct net_peer *net_peer_find(struct net_if *nif, const struct hal_addr *addr)
{
	struct net_peer *dead = NULL;

	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      link);

		if (memcmp(&peer->p.addr, addr, sizeof(*addr)) != 0)
			continue;
		if (!peer->p.dead && peer->dying == 0)
			return peer;
		dead = peer;
	}
	return dead;
}

bool net_peer_is_at(const struct net_peer *peer, const struct hal_addr *addr)
{
	const struct hal_addr *a = &peer->p.addr;

	return a->board == addr->board && a->iface == addr->iface &&
		(a->nonce == addr->nonce || a->nonce == HAL_ADDR_ANY ||
		 addr->nonce == HAL_ADDR_ANY) &&
		!peer->p.dead && peer->dying == 0;
}

bool net_peer_may_be_on(const struct net_peer *peer,
			const struct hal_host *host)
{
	const struct net_dir *dir = peer->nif->net->dir;

	return dir == NULL || dir->asked ||
		memcmp(peer->host.ip, host->ip, sizeof(host->ip)) == 0;
}

struct net_peer *net_peer_at(struct net_if *nif, const struct hal_addr *addr)
{
	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      link);

		if (net_peer_is_at(peer, addr))
			return peer;
	}
	return NULL;
}

bool net_peer_name(struct net_peer *peer, const struct hal_addr *addr,
		   const struct hal_host *host)
{
	if (peer->p.addr.nonce != HAL_ADDR_ANY)
		return memcmp(&peer->p.addr, addr, sizeof(*addr)) == 0;
	peer->p.addr = *addr;
	peer->host = *host;
	return true;
}

/* A number for the peer, by which frames name it. */
static int slot_take(struct net_if *nif, struct net_peer *peer)
{
	uint32_t i = 0, more = nif->nslots != 0 ? 2 * nif->nslots : 16;
	struct net_peer **slot;

	while (i < nif->nslots && nif->slot[i] != NULL)
		i++;
	if (i == nif->nslots) {
		slot = realloc(nif->slot, more * sizeof(*slot));
		if (slot == NULL)
			return -FI_ENOMEM;
		memset(slot + i, 0, (more - i) * sizeof(*slot));
		nif->slot = slot;
		nif->nslots = more;
	}
	nif->slot[i] = peer;
	peer->slot = i;
	return 0;
}

int net_peer_new(struct net_if *nif, const struct hal_addr *addr,
		 const struct hal_host *host, struct net_peer **out)
{
	struct net_peer *peer = hal_peer_alloc(nif->hif, addr, sizeof(*peer));

	if (peer == NULL)
		return -FI_ENOMEM;
	if (slot_take(nif, peer) != 0) {
		free(peer);
		return -FI_ENOMEM;
	}
	peer->p.ops = nif->peer_ops;
	peer->p.host = &peer->host;
	peer->p.tx.back = &peer->back;
	peer->host = *host;
	memcpy(peer->secret, host->secret, NET_SECRET);
	memset(peer->host.secret, 0, sizeof(peer->host.secret));
	peer->nif = nif;
	peer->token = unm_random();
	unm_list_init(&peer->event);
	unm_list_init(&peer->dirty);
	unm_list_init(&peer->queue);
	unm_list_init(&peer->active);
	unm_list_append(&nif->peers, &peer->link);
	unm_list_append(&nif->active, &peer->active);
	nif->npeers++;
	*out = peer;
	return 0;
}

void net_peer_used(struct net_peer *peer)
{
	unm_list_remove(&peer->active);
	unm_list_append(&peer->nif->active, &peer->active);
	peer->keeps = 0;
}

void net_peer_resume(struct net_peer *peer)
{
	peer->state = NET_DIALLING;
	peer->tries = 0;
	peer->redial = 1;
	peer->nif->dial_due = true;
	net_peer_used(peer);
	HAL_FAULT_POINT(HAL_FAULT_POINT_NET_RESUMED);
}

void net_peer_pause(struct net_peer *peer)
{
	unm_list_remove(&peer->active);
	peer->redial = 0;
	peer->resume_at = peer->resumes == 0 ? 0 : unm_now_ns() +
		(RESUME_NS << (peer->resumes - 1));
	peer->state = NET_SUSPENDED;
}

void net_peer_reach(struct net_peer *peer)
{
	struct net_hal *net = peer->nif->net;

	if (peer->reach_by == 0) {
		/* relaxed: a number, which orders nothing */
		atomic_fetch_add_explicit(&net->nreaching, 1,
					  memory_order_relaxed);
		peer->reach_by = unm_now_ns() + net->dial_ns;
		if (peer->resumes < RESUME_MAX)
			peer->resumes++;
	}
	peer->reaching = true;
}

void net_peer_yield(struct net_peer *peer)
{
	if (peer->reach_by != 0)
		/* relaxed: as above */
		atomic_fetch_sub_explicit(&peer->nif->net->nreaching, 1,
					  memory_order_relaxed);
	peer->reach_by = 0;
}

void net_peer_reached(struct net_peer *peer)
{
	net_peer_yield(peer);
	peer->reaching = false;
}

/* Peers that compute do not answer, so that their number has to be bounded. A
 * few more than there are free links: peers whose link was suspended need them,
 * too. */
static bool place_left(struct net_hal *net)
{
	/* relaxed: as above */
	uint32_t n = atomic_load_explicit(&net->nreaching,
					  memory_order_relaxed);

	return n < REACH_MIN ||
		n + atomic_load_explicit(&net->nlinks, memory_order_relaxed) <
		net->links_max;
}

bool net_peers_reach(struct net_hal *net)
{
	if (place_left(net))
		return true;
	/* relaxed: the ticks of all interfaces read it now and then */
	atomic_store_explicit(&net->reach_wanted, true, memory_order_relaxed);
	return false;
}

bool net_peers_want(struct net_hal *net)
{
	/* relaxed: as above */
	if (!atomic_load_explicit(&net->reach_wanted, memory_order_relaxed))
		return false;
	if (!place_left(net))
		return true;
	/* relaxed: the peer that wanted it has got it, or will; a peer without
	 * a place asks again once a second */
	atomic_store_explicit(&net->reach_wanted, false, memory_order_relaxed);
	return false;
}

uint64_t net_peer_identity(const struct net_peer *peer)
{
	const struct hal_addr *a = &peer->p.addr;
	uint64_t id = unm_mix(a->nonce ^ unm_mix((uint64_t)a->board << 32 |
						 a->iface));

	return id & HAL_HEAD_ID_MASK;
}

/* ---- Events -------------------------------------------------------- */

void net_peer_event(struct net_peer *peer, enum hal_event_type type,
		    int status)
{
	if (peer->ev_pending == 0)
		unm_list_append(&peer->nif->events, &peer->event);
	peer->ev_pending |= (uint8_t)(1u << type);
	if (type == HAL_EV_DEAD)
		peer->ev_status = status;
}

int net_events_take(struct net_if *nif, struct hal_event *ev, int max)
{
	int n = 0;

	while (n < max && !unm_list_empty(&nif->events)) {
		struct net_peer *peer = unm_container(nif->events.next,
						      struct net_peer, event);

		peer->ev_pending = hal_peer_event(&peer->p, peer->ev_pending,
						  peer->ev_status, &ev[n++]);
		if (peer->ev_pending == 0)
			unm_list_remove(&peer->event);
	}
	return n;
}

/* ---- Ends ---------------------------------------------------------- */

void net_peer_dying(struct net_peer *peer, int status)
{
	uint64_t drain = peer->bye ? NET_BYE_NS :
		peer->out != NULL ? peer->nif->net->drain_ns : 0;

	if (peer->p.dead || (peer->dying != 0 && !peer->bye))
		return;
	if (peer->dying == 0)
		peer->nif->ndying++;
	if (unm_list_empty(&peer->active))	/* it was suspended */
		net_peer_used(peer);
	peer->dying = status;
	peer->dead_by = unm_now_ns() + drain;
}

void net_peer_lost(struct net_peer *peer, const char *what, int status)
{
	if (peer->dying == 0 && (peer->met || peer->s.taken != 0)) {
		peer->lost = what;
		peer->lost_status = status;
	}
	net_peer_dying(peer, -FI_ECONNRESET);
}
