/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_alias.c - fi_ep_alias(3): a second handle of an endpoint, with other
 * default flags. A call without a flags argument becomes the call of the
 * endpoint with one (fi_send() becomes fi_sendmsg()); a call with flags is
 * passed on. So the code of endpoints does not handle aliases.
 */
#include <stdlib.h>

#include "api/unm_alias.h"
#include "core/unm_ep_state.h"
#include "core/unm_obj.h"
#include "core/unm_op.h"
#include "unm_nosys.h"
#include "unm_offer.h"
#include "util/unm_list.h"

struct unm_alias {
	struct fid_ep fid;
	struct unm_ep *ep;
	/* default flags, with FI_TRANSMIT or FI_RECV; 0: the endpoint's */
	uint64_t tx_flags, rx_flags;
};

static struct unm_alias *unm_alias(struct fid_ep *fid)
{
	return (struct unm_alias *)fid;
}

/* The endpoint behind an alias. */
static struct fid_ep *unm_base(struct fid_ep *fid)
{
	return &unm_alias(fid)->ep->fid;
}

static uint64_t unm_alias_tx(struct fid_ep *fid)
{
	struct unm_alias *a = unm_alias(fid);

	return a->tx_flags != 0 ? a->tx_flags & ~FI_TRANSMIT :
		a->ep->tx_flags;
}

static uint64_t unm_alias_rx(struct fid_ep *fid)
{
	struct unm_alias *a = unm_alias(fid);

	return a->rx_flags != 0 ? a->rx_flags & ~FI_RECV : a->ep->rx_flags;
}

/* Set the default flags of one direction: FI_TRANSMIT or FI_RECV, and the
 * flags. The application makes no other call on the alias meanwhile
 * (fi_endpoint(3)). Returns 0, -FI_EINVAL or -FI_EBADFLAGS. */
static int unm_alias_set(struct unm_alias *a, uint64_t flags)
{
	uint64_t allowed = a->ep->info->caps & FI_TRIGGER;
	uint64_t way = flags & (FI_TRANSMIT | FI_RECV);

	if (way != FI_TRANSMIT && way != FI_RECV)
		return -FI_EINVAL;
	allowed |= way == FI_TRANSMIT ? UNM_TX_OP_FLAGS : UNM_RX_OP_FLAGS;
	if (flags & ~way & ~allowed)
		return -FI_EBADFLAGS;
	*(way == FI_TRANSMIT ? &a->tx_flags : &a->rx_flags) = flags;
	return 0;
}

/* ---- Messages -------------------------------------------------------- */

static ssize_t unm_alias_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
				 uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->msg->recvmsg(base, msg, flags);
}

static ssize_t unm_alias_recvv(struct fid_ep *fid, const struct iovec *iov,
			       void **desc, size_t count, fi_addr_t src,
			       void *context)
{
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = src, .context = context,
	};

	return unm_alias_recvmsg(fid, &msg, unm_alias_rx(fid));
}

static ssize_t unm_alias_recv(struct fid_ep *fid, void *buf, size_t len,
			      void *desc, fi_addr_t src, void *context)
{
	struct iovec iov = { buf, len };

	return unm_alias_recvv(fid, &iov, &desc, 1, src, context);
}

static ssize_t unm_alias_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
				 uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->msg->sendmsg(base, msg, flags);
}

static ssize_t unm_alias_sendv(struct fid_ep *fid, const struct iovec *iov,
			       void **desc, size_t count, fi_addr_t dest,
			       void *context)
{
	struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .context = context,
	};

	return unm_alias_sendmsg(fid, &msg, unm_alias_tx(fid));
}

static ssize_t unm_alias_send(struct fid_ep *fid, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, void *context)
{
	struct iovec iov = { (void *)buf, len };

	return unm_alias_sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t unm_alias_inject(struct fid_ep *fid, const void *buf, size_t len,
				fi_addr_t dest)
{
	struct fid_ep *base = unm_base(fid);

	return base->msg->inject(base, buf, len, dest);
}

static ssize_t unm_alias_senddata(struct fid_ep *fid, const void *buf,
				  size_t len, void *desc, uint64_t data,
				  fi_addr_t dest, void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1,
		.addr = dest, .context = context, .data = data,
	};

	return unm_alias_sendmsg(fid, &msg, unm_alias_tx(fid) |
				 FI_REMOTE_CQ_DATA);
}

static ssize_t unm_alias_injectdata(struct fid_ep *fid, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest)
{
	struct fid_ep *base = unm_base(fid);

	return base->msg->injectdata(base, buf, len, data, dest);
}

