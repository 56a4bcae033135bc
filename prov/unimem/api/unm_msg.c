/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_msg.c - fi_msg(3): turns the arguments of untagged sends and receives
 * into operations; msg/ executes them. */
#include "api/unm_msg.h"
#include "core/unm_ep_state.h"
#include "msg/unm_recv.h"
#include "msg/unm_send.h"
#include "msg/unm_tx.h"
#include "trigger/unm_trigger.h"
#include "trigger/unm_work.h"
#include "unm_offer.h"

#define UNM_RX_ODD	(~(UNM_RX_OP_FLAGS | FI_MORE))

static ssize_t unm_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			       uint64_t flags)
{
	struct unm_ep *ep = unm_ep(fid);
	uint64_t defaults = ep->rx_msg_flags;

	if (__builtin_expect((flags & UNM_RX_ODD) != 0, 0)) {
		ssize_t ret = unm_trigger(ep, &(struct unm_call){
			.type = FI_OP_RECV, .msg = msg, .flags = flags,
			.context = msg->context }, flags & UNM_RX_ODD);

		if (ret != 1)		/* 1: the start of deferred work */
			return ret;
		defaults = 0;		/* deferred work has no defaults */
	}
	return unm_recv_vector(ep, FI_MSG, msg->msg_iov, msg->iov_count,
			       msg->addr, 0, 0, msg->context, flags | defaults);
}

static ssize_t unm_msg_recvv(struct fid_ep *fid, const struct iovec *iov,
			     void **desc, size_t count, fi_addr_t src,
			     void *context)
{
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = src,
		.context = context,
	};

	return unm_msg_recvmsg(fid, &msg, unm_handle(fid)->rx_flags);
}

static ssize_t unm_msg_recv(struct fid_ep *fid, void *buf, size_t len,
			    void *desc, fi_addr_t src, void *context)
{
	struct unm_handle *h = unm_handle(fid);

	if (__builtin_expect((h->rx_flags & FI_TRIGGER) != 0, 0))
		return unm_msg_recvv(fid, &(struct iovec){ buf, len }, &desc,
				     1, src, context);
	return unm_recv_untagged(h, buf, len, src, context);
}

static ssize_t unm_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			       uint64_t flags)
{
	struct unm_send s = {
		.iov = msg->msg_iov, .count = msg->iov_count,
		.context = msg->context, .data = msg->data,
		.has_data = flags & FI_REMOTE_CQ_DATA,
		.flags = flags | unm_ep(fid)->tx_msg_flags,
	};

	if (__builtin_expect((flags & ~UNM_TX_MSG_FLAGS) != 0, 0)) {
		ssize_t ret = unm_trigger(unm_ep(fid), &(struct unm_call){
			.type = FI_OP_SEND, .msg = msg, .flags = flags,
			.context = msg->context }, flags & ~UNM_TX_MSG_FLAGS);

		if (ret != 1)		/* 1: the start of deferred work */
			return ret;
		s.flags = flags;	/* deferred work has no defaults */
	}
	return unm_tx_iov(unm_ep(fid), msg->addr, &s);
}

static ssize_t unm_msg_sendv(struct fid_ep *fid, const struct iovec *iov,
			     void **desc, size_t count, fi_addr_t dest,
			     void *context)
{
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.context = context,
	};

	return unm_msg_sendmsg(fid, &msg, unm_handle(fid)->tx_flags);
}

/* A send by an alias with FI_TRIGGER among its default flags. kind: 0 or
 * FI_REMOTE_CQ_DATA. */
static __attribute__((noinline))
ssize_t unm_msg_triggered(struct fid_ep *fid, uint64_t kind, const void *buf,
			  size_t len, uint64_t data, fi_addr_t dest,
			  void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest,
		.context = context, .data = data,
	};

	return unm_msg_sendmsg(fid, &msg, unm_handle(fid)->tx_flags | kind);
}

static ssize_t unm_msg_send(struct fid_ep *fid, const void *buf, size_t len,
			    void *desc, fi_addr_t dest, void *context)
{
	struct unm_handle *h = unm_handle(fid);

	(void)desc;
	if (__builtin_expect((h->tx_flags & FI_TRIGGER) != 0, 0))
		return unm_msg_triggered(fid, 0, buf, len, 0, dest, context);
	return unm_tx(h->ep, FI_MSG, buf, len, dest, 0, 0, context,
		      h->tx_flags);
}

static ssize_t unm_msg_inject(struct fid_ep *fid, const void *buf, size_t len,
			      fi_addr_t dest)
{
	return unm_tx(unm_ep(fid), FI_MSG | FI_INJECT, buf, len, dest, 0, 0,
		      NULL, 0);
}

static ssize_t unm_msg_senddata(struct fid_ep *fid, const void *buf,
				size_t len, void *desc, uint64_t data,
				fi_addr_t dest, void *context)
{
	struct unm_handle *h = unm_handle(fid);

	(void)desc;
	if (__builtin_expect((h->tx_flags & FI_TRIGGER) != 0, 0))
		return unm_msg_triggered(fid, FI_REMOTE_CQ_DATA, buf, len,
					 data, dest, context);
	return unm_tx(h->ep, FI_MSG | FI_REMOTE_CQ_DATA, buf, len, dest, 0,
		      data, context, h->tx_flags);
}

static ssize_t unm_msg_injectdata(struct fid_ep *fid, const void *buf,
				  size_t len, uint64_t data, fi_addr_t dest)
{
	return unm_tx(unm_ep(fid), FI_MSG | FI_INJECT | FI_REMOTE_CQ_DATA, buf,
		      len, dest, 0, data, NULL, 0);
}

struct fi_ops_msg unm_ops_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = unm_msg_recv,
	.recvv = unm_msg_recvv,
	.recvmsg = unm_msg_recvmsg,
	.send = unm_msg_send,
	.sendv = unm_msg_sendv,
	.sendmsg = unm_msg_sendmsg,
	.inject = unm_msg_inject,
	.senddata = unm_msg_senddata,
	.injectdata = unm_msg_injectdata,
};
