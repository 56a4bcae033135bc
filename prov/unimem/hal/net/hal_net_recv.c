/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_recv.c - frames that come from peers: checking them, putting them
 * into order, and executing their records.
 *
 * Entry point: net_upcalls, which the engine calls. Anybody on the network can
 * send a message to the engine: a frame counts only with the token that its
 * peer got over the control connection. Whatever is in it is checked before it
 * is used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hal/hal_fault_point.h"
#include "hal/hal_log.h"
#include "hal/hal_peer.h"
#include "hal/net/hal_net_dma.h"
#include "hal/net/hal_net_recv.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "util/unm_clock.h"

/* ---- Records ------------------------------------------------------- */

/* The peer has opened its outbound half: make the ring and the space that its
 * packets and stores go to. */
static int on_open(struct net_peer *peer, uint64_t first)
{
	const struct hal_caps *caps = peer->nif->hif->caps;
	struct hal_rx *rx = &peer->p.rx;
	struct hal_cell *cells;
	void *space;
	int ret;

	if (rx->cells != NULL || first > INT64_MAX)
		return -EPROTO;
	ret = hal_inbound_reserve_remote(peer->nif->hif, peer->nif->npeers);
	if (ret != 0)
		return ret;
	cells = aligned_alloc(HAL_LINE, caps->pkt_depth * sizeof(*cells));
	if (cells == NULL)
		return -FI_ENOMEM;
	space = mmap(NULL, caps->space_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED) {
		free(cells);
		return -FI_ENOMEM;
	}
	memset(cells, 0, caps->pkt_depth * sizeof(*cells));
	for (uint32_t i = 0; i < caps->pkt_depth; i++)
		/* a slot is full if it has the number of its packet plus 1;
		 * relaxed: no other thread reads the ring */
		atomic_store_explicit(&cells[(first + i) %
					     caps->pkt_depth].head,
				      (first + i) & HAL_HEAD_ID_MASK,
				      memory_order_relaxed);
	HAL_FAULT_POINT(HAL_FAULT_POINT_MAPPED);
	rx->mask = caps->pkt_depth - 1;
	rx->next = first;
	rx->flushed = first;
	rx->space = space;
	rx->identity = net_peer_identity(peer);
	rx->sleep = &peer->sleep;
	rx->cells = cells;
	peer->rx_fill = first;
	net_peer_event(peer, HAL_EV_INBOUND, 0);
	return 0;
}

/* A packet that is longer than the payload of a slot takes two. */
static int on_packet(struct net_peer *peer, const struct net_rec *rec,
		     const uint8_t *data)
{
	const struct hal_caps *caps = peer->nif->hif->caps;
	bool wide = rec->len > caps->pkt_payload;
	uint32_t first = wide ? caps->pkt_payload : rec->len;
	struct hal_rx *rx = &peer->p.rx;
	struct hal_cell *cell;

	if (rx->cells == NULL || (wide && rec->len > caps->pkt_wide) ||
	    peer->rx_fill - rx->flushed + wide > rx->mask)
		return -EPROTO;
	cell = &rx->cells[peer->rx_fill & rx->mask];
	memcpy(cell->payload, data, first);
	if (wide)
		memcpy(rx->cells[(peer->rx_fill + 1) & rx->mask].payload,
		       data + first, rec->len - first);
	/* relaxed: the thread that polls the ring is this one */
	atomic_store_explicit(&cell->head, (rec->arg & ~HAL_HEAD_ID_MASK) |
			      ((peer->rx_fill + 1) & HAL_HEAD_ID_MASK),
			      memory_order_relaxed);
	peer->rx_fill += 1 + wide;
	return 0;
}

static int on_space(struct net_peer *peer, const struct net_rec *rec,
		    const uint8_t *data)
{
	uint64_t all = peer->nif->hif->caps->space_bytes;

	if (peer->p.rx.space == NULL || rec->arg > all ||
	    rec->len > all - rec->arg)
		return -EPROTO;
	memcpy((uint8_t *)(uintptr_t)peer->p.rx.space + rec->arg, data,
	       rec->len);
	peer->stored += rec->len;
	return 0;
}

