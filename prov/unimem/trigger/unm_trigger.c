/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_trigger.c - triggered and deferred work (fi_trigger(3)): the lists of
 * work of counters and domains, starting the work, and cancelling it.
 * unm_trigger.h describes the order in which work is started.
 *
 * The domain's lock protects all work. Only one thread at a time starts work
 * (domain->runs), because the lock is released during each start;
 * domain->starts is the work that this thread is starting. Copying the
 * application's structures is in unm_work.c; api/unm_deferred.c checks deferred
 * requests.
 */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/unm_av_table.h"
#include "core/unm_cntr_value.h"
#include "core/unm_complete.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_obj.h"
#include "core/unm_op.h"
#include "core/unm_wake.h"
#include "msg/unm_recv.h"
#include "trigger/unm_trigger.h"
#include "trigger/unm_work.h"
#include "unm_log.h"
#include "unm_refuse.h"
#include "util/unm_list.h"

#define UNM_LOOKS_MAX	256	/* work examined in one unm_trigger_run() */
#define UNM_REFUSED_MAX	16	/* starts refused in one, which cost more */

static bool unm_work_receives(const struct unm_work *w)
{
	return w->type == FI_OP_RECV || w->type == FI_OP_TRECV;
}

static bool unm_work_tagged(const struct unm_work *w)
{
	return w->type == FI_OP_TSEND || w->type == FI_OP_TRECV;
}

/* ---- Starting -------------------------------------------------------- */

static ssize_t unm_work_call(struct unm_work *w, void *context, uint64_t flags)
{
	struct fid_ep *ep = &w->ep->own.fid;

	switch (w->type) {
	case FI_OP_SEND:
		w->m.msg.context = context;
		return ep->msg->sendmsg(ep, &w->m.msg, flags);
	case FI_OP_RECV:
		w->m.msg.context = context;
		return ep->msg->recvmsg(ep, &w->m.msg, flags);
	case FI_OP_TSEND:
		w->m.tagged.context = context;
		return ep->tagged->sendmsg(ep, &w->m.tagged, flags);
	case FI_OP_TRECV:
		w->m.tagged.context = context;
		return ep->tagged->recvmsg(ep, &w->m.tagged, flags);
	case FI_OP_READ:
		w->m.rma.context = context;
		return ep->rma->readmsg(ep, &w->m.rma, flags);
	case FI_OP_WRITE:
		w->m.rma.context = context;
		return ep->rma->writemsg(ep, &w->m.rma, flags);
	default:
		break;
	}
	w->m.atomic.context = context;
	if (w->type == FI_OP_ATOMIC)
		return ep->atomic->writemsg(ep, &w->m.atomic, flags);
	if (w->type == FI_OP_FETCH_ATOMIC)
		return ep->atomic->readwritemsg(ep, &w->m.atomic, w->result,
						NULL, w->fetch.iov_count,
						flags);
	return ep->atomic->compwritemsg(ep, &w->m.atomic, w->compared, NULL,
					w->compare.iov_count, w->result, NULL,
					w->fetch.iov_count, flags);
}

static void unm_work_free(struct unm_work *w)
{
	if (w->d.done != NULL)
		unm_ref_put(&w->d.done->ref);
	if (w->ep == NULL)
		unm_ref_put(&unm_cntr(w->m.cntr.cntr)->ref);
	unm_list_remove(&w->all);
	free(w);
}

/* Called by unm_complete.c when deferred work completes, see struct
 * unm_deferred. */
static void unm_work_ended(struct unm_ep *ep, struct unm_deferred *d)
{
	struct unm_work *w = unm_container(d, struct unm_work, d);

	/* deferred work completes in no queue: if other work is ready, wake the
	 * sleeping threads, which start it */
	if (unm_trigger_runnable(ep->domain))
		unm_ep_wake_all(ep);
	if (w->state == UNM_WORK_STARTING)
		w->state = UNM_WORK_ENDED;
	else
		unm_work_free(w);
}

/* Remove work from its counter's list or the ready list, and release the
 * counter. */
static void unm_work_leave(struct unm_work *w)
{
	if (w->state == UNM_WORK_WAITING)
		w->cntr->nworks--;
	if (w->domain->next == &w->link)
		w->domain->next = w->link.next;
	unm_list_remove(&w->link);
	unm_ref_put(&w->cntr->ref);
}

static void unm_work_cntr(struct unm_work *w)
{
	struct unm_cntr *cntr = unm_cntr(w->m.cntr.cntr);
	uint64_t n = w->m.cntr.value;

	if (w->type == FI_OP_CNTR_SET)
		n -= unm_cntr_get(&cntr->value);
	unm_cntr_add(cntr, n);
}

