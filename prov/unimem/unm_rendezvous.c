/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rendezvous.c - the receiving side of rendezvous: read the sender's buffer
 * where it can be reached, else ask for pieces.
 */
#include "unm_import.h"
#include "unm_log.h"
#include "unm_mem.h"
#include "unm_mr.h"
#include "unm_recv.h"

/* It leaves the lists of its peer and of the engine. */
static void unm_rdv_release(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_list_remove(&op->link);
	unm_list_remove(&op->control);
	if (op->mem != NULL)
		unm_import_put(op->mem);
	unm_pool_release(&ep->rx_pool, op);
}

/* ---- Control packets ------------------------------------------------- */

/* CTS or FIN; true if it went. The operation may be gone then. */
static bool unm_rdv_tell(struct unm_peer *peer, struct unm_rx_op *op)
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

	/* nothing tells when there is a connection to be had */
	if (ret == -FI_EAGAIN && !peer->greeted)
		ep->stuck = true;
	/* if it has ended, that is told when its last words are read */
	if (ret == -FI_EAGAIN || ret == -FI_ECONNREFUSED ||
	    ret == -FI_ECONNRESET)
		return false;
	if (ret != 0) {
		unm_peer_spoiled(peer, "no way to answer it", -ret);
		return false;
	}
	if (cts) {
		op->state = UNM_RX_STREAM;
		unm_list_remove(&op->control);
		return true;
	}
	HAL_POINT(HAL_POINT_FIN);
	unm_rdv_release(ep, op);
	return true;
}

/* Have something told, at once if possible: the application may not call again
 * for long. The operation may be gone after this. */
static void unm_rdv_control(struct unm_rx_op *op, enum unm_rx_state state)
{
	struct unm_peer *peer = op->peer;

	op->state = state;
	if (unm_list_empty(&peer->control) && unm_rdv_tell(peer, op))
		return;
	unm_list_remove(&op->control);
	unm_list_append(&peer->control, &op->control);
	unm_peer_busy(peer);
}

/* The application gets its completion. */
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
	if (op->status == 0) {	/* (also when it was cut) */
		ep->stats->rx_msgs++;
		ep->stats->rx_bytes += op->got;
	}
	unm_complete_rx(ep, &done);
	if (canceled)		/* told after the last of its data */
		unm_multi_put(ep, buf);
}

static void unm_rdv_finish(struct unm_ep *ep, struct unm_rx_op *op)
{
	unm_rdv_complete(ep, op);
	unm_rdv_release(ep, op);
}

/* ---- Where the sender's buffer is -------------------------------------- */

/* Does the engine reach our buffers? All memory, or dmable memory only. */
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

/* Dmable memory that we have not imported yet we ask for, so that the next
 * message finds it; this one comes in pieces. */
static bool unm_rdv_can_read(struct unm_ep *ep, struct unm_rx_op *op,
			     const struct unm_got *got)
{
	struct unm_peer *peer = op->peer;

	if (!got->dmable)
		return op->addr != 0 && peer->hp->dma_any &&
			!peer->attach_off && g_unm_env.attach &&
			op->wanted >= g_unm_env.attach_min;
	return g_unm_env.direct && unm_rdv_engine(ep, op) &&
		unm_import_get(peer, &got->key, &op->mem) == 0;
}

