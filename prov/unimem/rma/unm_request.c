/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_request.c - one-sided operations as requests that the target's progress
 * executes: the initiator's side of docs/protocol.md, section 10. The target's
 * side is unm_target.c.
 *
 * unm_os_try() starts an operation. It is cut into requests that fit the
 * target's receive space. A put or atomic consists of posted requests, without
 * a result: it is complete when the target's count of executed requests reaches
 * its last request. A get, fetch or compare is complete with its last RESULT.
 *
 * Injected puts that follow each other, and of which only a counter reports the
 * end, are merged into one operation object: such a put costs a packet and no
 * object. The counter shows each of them as it is executed.
 */
#include "core/unm_buf.h"
#include "core/unm_complete.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "core/unm_way.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "rma/unm_request.h"
#include "rma/unm_rkey.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

/* most requests of either kind under way to one peer, and most bytes that its
 * results of FETCH and COMPARE may have */
#define UNM_DUE_MAX	32768
#define UNM_DUE_BYTES	(4u << 20)
/* most requests of one operation in a row: other operations wait, too */
#define UNM_REQUEST_BURST 16

static bool unm_wants_result(const struct unm_access *a)
{
	return a->kind == UNM_GET || a->kind >= UNM_FETCH;
}

/* ---- Operations ------------------------------------------------------ */

/* Copy the iovecs of a vector, not the bytes, to place. */
static void unm_vec_keep(struct unm_vec *vec, struct iovec *place)
{
	for (size_t i = 0; i < vec->count; i++)
		place[i] = vec->iov[i];
	vec->iov = place;
}

struct unm_os_op *unm_os_new(struct unm_peer *peer,
			     const struct unm_access *a)
{
	struct unm_ep *ep = peer->ep;
	struct unm_os_op *op = unm_pool_alloc(&ep->os_pool);

	if (op == NULL) {
		ep->stats->again_op++;
		ep->ops_wanted = true;
		return NULL;
	}
	op->peer = peer;
	op->state = UNM_OS_SEND;
	op->dma = false;
	op->check = false;
	op->asked = false;
	op->at = 0;
	op->off = 0;
	op->sent = 0;
	op->got = 0;
	op->number = 0;
	op->due = 0;
	op->due_bytes = 0;
	op->more = 0;
	op->status = 0;
	op->buf = NULL;
	op->rkey = NULL;
	op->how = UNM_WAY_NONE;
	op->a = *a;
	unm_vec_keep(&op->a.src, op->src);
	unm_vec_keep(&op->a.cmp, op->cmp);
	unm_vec_keep(&op->a.dst, op->dst);
	for (size_t i = 0; i < a->nremote; i++)
		op->remote[i] = a->remote[i];
	op->a.remote = op->remote;
	unm_list_init(&op->link);
	unm_list_init(&op->unsent);
	return op;
}

void unm_os_goes(struct unm_os_op *op, enum unm_way_how how, uint64_t begun_ns)
{
	struct unm_way_clock *clock = &op->peer->ep->os_clock;

	if (op->how != UNM_WAY_NONE)
		clock->count[op->how]--;
	op->how = how;
	if (how != UNM_WAY_NONE)
		clock->count[how]++;
	op->begun_ns = begun_ns;
}

/* The measurements that the operation counts in; NULL: its time does not
 * count. */
static struct unm_way *unm_os_measures(const struct unm_os_op *op)
{
	return op->how != UNM_WAY_NONE && op->begun_ns != 0 ?
		unm_os_way(op->peer, &op->a) : NULL;
}

/* The operation has ended without an error, at the time *now. 0: the clock was
 * not read yet. */
static void unm_os_executed(struct unm_os_op *op, uint64_t *now)
{
	if (*now == 0)
		*now = unm_now_ns();
	unm_way_end(&op->peer->ep->os_clock, unm_os_measures(op), op->how,
		    op->a.len, op->begun_ns, *now);
	op->how = UNM_WAY_NONE;
}

/* n bytes of the results of op are not due any more. A call that was refused
 * because of them may succeed now: no packet that the peer releases announces
 * that, because the peer released the requests before it sent the results. */
