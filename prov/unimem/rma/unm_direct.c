/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_direct.c - executes one-sided operations without the target: by loads,
 * stores and atomics through a window, by the DMA engine, or by cross-memory
 * attach. docs/protocol.md, section 11.
 *
 * unm_direct() starts an operation. A long put or get is executed in steps, one
 * step a call of unm_direct_progress(), so that no call takes long. A CPU copy
 * holds the peer's guard (unm_rkey.c) only during a call; a DMA transfer holds
 * it until its completion was polled. An operation that cannot be executed
 * here any more is handed to unm_request.c.
 */
#include "core/unm_complete.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"
#include "core/unm_way.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "op/gsas_op.h"
#include "rma/unm_cache.h"
#include "rma/unm_direct.h"
#include "rma/unm_mem.h"
#include "rma/unm_prompt.h"
#include "rma/unm_request.h"
#include "rma/unm_rkey.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

#define UNM_STEP	(256u << 10)	/* most bytes of one step by the CPU */
#define UNM_STEP_POLLS	64		/* polls for the completion of a step */

/* ---- Which operations, which memory ---------------------------------- */

/* True if the remote key covers the whole range and allows the access. All
 * other accesses are sent as requests, so that the owner refuses them. */
static bool unm_direct_covers(const struct unm_cached *r,
			      const struct unm_access *a)
{
	uint64_t off = a->remote->addr - r->start;
	uint8_t need = a->kind == UNM_GET || a->op == GSAS_OP_READ ?
		UNM_REACH_READ : a->kind >= UNM_FETCH ?
		UNM_REACH_READ | UNM_REACH_WRITE : UNM_REACH_WRITE;

	return (need & ~r->reach) == 0 && off <= r->len &&
		a->remote->len <= r->len - off;
}

/* Where the range begins: address in the owner, or offset in the window. */
static uint64_t unm_direct_at(const struct unm_cached *r,
			      const struct unm_access *a)
{
	return r->base + (a->remote->addr - r->start);
}

/* The contiguous local memory at an offset of the operation: *piece, and its
 * length, at most max bytes. 0 at the end of the operation. */
static uint64_t unm_direct_piece(const struct unm_access *a, uint64_t off,
				 uint64_t max, char **piece)
{
	const struct unm_vec *v = a->kind == UNM_PUT ? &a->src : &a->dst;

	for (size_t i = 0; i < v->count; i++) {
		uint64_t len = v->iov[i].iov_len;

		if (off >= len) {
			off -= len;
			continue;
		}
		*piece = (char *)v->iov[i].iov_base + off;
		return len - off < max ? len - off : max;
	}
	return 0;
}

/* True if the DMA engine can access the operation's local buffers. */
static bool unm_direct_engine(const struct unm_ep *ep,
			      const struct unm_access *a)
{
	uint64_t off = 0, len;
	char *piece;

	if (ep->hif->caps->flags & HAL_CAP_DMA_ANY)
		return true;
	if (a->inject)			/* the copy is not in dmable memory */
		return false;
	while ((len = unm_direct_piece(a, off, UINT64_MAX, &piece)) != 0) {
		if (unm_mem_find(ep->domain, piece, len) == NULL)
			return false;
		off += len;
	}
	return true;
}

/* ---- Through a window ------------------------------------------------ */

/* Copy len bytes from offset done of the operation on, through the window. */
static void unm_window_move(const struct unm_cached *r,
			    const struct unm_access *a, uint64_t done,
			    uint64_t len)
{
	uint64_t at = unm_direct_at(r, a), end = done + len, n;
	char *piece = NULL;

	for (; done < end; done += n) {
		n = unm_direct_piece(a, done, end - done, &piece);
		if (a->kind == UNM_PUT)
			hal_win_store(&r->win, at + done, piece, n);
		else
			hal_win_load(&r->win, at + done, piece, n);
	}
}

/* The start of a vector of one piece; NULL if it has none or several. */
static const void *unm_vec_one(const struct unm_vec *v)
{
	return v->count == 1 ? v->iov->iov_base : NULL;
}

/* Execute an atomic: by one call if each local vector is contiguous, else
 * element by element. */
