/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cq.h - fi_cq(3): reading completion queues. */
#ifndef UNM_CQ_H
#define UNM_CQ_H

#include <stdbool.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

struct unm_av;
struct unm_cq;

/* Is there something to read? The domain is locked. */
bool unm_cq_news(struct unm_cq *cq);

/* fi_trywait() of one. */
int unm_cq_trywait(struct unm_cq *cq);

/* Indices were removed from an address vector: unread completions whose source
 * is one of these indices have no source any more, in each queue of the domain.
 * The endpoint that they came through may be closed. */
void unm_cq_removed(const struct unm_av *av);

int unm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **cq, void *context);

#endif /* UNM_CQ_H */
