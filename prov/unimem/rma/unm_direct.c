/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_direct.c - operations on a peer's memory that the peer need not look
 * for: stores, loads and atomics through a window, cDMA, cross-memory attach.
 * Long puts and gets are done in steps, of which a call does one, so that no
 * call takes long and nobody is inside a peer's memory between calls (but for
 * transfers of an engine that works on its own).
 */
#include "core/unm_complete.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "op/gsas_op.h"
#include "rma/unm_direct.h"
#include "rma/unm_import.h"
#include "rma/unm_mem.h"
#include "rma/unm_prompt.h"
#include "rma/unm_request.h"
#include "rma/unm_rkey.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

#define UNM_STEP	(256u << 10)	/* bytes of one step */
#define UNM_STEP_POLLS	64		/* of the engine, for one step */

/* ---- What goes where ------------------------------------------------- */

/* Does the route lead to all of the range, and allow it? What does not is
 * refused by the owner, in words. */
static bool unm_direct_covers(const struct unm_route *r,
			      const struct unm_access *a)
{
	uint64_t off = a->remote->addr - r->start;
	uint8_t need = a->kind == UNM_GET || a->op == GSAS_OP_READ ?
		UNM_REACH_READ : a->kind >= UNM_FETCH ?
		UNM_REACH_READ | UNM_REACH_WRITE : UNM_REACH_WRITE;

	return (need & ~r->reach) == 0 && off <= r->len &&
		a->remote->len <= r->len - off;
}

static uint64_t unm_direct_at(const struct unm_route *r,
			      const struct unm_access *a)
{
	return r->base + (a->remote->addr - r->start);
}

/* The piece of local memory at an offset, at most max bytes of it. */
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

/* Can the engine reach local memory? All of it, or dmable memory only. */
static bool unm_direct_engine(const struct unm_ep *ep,
			      const struct unm_access *a)
{
	uint64_t off = 0, len;
	char *piece;

	if (ep->hif->caps->flags & HAL_CAP_DMA_ANY)
		return true;
	if (a->inject)			/* the copy would not be */
		return false;
	while ((len = unm_direct_piece(a, off, UINT64_MAX, &piece)) != 0) {
		if (unm_mem_find(ep->domain, piece, len) == NULL)
			return false;
		off += len;
	}
	return true;
}

/* ---- Through a window ------------------------------------------------ */

