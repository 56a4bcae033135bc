/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rendezvous.c - the receiving side of rendezvous. It owns the receives
 * that are in transfer.
 *
 * A message in dmable memory is read from there by the cDMA engine, into a
 * bounce buffer if the engine does not reach the receive buffer. Any other
 * message is either read at once, by cross-memory attach, or streamed: the
 * sender copies pieces into receive space, the receiver copies them out;
 * core/unm_way.h chooses. When no piece comes for some microseconds, the
 * receiver reads the rest of a streamed message by cross-memory attach, from
 * its end towards the pieces, so that a sender that computes does not delay the
 * receiver.
 *
 * unm_rendezvous.h declares the entry points. The sender's part is in
 * unm_send.c; docs/protocol.md, section 7, defines both.
 */
#include "core/unm_complete.h"
#include "core/unm_ep_wake.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_region.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_long.h"
#include "msg/unm_rdv_way.h"
#include "msg/unm_rendezvous.h"
#include "msg/unm_rx_op.h"
#include "rma/unm_bounce.h"
#include "rma/unm_cache.h"
#include "rma/unm_mem.h"
#include "unm_env.h"
#include "unm_log.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

#define UNM_READ_BYTES	(256u << 10)	/* of a stream, by one transfer */
#define UNM_WAIT_MIN_NS	2000		/* shortest wait for a piece */
#define UNM_IMPORT_NS	1000000000	/* longest wait for an import */

/* ---- Release ------------------------------------------------------------ */

/* Free the bounce buffer of a receive, if it has one. */
static void unm_rdv_unbounce(struct unm_ep *ep, struct unm_rx_op *op)
{
	if (op->bounce != NULL)
		unm_bounce_give(ep, UNM_BOUNCE_RX, op->bounce);
	op->bounce = NULL;
}

/* Remove a receive from all lists and release it. */
static void unm_rdv_release(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_rdv_goes(ep, op, UNM_WAY_NONE);
	unm_list_remove(&op->link);
	unm_list_remove(&op->control);
	unm_rdv_unbounce(ep, op);
	if (op->mem != NULL)
		unm_cache_read(op->peer, op->mem);
	unm_rx_op_release(ep, op);
}

/* ---- Control packets ------------------------------------------------- */

/* CTS was sent: the sender streams the message. */
static void unm_rdv_stream(struct unm_ep *ep, struct unm_rx_op *op)
{
	op->state = UNM_RX_STREAM;
	unm_list_remove(&op->control);
	if (!op->readable)
		return;
	unm_list_append(&ep->streams, &op->control);
	op->peer->life = UINT64_MAX;	/* the wait for a piece begins */
	if (ep->armed)			/* only progress reads the rest */
		unm_ep_wake_all(ep);
}

/* Send CTS or FIN, by op->state. True: sent; op may have been released. */
static bool unm_rdv_send_control(struct unm_peer *peer, struct unm_rx_op *op)
{
	struct unm_ep *ep = peer->ep;
	bool cts = op->state == UNM_RX_CTS;
	uint64_t w[3] = {
		op->peer_token,
		cts ? unm_pool_token(op) : (uint64_t)-op->status,
		op->wanted,
	};
	uint64_t head = cts ? hal_head(UNM_WIRE_CTS, op->fault ?
				       UNM_WIRE_FAULT : 0) :
		hal_head(UNM_WIRE_FIN, 0);
	int ret = unm_peer_send(peer, head, w, cts ? 3 : 2, NULL, 0);

	/* no event follows when a connection becomes possible: the endpoint
	 * must not sleep */
	if (ret == -FI_EAGAIN && !peer->hello_sent)
		ep->must_poll = true;
	/* HAL_EV_DEAD ends the operations of a peer that has ended, once its
	 * last packets are read */
	if (ret == -FI_EAGAIN || ret == -FI_ECONNREFUSED ||
	    ret == -FI_ECONNRESET)
		return false;
	if (ret != 0) {
		unm_peer_fail(peer, "no way to answer it", -ret);
		return false;
	}
	if (cts) {
		unm_rdv_stream(ep, op);
		return true;
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_FIN);
	unm_rdv_release(ep, op);
	return true;
}

