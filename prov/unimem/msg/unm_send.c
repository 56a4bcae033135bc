/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_send.c - eager messages through receive space, and the slow path of
 * sending: messages of several parts, rendezvous with its streams, and the
 * backlog of sends that a peer cannot take yet.
 *
 * It owns the send operations (struct unm_tx_op). unm_send.h declares the entry
 * points; docs/protocol.md defines the messages.
 */
#include "core/unm_buf.h"
#include "core/unm_complete.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_hints.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_region.h"
#include "core/unm_space.h"
#include "core/unm_way.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_send.h"
#include "rma/unm_bounce.h"
#include "rma/unm_mem.h"
#include "unm_env.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

#define UNM_STREAM_MIN	1024	/* bytes of a piece while other sends take the
				 * receive space that becomes free */
#define UNM_STREAM_WAIT	16	/* extents that become free before such a short
				 * piece is sent */
#define UNM_STREAM_BURST 16	/* bytes of a stream, in units of piece_max,
				 * after which unm_send_progress() ends; the
				 * last piece may exceed them */
#define UNM_STREAM_GROWS 4	/* longest piece, in pieces of piece_max */
#define UNM_STREAM_HEADS 16	/* a piece to another host is shorter by such a
				 * part, so that it is one segment of 64 KiB
				 * with all heads */
#define UNM_STREAM_DEPTH 4	/* pieces that the receive space holds, if they
				 * are longer than piece_max */
#define UNM_BACKLOG_POLLS 64	/* one of so many calls tries a send although
				 * the peer has released nothing */

/* A send operation, in no list yet. NULL: none is free; unm_ep_signal_retry()
 * is called once one is. */
static struct unm_tx_op *unm_tx_op_new(struct unm_peer *peer,
				       const struct unm_send *s)
{
	struct unm_ep *ep = peer->ep;
	struct unm_tx_op *op = unm_pool_alloc(&ep->tx_pool);

	if (op == NULL) {
		ep->stats->again_op++;
		ep->ops_wanted = true;
		return NULL;
	}
	op->peer = peer;
	op->buf = NULL;
	op->bounce = NULL;
	op->send = *s;
	op->send.iov = op->iov;
	for (size_t i = 0; i < s->count; i++)
		op->iov[i] = s->iov[i];
	unm_list_init(&op->link);
	return op;
}

/* Release an operation that was not sent. Unlike unm_tx_op_release() this does
 * not notify waiting callers: the failed call itself took the operation. */
static void unm_tx_op_undo(struct unm_tx_op *op)
{
	struct unm_ep *ep = op->peer->ep;

	unm_list_remove(&op->link);
	if (op->buf != NULL)
		unm_pool_release(&ep->buf_pool[op->buf_class], op->buf);
	if (op->bounce != NULL)
		unm_bounce_give(ep, UNM_BOUNCE_TX, op->bounce);
	unm_pool_release(&ep->tx_pool, op);
}

/* Release an operation, and notify callers that found no free one. */
static void unm_tx_op_release(struct unm_tx_op *op)
{
	struct unm_ep *ep = op->peer->ep;

	unm_tx_op_undo(op);
	if (ep->ops_wanted) {
		ep->ops_wanted = false;
		unm_ep_signal_retry(ep);
	}
}

/* Complete an operation with err, 0 or a positive fi_errno, and release it. */
static void unm_tx_op_done(struct unm_tx_op *op, int err)
{
	struct unm_ep *ep = op->peer->ep;

	if (err == 0)
		unm_complete_tx(ep, op->send.tagged, op->send.flags,
				op->send.context);
	else
		unm_complete_tx_err(ep, &op->send, err);
	unm_tx_op_release(op);
}

/* Complete the operation once the peer has released the packet just sent. */
static void unm_tx_op_await(struct unm_tx_op *op)
{
	struct unm_peer *peer = op->peer;

	op->state = UNM_TX_AWAIT;
	op->packet = hal_tx_sent(peer->hp) - 1;
	unm_list_remove(&op->link);
	unm_list_append(&peer->await, &op->link);
	unm_peer_schedule(peer);
}

