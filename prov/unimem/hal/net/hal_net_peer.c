/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_peer.c - peers on other hosts: opening, sending, their ends.
 *
 * hal_net_peer.h declares the entry points. A peer is made by connecting to it
 * (hal_net_connect.c), or by the connection that it dialled. Its packets go to
 * a ring in private memory, so that callers of the HAL poll it as any other.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/hal_log.h"
#include "hal/hal_peer.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_dma.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_loss.h"
#include "hal/net/hal_net_meet.h"
#include "hal/net/hal_net_peer.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "hal/net/hal_net_suspend.h"
#include "util/unm_clock.h"

#define REST_MAX	4096		/* calls of the engine before an end */

static bool live(const struct net_peer *peer)
{
	return !peer->p.dead && peer->dying == 0;
}

/* ---- Opening ------------------------------------------------------- */

void net_peer_open(struct net_peer *peer)
{
	uint64_t first = (uint64_t)peer->nif->hif->hal->params.seq_start;
	struct hal_tx *tx = &peer->p.tx;

	if (tx->open)
		return;
	tx->open = true;
	tx->mask = peer->nif->hif->caps->pkt_depth - 1;
	tx->next = first;
	tx->limit = first;		/* for good: hal_pkt_send_wide() */
	/* relaxed: the thread that connects reads it */
	atomic_store_explicit(&peer->back.done, first, memory_order_relaxed);
	net_rec_add(peer, NET_OPEN, 0, first, 0);
	net_flush(peer, 0);
	if (peer->met)
		net_peer_event(peer, HAL_EV_CONNECTED, 0);
}

/* ---- Ends ---------------------------------------------------------- */

static void disconnect(struct net_peer *peer)
{
	net_peer_unlink(peer);
	peer->redial = 0;
	unm_list_remove(&peer->active);
	unm_list_remove(&peer->dirty);
	net_send_drop(peer);
}

/* Has a caller of the HAL seen this peer, or will it? Else it is a process that
 * has proven itself and was refused, or ended, before its first frame. A caller
 * that connects by board and interface will, by the status of its call. */
static bool known(const struct net_peer *peer)
{
	return peer->by_key || peer->p.tx.open || peer->p.rx.cells != NULL;
}

/* Has the peer said that it ends, and all that it sent arrived? */
static bool left(const struct net_peer *peer)
{
	return peer->bye != 0 && peer->s.taken >= peer->bye_sent;
}

/* Log the end of a peer that did not say that it ends: its process was killed
 * or ended without closing its endpoint, or the network failed. */
static void log_lost(const struct net_peer *peer)
{
	char text[64];

	if (peer->lost == NULL || peer->bye != 0 || peer->silent)
		return;			/* the line about silence was logged */
	hal_log(1, "interface %u:%u at %s counts as ended: its %s %s%s",
		peer->p.addr.board, peer->p.addr.iface,
		net_host_text(&peer->host, text), peer->lost,
		peer->lost_status != 0 ? "failed: " : "was closed",
		peer->lost_status != 0 ? strerror(-peer->lost_status) : "");
}

static void declare_dead(struct net_peer *peer)
{
	if (!known(peer)) {
		net_peer_drop(peer, false);
		return;
	}
	log_lost(peer);
	peer->p.dead = true;
	peer->nif->ndying--;
	disconnect(peer);
	net_dma_cancel(peer);
	if (net_peer_hidden(peer))
		return;			/* net_connect() returns the status */
	net_peer_event(peer, HAL_EV_DEAD, left(peer) ? peer->bye : peer->dying);
}

/*
 * Read what is in the kernel of this host. The time that a peer's last frames
 * have is over, but this process may have computed meanwhile instead of reading
 * them.
 */
static void read_rest(struct net_if *nif)
{
	for (int i = 0; nif->worker != NULL && i < REST_MAX &&
	     nif->engine->progress(nif->worker) != 0; i++)
		;
}

/* Is the turn of a peer over that is connected for its awaited packets only? It
 * lasts longer while the host is not reached, which ends the peer soon. */
static bool turn_is_over(const struct net_peer *peer, uint64_t now)
{
	return peer->reach_by != 0 && peer->reach_by <= now && live(peer) &&
		(peer->tries == 0 || peer->dial_by == 0);
}

/*
 * The turn of a peer that is connected for its awaited packets only is over: it
 * gives its place to a peer that has none. A connection that has no answer yet
 * is closed. After the proofs the other side may rely on the connection, which
 * stays without a place.
 */
static void end_turn(struct net_peer *peer)
{
	net_peer_yield(peer);
	if (peer->state != NET_DIALLING)
		return;
	if (peer->conn != NULL)
		net_conn_close(peer->conn);
	net_peer_pause(peer);
}