/* Have progress read the whole message. */
static void unm_rdv_read_all(struct unm_ep *ep, struct unm_rx_op *op)
{
	op->state = UNM_RX_DMA_WAIT;
	unm_list_append(&ep->dma_wait, &op->control);
	if (ep->armed)			/* only progress posts the transfer */
		unm_ep_wake_all(ep);
}

/* Send CTS or FIN (state), at once if possible: the next call of the
 * application may come late. op may have been released after this. */
static void unm_rdv_control(struct unm_rx_op *op, enum unm_rx_state state)
{
	struct unm_peer *peer = op->peer;

	op->state = state;
	if (unm_list_empty(&peer->control) && unm_rdv_send_control(peer, op))
		return;
	unm_list_remove(&op->control);
	if (state == UNM_RX_CTS && op->readable) {
		/* the peer's ring is full: read the message at once */
		unm_rdv_goes(peer->ep, op, UNM_WAY_ATTACH);
		unm_rdv_read_all(peer->ep, op);
		return;
	}
	unm_list_append(&peer->control, &op->control);
	unm_peer_schedule(peer);
}

/* Report the completion of a receive to the application. */
static void unm_rdv_complete(struct unm_ep *ep, struct unm_rx_op *op)
{
	struct unm_rx_op *buf = op->parent;
	struct unm_rx_done done = {
		.context = op->match.context,
		.flags = (op->flags & (FI_COMPLETION | UNM_OP_WORK)) |
			(op->has_data ? FI_REMOTE_CQ_DATA : 0),
		.tagged = op->tagged,
		.len = op->got,
		.olen = op->msg_len - op->wanted,
		.buf = op->iov[0].iov_base,
		.data = op->data,
		.tag = op->tag,
		.src = op->peer->fi_addr, .peer = op->peer,
	};
	bool canceled = false;

	if (op->status != 0)
		done.err = -op->status;
	else if (op->wanted < op->msg_len)
		done.err = FI_ETRUNC;
	if (buf != NULL) {
		op->parent = NULL;
		buf->children--;
		canceled = buf->canceled;
		if (!canceled)
			done.flags |= unm_multi_put(ep, buf);
	}
	if (op->status == 0) {	/* (truncated messages too) */
		ep->stats->rx_msgs++;
		ep->stats->rx_bytes += op->got;
	}
	unm_complete_rx(ep, &done);
	if (canceled)		/* its FI_ECANCELED follows its last message */
		unm_multi_put(ep, buf);
}

static void unm_rdv_finish(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_rdv_complete(ep, op);
	unm_rdv_release(ep, op);
}

void unm_rendezvous_arrived(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_rdv_arrived(ep, op);
	unm_rdv_finish(ep, op);
}

/* ---- Choice of the transfer -------------------------------------------- */

/* Can the cDMA engine write to the buffers of this receive? An engine reaches
 * all memory (HAL_CAP_DMA_ANY), or dmable memory only. */
static bool unm_rdv_engine(const struct unm_ep *ep, const struct unm_rx_op *op)
{
	if (ep->hif->caps->flags & HAL_CAP_DMA_ANY)
		return true;
	for (size_t i = 0; i < op->count; i++)
		if (unm_mem_find(ep->domain, op->iov[i].iov_base,
				 op->iov[i].iov_len) == NULL)
			return false;
	return true;
}

/* Do messages from dmable memory wait for imports, and complete in the order in
 * which they matched? */
static bool unm_rdv_ordered(void)
{
	return !g_unm_env.rkey_keep || g_unm_env.bounce != 0;
}

/* The first message of a peer in one of these states, a sum of 1 << state; or
 * NULL. */
static struct unm_rx_op *unm_rdv_first(const struct unm_peer *peer,
				       unsigned states)
{
	unm_list_for_each(pos, &peer->recvs) {
		struct unm_rx_op *op = unm_container(pos, struct unm_rx_op,
						     link);

		if (states >> op->state & 1)
			return op;
	}
	return NULL;
}

