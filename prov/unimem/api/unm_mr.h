/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_mr.h - fi_mr(3): registering memory. */
#ifndef UNM_MR_H
#define UNM_MR_H

#include <rdma/fi_domain.h>

/* fi_mr(3): the calls of a domain that register memory. */
extern struct fi_ops_mr unm_ops_mr;

/* Commands of fi_control() on the domain that are about keys: fi_mr_map_raw(),
 * fi_mr_unmap_key(). -FI_ENOSYS: it is about something else. */
int unm_mr_domain_control(struct fid *fid, int command, void *arg);

#endif /* UNM_MR_H */
