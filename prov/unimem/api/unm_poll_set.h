/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_poll_set.h - fi_poll(3): poll sets, of queues and counters of a domain,
 * and wait sets, of what was opened for one. Several threads may use both.
 */
#ifndef UNM_POLL_H
#define UNM_POLL_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/* fi_poll_open(3), fi_wait_open(3): 0, -FI_EINVAL, -FI_ENOSYS (no such wait
 * object), -FI_ENOMEM, -FI_EMFILE. */
int unm_pollset_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **fid);
int unm_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		      struct fid_wait **fid);

/* fi_trywait() of a wait set: of each of its objects. */
int unm_wait_set_try(struct fid *fid);

#endif /* UNM_POLL_H */