/* Import the sender's dmable memory. True: done, or in progress, and op->state
 * is IMPORT. Messages that wait are read in the order in which they matched. */
static bool unm_rdv_import(struct unm_ep *ep, struct unm_rx_op *op,
			   const struct hal_key *key)
{
	bool wait = unm_rdv_ordered();
	int ret = -FI_EAGAIN;

	if (!wait || unm_rdv_first(op->peer, 1 << UNM_RX_IMPORT) == NULL)
		ret = unm_cache_import(op->peer, key, &op->mem);
	/* else the import is for later messages, and this one is streamed */
	if (ret != -FI_EAGAIN || !wait)
		return ret == 0;
	op->state = UNM_RX_IMPORT;
	op->key = *key;
	op->import_ns = unm_now_ns();
	unm_list_append(&ep->streams, &op->control);
	if (ep->armed)			/* only progress continues it */
		unm_ep_wake_all(ep);
	return true;
}

/* Have the engine read a message from the sender's dmable memory? False: stream
 * it. */
static bool unm_rdv_read_dmable(struct unm_ep *ep, struct unm_rx_op *op,
				const struct hal_key *key)
{
	if (!g_unm_env.direct)
		return false;
	if (!unm_rdv_engine(ep, op)) {
		op->bounce = unm_bounce_take(ep, UNM_BOUNCE_RX, op->wanted);
		if (op->bounce == NULL)
			return false;
	}
	if (unm_rdv_import(ep, op, key))
		return true;
	unm_rdv_unbounce(ep, op);
	return false;
}

/* Read the whole message at once? False: stream it. */
static bool unm_rdv_read_now(struct unm_ep *ep, struct unm_rx_op *op,
			     const struct unm_got *got)
{
	struct unm_way *way;

	if (got->dmable)
		return unm_rdv_read_dmable(ep, op, &got->key);
	if (!op->readable) {
		/* (an address of 0 says nothing about other messages) */
		if (op->addr != 0)
			unm_long_allow(op->peer, unm_way_class(op->wanted),
				       true);
		return false;
	}
	if (g_unm_env.stream_us == 0) {
		unm_rdv_goes(ep, op, UNM_WAY_ATTACH);
	} else if (unm_peer_ways(op->peer) == NULL) {
		unm_rdv_goes(ep, op, UNM_WAY_ASSISTED);
	} else {
		way = unm_rdv_way(op);
		unm_rdv_goes(ep, op, unm_way_choose(way, op->wanted,
				op->peer->recvs.next != &op->link));
		op->begun_ns = unm_rdv_begun(op);
		unm_long_allow(op->peer, unm_way_class(op->wanted),
			       unm_way_streams(way));
	}
	return op->how == UNM_WAY_ATTACH;
}

/* The kernel forbids cross-memory attach with this peer: pieces only. */
static void unm_rdv_forbidden(struct unm_peer *peer)
{
	if (!peer->attach_off)
		UNM_INFO(EP_DATA, "cross-memory attach refused by the "
			 "kernel: long messages are streamed\n");
	peer->attach_off = true;
}

/* A new operation for a transfer of len bytes into part of a multi-receive
 * buffer. NULL: no memory. */
static struct unm_rx_op *unm_rdv_child(struct unm_ep *ep,
				       struct unm_rx_op *buf, uint64_t len)
{
	struct unm_rx_op *op;
	struct iovec iov;

	op = unm_rx_op_new(ep, buf->match.context, buf->flags & FI_COMPLETION,
			   buf->tagged);
	if (op == NULL)
		return NULL;
	buf->children++;
	iov.iov_len = unm_multi_take(ep, buf, len, &iov.iov_base);
	unm_rx_op_vector(op, &iov, 1);
	op->parent = buf;
	return op;
}

