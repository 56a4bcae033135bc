/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_tagged.c - fi_tagged(3): turns the arguments of tagged sends and
 * receives into operations; msg/ executes them. */
#include "api/unm_tagged.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "msg/unm_recv.h"
#include "msg/unm_send.h"
#include "msg/unm_tx.h"
#include "progress/unm_progress.h"
#include "trigger/unm_trigger.h"
#include "trigger/unm_work.h"
#include "unm_offer.h"

#define UNM_TRX_ODD	(~(FI_COMPLETION | FI_PEEK | FI_CLAIM | \
			   FI_DISCARD | FI_MORE))

/* Look up an unexpected message (FI_PEEK). Make progress first, so that
 * messages that have arrived are found. */
static __attribute__((noinline))
ssize_t unm_tagged_peek(struct unm_ep *ep, const struct fi_msg_tagged *msg,
			uint64_t flags)
{
	uint64_t src;
	int ret;

	if (!ep->recv_ok)
		return -FI_EOPBADSTATE;
	unm_lock(ep->domain);
	ret = unm_recv_may_peek(ep, msg->addr, &src);
	if (ret == 0) {
		unm_progress(ep);
		unm_recv_peek(ep, msg->tag, msg->ignore, src, msg->context,
			      flags);
	}
	unm_unlock(ep->domain);
	return ret;
}

static ssize_t unm_tagged_recvmsg(struct fid_ep *fid,
				  const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct unm_ep *ep = unm_ep(fid);
	uint64_t defaults = ep->rx_msg_flags;

	if (__builtin_expect((flags & UNM_TRX_ODD) != 0, 0)) {
		ssize_t ret = unm_trigger(ep, &(struct unm_call){
			.type = FI_OP_TRECV, .msg = msg, .flags = flags,
			.context = msg->context }, flags & UNM_TRX_ODD);

		if (ret != 1)		/* 1: the start of deferred work */
			return ret;
		defaults = 0;		/* deferred work has no defaults */
	}
	flags |= defaults;
	if (flags & FI_PEEK)
		return unm_tagged_peek(ep, msg, flags);
	if (flags & FI_CLAIM)
		return unm_recv_claimed(ep, msg->msg_iov, msg->iov_count,
					msg->context, flags);
	if (flags & FI_DISCARD)		/* only with FI_PEEK or FI_CLAIM */
		return -FI_EINVAL;
	return unm_recv_vector(ep, FI_TAGGED, msg->msg_iov, msg->iov_count,
			       msg->addr, msg->tag, msg->ignore, msg->context,
			       flags);
}

static ssize_t unm_tagged_recvv(struct fid_ep *fid, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t src,
				uint64_t tag, uint64_t ignore, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = src,
		.tag = tag, .ignore = ignore, .context = context,
	};

	return unm_tagged_recvmsg(fid, &msg, unm_handle(fid)->rx_flags &
				  ~FI_MULTI_RECV);
}

static ssize_t unm_tagged_recv(struct fid_ep *fid, void *buf, size_t len,
			       void *desc, fi_addr_t src, uint64_t tag,
			       uint64_t ignore, void *context)
{
	struct unm_handle *h = unm_handle(fid);

	if (__builtin_expect((h->rx_flags & FI_TRIGGER) != 0, 0))
		return unm_tagged_recvv(fid, &(struct iovec){ buf, len }, &desc,
					1, src, tag, ignore, context);
	return unm_recv_tagged(h, buf, len, src, tag, ignore, context);
}

static ssize_t unm_tagged_sendmsg(struct fid_ep *fid,
				  const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct unm_send s = {
		.iov = msg->msg_iov, .count = msg->iov_count, .tag = msg->tag,
		.tagged = true, .context = msg->context, .data = msg->data,
		.has_data = flags & FI_REMOTE_CQ_DATA,
		.flags = flags | unm_ep(fid)->tx_msg_flags,
	};

	if (__builtin_expect((flags & ~UNM_TX_MSG_FLAGS) != 0, 0)) {
		ssize_t ret = unm_trigger(unm_ep(fid), &(struct unm_call){
			.type = FI_OP_TSEND, .msg = msg, .flags = flags,
			.context = msg->context }, flags & ~UNM_TX_MSG_FLAGS);

		if (ret != 1)		/* 1: the start of deferred work */
			return ret;
		s.flags = flags;	/* deferred work has no defaults */
	}
	return unm_tx_iov(unm_ep(fid), msg->addr, &s);
}

static ssize_t unm_tagged_sendv(struct fid_ep *fid, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t dest,
				uint64_t tag, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.tag = tag, .context = context,
	};

	return unm_tagged_sendmsg(fid, &msg, unm_handle(fid)->tx_flags);
}

/* A send by an alias with FI_TRIGGER among its default flags. kind: 0 or
 * FI_REMOTE_CQ_DATA. */
static __attribute__((noinline))
ssize_t unm_tagged_triggered(struct fid_ep *fid, uint64_t kind,
			     const void *buf, size_t len, uint64_t data,
			     fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .tag = tag,
		.context = context, .data = data,
	};

	return unm_tagged_sendmsg(fid, &msg, unm_handle(fid)->tx_flags | kind);
}

static ssize_t unm_tagged_send(struct fid_ep *fid, const void *buf, size_t len,
			       void *desc, fi_addr_t dest, uint64_t tag,
			       void *context)
{
	struct unm_handle *h = unm_handle(fid);

	(void)desc;
	if (__builtin_expect((h->tx_flags & FI_TRIGGER) != 0, 0))
		return unm_tagged_triggered(fid, 0, buf, len, 0, dest, tag,
					    context);
	return unm_tx(h->ep, FI_TAGGED, buf, len, dest, tag, 0, context,
		      h->tx_flags);
}

static ssize_t unm_tagged_inject(struct fid_ep *fid, const void *buf,
				 size_t len, fi_addr_t dest, uint64_t tag)
{
	return unm_tx(unm_ep(fid), FI_TAGGED | FI_INJECT, buf, len, dest, tag,
		      0, NULL, 0);
}

static ssize_t unm_tagged_senddata(struct fid_ep *fid, const void *buf,
				   size_t len, void *desc, uint64_t data,
				   fi_addr_t dest, uint64_t tag, void *context)
{
	struct unm_handle *h = unm_handle(fid);

	(void)desc;
	if (__builtin_expect((h->tx_flags & FI_TRIGGER) != 0, 0))
		return unm_tagged_triggered(fid, FI_REMOTE_CQ_DATA, buf, len,
					    data, dest, tag, context);
	return unm_tx(h->ep, FI_TAGGED | FI_REMOTE_CQ_DATA, buf, len, dest,
		      tag, data, context, h->tx_flags);
}

static ssize_t unm_tagged_injectdata(struct fid_ep *fid, const void *buf,
				     size_t len, uint64_t data,
				     fi_addr_t dest, uint64_t tag)
{
	return unm_tx(unm_ep(fid), FI_TAGGED | FI_INJECT | FI_REMOTE_CQ_DATA,
		      buf, len, dest, tag, data, NULL, 0);
}

struct fi_ops_tagged unm_ops_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = unm_tagged_recv,
	.recvv = unm_tagged_recvv,
	.recvmsg = unm_tagged_recvmsg,
	.send = unm_tagged_send,
	.sendv = unm_tagged_sendv,
	.sendmsg = unm_tagged_sendmsg,
	.inject = unm_tagged_inject,
	.senddata = unm_tagged_senddata,
	.injectdata = unm_tagged_injectdata,
};
