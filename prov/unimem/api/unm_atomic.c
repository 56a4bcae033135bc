/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_atomic.c - fi_atomic(3): checks the arguments of a call and starts the
 * operation (rma/unm_onesided.c). gsas/op/gsas_op.h defines what each atomic
 * operation does to its operands.
 */
#include <rdma/fi_atomic.h>

#include "api/unm_atomic.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "op/gsas_op.h"
#include "rma/unm_onesided.h"
#include "rma/unm_request.h"
#include "trigger/unm_trigger.h"
#include "trigger/unm_work.h"
#include "unm_offer.h"

#define UNM_ATOMIC_MAX	(1u << 24)	/* bytes in one call */

/* One vector of a call: struct fi_ioc, counted in elements. */
struct unm_iocs {
	const struct fi_ioc *ioc;
	size_t count;
};

struct unm_atomic {
	enum unm_kind kind;
	struct unm_iocs src, cmp, dst;
	const struct fi_rma_ioc *remote;
	size_t nremote;
	fi_addr_t peer;
	enum fi_datatype type;
	enum fi_op op;
	uint64_t flags;
	void *context;
	bool inject;
};

static enum gsas_form unm_atomic_form(enum unm_kind kind)
{
	return kind == UNM_ATOMIC ? GSAS_FORM_UPDATE :
		kind == UNM_FETCH ? GSAS_FORM_FETCH : GSAS_FORM_COMPARE;
}

/* Convert a vector from elements to bytes. 0, or a negative fi_errno: the
 * vector is not of len bytes. */
static int unm_atomic_vec(struct unm_vec *vec, const struct unm_iocs *from,
			  struct iovec *iov, size_t unit, uint64_t len)
{
	uint64_t sum = 0;

	if (from->count > UNM_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < from->count; i++) {
		if (from->ioc[i].count > UNM_ATOMIC_MAX)
			return -FI_EMSGSIZE;
		iov[i].iov_base = from->ioc[i].addr;
		iov[i].iov_len = from->ioc[i].count * unit;
		sum += iov[i].iov_len;
	}
	vec->iov = iov;
	vec->count = from->count;
	return sum == len ? 0 : -FI_EINVAL;
}

static int unm_atomic_remote(struct unm_access *a, const struct unm_atomic *c,
			     struct fi_rma_iov *remote)
{
	if (c->nremote == 0 || c->nremote > UNM_REMOTES_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < c->nremote; i++) {
		if (c->remote[i].count > UNM_ATOMIC_MAX)
			return -FI_EMSGSIZE;
		if (c->remote[i].count == 0)
			return -FI_EINVAL;
		remote[i].addr = c->remote[i].addr;
		remote[i].len = c->remote[i].count * a->unit;
		remote[i].key = c->remote[i].key;
		a->len += remote[i].len;
	}
	a->remote = remote;
	a->nremote = c->nremote;
	return a->len > UNM_ATOMIC_MAX ? -FI_EMSGSIZE : 0;
}

static ssize_t unm_atomic(struct fid_ep *fid, const struct unm_atomic *c)
{
	struct iovec src[UNM_IOV_MAX], cmp[UNM_IOV_MAX], dst[UNM_IOV_MAX];
	struct fi_rma_iov remote[UNM_REMOTES_MAX];
	struct unm_access a = {
		.kind = c->kind, .op = c->op, .type = c->type, .unit = 0,
		.inject = c->inject, .has_data = false,
		.src = { NULL, 0 }, .cmp = { NULL, 0 }, .dst = { NULL, 0 },
		.remote = NULL, .nremote = 0, .len = 0, .data = 0,
		.flags = c->flags, .context = c->context,
	};
	int ret;

	if ((unsigned)c->op >= GSAS_OPS || (unsigned)c->type >= GSAS_TYPES ||
	    !gsas_op_valid(a.op, a.type, unm_atomic_form(c->kind)))
		return -FI_EOPNOTSUPP;
	a.unit = gsas_type_size(a.type);
	ret = unm_atomic_remote(&a, c, remote);
	if (ret == 0 && c->op != FI_ATOMIC_READ)
		ret = unm_atomic_vec(&a.src, &c->src, src, a.unit, a.len);
	if (ret == 0 && c->kind == UNM_COMPARE)
		ret = unm_atomic_vec(&a.cmp, &c->cmp, cmp, a.unit, a.len);
	if (ret == 0 && c->kind != UNM_ATOMIC)
		ret = unm_atomic_vec(&a.dst, &c->dst, dst, a.unit, a.len);
	return ret != 0 ? ret : unm_onesided(unm_ep(fid), c->peer, &a);
}

