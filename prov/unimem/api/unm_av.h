/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_av.h - fi_av(3): inserting and removing addresses. */
#ifndef UNM_AV_H
#define UNM_AV_H

#include <rdma/fi_domain.h>

/* fi_av_open(3). The type of the vector is returned in attr. Returns 0;
 * -FI_EINVAL: no attr, or an unknown type; -FI_ENOSYS: a shared vector, flags
 * or rx_ctx_bits that are not offered; -FI_ENOMEM. */
int unm_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		struct fid_av **av, void *context);

#endif /* UNM_AV_H */
