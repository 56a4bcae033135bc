/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_recv.c - receiving: posted receives, matching, delivery of messages that
 * are in a packet or in receive space, unexpected messages, peek and cancel.
 *
 * unm_recv.h declares the entry points. A matched rendezvous is passed to
 * unm_rendezvous.c. docs/protocol.md defines the messages.
 */
#include "core/unm_av_table.h"
#include "core/unm_buf.h"
#include "core/unm_complete.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_match.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_long.h"
#include "msg/unm_lost.h"
#include "msg/unm_recv.h"
#include "msg/unm_rendezvous.h"
#include "msg/unm_rx_op.h"
#include "unm_env.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

/* ---- Finished receives ----------------------------------------------- */

/* Fill *done for a receive into which len bytes were copied, to buf. */
static inline __attribute__((always_inline))
void unm_rx_done(struct unm_rx_done *done, const struct unm_rx_op *op,
		 const struct unm_got *got, void *buf, uint64_t len)
{
	done->context = op->match.context;
	done->flags = (op->flags & (FI_COMPLETION | UNM_OP_WORK)) |
		(got->has_data ? FI_REMOTE_CQ_DATA : 0);
	done->tagged = op->tagged;
	done->peek = false;
	done->len = len;
	done->olen = got->len - len;
	done->buf = buf;
	done->data = got->data;
	done->tag = got->tag;
	done->src = got->peer->fi_addr;
	done->peer = got->peer;
	done->err = len < got->len ? FI_ETRUNC : 0;
}

/* Copy a message whose bytes are here into a multi-receive buffer, and report
 * it. */
static __attribute__((noinline))
void unm_deliver_multi(struct unm_ep *ep, struct unm_rx_op *op,
		       const struct unm_got *got)
{
	struct unm_rx_done done;
	void *where;
	size_t len = unm_multi_take(ep, op, got->len, &where);

	memcpy(where, got->bytes, len);
	unm_rx_done(&done, op, got, where, len);
	done.flags |= unm_multi_put(ep, op);
	unm_complete_rx(ep, &done);
}

/* Copy a message whose bytes are here into a matched receive and complete the
 * receive. */
static inline __attribute__((always_inline))
void unm_deliver(struct unm_ep *ep, struct unm_rx_op *op,
		 const struct unm_got *got)
{
	struct unm_rx_done done;
	size_t len;

	ep->stats->rx_msgs++;
	ep->stats->rx_bytes += got->len;
	if (__builtin_expect((op->flags & FI_MULTI_RECV) != 0, 0)) {
		unm_deliver_multi(ep, op, got);
		return;
	}
	if (op->count == 1) {
		len = got->len < op->len ? got->len : op->len;
		if (len <= UNM_WIRE_INLINE_MAX)
			hal_copy_small(op->iov[0].iov_base, got->bytes, len);
		else
			memcpy(op->iov[0].iov_base, got->bytes, len);
	} else {
		len = unm_iov_fill(op->iov, op->count, 0, got->bytes,
				   got->len);
	}
	unm_rx_done(&done, op, got, op->iov[0].iov_base, len);
	unm_rx_op_release(ep, op);
	unm_complete_message(ep, &done);
}

/* ---- Unexpected messages --------------------------------------------- */

/* Bytes that a stored message takes from the pools. */
static size_t unm_msg_cost(const struct unm_ep *ep, const struct unm_msg *msg)
{
	return ep->msg_pool.size +
		(msg->buf != NULL ? ep->buf_pool[msg->buf_class].size : 0);
}

/* Copy the bytes of a message into msg, or into a buffer of a pool. */
static int unm_msg_copy(struct unm_ep *ep, struct unm_msg *msg,
			const struct unm_got *got)
{
	struct unm_pool_node *node;

	/* a LONG message, of any length, has a buffer, because its next pieces
	 * follow there */
	if (!got->rendezvous && msg->len <= UNM_WIRE_INLINE_MAX) {
		hal_copy_small(msg->bytes, got->bytes, msg->len);
		return 0;
	}
	node = unm_buf_alloc(ep, msg->len, &msg->buf_class);
	if (node == NULL)
		return -FI_ENOMEM;
	msg->buf = node;
	if (got->rendezvous)
		unm_long_store(msg, got);
	else
		memcpy(node + 1, got->bytes, msg->len);
	return 0;
}