void net_peers_tick(struct net_if *nif, uint64_t now)
{
	nif->dial_due = false;
	/* a peer that is used meanwhile moves to the end: it is visited again,
	 * or those after it only by the next tick */
	unm_list_for_each_safe(pos, tmp, &nif->active) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      active);

		if (turn_is_over(peer, now) && net_peers_want(nif->net))
			end_turn(peer);
		if (peer->redial != 0 && peer->redial <= now && live(peer))
			net_dial(peer);
		if (live(peer))
			net_loss_tick(peer, now);
		if (peer->dying == 0 || peer->p.dead)
			continue;
		if (left(peer)) {
			declare_dead(peer);
		} else if (peer->dead_by <= now) {
			read_rest(nif);
			declare_dead(peer);
		}
	}
	net_suspend_tick(nif, now);
}

/* Has the peer all that was accepted for it, or will never have it? */
static bool settled(const struct net_peer *peer)
{
	return !live(peer) || peer->reaching ||
		(peer->cur == NULL && peer->back_dirty == 0 &&
		 unm_list_empty(&peer->queue) &&
		 peer->s.acked == peer->s.sent);
}

static bool all_settled(struct net_if *nif, const struct net_peer *only)
{
	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      link);

		if ((only != NULL && peer != only) || settled(peer))
			continue;
		if (peer->state == NET_UP &&
		    (peer->cur != NULL || peer->asked < peer->s.sent))
			net_flush(peer, NET_F_ASK);
		return false;
	}
	return true;
}

void net_linger(struct net_if *nif, struct net_peer *only)
{
	uint64_t now = unm_now_ns(), end = now + nif->net->dead_ns;

	nif->lingers = true;
	net_progress(nif);
	net_flush_later(nif);
	while (!all_settled(nif, only) && now < end) {
		net_progress(nif);
		net_flush_later(nif);
		net_conns_input(nif, 1);
		now = unm_now_ns();
		net_conns_tick(nif, now);
		net_peers_tick(nif, now);
	}
}

static void free_memory(struct net_peer *peer)
{
	struct hal_rx *rx = &peer->p.rx;

	if (rx->space != NULL)
		munmap((void *)(uintptr_t)rx->space,
		       peer->nif->hif->caps->space_bytes);
	free(rx->cells);
	net_stream_clear(&peer->s);
	net_rmems_free(peer);
	explicit_bzero(peer->session, sizeof(peer->session));
	free(peer);
}

void net_peer_drop(struct net_peer *peer, bool orderly)
{
	struct net_if *nif = peer->nif;

	if (orderly && live(peer)) {
		net_linger(nif, peer);
		net_meet_bye(peer, NET_CTL_LEAVE);
		nif->lingers = false;
	}
	net_dma_cancel(peer);
	disconnect(peer);
	nif->ndying -= peer->dying != 0 && !peer->p.dead;
	hal_inbound_remove(&peer->p);
	unm_list_remove(&peer->event);
	unm_list_remove(&peer->link);
	nif->slot[peer->slot] = NULL;
	nif->npeers--;
	free_memory(peer);
}

void net_peer_free_copy(struct net_peer *peer)
{
	unm_list_remove(&peer->link);
	free_memory(peer);
}

static void net_peer_free(struct hal_peer *hp)
{
	struct net_peer *peer = net_peer(hp);

	if (peer->nif->net->pid == getpid())
		net_peer_drop(peer, true);
	/* else a forked child: the close frees it */
}

/* ---- Sending ------------------------------------------------------- */

static int net_pkt_send(struct hal_peer *hp, uint64_t head, const uint64_t *w,
			unsigned nw, const void *data, size_t len)
{
	struct net_peer *peer = net_peer(hp);
	uint32_t bytes = (uint32_t)(8 * nw + len);
	uint32_t slots = bytes > peer->nif->hif->caps->pkt_payload ? 2 : 1;
	struct hal_tx *tx = &hp->tx;
	uint64_t room = hal_tx_refresh(tx);
	uint8_t *at;

	tx->limit = tx->next;
	if (room < slots)
		return -FI_EAGAIN;
	HAL_FAULT_POINT(HAL_FAULT_POINT_CLAIMED);
	at = net_rec_add(peer, NET_PACKET, 0, head, bytes);
	tx->next += slots;
	tx->limit = tx->next;
	if (at == NULL)
		return 0;		/* ended: nobody receives it */
	if (nw != 0)
		memcpy(at, w, 8 * nw);
	if (len != 0)
		memcpy(at + 8 * nw, data, len);
	HAL_FAULT_POINT(HAL_FAULT_POINT_COPIED);
	net_flush(peer, 0);
	HAL_FAULT_POINT(HAL_FAULT_POINT_PUBLISHED);
	return 0;
}