/* Handle a call with further flags: a triggered operation, or the start of
 * deferred work. Returns what unm_trigger() returns. */
static ssize_t unm_atomic_trigger(struct fid_ep *fid,
				  const struct fi_msg_atomic *msg,
				  const struct unm_atomic *c, uint64_t flags,
				  uint64_t odd)
{
	struct fi_msg_fetch fetch = {
		.msg_iov = (struct fi_ioc *)c->dst.ioc,
		.iov_count = c->dst.count,
	};
	struct fi_msg_compare compare = {
		.msg_iov = c->cmp.ioc, .iov_count = c->cmp.count,
	};
	struct unm_call call = {
		.type = c->kind == UNM_ATOMIC ? FI_OP_ATOMIC :
			c->kind == UNM_FETCH ? FI_OP_FETCH_ATOMIC :
			FI_OP_COMPARE_ATOMIC,
		.msg = msg, .flags = flags, .context = msg->context,
	};

	if (c->kind != UNM_ATOMIC)
		call.fetch = &fetch;
	if (c->kind == UNM_COMPARE)
		call.compare = &compare;
	return unm_trigger(unm_ep(fid), &call, odd);
}

/* A call with flags, to which the flags of the endpoint's binding are added. */
static ssize_t unm_atomic_msg(struct fid_ep *fid,
			      const struct fi_msg_atomic *msg,
			      struct unm_atomic *c, uint64_t flags)
{
	const uint64_t allowed = UNM_TX_OP_FLAGS | FI_MORE;

	c->flags = flags | unm_ep(fid)->tx_msg_flags;
	c->inject = flags & FI_INJECT;
	if (__builtin_expect((flags & ~allowed) != 0, 0)) {
		ssize_t ret = unm_atomic_trigger(fid, msg, c, flags,
						 flags & ~allowed);

		if (ret != 1)		/* 1: the start of deferred work */
			return ret;
		c->flags = flags;	/* deferred work has no defaults */
	}
	return unm_atomic(fid, c);
}

static struct unm_atomic unm_atomic_of(enum unm_kind kind,
				       const struct fi_msg_atomic *msg)
{
	return (struct unm_atomic){
		.kind = kind, .src = { msg->msg_iov, msg->iov_count },
		.cmp = { NULL, 0 }, .dst = { NULL, 0 },
		.remote = msg->rma_iov, .nremote = msg->rma_iov_count,
		.peer = msg->addr, .type = msg->datatype, .op = msg->op,
		.flags = 0, .context = msg->context, .inject = false,
	};
}

/* The elements in a vector. */
static size_t unm_ioc_count(const struct fi_ioc *ioc, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n && i < UNM_IOV_MAX; i++)
		count += ioc[i].count;
	return count;
}

/* ---- fi_atomic ------------------------------------------------------- */

static ssize_t unm_atomic_writemsg(struct fid_ep *ep,
				   const struct fi_msg_atomic *msg,
				   uint64_t flags)
{
	struct unm_atomic c = unm_atomic_of(UNM_ATOMIC, msg);

	return unm_atomic_msg(ep, msg, &c, flags);
}