static void unm_window_atomic(const struct unm_cached *r,
			      const struct unm_access *a)
{
	uint8_t src[GSAS_TYPE_MAX], cmp[GSAS_TYPE_MAX], dst[GSAS_TYPE_MAX];
	uint8_t *word = hal_win_word(&r->win, unm_direct_at(r, a));
	bool result = a->dst.count != 0;
	size_t unit = a->unit;

	if (a->src.count <= 1 && a->cmp.count <= 1 && a->dst.count <= 1) {
		gsas_op_apply(a->op, a->type, a->len / unit, word,
			      unm_vec_one(&a->src), unm_vec_one(&a->cmp),
			      (void *)unm_vec_one(&a->dst));
		return;
	}
	for (uint64_t at = 0; at < a->len; at += unit) {
		unm_iov_fetch(a->src.iov, a->src.count, at, src, unit);
		unm_iov_fetch(a->cmp.iov, a->cmp.count, at, cmp, unit);
		gsas_op_apply(a->op, a->type, 1, word + at, src, cmp,
			      result ? dst : NULL);
		if (result)
			unm_iov_fill(a->dst.iov, a->dst.count, at, dst, unit);
	}
}

/* True if the processor may store through the window. An alias of memory that
 * peers may only read can be mapped read-only. */
static bool unm_window_writable(const struct unm_cached *r)
{
	return (r->reach & UNM_REACH_HOW) != UNM_REACH_SHARED ||
		(r->reach & UNM_REACH_WRITE);
}

/* True if this core may execute the atomic on all elements; docs/atomics.md. */
static bool unm_window_may(const struct unm_cached *r,
			   const struct unm_access *a)
{
	uintptr_t at = (uintptr_t)r->win.addr + unm_direct_at(r, a);

	return r->win.addr != NULL && a->len <= UNM_STEP &&
		gsas_op_direct(a->type, at) &&
		(unm_window_writable(r) || !gsas_op_read_stores(a->type, at));
}

/* ---- Steps ----------------------------------------------------------- */

/* Complete an operation; status: 0 or a negative fi_errno. */
static void unm_direct_end(struct unm_os_op *op, int status)
{
	struct unm_peer *peer = op->peer;

	unm_guard_withdraw(peer);
	unm_cached_put(op->rkey);
	op->rkey = NULL;
	op->status = status;
	peer->ep->stats->tx_direct += status == 0;
	unm_os_done(op);
}

/* The operation cannot continue here: send all of it as requests. */
static void unm_direct_yield(struct unm_os_op *op)
{
	unm_guard_withdraw(op->peer);
	unm_os_goes(op, UNM_WAY_ASSISTED, 0);
	unm_list_remove(&op->link);
	unm_cached_put(op->rkey);
	op->rkey = NULL;
	op->state = UNM_OS_SEND;
	op->sent = 0;
	unm_os_queue(op);
}

/* Post a transfer of at most max bytes. 0; -FI_EAGAIN if the engine's queue is
 * full; another negative fi_errno if the engine cannot execute the transfer. */
static int unm_direct_post(struct unm_os_op *op, uint64_t max)
{
	struct unm_ep *ep = op->peer->ep;
	char *piece = NULL;
	uint64_t len = unm_direct_piece(&op->a, op->sent, max, &piece);
	struct hal_dma dma = {
		.op = op->a.kind == UNM_PUT ? HAL_DMA_PUT : HAL_DMA_GET,
		.peer = op->peer->hp,
		.rmem = op->rkey->mem != NULL ? op->rkey->mem->rmem : NULL,
		.raddr = unm_direct_at(op->rkey, &op->a) + op->sent,
		.local = piece,
		.len = len,
	};
	int ret = hal_dma_post(ep->hif, &dma,
			       unm_pool_token(op) | UNM_DMA_ONESIDED);

	if (ret == 0) {
		op->dma = true;
		op->step = len;
		ep->dma_out++;
	}
	return ret;
}

/* Poll once for the only transfer that is under way. */
static void unm_direct_poll(struct unm_ep *ep)
{
	struct hal_dma_comp comp;

	if (hal_dma_poll(ep->hif, &comp, 1) != 1)
		return;
	ep->dma_out--;
	unm_direct_dma(ep, &comp);
}

/* Execute one step by the DMA engine. If the transfer is in fact a copy by this
 * processor (HAL_CAP_COHERENT), it is polled to its end here; else the engine
 * works on its own, and one transfer covers all of the contiguous piece. */