void unm_rendezvous_begin(struct unm_ep *ep, struct unm_rx_op *op,
			  const struct unm_got *got)
{
	HAL_FAULT_POINT(HAL_FAULT_POINT_MATCHED);
	if (op->flags & FI_MULTI_RECV) {
		op = unm_rdv_child(ep, op, got->len);
		if (op == NULL) {
			unm_peer_fail(got->peer,
				      "out of memory for its message", 0);
			return;
		}
	} else {
		op->parent = NULL;
	}
	op->peer = got->peer;
	op->tag = got->tag;
	op->data = got->data;
	op->has_data = got->has_data;
	op->msg_len = got->len;
	op->wanted = got->len < op->len ? got->len : op->len;
	op->got = 0;
	op->end = op->wanted;
	op->reading = 0;
	op->how = UNM_WAY_NONE;
	op->begun_ns = 0;
	op->peer_token = got->token;
	op->addr = got->addr;
	op->mem = NULL;
	op->bounce = NULL;
	op->dma_next = 0;
	op->dma_left = 0;
	op->fault = false;
	op->status = 0;
	unm_list_init(&op->link);
	unm_list_init(&op->control);
	if (got->peer->hp == NULL) {
		op->status = -FI_ECONNRESET;
		unm_rdv_finish(ep, op);
		return;
	}
	if (got->bytes != NULL) {
		unm_list_append(&got->peer->recvs, &op->link);
		unm_long_begin(ep, op, got);
		return;
	}
	op->readable = !got->dmable && op->addr != 0 &&
		unm_rdv_readable(op->peer);
	unm_list_append(&got->peer->recvs, &op->link);
	if (op->wanted == 0) {
		unm_rdv_complete(ep, op);
		unm_rdv_control(op, UNM_RX_FIN);
	} else if (unm_rdv_read_now(ep, op, got)) {
		if (op->state != UNM_RX_IMPORT)
			unm_rdv_read_all(ep, op);
	} else {
		unm_rdv_control(op, UNM_RX_CTS);
	}
}

void unm_rendezvous_refuse(struct unm_ep *ep, const struct unm_got *got)
{
	struct unm_rx_op *op;

	if (got->peer->hp == NULL)
		return;
	op = unm_rx_op_new(ep, NULL, 0, got->tagged);
	if (op == NULL) {
		unm_peer_fail(got->peer, "out of memory for its message", 0);
		return;
	}
	op->peer = got->peer;
	op->peer_token = got->token;
	op->mem = NULL;
	op->bounce = NULL;
	op->status = 0;
	op->how = UNM_WAY_NONE;
	unm_list_init(&op->control);
	unm_list_append(&got->peer->recvs, &op->link);
	unm_rdv_control(op, UNM_RX_FIN);
}

int unm_recv_progress(struct unm_peer *peer)
{
	int done = 0;

	while (!unm_list_empty(&peer->control)) {
		struct unm_rx_op *op = unm_container(peer->control.next,
						struct unm_rx_op, control);

		if (!unm_rdv_send_control(peer, op))
			break;
		done++;
	}
	return done;
}

/*
 * A transfer failed because the engine or the kernel could not access one of
 * the two buffers, which may be valid memory nevertheless (docs/protocol.md,
 * section 7). Check the receive buffer. True: it is valid; the message is to be
 * streamed, and CTS asks the sender to check its own buffer.
 */
static bool unm_rdv_fault(struct unm_rx_op *op)
{
	uint64_t left = op->wanted;

	for (size_t i = 0; i < op->count && left != 0; i++) {
		struct iovec part = op->iov[i];

		if (part.iov_len > left)
			part.iov_len = left;
		if (unm_mr_present(&part, 1, FI_REMOTE_WRITE) != 0)
			return false;
		left -= part.iov_len;
	}
	op->fault = true;
	return true;
}

