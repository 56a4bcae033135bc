/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_mr.c - memory regions for local use. Sends and receives need none here,
 * but programs written for providers that do register their buffers anyway, any
 * memory, with keys of their own choice. Access by peers is not offered yet (no
 * FI_RMA in fi_info) and refused.
 */
#include <search.h>
#include <stdlib.h>

#include "unm_domain.h"
#include "unm_log.h"
#include "unm_ops.h"
#include "util/unm_list.h"

#define UNM_MR_ACCESS	(FI_SEND | FI_RECV)

struct unm_mr {
	struct fid_mr fid;
	struct unm_domain *domain;
};

static int unm_mr_by_key(const void *left, const void *right)
{
	const struct unm_mr *a = left, *b = right;

	return (a->fid.key > b->fid.key) - (a->fid.key < b->fid.key);
}

/* 0, -FI_ENOKEY (another open region has its key), -FI_ENOMEM. */
static int unm_mr_enter(struct unm_mr *mr)
{
	struct unm_mr **found;
	int ret = 0;

	unm_lock(mr->domain);
	found = tsearch(mr, &mr->domain->regions, unm_mr_by_key);
	if (found == NULL)
		ret = -FI_ENOMEM;
	else if (*found != mr)
		ret = -FI_ENOKEY;
	unm_unlock(mr->domain);
	return ret;
}

static int unm_mr_close(struct fid *fid)
{
	struct unm_mr *mr = unm_container(fid, struct unm_mr, fid.fid);

	unm_lock(mr->domain);
	tdelete(mr, &mr->domain->regions, unm_mr_by_key);
	unm_unlock(mr->domain);
	unm_ref_put(&mr->domain->ref);
	free(mr);
	return 0;
}

static struct fi_ops unm_ops_mr_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_mr_close,
	.bind = unm_no_bind,
	.control = unm_no_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

static int unm_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			  uint64_t flags, struct fid_mr **out)
{
	struct unm_mr *mr;
	int ret;

	if (fid->fclass != FI_CLASS_DOMAIN || attr->iov_count == 0)
		return -FI_EINVAL;
	if (flags != 0)
		return -FI_EBADFLAGS;
	if (attr->access & ~UNM_MR_ACCESS) {
		UNM_INFO(MR, "access 0x%llx asked, offered: FI_SEND, FI_RECV\n",
			 (unsigned long long)attr->access);
		return -FI_ENOSYS;
	}
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -FI_ENOMEM;
	mr->domain = unm_container(fid, struct unm_domain, fid.fid);
	mr->fid.key = attr->requested_key;
	ret = unm_mr_enter(mr);
	if (ret != 0) {
		free(mr);
		return ret;
	}
	unm_ref_get(&mr->domain->ref);
	unm_fid_init(&mr->fid.fid, FI_CLASS_MR, &unm_ops_mr_fid,
		     attr->context);
	*out = &mr->fid;
	return 0;
}

static int unm_mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		       uint64_t access, uint64_t offset,
		       uint64_t requested_key, uint64_t flags,
		       struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = count, .access = access,
		.offset = offset, .requested_key = requested_key,
		.context = context,
	};

	return unm_mr_regattr(fid, &attr, flags, mr);
}

static int unm_mr_reg(struct fid *fid, const void *buf, size_t len,
		      uint64_t access, uint64_t offset, uint64_t requested_key,
		      uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return unm_mr_regv(fid, &iov, 1, access, offset, requested_key, flags,
			   mr, context);
}

struct fi_ops_mr unm_ops_mr = {
	.size = sizeof(struct fi_ops_mr),
	.reg = unm_mr_reg,
	.regv = unm_mr_regv,
	.regattr = unm_mr_regattr,
};
