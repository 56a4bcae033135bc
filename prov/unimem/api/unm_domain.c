/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_domain.c - fi_fabric(3) and fi_domain(3): opening and closing fabrics and
 * domains, and fi_trywait(3). The state and the domain's lock are in
 * core/unm_domain_state.h.
 */
#include <stdlib.h>

#include "api/unm_atomic.h"
#include "api/unm_av.h"
#include "api/unm_cntr.h"
#include "api/unm_cq.h"
#include "api/unm_deferred.h"
#include "api/unm_domain.h"
#include "api/unm_ep.h"
#include "api/unm_eq.h"
#include "api/unm_mr.h"
#include "api/unm_poll_set.h"
#include "core/unm_cntr_value.h"
#include "core/unm_cq_ring.h"
#include "core/unm_obj.h"
#include "fi_ext_unimem.h"
#include "hal/hal.h"
#include "progress/unm_auto.h"
#include "rma/unm_mem.h"
#include "unm_env.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "unm_offer.h"
#include "util/unm_list.h"

/* ---- Domain ---------------------------------------------------------- */

static struct fi_ops_domain unm_ops_domain = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = unm_av_open,
	.cq_open = unm_cq_open,
	.endpoint = unm_ep_open,
	.scalable_ep = unm_no_scalable_ep,
	.cntr_open = unm_cntr_open,
	.poll_open = unm_pollset_open,
	.stx_ctx = unm_no_stx_ctx,
	.srx_ctx = unm_no_srx_ctx,
	.query_atomic = unm_query_atomic,
	.query_collective = unm_no_query_collective,
};

static int unm_domain_close(struct fid *fid)
{
	struct unm_domain *domain = unm_container(fid, struct unm_domain,
						  fid.fid);

	if (unm_ref_busy(&domain->ref))
		return -FI_EBUSY;
	unm_auto_stop(domain);
	unm_mem_close(domain);
	hal_put(domain->hal);
	fi_freeinfo(domain->info);
	pthread_mutex_destroy(&domain->lock);
	pthread_mutex_destroy(&domain->cond_lock);
	unm_ref_put(&domain->fabric->ref);
	free(domain);
	return 0;
}

static int unm_domain_control(struct fid *fid, int command, void *arg)
{
	struct unm_domain *domain = unm_container(fid, struct unm_domain,
						  fid.fid);

	switch (command) {
	case FI_QUEUE_WORK:
	case FI_CANCEL_WORK:
	case FI_FLUSH_WORK:
		return unm_trigger_control(domain, command, arg);
	default:
		return unm_mr_domain_control(fid, command, arg);
	}
}

static int unm_domain_ops_open(struct fid *fid, const char *name,
			       uint64_t flags, void **ops, void *context)
{
	struct unm_domain *domain = unm_container(fid, struct unm_domain,
						  fid.fid);

	(void)context;
	if (name == NULL || strcmp(name, FI_UNIMEM_MEM) != 0)
		return -FI_ENOSYS;
	return unm_mem_open(domain, flags, ops);
}

static struct fi_ops unm_ops_domain_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_domain_close,
	.bind = unm_no_bind,
	.control = unm_domain_control,
	.ops_open = unm_domain_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

static void unm_hal_log(int level, const char *line)
{
	if (level != 0)
		UNM_INFO(DOMAIN, "%s\n", line);
	else if (!unm_mem_hears(line))
		UNM_WARN(DOMAIN, "%s", line);
}

static bool unm_domain_auto(const struct fi_domain_attr *attr)
{
	return attr->data_progress == FI_PROGRESS_AUTO ||
		attr->control_progress == FI_PROGRESS_AUTO;
}

