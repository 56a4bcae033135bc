/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cntr.h - completion counters. */
#ifndef UNM_CNTR_H
#define UNM_CNTR_H

#include <stdatomic.h>

#include <rdma/fi_eq.h>

#include "unm_domain.h"
#include "unm_idle.h"
#include "util/unm_list.h"

struct unm_cntr {
	struct fid_cntr fid;
	struct unm_domain *domain;
	struct unm_ref ref;
	_Atomic uint64_t value;
	_Atomic uint64_t errors;
	struct unm_list eps;		/* endpoints to progress */
	struct unm_idle idle;
};

static inline void unm_cntr_add(struct unm_cntr *cntr, uint64_t n)
{
	atomic_fetch_add_explicit(&cntr->value, n, memory_order_relaxed);
}

static inline void unm_cntr_add_err(struct unm_cntr *cntr, uint64_t n)
{
	atomic_fetch_add_explicit(&cntr->errors, n, memory_order_relaxed);
}

#endif /* UNM_CNTR_H */
