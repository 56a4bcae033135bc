/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_complete.c - reports the completion of every operation: queue entry,
 * counter, error. Only this file decides what a flag means for completions.
 */
#include "core/unm_cntr_value.h"
#include "core/unm_complete.h"
#include "core/unm_cq_ring.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"

/*
 * The slot of the next entry. The caller fills the fields in place, because a
 * copy of a structure that was just written would stall on its stores. NULL if
 * the endpoint has only counters, or if memory ran out (unm_cq_grow() logs it).
 */
static inline struct unm_cqe *unm_slot(struct unm_cq *cq)
{
	return __builtin_expect(cq == NULL, 0) ? NULL : unm_cq_slot(cq);
}

/*
 * The end of a deferred operation. Between unm_work_ends() and unm_work_ended()
 * the endpoint's queues and counters are replaced by those of the deferred
 * work, and the completion is reported with the context and flags of *end.
 */
struct unm_work_end {
	struct unm_deferred *work;
	void *context;			/* the application's context */
	uint64_t flags;			/* FI_COMPLETION: entry wanted */
	struct unm_cq *tx_cq, *rx_cq;
	struct unm_cntr *cntr[4];
};

static __attribute__((noinline))
void unm_work_ends(struct unm_ep *ep, void *context, uint64_t flags,
		   struct unm_work_end *end)
{
	struct unm_deferred *w = context;

	*end = (struct unm_work_end){
		.work = w, .context = w->context,
		.flags = (flags & ~(UNM_OP_WORK | FI_COMPLETION)) |
			(w->flags & FI_COMPLETION),
		.tx_cq = ep->tx_cq, .rx_cq = ep->rx_cq,
		.cntr = { ep->tx_cntr, ep->rx_cntr, ep->rd_cntr,
			  ep->wr_cntr },
	};
	ep->tx_cntr = ep->rx_cntr = ep->rd_cntr = ep->wr_cntr = w->done;
	if (!(w->flags & FI_COMPLETION))
		ep->tx_cq = ep->rx_cq = NULL;
}

static __attribute__((noinline))
void unm_work_ended(struct unm_ep *ep, const struct unm_work_end *end)
{
	ep->tx_cq = end->tx_cq;
	ep->rx_cq = end->rx_cq;
	ep->tx_cntr = end->cntr[0];
	ep->rx_cntr = end->cntr[1];
	ep->rd_cntr = end->cntr[2];
	ep->wr_cntr = end->cntr[3];
	end->work->ended(ep, end->work);
}

void unm_complete_tx(struct unm_ep *ep, bool tagged, uint64_t flags,
		     void *context)
{
	struct unm_cqe *cqe;

	if (__builtin_expect((flags & UNM_OP_WORK) != 0, 0)) {
		struct unm_work_end end;

		unm_work_ends(ep, context, flags, &end);
		unm_complete_tx(ep, tagged, end.flags, end.context);
		unm_work_ended(ep, &end);
		return;
	}
	if ((flags & FI_COMPLETION) &&
	    (cqe = unm_slot(ep->tx_cq)) != NULL) {
		cqe->context = context;
		cqe->flags = FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
		cqe->len = 0;
		cqe->buf = NULL;
		cqe->data = 0;
		cqe->tag = 0;
		cqe->src = FI_ADDR_NOTAVAIL;
		cqe->err = 0;
		unm_cq_push(ep->tx_cq);
	}
	if (ep->tx_cntr != NULL)
		unm_cntr_add(ep->tx_cntr, 1);
}

void unm_complete_tx_err(struct unm_ep *ep, const struct unm_tx_op *op,
			 int err)
{
	/* fi_inject() reports no completion, not even of a failure */
	bool quiet = op->inject && !(op->flags & FI_INJECT);
	struct unm_cqe *cqe;

	if (op->flags & UNM_OP_WORK) {
		struct unm_tx_op plain = *op;
		struct unm_work_end end;

		unm_work_ends(ep, op->context, op->flags, &end);
		plain.context = end.context;
		plain.flags = end.flags;
		unm_complete_tx_err(ep, &plain, err);
		unm_work_ended(ep, &end);
		return;
	}
	cqe = quiet ? NULL : unm_slot(ep->tx_cq);
	if (cqe != NULL) {
		*cqe = (struct unm_cqe){
			.context = op->context,
			.flags = FI_SEND | (op->tagged ? FI_TAGGED : FI_MSG),
			.len = op->len,
			.data = op->data,
			.tag = op->tag,
			.err = err,
		};
		unm_cq_push(ep->tx_cq);
	}
	if (ep->tx_cntr != NULL)
		unm_cntr_add_err(ep->tx_cntr, 1);
}

/*
 * Report a message from a peer that is not in the address vector by an error
 * entry with the peer's address (FI_SOURCE_ERR).
 */
static void unm_complete_stranger(struct unm_ep *ep,
				  const struct unm_rx_done *done,
				  uint64_t flags)
{
	struct unm_cqe *cqe = unm_slot(ep->rx_cq);

	if (cqe == NULL)
		return;
	*cqe = (struct unm_cqe){
		.context = done->context,
		.flags = flags,
		.len = done->len,
		.buf = done->buf,
		.data = done->data,
		.tag = done->tag,
		.err = FI_EADDRNOTAVAIL,
	};
	unm_cq_err_data(ep->rx_cq, cqe, unm_peer_addr(done->peer),
			sizeof(struct hal_addr));
	unm_cq_push(ep->rx_cq);
}

