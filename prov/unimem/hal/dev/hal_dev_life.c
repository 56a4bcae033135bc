/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_life.c - polls the peers of an interface: which have accepted, which
 * have ended; and tears down those that ended.
 *
 * Nothing signals that a peer has accepted, stored or ended. Each service polls
 * a few peers in turn (dev_peers_poll()); at fixed times it also looks peers up
 * in the table of holders (hal_dev_table.c). A peer that is marked as ending is
 * declared dead once all that it sent has arrived (dev_end_dying()). The user
 * of the interface ends a peer by dev_peer_free().
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "hal/dev/hal_dev_life.h"
#include "hal/dev/hal_dev_conn.h"
#include "hal/dev/hal_dev_dma.h"
#include "hal/dev/hal_dev_mbox.h"
#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_ring.h"
#include "hal/dev/hal_dev_table.h"
#include "util/unm_clock.h"

#define POLL_PEERS	16		/* peers polled per service */
#define LOOKUP_NS	50000		/* between two look-ups in a table */
#define LOOKUP_PEERS	256		/* look-ups at once, after a sleep */

/* ---- Polling ----------------------------------------------------------- */

/* Mark the peer as gone if it no longer holds its interface. */
static void check_holder(struct dev_if *dif, struct dev_peer *peer)
{
	if (peer->gone || peer->p.dead || dev_holds(peer) != 0)
		return;
	/* Order the next read of the mailbox after the load of the entry: the
	 * peer may have sent packets before. */
	dif->io->status_before_memory(dif->mm);
	dev_mark_gone(peer);
}

/* Check the back page: has the peer answered the HELLO, or closed? */
static void check_back(struct dev_peer *peer)
{
	struct dev_back *back = dev_back(peer);
	uint64_t answer;

	/* Relaxed: no other memory is read because of these values. */
	answer = atomic_load_explicit(&back->answer, memory_order_relaxed);
	if (answer == DEV_ANSWER_WELCOME) {
		if (!peer->connected_reported && peer->p.tx.open) {
			peer->connected_reported = true;
			dev_event(peer, HAL_EV_CONNECTED, 0);
		}
	} else if (answer != DEV_ANSWER_NONE && !peer->connected_reported) {
		hal_log(answer != DEV_ANSWER_VERSION, "interface %u:%u refuses "
			"the connection: %s", peer->p.addr.board,
			peer->p.addr.iface, answer == DEV_ANSWER_VERSION ?
			"another version or platform file" :
			"it could not accept it");
		/* Its outbound half to this interface may be open;
		 * dev_peer_free() then stores the end of it. */
		peer->disconnected = true;
		dev_mark_dying(peer, -FI_ECONNREFUSED);
		return;
	}
	if (atomic_load_explicit(&back->back.closed,
				 memory_order_relaxed) != 0)
		dev_mark_dying(peer, -FI_ECONNRESET);
}

/* Poll the two pages that the peer stores to. */
static void poll_peer(struct dev_peer *peer)
{
	if (peer->accept == DEV_ACCEPT_BACK)
		dev_accept_back(peer);
	if (peer->space_retry.at != 0)
		dev_space_map(peer);
	if (peer->hello != DEV_HELLO_NONE && dev_lives(peer))
		check_back(peer);
	/* Relaxed: inbound_over() loads it again with acquire. */
	if (peer->accept != DEV_ACCEPT_NONE && dev_lives(peer) &&
	    atomic_load_explicit(&dev_rlink(peer)->end,
				 memory_order_relaxed) != 0)
		dev_mark_dying(peer, -FI_ECONNRESET);
}

/* Number of peers to look up now. After a sleep it makes up for the time. */
static uint32_t lookups_due(struct dev_if *dif)
{
	uint64_t now = unm_now_ns(), n;

	if (now < dif->lookup_at)
		return 0;
	n = 1 + (now - dif->lookup_at) / LOOKUP_NS;
	dif->lookup_at = now + LOOKUP_NS;
	if (n > LOOKUP_PEERS)
		n = LOOKUP_PEERS;
	return n < dif->npeers ? (uint32_t)n : dif->npeers;
}

void dev_peers_poll(struct dev_if *dif)
{
	uint32_t due = lookups_due(dif);
	uint32_t n = due > POLL_PEERS ? due : POLL_PEERS;

	if (n > dif->npeers)
		n = dif->npeers;
	for (uint32_t i = 0; i < n; i++) {
		struct dev_peer *peer = dif->poll_next != NULL ?
					dif->poll_next : dif->peers;

		dif->poll_next = peer->next;
		if (!peer->p.dead)
			poll_peer(peer);
	}
	for (; due != 0; due--) {
		if (dif->lookup_next == NULL)
			dif->lookup_next = dif->peers;
		check_holder(dif, dif->lookup_next);
		dif->lookup_next = dif->lookup_next->next;
	}
}

/* ---- Ends -------------------------------------------------------------- */

