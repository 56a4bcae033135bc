/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_work.h - one triggered or deferred operation: everything that its start
 * needs, copied when the application queues it. unm_trigger.c owns the lists
 * and the states; unm_work.c makes the copy.
 *
 * An instance lives from unm_work_append() until it is started, cancelled or,
 * if deferred, complete. The domain's lock protects it.
 */
#ifndef UNM_WORK_H
#define UNM_WORK_H

#include <stdbool.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include "core/unm_complete.h"
#include "unm_offer.h"
#include "util/unm_list.h"

struct unm_call;

/* The arguments of a call. Lives on the caller's stack during the call only. */
struct unm_call {
	enum fi_op_type type;
	const void *msg;		/* structure of that type, see m of
					 * struct unm_work */
	const struct fi_msg_fetch *fetch;	/* NULL: none */
	const struct fi_msg_compare *compare;	/* NULL: none */
	void *context;
	uint64_t flags;
};

enum unm_work_state {
	UNM_WORK_WAITING = 1,	/* in the list of its counter */
	UNM_WORK_READY,		/* in domain->ready, not started */
	UNM_WORK_STARTING,	/* a thread is in the endpoint's call */
	UNM_WORK_IN_PROGRESS,	/* deferred work, started, not complete */
	UNM_WORK_ENDED,		/* completed before the call returned */
};

struct unm_work {
	struct unm_deferred d;		/* must be first: unm_complete.c gets
					 * the work as a context */
	struct unm_list link;		/* in cntr->works or domain->ready */
	struct unm_list all;		/* in domain->works */
	struct unm_domain *domain;
	enum unm_work_state state;
	enum fi_op_type type;
	bool deferred;			/* FI_QUEUE_WORK; false: FI_TRIGGER */
	const void *key;		/* of deferred work: the application's
					 * structure, for FI_CANCEL_WORK */
	struct unm_ep *ep;		/* NULL: an operation on a counter */
	struct unm_cntr *cntr;		/* counter that the work waits for */
	uint64_t threshold;		/* value of cntr that makes it ready */
	fi_addr_t to;			/* destination or source, an index in
					 * ep->av */
	bool gone;			/* the index was removed: fail with
					 * FI_EINVAL instead of starting */
	union {				/* the call's structure, whose vectors
					 * are in the arrays below */
		struct fi_msg msg;
		struct fi_msg_tagged tagged;
		struct fi_msg_rma rma;
		struct fi_msg_atomic atomic;
		struct fi_op_cntr cntr;
	} m;
	struct fi_msg_fetch fetch;
	struct fi_msg_compare compare;
	struct iovec iov[UNM_IOV_MAX];
	struct fi_rma_iov remote[UNM_IOV_MAX];
	struct fi_ioc result[UNM_IOV_MAX], compared[UNM_IOV_MAX];
};
_Static_assert(offsetof(struct unm_work, d) == 0,
	       "the context of a deferred operation is its work");
_Static_assert(sizeof(struct fi_ioc) == sizeof(struct iovec) &&
	       sizeof(struct fi_rma_ioc) == sizeof(struct fi_rma_iov),
	       "one place for both");

/* Copy the call's structures into w, whose type is set. 0, or -FI_EINVAL: a
 * vector is longer than UNM_IOV_MAX or missing. */
int unm_work_copy(struct unm_work *w, const struct unm_call *call);

#endif /* UNM_WORK_H */
