/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_peer.c - peers of an interface: names, events, who lives, ends.
 *
 * Nothing signals that a peer has accepted, stored or ended: a few are looked
 * at in every service, in turn, and by clock they are looked up in the table of
 * their board's driver, which knows who holds an interface. The table is read
 * in the own board's memory, so that a board that is dead stops nobody who asks
 * whether its interfaces live (hal_kdev.h).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/dev/hal_dev.h"

#define LOOK_PEERS	16		/* per service */
#define LIFE_NS		50000		/* between two looks at a table */
#define LIFE_PEERS	256		/* of them at once, after a sleep */
#define READ_TRIES	8		/* of an entry that changes */
#define LATE_NS		500000000u	/* last packets, after an end */

/* ---- Peers by identity and by address ---------------------------------- */

static struct dev_peer **bucket(struct dev_if *dif, uint64_t identity)
{
	uint64_t key = (identity ^ identity >> 24 ^ identity >> 32) *
		       UINT64_C(2654435761);

	return &dif->hash[key >> 16 & (DEV_PEERS_HASH - 1)];
}

/* The newest of that identity, dead or alive. */
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

	/* the hot halves of a peer start on lines of their own */
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

/* Every peer may become inbound: room for all, so that events need none. */
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
	if (dif->look == peer)
		dif->look = peer->next;
	if (dif->life == peer)
		dif->life = peer->next;
	*peer->pprev = peer->next;
	if (peer->next != NULL)
		peer->next->pprev = peer->pprev;
	dif->npeers--;
}

/* Private memory and mappings only: also for a forked child. */
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

/* Undo dev_peer_new() and all that was attached since. */
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

/* Say good-bye: both halves, each to who reads it. */
static void say_end(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);

	if (peer->link.mm != NULL)
		dev_last_words(peer);
	if (peer->rback.mm != NULL && !peer->gone) {
		dif->io->store(&peer->rback.map,
			       offsetof(struct dev_back, back.closed),
			       &peer->session, sizeof(peer->session));
		dev_stored(peer, &peer->rback.map);
	}
	if (!peer->gone)
		dev_wake_now(peer);
}

void dev_peer_free(struct hal_peer *hp)
{
	struct dev_peer *peer = dev_peer(hp);

	if (dev_if(hp->hif)->pid != getpid())
		return;		/* a forked child: if_close frees the rest */
	/* a space that was announced and never used is ours to let go of */
	if (peer->accept != DEV_ACCEPT_NONE && peer->rspace.mm == NULL)
		dev_space_map(peer);
	if (!peer->gone && (peer->cut || !hp->dead))
		say_end(peer);
	dev_peer_drop(peer);
}

/* ---- Events ------------------------------------------------------------ */

/* A peer has at most one event of each kind. */
void dev_event(struct dev_peer *peer, enum hal_event_type type, int status)
{
	if (type == HAL_EV_DEAD)
		peer->ev_status = status;
	peer->ev_pending |= (uint8_t)(1u << type);
	dev_if(peer->p.hif)->nevents++;
}

/* An older self is in the caller's hands, or is to be told of first, its end
 * too: one object at a time. It has ended, else there were no newer one. */
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
		/* listed when told, not before the caller knows it */
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

/* ---- Who lives --------------------------------------------------------- */

static const struct hal_mmio_map *table_of(struct dev_if *dif, uint32_t board)
{
	struct hal_mmio_map *map = &dif->tables[board];

	if (map->mm == NULL &&
	    dif->io->map(dif->mm, hal_kdev_off(HAL_KDEV_TABLE,
			 (uint64_t)board * DEV_PAGE), DEV_PAGE, map) != 0) {
		map->mm = NULL;
		return NULL;
	}
	return map;
}

/* Who holds an interface. -FI_ECONNREFUSED: nobody. */
int dev_holder(struct dev_if *dif, uint32_t board, uint32_t iface,
	       struct hal_kdev_entry *entry)
{
	const struct hal_mmio_map *map = table_of(dif, board);
	uint64_t off = (uint64_t)iface * sizeof(*entry);
	uint64_t after;

	if (map == NULL)
		return -FI_ENOMEM;
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t before;