static int on_back(struct net_peer *peer, const struct net_rec *rec)
{
	_Atomic uint64_t *word;

	if (rec->word == NET_BACK_DONE)
		word = &peer->back.done;
	else if (rec->word < HAL_BACK_WORDS)
		word = &peer->back.word[rec->word];
	else
		return -EPROTO;
	/* pairs with the acquires in hal_tx_refresh() and hal_tx_back(), where
	 * another thread may read */
	atomic_store_explicit(word, rec->arg, memory_order_release);
	return 0;
}

static int on_record(struct net_peer *peer, const struct net_rec *rec,
		     const uint8_t *data)
{
	switch (rec->type) {
	case NET_OPEN:
		return on_open(peer, rec->arg);
	case NET_PACKET:
		return on_packet(peer, rec, data);
	case NET_SPACE:
		return on_space(peer, rec, data);
	case NET_BACK:
		return on_back(peer, rec);
	case NET_WAKE:
		return 0;		/* that it came wakes */
	default:
		return net_dma_record(peer, rec, data);
	}
}

static int on_frame(struct net_peer *peer, const uint8_t *frame, size_t len)
{
	size_t off = sizeof(struct net_head);
	const uint8_t *data;
	struct net_rec rec;
	int ret;

	while ((ret = net_rec_next(frame, len, &off, &rec, &data)) == 1) {
		ret = on_record(peer, &rec, data);
		if (ret != 0)
			return ret;
	}
	return ret;
}

/* ---- Frames -------------------------------------------------------- */

static int take(struct net_peer *peer, const struct net_head *head,
		const void *frame, size_t len)
{
	uint8_t *early;
	int ret;

	ret = net_stream_take(&peer->s, head->seq, frame, len);
	if (ret <= 0)
		return ret;
	ret = on_frame(peer, frame, len);
	while (ret == 0 && (early = net_stream_early(&peer->s, &len)) != NULL) {
		ret = on_frame(peer, early, len);
		free(early);
	}
	return ret;
}

static void received(void *owner, const void *data, size_t len)
{
	struct net_if *nif = owner;
	struct net_peer *peer = NULL;
	struct net_head head;
	int ret;

	if (len >= sizeof(head) && len <= NET_FRAME_MAX) {
		memcpy(&head, data, sizeof(head));
		if (head.slot < nif->nslots)
			peer = nif->slot[head.slot];
	}
	if (peer == NULL || peer->token != head.token || peer->p.dead ||
	    peer->dying == -FI_EIO) {
		nif->nstrange++;
		return;
	}
	nif->nframes++;
	if (len > sizeof(head) && peer->state != NET_SUSPENDED) {
		net_peer_used(peer);
		peer->resumes = 0;
	}
	ret = net_stream_ack(&peer->s, head.ack);
	if (ret == 0 && head.seq != 0) {
		peer->came_at = unm_now_ns();
		ret = take(peer, &head, data, len);
	}
	if (ret != 0) {
		hal_log(0, "interface %u:%u on another host: %s: disconnected",
			peer->p.addr.board, peer->p.addr.iface,
			ret == -EPROTO ? "protocol error" : strerror(-ret));
		net_peer_dying(peer, -FI_EIO);
		return;
	}
	if ((head.flags & NET_F_ASK) && head.seq > peer->ask_seq)
		peer->ask_seq = head.seq;
	/* not before the frame was processed */
	peer->ack_due = peer->ask_seq > peer->s.reported &&
		peer->ask_seq <= peer->s.taken;
	if (peer->ack_due ||
	    peer->s.taken - peer->s.reported >= NET_ACK_EVERY)
		net_later(peer);
}

static void sent(struct net_message *message)
{
	struct net_frame *frame = (struct net_frame *)message;

	net_frame_put(frame->nif, frame);
}

/* The other side closes its link when it agrees to suspend, and the message
 * that says so may come later. */
static void failed(void *arg)
{
	struct net_peer *peer = arg;

	if (peer->state == NET_SUSPENDING)
		peer->link_failed = true;
	else
		net_peer_lost(peer, NET_LINK_TEXT, -FI_ECONNRESET);
}

const struct net_upcalls net_upcalls = {
	.received = received,
	.sent = sent,
	.failed = failed,
};
