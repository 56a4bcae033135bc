/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_send.c - frames that go out to a peer: filling, numbering, sending.
 *
 * hal_net_send.h declares the entry points. A packet is sent at once, together
 * with the stores and back words before it. Released slots wait for the next
 * frame, so that an answer carries them, but not longer than NET_DONE_NS while
 * the interface is pumped; those of a stream until it pauses for NET_GAP_NS.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "util/unm_clock.h"

/* ---- Frames -------------------------------------------------------- */

static struct net_frame *frame_get(struct net_if *nif)
{
	struct unm_list *node = unm_list_pop(&nif->spare);
	struct net_frame *frame;

	if (node != NULL) {
		nif->nspare--;
		frame = unm_container(node, struct net_frame, link);
	} else {
		frame = malloc(sizeof(*frame));
		if (frame == NULL)
			return NULL;
		unm_list_init(&frame->link);
		frame->nif = nif;
	}
	frame->len = sizeof(struct net_head);
	return frame;
}

void net_frame_put(struct net_if *nif, struct net_frame *frame)
{
	if (nif->nspare >= NET_SPARE_MAX) {
		free(frame);
		return;
	}
	unm_list_append(nif->spare.next, &frame->link);
	nif->nspare++;
}

void net_send_drop(struct net_peer *peer)
{
	struct unm_list *node;

	if (peer->cur != NULL)
		net_frame_put(peer->nif, peer->cur);
	peer->cur = NULL;
	peer->back_dirty = 0;
	while ((node = unm_list_pop(&peer->queue)) != NULL)
		net_frame_put(peer->nif, unm_container(node, struct net_frame,
						       link));
}

/* Number a frame and give it to the engine. */
static void transmit(struct net_peer *peer, struct net_frame *frame,
		     uint64_t seq, uint32_t flags)
{
	struct net_head head = {
		.token = peer->to_token, .slot = peer->to_slot,
		.flags = flags, .seq = seq, .ack = peer->s.taken,
	};
	int ret;

	if (net_forked(peer->nif)) {
		net_frame_put(peer->nif, frame);
		return;			/* net_service() ends the peer */
	}
	peer->stream = peer->s.taken - peer->s.reported > 1;
	peer->s.reported = peer->s.taken;
	peer->ack_due = false;
	memcpy(frame->bytes, &head, sizeof(head));
	ret = peer->nif->engine->send(peer->out, &frame->m, frame->bytes,
				      frame->len);
	if (ret == 1)
		return;			/* sent() of hal_net_recv.c frees it */
	net_frame_put(peer->nif, frame);
	if (ret < 0)
		net_peer_lost(peer, NET_LINK_TEXT, ret);
}

static void finish(struct net_peer *peer, uint32_t flags)
{
	struct net_frame *frame = peer->cur;

	peer->cur = NULL;
	if (frame->len > sizeof(struct net_head)) {
		net_peer_used(peer);
		peer->resumes = 0;
	}
	if (peer->state == NET_SUSPENDED)
		net_peer_resume(peer);
	if (peer->state != NET_UP) {
		unm_list_append(&peer->queue, &frame->link);
		peer->nqueue++;
		if (peer->reaching)
			peer->tries = 0;	/* these did not count */
		net_peer_reached(peer);
		return;
	}
	if (flags & NET_F_ASK)
		peer->asked = peer->s.sent + 1;
	transmit(peer, frame, ++peer->s.sent, flags);
}

void net_queue_send(struct net_peer *peer)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&peer->queue)) != NULL)
		transmit(peer, unm_container(node, struct net_frame, link),
			 ++peer->s.sent, 0);
	peer->nqueue = 0;
}

/* ---- Records ------------------------------------------------------- */

uint32_t net_rec_room(const struct net_peer *peer)
{
	uint32_t used = (uint32_t)sizeof(struct net_rec) +
		(peer->cur != NULL ? peer->cur->len :
		 (uint32_t)sizeof(struct net_head));

	return used < NET_FRAME_MAX ? (NET_FRAME_MAX - used) & ~7u : 0;
}