/* Every transfer of an operation has ended. */
static void unm_rdv_read(struct unm_ep *ep, struct unm_rx_op *op)
{
	if (op->bounce != NULL && op->status == 0) {
		unm_iov_fill(op->iov, op->count, 0, op->bounce, op->wanted);
		ep->stats->rx_bounce++;
	}
	unm_rdv_unbounce(ep, op);
	if (op->status == -FI_EACCES && op->mem == NULL)
		unm_rdv_forbidden(op->peer);
	if (op->status == -FI_EACCES ||
	    (op->status == -FI_EFAULT && unm_rdv_fault(op))) {
		op->status = 0;
		op->got = 0;
		op->readable = false;
		unm_rdv_goes(ep, op, UNM_WAY_ASSISTED);
		unm_rdv_control(op, UNM_RX_CTS);
		return;
	}
	if (op->status == -FI_ECANCELED) {
		/* The peer ended. FI_ECANCELED would mean fi_cancel(). */
		op->status = -FI_ECONNRESET;
	} else if (op->status != 0 && op->status != -FI_EFAULT) {
		UNM_INFO(EP_DATA, "reading a message failed: %s\n",
			 fi_strerror(-op->status));
		op->status = -FI_EIO;
	}
	if (op->status != 0) {
		unm_rdv_goes(ep, op, UNM_WAY_NONE);
		op->got = 0;
	} else if (op->mem != NULL) {
		ep->stats->rx_dmable++;
	} else {
		ep->stats->rx_attach++;
		unm_rdv_arrived(ep, op);
	}
	unm_rdv_complete(ep, op);
	unm_rdv_control(op, UNM_RX_FIN);
}

/* Complete messages of a peer, up to the first that is not read yet. */
static void unm_rdv_read_first(struct unm_ep *ep, struct unm_peer *peer)
{
	struct unm_rx_op *op;

	while ((op = unm_rdv_first(peer, 1 << UNM_RX_IMPORT | 1 << UNM_RX_DMA |
				   1 << UNM_RX_DMA_WAIT)) != NULL &&
	       op->dma_left == 0 && op->state == UNM_RX_DMA)
		unm_rdv_read(ep, op);
}

/* Every transfer of an operation has ended. An engine may end transfers in any
 * order; complete the messages of this peer in theirs. */
static void unm_rdv_ended(struct unm_ep *ep, struct unm_rx_op *op)
{
	struct unm_peer *peer = op->peer;

	unm_peer_ref(peer);
	if (unm_rdv_ordered())
		unm_rdv_read_first(ep, peer);
	else
		unm_rdv_read(ep, op);
	unm_peer_unref(peer);
}

/* ---- Streams ----------------------------------------------------------- */

/* All bytes have arrived or were read: complete the receive, and notify the
 * sender with FIN. */
static void unm_stream_end(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_rdv_arrived(ep, op);
	if (op->end != op->wanted)
		ep->stats->rx_attach++;
	op->got = op->wanted;
	unm_list_remove(&op->control);
	unm_rdv_complete(ep, op);
	unm_rdv_control(op, UNM_RX_FIN);
}

int unm_recv_data(struct unm_peer *peer, uint64_t token, const void *bytes,
		  uint32_t len)
{
	struct unm_ep *ep = peer->ep;
	struct unm_rx_op *op = unm_pool_find(&ep->rx_pool, token);

	/* This receiver has read the whole message, and the sender had no FIN
	 * yet when it sent this piece. */
	if (op == NULL)
		return unm_pool_released(&ep->rx_pool, token) ?
			0 : -FI_EINVAL;
	if (op->peer == peer && op->state == UNM_RX_FIN)
		return 0;
	if (op->peer != peer || op->state != UNM_RX_STREAM ||
	    (len == 0 && !op->fault) || len > op->wanted - op->got)
		return -FI_EINVAL;
	if (len == 0) {
		op->status = -FI_EIO;
		op->got = 0;
		unm_rdv_finish(ep, op);
		return 0;
	}
	if (op->got < op->end)
		unm_iov_fill(op->iov, op->count, op->got, bytes,
			     len < op->end - op->got ? len :
			     op->end - op->got);
	op->got += len;
	peer->pieces++;
	if (op->got >= op->end && op->reading == 0)
		unm_stream_end(ep, op);
	return 0;
}