/* A transfer into part of a multi-receive buffer is an operation of its own. */
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
	HAL_POINT(HAL_POINT_MATCHED);
	if (op->flags & FI_MULTI_RECV) {
		op = unm_rdv_child(ep, op, got->len);
		if (op == NULL) {
			unm_peer_spoiled(got->peer,
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
	op->peer_token = got->token;
	op->addr = got->addr;
	op->mem = NULL;
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
	unm_list_append(&got->peer->recvs, &op->link);
	if (op->wanted == 0) {
		unm_rdv_complete(ep, op);
		unm_rdv_control(op, UNM_RX_FIN);
	} else if (unm_rdv_can_read(ep, op, got)) {
		op->state = UNM_RX_DMA_WAIT;
		unm_list_append(&ep->dma_wait, &op->control);
		if (ep->armed)	/* nobody would move it */
			unm_disturb(ep);
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
		unm_peer_spoiled(got->peer, "out of memory for its message", 0);
		return;
	}
	op->peer = got->peer;
	op->peer_token = got->token;
	op->mem = NULL;
	op->status = 0;
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

		if (!unm_rdv_tell(peer, op))
			break;
		done++;
	}
	return done;
}

/* A piece of a streamed message; an empty one: the sender's buffer is none. 0
 * or -FI_EINVAL. */
int unm_recv_data(struct unm_peer *peer, const struct unm_wire_msg *m,
		  const void *bytes)
{
	struct unm_ep *ep = peer->ep;
	struct unm_rx_op *op = unm_pool_find(&ep->rx_pool, m->token);

	if (op == NULL || op->peer != peer || op->state != UNM_RX_STREAM ||
	    (m->extent.len == 0 && !op->fault) ||
	    m->extent.len > op->wanted - op->got)
		return -FI_EINVAL;
	if (m->extent.len == 0) {
		op->status = -FI_EIO;
		op->got = 0;
		unm_rdv_finish(ep, op);
		return 0;
	}
	op->got += unm_iov_fill(op->iov, op->count, op->got, bytes,
				m->extent.len);
	if (op->got == op->wanted)
		unm_rdv_finish(ep, op);
	return 0;
}

/* ---- Reading the sender's buffer ------------------------------------- */

/* Post the transfers of one operation; false: the engine is full. */
static bool unm_rdv_post(struct unm_ep *ep, struct unm_rx_op *op)
{
	while (op->dma_next < op->count) {
		struct iovec *iov = &op->iov[op->dma_next];
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

/*
 * The engine or the kernel did not reach one of the two buffers, which may be
 * good memory all the same (docs/protocol.md, section 7). Is ours? Then the
 * message comes in pieces, and its sender checks the other one.
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
	if (op->status == -FI_EACCES && op->mem == NULL) {
		/* the kernel forbids it: pieces from now on */
		if (!op->peer->attach_off)
			UNM_INFO(EP_DATA, "cross-memory attach refused by the "
				 "kernel, copying through cells instead\n");
		op->peer->attach_off = true;
	}
	if (op->status == -FI_EACCES ||
	    (op->status == -FI_EFAULT && unm_rdv_fault(op))) {
		op->status = 0;
		op->got = 0;
		unm_rdv_control(op, UNM_RX_CTS);
		return;
	}
	if (op->status == -FI_ECANCELED) {
		/* the peer ended; FI_ECANCELED is what fi_cancel() gives */
		op->status = -FI_ECONNRESET;
	} else if (op->status != 0 && op->status != -FI_EFAULT) {
		UNM_INFO(EP_DATA, "reading a message failed: %s\n",
			 fi_strerror(-op->status));
		op->status = -FI_EIO;
	}
	if (op->status != 0)
		op->got = 0;
	else if (op->mem != NULL)
		ep->stats->rx_dmable++;
	else
		ep->stats->rx_attach++;
	unm_rdv_complete(ep, op);
	unm_rdv_control(op, UNM_RX_FIN);
}

void unm_recv_dma_post(struct unm_ep *ep)
{
	while (!unm_list_empty(&ep->dma_wait)) {
		struct unm_rx_op *op = unm_container(ep->dma_wait.next,
						struct unm_rx_op, control);

		if (!unm_rdv_post(ep, op))
			break;
		if (op->dma_left == 0)
			unm_rdv_read(ep, op);
	}
}

void unm_recv_dma_done(struct unm_ep *ep, const struct hal_dma_comp *comp)
{
	struct unm_rx_op *op = unm_pool_find(&ep->rx_pool, comp->token);

	if (op == NULL)			/* its peer died meanwhile */
		return;
	if (comp->status != 0)
		op->status = comp->status;
	if (--op->dma_left == 0 && op->state == UNM_RX_DMA)
		unm_rdv_read(ep, op);
}

/* The peer is gone: what it had begun to send ends in error. */
void unm_recv_abort(struct unm_peer *peer, int err)
{
	struct unm_ep *ep = peer->ep;

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