static struct fi_ops_msg unm_ops_alias_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = unm_alias_recv,
	.recvv = unm_alias_recvv,
	.recvmsg = unm_alias_recvmsg,
	.send = unm_alias_send,
	.sendv = unm_alias_sendv,
	.sendmsg = unm_alias_sendmsg,
	.inject = unm_alias_inject,
	.senddata = unm_alias_senddata,
	.injectdata = unm_alias_injectdata,
};

/* ---- Tagged ---------------------------------------------------------- */

static ssize_t unm_alias_trecvmsg(struct fid_ep *fid,
				  const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->tagged->recvmsg(base, msg, flags);
}

static ssize_t unm_alias_trecvv(struct fid_ep *fid, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t src,
				uint64_t tag, uint64_t ignore, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = src,
		.tag = tag, .ignore = ignore, .context = context,
	};

	return unm_alias_trecvmsg(fid, &msg, unm_alias_rx(fid) &
				  ~FI_MULTI_RECV);
}

static ssize_t unm_alias_trecv(struct fid_ep *fid, void *buf, size_t len,
			       void *desc, fi_addr_t src, uint64_t tag,
			       uint64_t ignore, void *context)
{
	struct iovec iov = { buf, len };

	return unm_alias_trecvv(fid, &iov, &desc, 1, src, tag, ignore,
				context);
}

static ssize_t unm_alias_tsendmsg(struct fid_ep *fid,
				  const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->tagged->sendmsg(base, msg, flags);
}

static ssize_t unm_alias_tsendv(struct fid_ep *fid, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t dest,
				uint64_t tag, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .tag = tag, .context = context,
	};

	return unm_alias_tsendmsg(fid, &msg, unm_alias_tx(fid));
}

static ssize_t unm_alias_tsend(struct fid_ep *fid, const void *buf, size_t len,
			       void *desc, fi_addr_t dest, uint64_t tag,
			       void *context)
{
	struct iovec iov = { (void *)buf, len };

	return unm_alias_tsendv(fid, &iov, &desc, 1, dest, tag, context);
}

static ssize_t unm_alias_tinject(struct fid_ep *fid, const void *buf,
				 size_t len, fi_addr_t dest, uint64_t tag)
{
	struct fid_ep *base = unm_base(fid);

	return base->tagged->inject(base, buf, len, dest, tag);
}

static ssize_t unm_alias_tsenddata(struct fid_ep *fid, const void *buf,
				   size_t len, void *desc, uint64_t data,
				   fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = dest,
		.tag = tag, .context = context, .data = data,
	};

	return unm_alias_tsendmsg(fid, &msg, unm_alias_tx(fid) |
				  FI_REMOTE_CQ_DATA);
}

static ssize_t unm_alias_tinjectdata(struct fid_ep *fid, const void *buf,
				     size_t len, uint64_t data,
				     fi_addr_t dest, uint64_t tag)
{
	struct fid_ep *base = unm_base(fid);

	return base->tagged->injectdata(base, buf, len, data, dest, tag);
}

static struct fi_ops_tagged unm_ops_alias_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = unm_alias_trecv,
	.recvv = unm_alias_trecvv,
	.recvmsg = unm_alias_trecvmsg,
	.send = unm_alias_tsend,
	.sendv = unm_alias_tsendv,
	.sendmsg = unm_alias_tsendmsg,
	.inject = unm_alias_tinject,
	.senddata = unm_alias_tsenddata,
	.injectdata = unm_alias_tinjectdata,
};

/* ---- RMA ------------------------------------------------------------- */

static ssize_t unm_alias_readmsg(struct fid_ep *fid,
				 const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->rma->readmsg(base, msg, flags);
}

static ssize_t unm_alias_readv(struct fid_ep *fid, const struct iovec *iov,
			       void **desc, size_t count, fi_addr_t src,
			       uint64_t addr, uint64_t key, void *context)
{
	size_t len = unm_iov_len(iov, count);
	struct fi_rma_iov remote = { addr, len, key };
	struct fi_msg_rma msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = src, .rma_iov = &remote, .rma_iov_count = 1,
		.context = context,
	};

	return unm_alias_readmsg(fid, &msg, unm_alias_tx(fid) & ~FI_INJECT);
}

static ssize_t unm_alias_read(struct fid_ep *fid, void *buf, size_t len,
			      void *desc, fi_addr_t src, uint64_t addr,
			      uint64_t key, void *context)
{
	struct iovec iov = { buf, len };

	return unm_alias_readv(fid, &iov, &desc, 1, src, addr, key, context);
}

