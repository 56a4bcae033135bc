/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_atomic.h - fi_atomic(3): the calls of an endpoint for atomics. The alias
 * of an endpoint has a table of its own (unm_alias.c). */
#ifndef UNM_ATOMIC_H
#define UNM_ATOMIC_H

#include <rdma/fi_atomic.h>

extern struct fi_ops_atomic unm_ops_atomic;

/* fi_query_atomic(3). Returns 0; -FI_EOPNOTSUPP: no such operation on this
 * type; -FI_EBADFLAGS. */
int unm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		     enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

#endif /* UNM_ATOMIC_H */