/* Store a message that matches no posted receive. */
static void unm_msg_store(struct unm_ep *ep, const struct unm_got *got)
{
	struct unm_msg *msg = unm_pool_alloc(&ep->msg_pool);

	if (msg == NULL)
		goto nomem;
	msg->len = got->len;
	msg->rendezvous = got->rendezvous;
	msg->buf = NULL;
	if (got->bytes != NULL && unm_msg_copy(ep, msg, got) != 0) {
		unm_pool_release(&ep->msg_pool, msg);
		goto nomem;
	}
	msg->peer = got->peer;
	msg->claim = NULL;
	msg->data = got->data;
	msg->has_data = got->has_data;
	msg->tagged = got->tagged;
	if (got->bytes == NULL) {
		msg->token = got->token;
		msg->addr = got->addr;
	}
	msg->dmable = got->dmable;
	if (msg->dmable)
		msg->key = got->key;
	msg->match.tag = got->tag;
	msg->match.src = &got->peer->fi_addr;
	unm_match_store(&ep->match[got->tagged], &msg->match);
	unm_peer_ref(got->peer);
	unm_list_append(&got->peer->msgs, &msg->of_peer);
	ep->unexpected_bytes += unm_msg_cost(ep, msg);
	ep->stats->rx_unexpected++;
	return;
nomem:
	unm_peer_fail(got->peer, "out of memory for its message", 0);
}

/* Release a stored message that is in no matching queue any more. Credits that
 * were held back because of stored messages may be given then. */
static void unm_msg_release(struct unm_ep *ep, struct unm_msg *msg)
{
	struct unm_peer *peer = msg->peer;

	ep->unexpected_bytes -= unm_msg_cost(ep, msg);
	if (msg->buf != NULL) {
		unm_long_forget(msg);
		unm_pool_release(&ep->buf_pool[msg->buf_class], msg->buf);
	}
	unm_list_remove(&msg->of_peer);
	unm_pool_release(&ep->msg_pool, msg);
	if (unm_list_empty(&peer->msgs) && !unm_list_empty(&peer->throttled))
		unm_peer_grant(peer);
	unm_peer_unref(peer);
	if (!unm_list_empty(&ep->throttled) &&
	    ep->unexpected_bytes < g_unm_env.unexpected_max)
		unm_peer_grant_throttled(ep);
}

/* A stored message in the form in which it arrived. */
static struct unm_got unm_msg_got(const struct unm_msg *msg)
{
	return (struct unm_got){
		.peer = msg->peer, .tagged = msg->tagged,
		.has_data = msg->has_data, .rendezvous = msg->rendezvous,
		.tag = msg->match.tag, .data = msg->data, .len = msg->len,
		.token = msg->token, .addr = msg->addr,
		.dmable = msg->dmable,
		.key = msg->dmable ? msg->key : (struct hal_key){ { 0 } },
		.bytes = msg->buf != NULL ?
			(const void *)((struct unm_pool_node *)msg->buf + 1) :
			msg->rendezvous ? NULL : msg->bytes,
		.here = msg->len - msg->peer->long_left,
	};
}

/* ---- Arrivals -------------------------------------------------------- */

void unm_recv_message(struct unm_ep *ep, const struct unm_got *got)
{
	struct unm_match *match = &ep->match[got->tagged];
	struct unm_match_recv *recv;
	struct unm_rx_op *op;

	if (got->peer->msgs_got == got->peer->granted) {
		unm_peer_fail(got->peer, "more messages than allowed", 0);
		return;
	}
	got->peer->msgs_got++;
	recv = unm_match_find_recv(match, got->tag, got->peer->fi_addr);
	if (recv == NULL) {
		unm_msg_store(ep, got);
		return;
	}
	op = unm_container(recv, struct unm_rx_op, match);
	if (!(op->flags & FI_MULTI_RECV))
		unm_match_unpost(match, recv);
	if (got->rendezvous)
		unm_rendezvous_begin(ep, op, got);
	else
		unm_deliver(ep, op, got);
}

/* ---- Posting --------------------------------------------------------- */

/* Deliver a stored message, which is not in the matching queue any more, into a
 * receive, and release it. */
static void unm_msg_deliver(struct unm_ep *ep, struct unm_rx_op *op,
			    struct unm_msg *msg)
{
	struct unm_got got = unm_msg_got(msg);

	if (got.rendezvous)
		unm_rendezvous_begin(ep, op, &got);
	else
		unm_deliver(ep, op, &got);
	unm_msg_release(ep, msg);
}

/* Deliver the stored messages that match a multi-receive buffer. The buffer is
 * posted already, so that unm_multi_retire() works as for arriving messages. */
