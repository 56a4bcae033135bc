/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_ep.h - fi_endpoint(3): opening, binding, enabling and closing endpoints.
 * The object is struct unm_ep (core/unm_ep_state.h). */
#ifndef UNM_EP_H
#define UNM_EP_H

#include <rdma/fi_endpoint.h>

/* fi_endpoint(3) for FI_EP_RDM: opens the endpoint and its HAL interface.
 * Returns 0; -FI_EINVAL: info asks for what is not offered; -FI_ENOPROTOOPT:
 * another endpoint type; -FI_ENOMEM; or an error of hal_if_open(). */
int unm_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);

#endif /* UNM_EP_H */
