/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_eq.h - fi_eq(3): event queues, and the calls by which wait sets and
 * fi_trywait(3) use them. */
#ifndef UNM_EQ_H
#define UNM_EQ_H

#include <stdbool.h>

#include <rdma/fabric.h>

struct unm_fabric;

/* True: the queue holds an event. Takes the lock of the queue. */
bool unm_eq_readable(struct fid *eq);
/* fi_trywait() on one event queue: 0: the application may block; -FI_EAGAIN:
 * there is an event; -FI_EINVAL: the queue was opened with FI_WAIT_NONE or
 * FI_WAIT_YIELD, so nothing can block on it. */
int unm_eq_trywait(struct fid *eq);

/* fi_eq_open(3). */
int unm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **eq, void *context);

/* The reference count of an event queue, for an endpoint that is bound to it;
 * NULL: the queue belongs to another fabric. */
struct unm_ref *unm_eq_ref(struct fid *eq, const struct unm_fabric *fabric);

#endif /* UNM_EQ_H */