static void unm_work_fail_onesided(struct unm_work *w, void *context,
				   uint64_t flags, int err)
{
	struct unm_access a = {
		.kind = w->type == FI_OP_READ ? UNM_GET :
			w->type == FI_OP_WRITE ? UNM_PUT :
			w->type == FI_OP_ATOMIC ? UNM_ATOMIC :
			w->type == FI_OP_FETCH_ATOMIC ? UNM_FETCH :
			UNM_COMPARE,
		.context = context, .flags = flags,
	};

	unm_complete_onesided(w->ep, &a, err);
}

/* Report that work failed before it was started. err: a positive fi_errno. */
static void unm_work_fail(struct unm_work *w, int err)
{
	uint64_t flags = w->deferred ? UNM_OP_WORK : w->d.flags;
	void *context = w->deferred ? w : w->d.context;

	if (unm_work_receives(w)) {
		struct unm_rx_done done = {
			.context = context, .flags = flags,
			.tagged = unm_work_tagged(w),
			.tag = unm_work_tagged(w) ? w->m.tagged.tag : 0,
			.src = FI_ADDR_NOTAVAIL, .err = err,
		};

		unm_complete_rx(w->ep, &done);
	} else if (w->type != FI_OP_SEND && w->type != FI_OP_TSEND) {
		unm_work_fail_onesided(w, context, flags, err);
	} else {
		struct unm_send s = {
			.context = context, .flags = flags,
			.tagged = unm_work_tagged(w),
			.tag = unm_work_tagged(w) ? w->m.tagged.tag : 0,
		};

		unm_complete_tx_err(w->ep, &s, err);
	}
}

/* Start work. -FI_EAGAIN: the endpoint refused, and the work stays in the ready
 * list. 0: it was started or has failed; it may be freed. */
static int unm_work_start(struct unm_work *w)
{
	struct unm_domain *domain = w->domain;
	uint64_t flags = w->d.flags | (w->deferred ? UNM_OP_WORK : 0);
	ssize_t ret = 0;

	w->state = UNM_WORK_STARTING;
	if (w->ep == NULL) {
		unm_work_cntr(w);
	} else {
		domain->starts = w;
		unm_unlock(domain);
		ret = w->gone ? -FI_EINVAL :
			unm_work_call(w, w->deferred ? w : w->d.context, flags);
		unm_lock(domain);
		domain->starts = NULL;
		if (ret == -FI_EAGAIN) {
			w->state = UNM_WORK_READY;
			return -FI_EAGAIN;
		}
	}
	unm_work_leave(w);
	if (ret != 0)
		unm_work_fail(w, (int)-ret);
	if (w->deferred && w->ep != NULL && w->state != UNM_WORK_ENDED)
		w->state = UNM_WORK_IN_PROGRESS;
	else
		unm_work_free(w);
	return 0;
}

/* The bit in domain->refused for the work's endpoint and destination; all
 * receives of an endpoint have the same. */
static unsigned unm_work_way(const struct unm_work *w)
{
	bool receives = unm_work_receives(w);
	uint64_t h = (uintptr_t)w->ep + receives;

	h = (h ^ w->domain->passes) * UINT64_C(0x9E3779B97F4A7C15);
	h ^= h >> 32;
	h = (h + (receives ? 0 : w->to)) * UINT64_C(0xBF58476D1CE4E5B9);
	h ^= h >> 29;
	h *= UINT64_C(0x94D049BB133111EB);
	return h % UNM_WAYS;
}

/* Begin a pass over the ready list. domain->passes changes the hash, so that
 * two destinations that shared a bit no longer do. */
static void unm_trigger_pass(struct unm_domain *domain)
{
	domain->passes++;
	domain->fruitless = !domain->moved;
	domain->moved = false;
	memset(domain->refused, 0, sizeof(domain->refused));
	domain->next = domain->ready.next;
}

/* Try to start work. Returns 1: it was started or has failed; 0: earlier work
 * for the same destination was refused; -1: refused. */
static int unm_trigger_turn(struct unm_domain *domain, struct unm_work *w)
{
	unsigned way = unm_work_way(w);
	uint64_t *word = &domain->refused[way / 64];
	uint64_t bit = UINT64_C(1) << way % 64;

	if (w->ep != NULL && (*word & bit))
		return 0;
	if (unm_work_start(w) == 0)
		return 1;
	*word |= bit;
	return -1;
}

