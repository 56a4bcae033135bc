/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_complete.c - reports the completion of every operation: queue entry,
 * counter, error. Only this file and unm_complete.h, which has the inline
 * report of a received message, decide what a flag means for completions.
 *
 * unm_report_*() take the queue and the counter: those of the endpoint, or of
 * deferred work.
 */
#include "core/unm_cntr_value.h"
#include "core/unm_complete.h"
#include "core/unm_cq_ring.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"
#include "unm_addr.h"

/*
 * The slot of the next entry. unm_report_tx() and unm_report_rx_plain() fill
 * the fields one by one, because a copy of a structure that was just written
 * would stall on its stores. NULL if the endpoint has only counters, or if
 * memory ran out (unm_cq_grow() logs it).
 */
static inline struct unm_cqe *unm_slot(struct unm_cq *cq)
{
	return __builtin_expect(cq == NULL, 0) ? NULL : unm_cq_slot(cq);
}

/* ---- Deferred operations --------------------------------------------- */

/* The queue for the entry of deferred work, if it wants one. */
static struct unm_cq *unm_work_cq(const struct unm_deferred *work,
				  struct unm_cq *cq)
{
	return work->flags & FI_COMPLETION ? cq : NULL;
}

/* The flags of deferred work, instead of those that it was started with. */
static uint64_t unm_work_flags(const struct unm_deferred *work, uint64_t flags)
{
	return (flags & ~(UNM_OP_WORK | FI_COMPLETION)) |
		(work->flags & FI_COMPLETION);
}

/* ---- Sends ----------------------------------------------------------- */

static inline void unm_report_tx(struct unm_cq *cq, struct unm_cntr *cntr,
				 bool tagged, uint64_t flags, void *context)
{
	struct unm_cqe *cqe;

	if ((flags & FI_COMPLETION) && (cqe = unm_slot(cq)) != NULL) {
		cqe->context = context;
		cqe->flags = FI_SEND | (tagged ? FI_TAGGED : FI_MSG);
		cqe->len = 0;
		cqe->buf = NULL;
		cqe->data = 0;
		cqe->tag = 0;
		cqe->src = FI_ADDR_NOTAVAIL;
		cqe->err = 0;
		unm_cq_push(cq);
	}
	if (cntr != NULL)
		unm_cntr_add(cntr, 1);
}

static __attribute__((noinline))
void unm_work_tx(struct unm_ep *ep, bool tagged, struct unm_deferred *work)
{
	unm_report_tx(ep->tx_cq, work->done, tagged, work->flags,
		      work->context);
	work->ended(ep, work);
}

void unm_complete_tx(struct unm_ep *ep, bool tagged, uint64_t flags,
		     void *context)
{
	if (__builtin_expect((flags & UNM_OP_WORK) != 0, 0))
		unm_work_tx(ep, tagged, context);
	else
		unm_report_tx(ep->tx_cq, ep->tx_cntr, tagged, flags, context);
}

static void unm_report_tx_err(struct unm_cq *cq, struct unm_cntr *cntr,
			      const struct unm_send *s, void *context,
			      int err)
{
	/* fi_inject() reports no completion, not even of a failure */
	bool quiet = s->inject && !(s->flags & FI_INJECT);
	struct unm_cqe *cqe = quiet ? NULL : unm_slot(cq);

	if (cqe != NULL) {
		*cqe = (struct unm_cqe){
			.context = context,
			.flags = FI_SEND | (s->tagged ? FI_TAGGED : FI_MSG),
			.len = s->len,
			.data = s->data,
			.tag = s->tag,
			.err = err,
		};
		unm_cq_push(cq);
	}
	if (cntr != NULL)
		unm_cntr_add_err(cntr, 1);
}

void unm_complete_tx_err(struct unm_ep *ep, const struct unm_send *s,
			 int err)
{
	struct unm_deferred *work = s->context;

	if (!(s->flags & UNM_OP_WORK)) {
		unm_report_tx_err(ep->tx_cq, ep->tx_cntr, s, s->context, err);
		return;
	}
	unm_report_tx_err(unm_work_cq(work, ep->tx_cq), work->done, s,
			  work->context, err);
	work->ended(ep, work);
}

/* ---- Receives -------------------------------------------------------- */

/*
 * Report a message from a peer that is not in the address vector by an error
 * entry with the peer's address (FI_SOURCE_ERR).
 */
static void unm_push_unknown(struct unm_cq *cq, const struct unm_rx_done *done)
{
	uint8_t name[sizeof(struct hal_addr_host)];
	struct unm_cqe *cqe = unm_slot(cq);

	_Static_assert(sizeof(*cqe) >= sizeof(name), "an address fits a slot");
	if (cqe == NULL)
		return;
	*cqe = (struct unm_cqe){
		.context = done->context,
		.flags = unm_rx_entry_flags(done),
		.len = done->len,
		.buf = done->buf,
		.data = done->data,
		.tag = done->tag,
		.err = FI_EADDRNOTAVAIL,
	};
	unm_addr_export(unm_peer_addr(done->peer), done->peer->hp != NULL ?
			done->peer->hp->host : NULL, name);
	unm_cq_err_data(cq, cqe, name, (uint32_t)unm_addr_bytes());
	unm_cq_push(cq);
}

