/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_trigger.h - work that waits for a counter: operations with FI_TRIGGER and
 * the deferred work of fi_trigger(3).
 *
 * A call is copied into a struct unm_work (unm_work.h) when it is queued. The
 * work waits in the list of its counter, sorted by threshold. When the counter
 * reaches the threshold, the work moves to the domain's ready list. The next
 * thread that polls any queue or counter of the domain starts it: the domain's
 * lock is released for the moment, and the endpoint's ordinary call is made.
 *
 * A start that fails with -FI_EAGAIN leaves the work in the ready list. To keep
 * the order of messages, later work of the same endpoint to the same
 * destination is not tried before it (nor are later receives after a refused
 * receive); work for other destinations is. The refused destinations of one
 * pass over the ready list are kept in a bitmap, domain->refused. Two
 * destinations may hash to the same bit: then one of them is not tried until a
 * later pass, which hashes differently.
 *
 * A deferred operation in progress has UNM_OP_WORK among its flags, and its
 * struct unm_work as its context: unm_complete.c reports the completion to the
 * counter that the work names, instead of a queue.
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
 * Handle a call whose flags include some that are not flags of its operation.
 * odd: those flags. Returns 1 if the call is the start of deferred work, which
 * the caller executes; 0 if it was a triggered operation and is queued now;
 * -FI_EBADFLAGS: the flags are unknown, or the endpoint was opened without
 * FI_TRIGGER; -FI_EINVAL: no context, or a counter of another domain;
 * -FI_ENOSYS: another event than FI_TRIGGER_THRESHOLD, or FI_INJECT;
 * -FI_ENOMEM. The domain is not locked.
 */
ssize_t unm_trigger(struct unm_ep *ep, const struct unm_call *call,
		    uint64_t odd);

/* fi_cancel() of a posted receive, or of a triggered operation that was not
 * started. Waits for threads that are just starting work. Returns 0, or
 * -FI_ENOENT: no such operation. The domain is not locked. */
ssize_t unm_trigger_cancel(struct unm_ep *ep, void *context);

/* Wait until no thread is starting work of the domain. None will begin to
 * before the caller releases the domain's lock. The domain is locked; the lock
 * may be released and taken again. */
void unm_trigger_await(struct unm_domain *domain);

/* An index was removed from an address vector: work that names the index will
 * complete with FI_EINVAL instead of starting. The caller has called
 * unm_trigger_await() and not released the domain's lock since. */
void unm_trigger_removed(struct unm_av *av, fi_addr_t index);

/* A counter with waiting work changed its value: move the work whose threshold
 * is reached to the ready list. The domain is locked. */
void unm_trigger_cntr_changed(struct unm_cntr *cntr);

/*
 * Start work of the ready list. A call examines a bounded number of items; the
 * next call continues where this one stopped. Returns a positive number if work
 * was started, or if the pass over the list is not complete; 0: there is no
 * reason to call again at once (also while another thread starts work). The
 * domain is locked; the lock is released during each start.
 */
int unm_trigger_run(struct unm_domain *domain);

/* For closing an endpoint, with the domain locked. drop: free the work of the
 * endpoint that was not started. end: free the work that was in progress;
 * called after the endpoint's peers were freed, so that no operation can
 * complete. No completion is reported. */
void unm_trigger_drop(struct unm_ep *ep);
void unm_trigger_end(struct unm_ep *ep);

/* Queue work: a copy of like, with the type, context, flags and structures of
 * the call. Returns 0, -FI_EINVAL (vectors, see unm_work_copy()), -FI_ENOMEM,
 * or -FI_ENOSPC: threads that wait for the counter of the completion cannot be
 * woken by all endpoints. The domain is not locked. */
int unm_work_append(struct unm_domain *domain, const struct unm_work *like,
		    const struct unm_call *call);

/* Free deferred work that was not started: of this key and of this counter, of
 * which NULL stands for any. Returns how much there was. The domain is not
 * locked. */
int unm_work_cancel(struct unm_domain *domain, const void *key,
		    const struct unm_cntr *cntr);

#endif /* UNM_TRIGGER_H */