/* Packets that the peer sent before it ended do not arrive any more. Those of a
 * peer that was disconnected are discarded anyway. */
static void packets_lost(struct dev_peer *peer, const char *why)
{
	if (peer->disconnected)
		return;
	hal_log(0, "interface %u:%u has ended, and %s: dropped",
		peer->p.addr.board, peer->p.addr.iface, why);
	dev_disconnect_lossy(peer);
}

/*
 * Has everything that the peer sent arrived, or been lost? After a loss the
 * peer is disconnected. Packets that it could not send are read from the link
 * page. Nothing more is expected from a peer that vanished without closing or
 * was disconnected.
 */
static bool inbound_over(struct dev_peer *peer)
{
	struct dev_link *link = dev_rlink(peer);
	uint64_t last, end;

	if (peer->accept == DEV_ACCEPT_NONE)
		return true;
	if (peer->space_retry.at != 0 && !dev_space_map(peer))
		return peer->space_retry.at == 0;	/* disconnected */
	/* pairs with the release of end, by dev_link_end() */
	end = atomic_load_explicit(&link->end, memory_order_acquire);
	if (end == 0)
		return dev_silent(peer) || dev_overdue(peer);
	last = ((volatile struct dev_link *)link)->last;
	end--;
	if (end - last > DEV_DEPTH_MAX || (int64_t)(peer->came - last) > 0) {
		packets_lost(peer, "named packets that it cannot have sent");
		return true;
	}
	if (peer->came != last) {
		if (!dev_silent(peer) && !dev_overdue(peer))
			return false;
		packets_lost(peer, "its last packets were not delivered");
		return true;
	}
	/* The first packet that names data in the space may be among these. */
	if (peer->came != end && peer->rspace.mm == NULL &&
	    !dev_space_map(peer))
		return peer->space_retry.at == 0;
	while (peer->came != end) {
		uint64_t at = peer->came - last, before = peer->came;
		struct dev_pkt pkt = link->words[at];

		dev_ring_push(peer, pkt.w);
		if (peer->came == before)
			break;		/* more packets than were released */
	}
	return true;
}

/* The status of HAL_EV_DEAD: did a peer that ended say that it closes its
 * interface? The order in which this end was noticed makes no difference. */
static int last_status(struct dev_peer *peer)
{
	const struct dev_link *link = dev_rlink(peer);
	struct dev_back *back = dev_back(peer);
	bool orderly = false;

	if (peer->dying != -FI_ECONNRESET)
		return peer->dying;
	/* pairs with the order of the stores in dev_link_end() */
	if (peer->accept != DEV_ACCEPT_NONE &&
	    atomic_load_explicit(&link->end, memory_order_acquire) != 0)
		orderly = link->orderly != 0;
	/* and of those in say_end() */
	else if (peer->hello != DEV_HELLO_NONE &&
		 atomic_load_explicit(&back->back.closed,
				      memory_order_acquire) != 0)
		orderly = back->orderly != 0;
	return orderly ? -FI_ESHUTDOWN : -FI_ECONNRESET;
}

static void declare_dead(struct dev_if *dif, struct dev_peer *peer)
{
	peer->p.dead = true;
	dif->ndying--;
	unm_list_remove(&peer->waiting);
	dev_dma_cancel(dif, peer);
	if (peer->known || peer->ev_pending != 0)
		dev_event(peer, HAL_EV_DEAD, last_status(peer));
	else
		dev_peer_drop(peer);	/* the caller never had it */
}

void dev_end_dying(struct dev_if *dif)
{
	struct dev_peer *peer, *next;

	/* Packets that were in the mailbox when the end was noticed. */
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

/* Store the end of both halves where the peer reads it. */
static void say_end(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	uint64_t orderly = dif->closing;

	if (peer->link.mm != NULL)
		dev_link_end(peer);
	if (peer->rback.mm != NULL && !peer->gone) {
		dif->io->store(&peer->rback.map,
			       offsetof(struct dev_back, orderly),
			       &orderly, sizeof(orderly));
		if (dev_stored(peer, &peer->rback.map) == 0) {
			dif->io->store(&peer->rback.map,
				       offsetof(struct dev_back, back.closed),
				       &peer->session, sizeof(peer->session));
			dev_stored(peer, &peer->rback.map);
		}
	}
	if (!peer->gone)
		dev_wake_now(peer);
}

void dev_peer_free(struct hal_peer *hp)
{
	struct dev_peer *peer = dev_peer(hp);

	if (dev_if(hp->hif)->pid != getpid())
		return;		/* forked child: dev_if_close() frees it */
	/* A receive space that was announced and not mapped has a hold of this
	 * process, which dev_peer_drop() drops once it is known. */
	if (peer->accept != DEV_ACCEPT_NONE && peer->rspace.mm == NULL)
		dev_space_take(peer);
	if (!peer->gone && (peer->disconnected || !hp->dead))
		say_end(peer);
	dev_peer_drop(peer);
}
