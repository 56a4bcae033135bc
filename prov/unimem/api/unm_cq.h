/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cq.h - fi_cq(3): opening, reading and closing completion queues.
 * core/unm_cq_ring.h declares the ring that operations write. */
#ifndef UNM_CQ_H
#define UNM_CQ_H

#include <stdbool.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

struct unm_av;
struct unm_cq;

/* True: the queue holds a completion or an error entry. The domain is
 * locked. */
bool unm_cq_readable(struct unm_cq *cq);

/* fi_trywait() on one queue; returns as unm_wait_try() does. The domain is not
 * locked. */
int unm_cq_trywait(struct unm_cq *cq);

/* Indices were removed from an address vector: in each queue of the domain, set
 * the source of unread completions that name one of them to the next index of
 * the same address, or to FI_ADDR_NOTAVAIL. Also covers completions of
 * endpoints closed since. The domain is locked. */
void unm_cq_removed(const struct unm_av *av);

/* fi_cq_open(3). attr: NULL or what is asked for; the format and the number of
 * entries that the queue has are returned in it. */
int unm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **cq, void *context);

#endif /* UNM_CQ_H */