/* Store the tag and data words of a message; returns their number. */
static unsigned unm_lead_words(const struct unm_send *s, uint64_t *w)
{
	unsigned n = 0;

	if (s->tagged)
		w[n++] = s->tag;
	if (s->has_data)
		w[n++] = s->data;
	return n;
}

static uint64_t unm_msg_head(const struct unm_send *s, uint8_t type,
			     uint8_t flags)
{
	return hal_head(type | (s->tagged ? UNM_WIRE_TAGGED : 0),
			flags | (s->has_data ? UNM_WIRE_HAS_DATA : 0));
}

/* Send a message that fits a packet of one slot or of two. */
static int unm_send_packet(struct unm_peer *peer, const struct unm_send *s)
{
	struct unm_ep *ep = peer->ep;
	bool wide = s->len >= ep->inline_end[s->tagged][s->has_data];
	uint8_t bytes[UNM_WIRE_INLINE_MAX];
	uint64_t w[2];
	unsigned n = unm_lead_words(s, w);
	int ret;

	unm_iov_fetch(s->iov, s->count, 0, bytes, s->len);
	if (wide)
		ret = hal_pkt_send_wide(peer->hp,
					unm_msg_head(s, UNM_WIRE_WIDE,
						unm_wire_wide_flags(s->len)),
					w, n, bytes, s->len);
	else
		ret = hal_pkt_send(peer->hp,
				   unm_msg_head(s, UNM_WIRE_INLINE, s->len),
				   w, n, bytes, s->len);
	if (ret != 0) {
		ep->stats->again_packet++;
		return ret;
	}
	if (wide)
		ep->stats->tx_wide++;
	else
		ep->stats->tx_inline++;
	return 0;
}

int unm_send_eager(struct unm_peer *peer, uint64_t head, uint64_t *w,
		   unsigned n, const struct unm_part *part)
{
	struct unm_ep *ep = peer->ep;
	uint32_t len = part->len, off;
	int ret;

	if (!hal_tx_free(peer->hp)) {	/* not after the copy only */
		ep->stats->again_packet++;
		return -FI_EAGAIN;
	}
	off = unm_peer_find_space(peer, len);
	if (off == UNM_SPACE_NONE) {
		ep->stats->again_space++;
		return -FI_EAGAIN;
	}
	unm_peer_put(peer, off, part->iov, part->count, part->off, len);
	hal_space_barrier(peer->hp);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SPACE);
	w[n++] = unm_wire_extent_word(off, len);
	ret = hal_pkt_send(peer->hp, head, w, n, NULL, 0);
	if (ret != 0) {
		ep->stats->again_packet++;
		return ret;
	}
	unm_space_take(peer->space, off, len, hal_tx_sent(peer->hp) - 1);
	ep->stats->tx_eager++;
	/* a peer that has sent a message since the last eager one waits */
	ep->stats->tx_demoted +=
		unm_hints(peer, off, len, peer->got_at_eager != peer->msgs_got);
	peer->got_at_eager = peer->msgs_got;
	return 0;
}

/*
 * May a message be sent eagerly in pieces now? The peer prefers pieces to reads
 * for messages of this length, and its ring and its receive space have room for
 * all of them: nobody waits for a further piece.
 */
static bool unm_long_now(struct unm_peer *peer, const struct unm_send *s)
{
	const struct unm_ep *ep = peer->ep;
	uint64_t allowed;

	if (s->len > ep->long_max || s->len <= ep->piece_max)
		return false;
	allowed = hal_tx_back(peer->hp, UNM_PEER_BACK_LONG);
	if (!(allowed >> unm_way_class(s->len) & 1) ||
	    hal_tx_room(peer->hp) < s->len / ep->piece_max + 1 ||
	    unm_peer_find_space(peer, s->len) == UNM_SPACE_NONE)
		return false;
	/* a mark for each piece */
	unm_space_reclaim(peer->space, hal_tx_done(peer->hp));
	return s->count != 1 || !g_unm_env.direct ||
		unm_mem_find(ep->domain, s->iov[0].iov_base, s->len) == NULL;
}