int unm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **fid, void *context)
{
	struct unm_domain *domain;
	int ret;

	if (info == NULL || info->domain_attr == NULL)
		return -FI_EINVAL;
	ret = unm_env_load();
	if (ret != 0)
		return ret;
	domain = calloc(1, sizeof(*domain));
	if (domain == NULL)
		return -FI_ENOMEM;
	domain->info = fi_dupinfo(info);
	ret = -FI_ENOMEM;
	if (domain->info == NULL)
		goto free_domain;
	hal_log_set(unm_hal_log);
	ret = hal_get(NULL, &domain->hal);
	if (ret != 0)
		goto free_info;
	domain->fabric = (struct unm_fabric *)fabric;
	/* FI_THREAD_UNSPEC: the application may use any model */
	domain->locked = info->domain_attr->threading != FI_THREAD_DOMAIN;
	pthread_mutex_init(&domain->lock, NULL);
	pthread_mutex_init(&domain->cond_lock, NULL);
	unm_list_init(&domain->eps);
	unm_list_init(&domain->cntrs);
	unm_list_init(&domain->cqs);
	unm_list_init(&domain->conds);
	unm_list_init(&domain->works);
	unm_list_init(&domain->ready);
	domain->next = &domain->ready;
	if (unm_domain_auto(info->domain_attr)) {
		ret = unm_auto_start(domain);
		if (ret != 0)
			goto put_hal;
	}
	unm_ref_get(&domain->fabric->ref);
	unm_fid_init(&domain->fid.fid, FI_CLASS_DOMAIN, &unm_ops_domain_fid,
		     context);
	domain->fid.ops = &unm_ops_domain;
	domain->fid.mr = &unm_ops_mr;
	unm_mem_adopt(domain);
	*fid = &domain->fid;
	return 0;
put_hal:
	pthread_mutex_destroy(&domain->lock);
	pthread_mutex_destroy(&domain->cond_lock);
	hal_put(domain->hal);
free_info:
	fi_freeinfo(domain->info);
free_domain:
	free(domain);
	return ret;
}

/* ---- Fabric ---------------------------------------------------------- */

static int unm_domain2_open(struct fid_fabric *fabric, struct fi_info *info,
			    struct fid_domain **domain, uint64_t flags,
			    void *context)
{
	if (flags != 0)
		return -FI_EBADFLAGS;
	return unm_domain_open(fabric, info, domain, context);
}

int unm_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric;
	for (int i = 0; i < count; i++) {
		int ret;

		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			ret = unm_cq_trywait(unm_container(fids[i],
						struct unm_cq, fid.fid));
			break;
		case FI_CLASS_CNTR:
			ret = unm_cntr_trywait(unm_container(fids[i],
						struct unm_cntr, fid.fid));
			break;
		case FI_CLASS_EQ:
			ret = unm_eq_trywait(fids[i]);
			break;
		case FI_CLASS_WAIT:
			ret = unm_wait_set_try(fids[i]);
			break;
		default:
			ret = -FI_EINVAL;
			break;
		}
		if (ret != 0)
			return ret;
	}
	return 0;
}

static struct fi_ops_fabric unm_ops_fabric = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = unm_domain_open,
	.passive_ep = unm_no_passive_ep,
	.eq_open = unm_eq_open,
	.wait_open = unm_wait_set_open,
	.trywait = unm_trywait,
	.domain2 = unm_domain2_open,
};

static int unm_fabric_close(struct fid *fid)
{
	struct unm_fabric *fabric = unm_container(fid, struct unm_fabric,
						  fid.fid);

	if (unm_ref_busy(&fabric->ref))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops unm_ops_fabric_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_fabric_close,
	.bind = unm_no_bind,
	.control = unm_no_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid,
		    void *context)
{
	struct unm_fabric *fabric;

	if (attr->name != NULL && strcmp(attr->name, UNM_NAME) != 0) {
		UNM_INFO(FABRIC, "fabric %s asked, offered: " UNM_NAME "\n",
			 attr->name);
		return -FI_ENODATA;
	}
	fabric = calloc(1, sizeof(*fabric));
	if (fabric == NULL)
		return -FI_ENOMEM;
	unm_fid_init(&fabric->fid.fid, FI_CLASS_FABRIC, &unm_ops_fabric_fid,
		     context);
	fabric->fid.ops = &unm_ops_fabric;
	fabric->fid.api_version = attr->api_version;
	*fid = &fabric->fid;
	return 0;
}
