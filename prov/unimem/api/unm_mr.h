/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_mr.h - fi_mr(3): registering and closing memory regions. */
#ifndef UNM_MR_H
#define UNM_MR_H

#include <rdma/fi_domain.h>

/* The calls of a domain that register memory. */
extern struct fi_ops_mr unm_ops_mr;

/* fi_control(3) on a domain: the commands of fi_mr_map_raw() and
 * fi_mr_unmap_key(). Returns -FI_ENOSYS for other commands. */
int unm_mr_domain_control(struct fid *fid, int command, void *arg);

#endif /* UNM_MR_H */