/*
 * Send a message of which unm_long_now() is true. With short pieces an idle
 * receiver copies one while this process copies the next. A receiver that still
 * has a piece or more of earlier messages to copy begins later: then the first
 * piece, which may not be longer, is followed by one with the rest, because
 * fewer packets are faster.
 */
static void unm_send_long(struct unm_peer *peer, const struct unm_send *s)
{
	uint32_t off = unm_peer_find_space(peer, s->len), len;
	uint64_t w[UNM_SEND_EAGER_WORDS + 1];
	uint64_t head = unm_msg_head(s, UNM_WIRE_LONG, 0);
	unsigned n = unm_lead_words(s, w);
	bool busy = peer->space->tail - peer->space->head >=
		peer->ep->piece_max;

	w[n++] = s->len;
	for (uint64_t at = 0; at < s->len; at += len) {
		len = s->len - at;
		if ((at == 0 || !busy) && len > peer->ep->piece_max)
			len = peer->ep->piece_max;
		unm_peer_put(peer, off + at, s->iov, s->count, at, len);
		hal_space_barrier(peer->hp);
		HAL_FAULT_POINT(HAL_FAULT_POINT_PIECE);
		w[n++] = unm_wire_extent_word(off + at, len);
		hal_pkt_send(peer->hp, head, w, n, NULL, 0);
		unm_space_take(peer->space, off + at, len,
			       hal_tx_sent(peer->hp) - 1);
		head = hal_head(UNM_WIRE_NEXT, 0);
		n = 0;
	}
	peer->ep->stats->tx_long++;
}

/*
 * Where the peer's cDMA engine can read the message of an operation: in its own
 * buffer, or in a copy in a bounce buffer, if there is one. Else where the
 * kernel can read it, or NULL; *seg is NULL then, and the dmable segment
 * otherwise.
 */
static const void *unm_rdv_source(struct unm_tx_op *op,
				  struct unm_mem_seg **seg)
{
	const struct unm_send *s = &op->send;
	struct unm_ep *ep = op->peer->ep;
	const void *at = s->count == 1 ? s->iov[0].iov_base : NULL;

	*seg = NULL;
	if (!g_unm_env.direct)
		return at;
	if (at != NULL)
		*seg = unm_mem_find(ep->domain, at, s->len);
	if (*seg != NULL || g_unm_env.bounce == 0)
		return at;
	if (op->bounce == NULL) {	/* the RTS was not refused before */
		op->bounce = unm_bounce_take(ep, UNM_BOUNCE_TX, s->len);
		if (op->bounce == NULL)
			return at;
		unm_iov_fetch(s->iov, s->count, 0, op->bounce, s->len);
		ep->stats->tx_bounce++;
	}
	*seg = unm_mem_find(ep->domain, op->bounce, s->len);
	return op->bounce;
}

/* Announce a message with RTS. waiting is the operation of s if s comes from
 * the backlog, else NULL; so in the next two functions. */
static int unm_send_rendezvous(struct unm_peer *peer, const struct unm_send *s,
			       struct unm_tx_op *waiting)
{
	struct unm_ep *ep = peer->ep;
	struct unm_tx_op *op = waiting;
	struct unm_mem_seg *seg;
	uint64_t w[UNM_WIRE_WORDS_MAX];
	unsigned n = unm_lead_words(s, w);
	int ret;

	if (op == NULL)
		op = unm_tx_op_new(peer, s);
	if (op == NULL)
		return -FI_EAGAIN;
	w[n++] = s->len;
	w[n++] = unm_pool_token(op);
	w[n++] = (uintptr_t)unm_rdv_source(op, &seg);
	if (seg != NULL) {
		w[n - 1] -= seg->base;
		w[n++] = seg->key.word[0];
		w[n++] = seg->key.word[1];
	}
	ret = unm_peer_send(peer, unm_msg_head(s, UNM_WIRE_RTS, seg != NULL ?
					       UNM_WIRE_DMABLE : 0), w, n,
			    NULL, 0);
	if (ret != 0) {
		if (waiting == NULL)
			unm_tx_op_undo(op);
		return ret;
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_RTS_SENT);
	op->state = UNM_TX_RTS;
	unm_list_remove(&op->link);
	unm_list_append(&peer->rts, &op->link);
	ep->stats->tx_rendezvous++;
	return 0;
}