static void unm_multi_drain(struct unm_ep *ep, struct unm_rx_op *op)
{
	uint64_t token = unm_pool_token(op);
	struct unm_match_msg *found;

	/* a message that fills the buffer may release op */
	while (unm_pool_find(&ep->rx_pool, token) == op && !op->retired &&
	       (found = unm_match_find_msg(&ep->match[0], 0, 0,
					   op->match.src)) != NULL) {
		unm_match_unstore(&ep->match[0], found);
		unm_msg_deliver(ep, op, unm_container(found, struct unm_msg,
						      match));
	}
}

/* Deliver a stored message into a new receive, or post the receive. */
static inline void unm_recv_start(struct unm_ep *ep, struct unm_rx_op *op)
{
	struct unm_match *match = &ep->match[op->tagged];
	uint64_t src = op->match.src;
	struct unm_match_msg *found;

	if (op->flags & FI_MULTI_RECV) {
		op->children = 0;
		op->retired = false;
		op->canceled = false;
		unm_match_post(match, &op->match);
		unm_multi_drain(ep, op);
		if (unm_lost(ep, src))
			unm_lost_source(ep, src, FI_ECONNRESET);
		return;
	}
	found = match->nmsg == 0 ? NULL :
		unm_match_find_msg(match, op->match.tag, op->match.ignore, src);
	if (found == NULL) {
		unm_match_post(match, &op->match);
		return;
	}
	unm_match_unstore(match, found);
	unm_msg_deliver(ep, op, unm_container(found, struct unm_msg, match));
}

/* The source to match: the first index of the address in the address vector, as
 * in messages. Without FI_DIRECTED_RECV, or for FI_ADDR_UNSPEC, any source. */
static inline int unm_recv_src(const struct unm_ep *ep, fi_addr_t addr,
			       uint64_t *src)
{
	if (addr == FI_ADDR_UNSPEC || !ep->directed) {
		*src = UNM_MATCH_ANY;
		return 0;
	}
	if (addr >= ep->av->count || !ep->av->entry[addr].valid)
		return -FI_EINVAL;
	*src = ep->av->entry[addr].first;
	return 0;
}

/* The source of a posted receive after removals from the address vector. A
 * receive that names a removed index takes no message any more: the index may
 * be given to another address. */
static uint64_t unm_recv_src_now(const struct unm_match_recv *recv,
				 const void *arg)
{
	const struct unm_rx_op *op = unm_container(recv, struct unm_rx_op,
						   match);
	uint64_t src;

	return unm_recv_src(arg, op->from, &src) == 0 ? src : UNM_MATCH_NONE;
}

/* Deliver the stored messages that match a posted receive by their new sources,
 * oldest first: a later message must not overtake them. */
static void unm_recv_stored(struct unm_ep *ep, struct unm_match *match)
{
	unm_list_for_each_safe(pos, tmp, &match->all) {
		struct unm_match_msg *msg =
			unm_container(pos, struct unm_match_msg, all);
		struct unm_match_recv *recv =
			unm_match_find_recv(match, msg->tag, *msg->src);
		struct unm_rx_op *op;

		if (recv == NULL)
			continue;
		op = unm_container(recv, struct unm_rx_op, match);
		unm_match_unstore(match, msg);
		if (!(op->flags & FI_MULTI_RECV))
			unm_match_unpost(match, recv);
		unm_msg_deliver(ep, op, unm_container(msg, struct unm_msg,
						      match));
	}
}

void unm_recv_removed(struct unm_ep *ep, bool moved)
{
	bool renamed = false;

	if (!ep->directed)
		return;
	for (int tagged = 0; tagged < 2; tagged++) {
		struct unm_match *match = &ep->match[tagged];
		bool these;

		if (match->nrecv == 0)
			continue;
		these = unm_match_rename_recvs(match, unm_recv_src_now, ep);
		renamed |= these;
		/* else nothing matches that did not match before */
		if (moved || these)
			unm_recv_stored(ep, match);
	}
	if (renamed)
		unm_lost_renamed(ep);
}

