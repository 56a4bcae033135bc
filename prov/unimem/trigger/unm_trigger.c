/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/unm_alias.h"
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
#include "unm_offer.h"
#include "util/unm_list.h"

#define UNM_LOOKS_MAX	256	/* at work, in one go: the next goes on there */
#define UNM_REFUSED_MAX	16	/* ... and calls in vain: they cost more */

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
	struct fid_ep *ep = &w->ep->fid;

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
	if (w->done != NULL)
		unm_ref_put(&w->done->ref);
	if (w->ep == NULL)
		unm_ref_put(&unm_cntr(w->m.cntr.cntr)->ref);
	unm_list_remove(&w->all);
	free(w);
}

/* It waits for its counter no more. */
static void unm_work_leave(struct unm_work *w)
{
	if (w->state == UNM_WORK_WAITS)
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

/* It ends before it began. */
static void unm_work_fail(struct unm_work *w, int err)
{
	uint64_t flags = w->deferred ? UNM_OP_WORK : w->flags;
	void *context = w->deferred ? w : w->context;

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
		struct unm_tx_op op = {
			.context = context, .flags = flags,
			.tagged = unm_work_tagged(w),
			.tag = unm_work_tagged(w) ? w->m.tagged.tag : 0,
		};

		unm_complete_tx_err(w->ep, &op, err);
	}
}

/* -FI_EAGAIN: it stays where it is. Else it is gone. */
static int unm_work_start(struct unm_work *w)
{
	struct unm_domain *domain = w->domain;
	uint64_t flags = w->flags | (w->deferred ? UNM_OP_WORK : 0);
	ssize_t ret = 0;

	w->state = UNM_WORK_STARTS;
	if (w->ep == NULL) {
		unm_work_cntr(w);
	} else {
		domain->starts = w;
		unm_unlock(domain);
		ret = w->gone ? -FI_EINVAL :
			unm_work_call(w, w->deferred ? w : w->context, flags);
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
		w->state = UNM_WORK_GOES;
	else
		unm_work_free(w);
	return 0;
}

/* A bit for where it goes: all receives of an endpoint go one way. */
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

/* All of it from the beginning. Two ways that shared a bit do so no more. */
static void unm_trigger_pass(struct unm_domain *domain)
{
	domain->passes++;
	domain->fruitless = !domain->moved;
	domain->moved = false;
	memset(domain->refused, 0, sizeof(domain->refused));
	domain->next = domain->ready.next;
}

/* Its turn. Returns 1: it is gone; 0: it waits behind another; -1: refused. */
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
	domain->runs = true;		/* no other thread meanwhile */
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
	/* more of this pass is to be looked at; not over and over */
	return done + (domain->next != &domain->ready && !domain->fruitless);
}

/*
 * Nothing is being started, and nothing will be before the lock is given away:
 * what another thread was about to start was refused, or is under way. A child
 * forked meanwhile has no such thread: there it counts as under way.
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
	w->state = UNM_WORK_GOES;
}

/*
 * Work can start, or end. The call that made that so may not be a poll, so
 * whoever sleeps has to poll: any endpoint's sleeper will do, as each poll
 * starts the work of the whole domain.
 */
static void unm_trigger_wake(struct unm_domain *domain)
{
	unm_trigger_again(domain);
	unm_wait_kick(domain);
	unm_list_for_each(pos, &domain->eps)
		unm_disturb(unm_container(pos, struct unm_ep_links, node)->ep);
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
	if (ready)			/* it may have been refused before */
		unm_trigger_wake(av->domain);
}

void unm_trigger_moved(struct unm_cntr *cntr)
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

/* ---- Giving ---------------------------------------------------------- */

/* Behind those of the same threshold. */
static void unm_work_insert(struct unm_work *w)
{
	struct unm_list *pos = w->cntr->works.prev;

	while (pos != &w->cntr->works &&
	       unm_container(pos, struct unm_work, link)->threshold >
	       w->threshold)
		pos = pos->prev;
	unm_list_append(pos->next, &w->link);
	w->state = UNM_WORK_WAITS;
	w->cntr->nworks++;
}

static int unm_work_give(struct unm_domain *domain, const struct unm_work *like,
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
	w->context = call->context;
	w->flags = call->flags;
	ret = unm_work_copy(w, call);
	if (ret != 0) {
		free(w);
		return ret;
	}
	unm_lock(domain);
	/* done is of an operation, the other where there is none */
	counts = w->ep == NULL ? unm_cntr(w->m.cntr.cntr) : w->done;
	ret = counts != NULL ? unm_cntr_of_all(counts) : 0;
	if (ret != 0) {
		unm_unlock(domain);
		free(w);
		return ret;
	}
	unm_ref_get(&w->cntr->ref);
	unm_list_append(&domain->works, &w->all);
	unm_work_insert(w);
	unm_trigger_moved(w->cntr);
	unm_trigger_run(domain);
	unm_unlock(domain);
	return 0;
}