static ssize_t unm_atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov,
				 void **desc, size_t count, fi_addr_t dest,
				 uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op,
				 void *context)
{
	struct fi_rma_ioc remote = { addr, unm_ioc_count(iov, count), key };
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &remote, .rma_iov_count = 1, .datatype = type,
		.op = op, .context = context, .data = 0,
	};

	return unm_atomic_writemsg(ep, &msg, unm_handle(ep)->tx_flags);
}

static ssize_t unm_atomic_write(struct fid_ep *ep, const void *buf,
				size_t count, void *desc, fi_addr_t dest,
				uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op,
				void *context)
{
	struct fi_ioc ioc = { (void *)buf, count };

	return unm_atomic_writev(ep, &ioc, &desc, 1, dest, addr, key, type, op,
				 context);
}

static ssize_t unm_atomic_inject(struct fid_ep *ep, const void *buf,
				 size_t count, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype type,
				 enum fi_op op)
{
	struct fi_ioc ioc = { (void *)buf, count };
	struct fi_rma_ioc remote = { addr, count, key };
	struct unm_atomic c = {
		.kind = UNM_ATOMIC, .src = { &ioc, 1 }, .cmp = { NULL, 0 },
		.dst = { NULL, 0 }, .remote = &remote, .nremote = 1,
		.peer = dest, .type = type, .op = op, .flags = 0,
		.context = NULL, .inject = true,
	};

	return unm_atomic(ep, &c);
}

/* ---- fi_fetch_atomic ------------------------------------------------- */

static ssize_t unm_atomic_readwritemsg(struct fid_ep *ep,
				       const struct fi_msg_atomic *msg,
				       struct fi_ioc *resultv,
				       void **result_desc, size_t nresults,
				       uint64_t flags)
{
	struct unm_atomic c = unm_atomic_of(UNM_FETCH, msg);

	(void)result_desc;
	c.dst = (struct unm_iocs){ resultv, nresults };
	return unm_atomic_msg(ep, msg, &c, flags);
}

static ssize_t unm_atomic_readwritev(struct fid_ep *ep,
				     const struct fi_ioc *iov, void **desc,
				     size_t count, struct fi_ioc *resultv,
				     void **result_desc, size_t nresults,
				     fi_addr_t dest, uint64_t addr,
				     uint64_t key, enum fi_datatype type,
				     enum fi_op op, void *context)
{
	/* FI_ATOMIC_READ has no operand */
	struct fi_rma_ioc remote = { addr, unm_ioc_count(resultv, nresults),
				     key };
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &remote, .rma_iov_count = 1, .datatype = type,
		.op = op, .context = context, .data = 0,
	};

	return unm_atomic_readwritemsg(ep, &msg, resultv, result_desc,
				       nresults, unm_handle(ep)->tx_flags);
}

static ssize_t unm_atomic_readwrite(struct fid_ep *ep, const void *buf,
				    size_t count, void *desc, void *result,
				    void *result_desc, fi_addr_t dest,
				    uint64_t addr, uint64_t key,
				    enum fi_datatype type, enum fi_op op,
				    void *context)
{
	struct fi_ioc ioc = { (void *)buf, count };
	struct fi_ioc res = { result, count };

	return unm_atomic_readwritev(ep, &ioc, &desc, 1, &res, &result_desc, 1,
				     dest, addr, key, type, op, context);
}

/* ---- fi_compare_atomic ----------------------------------------------- */

static ssize_t unm_atomic_compwritemsg(struct fid_ep *ep,
		const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
		void **compare_desc, size_t ncompares, struct fi_ioc *resultv,
		void **result_desc, size_t nresults, uint64_t flags)
{
	struct unm_atomic c = unm_atomic_of(UNM_COMPARE, msg);

	(void)compare_desc;
	(void)result_desc;
	c.cmp = (struct unm_iocs){ comparev, ncompares };
	c.dst = (struct unm_iocs){ resultv, nresults };
	return unm_atomic_msg(ep, msg, &c, flags);
}