uint8_t *net_rec_add(struct net_peer *peer, enum net_rec_type type,
		     uint8_t word, uint64_t arg, uint32_t len)
{
	struct net_rec rec = {
		.type = (uint8_t)type, .word = word, .len = len, .arg = arg,
	};
	uint8_t *at;

	if (peer->p.dead || peer->dying != 0)
		return NULL;
	/* not net_rec_room(): where no data fit, a record without data may
	 * not fit either */
	if (peer->cur != NULL &&
	    peer->cur->len + net_rec_bytes(len) > NET_FRAME_MAX)
		finish(peer, 0);
	if (peer->cur == NULL)
		peer->cur = frame_get(peer->nif);
	if (peer->cur == NULL) {
		net_peer_dying(peer, -FI_ENOMEM);
		return NULL;
	}
	at = peer->cur->bytes + peer->cur->len;
	memcpy(at, &rec, sizeof(rec));
	peer->cur->len += net_rec_bytes(len);
	if (len % 8 != 0)		/* no bytes of this process beyond */
		memset(at + net_rec_bytes(len) - 8, 0, 8);
	return at + sizeof(rec);
}

/* Add the back words that were stored since the last frame. Stores of the same
 * word count once. */
static void add_back(struct net_peer *peer)
{
	for (int i = 0; peer->back_dirty != 0 && i < HAL_BACK_WORDS; i++) {
		if (!(peer->back_dirty & 1u << i))
			continue;
		peer->back_dirty &= ~(1u << i);
		net_rec_add(peer, NET_BACK, (uint8_t)i, peer->back_val[i], 0);
	}
	if (peer->back_dirty & NET_DONE_BIT) {
		peer->done_sent = peer->p.rx.flushed;
		if (peer->done_sent == peer->rx_fill)
			peer->stored = 0;
		net_rec_add(peer, NET_BACK, NET_BACK_DONE, peer->done_sent, 0);
	}
	peer->back_dirty = 0;
}

void net_flush(struct net_peer *peer, uint32_t flags)
{
	bool words = (peer->back_dirty & ~NET_DONE_BIT) != 0;

	unm_list_remove(&peer->dirty);
	if (peer->p.dead || peer->dying != 0)
		return;
	add_back(peer);
	/* a connection that is made or kept sends acknowledgements first */
	if (peer->cur == NULL && peer->state == NET_UP &&
	    (flags != 0 || peer->ack_due ||
	     peer->s.taken - peer->s.reported >= NET_ACK_EVERY))
		peer->cur = frame_get(peer->nif);
	if (peer->cur == NULL)
		return;
	if (words)
		peer->back_seq = peer->s.sent + peer->nqueue + 1;
	if (peer->state == NET_UP && flags == 0 &&
	    peer->cur->len == sizeof(struct net_head)) {
		struct net_frame *ack = peer->cur;

		peer->cur = NULL;
		transmit(peer, ack, 0, 0);	/* not numbered */
		return;
	}
	finish(peer, flags);
}

void net_later(struct net_peer *peer)
{
	if (unm_list_empty(&peer->dirty))
		unm_list_append(&peer->nif->dirty, &peer->dirty);
}

void net_flush_later(struct net_if *nif)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&nif->dirty)) != NULL)
		net_flush(unm_container(node, struct net_peer, dirty), 0);
}

/*
 * True if only released slots wait to be sent, and if they may wait longer.
 * Slots of a client of a service are sent at once, because the client may not
 * call again for long after the answer, and the service waits for them; only
 * the provider sets hal_if.peer_waits. Slots are also sent at once if the peer
 * may soon lack receive space.
 */
static bool done_may_wait(const struct net_peer *peer)
{
	const struct hal_if *hif = peer->nif->hif;
	uint64_t until = peer->done_at + NET_DONE_NS;

	if (peer->stream && until < peer->came_at + NET_GAP_NS)
		until = peer->came_at + NET_GAP_NS;

	return peer->back_dirty == NET_DONE_BIT && peer->cur == NULL &&
		!peer->ack_due && hif->peer_waits != NULL &&
		peer->s.taken - peer->s.reported < NET_ACK_EVERY &&
		peer->stored <= NET_DONE_BYTES &&
		peer->stored <= hif->caps->space_bytes / 4 &&
		unm_now_ns() < until;
}

void net_flush_due(struct net_if *nif)
{
	unm_list_for_each_safe(pos, next, &nif->dirty) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      dirty);

		if (!done_may_wait(peer))
			net_flush(peer, 0);
	}
}
