/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cntr.h - fi_cntr(3): reading, setting and waiting for counters. */
#ifndef UNM_CNTR_H
#define UNM_CNTR_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

struct unm_cntr;

/* fi_trywait() on one counter; returns as unm_wait_try() does. The domain is
 * not locked. */
int unm_cntr_trywait(struct unm_cntr *cntr);

/* fi_cntr_open(3). */
int unm_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr, void *context);

#endif /* UNM_CNTR_H */