static void unm_os_lower_due(struct unm_os_op *op, uint32_t n)
{
	struct unm_peer *peer = op->peer;

	op->due_bytes -= n;
	peer->due_bytes -= n;
	if (n != 0 && peer->refused)
		peer->retry = true;
}

void unm_os_release(struct unm_os_op *op)
{
	struct unm_ep *ep = op->peer->ep;

	unm_list_remove(&op->link);
	unm_list_remove(&op->unsent);
	unm_os_goes(op, UNM_WAY_NONE, 0);
	unm_os_lower_due(op, op->due_bytes);
	if (op->buf != NULL)
		unm_pool_release(&ep->buf_pool[op->buf_class], op->buf);
	unm_pool_release(&ep->os_pool, op);
}

/* Of the puts that share an operation, report those whose requests have a
 * number up to executed, which is less than that of the last one. op->status is
 * the first one's. Returns how many were reported. */
static uint64_t unm_os_report_executed(struct unm_os_op *op, uint64_t executed)
{
	uint64_t first = op->number - op->more, n, bad = op->status != 0;

	if (op->more == 0 || executed < first)
		return 0;
	n = executed + 1 - first;
	unm_complete_injected(op->peer->ep, n - bad, bad);
	op->more -= n;
	op->status = 0;
	return n;
}

/* As unm_os_done(), for several operations that end at once: they share *now,
 * which is 0 at first. */
static void unm_os_done_at(struct unm_os_op *op, uint64_t *now)
{
	struct unm_ep *ep = op->peer->ep;

	if (op->how != UNM_WAY_NONE && op->status == 0)
		unm_os_executed(op, now);
	unm_os_report_executed(op, op->number - 1);
	unm_complete_onesided(ep, &op->a, -op->status);
	unm_os_release(op);
	if (ep->ops_wanted) {
		ep->ops_wanted = false;
		unm_ep_signal_retry(ep);
	}
}

void unm_os_done(struct unm_os_op *op)
{
	uint64_t now = 0;

	unm_os_done_at(op, &now);
}

/* ---- Requests -------------------------------------------------------- */

/* Most bytes of one request. Its words and bytes are in one extent of receive
 * space. */
static uint64_t unm_part_max(const struct unm_ep *ep,
			     const struct unm_access *a)
{
	uint64_t max = ep->piece_max - 8 * UNM_WIRE_WORDS_MAX;

	if (a->kind == UNM_GET)
		return UINT64_MAX;
	if (a->kind == UNM_COMPARE)
		max /= 2;
	return max - max % a->unit;
}

/* The packet type of a request; data: it carries remote CQ data. */
static uint8_t unm_request_type(const struct unm_os_op *op, bool data)
{
	static const uint8_t type[] = {
		[UNM_PUT] = UNM_WIRE_PUT,
		[UNM_GET] = UNM_WIRE_GET,
		[UNM_ATOMIC] = UNM_WIRE_ATOMIC,
		[UNM_FETCH] = UNM_WIRE_FETCH,
		[UNM_COMPARE] = UNM_WIRE_COMPARE,
	};

	if (op->check)			/* PUT or GET, never with data */
		return op->a.kind == UNM_PUT ? UNM_WIRE_PUT_CHECK :
			UNM_WIRE_GET_CHECK;
	return data ? UNM_WIRE_PUT_DATA : type[op->a.kind];
}

/* Fill in the words of a request for the next len bytes of range op->at; last:
 * no request of the operation follows. Returns the number of words. */
static unsigned unm_request_words(const struct unm_os_op *op, uint64_t len,
				  bool last, uint64_t *w)
{
	const struct unm_access *a = &op->a;
	const struct fi_rma_iov *to = &a->remote[op->at];
	struct unm_wire_how how = {
		.op = a->op, .type = a->type, .count = len / a->unit,
	};
	unsigned n = 0;

	w[n++] = to->key;
	w[n++] = to->addr + op->off;
	if (last && a->has_data)
		w[n++] = a->data;
	if (a->kind == UNM_GET)
		w[n++] = len;
	if (a->kind >= UNM_ATOMIC)
		memcpy(&w[n++], &how, sizeof(how));
	if (unm_wants_result(a))
		w[n++] = unm_pool_token(op);
	if (!last)
		w[n++] = to->len - op->off - len;
	else if (a->has_data && op->sent != 0)
		w[n++] = op->sent;	/* UNM_WIRE_EARLIER */
	return n;
}