static void unm_complete_rx_err(struct unm_ep *ep,
				const struct unm_rx_done *done, uint64_t flags)
{
	struct unm_cqe *cqe = unm_slot(ep->rx_cq);

	if (cqe != NULL) {
		*cqe = (struct unm_cqe){
			.context = done->context,
			.flags = flags,
			.len = done->len,
			.buf = done->buf,
			.data = done->data,
			.tag = done->tag,
			.olen = done->olen,
			.err = done->err,
		};
		unm_cq_push(ep->rx_cq);
	}
	if (ep->rx_cntr != NULL && !done->peek)
		unm_cntr_add_err(ep->rx_cntr, 1);
}

void unm_complete_rx(struct unm_ep *ep, const struct unm_rx_done *done)
{
	uint64_t flags = FI_RECV | (done->tagged ? FI_TAGGED : FI_MSG) |
		(done->flags & (FI_MULTI_RECV | FI_REMOTE_CQ_DATA));
	struct unm_cqe *cqe;
	bool told;

	if (__builtin_expect((done->flags & UNM_OP_WORK) != 0, 0)) {
		struct unm_rx_done plain = *done;
		struct unm_work_end end;

		unm_work_ends(ep, done->context, done->flags, &end);
		plain.context = end.context;
		plain.flags = end.flags;
		unm_complete_rx(ep, &plain);
		unm_work_ended(ep, &end);
		return;
	}
	if (__builtin_expect(done->err != 0, 0)) {
		unm_complete_rx_err(ep, done, flags);
		return;
	}
	/* the release of a multi-receive buffer is always reported */
	told = (done->flags & (FI_COMPLETION | FI_MULTI_RECV)) != 0;
	if (__builtin_expect(done->src == FI_ADDR_NOTAVAIL, 0) &&
	    ep->source_err && done->peer != NULL) {
		if (told)
			unm_complete_stranger(ep, done, flags);
	} else if (told && (cqe = unm_slot(ep->rx_cq)) != NULL) {
		cqe->context = done->context;
		cqe->flags = flags;
		cqe->len = done->len;
		cqe->buf = done->buf;
		cqe->data = done->data;
		cqe->tag = done->tag;
		cqe->src = done->src;
		cqe->err = 0;
		cqe->vector = ep->av_number;
		unm_cq_push(ep->rx_cq);
	}
	if (ep->rx_cntr != NULL && !done->peek)
		unm_cntr_add(ep->rx_cntr, 1);
}

/* ---- One-sided ------------------------------------------------------- */

static uint64_t unm_onesided_flags(const struct unm_access *a)
{
	bool reads = a->kind == UNM_GET || a->kind >= UNM_FETCH;

	return (a->kind >= UNM_ATOMIC ? FI_ATOMIC : FI_RMA) |
		(reads ? FI_READ : FI_WRITE);
}

void unm_complete_onesided(struct unm_ep *ep, const struct unm_access *a,
			   int err)
{
	/* an inject call reports no completion */
	bool quiet = a->inject && !(a->flags & FI_INJECT);
	uint64_t flags = unm_onesided_flags(a);
	struct unm_cntr *cntr = flags & FI_READ ? ep->rd_cntr : ep->wr_cntr;
	struct unm_cqe *cqe;

	if (__builtin_expect((a->flags & UNM_OP_WORK) != 0, 0)) {
		struct unm_access plain = *a;
		struct unm_work_end end;

		unm_work_ends(ep, a->context, a->flags, &end);
		plain.context = end.context;
		plain.flags = end.flags;
		unm_complete_onesided(ep, &plain, err);
		unm_work_ended(ep, &end);
		return;
	}
	if (((a->flags & FI_COMPLETION) || (err != 0 && !quiet)) &&
	    (cqe = unm_slot(ep->tx_cq)) != NULL) {
		*cqe = (struct unm_cqe){
			.context = a->context,
			.flags = flags,
			.len = err != 0 ? a->len : 0,
			.data = err != 0 ? a->data : 0,
			.src = FI_ADDR_NOTAVAIL,
			.err = err,
		};
		if (err != 0)
			cqe->olen = 0;
		unm_cq_push(ep->tx_cq);
	}
	if (cntr != NULL && err == 0)
		unm_cntr_add(cntr, 1);
	else if (cntr != NULL)
		unm_cntr_add_err(cntr, 1);
}

void unm_complete_target(struct unm_peer *peer, const struct unm_mr *mr,
			 uint64_t what, bool last,
			 const struct unm_target_data *data)
{
	struct unm_ep *ep = peer->ep;
	struct unm_cntr *wr = what & FI_REMOTE_WRITE ? ep->rem_wr_cntr : NULL;
	struct unm_cntr *rd = what & FI_REMOTE_READ ? ep->rem_rd_cntr : NULL;
	struct unm_cqe *cqe;

	if (data != NULL && (cqe = unm_slot(ep->rx_cq)) != NULL) {
		*cqe = (struct unm_cqe){
			.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			.len = data->len,
			.data = data->data,
			.src = peer->fi_addr,
			.vector = ep->av_number,
		};
		unm_cq_push(ep->rx_cq);
	}
	if (wr != NULL && last)
		unm_cntr_add(wr, 1);
	/* one counter for both events counts the operation once */
	if (rd != NULL && rd != wr && last)
		unm_cntr_add(rd, 1);
	if (mr->remote_cntr != NULL && (what & FI_REMOTE_WRITE))
		unm_cntr_add(mr->remote_cntr, 1);
}