/* Send inline, wide or eager, in pieces too: the buffer may be reused when this
 * returns. */
static int unm_send_short(struct unm_peer *peer, const struct unm_send *s,
			  struct unm_tx_op *waiting)
{
	struct unm_ep *ep = peer->ep;
	struct unm_tx_op *op = waiting;
	uint64_t w[UNM_SEND_EAGER_WORDS];
	int ret = 0;

	if ((s->flags & FI_DELIVERY_COMPLETE) && op == NULL) {
		op = unm_tx_op_new(peer, s);
		if (op == NULL)
			return -FI_EAGAIN;
	}
	if (s->len < ep->packet_end[s->tagged][s->has_data])
		ret = unm_send_packet(peer, s);
	else if (s->len > peer->ep->piece_max && !s->inject)
		unm_send_long(peer, s);
	else
		ret = unm_send_eager(peer, unm_msg_head(s, UNM_WIRE_EAGER, 0),
				     w, unm_lead_words(s, w),
				     &(struct unm_part){ s->iov, s->count, 0,
							 s->len });
	if (ret != 0) {
		if (op != waiting)
			unm_tx_op_undo(op);
		return ret;
	}
	if (s->flags & FI_DELIVERY_COMPLETE) {
		unm_tx_op_await(op);
	} else {
		unm_complete_tx(ep, s->tagged, s->flags, s->context);
		if (op != NULL)
			unm_tx_op_release(op);
	}
	return 0;
}

/* Send a message, if the peer can take it now. waiting may be freed, and s with
 * it. */
static int unm_send_now(struct unm_peer *peer, const struct unm_send *s,
			struct unm_tx_op *waiting)
{
	struct unm_ep *ep = peer->ep;
	uint64_t len = s->len;
	int ret;

	if (peer->msgs_sent == peer->msg_limit && !unm_peer_credit(peer)) {
		ep->stats->again_credit++;
		return -FI_EAGAIN;
	}
	/* no rendezvous: the buffer of an injected message may be reused when
	 * the call returns */
	if (s->inject || s->len < ep->short_end[s->tagged][s->has_data] ||
	    unm_long_now(peer, s))
		ret = unm_send_short(peer, s, waiting);
	else
		ret = unm_send_rendezvous(peer, s, waiting);
	if (ret == 0) {
		peer->msgs_sent++;
		peer->refusals = 0;
		ep->stats->tx_msgs++;
		ep->stats->tx_bytes += len;
	}
	return ret;
}

/* ---- Backlog ----------------------------------------------------------- */

/*
 * Add a send to the backlog of a peer, which may not call the library for long.
 * Backlogs use up to half of the endpoint's operations; the other half is left
 * for peers that make progress. Later sends must not overtake a backlog, so
 * msg_limit disables the fast path while there is one. 0; -FI_EAGAIN: no free
 * operation; -FI_ENOMEM.
 */
static int unm_backlog_add(struct unm_peer *peer, const struct unm_send *s)
{
	struct unm_ep *ep = peer->ep;
	struct unm_pool_node *node;
	struct unm_tx_op *op;

	if (ep->tx_pool.used >= (ep->tx_pool.max + 1) / 2) {
		ep->stats->again_op++;
		ep->ops_wanted = true;
		return -FI_EAGAIN;
	}
	op = unm_tx_op_new(peer, s);
	if (op == NULL)
		return -FI_EAGAIN;
	if (s->inject && s->len != 0) {
		node = unm_buf_alloc(ep, s->len, &op->buf_class);
		if (node == NULL) {
			unm_tx_op_undo(op);
			return -FI_ENOMEM;
		}
		op->buf = node;
		op->iov[0] = (struct iovec){ node + 1, s->len };
		unm_iov_fetch(s->iov, s->count, 0, node + 1, s->len);
		op->send.count = 1;
	}
	op->state = UNM_TX_BACKLOG;
	unm_list_append(&peer->backlog, &op->link);
	peer->msg_limit = peer->msgs_sent;
	unm_peer_schedule(peer);
	ep->stats->tx_backlog++;
	return 0;
}