static bool unm_is_cntr(struct unm_domain *domain, struct fid_cntr *cntr)
{
	return cntr != NULL && cntr->fid.fclass == FI_CLASS_CNTR &&
		unm_cntr(cntr)->domain == domain;
}

ssize_t unm_trigger(struct unm_ep *ep, const struct unm_call *call,
		    uint64_t odd)
{
	const struct fi_triggered_context *ctx = call->context;
	struct unm_call plain = *call;
	struct unm_work like = { .ep = ep };

	if (odd == UNM_OP_WORK && ctx != NULL &&
	    call->context == ep->domain->starts)
		return 1;
	if (odd != FI_TRIGGER || !(ep->info->caps & FI_TRIGGER))
		return -FI_EBADFLAGS;
	if (ctx == NULL)
		return -FI_EINVAL;
	if (ctx->event_type != FI_TRIGGER_THRESHOLD) {
		UNM_INFO(EP_DATA, "trigger event %d asked, offered: "
			 "FI_TRIGGER_THRESHOLD\n", ctx->event_type);
		return -FI_ENOSYS;
	}
	if (!unm_is_cntr(ep->domain, ctx->trigger.threshold.cntr))
		return -FI_EINVAL;
	if (call->flags & FI_INJECT) {	/* the bytes would have to be kept */
		UNM_INFO(EP_DATA, "FI_INJECT asked of a triggered operation, "
			 "offered: without\n");
		return -FI_ENOSYS;
	}
	plain.flags &= ~FI_TRIGGER;
	like.cntr = unm_cntr(ctx->trigger.threshold.cntr);
	like.threshold = ctx->trigger.threshold.threshold;
	return unm_work_give(ep->domain, &like, &plain);
}

/* ---- Deferred work --------------------------------------------------- */

/* What the structure says, as a call of that endpoint. */
static int unm_work_parse(const struct fi_deferred_work *work,
			  struct unm_call *call, struct fid_ep **ep)
{
	const struct fi_op_compare_atomic *ca = work->op.compare_atomic;
	const struct fi_op_fetch_atomic *fa = work->op.fetch_atomic;

	call->type = work->op_type;
	*ep = NULL;
	if (work->op.msg == NULL)
		return -FI_EINVAL;
#define UNM_PARSE(op)							\
	(*ep = (op)->ep, call->msg = &(op)->msg,			\
	 call->context = (op)->msg.context, call->flags = (op)->flags)
	switch (work->op_type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		UNM_PARSE(work->op.msg);
		break;
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		UNM_PARSE(work->op.tagged);
		break;
	case FI_OP_READ:
	case FI_OP_WRITE:
		UNM_PARSE(work->op.rma);
		break;
	case FI_OP_ATOMIC:
		UNM_PARSE(work->op.atomic);
		break;
	case FI_OP_FETCH_ATOMIC:
		UNM_PARSE(fa);
		call->fetch = &fa->fetch;
		break;
	case FI_OP_COMPARE_ATOMIC:
		UNM_PARSE(ca);
		call->fetch = &ca->fetch;
		call->compare = &ca->compare;
		break;
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		call->msg = work->op.cntr;
		return 0;
	default:
		UNM_INFO(DOMAIN, "deferred operation %d asked, offered: those "
			 "of fi_trigger(3)\n", work->op_type);
		return -FI_ENOSYS;
	}
#undef UNM_PARSE
	return *ep != NULL && (*ep)->fid.fclass == FI_CLASS_EP ?
		0 : -FI_EINVAL;
}

/* Those of an operation that ends once, and reads its buffer when it starts. */
static uint64_t unm_work_flags(enum fi_op_type type)
{
	switch (type) {
	case FI_OP_RECV:
	case FI_OP_TRECV:
		return FI_TRIGGER | FI_COMPLETION | FI_MORE;
	case FI_OP_SEND:
	case FI_OP_TSEND:
	case FI_OP_WRITE:
		return FI_TRIGGER | (UNM_TX_MSG_FLAGS & ~FI_INJECT);
	default:
		return FI_TRIGGER | (UNM_TX_MSG_FLAGS &
				     ~(FI_INJECT | FI_REMOTE_CQ_DATA));
	}
}