/* Receive into buf, or if iov is not NULL, into a vector of len entries. */
static inline __attribute__((always_inline))
ssize_t unm_recv_queue(struct unm_ep *ep, const uint64_t kind, void *buf,
		       size_t len, const struct iovec *iov, fi_addr_t addr,
		       uint64_t tag, uint64_t ignore, void *context,
		       uint64_t flags)
{
	const bool tagged = kind == FI_TAGGED;
	struct unm_rx_op *op;
	uint64_t src;
	int ret;

	ret = unm_recv_src(ep, addr, &src);
	if (ret != 0)
		return ret;
	if (unm_lost(ep, src) &&
	    unm_match_find_msg(&ep->match[tagged], tag, ignore, src) == NULL)
		return -FI_ECONNRESET;
	if (ep->rx_pool.used >= (uint32_t)g_unm_env.rx_size) {
		ep->recvs_wanted = true;
		return -FI_EAGAIN;
	}
	if (unm_cq_full(ep->rx_cq) &&
	    (flags & (FI_COMPLETION | UNM_OP_WORK)) != UNM_OP_WORK) {
		unm_cq_refuse(ep->rx_cq);
		ep->stats->again_queue++;
		return -FI_EAGAIN;
	}
	op = unm_rx_op_new(ep, context, tagged ? flags & ~FI_MULTI_RECV : flags,
			   tagged);
	if (op == NULL)
		return -FI_EAGAIN;
	op->match.tag = tag;
	op->match.ignore = ignore;
	op->match.src = src;
	op->from = (uint32_t)addr;
	if (iov == NULL) {
		op->count = 1;
		op->len = len;
		op->iov[0].iov_base = buf;
		op->iov[0].iov_len = len;
	} else {
		unm_rx_op_vector(op, iov, len);
	}
	unm_recv_start(ep, op);
	return 0;
}

ssize_t unm_recv_tagged(struct unm_handle *h, void *buf, size_t len,
			fi_addr_t addr, uint64_t tag, uint64_t ignore,
			void *context)
{
	struct unm_ep *ep = h->ep;
	ssize_t ret;

	if (__builtin_expect(!ep->recv_ok, 0))
		return -FI_EOPBADSTATE;
	unm_lock(ep->domain);
	ret = unm_recv_queue(ep, FI_TAGGED, buf, len, NULL, addr, tag, ignore,
			     context, h->rx_flags);
	unm_unlock(ep->domain);
	return ret;
}

ssize_t unm_recv_untagged(struct unm_handle *h, void *buf, size_t len,
			  fi_addr_t addr, void *context)
{
	struct unm_ep *ep = h->ep;
	ssize_t ret;

	if (__builtin_expect(!ep->recv_ok, 0))
		return -FI_EOPBADSTATE;
	unm_lock(ep->domain);
	ret = unm_recv_queue(ep, FI_MSG, buf, len, NULL, addr, 0, 0, context,
			     h->rx_flags);
	unm_unlock(ep->domain);
	return ret;
}

ssize_t unm_recv_vector(struct unm_ep *ep, uint64_t kind,
			const struct iovec *iov, size_t count, fi_addr_t addr,
			uint64_t tag, uint64_t ignore, void *context,
			uint64_t flags)
{
	static const struct iovec none;
	ssize_t ret;

	if (__builtin_expect(!ep->recv_ok, 0))
		return -FI_EOPBADSTATE;
	if (count > UNM_IOV_MAX || ((flags & FI_MULTI_RECV) && count != 1))
		return -FI_EINVAL;
	if (count == 0)
		iov = &none;
	unm_lock(ep->domain);
	ret = unm_recv_queue(ep, kind, NULL, count, iov, addr, tag, ignore,
			     context, flags);
	unm_unlock(ep->domain);
	return ret;
}

/* ---- Peek, claim, discard, cancel ------------------------------------ */

/* Discard a message. The sender of a rendezvous gets FIN, and its send
 * completes without error. */
static void unm_msg_discard(struct unm_ep *ep, struct unm_msg *msg)
{
	struct unm_got got = unm_msg_got(msg);

	if (msg->rendezvous && msg->buf == NULL)
		unm_rendezvous_refuse(ep, &got);
	unm_msg_release(ep, msg);
}

/* The completion of FI_PEEK or FI_DISCARD: length, tag, data and source of a
 * message, without its bytes. */
static struct unm_rx_done unm_msg_envelope(const struct unm_msg *msg,
					   void *context, uint64_t flags)
{
	return (struct unm_rx_done){
		.context = context,
		.flags = (flags & FI_COMPLETION) |
			(msg->has_data ? FI_REMOTE_CQ_DATA : 0),
		.tagged = true, .peek = true,
		.len = msg->len,
		.data = msg->data,
		.tag = msg->match.tag,
		.src = msg->peer->fi_addr, .peer = msg->peer,
	};
}

