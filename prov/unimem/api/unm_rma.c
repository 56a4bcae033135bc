/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_rma.c - fi_rma(3): turns the arguments of reads and writes into
 * operations; rma/ executes them. */
#include "api/unm_rma.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "rma/unm_onesided.h"
#include "rma/unm_request.h"
#include "trigger/unm_trigger.h"
#include "trigger/unm_work.h"
#include "unm_offer.h"

static ssize_t unm_rma_msg(struct unm_ep *ep, enum unm_kind kind,
			   const struct fi_msg_rma *msg, uint64_t flags)
{
	struct unm_vec vec = { msg->msg_iov, msg->iov_count }, none = { 0 };
	struct unm_access a = {
		.kind = kind, .op = 0, .type = 0, .unit = 1,
		.inject = flags & FI_INJECT,
		.has_data = flags & FI_REMOTE_CQ_DATA,
		.src = kind == UNM_PUT ? vec : none, .cmp = none,
		.dst = kind == UNM_PUT ? none : vec,
		.remote = msg->rma_iov, .nremote = msg->rma_iov_count,
		.len = 0, .data = msg->data,
		.flags = flags | ep->tx_msg_flags, .context = msg->context,
	};
	uint64_t allowed = UNM_TX_MSG_FLAGS;

	if (kind == UNM_GET)
		allowed &= ~(FI_INJECT | FI_REMOTE_CQ_DATA);
	if (__builtin_expect((flags & ~allowed) != 0, 0)) {
		ssize_t ret = unm_trigger(ep, &(struct unm_call){
			.type = kind == UNM_GET ? FI_OP_READ : FI_OP_WRITE,
			.msg = msg, .flags = flags, .context = msg->context,
			}, flags & ~allowed);

		if (ret != 1)		/* 1: the start of deferred work */
			return ret;
		a.flags = flags;	/* deferred work has no defaults */
	}
	if (msg->iov_count > UNM_IOV_MAX || msg->rma_iov_count == 0 ||
	    msg->rma_iov_count > UNM_REMOTES_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < msg->rma_iov_count; i++)
		if (__builtin_add_overflow(a.len, msg->rma_iov[i].len, &a.len))
			return -FI_EINVAL;
	if (a.len != unm_iov_len(msg->msg_iov, msg->iov_count))
		return -FI_EINVAL;
	return unm_onesided(ep, msg->addr, &a);
}

/* A read or write with the default flags of a handle. data: remote CQ data, or
 * NULL. */
static ssize_t unm_rma(struct fid_ep *fid, enum unm_kind kind,
		       const struct iovec *iov, size_t count, fi_addr_t peer,
		       uint64_t addr, uint64_t key, const uint64_t *data,
		       void *context)
{
	struct unm_handle *h = unm_handle(fid);
	uint64_t flags = h->tx_flags;
	struct fi_rma_iov remote = { .addr = addr, .key = key };
	struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = NULL, .iov_count = count,
		.addr = peer, .rma_iov = &remote, .rma_iov_count = 1,
		.context = context, .data = data != NULL ? *data : 0,
	};

	if (count > UNM_IOV_MAX)
		return -FI_EINVAL;
	remote.len = unm_iov_len(iov, count);
	if (kind == UNM_GET)
		flags &= ~FI_INJECT;
	if (data != NULL)
		flags |= FI_REMOTE_CQ_DATA;
	return unm_rma_msg(h->ep, kind, &msg, flags);
}

/* An injected write. data: remote CQ data, or NULL. */
static ssize_t unm_rma_injected(struct unm_ep *ep, const void *buf, size_t len,
				const uint64_t *data, fi_addr_t peer,
				uint64_t addr, uint64_t key)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_rma_iov remote = { addr, len, key };
	struct unm_access a = {
		.kind = UNM_PUT, .op = 0, .type = 0, .unit = 1,
		.inject = true, .has_data = data != NULL,
		.src = { &iov, 1 }, .cmp = { NULL, 0 }, .dst = { NULL, 0 },
		.remote = &remote, .nremote = 1, .len = len,
		.data = data != NULL ? *data : 0, .flags = 0, .context = NULL,
	};

	return unm_onesided(ep, peer, &a);
}

static ssize_t unm_rma_read(struct fid_ep *ep, void *buf, size_t len,
			    void *desc, fi_addr_t src, uint64_t addr,
			    uint64_t key, void *context)
{
	struct iovec iov = { buf, len };

	(void)desc;
	return unm_rma(ep, UNM_GET, &iov, 1, src, addr, key, NULL, context);
}

static ssize_t unm_rma_readv(struct fid_ep *ep, const struct iovec *iov,
			     void **desc, size_t count, fi_addr_t src,
			     uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return unm_rma(ep, UNM_GET, iov, count, src, addr, key, NULL, context);
}

static ssize_t unm_rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			       uint64_t flags)
{
	return unm_rma_msg(unm_ep(ep), UNM_GET, msg, flags);
}

static ssize_t unm_rma_write(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, fi_addr_t dest, uint64_t addr,
			     uint64_t key, void *context)
{
	struct iovec iov = { (void *)buf, len };

	(void)desc;
	return unm_rma(ep, UNM_PUT, &iov, 1, dest, addr, key, NULL,
		       context);
}

static ssize_t unm_rma_writev(struct fid_ep *ep, const struct iovec *iov,
			      void **desc, size_t count, fi_addr_t dest,
			      uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return unm_rma(ep, UNM_PUT, iov, count, dest, addr, key, NULL,
		       context);
}

static ssize_t unm_rma_writemsg(struct fid_ep *ep,
				const struct fi_msg_rma *msg, uint64_t flags)
{
	return unm_rma_msg(unm_ep(ep), UNM_PUT, msg, flags);
}

static ssize_t unm_rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	return unm_rma_injected(unm_ep(ep), buf, len, NULL, dest, addr, key);
}

static ssize_t unm_rma_writedata(struct fid_ep *ep, const void *buf,
				 size_t len, void *desc, uint64_t data,
				 fi_addr_t dest, uint64_t addr, uint64_t key,
				 void *context)
{
	struct iovec iov = { (void *)buf, len };

	(void)desc;
	return unm_rma(ep, UNM_PUT, &iov, 1, dest, addr, key, &data, context);
}

static ssize_t unm_rma_injectdata(struct fid_ep *ep, const void *buf,
				  size_t len, uint64_t data, fi_addr_t dest,
				  uint64_t addr, uint64_t key)
{
	return unm_rma_injected(unm_ep(ep), buf, len, &data, dest, addr, key);
}

struct fi_ops_rma unm_ops_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = unm_rma_read,
	.readv = unm_rma_readv,
	.readmsg = unm_rma_readmsg,
	.write = unm_rma_write,
	.writev = unm_rma_writev,
	.writemsg = unm_rma_writemsg,
	.inject = unm_rma_inject,
	.writedata = unm_rma_writedata,
	.injectdata = unm_rma_injectdata,
};