/* The last missing bytes of a stream that one transfer can read: at most
 * UNM_READ_BYTES, into one entry of the receive's vector. *at is their place in
 * the receive buffer. Returns their number. */
static uint64_t unm_stream_tail(const struct unm_rx_op *op, void **at)
{
	uint64_t off = 0, from = op->got;
	size_t i = 0;

	while (off + op->iov[i].iov_len < op->end)
		off += op->iov[i++].iov_len;
	if (from < off)
		from = off;
	if (op->end - from > UNM_READ_BYTES)
		from = op->end - UNM_READ_BYTES;
	*at = (char *)op->iov[i].iov_base + (from - off);
	return op->end - from;
}

/* Do not read any more of this stream: its pieces bring the rest. */
static void unm_stream_leave(struct unm_rx_op *op)
{
	op->readable = false;
	unm_list_remove(&op->control);
}

/* Post a transfer that reads the end of the missing bytes. */
static void unm_stream_read(struct unm_ep *ep, struct unm_rx_op *op)
{
	struct hal_dma dma = { .op = HAL_DMA_GET, .peer = op->peer->hp };
	int ret;

	dma.len = unm_stream_tail(op, &dma.local);
	dma.raddr = op->addr + op->end - dma.len;
	ret = hal_dma_post(ep->hif, &dma, unm_pool_token(op));
	if (ret == 0) {
		op->reading = dma.len;
		ep->dma_out++;
	} else if (ret != -FI_EAGAIN) {
		if (ret == -FI_EACCES)
			unm_rdv_forbidden(op->peer);
		unm_stream_leave(op);
	}
}

/* A count that changes when a peer makes progress. Messages are not counted: a
 * send call of the peer sends these without making progress. */
static uint64_t unm_stream_life(const struct unm_peer *peer)
{
	return peer->pieces + hal_tx_done(peer->hp);
}

/* The transfer of unm_stream_read() has ended. */
static void unm_stream_done(struct unm_ep *ep, struct unm_rx_op *op, int status)
{
	uint64_t from = op->end - op->reading;

	op->reading = 0;
	if (status == 0) {
		op->end = from;
	} else {
		if (status == -FI_EACCES)
			unm_rdv_forbidden(op->peer);
		unm_stream_leave(op);
		/* The sender closed its endpoint during the transfer, which may
		 * have written other bytes over the pieces. */
		if (status == -FI_ECANCELED && op->got > from) {
			op->status = -FI_ECONNRESET;
			op->got = 0;
			unm_rdv_finish(ep, op);
			return;
		}
	}
	if (op->got >= op->end)
		unm_stream_end(ep, op);
	else if (op->readable && unm_stream_life(op->peer) == op->peer->life)
		unm_stream_read(ep, op);
}

/* How long to wait for a piece, in ns: as long as reading the rest takes, so
 * that a wait for a piece that does not come at most doubles the time. */
static uint64_t unm_stream_wait(const struct unm_rx_op *op)
{
	uint64_t max = (uint64_t)g_unm_env.stream_us * 1000;
	uint64_t ns = unm_way_attach_ns(unm_rdv_way(op), op->end - op->got);

	if (ns < UNM_WAIT_MIN_NS)
		ns = UNM_WAIT_MIN_NS;
	return ns < max ? ns : max;
}

/* Continue the import for the first message of a peer that waits for one. If
 * the import fails, or takes too long, the message is streamed,
 * and those that were read meanwhile wait for it no more. */
static void unm_rdv_continue_import(struct unm_ep *ep, struct unm_peer *peer)
{
	struct unm_rx_op *op = unm_rdv_first(peer, 1 << UNM_RX_IMPORT);
	int ret = unm_cache_import(peer, &op->key, &op->mem);

	if (ret == -FI_EAGAIN && unm_now_ns() - op->import_ns < UNM_IMPORT_NS)
		return;
	unm_list_remove(&op->control);
	if (ret == 0) {
		unm_rdv_read_all(ep, op);
		return;
	}
	unm_rdv_unbounce(ep, op);
	unm_peer_ref(peer);
	unm_rdv_control(op, UNM_RX_CTS);
	unm_rdv_read_first(ep, peer);
	unm_peer_unref(peer);
}

