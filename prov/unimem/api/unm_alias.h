/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_alias.h - fi_ep_alias(3): an endpoint again, with other default flags. */
#ifndef UNM_ALIAS_H
#define UNM_ALIAS_H

#include <rdma/fi_endpoint.h>

struct unm_ep;

/* arg: struct fi_alias. 0; -FI_EINVAL: not one of FI_TRANSMIT and FI_RECV;
 * -FI_EBADFLAGS: no default of operations; -FI_ENOMEM. */
int unm_alias_open(struct unm_ep *ep, void *arg);

/* The endpoint behind one, or itself. */
struct unm_ep *unm_alias_ep(struct fid_ep *fid);

#endif /* UNM_ALIAS_H */
