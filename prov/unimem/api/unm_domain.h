/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_domain.h - fi_fabric(3), fi_domain(3): opening and closing both. */
#ifndef UNM_DOMAIN_H
#define UNM_DOMAIN_H

#include <rdma/fi_domain.h>

int unm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

int unm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);

/* fi_trywait(3) */
int unm_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif /* UNM_DOMAIN_H */