static int net_space_ready(struct hal_peer *hp, uint32_t bytes)
{
	(void)hp;
	(void)bytes;
	return 0;			/* pages come with the first store */
}

static void net_space_write(struct hal_peer *hp, uint32_t off,
			    const void *src, size_t len)
{
	struct net_peer *peer = net_peer(hp);
	const uint8_t *from = src;

	while (len != 0) {
		uint32_t n = net_rec_room(peer);
		uint8_t *at;

		if (n < 64)
			n = NET_REC_MAX & ~7u;	/* of the next frame */
		if (n > len)
			n = (uint32_t)len;
		at = net_rec_add(peer, NET_SPACE, 0, off, n);
		if (at == NULL)
			return;
		memcpy(at, from, n);
		from += n;
		off += n;
		len -= n;
	}
	net_later(peer);
}

static void net_space_barrier(struct hal_peer *hp)
{
	(void)hp;			/* records keep their order */
}

/* A word is sent at once, because the peer waits for it. */
static void net_back_store(struct hal_peer *hp, int word, uint64_t val)
{
	struct net_peer *peer = net_peer(hp);
	struct hal_rx *rx = &hp->rx;

	if (word < 0) {
		if (!(peer->back_dirty & NET_DONE_BIT))
			peer->done_at = unm_now_ns();
		peer->back_dirty |= NET_DONE_BIT;
		if (rx->flushed - peer->done_sent > rx->mask / 2)
			net_flush(peer, 0);
		else
			net_later(peer);
		return;
	}
	if ((peer->back_known & 1u << word) && peer->back_val[word] == val)
		return;			/* under way, or there already */
	peer->back_known |= 1u << word;
	peer->back_val[word] = val;
	peer->back_dirty |= 1u << word;
	net_flush(peer, 0);
}

/* The peer has the word once it has acknowledged its frame. */
static int net_back_barrier(struct hal_peer *hp)
{
	struct net_peer *peer = net_peer(hp);

	if (!live(peer))
		return 0;
	if (peer->state == NET_UP && peer->asked < peer->back_seq)
		net_flush(peer, NET_F_ASK);
	net_progress(peer->nif);
	/* a frame that waits has a number beyond those acknowledged */
	return peer->s.acked >= peer->back_seq ? 0 : -FI_EAGAIN;
}

static void net_wake(struct hal_peer *hp)
{
	struct net_peer *peer = net_peer(hp);

	net_rec_add(peer, NET_WAKE, 0, 0, 0);
	net_flush(peer, 0);
}

/* Is the peer dialled for the first time, without a packet that waits? */
static bool unsent(const struct net_peer *peer)
{
	return peer->state == NET_DIALLING && !peer->met &&
		peer->p.rx.cells == NULL && peer->p.tx.next ==
		(uint64_t)peer->nif->hif->hal->params.seq_start;
}

/* The caller awaits a packet of the peer. Peers that have too many connections
 * suspend it again and again: then it is dialled more and more seldom. */
static bool net_resume(struct hal_peer *hp)
{
	struct net_peer *peer = net_peer(hp);

	if (!live(peer) || net_forked(peer->nif))
		return true;
	if (unsent(peer)) {
		net_peer_reach(peer);
	} else if (peer->state == NET_SUSPENDED &&
		   unm_now_ns() >= peer->resume_at) {
		if (!net_peers_reach(peer->nif->net))
			return false;
		net_peer_resume(peer);
		net_peer_reach(peer);
	} else if (peer->state == NET_SUSPENDING) {
		peer->resume_asked = true;
	}
	return true;
}

/* Nothing of another host is mapped here. */
static int net_alias_open(const struct hal_key *key, uint64_t len,
			  uint32_t access, struct hal_window *win)
{
	(void)key;
	(void)len;
	(void)access;
	(void)win;
	return -FI_ENOENT;
}

const struct hal_ops net_peer_ops = {
	.name = "net",
	.peer_free = net_peer_free,
	.wake = net_wake,
	.resume = net_resume,
	.pkt_send = net_pkt_send,
	.space_ready = net_space_ready,
	.space_write = net_space_write,
	.space_barrier = net_space_barrier,
	.back_store = net_back_store,
	.back_barrier = net_back_barrier,
	.mem_import = net_mem_import,
	.mem_release = net_mem_release,
	.mem_bytes = net_mem_bytes,
	.alias_open = net_alias_open,
};
