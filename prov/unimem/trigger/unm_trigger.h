/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_trigger.h - work that waits for a counter: operations with FI_TRIGGER and
 * the deferred work of fi_trigger(3).
 *
 * Work is copied when it is given. It waits in its counter's list, by
 * threshold; once that is reached, in the domain's list of what is to be
 * started. From there it is started by whoever polls, by the endpoint's own
 * operation, outside of the lock. Work that is refused with -FI_EAGAIN stays,
 * and so does what comes behind it and goes the same way; others overtake it.
 * Which ways were refused is kept, for one pass over the list, in a bitmap that
 * two ways may share a bit of: then one of them is tried in a later pass.
 *
 * A deferred operation under way has UNM_OP_WORK among its flags, and the work
 * as its context: its completion goes where the work says.
 */
#ifndef UNM_TRIGGER_H
#define UNM_TRIGGER_H

#include <rdma/fi_trigger.h>

#include "core/unm_domain_state.h"
#include "progress/unm_progress.h"

struct unm_av;
struct unm_cntr;
struct unm_cq;
struct unm_ep;
struct unm_work;

/* A call, by what it was given. */
struct unm_call {
	enum fi_op_type type;
	const void *msg;		/* the call's structure */
	const struct fi_msg_fetch *fetch;
	const struct fi_msg_compare *compare;
	void *context;
	uint64_t flags;
};

/*
 * A call has flags beyond those of its operation: 1: they are ours, go on; 0:
 * it waits now; -FI_EBADFLAGS: unknown, or the endpoint is not for triggers;
 * -FI_EINVAL, -FI_ENOSYS, -FI_ENOMEM. The domain is not locked.
 */
ssize_t unm_trigger(struct unm_ep *ep, const struct unm_call *call,
		    uint64_t odd);

/* FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of fi_control(3). */
int unm_trigger_control(struct unm_domain *domain, int command, void *arg);

/* fi_cancel() of an operation that waits, or of a receive that another thread
 * just posted for one. Waits for such threads. -FI_ENOENT: there is none. */
ssize_t unm_trigger_cancel(struct unm_ep *ep, void *context);

/* Nothing is being started, and nothing will be before the domain's lock is
 * given away. May give it away and take it again. */
void unm_trigger_await(struct unm_domain *domain);

/* An index was removed from an address vector: work that names it ends with
 * FI_EINVAL when its turn comes. After unm_trigger_await(), under one lock. */
void unm_trigger_removed(struct unm_av *av, fi_addr_t index);

/* The counter moved, and work waits for it. The domain is locked. */
void unm_trigger_moved(struct unm_cntr *cntr);

/*
 * Start what is to be started, boundedly: the next call goes on where this one
 * stopped. Returns 0: nothing was, and all was looked at. The domain is locked,
 * and for moments it is not.
 */
int unm_trigger_run(struct unm_domain *domain);

/* unm_poll(), and then what that set off. */
static inline bool unm_trigger_poll(struct unm_domain *domain,
				    struct unm_list *eps,
				    struct unm_idle *idle)
{
	bool yield = unm_poll(eps, idle);

	if (__builtin_expect(unm_trigger_waits(domain), 0) &&
	    unm_trigger_run(domain) != 0)
		return false;
	return yield;
}

/* The endpoint is closing, the domain is locked: nothing is started on it any
 * more; and then: nothing of it is under way. */
void unm_trigger_drop(struct unm_ep *ep);
void unm_trigger_end(struct unm_ep *ep);

/*
 * A deferred operation ended. Between these two the endpoint's queues and
 * counters are those that the work is to be told to; its completion is made
 * once more, with the context and flags of *end.
 */
struct unm_work_end {
	struct unm_work *work;
	void *context;			/* the application's */
	uint64_t flags;			/* FI_COMPLETION: it wants an entry */
	struct unm_cq *tx_cq, *rx_cq;
	struct unm_cntr *cntr[4];
};
void unm_work_ends(struct unm_ep *ep, void *context, uint64_t flags,
		   struct unm_work_end *end);
void unm_work_ended(struct unm_ep *ep, const struct unm_work_end *end);

#endif /* UNM_TRIGGER_H */