static void unm_direct_transfer(struct unm_os_op *op)
{
	struct unm_ep *ep = op->peer->ep;
	bool here = ep->hif->caps->flags & HAL_CAP_COHERENT;
	uint64_t token = unm_pool_token(op);
	int ret = unm_direct_post(op, here ? UNM_STEP : UINT64_MAX);

	if (ret != 0) {
		unm_guard_leave(op->peer);
		if (ret != -FI_EAGAIN)
			unm_direct_yield(op);
		return;
	}
	/* if other transfers were posted before, progress polls for this one */
	for (int i = 0; here && ep->dma_out == 1 && i < UNM_STEP_POLLS &&
	     unm_pool_find(&ep->os_pool, token) == op && op->dma; i++)
		unm_direct_poll(ep);
}

/* Execute the next step of an operation without a transfer under way. */
static void unm_direct_step(struct unm_os_op *op)
{
	struct unm_peer *peer = op->peer;
	uint64_t left = op->a.len - op->sent;

	/* the remote key may have been revoked in a call for another
	 * operation */
	if (op->rkey->stale) {
		unm_direct_yield(op);
		return;
	}
	if (!unm_guard_enter(peer))
		return;			/* the next step finds the key stale,
					 * or tries again */
	HAL_FAULT_POINT(HAL_FAULT_POINT_INSIDE);
	if (op->rkey->win.addr == NULL) {
		unm_direct_transfer(op);
		return;
	}
	if (left > UNM_STEP)
		left = UNM_STEP;
	unm_window_move(op->rkey, &op->a, op->sent, left);
	unm_guard_leave(peer);
	op->sent += left;
	if (op->sent == op->a.len)
		unm_direct_end(op, 0);
}

/*
 * The engine or the kernel could not access the local or the remote buffer.
 * Both may be valid memory that the kernel cannot pin, such as memory of
 * memfd_secret(2) or of devices: requests can access such memory. Check the
 * local buffer here; the target checks the remote one.
 */
static void unm_direct_fault(struct unm_os_op *op)
{
	bool put = op->a.kind == UNM_PUT;
	const struct unm_vec *v = put ? &op->a.src : &op->a.dst;

	if (unm_mr_present(v->iov, v->count, put ? FI_REMOTE_READ :
			   FI_REMOTE_WRITE) != 0) {
		unm_direct_end(op, -FI_EFAULT);
		return;
	}
	op->check = true;
	unm_direct_yield(op);
}

void unm_direct_dma(struct unm_ep *ep, const struct hal_dma_comp *comp)
{
	struct unm_os_op *op = unm_pool_find(&ep->os_pool, comp->token &
					     ~UNM_DMA_ONESIDED);

	if (op == NULL)			/* ended by unm_direct_abort() */
		return;
	op->dma = false;
	unm_guard_leave(op->peer);
	switch (comp->status) {
	case 0:
		op->sent += op->step;
		if (op->sent == op->a.len)
			unm_direct_end(op, 0);
		break;
	case -FI_EACCES:
		/* the kernel forbids cross-memory attach to this peer: use
		 * requests from now on */
		op->peer->attach_off = true;
		unm_direct_yield(op);
		break;
	case -FI_EFAULT:
		unm_direct_fault(op);
		break;
	case -FI_ECANCELED:		/* the peer's process ended */
		unm_direct_end(op, -FI_ECONNRESET);
		break;
	default:
		unm_direct_end(op, comp->status);
		break;
	}
}

void unm_direct_progress(struct unm_ep *ep)
{
	struct unm_list *last = ep->direct.prev;
	struct unm_os_op *op;

	/* execute one step of the first operation that can, and move it to the
	 * end of the list, so that each operation gets its turn */
	do {
		op = unm_container(ep->direct.next, struct unm_os_op, link);
		unm_list_remove(&op->link);
		unm_list_append(&ep->direct, &op->link);
		if (!op->dma) {
			unm_direct_step(op);
			return;
		}
	} while (&op->link != last);
}

void unm_direct_abort(struct unm_peer *peer, int err)
{
	struct unm_ep *ep = peer->ep;

	unm_list_for_each_safe(pos, tmp, &ep->direct) {
		struct unm_os_op *op = unm_container(pos, struct unm_os_op,
						     link);

		if (op->peer == peer)
			unm_direct_end(op, -err);
	}
	peer->accesses = 0;
}