void unm_recv_streams(struct unm_ep *ep)
{
	struct unm_rx_op *op = unm_container(ep->streams.next,
					     struct unm_rx_op, control);
	struct unm_peer *peer = op->peer;
	uint64_t life, now, head;

	/* the next call examines the next stream */
	unm_list_remove(&op->control);
	unm_list_append(&ep->streams, &op->control);
	if (peer->hp == NULL || peer->hp->dead)
		return;
	if (op->state == UNM_RX_IMPORT) {
		unm_rdv_continue_import(ep, peer);
		return;
	}
	/* packets that are there come first: they may be pieces */
	if (op->reading != 0 || hal_rx_peek(peer->hp, &head) != NULL)
		return;
	life = unm_stream_life(peer);
	now = unm_now_ns();
	if (life != peer->life) {
		peer->life = life;
		peer->life_ns = now;
	} else if (now - peer->life_ns >= unm_stream_wait(op)) {
		unm_stream_read(ep, op);
	}
}

/* ---- Reading whole messages ------------------------------------------ */

/* Post the transfers of one operation. False: the engine has no free entry. */
static bool unm_rdv_post(struct unm_ep *ep, struct unm_rx_op *op)
{
	const struct iovec whole = { op->bounce, op->wanted };
	size_t count = op->bounce != NULL ? 1 : op->count;

	while (op->dma_next < count) {
		const struct iovec *iov = op->bounce != NULL ? &whole :
			&op->iov[op->dma_next];
		uint64_t left = op->wanted - op->got;
		struct hal_dma dma = {
			.op = HAL_DMA_GET,
			.peer = op->peer->hp,
			.rmem = op->mem != NULL ? op->mem->rmem : NULL,
			.raddr = op->addr + op->got,
			.local = iov->iov_base,
			.len = iov->iov_len < left ? iov->iov_len : left,
		};
		int ret;

		if (dma.len != 0) {
			ret = hal_dma_post(ep->hif, &dma, unm_pool_token(op));
			if (ret == -FI_EAGAIN)
				return false;
			if (ret != 0) {
				op->status = ret;
				break;
			}
			op->dma_left++;
			ep->dma_out++;
			op->got += dma.len;
		}
		op->dma_next++;
	}
	op->state = UNM_RX_DMA;
	unm_list_remove(&op->control);
	return true;
}

void unm_recv_dma_post(struct unm_ep *ep)
{
	while (!unm_list_empty(&ep->dma_wait)) {
		struct unm_rx_op *op = unm_container(ep->dma_wait.next,
						struct unm_rx_op, control);

		if (!unm_rdv_post(ep, op))
			break;
		if (op->dma_left == 0)
			unm_rdv_ended(ep, op);
	}
}

void unm_recv_dma_done(struct unm_ep *ep, const struct hal_dma_comp *comp)
{
	struct unm_rx_op *op = unm_pool_find(&ep->rx_pool, comp->token);

	if (op == NULL)			/* its peer died meanwhile */
		return;
	if (op->state == UNM_RX_STREAM) {
		unm_stream_done(ep, op, comp->status);
		return;
	}
	if (comp->status != 0)
		op->status = comp->status;
	if (--op->dma_left == 0 && op->state == UNM_RX_DMA)
		unm_rdv_ended(ep, op);
}

void unm_recv_abort(struct unm_peer *peer, int err)
{
	struct unm_ep *ep = peer->ep;

	peer->long_op = NULL;
	peer->long_msg = NULL;
	while (!unm_list_empty(&peer->recvs)) {
		struct unm_rx_op *op = unm_container(peer->recvs.next,
						struct unm_rx_op, link);

		if (op->state == UNM_RX_FIN) {
			unm_rdv_release(ep, op);
			continue;
		}
		op->status = -err;
		op->got = 0;
		unm_rdv_finish(ep, op);
	}
}