static int unm_work_check(struct unm_domain *domain,
			  const struct fi_deferred_work *work,
			  const struct unm_call *call, struct unm_ep *ep)
{
	bool counts = work->completion_cntr != NULL;
	uint64_t flags;

	if (!unm_is_cntr(domain, work->triggering_cntr) ||
	    (counts && !unm_is_cntr(domain, work->completion_cntr)))
		return -FI_EINVAL;
	if (ep == NULL)
		return !counts && unm_is_cntr(domain, work->op.cntr->cntr) ?
			0 : -FI_EINVAL;
	if (ep->domain != domain)
		return -FI_EINVAL;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (!(ep->info->caps & FI_TRIGGER)) {
		UNM_INFO(DOMAIN, "deferred work asked of an endpoint without "
			 "FI_TRIGGER\n");
		return -FI_EOPNOTSUPP;
	}
	flags = unm_work_flags(call->type);
	if (call->flags & ~flags) {
		UNM_INFO(DOMAIN, "flags 0x%llx asked of deferred work of type "
			 "%d, offered: 0x%llx\n",
			 (unsigned long long)call->flags, call->type,
			 (unsigned long long)flags);
		return -FI_ENOSYS;
	}
	return 0;
}

static int unm_work_queue(struct unm_domain *domain,
			  const struct fi_deferred_work *work)
{
	struct unm_call call = { .context = NULL };
	struct unm_work like = { .deferred = true, .key = work };
	struct fid_ep *ep;
	int ret;

	ret = unm_work_parse(work, &call, &ep);
	if (ret != 0)
		return ret;
	like.ep = ep != NULL ? unm_alias_ep(ep) : NULL;
	ret = unm_work_check(domain, work, &call, like.ep);
	if (ret != 0)
		return ret;
	call.flags &= ~FI_TRIGGER;
	like.cntr = unm_cntr(work->triggering_cntr);
	like.threshold = work->threshold;
	if (work->completion_cntr != NULL)
		like.done = unm_cntr(work->completion_cntr);
	return unm_work_give(domain, &like, &call);
}

/* Work that was not started yet: of that key, that counter, NULL is any. */
static int unm_work_cancel(struct unm_domain *domain, const void *key,
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

int unm_trigger_control(struct unm_domain *domain, int command, void *arg)
{
	switch (command) {
	case FI_QUEUE_WORK:
		return arg != NULL ? unm_work_queue(domain, arg) : -FI_EINVAL;
	case FI_CANCEL_WORK:
		if (arg == NULL)
			return -FI_EINVAL;
		return unm_work_cancel(domain, arg, NULL) != 0 ? 0 :
			-FI_ENOENT;
	case FI_FLUSH_WORK:
		if (arg != NULL && !unm_is_cntr(domain, arg))
			return -FI_EINVAL;
		unm_work_cancel(domain, NULL, arg);
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* Waiting, or a deferred receive that was posted. */
static struct unm_work *unm_work_find(struct unm_ep *ep, const void *context)
{
	unm_list_for_each(pos, &ep->domain->works) {
		struct unm_work *w = unm_container(pos, struct unm_work, all);
		bool posted = w->state == UNM_WORK_GOES &&
			unm_work_receives(w);

		if (w->ep == ep && w->context == context &&
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
	if (w == NULL) {		/* a receive, as of just now */
		ret = unm_recv_cancel_locked(ep, context);
	} else if (w->state == UNM_WORK_GOES) {
		/* that knows the work, not the context */
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

void unm_work_ends(struct unm_ep *ep, void *context, uint64_t flags,
		   struct unm_work_end *end)
{
	struct unm_work *w = context;

	*end = (struct unm_work_end){
		.work = w, .context = w->context,
		.flags = (flags & ~(UNM_OP_WORK | FI_COMPLETION)) |
			(w->flags & FI_COMPLETION),
		.tx_cq = ep->tx_cq, .rx_cq = ep->rx_cq,
		.cntr = { ep->tx_cntr, ep->rx_cntr, ep->rd_cntr,
			  ep->wr_cntr },
	};
	ep->tx_cntr = ep->rx_cntr = ep->rd_cntr = ep->wr_cntr = w->done;
	if (!(w->flags & FI_COMPLETION))
		ep->tx_cq = ep->rx_cq = NULL;
}

void unm_work_ended(struct unm_ep *ep, const struct unm_work_end *end)
{
	ep->tx_cq = end->tx_cq;
	ep->rx_cq = end->rx_cq;
	ep->tx_cntr = end->cntr[0];
	ep->rx_cntr = end->cntr[1];
	ep->rd_cntr = end->cntr[2];
	ep->wr_cntr = end->cntr[3];
	/* sleepers on the queues that were hidden meanwhile */
	if (unm_trigger_news(ep->domain))
		unm_disturb(ep);
	if (end->work->state == UNM_WORK_STARTS)
		end->work->state = UNM_WORK_ENDED;
	else
		unm_work_free(end->work);
}
