/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_domain.h - fabric and domain. */
#ifndef UNM_DOMAIN_H
#define UNM_DOMAIN_H

#include <pthread.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>

#include "unm_obj.h"

struct hal;

struct unm_fabric {
	struct fid_fabric fid;
	struct unm_ref ref;
};

struct unm_domain {
	struct fid_domain fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;
	struct hal *hal;
	struct fi_info *info;		/* as the domain was asked for */
	void *regions;			/* those open, by key: unm_mr.c */
	/*
	 * One lock for the domain's endpoints, queues and vectors, taken at the
	 * API and only where the application asked for more than
	 * FI_THREAD_DOMAIN.
	 */
	bool locked;
	_Atomic int waiters;		/* threads that want the lock */
	pthread_mutex_t lock;
};

void unm_lock_wait(struct unm_domain *domain);
void unm_lock_pass(struct unm_domain *domain);

static inline void unm_lock(struct unm_domain *domain)
{
	if (domain->locked && pthread_mutex_trylock(&domain->lock) != 0)
		unm_lock_wait(domain);
}

static inline void unm_unlock(struct unm_domain *domain)
{
	if (domain->locked)
		pthread_mutex_unlock(&domain->lock);
}

static inline struct unm_domain *unm_domain(struct fid_domain *fid)
{
	return (struct unm_domain *)fid;
}

int unm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);
int unm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);
int unm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **eq, void *context);
int unm_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		struct fid_av **av, void *context);
int unm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **cq, void *context);
int unm_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr, void *context);
int unm_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);
int unm_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif /* UNM_DOMAIN_H */