/* Read the target's count of executed posted requests. A target may store any
 * number, so limit the count to the number of requests sent. */
static void unm_applied(struct unm_peer *peer)
{
	uint64_t applied = hal_tx_back(peer->hp, UNM_PEER_BACK_APPLIED);

	peer->applied = applied < peer->posted_sent ? applied :
		peer->posted_sent;
}

/* True if the target's limits allow another request, of len bytes. */
static bool unm_request_may(struct unm_peer *peer, const struct unm_os_op *op,
			    uint64_t len, bool data)
{
	const struct unm_access *a = &op->a;

	if (unm_wants_result(a))
		return peer->due < UNM_DUE_MAX &&
			(a->kind == UNM_GET ||
			 peer->due_bytes + len <= UNM_DUE_BYTES);
	if (peer->posted_sent - peer->applied >= UNM_DUE_MAX) {
		unm_applied(peer);
		if (peer->posted_sent - peer->applied >= UNM_DUE_MAX)
			return false;
	}
	/* Remote CQ data announce that all ranges were written: wait until the
	 * requests of the other ranges are executed. If one is refused, the
	 * data are not sent at all. */
	if (data && op->at != 0) {
		unm_applied(peer);
		if (op->number > peer->applied)
			return false;
	}
	/* remote CQ data use a message credit, and must not overtake messages
	 * in the backlog */
	if (data && (!unm_list_empty(&peer->backlog) ||
		     (peer->msgs_sent == peer->msg_limit &&
		      !unm_peer_credit(peer)))) {
		peer->ep->stats->again_credit++;
		return false;
	}
	return true;
}

/* Account for a request of len bytes that was sent. */
static void unm_request_sent(struct unm_peer *peer, struct unm_os_op *op,
			     uint64_t len)
{
	if (!unm_wants_result(&op->a)) {
		op->number = ++peer->posted_sent;
		return;
	}
	op->due++;
	peer->due++;
	if (op->a.kind != UNM_GET) {
		op->due_bytes += len;
		peer->due_bytes += len;
	}
}

/* Send the next request of an operation. 0; -FI_EAGAIN if it cannot be sent
 * now; another negative fi_errno if there is no connection. */
static int unm_request_send(struct unm_peer *peer, struct unm_os_op *op)
{
	const struct unm_access *a = &op->a;
	const struct fi_rma_iov *to = &a->remote[op->at];
	uint64_t left = to->len - op->off, max = unm_part_max(peer->ep, a);
	uint64_t len = left < max ? left : max;
	bool last = len == left && op->at + 1u == a->nremote;
	bool data = last && a->has_data;
	bool ask = unm_rkey_wanted(peer, to->key);
	uint8_t flags = (last ? 0 : UNM_WIRE_MORE) |
		(data && op->sent != 0 ? UNM_WIRE_EARLIER : 0) |
		(ask ? UNM_WIRE_ASK_RKEY : 0);
	struct unm_part part[2] = {
		{ a->cmp.iov, a->cmp.count, op->sent, len },
		{ a->src.iov, a->src.count, op->sent, len },
	};
	unsigned skip = a->cmp.count == 0, n = 2 - skip;
	uint64_t w[UNM_WIRE_WORDS_MAX];
	int ret;

	if (!unm_request_may(peer, op, len, data))
		return -FI_EAGAIN;
	if (a->src.count == 0)		/* nothing to send: a read */
		n = 0;
	ret = unm_peer_send(peer, hal_head(unm_request_type(op, data), flags),
			    w, unm_request_words(op, len, last, w),
			    part + skip, n);
	if (ret != 0) {
		peer->ep->stats->again_packet += ret == -FI_EAGAIN;
		return ret;
	}
	if (ask) {
		unm_rkey_requested(peer, to->key);
		op->asked = true;
	}
	unm_request_sent(peer, op, len);
	if (data)
		peer->msgs_sent++;
	op->sent += len;
	op->off += len;
	if (op->off == to->len) {
		op->off = 0;
		op->at++;
	}
	peer->refusals = 0;
	peer->ep->stats->tx_requests++;
	return 0;
}