static ssize_t unm_atomic_compwritev(struct fid_ep *ep,
		const struct fi_ioc *iov, void **desc, size_t count,
		const struct fi_ioc *comparev, void **compare_desc,
		size_t ncompares, struct fi_ioc *resultv, void **result_desc,
		size_t nresults, fi_addr_t dest, uint64_t addr, uint64_t key,
		enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = { addr, unm_ioc_count(resultv, nresults),
				     key };
	struct fi_msg_atomic msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = dest,
		.rma_iov = &remote, .rma_iov_count = 1, .datatype = type,
		.op = op, .context = context, .data = 0,
	};

	return unm_atomic_compwritemsg(ep, &msg, comparev, compare_desc,
				       ncompares, resultv, result_desc,
				       nresults, unm_handle(ep)->tx_flags);
}

static ssize_t unm_atomic_compwrite(struct fid_ep *ep, const void *buf,
				    size_t count, void *desc,
				    const void *compare, void *compare_desc,
				    void *result, void *result_desc,
				    fi_addr_t dest, uint64_t addr,
				    uint64_t key, enum fi_datatype type,
				    enum fi_op op, void *context)
{
	struct fi_ioc ioc = { (void *)buf, count };
	struct fi_ioc cmp = { (void *)compare, count };
	struct fi_ioc res = { result, count };

	return unm_atomic_compwritev(ep, &ioc, &desc, 1, &cmp, &compare_desc,
				     1, &res, &result_desc, 1, dest, addr, key,
				     type, op, context);
}

/* ---- Queries -------------------------------------------------------- */

static int unm_atomic_valid(enum fi_datatype type, enum fi_op op,
			    enum gsas_form form, size_t *count)
{
	if ((unsigned)op >= GSAS_OPS || (unsigned)type >= GSAS_TYPES ||
	    !gsas_op_valid((enum gsas_op)op, (enum gsas_type)type, form))
		return -FI_EOPNOTSUPP;
	*count = UNM_ATOMIC_MAX / gsas_type_size((enum gsas_type)type);
	return 0;
}

static int unm_atomic_writevalid(struct fid_ep *ep, enum fi_datatype type,
				 enum fi_op op, size_t *count)
{
	(void)ep;
	return unm_atomic_valid(type, op, GSAS_FORM_UPDATE, count);
}

static int unm_atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype type,
				     enum fi_op op, size_t *count)
{
	(void)ep;
	return unm_atomic_valid(type, op, GSAS_FORM_FETCH, count);
}

static int unm_atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype type,
				     enum fi_op op, size_t *count)
{
	(void)ep;
	return unm_atomic_valid(type, op, GSAS_FORM_COMPARE, count);
}

int unm_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags)
{
	enum gsas_form form = flags & FI_FETCH_ATOMIC ? GSAS_FORM_FETCH :
		flags & FI_COMPARE_ATOMIC ? GSAS_FORM_COMPARE :
		GSAS_FORM_UPDATE;
	int ret;

	(void)domain;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	ret = unm_atomic_valid(type, op, form, &attr->count);
	if (ret == 0)
		attr->size = gsas_type_size((enum gsas_type)type);
	return ret;
}

struct fi_ops_atomic unm_ops_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = unm_atomic_write,
	.writev = unm_atomic_writev,
	.writemsg = unm_atomic_writemsg,
	.inject = unm_atomic_inject,
	.readwrite = unm_atomic_readwrite,
	.readwritev = unm_atomic_readwritev,
	.readwritemsg = unm_atomic_readwritemsg,
	.compwrite = unm_atomic_compwrite,
	.compwritev = unm_atomic_compwritev,
	.compwritemsg = unm_atomic_compwritemsg,
	.writevalid = unm_atomic_writevalid,
	.readwritevalid = unm_atomic_readwritevalid,
	.compwritevalid = unm_atomic_compwritevalid,
};
