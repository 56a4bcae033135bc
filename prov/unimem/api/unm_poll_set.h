/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_poll_set.h - fi_poll(3): poll sets, which hold completion queues and
 * counters of one domain, and the calls of wait sets, which hold the objects
 * that were opened with FI_WAIT_SET. Both are thread-safe.
 */
#ifndef UNM_POLL_H
#define UNM_POLL_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

/* fi_poll_open(3), fi_wait_open(3). Return 0, -FI_EBADFLAGS, -FI_ENOMEM; the
 * second also -FI_ENOSYS (a wait object that is not offered) or -FI_EMFILE. */
int unm_pollset_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **fid);
int unm_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		      struct fid_wait **fid);

/* fi_trywait() on a wait set: on each object in the set, until one refuses.
 * Takes the locks of the set and of the objects' domains. Returns as
 * unm_wait_try() does. */
int unm_wait_set_try(struct fid *fid);

#endif /* UNM_POLL_H */