/* The operation used receive space for the first time. If it is measured, its
 * time does not count, nor do the times of the present burst, if that goes the
 * same way. */
static void unm_os_first_use(struct unm_os_op *op)
{
	struct unm_way *w = unm_os_measures(op);

	if (w == NULL)
		return;
	unm_way_first_use(w, op->how);
	op->begun_ns = 0;
}

/* Send the next request of an operation, and note whether that used receive
 * space for the first time. */
static int unm_request_next(struct unm_peer *peer, struct unm_os_op *op)
{
	uint32_t touched = peer->space != NULL ? peer->space->touched : 0;
	int ret = unm_request_send(peer, op);

	if (peer->space != NULL && peer->space->touched != touched)
		unm_os_first_use(op);
	return ret;
}

/* Send some of the remaining requests of an operation. 0 if all are sent;
 * -FI_EAGAIN if some are left; another negative fi_errno on failure. */
static int unm_os_request(struct unm_peer *peer, struct unm_os_op *op)
{
	int ret;

	for (int n = 0; op->at < op->a.nremote; n++) {
		if (n == UNM_REQUEST_BURST)
			return -FI_EAGAIN;
		ret = unm_request_next(peer, op);
		if (ret != 0)
			return ret;
	}
	op->state = UNM_OS_WAIT;
	return 0;
}

void unm_os_queue(struct unm_os_op *op)
{
	struct unm_peer *peer = op->peer;

	unm_list_append(unm_wants_result(&op->a) ? &peer->await_result :
			&peer->posted, &op->link);
	if (op->state == UNM_OS_SEND)
		unm_list_append(&peer->unsent, &op->unsent);
	unm_peer_schedule(peer);
}

/* The operation has no unsent requests any more: ask the application to retry
 * operations that were refused because of them. */
static void unm_os_unsent(struct unm_os_op *op)
{
	if (unm_list_empty(&op->unsent))
		return;
	unm_list_remove(&op->unsent);
	unm_ep_signal_retry(op->peer->ep);
}

/* Send no further requests of a failed operation: it completes with status when
 * the requests under way are answered. */
static void unm_os_fail(struct unm_os_op *op, int status)
{
	if (op->status == 0)
		op->status = status;
	for (size_t i = 0; op->asked && i < op->a.nremote; i++)
		unm_rkey_request_failed(op->peer, op->remote[i].key);
	op->at = op->a.nremote;
	op->state = UNM_OS_WAIT;
	unm_os_unsent(op);
}

/* ---- Calls ------------------------------------------------------------- */

/* Copy the bytes of a vector to buf, and make place[0] with the copy its only
 * piece. Returns the number of bytes. */
static size_t unm_vec_copy(struct unm_vec *vec, struct iovec *place, char *buf)
{
	size_t len = unm_iov_len(vec->iov, vec->count);

	if (vec->count == 0)		/* FI_ATOMIC_READ has no operands */
		return 0;
	unm_iov_fetch(vec->iov, vec->count, 0, buf, len);
	place[0] = (struct iovec){ buf, len };
	vec->count = 1;
	return len;
}

int unm_os_copy_operands(struct unm_ep *ep, struct unm_os_op *op)
{
	size_t len = unm_iov_len(op->a.src.iov, op->a.src.count) +
		unm_iov_len(op->a.cmp.iov, op->a.cmp.count);
	struct unm_pool_node *node;
	char *buf;

	node = unm_buf_alloc(ep, len, &op->buf_class);
	if (node == NULL)
		return -FI_ENOMEM;
	op->buf = node;
	buf = (char *)(node + 1);
	buf += unm_vec_copy(&op->a.src, op->src, buf);
	unm_vec_copy(&op->a.cmp, op->cmp, buf);
	return 0;
}

