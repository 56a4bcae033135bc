/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_eq.h - event queue: what wait sets and fi_trywait() ask of it. */
#ifndef UNM_EQ_H
#define UNM_EQ_H

#include <stdbool.h>

#include <rdma/fabric.h>

struct unm_fabric;

/* Is there an event to read? */
bool unm_eq_news(struct fid *eq);
/* fi_trywait() of one: 0, -FI_EAGAIN; -FI_EINVAL: nobody sleeps on it. */
int unm_eq_trywait(struct fid *eq);

int unm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **eq, void *context);

/* The users of a queue of that fabric; NULL: of another one. */
struct unm_ref *unm_eq_ref(struct fid *eq, const struct unm_fabric *fabric);

#endif /* UNM_EQ_H */
