/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_deferred.c - deferred work of fi_trigger(3): the application's request is
 * checked here and queued by trigger/unm_trigger.c.
 */
#include "api/unm_deferred.h"
#include "core/unm_cntr_value.h"
#include "core/unm_ep_state.h"
#include "trigger/unm_trigger.h"
#include "trigger/unm_work.h"
#include "unm_log.h"
#include "unm_offer.h"
#include "unm_refuse.h"

#define UNM_WORK_TYPES							\
	"FI_OP_RECV, FI_OP_SEND, FI_OP_TRECV, FI_OP_TSEND, "		\
	"FI_OP_READ, FI_OP_WRITE, FI_OP_ATOMIC, FI_OP_FETCH_ATOMIC, "	\
	"FI_OP_COMPARE_ATOMIC, FI_OP_CNTR_SET, FI_OP_CNTR_ADD"

/* Convert the application's structure to a call and its endpoint; *ep is NULL
 * for an operation on a counter. */
static int unm_work_parse(const struct fi_deferred_work *work,
			  struct unm_call *call, struct fid_ep **ep)
{
	const struct fi_op_compare_atomic *ca = work->op.compare_atomic;
	const struct fi_op_fetch_atomic *fa = work->op.fetch_atomic;
	char type[UNM_NAMES_MAX];

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
		UNM_INFO(DOMAIN, "deferred operation %s asked, offered: "
			 UNM_WORK_TYPES "\n",
			 unm_value_name(FI_TYPE_OP_TYPE, work->op_type, type,
					sizeof(type)));
		return -FI_ENOSYS;
	}
#undef UNM_PARSE
	return *ep != NULL && (*ep)->fid.fclass == FI_CLASS_EP ?
		0 : -FI_EINVAL;
}

/* The flags that deferred work may have: none that make an operation complete
 * more than once (FI_MULTI_RECV) or read its buffer during the call
 * (FI_INJECT). */
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
	char asked[UNM_NAMES_MAX], type[64], offered[UNM_NAMES_MAX];
	bool counts = work->completion_cntr != NULL;
	uint64_t flags;

	if (!unm_cntr_of(domain, work->triggering_cntr) ||
	    (counts && !unm_cntr_of(domain, work->completion_cntr)))
		return -FI_EINVAL;
	if (ep == NULL)
		return !counts && unm_cntr_of(domain, work->op.cntr->cntr) ?
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
		UNM_INFO(DOMAIN, "flags %s asked of deferred %s, offered: %s\n",
			 unm_value_name(FI_TYPE_OP_FLAGS, call->flags & ~flags,
					asked, sizeof(asked)),
			 unm_value_name(FI_TYPE_OP_TYPE, call->type, type,
					sizeof(type)),
			 unm_value_name(FI_TYPE_OP_FLAGS, flags, offered,
					sizeof(offered)));
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
	like.ep = ep != NULL ? unm_ep(ep) : NULL;
	ret = unm_work_check(domain, work, &call, like.ep);
	if (ret != 0)
		return ret;
	call.flags &= ~FI_TRIGGER;
	like.cntr = unm_cntr(work->triggering_cntr);
	like.threshold = work->threshold;
	if (work->completion_cntr != NULL)
		like.d.done = unm_cntr(work->completion_cntr);
	return unm_work_append(domain, &like, &call);
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
		if (arg != NULL && !unm_cntr_of(domain, arg))
			return -FI_EINVAL;
		unm_work_cancel(domain, NULL, arg);
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
