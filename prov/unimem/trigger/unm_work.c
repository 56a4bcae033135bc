/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_work.c - copies the structures of a call that is queued as triggered or
 * deferred work (fi_trigger(3)), because the application may free them as soon
 * as the call returns. Starting and cancelling are in unm_trigger.c.
 */
#include <string.h>

#include "trigger/unm_work.h"
#include "unm_offer.h"

/* Copy a vector of count elements of so many bytes. -FI_EINVAL: it is longer
 * than UNM_IOV_MAX, or missing. */
static int unm_work_vector(void *to, const void *from, size_t count,
			   size_t bytes)
{
	if (count > UNM_IOV_MAX || (from == NULL && count != 0))
		return -FI_EINVAL;
	if (count != 0)
		memcpy(to, from, count * bytes);
	return 0;
}

/* Copy a message or an RMA call. Memory descriptors are left out: the provider
 * ignores them. */
static int unm_work_copy_msg(struct unm_work *w, const struct unm_call *call)
{
	int ret;

	switch (call->type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		w->m.msg = *(const struct fi_msg *)call->msg;
		ret = unm_work_vector(w->iov, w->m.msg.msg_iov,
				      w->m.msg.iov_count, sizeof(w->iov[0]));
		w->m.msg.msg_iov = w->iov;
		w->m.msg.desc = NULL;
		w->to = w->m.msg.addr;
		return ret;
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		w->m.tagged = *(const struct fi_msg_tagged *)call->msg;
		ret = unm_work_vector(w->iov, w->m.tagged.msg_iov,
				      w->m.tagged.iov_count,
				      sizeof(w->iov[0]));
		w->m.tagged.msg_iov = w->iov;
		w->m.tagged.desc = NULL;
		w->to = w->m.tagged.addr;
		return ret;
	default:
		w->m.rma = *(const struct fi_msg_rma *)call->msg;
		ret = unm_work_vector(w->iov, w->m.rma.msg_iov,
				      w->m.rma.iov_count, sizeof(w->iov[0]));
		if (ret == 0)
			ret = unm_work_vector(w->remote, w->m.rma.rma_iov,
					      w->m.rma.rma_iov_count,
					      sizeof(w->remote[0]));
		w->m.rma.msg_iov = w->iov;
		w->m.rma.rma_iov = w->remote;
		w->m.rma.desc = NULL;
		w->to = w->m.rma.addr;
		return ret;
	}
}

static int unm_work_copy_atomic(struct unm_work *w,
				const struct unm_call *call)
{
	struct fi_msg_atomic *a = &w->m.atomic;
	int ret;

	*a = *(const struct fi_msg_atomic *)call->msg;
	ret = unm_work_vector(w->iov, a->msg_iov, a->iov_count,
			      sizeof(w->iov[0]));
	if (ret == 0)
		ret = unm_work_vector(w->remote, a->rma_iov,
				      a->rma_iov_count, sizeof(w->remote[0]));
	a->msg_iov = (struct fi_ioc *)w->iov;
	a->rma_iov = (struct fi_rma_ioc *)w->remote;
	a->desc = NULL;
	w->to = a->addr;
	if (ret == 0 && call->fetch != NULL) {
		w->fetch = *call->fetch;
		ret = unm_work_vector(w->result, w->fetch.msg_iov,
				      w->fetch.iov_count,
				      sizeof(w->result[0]));
		w->fetch.msg_iov = w->result;
		w->fetch.desc = NULL;
	}
	if (ret == 0 && call->compare != NULL) {
		w->compare = *call->compare;
		ret = unm_work_vector(w->compared, w->compare.msg_iov,
				      w->compare.iov_count,
				      sizeof(w->compared[0]));
		w->compare.msg_iov = w->compared;
		w->compare.desc = NULL;
	}
	return ret;
}

int unm_work_copy(struct unm_work *w, const struct unm_call *call)
{
	switch (call->type) {
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		w->m.cntr = *(const struct fi_op_cntr *)call->msg;
		return 0;
	case FI_OP_ATOMIC:
	case FI_OP_FETCH_ATOMIC:
	case FI_OP_COMPARE_ATOMIC:
		return unm_work_copy_atomic(w, call);
	default:
		return unm_work_copy_msg(w, call);
	}
}