static ssize_t unm_alias_writemsg(struct fid_ep *fid,
				  const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->rma->writemsg(base, msg, flags);
}

static ssize_t unm_alias_put(struct fid_ep *fid, const struct iovec *iov,
			     size_t count, fi_addr_t dest,
			     const struct fi_rma_iov *remote, uint64_t data,
			     uint64_t flags, void *context)
{
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = count, .addr = dest,
		.rma_iov = remote, .rma_iov_count = 1, .context = context,
		.data = data,
	};

	return unm_alias_writemsg(fid, &msg, unm_alias_tx(fid) | flags);
}

static ssize_t unm_alias_writev(struct fid_ep *fid, const struct iovec *iov,
				void **desc, size_t count, fi_addr_t dest,
				uint64_t addr, uint64_t key, void *context)
{
	struct fi_rma_iov remote = { addr, unm_iov_len(iov, count), key };

	(void)desc;
	return unm_alias_put(fid, iov, count, dest, &remote, 0, 0, context);
}

static ssize_t unm_alias_write(struct fid_ep *fid, const void *buf, size_t len,
			       void *desc, fi_addr_t dest, uint64_t addr,
			       uint64_t key, void *context)
{
	struct iovec iov = { (void *)buf, len };

	return unm_alias_writev(fid, &iov, &desc, 1, dest, addr, key, context);
}

static ssize_t unm_alias_inject_write(struct fid_ep *fid, const void *buf,
				      size_t len, fi_addr_t dest,
				      uint64_t addr, uint64_t key)
{
	struct fid_ep *base = unm_base(fid);

	return base->rma->inject(base, buf, len, dest, addr, key);
}

static ssize_t unm_alias_writedata(struct fid_ep *fid, const void *buf,
				   size_t len, void *desc, uint64_t data,
				   fi_addr_t dest, uint64_t addr, uint64_t key,
				   void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_rma_iov remote = { addr, len, key };

	(void)desc;
	return unm_alias_put(fid, &iov, 1, dest, &remote, data,
			     FI_REMOTE_CQ_DATA, context);
}

static ssize_t unm_alias_inject_writedata(struct fid_ep *fid, const void *buf,
					  size_t len, uint64_t data,
					  fi_addr_t dest, uint64_t addr,
					  uint64_t key)
{
	struct fid_ep *base = unm_base(fid);

	return base->rma->injectdata(base, buf, len, data, dest, addr, key);
}

static struct fi_ops_rma unm_ops_alias_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = unm_alias_read,
	.readv = unm_alias_readv,
	.readmsg = unm_alias_readmsg,
	.write = unm_alias_write,
	.writev = unm_alias_writev,
	.writemsg = unm_alias_writemsg,
	.inject = unm_alias_inject_write,
	.writedata = unm_alias_writedata,
	.injectdata = unm_alias_inject_writedata,
};

/* ---- Atomics --------------------------------------------------------- */

static size_t unm_ioc_count(const struct fi_ioc *iov, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += iov[i].count;
	return count;
}

/* Declare the message of an atomic call, with one remote range for all
 * elements. */
#define UNM_ALIAS_ATOMIC(msg, remote, iov, n)				\
	struct fi_rma_ioc remote = {					\
		addr, unm_ioc_count(iov, n), key			\
	};								\
	struct fi_msg_atomic msg = {					\
		.msg_iov = iov, .iov_count = n, .addr = dest,		\
		.rma_iov = &remote, .rma_iov_count = 1,			\
		.datatype = type, .op = op, .context = context,		\
	}

static ssize_t unm_alias_amsg(struct fid_ep *fid,
			      const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->atomic->writemsg(base, msg, flags);
}

static ssize_t unm_alias_av(struct fid_ep *fid, const struct fi_ioc *iov,
			    void **desc, size_t n, fi_addr_t dest,
			    uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	UNM_ALIAS_ATOMIC(msg, remote, iov, n);

	(void)desc;
	return unm_alias_amsg(fid, &msg, unm_alias_tx(fid));
}

static ssize_t unm_alias_a(struct fid_ep *fid, const void *buf, size_t count,
			   void *desc, fi_addr_t dest, uint64_t addr,
			   uint64_t key, enum fi_datatype type, enum fi_op op,
			   void *context)
{
	struct fi_ioc iov = { (void *)buf, count };

	return unm_alias_av(fid, &iov, &desc, 1, dest, addr, key, type, op,
			    context);
}