void unm_direct_release_all(struct unm_ep *ep)
{
	unm_list_for_each(pos, &ep->direct) {
		struct unm_os_op *op = unm_container(pos, struct unm_os_op,
						     link);

		unm_cached_put(op->rkey);
	}
}

/* ---- Calls ------------------------------------------------------------- */

/* Execute the whole operation through a window. 0, or 1 if the guard could not
 * be entered: then nothing was accessed. */
static int unm_direct_now(struct unm_peer *peer, const struct unm_cached *r,
			  const struct unm_access *a)
{
	struct unm_ep *ep = peer->ep;

	if (!unm_guard_enter(peer)) {
		unm_guard_withdraw(peer);
		return 1;		/* r may have been freed */
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_INSIDE);
	if (a->kind >= UNM_ATOMIC)
		unm_window_atomic(r, a);
	else
		unm_window_move(r, a, 0, a->len);
	unm_guard_leave(peer);
	ep->stats->tx_direct++;
	unm_complete_onesided(ep, a, 0);
	return 0;
}

/* Execute an operation in steps, the first one in this call. Returns as
 * unm_direct() does. */
static int unm_direct_start(struct unm_peer *peer, struct unm_cached *r,
			    const struct unm_access *a, bool measured)
{
	struct unm_ep *ep = peer->ep;
	struct unm_os_op *op;

	if (r->win.addr == NULL && !unm_direct_engine(ep, a))
		return 1;
	op = unm_os_new(peer, a);
	if (op == NULL)
		return -FI_EAGAIN;
	if (a->inject && unm_os_copy_operands(ep, op) != 0) {
		unm_os_release(op);
		return -FI_ENOMEM;
	}
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_ATTACH)
		unm_os_goes(op, UNM_WAY_ATTACH, measured ?
			    peer->sampled_ns : 0);
	op->state = UNM_OS_DIRECT;
	op->rkey = r;
	r->refs++;
	unm_list_append(&ep->direct, &op->link);
	if (ep->armed)			/* a sleeper must poll for the steps */
		unm_ep_wake_all(ep);
	unm_direct_step(op);
	return 0;
}

/*
 * Send a put or get of ordinary memory as requests, if the peer is known to
 * make progress, and requests of this length are faster than attach. Returns 0
 * or a negative fi_errno as unm_os_try(); 1: attach is faster. *measured: this
 * was chosen by measurement, so the time by attach counts.
 */
static int unm_direct_request(struct unm_peer *peer, const struct unm_access *a,
			      bool *measured)
{
	bool busy = !unm_list_empty(&peer->posted) ||
		!unm_list_empty(&peer->await_result);

	*measured = false;
	if (!unm_prompt(peer, a->len))
		return 1;
	if (a->len <= UNM_PROMPT_SURE || unm_peer_ways(peer) == NULL)
		return unm_os_try(peer, a, UNM_WAY_NONE);
	if (unm_way_choose(unm_os_way(peer, a), a->len, busy) ==
	    UNM_WAY_ASSISTED)
		return unm_os_try(peer, a, UNM_WAY_ASSISTED);
	*measured = true;
	return 1;
}

int unm_direct(struct unm_peer *peer, const struct unm_access *a)
{
	struct unm_cached *r;
	bool measured = false;
	int ret;

	if (a->nremote != 1 || a->has_data)
		return 1;
	r = unm_rkey_find(peer, a->remote->key);
	if (r == NULL || !unm_direct_covers(r, a))
		return 1;
	if (a->kind >= UNM_ATOMIC)
		return unm_window_may(r, a) ? unm_direct_now(peer, r, a) : 1;
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_ATTACH) {
		ret = unm_direct_request(peer, a, &measured);
		if (ret <= 0 && ret != -FI_EAGAIN)
			return ret;
		/* Requests of other operations wait. Attach need not, unless
		 * the failed send found that the peer revoked the key. */
		if (ret < 0)
			r = unm_rkey_find(peer, a->remote->key);
		if (r == NULL || !unm_direct_covers(r, a))
			return 1;
	}
	if (a->len == 0 || (r->win.addr != NULL && a->len <= UNM_STEP))
		return unm_direct_now(peer, r, a);
	return unm_direct_start(peer, r, a, measured);
}