int unm_trigger_run(struct unm_domain *domain)
{
	bool whole = false;
	int done = 0, refused = 0;

	if (domain->runs || unm_list_empty(&domain->ready))
		return 0;
	domain->runs = true;		/* other threads start no work */
	for (int i = 0; i < UNM_LOOKS_MAX && refused < UNM_REFUSED_MAX &&
	     domain->awaits == 0; i++) {
		struct unm_work *w;
		int turn;

		if (domain->next == &domain->ready && !whole) {
			whole = true;
			unm_trigger_pass(domain);
		}
		if (domain->next == &domain->ready)
			break;
		w = unm_container(domain->next, struct unm_work, link);
		domain->next = domain->next->next;
		turn = unm_trigger_turn(domain, w);
		done += turn > 0;
		refused += turn < 0;
	}
	domain->runs = false;
	if (done != 0)
		unm_trigger_again(domain);
	/* not 0 if this pass is not complete, unless the last one started
	 * nothing: then callers need not hurry */
	return done + (domain->next != &domain->ready && !domain->fruitless);
}

/*
 * domain->awaits keeps unm_trigger_run() from starting more work. A child that
 * was forked during a start has no thread to finish it: the work counts as
 * started there.
 */
void unm_trigger_await(struct unm_domain *domain)
{
	struct unm_work *w;

	domain->awaits++;
	while ((w = domain->starts) != NULL && w->ep->owner == getpid()) {
		unm_unlock(domain);
		sched_yield();
		unm_lock(domain);
	}
	domain->awaits--;
	if (w == NULL)
		return;
	domain->starts = NULL;
	domain->runs = false;
	unm_work_leave(w);
	w->state = UNM_WORK_IN_PROGRESS;
}

void unm_trigger_removed(struct unm_av *av, fi_addr_t index)
{
	bool ready = false;

	unm_list_for_each(pos, &av->domain->works) {
		struct unm_work *w = unm_container(pos, struct unm_work, all);

		if (w->state <= UNM_WORK_READY && w->ep != NULL &&
		    w->ep->av == av && w->to == index &&
		    (!unm_work_receives(w) || w->ep->directed)) {
			w->gone = true;
			ready |= w->state == UNM_WORK_READY;
		}
	}
	if (ready)			/* it fails now, if refused before */
		unm_trigger_wake(av->domain);
}

void unm_trigger_cntr_changed(struct unm_cntr *cntr)
{
	uint64_t value = unm_cntr_get(&cntr->value);
	uint64_t all = value + unm_cntr_get(&cntr->errors);
	bool ready = false;

	unm_list_for_each_safe(pos, next, &cntr->works) {
		struct unm_work *w = unm_container(pos, struct unm_work,
						   link);

		if (w->threshold > all)
			break;
		if (w->threshold > value && !w->deferred)
			continue;
		unm_list_remove(&w->link);
		unm_list_append(&cntr->domain->ready, &w->link);
		if (cntr->domain->next == &cntr->domain->ready)
			cntr->domain->next = &w->link;
		w->state = UNM_WORK_READY;
		cntr->nworks--;
		ready = true;
	}
	if (ready)
		unm_trigger_wake(cntr->domain);
}

/* ---- Queuing --------------------------------------------------------- */

/* Insert work into its counter's list, behind work of the same threshold. */
static void unm_work_insert(struct unm_work *w)
{
	struct unm_list *pos = w->cntr->works.prev;

	while (pos != &w->cntr->works &&
	       unm_container(pos, struct unm_work, link)->threshold >
	       w->threshold)
		pos = pos->prev;
	unm_list_append(pos->next, &w->link);
	w->state = UNM_WORK_WAITING;
	w->cntr->changed = unm_trigger_cntr_changed;
	w->cntr->nworks++;
}

int unm_work_append(struct unm_domain *domain, const struct unm_work *like,
		    const struct unm_call *call)
{
	struct unm_work *w = malloc(sizeof(*w));
	struct unm_cntr *counts;
	int ret;

	if (w == NULL)
		return -FI_ENOMEM;
	*w = *like;
	w->domain = domain;
	w->type = call->type;
	w->d.context = call->context;
	w->d.flags = call->flags;
	w->d.ended = unm_work_ended;
	ret = unm_work_copy(w, call);
	if (ret != 0) {
		free(w);
		return ret;
	}
	unm_lock(domain);
	/* the counter that the work changes must be progressed by all endpoints
	 * of the domain */
	counts = w->ep == NULL ? unm_cntr(w->m.cntr.cntr) : w->d.done;
	ret = counts != NULL ? unm_cntr_of_all(counts) : 0;
	if (ret != 0) {
		unm_unlock(domain);
		free(w);
		return ret;
	}
	unm_ref_get(&w->cntr->ref);
	unm_list_append(&domain->works, &w->all);
	unm_work_insert(w);
	unm_trigger_cntr_changed(w->cntr);
	unm_trigger_run(domain);
	unm_unlock(domain);
	return 0;
}