		/* in this order: the driver writes it the other way round */
		dif->io->load(map, off, &before, sizeof(before));
		dif->io->status_before_memory(dif->mm);
		dif->io->load(map, off, entry, sizeof(*entry));
		dif->io->status_before_memory(dif->mm);
		dif->io->load(map, off, &after, sizeof(after));
		if (before == after && entry->nonce == after)
			return after == 0 ? -FI_ECONNREFUSED : 0;
	}
	return -FI_EAGAIN;
}

/* One load: 1 as long as the peer holds its interface, else 0; -FI_ENOMEM. */
int dev_holds(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	const struct hal_mmio_map *map = table_of(dif, peer->p.addr.board);
	uint64_t nonce;

	if (map == NULL)
		return -FI_ENOMEM;
	dif->io->load(map, (uint64_t)peer->p.addr.iface *
		      sizeof(struct hal_kdev_entry), &nonce, sizeof(nonce));
	return nonce == peer->p.addr.nonce;
}

/* Its interface is nobody's, or another's: nothing of it is to be touched. */
static void gone(struct dev_peer *peer)
{
	peer->gone = true;
	dev_doom(peer, peer->told_out || peer->accept != DEV_ACCEPT_NONE ?
		 -FI_ECONNRESET : -FI_ECONNREFUSED);
}

/* A load from that board ended in a bus error: so have its peers, all of
 * them. */
static void board_lost(struct dev_if *dif, uint32_t board)
{
	hal_log(0, "board %u does not answer (bus error): the interfaces of "
		"it that interface %u:%u is connected to are taken for dead",
		board, dif->i.addr.board, dif->i.addr.iface);
	for (struct dev_peer *p = dif->peers; p != NULL; p = p->next)
		if (p->p.addr.board == board && !p->p.dead && !p->gone)
			gone(p);
}

/*
 * All that was stored to the peer, by this map, is there when this returns 0.
 * The only access that waits for the peer's board. It is not done where the
 * table, in the own board's memory, says that the peer has ended, alone or with
 * its board: -FI_ECONNRESET, as where the bus reports an error.
 */
int dev_stored(struct dev_peer *peer, const struct hal_mmio_map *map)
{
	struct dev_if *dif = dev_if(peer->p.hif);

	if (peer->gone)
		return -FI_ECONNRESET;
	if (dev_holds(peer) == 0) {
		/* its last packets are looked for after this */
		dif->io->status_before_memory(dif->mm);
		gone(peer);
		return -FI_ECONNRESET;
	}
	if (dif->io->stores_before_notify(map) == 0)
		return 0;
	board_lost(dif, peer->p.addr.board);
	return -FI_ECONNRESET;
}

/* Have no more of it, whatever it says. */
void dev_cut(struct dev_peer *peer)
{
	peer->cut = true;
	dev_doom(peer, -FI_EIO);
}

/* The peer ended or broke the rules; dev_bury() declares it. */
void dev_doom(struct dev_peer *peer, int status)
{
	if (peer->dying != 0)
		return;
	peer->dying = status;
	peer->dying_at = dev_now();
	dev_if(peer->p.hif)->ndying++;
}

/* Is its interface still its own? */
static void check_life(struct dev_if *dif, struct dev_peer *peer)
{
	if (peer->gone || peer->p.dead || dev_holds(peer) != 0)
		return;
	/* its last packets are looked for after this */
	dif->io->status_before_memory(dif->mm);
	gone(peer);
}

/* Has the receiver accepted us, or gone? */
static void check_back(struct dev_peer *peer)
{
	struct dev_back *back = dev_back(peer);
	uint64_t answer;

	/* nothing is read that these order */
	answer = atomic_load_explicit(&back->answer, memory_order_relaxed);
	if (answer == DEV_ANSWER_WELCOME) {
		if (!peer->told_out && peer->p.tx.open) {
			peer->told_out = true;
			dev_event(peer, HAL_EV_CONNECTED, 0);
		}
	} else if (answer != DEV_ANSWER_NONE && !peer->told_out) {
		hal_log(answer != DEV_ANSWER_VERSION, "interface %u:%u refuses "
			"the connection: %s", peer->p.addr.board,
			peer->p.addr.iface, answer == DEV_ANSWER_VERSION ?
			"another version or platform file" :
			"it could not take it");
		/* it may be connected to us: dev_peer_free() tells it */
		peer->cut = true;
		dev_doom(peer, -FI_ECONNREFUSED);
		return;
	}
	if (atomic_load_explicit(&back->back.closed,
				 memory_order_relaxed) != 0)
		dev_doom(peer, -FI_ECONNRESET);
}