/* Send what the peer can take of its backlog, in order. Returns the number of
 * operations sent or completed. */
static int unm_backlog_push(struct unm_peer *peer)
{
	uint64_t released = hal_tx_done(peer->hp);
	uint64_t allowed = unm_peer_limit(peer);
	int ret = 0, done = 0;

	/* The peer has released nothing and given no credit. Try now and then
	 * all the same, because a HAL may refuse for reasons of its own. */
	if (released == peer->tried_at && allowed == peer->tried_limit &&
	    !peer->ep->armed && peer->ep->turns % UNM_BACKLOG_POLLS != 0)
		return 0;
	peer->tried_at = released;
	peer->tried_limit = allowed;
	while (!unm_list_empty(&peer->backlog) && ret != -FI_EAGAIN) {
		struct unm_tx_op *op = unm_container(peer->backlog.next,
						struct unm_tx_op, link);

		ret = unm_send_now(peer, &op->send, op);
		if (ret != 0 && ret != -FI_EAGAIN)
			unm_tx_op_done(op, -ret);
		done += ret != -FI_EAGAIN;
	}
	if (!unm_list_empty(&peer->backlog)) {
		peer->msg_limit = peer->msgs_sent;
	} else if (peer->ep->ops_wanted) {
		/* calls refused because of the backlog can be repeated */
		peer->ep->ops_wanted = false;
		unm_ep_signal_retry(peer->ep);
	}
	return done;
}

/* ---- Calls ------------------------------------------------------------- */

ssize_t unm_send_slow(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s)
{
	struct unm_peer *peer;
	int ret;

	if (s->inject && s->len > ep->info->tx_attr->inject_size)
		return -FI_EMSGSIZE;
	if ((s->flags & FI_COMPLETION) && unm_cq_full(ep->tx_cq)) {
		unm_cq_refuse(ep->tx_cq);
		ep->stats->again_queue++;
		return -FI_EAGAIN;
	}
	ret = unm_peer_open(ep, dest, &peer);
	if (ret != 0) {
		/* no event follows when a connection becomes possible: the
		 * application must not sleep */
		if (ret == -FI_EAGAIN)
			unm_ep_signal_retry(ep);
		return ret;
	}
	if (unm_list_empty(&peer->backlog)) {
		ret = unm_send_now(peer, s, NULL);
		if (ret != -FI_EAGAIN)
			return ret;
		unm_peer_note_refusal(peer);
		if (peer->refusals < UNM_PEER_REFUSALS)
			return ret;
	}
	return unm_backlog_add(peer, s);
}

ssize_t unm_tx_iov(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s)
{
	ssize_t ret;

	if (s->count > UNM_IOV_MAX)
		return -FI_EINVAL;
	if (s->flags & ~(UNM_TX_MSG_FLAGS | UNM_OP_WORK))
		return -FI_EBADFLAGS;
	s->len = unm_iov_len(s->iov, s->count);
	s->inject = s->flags & FI_INJECT;
	unm_lock(ep->domain);
	ret = unm_send_slow(ep, dest, s);
	unm_unlock(ep->domain);
	return ret;
}

/* ---- Packets of the receiver ------------------------------------------ */

/*
 * The rendezvous that a peer's token names; NULL: there is none with this peer.
 * The last packets of a dead peer may name sends that ended when its first
 * connection did; those packets are ignored.
 */
static struct unm_tx_op *unm_tx_op_find(struct unm_peer *peer, uint64_t token)
{
	struct unm_tx_op *op = unm_pool_find(&peer->ep->tx_pool, token);

	if (op == NULL || op->peer != peer || op->state < UNM_TX_RTS)
		return NULL;
	return op;
}