ssize_t unm_trigger(struct unm_ep *ep, const struct unm_call *call,
		    uint64_t odd)
{
	const struct fi_triggered_context *ctx = call->context;
	struct unm_call plain = *call;
	struct unm_work like = { .ep = ep };
	char name[UNM_NAMES_MAX];

	if (odd == UNM_OP_WORK && ctx != NULL &&
	    call->context == ep->domain->starts)
		return 1;
	if (odd != FI_TRIGGER || !(ep->info->caps & FI_TRIGGER))
		return -FI_EBADFLAGS;
	if (ctx == NULL)
		return -FI_EINVAL;
	if (ctx->event_type != FI_TRIGGER_THRESHOLD) {
		UNM_INFO(EP_DATA, "trigger event %s asked, offered: "
			 "FI_TRIGGER_THRESHOLD\n",
			 unm_value_name(UNM_TYPE_TRIGGER, ctx->event_type, name,
					sizeof(name)));
		return -FI_ENOSYS;
	}
	if (!unm_cntr_of(ep->domain, ctx->trigger.threshold.cntr))
		return -FI_EINVAL;
	if (call->flags & FI_INJECT) {	/* would need a copy of the payload */
		UNM_INFO(EP_DATA, "FI_INJECT asked of a triggered operation, "
			 "offered: without\n");
		return -FI_ENOSYS;
	}
	plain.flags &= ~FI_TRIGGER;
	like.cntr = unm_cntr(ctx->trigger.threshold.cntr);
	like.threshold = ctx->trigger.threshold.threshold;
	return unm_work_append(ep->domain, &like, &plain);
}

/* ---- Cancelling ------------------------------------------------------- */

int unm_work_cancel(struct unm_domain *domain, const void *key,
		    const struct unm_cntr *cntr)
{
	int n = 0;

	unm_lock(domain);
	unm_trigger_await(domain);
	unm_list_for_each_safe(pos, next, &domain->works) {
		struct unm_work *w = unm_container(pos, struct unm_work, all);

		if (!w->deferred || w->state > UNM_WORK_READY ||
		    (key != NULL && w->key != key) ||
		    (cntr != NULL && w->cntr != cntr))
			continue;
		unm_work_leave(w);
		unm_work_free(w);
		n++;
	}
	unm_unlock(domain);
	return n;
}

/* Find a triggered operation that was not started, or a deferred receive that
 * was posted, by the application's context. NULL: none. */
static struct unm_work *unm_work_find(struct unm_ep *ep, const void *context)
{
	unm_list_for_each(pos, &ep->domain->works) {
		struct unm_work *w = unm_container(pos, struct unm_work, all);
		bool posted = w->state == UNM_WORK_IN_PROGRESS &&
			unm_work_receives(w);

		if (w->ep == ep && w->d.context == context &&
		    (posted || (w->state <= UNM_WORK_READY && !w->deferred)))
			return w;
	}
	return NULL;
}

ssize_t unm_trigger_cancel(struct unm_ep *ep, void *context)
{
	struct unm_domain *domain = ep->domain;
	struct unm_work *w;
	ssize_t ret;

	unm_lock(domain);
	unm_trigger_await(domain);
	w = unm_work_find(ep, context);
	if (w == NULL) {		/* a triggered receive, if posted */
		ret = unm_recv_cancel_locked(ep, context);
	} else if (w->state == UNM_WORK_IN_PROGRESS) {
		/* the receive was posted with the work as its context */
		ret = unm_recv_cancel_locked(ep, w);
	} else {
		unm_work_leave(w);
		unm_work_fail(w, FI_ECANCELED);
		unm_work_free(w);
		ret = 0;
	}
	unm_unlock(domain);
	return ret;
}

/* ---- Ending ---------------------------------------------------------- */

void unm_trigger_drop(struct unm_ep *ep)
{
	struct unm_domain *domain = ep->domain;

	unm_trigger_await(domain);
	unm_list_for_each_safe(pos, next, &domain->works) {
		struct unm_work *w = unm_container(pos, struct unm_work, all);

		if (w->ep == ep && w->state <= UNM_WORK_READY) {
			unm_work_leave(w);
			unm_work_free(w);
		}
	}
}

void unm_trigger_end(struct unm_ep *ep)
{
	unm_list_for_each_safe(pos, next, &ep->domain->works) {
		struct unm_work *w = unm_container(pos, struct unm_work, all);

		if (w->ep == ep)
			unm_work_free(w);
	}
}