static void look_at(struct dev_peer *peer)
{
	if (peer->accept == DEV_ACCEPT_BACK)
		dev_accept_back(peer);
	if (peer->hello != DEV_HELLO_NONE && dev_lives(peer))
		check_back(peer);
	/* acted upon with an acquire in inbound_over() */
	if (peer->accept != DEV_ACCEPT_NONE && dev_lives(peer) &&
	    atomic_load_explicit(&dev_rlink(peer)->end,
				 memory_order_relaxed) != 0)
		dev_doom(peer, -FI_ECONNRESET);
}

/* How many are due to be looked up: who has slept catches up. */
static uint32_t life_due(struct dev_if *dif)
{
	uint64_t now = dev_now(), n;

	if (now < dif->life_at)
		return 0;
	n = 1 + (now - dif->life_at) / LIFE_NS;
	dif->life_at = now + LIFE_NS;
	if (n > LIFE_PEERS)
		n = LIFE_PEERS;
	return n < dif->npeers ? (uint32_t)n : dif->npeers;
}

void dev_look_around(struct dev_if *dif)
{
	uint32_t due = life_due(dif);
	uint32_t n = due > LOOK_PEERS ? due : LOOK_PEERS;

	if (n > dif->npeers)
		n = dif->npeers;
	for (uint32_t i = 0; i < n; i++) {
		struct dev_peer *peer = dif->look != NULL ? dif->look :
					dif->peers;

		dif->look = peer->next;
		if (!peer->p.dead)
			look_at(peer);
	}
	for (; due != 0; due--) {
		if (dif->life == NULL)
			dif->life = dif->peers;
		check_life(dif, dif->life);
		dif->life = dif->life->next;
	}
}

/* ---- Ends -------------------------------------------------------------- */

/* What has not come by now was lost with its sender's patience. */
bool dev_late(const struct dev_peer *peer)
{
	return dev_now() - peer->dying_at > LATE_NS;
}

/*
 * Is all here that it sent? What its mailbox packets lack is in the link page.
 * A peer that is gone without a word, or lied, sends nothing more.
 */
static bool inbound_over(struct dev_peer *peer)
{
	struct dev_link *link = dev_rlink(peer);
	uint64_t last, end;

	if (peer->accept == DEV_ACCEPT_NONE)
		return true;
	/* pairs with the release of end, by dev_last_words() */
	end = atomic_load_explicit(&link->end, memory_order_acquire);
	if (end == 0)
		return dev_silent(peer) || dev_late(peer);
	last = ((volatile struct dev_link *)link)->last;
	if (--end - last > DEV_DEPTH_MAX)
		return true;		/* a lie */
	if (peer->came != last)
		return dev_silent(peer) || dev_late(peer) ||
		       (int64_t)(peer->came - last) > 0;
	while (peer->came != end) {
		uint64_t at = peer->came - last, before = peer->came;
		struct dev_pkt pkt = link->words[at];

		dev_ring_push(peer, pkt.w);
		if (peer->came == before)
			break;		/* more than its due */
	}
	return true;
}

static void declare_dead(struct dev_if *dif, struct dev_peer *peer)
{
	peer->p.dead = true;
	dif->ndying--;
	dev_backlog_remove(peer);
	dev_dma_cancel(dif, peer);
	if (peer->known || peer->ev_pending != 0)
		dev_event(peer, HAL_EV_DEAD, peer->dying);
	else
		dev_peer_drop(peer);	/* nobody ever heard of it */
}

void dev_bury(struct dev_if *dif)
{
	struct dev_peer *peer, *next;

	/* what was in the mailbox when its end was seen */
	dev_mbox_run(dif, dif->info.fifo_words / HAL_MIF_PKT_WORDS);
	for (peer = dif->peers; peer != NULL; peer = next) {
		next = peer->next;
		if (peer->dying == 0 || peer->p.dead)
			continue;
		if (peer->accept == DEV_ACCEPT_BACK)
			dev_accept_back(peer);
		if (peer->accept != DEV_ACCEPT_BACK && inbound_over(peer))
			declare_dead(dif, peer);
	}
}
