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

struct unm_av;
struct unm_call;
struct unm_cntr;
struct unm_domain;
struct unm_ep;
struct unm_work;

/*
 * A call has flags beyond those of its operation: 1: they are ours, go on; 0:
 * it waits now; -FI_EBADFLAGS: unknown, or the endpoint is not for triggers;
 * -FI_EINVAL, -FI_ENOSYS, -FI_ENOMEM. The domain is not locked.
 */
ssize_t unm_trigger(struct unm_ep *ep, const struct unm_call *call,
		    uint64_t odd);

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

/* The endpoint is closing, the domain is locked: nothing is started on it any
 * more; and then: nothing of it is under way. */
void unm_trigger_drop(struct unm_ep *ep);
void unm_trigger_end(struct unm_ep *ep);

/* Queue a copy of like, with what the call says. 0, -FI_EINVAL,
 * -FI_ENOMEM, or why its counter cannot be waited for. */
int unm_work_give(struct unm_domain *domain, const struct unm_work *like,
		  const struct unm_call *call);

/* Drop work that was not started yet: of that key, that counter, NULL is any.
 * Returns how many there were. */
int unm_work_cancel(struct unm_domain *domain, const void *key,
		    const struct unm_cntr *cntr);

#endif /* UNM_TRIGGER_H */
