/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_domain.h - fi_fabric(3), fi_domain(3): opening and closing both. */
#ifndef UNM_DOMAIN_H
#define UNM_DOMAIN_H

#include <rdma/fi_domain.h>

/* fi_fabric(3). */
int unm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

/* fi_domain(3). Opens the HAL, and starts the progress thread where info asks
 * for FI_PROGRESS_AUTO. */
int unm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);

/* fi_trywait(3) on queues, counters, event queues and wait sets. Returns 0 if
 * the application may block on all of them, or the first other result. */
int unm_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif /* UNM_DOMAIN_H */