static void unm_window_move(const struct unm_route *r,
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

static const void *unm_vec_one(const struct unm_vec *v)
{
	return v->count == 1 ? v->iov->iov_base : NULL;
}

/* Atomics: at once if each vector is one piece, else element by element. */
static void unm_window_atomic(const struct unm_route *r,
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

/* May the processor store through the window? An alias of memory that peers may
 * only read can be mapped read-only. */
static bool unm_window_writable(const struct unm_route *r)
{
	return (r->reach & UNM_REACH_HOW) != UNM_REACH_SHARED ||
		(r->reach & UNM_REACH_WRITE);
}

/* All elements for any core to execute; docs/atomics.md. */
static bool unm_window_may(const struct unm_route *r,
			   const struct unm_access *a)
{
	uintptr_t at = (uintptr_t)r->win.addr + unm_direct_at(r, a);

	return r->win.addr != NULL && a->len <= UNM_STEP &&
		gsas_op_direct(a->type, at) &&
		(unm_window_writable(r) || !gsas_op_read_stores(a->type, at));
}

/* ---- Steps ----------------------------------------------------------- */

static void unm_direct_end(struct unm_os_op *op, int status)
{
	struct unm_peer *peer = op->peer;

	unm_route_put(op->route);
	op->route = NULL;
	op->status = status;
	peer->ep->stats->tx_direct += status == 0;
	unm_os_done(op);
}

/* It cannot go this way any more: all of it by requests. */
static void unm_direct_yield(struct unm_os_op *op)
{
	unm_list_remove(&op->link);
	unm_route_put(op->route);
	op->route = NULL;
	op->state = UNM_OS_SEND;
	op->sent = 0;
	unm_os_queue(op);
}

/* Post one step to the engine. 0, -FI_EAGAIN, or it is not for the engine. */
static int unm_direct_post(struct unm_os_op *op, uint64_t max)
{
	struct unm_ep *ep = op->peer->ep;
	char *piece = NULL;
	uint64_t len = unm_direct_piece(&op->a, op->sent, max, &piece);
	struct hal_dma dma = {
		.op = op->a.kind == UNM_PUT ? HAL_DMA_PUT : HAL_DMA_GET,
		.peer = op->peer->hp,
		.rmem = op->route->mem != NULL ? op->route->mem->rmem : NULL,
		.raddr = unm_direct_at(op->route, &op->a) + op->sent,
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

/* Poll for the only transfer that is under way. */
static void unm_direct_poll(struct unm_ep *ep)
{
	struct hal_dma_comp comp;

	if (hal_dma_poll(ep->hif, &comp, 1) != 1)
		return;
	ep->dma_out--;
	unm_direct_dma(ep, &comp);
}

/* By the engine. Where that is this processor, the step ends here; else it is
 * as long as the piece. */
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
	/* with other transfers before it, it is progress that waits */
	for (int i = 0; here && ep->dma_out == 1 && i < UNM_STEP_POLLS &&
	     unm_pool_find(&ep->os_pool, token) == op && op->dma; i++)
		unm_direct_poll(ep);
}

static void unm_direct_step(struct unm_os_op *op)
{
	struct unm_peer *peer = op->peer;
	uint64_t left = op->a.len - op->sent;

	/* the look that dropped its route may have been another operation's */
	if (op->route->stale) {
		unm_direct_yield(op);
		return;
	}
	if (!unm_guard_enter(peer))
		return;			/* the next step sees why */
	HAL_FAULT_POINT(HAL_FAULT_POINT_INSIDE);
	if (op->route->win.addr == NULL) {
		unm_direct_transfer(op);
		return;
	}
	if (left > UNM_STEP)
		left = UNM_STEP;
	unm_window_move(op->route, &op->a, op->sent, left);
	unm_guard_leave(peer);
	op->sent += left;
	if (op->sent == op->a.len)
		unm_direct_end(op, 0);
}

/*
 * The engine or the kernel did not reach one of the two addresses. Both may be
 * good memory that is not to be pinned, as that of memfd_secret() and of
 * devices: then requests reach it. Ours is checked here, theirs by its owner.
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

/* A step of the engine is over. */
void unm_direct_dma(struct unm_ep *ep, const struct hal_dma_comp *comp)
{
	struct unm_os_op *op = unm_pool_find(&ep->os_pool, comp->token &
					     ~UNM_DMA_ONESIDED);

	if (op == NULL)			/* its peer died meanwhile */
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
		/* the kernel forbids it: requests from now on */
		op->peer->attach_off = true;
		unm_direct_yield(op);
		break;
	case -FI_EFAULT:
		unm_direct_fault(op);
		break;
	case -FI_ECANCELED:		/* the peer ended */
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

	/* one step, of the first that can do one; then it is the others' turn
	 * */
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
	peer->inside = 0;
}

/* The endpoint is closed: nothing is completed. */
void unm_direct_drop(struct unm_ep *ep)
{
	unm_list_for_each(pos, &ep->direct) {
		struct unm_os_op *op = unm_container(pos, struct unm_os_op,
						     link);

		unm_route_put(op->route);
	}
}

/* ---- Calls ------------------------------------------------------------- */

/* At once, through a window, or nothing at all. 0, or 1: not now. */
static int unm_direct_now(struct unm_peer *peer, const struct unm_route *r,
			  const struct unm_access *a)
{
	struct unm_ep *ep = peer->ep;

	if (!unm_guard_enter(peer))
		return 1;		/* r may be gone */
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

/* In steps, the first one at once. */
static int unm_direct_start(struct unm_peer *peer, struct unm_route *r,
			    const struct unm_access *a)
{
	struct unm_ep *ep = peer->ep;
	struct unm_os_op *op;

	if (r->win.addr == NULL && !unm_direct_engine(ep, a))
		return 1;
	op = unm_os_new(peer, a);
	if (op == NULL)
		return -FI_EAGAIN;
	if (a->inject && unm_os_keep(ep, op) != 0) {
		unm_os_undo(op);
		return -FI_ENOMEM;
	}
	op->state = UNM_OS_DIRECT;
	op->route = r;
	r->refs++;
	unm_list_append(&ep->direct, &op->link);
	if (ep->armed)			/* nobody would move it */
		unm_disturb(ep);
	unm_direct_step(op);
	return 0;
}

int unm_direct(struct unm_peer *peer, const struct unm_access *a)
{
	struct unm_route *r;

	if (a->nremote != 1 || a->has_data)
		return 1;
	r = unm_route_find(peer, a->remote->key);
	if (r == NULL || !unm_direct_covers(r, a))
		return 1;
	if (a->kind >= UNM_ATOMIC)
		return unm_window_may(r, a) ? unm_direct_now(peer, r, a) : 1;
	if ((r->reach & UNM_REACH_HOW) == UNM_REACH_ATTACH &&
	    unm_prompt(peer, a->len)) {
		int ret = unm_os_try(peer, a);

		if (ret != -FI_EAGAIN)
			return ret;
		/* Requests of other operations wait. Attach need not, unless
		 * the failed send found that the peer revoked the key. */
		r = unm_route_find(peer, a->remote->key);
		if (r == NULL || !unm_direct_covers(r, a))
			return 1;
	}
	if (a->len == 0 || (r->win.addr != NULL && a->len <= UNM_STEP))
		return unm_direct_now(peer, r, a);
	return unm_direct_start(peer, r, a);
}