static ssize_t unm_alias_ainject(struct fid_ep *fid, const void *buf,
				 size_t count, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype type,
				 enum fi_op op)
{
	struct fid_ep *base = unm_base(fid);

	return base->atomic->inject(base, buf, count, dest, addr, key, type,
				    op);
}

static ssize_t unm_alias_fmsg(struct fid_ep *fid,
			      const struct fi_msg_atomic *msg,
			      struct fi_ioc *result, void **desc, size_t n,
			      uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->atomic->readwritemsg(base, msg, result, desc, n, flags);
}

static ssize_t unm_alias_fv(struct fid_ep *fid, const struct fi_ioc *iov,
			    void **desc, size_t n, struct fi_ioc *result,
			    void **result_desc, size_t nresult, fi_addr_t dest,
			    uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	UNM_ALIAS_ATOMIC(msg, remote, iov, n);

	(void)desc;
	/* FI_ATOMIC_READ has no operand */
	if (n == 0)
		remote.count = unm_ioc_count(result, nresult);
	return unm_alias_fmsg(fid, &msg, result, result_desc, nresult,
			      unm_alias_tx(fid));
}

static ssize_t unm_alias_f(struct fid_ep *fid, const void *buf, size_t count,
			   void *desc, void *result, void *result_desc,
			   fi_addr_t dest, uint64_t addr, uint64_t key,
			   enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count };
	struct fi_ioc to = { result, count };

	return unm_alias_fv(fid, &iov, &desc, 1, &to, &result_desc, 1, dest,
			    addr, key, type, op, context);
}

static ssize_t unm_alias_cmsg(struct fid_ep *fid,
			      const struct fi_msg_atomic *msg,
			      const struct fi_ioc *compare, void **cdesc,
			      size_t ncompare, struct fi_ioc *result,
			      void **rdesc, size_t nresult, uint64_t flags)
{
	struct fid_ep *base = unm_base(fid);

	return base->atomic->compwritemsg(base, msg, compare, cdesc, ncompare,
					  result, rdesc, nresult, flags);
}

static ssize_t unm_alias_cv(struct fid_ep *fid, const struct fi_ioc *iov,
			    void **desc, size_t n,
			    const struct fi_ioc *compare, void **cdesc,
			    size_t ncompare, struct fi_ioc *result,
			    void **rdesc, size_t nresult, fi_addr_t dest,
			    uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	UNM_ALIAS_ATOMIC(msg, remote, iov, n);

	(void)desc;
	return unm_alias_cmsg(fid, &msg, compare, cdesc, ncompare, result,
			      rdesc, nresult, unm_alias_tx(fid));
}

static ssize_t unm_alias_c(struct fid_ep *fid, const void *buf, size_t count,
			   void *desc, const void *compare, void *cdesc,
			   void *result, void *rdesc, fi_addr_t dest,
			   uint64_t addr, uint64_t key, enum fi_datatype type,
			   enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count };
	struct fi_ioc with = { (void *)compare, count };
	struct fi_ioc to = { result, count };

	return unm_alias_cv(fid, &iov, &desc, 1, &with, &cdesc, 1, &to,
			    &rdesc, 1, dest, addr, key, type, op, context);
}

static int unm_alias_avalid(struct fid_ep *fid, enum fi_datatype type,
			    enum fi_op op, size_t *count)
{
	return unm_base(fid)->atomic->writevalid(unm_base(fid), type, op,
						 count);
}

static int unm_alias_fvalid(struct fid_ep *fid, enum fi_datatype type,
			    enum fi_op op, size_t *count)
{
	return unm_base(fid)->atomic->readwritevalid(unm_base(fid), type, op,
						     count);
}

static int unm_alias_cvalid(struct fid_ep *fid, enum fi_datatype type,
			    enum fi_op op, size_t *count)
{
	return unm_base(fid)->atomic->compwritevalid(unm_base(fid), type, op,
						     count);
}

static struct fi_ops_atomic unm_ops_alias_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = unm_alias_a,
	.writev = unm_alias_av,
	.writemsg = unm_alias_amsg,
	.inject = unm_alias_ainject,
	.readwrite = unm_alias_f,
	.readwritev = unm_alias_fv,
	.readwritemsg = unm_alias_fmsg,
	.compwrite = unm_alias_c,
	.compwritev = unm_alias_cv,
	.compwritemsg = unm_alias_cmsg,
	.writevalid = unm_alias_avalid,
	.readwritevalid = unm_alias_fvalid,
	.compwritevalid = unm_alias_cvalid,
};

/* ---- The object ------------------------------------------------------ */

