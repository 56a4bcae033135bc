/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_ep.h - fi_endpoint(3): opening, binding, enabling and closing. */
#ifndef UNM_EP_H
#define UNM_EP_H

#include <rdma/fi_endpoint.h>

int unm_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);

#endif /* UNM_EP_H */