static void unm_peek_found(struct unm_ep *ep, struct unm_msg *msg,
			   void *context, uint64_t flags)
{
	struct unm_rx_done done = unm_msg_envelope(msg, context, flags);

	/* before a discard, which may free the object of a dead peer */
	unm_complete_rx(ep, &done);
	if (flags & (FI_CLAIM | FI_DISCARD))
		unm_match_unstore(&ep->match[1], &msg->match);
	if (flags & FI_DISCARD) {
		unm_msg_discard(ep, msg);
	} else if (flags & FI_CLAIM) {
		msg->claim = context;
		unm_list_append(&ep->claimed, &msg->claimed);
	}
}

int unm_recv_may_peek(const struct unm_ep *ep, fi_addr_t addr, uint64_t *src)
{
	int ret = unm_recv_src(ep, addr, src);

	if (ret == 0 && !unm_cq_may_peek(ep->rx_cq))
		ret = -FI_EAGAIN;
	return ret;
}

void unm_recv_peek(struct unm_ep *ep, uint64_t tag, uint64_t ignore,
		   uint64_t src, void *context, uint64_t flags)
{
	struct unm_match_msg *found;

	found = unm_match_find_msg(&ep->match[1], tag, ignore, src);
	if (found != NULL) {
		unm_peek_found(ep, unm_container(found, struct unm_msg, match),
			       context, flags);
	} else {
		struct unm_rx_done done = {
			.context = context, .tagged = true, .peek = true,
			.tag = tag, .src = FI_ADDR_NOTAVAIL,
			.err = unm_lost(ep, src) ? FI_ECONNRESET : FI_ENOMSG,
		};

		unm_complete_rx(ep, &done);
	}
}

/* Receive a claimed message into a vector, or discard it (FI_DISCARD). */
static int unm_claim_take(struct unm_ep *ep, struct unm_msg *msg,
			  const struct iovec *iov, size_t count,
			  uint64_t flags)
{
	struct unm_rx_op *op;

	if (flags & FI_DISCARD) {
		struct unm_rx_done done = unm_msg_envelope(msg, msg->claim,
							   flags);

		unm_list_remove(&msg->claimed);
		unm_complete_rx(ep, &done);	/* before the discard, which
						 * may free msg->peer */
		unm_msg_discard(ep, msg);
		return 0;
	}
	op = unm_rx_op_new(ep, msg->claim, flags & FI_COMPLETION, true);
	if (op == NULL)
		return -FI_EAGAIN;
	unm_rx_op_vector(op, iov, count);
	unm_list_remove(&msg->claimed);
	unm_msg_deliver(ep, op, msg);
	return 0;
}

ssize_t unm_recv_claimed(struct unm_ep *ep, const struct iovec *iov,
			 size_t count, void *context, uint64_t flags)
{
	ssize_t ret = -FI_EINVAL;

	if (!ep->recv_ok)
		return -FI_EOPBADSTATE;
	if (count > UNM_IOV_MAX)
		return -FI_EINVAL;
	unm_lock(ep->domain);
	unm_list_for_each(pos, &ep->claimed) {
		struct unm_msg *msg = unm_container(pos, struct unm_msg,
						    claimed);

		if (msg->claim == context) {
			ret = unm_claim_take(ep, msg, iov, count, flags);
			break;
		}
	}
	unm_unlock(ep->domain);
	return ret;
}

ssize_t unm_recv_cancel_locked(struct unm_ep *ep, void *context)
{
	struct unm_match_recv *found;
	struct unm_rx_op *op;
	struct unm_rx_done done;

	found = unm_match_find_context(&ep->match[1], context);
	if (found == NULL)
		found = unm_match_find_context(&ep->match[0], context);
	if (found == NULL)
		return -FI_ENOENT;
	op = unm_container(found, struct unm_rx_op, match);
	if (op->flags & FI_MULTI_RECV) {
		unm_multi_cancel(ep, op, FI_ECANCELED);
		return 0;
	}
	done = (struct unm_rx_done){
		.context = context, .tagged = op->tagged,
		.flags = op->flags & (FI_COMPLETION | UNM_OP_WORK),
		.err = FI_ECANCELED, .src = FI_ADDR_NOTAVAIL,
	};
	unm_match_unpost(&ep->match[op->tagged], &op->match);
	unm_rx_op_release(ep, op);
	unm_complete_rx(ep, &done);
	return 0;
}

ssize_t unm_recv_cancel(struct unm_ep *ep, void *context)
{
	ssize_t ret;

	unm_lock(ep->domain);
	ret = unm_recv_cancel_locked(ep, context);
	unm_unlock(ep->domain);
	return ret;
}