static ssize_t unm_alias_cancel(fid_t fid, void *context)
{
	struct unm_alias *a = unm_container(fid, struct unm_alias, fid.fid);

	return a->ep->fid.ops->cancel(&a->ep->fid.fid, context);
}

static int unm_alias_getopt(fid_t fid, int level, int name, void *val,
			    size_t *len)
{
	struct unm_alias *a = unm_container(fid, struct unm_alias, fid.fid);

	return a->ep->fid.ops->getopt(&a->ep->fid.fid, level, name, val, len);
}

static int unm_alias_setopt(fid_t fid, int level, int name, const void *val,
			    size_t len)
{
	struct unm_alias *a = unm_container(fid, struct unm_alias, fid.fid);

	return a->ep->fid.ops->setopt(&a->ep->fid.fid, level, name, val, len);
}

static ssize_t unm_alias_rx_left(struct fid_ep *fid)
{
	return unm_base(fid)->ops->rx_size_left(unm_base(fid));
}

static ssize_t unm_alias_tx_left(struct fid_ep *fid)
{
	return unm_base(fid)->ops->tx_size_left(unm_base(fid));
}

static struct fi_ops_ep unm_ops_alias_ep = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = unm_alias_cancel,
	.getopt = unm_alias_getopt,
	.setopt = unm_alias_setopt,
	.tx_ctx = unm_no_tx_ctx,
	.rx_ctx = unm_no_rx_ctx,
	.rx_size_left = unm_alias_rx_left,
	.tx_size_left = unm_alias_tx_left,
};

static int unm_alias_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct unm_alias *a = unm_container(fid, struct unm_alias, fid.fid);

	return a->ep->fid.cm->getname(&a->ep->fid.fid, addr, addrlen);
}

static struct fi_ops_cm unm_ops_alias_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = unm_no_setname,
	.getname = unm_alias_getname,
	.getpeer = unm_no_getpeer,
	.connect = unm_no_connect,
	.listen = unm_no_listen,
	.accept = unm_no_accept,
	.reject = unm_no_reject,
	.shutdown = unm_no_shutdown,
	.join = unm_no_join,
};

static int unm_alias_close(struct fid *fid)
{
	struct unm_alias *a = unm_container(fid, struct unm_alias, fid.fid);

	unm_ref_put(&a->ep->aliases);
	free(a);
	return 0;
}

/* FI_SETOPSFLAG, FI_GETOPSFLAG: the default flags. */
static int unm_alias_control(struct fid *fid, int command, void *arg)
{
	struct unm_alias *a = unm_container(fid, struct unm_alias, fid.fid);
	uint64_t *flags = arg, way;

	if (command != FI_SETOPSFLAG && command != FI_GETOPSFLAG)
		return -FI_ENOSYS;
	if (flags == NULL)
		return -FI_EINVAL;
	if (command == FI_SETOPSFLAG)
		return unm_alias_set(a, *flags);
	way = *flags & (FI_TRANSMIT | FI_RECV);
	if (way == FI_TRANSMIT && a->tx_flags != 0)
		*flags = unm_alias_tx(&a->fid);
	else if (way == FI_RECV && a->rx_flags != 0)
		*flags = unm_alias_rx(&a->fid);
	else
		return a->ep->fid.fid.ops->control(&a->ep->fid.fid, command,
						   flags);
	return 0;
}

static struct fi_ops unm_ops_alias_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_alias_close,
	.bind = unm_no_bind,
	.control = unm_alias_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

struct unm_ep *unm_alias_ep(struct fid_ep *fid)
{
	return fid->fid.ops == &unm_ops_alias_fid ? unm_alias(fid)->ep :
		unm_ep(fid);
}

int unm_alias_open(struct unm_ep *ep, void *arg)
{
	struct fi_alias *want = arg;
	struct unm_alias *a;
	int ret;

	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -FI_ENOMEM;
	a->ep = ep;
	ret = unm_alias_set(a, want->flags);
	if (ret != 0) {
		free(a);
		return ret;
	}
	unm_ref_get(&ep->aliases);
	unm_fid_init(&a->fid.fid, FI_CLASS_EP, &unm_ops_alias_fid,
		     ep->fid.fid.context);
	a->fid.ops = &unm_ops_alias_ep;
	a->fid.cm = &unm_ops_alias_cm;
	a->fid.msg = &unm_ops_alias_msg;
	a->fid.tagged = &unm_ops_alias_tagged;
	a->fid.rma = &unm_ops_alias_rma;
	a->fid.atomic = &unm_ops_alias_atomic;
	*want->fid = &a->fid.fid;
	return 0;
}