/* True for a put of fi_inject_write(), or of the same kind: nothing but a
 * counter reports its end. */
static bool unm_os_only_counts(const struct unm_access *a)
{
	return a->kind == UNM_PUT && a->inject && a->flags == 0 &&
		!a->has_data && a->nremote == 1;
}

/* The operation with which such a put of one request can be merged: the last
 * of the posted ones, if it is such a put too and all of it was sent. NULL:
 * there is none, or one of them asks for a remote key, for which it needs an
 * object of its own. */
static struct unm_os_op *unm_os_mergeable(struct unm_peer *peer,
					  const struct unm_access *a)
{
	struct unm_os_op *op;

	if (!unm_os_only_counts(a) || unm_list_empty(&peer->posted))
		return NULL;
	op = unm_container(peer->posted.prev, struct unm_os_op, link);
	if (op->state != UNM_OS_WAIT || op->how != UNM_WAY_NONE ||
	    op->asked || !unm_os_only_counts(&op->a) ||
	    a->len > unm_part_max(peer->ep, a) ||
	    unm_rkey_wanted(peer, a->remote->key))
		return NULL;
	return op;
}

/* Send a put as one more request of an operation. Returns as unm_os_try(). */
static int unm_os_merge(struct unm_peer *peer, const struct unm_access *a,
			struct unm_os_op *op)
{
	const uint64_t w[2] = { a->remote->key, a->remote->addr };
	struct unm_part part = { a->src.iov, a->src.count, 0, a->len };
	int ret;

	if (!unm_request_may(peer, op, a->len, false))
		return -FI_EAGAIN;
	ret = unm_peer_send(peer, hal_head(UNM_WIRE_PUT, 0), w, 2, &part, 1);
	if (ret != 0) {
		peer->ep->stats->again_packet += ret == -FI_EAGAIN;
		return ret;
	}
	op->number = ++peer->posted_sent;
	op->more++;
	peer->refusals = 0;
	peer->ep->stats->tx_requests++;
	return 0;
}

int unm_os_try(struct unm_peer *peer, const struct unm_access *a,
	       enum unm_way_how how)
{
	struct unm_os_op *op;
	int ret = 0;

	if (!unm_list_empty(&peer->unsent))
		return -FI_EAGAIN;
	op = how == UNM_WAY_NONE ? unm_os_mergeable(peer, a) : NULL;
	if (op != NULL)
		return unm_os_merge(peer, a, op);
	op = unm_os_new(peer, a);
	if (op == NULL)
		return -FI_EAGAIN;
	/* unm_prompt() read the clock in this call */
	if (how != UNM_WAY_NONE)
		unm_os_goes(op, how, peer->sampled_ns);
	/* if the operation needs several requests, some may be sent after the
	 * call has returned */
	if (a->inject && (a->nremote != 1 ||
			  a->len > unm_part_max(peer->ep, a)))
		ret = unm_os_copy_operands(peer->ep, op);
	if (ret == 0)
		ret = unm_os_request(peer, op);
	if (ret != 0 && op->number == 0 && op->due == 0) {
		unm_os_release(op);
		return ret;
	}
	if (ret != 0 && ret != -FI_EAGAIN)
		unm_os_fail(op, ret);
	unm_os_queue(op);
	return 0;
}

/* ---- Answers --------------------------------------------------------- */

/* A result of op has come. If it is in receive space, note whether a result is
 * there for the first time. (Results of up to HAL_PKT_MAX bytes do not count,
 * and that the peer has given this memory back meanwhile is not noticed.) */
static void unm_result_first_use(struct unm_peer *peer, struct unm_os_op *op,
				 const struct unm_wire_msg *m)
{
	uintptr_t end = (uintptr_t)m->bytes + m->nbytes;

	if (m->nbytes <= HAL_PKT_MAX || end <= peer->results_end)
		return;
	peer->results_end = unm_space_page(end);
	unm_os_first_use(op);
}

