/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_complete.c - the one way out of every operation: queue entry, counter,
 * error. What a flag means for completions is decided here and nowhere else.
 */
#include "unm_ep.h"

/*
 * Where the next entry goes; it is filled there, word by word: a structure
 * copied right after it was written waits for its stores. NULL: nowhere, either
 * FI_COMPLETION was asked for where there are counters only, or there is no
 * memory (unm_cq_grow() said so).
 */
static inline struct unm_cqe *unm_slot(struct unm_cq *cq)
{
	return __builtin_expect(cq == NULL, 0) ? NULL : unm_cq_slot(cq);
}

void unm_complete_tx(struct unm_ep *ep, bool tagged, uint64_t flags,
		     void *context)
{
	struct unm_cqe *cqe;

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
	/* as one that was lost on its way: nobody awaits that of fi_inject() */
	bool quiet = op->inject && !(op->flags & FI_INJECT);
	struct unm_cqe *cqe = quiet ? NULL : unm_slot(ep->tx_cq);

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

	if (__builtin_expect(done->err != 0, 0)) {
		unm_complete_rx_err(ep, done, flags);
		return;
	}
	/* the release of a multi-receive buffer is always told */
	if ((done->flags & (FI_COMPLETION | FI_MULTI_RECV)) &&
	    (cqe = unm_slot(ep->rx_cq)) != NULL) {
		cqe->context = done->context;
		cqe->flags = flags;
		cqe->len = done->len;
		cqe->buf = done->buf;
		cqe->data = done->data;
		cqe->tag = done->tag;
		cqe->src = done->src;
		cqe->err = 0;
		unm_cq_push(ep->rx_cq);
	}
	if (ep->rx_cntr != NULL && !done->peek)
		unm_cntr_add(ep->rx_cntr, 1);
}