/* The peer asks for the first m->len bytes, streamed. */
void unm_send_on_cts(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_tx_op *op = unm_tx_op_find(peer, m->token);

	if (op == NULL && peer->hp->dead)
		return;
	if (op == NULL || op->state != UNM_TX_RTS || m->len > op->send.len ||
	    m->len == 0) {
		unm_peer_fail(peer, "cts for no such send", m->token);
		return;
	}
	op->state = UNM_TX_STREAM;
	/* Reading a buffer that is not mapped would end in a signal, so it is
	 * checked if the peer could not read it. */
	op->bad = m->check &&
		unm_mr_present(op->iov, op->send.count, FI_REMOTE_READ) != 0;
	op->peer_token = m->peer_token;
	op->sent = 0;
	op->wanted = m->len;
	op->waits = false;
	unm_list_remove(&op->link);
	unm_list_append(&peer->streams, &op->link);
	peer->ep->stats->tx_stream++;
	unm_peer_schedule(peer);
}

/* The peer has the whole message, or has discarded it. A stream may end early:
 * the peer may have read the pieces that were not sent yet. */
void unm_send_on_fin(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_tx_op *op = unm_tx_op_find(peer, m->token);

	if (op == NULL && peer->hp->dead)
		return;
	if (op == NULL) {
		unm_peer_fail(peer, "fin for no such send", m->token);
		return;
	}
	unm_tx_op_done(op, m->status == 0 ? 0 : FI_EIO);
}

/* ---- Progress -------------------------------------------------------- */

/* Send an empty piece: the buffer cannot be read. Returns the number of pieces
 * sent. */
static int unm_stream_refuse(struct unm_peer *peer, struct unm_tx_op *op)
{
	uint64_t w[2] = { op->peer_token, unm_wire_extent_word(0, 0) };

	if (hal_pkt_send(peer->hp, hal_head(UNM_WIRE_DATA, 0), w, 2, NULL,
			 0) != 0)
		return 0;
	unm_tx_op_done(op, FI_EFAULT);
	return 1;
}

/*
 * Free receive space for a piece of *len bytes, or UNM_SPACE_NONE. The piece
 * waits for space to become free instead of being cut at once: the peer
 * releases extents one by one, so a short piece would be followed by a short
 * piece in each lap of the ring. Other sends may take each extent first: then,
 * after UNM_STREAM_WAIT extents became free, the piece is cut to piece_max, or
 * to UNM_STREAM_MIN if this does not fit either. Packets that named no extent
 * do not count.
 */
static uint32_t unm_stream_space(struct unm_peer *peer, struct unm_tx_op *op,
				 uint32_t *len)
{
	uint32_t least = peer->ep->piece_max < UNM_STREAM_MIN ?
		peer->ep->piece_max : UNM_STREAM_MIN;
	uint32_t off = unm_peer_find_space(peer, *len);

	if (off != UNM_SPACE_NONE || *len <= least ||
	    peer->space == NULL) {
		op->waits = false;
		return off;
	}
	if (!op->waits) {
		op->waits = true;
		op->freed = peer->space->mark_head;
	}
	if (peer->space->mark_head - op->freed < UNM_STREAM_WAIT)
		return UNM_SPACE_NONE;
	if (*len > peer->ep->piece_max) {
		*len = peer->ep->piece_max;
		off = unm_peer_find_space(peer, *len);
	}
	if (off == UNM_SPACE_NONE) {
		*len = least;
		off = unm_peer_find_space(peer, *len);
	}
	op->waits = off == UNM_SPACE_NONE;
	return off;
}

/*
 * The length of the next piece of a stream. The receiver begins when the first
 * piece is there, and ends a piece after the sender: so the first and the last
 * ones have at most piece_max bytes. The packet of a piece costs transfers of
 * cache lines, which may take longer than such a piece does: so those in
 * between are twice or four times as long, where the receive space holds
 * UNM_STREAM_DEPTH of them. To a peer on another host all pieces are nearly as
 * long as that, because a message of the network takes longer than a copy.
 */
