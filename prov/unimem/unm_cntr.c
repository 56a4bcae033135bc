/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "unm_env.h"
#include "unm_ep.h"
#include "unm_log.h"
#include "unm_ops.h"

static struct unm_cntr *unm_cntr(struct fid_cntr *fid)
{
	return (struct unm_cntr *)fid;
}

static void unm_cntr_progress(struct unm_cntr *cntr)
{
	bool yield;

	unm_lock(cntr->domain);
	yield = unm_poll(&cntr->eps, &cntr->idle);
	unm_unlock(cntr->domain);
	if (yield)
		unm_yield(&cntr->idle);
}

static uint64_t unm_cntr_read(struct fid_cntr *fid)
{
	struct unm_cntr *cntr = unm_cntr(fid);

	unm_cntr_progress(cntr);
	return atomic_load_explicit(&cntr->value, memory_order_relaxed);
}

static uint64_t unm_cntr_readerr(struct fid_cntr *fid)
{
	struct unm_cntr *cntr = unm_cntr(fid);

	unm_cntr_progress(cntr);
	return atomic_load_explicit(&cntr->errors, memory_order_relaxed);
}

static int unm_cntr_add_op(struct fid_cntr *fid, uint64_t value)
{
	unm_cntr_add(unm_cntr(fid), value);
	return 0;
}

static int unm_cntr_set(struct fid_cntr *fid, uint64_t value)
{
	atomic_store_explicit(&unm_cntr(fid)->value, value,
			      memory_order_relaxed);
	return 0;
}

static int unm_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	unm_cntr_add_err(unm_cntr(fid), value);
	return 0;
}

static int unm_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	atomic_store_explicit(&unm_cntr(fid)->errors, value,
			      memory_order_relaxed);
	return 0;
}

/* Polls and yields: what is awaited moves only by our own progress. */
static int unm_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct unm_cntr *cntr = unm_cntr(fid);
	uint64_t end = unm_now_us() + (uint64_t)timeout * 1000;
	uint64_t errors = atomic_load_explicit(&cntr->errors,
					       memory_order_relaxed);

	for (;;) {
		if (unm_cntr_read(fid) >= threshold)
			return 0;
		if (atomic_load_explicit(&cntr->errors,
					 memory_order_relaxed) != errors)
			return -FI_EAVAIL;
		if (timeout >= 0 && unm_now_us() >= end)
			return -FI_ETIMEDOUT;
	}
}

static struct fi_ops_cntr unm_ops_cntr = {
	.size = sizeof(struct fi_ops_cntr),
	.read = unm_cntr_read,
	.readerr = unm_cntr_readerr,
	.add = unm_cntr_add_op,
	.set = unm_cntr_set,
	.wait = unm_cntr_wait,
	.adderr = unm_cntr_adderr,
	.seterr = unm_cntr_seterr,
};

static int unm_cntr_close(struct fid *fid)
{
	struct unm_cntr *cntr = unm_container(fid, struct unm_cntr, fid.fid);

	if (unm_ref_busy(&cntr->ref))
		return -FI_EBUSY;
	unm_ref_put(&cntr->domain->ref);
	free(cntr);
	return 0;
}

static struct fi_ops unm_ops_cntr_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_cntr_close,
	.bind = unm_no_bind,
	.control = unm_no_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **fid, void *context)
{
	struct unm_domain *domain = unm_domain(domain_fid);
	struct unm_cntr *cntr;

	if (attr != NULL) {
		if (attr->events != FI_CNTR_EVENTS_COMP)
			return -FI_ENOSYS;
		if (attr->wait_obj != FI_WAIT_NONE &&
		    attr->wait_obj != FI_WAIT_UNSPEC) {
			UNM_INFO(CNTR, "wait object %d asked, offered: none, "
				 "unspec\n", attr->wait_obj);
			return -FI_ENOSYS;
		}
		if (attr->flags != 0)
			return -FI_EINVAL;
	}
	cntr = calloc(1, sizeof(*cntr));
	if (cntr == NULL)
		return -FI_ENOMEM;
	cntr->domain = domain;
	unm_idle_set(&cntr->idle.spin, (uint32_t)g_unm_env.spin);
	unm_list_init(&cntr->eps);
	unm_ref_get(&domain->ref);
	unm_fid_init(&cntr->fid.fid, FI_CLASS_CNTR, &unm_ops_cntr_fid, context);
	cntr->fid.ops = &unm_ops_cntr;
	*fid = &cntr->fid;
	return 0;
}