static __attribute__((noinline))
void unm_report_unknown(struct unm_cq *cq, struct unm_cntr *cntr,
			const struct unm_rx_done *done)
{
	if (done->flags & (FI_COMPLETION | FI_MULTI_RECV))
		unm_push_unknown(cq, done);
	if (cntr != NULL && !done->peek)
		unm_cntr_add(cntr, 1);
}

static __attribute__((noinline))
void unm_report_rx_err(struct unm_cq *cq, struct unm_cntr *cntr,
		       const struct unm_rx_done *done)
{
	struct unm_cqe *cqe = unm_slot(cq);

	if (cqe != NULL) {
		*cqe = (struct unm_cqe){
			.context = done->context,
			.flags = unm_rx_entry_flags(done),
			.len = done->len,
			.buf = done->buf,
			.data = done->data,
			.tag = done->tag,
			.olen = done->olen,
			.err = done->err,
		};
		unm_cq_push(cq);
	}
	if (cntr != NULL && !done->peek)
		unm_cntr_add_err(cntr, 1);
}

static inline void unm_report_rx(struct unm_ep *ep, struct unm_cq *cq,
				 struct unm_cntr *cntr,
				 const struct unm_rx_done *done)
{
	if (__builtin_expect(done->err != 0, 0)) {
		unm_report_rx_err(cq, cntr, done);
		return;
	}
	if (__builtin_expect(done->src == FI_ADDR_NOTAVAIL, 0) &&
	    ep->source_err && done->peer != NULL)
		unm_report_unknown(cq, cntr, done);
	else
		unm_report_rx_plain(ep, cq, cntr, done);
}

static __attribute__((noinline))
void unm_work_rx(struct unm_ep *ep, const struct unm_rx_done *done)
{
	struct unm_deferred *work = done->context;
	struct unm_rx_done plain = *done;

	plain.context = work->context;
	plain.flags = unm_work_flags(work, done->flags);
	unm_report_rx(ep, unm_work_cq(work, ep->rx_cq), work->done, &plain);
	work->ended(ep, work);
}

void unm_complete_rx(struct unm_ep *ep, const struct unm_rx_done *done)
{
	if (__builtin_expect((done->flags & UNM_OP_WORK) != 0, 0))
		unm_work_rx(ep, done);
	else
		unm_report_rx(ep, ep->rx_cq, ep->rx_cntr, done);
}

/* ---- One-sided ------------------------------------------------------- */

static uint64_t unm_onesided_flags(const struct unm_access *a)
{
	bool reads = a->kind == UNM_GET || a->kind >= UNM_FETCH;

	return (a->kind >= UNM_ATOMIC ? FI_ATOMIC : FI_RMA) |
		(reads ? FI_READ : FI_WRITE);
}

static inline void unm_report_onesided(struct unm_cq *cq,
				       struct unm_cntr *cntr,
				       const struct unm_access *a, int err)
{
	/* an inject call reports no completion */
	bool quiet = a->inject && !(a->flags & FI_INJECT);
	struct unm_cqe *cqe;

	if (((a->flags & FI_COMPLETION) || (err != 0 && !quiet)) &&
	    (cqe = unm_slot(cq)) != NULL) {
		*cqe = (struct unm_cqe){
			.context = a->context,
			.flags = unm_onesided_flags(a),
			.len = err != 0 ? a->len : 0,
			.buf = NULL,
			.data = err != 0 ? a->data : 0,
			.tag = 0,
			.src = FI_ADDR_NOTAVAIL,
			.err = err,
			.vector = 0,
		};
		if (err != 0)
			cqe->olen = 0;	/* in the place of src */
		unm_cq_push(cq);
	}
	if (cntr != NULL && err == 0)
		unm_cntr_add(cntr, 1);
	else if (cntr != NULL)
		unm_cntr_add_err(cntr, 1);
}

static __attribute__((noinline))
void unm_work_onesided(struct unm_ep *ep, const struct unm_access *a, int err)
{
	struct unm_deferred *work = a->context;
	struct unm_access plain = *a;

	plain.context = work->context;
	plain.flags = unm_work_flags(work, a->flags);
	unm_report_onesided(unm_work_cq(work, ep->tx_cq), work->done, &plain,
			    err);
	work->ended(ep, work);
}

void unm_complete_onesided(struct unm_ep *ep, const struct unm_access *a,
			   int err)
{
	if (__builtin_expect((a->flags & UNM_OP_WORK) != 0, 0))
		unm_work_onesided(ep, a, err);
	else
		unm_report_onesided(ep->tx_cq, unm_onesided_flags(a) & FI_READ ?
				    ep->rd_cntr : ep->wr_cntr, a, err);
}

void unm_complete_injected(struct unm_ep *ep, uint64_t done, uint64_t failed)
{
	if (ep->wr_cntr == NULL)
		return;
	if (done != 0)
		unm_cntr_add(ep->wr_cntr, done);
	if (failed != 0)
		unm_cntr_add_err(ep->wr_cntr, failed);
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