static uint64_t unm_stream_piece(const struct unm_peer *peer,
				 const struct unm_tx_op *op)
{
	uint64_t left = op->wanted - op->sent;
	uint64_t end = op->sent < left ? op->sent : left;
	uint64_t len = peer->ep->piece_max, most = len * UNM_STREAM_GROWS;

	if (peer->space == NULL)
		most = 0;
	else if (most > peer->space->bytes / UNM_STREAM_DEPTH)
		most = peer->space->bytes / UNM_STREAM_DEPTH;
	if (peer->hp->host != NULL && most > len)
		len = most - most / UNM_STREAM_HEADS;
	while (2 * len <= most && 4 * len <= end)
		len *= 2;
	return left < len ? left : len;
}

/* Send pieces of a stream until UNM_STREAM_BURST ends it, while the receive
 * space has free space. Returns the number of pieces sent. */
static int unm_stream_push(struct unm_peer *peer, struct unm_tx_op *op)
{
	uint64_t most = (uint64_t)UNM_STREAM_BURST * peer->ep->piece_max;
	uint64_t end = op->wanted - op->sent < most ? op->wanted :
		op->sent + most;
	int done = 0;

	if (op->bad)
		return unm_stream_refuse(peer, op);
	while (op->sent < end && hal_tx_free(peer->hp)) {
		uint32_t len = (uint32_t)unm_stream_piece(peer, op);
		uint32_t off = unm_stream_space(peer, op, &len);
		uint64_t w[2] = { op->peer_token };

		if (off == UNM_SPACE_NONE)
			return done;
		unm_peer_put(peer, off, op->iov, op->send.count, op->sent,
			     len);
		hal_space_barrier(peer->hp);
		HAL_FAULT_POINT(HAL_FAULT_POINT_PIECE);
		w[1] = unm_wire_extent_word(off, len);
		if (hal_pkt_send(peer->hp, hal_head(UNM_WIRE_DATA, 0), w, 2,
				 NULL, 0) != 0)
			return done;
		unm_space_take(peer->space, off, len,
			       hal_tx_sent(peer->hp) - 1);
		peer->piece_last = true;
		op->sent += len;
		done++;
	}
	if (op->sent == op->wanted) {
		op->state = UNM_TX_STREAMED;
		unm_list_remove(&op->link);
		unm_list_append(&peer->rts, &op->link);
	}
	return done;
}

/* May a refused send succeed now? True if the peer has released packets or
 * given credits since. */
static bool unm_send_may_retry(struct unm_peer *peer)
{
	if (peer->retry || hal_tx_done(peer->hp) != peer->refused_at)
		return true;
	return unm_list_empty(&peer->backlog) &&
		peer->msgs_sent == peer->msg_limit &&
		hal_tx_back(peer->hp, UNM_PEER_BACK_LIMIT) > peer->msg_limit;
}

int unm_send_progress(struct unm_peer *peer)
{
	int done = 0;

	if (!unm_list_empty(&peer->await)) {
		uint64_t released = hal_tx_done(peer->hp);

		while (!unm_list_empty(&peer->await)) {
			struct unm_tx_op *op = unm_container(peer->await.next,
						struct unm_tx_op, link);

			if (op->packet >= released)
				break;
			unm_tx_op_done(op, 0);
			done++;
		}
	}
	if (peer->refused && unm_send_may_retry(peer)) {
		peer->refused = false;
		unm_ep_signal_retry(peer->ep);
		done++;
	}
	if (!unm_list_empty(&peer->streams))
		done += unm_stream_push(peer,
				unm_container(peer->streams.next,
					      struct unm_tx_op, link));
	if (!unm_list_empty(&peer->backlog) && !peer->hp->dead)
		done += unm_backlog_push(peer);
	return done;
}

void unm_send_abort(struct unm_peer *peer, int err)
{
	struct unm_list *lists[] = {
		&peer->backlog, &peer->await, &peer->rts, &peer->streams,
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		while (!unm_list_empty(lists[i]))
			unm_tx_op_done(unm_container(lists[i]->next,
						struct unm_tx_op, link), err);
}
