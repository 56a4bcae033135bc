/* SPDX-License-Identifier: BSD-2-Clause */
/* ep_work.h - triggered operations and deferred work (FI_QUEUE_WORK), for tests
 * of trigger/; uses ep_pair.h for endpoints */
#ifndef EP_WORK_H
#define EP_WORK_H

#include <rdma/fi_trigger.h>

#include "lib/ep_pair.h"

#define WORK_FULL	64	/* entries of the smallest queue */

/* Two endpoints with counters. */
static inline struct ep_pair trigger_pair(void)
{
	struct ep_want want = { .cntrs = true, .threading = FI_THREAD_SAFE };

	return ep_pair(&want);
}

static inline struct fid_cntr *open_cntr(struct ep *e)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(e->domain, NULL, &cntr, NULL), 0);
	return cntr;
}

/* The context of an operation that starts when cntr reaches the threshold. */
static inline struct fi_triggered_context at(struct fid_cntr *cntr,
					     size_t threshold)
{
	return (struct fi_triggered_context){
		.event_type = FI_TRIGGER_THRESHOLD,
		.trigger.threshold = { cntr, threshold },
	};
}

/* A deferred message operation and its arguments. The test owns it; w must stay
 * valid until the operation has completed. */
struct work {
	struct fi_deferred_work w;
	struct iovec iov;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_cntr cntr;
	} op;
};

/* Fill k with a send or receive of one byte; the caller may then change
 * k->iov.iov_len. type is FI_OP_SEND, _RECV, _TSEND or _TRECV; tag is ignored
 * for the first two. */
static inline void work_msg(struct work *k, enum fi_op_type type, struct ep *e,
			    void *buf, fi_addr_t to, uint64_t tag,
			    uint64_t flags)
{
	k->w.op_type = type;
	k->iov = (struct iovec){ buf, 1 };
	if (type == FI_OP_SEND || type == FI_OP_RECV) {
		k->op.msg = (struct fi_op_msg){ .ep = e->ep, .flags = flags };
		k->op.msg.msg.msg_iov = &k->iov;
		k->op.msg.msg.iov_count = 1;
		k->op.msg.msg.addr = to;
		k->op.msg.msg.context = &k->w.context;
		k->w.op.msg = &k->op.msg;
		return;
	}
	k->op.tagged = (struct fi_op_tagged){ .ep = e->ep, .flags = flags };
	k->op.tagged.msg.msg_iov = &k->iov;
	k->op.tagged.msg.iov_count = 1;
	k->op.tagged.msg.addr = to;
	k->op.tagged.msg.tag = tag;
	k->op.tagged.msg.context = &k->w.context;
	k->w.op.tagged = &k->op.tagged;
}

/* Queue k. Everything but k->w is then overwritten, because the provider must
 * have copied it. Returns what fi_control() returns. */
static inline int queue(struct ep *e, struct work *k, struct fid_cntr *trigger,
			uint64_t threshold, struct fid_cntr *done)
{
	int ret;

	k->w.triggering_cntr = trigger;
	k->w.threshold = threshold;
	k->w.completion_cntr = done;
	ret = fi_control(&e->domain->fid, FI_QUEUE_WORK, &k->w);
	memset(&k->iov, 0xff, sizeof(k->iov));
	memset(&k->op, 0xff, sizeof(k->op));
	return ret;
}

/* Queue an operation of any type, whose description is op. */
static inline int queue_op(struct ep *e, enum fi_op_type type, void *op,
			   struct fid_cntr *trigger, uint64_t threshold,
			   struct fid_cntr *done)
{
	struct fi_deferred_work w = {
		.triggering_cntr = trigger, .threshold = threshold,
		.completion_cntr = done, .op_type = type, .op.msg = op,
	};

	return fi_control(&e->domain->fid, FI_QUEUE_WORK, &w);
}

/* Makes progress on both sides while something may be refused. */
static inline void stir(struct ep_pair *p, uint64_t end)
{
	fi_cntr_read(p->a->txcntr);
	ep_poll(p->b);
	ep_in_time(end, "a message beside a full queue");
}

/* Fills a's queue by n sends. */
static inline void fill_queue(struct ep_pair *p, int n)
{
	static char out, in;
	uint64_t end = ep_deadline();

	for (int i = 0; i < n; i++)
		assert_int_equal(fi_recv(p->b->ep, &in, 1, NULL, p->ba, &in),
				 0);
	for (int i = 0; i < n; stir(p, end))
		i += fi_send(p->a->ep, &out, 1, NULL, p->ab, NULL) == 0;
}

#endif /* EP_WORK_H */