int unm_onesided_result(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_os_op *op = unm_pool_find(&peer->ep->os_pool, m->token);

	if (op == NULL && peer->hp->dead)
		return 0;
	if (op == NULL || op->peer != peer || op->due == 0)
		return -FI_EINVAL;
	if (m->status != 0) {
		unm_os_fail(op, -(int)m->status);
	} else if (op->status == 0) {
		if (m->nbytes > op->sent - op->got)
			return -FI_EINVAL;
		unm_iov_fill(op->dst, op->a.dst.count, op->got, m->bytes,
			     m->nbytes);
		op->got += m->nbytes;
		unm_result_first_use(peer, op, m);
	}
	if (op->a.kind != UNM_GET)
		unm_os_lower_due(op, m->nbytes < op->due_bytes ? m->nbytes :
				 op->due_bytes);
	if (m->more)
		return 0;
	if (peer->due-- == UNM_DUE_MAX)
		unm_ep_signal_retry(peer->ep);
	if (--op->due != 0 || op->state != UNM_OS_WAIT)
		return 0;
	if (op->status == 0 && op->got != op->a.len)
		return -FI_EINVAL;
	unm_os_done(op);
	return 0;
}

/* Posted requests complete in order, and the count of executed requests stays
 * below a refused one: so the first operation whose last request is not below
 * m->number is the refused operation. If puts share it, those before the
 * refused one have been executed, or were refused before: they are reported, so
 * that the refused one is the first. */
int unm_onesided_refused(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	if (m->number == 0)
		return -FI_EINVAL;
	unm_list_for_each(pos, &peer->posted) {
		struct unm_os_op *op = unm_container(pos, struct unm_os_op,
						     link);

		if (op->number < m->number)
			continue;
		unm_os_report_executed(op, m->number - 1);
		unm_os_fail(op, -(int)m->status);
		return 0;
	}
	return peer->hp->dead ? 0 : -FI_EINVAL;
}

/* ---- Progress -------------------------------------------------------- */

/* Send requests of the oldest operation that has unsent ones. Returns 1 if some
 * were sent or the operation ended, else 0. */
static int unm_unsent_push(struct unm_peer *peer)
{
	struct unm_os_op *op = unm_container(peer->unsent.next,
					     struct unm_os_op, unsent);
	uint64_t sent = op->sent;
	int ret = unm_os_request(peer, op);

	if (ret == -FI_EAGAIN)
		return op->sent != sent;
	if (ret == 0) {
		unm_os_unsent(op);
		return 1;
	}
	unm_os_fail(op, ret);
	if (op->number == 0 && op->due == 0)
		unm_os_done(op);
	return 1;
}

int unm_onesided_progress(struct unm_peer *peer)
{
	uint64_t now = 0;
	int done = 0;

	if (!unm_list_empty(&peer->unsent) && !peer->hp->dead)
		done = unm_unsent_push(peer);
	if (unm_list_empty(&peer->posted))
		return done;
	unm_applied(peer);
	while (!unm_list_empty(&peer->posted)) {
		struct unm_os_op *op = unm_container(peer->posted.next,
						struct unm_os_op, link);

		if (op->state != UNM_OS_WAIT)
			break;
		if (op->number > peer->applied) {
			done += unm_os_report_executed(op,
						       peer->applied);
			break;
		}
		unm_os_done_at(op, &now);
		done++;
	}
	return done;
}

void unm_onesided_abort(struct unm_peer *peer, int err)
{
	struct unm_list *lists[] = { &peer->posted, &peer->await_result };

	for (int i = 0; i < 2; i++)
		while (!unm_list_empty(lists[i])) {
			struct unm_os_op *op = unm_container(lists[i]->next,
						struct unm_os_op, link);

			if (op->status == 0)
				op->status = -err;
			if (op->more != 0)
				unm_complete_injected(peer->ep, 0, op->more);
			op->more = 0;
			unm_os_done(op);
		}
	peer->due = 0;
	peer->due_bytes = 0;
}
