/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trigger.c - fi_trigger(3): operations with FI_TRIGGER, also through
 * aliases, and deferred work. An operation whose threshold is not reached does
 * not start; the rest are executed once, in order.
 */
#include "lib/ep_work.h"
#include "core/unm_op.h"

#define MANY	3000		/* more than a peer takes at once */

/* The vector and the message are overwritten afterwards, because the call has
 * copied them. */
static ssize_t send_at(struct ep *e, void *buf, fi_addr_t to,
		       struct fi_triggered_context *ctx, uint64_t flags)
{
	struct iovec iov = { buf, 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to,
			      .context = ctx };
	ssize_t ret = fi_sendmsg(e->ep, &msg, flags | FI_TRIGGER |
				 FI_COMPLETION);

	memset(&iov, 0xff, sizeof(iov));
	memset(&msg, 0xff, sizeof(msg));
	return ret;
}

/* ---- FI_TRIGGER ------------------------------------------------------ */

/* A second endpoint in e's domain without FI_TRIGGER. */
static struct ep *without(struct ep *e)
{
	struct ep_want want = { .caps = FI_MSG, .threading = FI_THREAD_SAFE,
				.with = e };

	return ep_open(&want);
}

static void test_refusals(void **state)
{
	struct ep_pair p = trigger_pair();
	struct ep *not = without(p.a);
	struct fi_triggered_context ctx;
	struct fid_cntr *c, *foreign;
	struct iovec iov[9] = { { NULL, 0 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 9 };
	struct fi_msg_tagged tmsg = { .msg_iov = iov, .iov_count = 1 };
	char b = 0;

	c = open_cntr(p.a);
	foreign = open_cntr(p.b);
	ctx = at(c, 1);
	assert_int_equal(send_at(not, &b, ep_insert(not, p.b), &ctx, 0),
			 -FI_EBADFLAGS);
	assert_int_equal(send_at(p.a, &b, p.ab, NULL, 0), -FI_EINVAL);
	assert_int_equal(send_at(p.a, &b, p.ab, &ctx, FI_INJECT),
			 -FI_ENOSYS);
	assert_int_equal(send_at(p.a, &b, p.ab, &ctx, FI_PEEK),
			 -FI_EBADFLAGS);
	ctx.event_type = FI_TRIGGER_XPU;
	assert_int_equal(send_at(p.a, &b, p.ab, &ctx, 0), -FI_ENOSYS);
	ctx = at(foreign, 1);
	assert_int_equal(send_at(p.a, &b, p.ab, &ctx, 0), -FI_EINVAL);
	ctx = at(NULL, 1);
	assert_int_equal(send_at(p.a, &b, p.ab, &ctx, 0), -FI_EINVAL);
	ctx = at(c, 1);
	msg.context = &ctx;		/* nine elements of at most eight */
	assert_int_equal(fi_sendmsg(p.a->ep, &msg, FI_TRIGGER), -FI_EINVAL);
	/* a flag of the provider is refused */
	msg.iov_count = 1;
	assert_int_equal(fi_sendmsg(p.a->ep, &msg, UNM_OP_WORK),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(p.a->ep, &msg, UNM_OP_WORK),
			 -FI_EBADFLAGS);
	tmsg.context = &ctx;
	assert_int_equal(fi_tsendmsg(p.a->ep, &tmsg, UNM_OP_WORK),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_trecvmsg(p.a->ep, &tmsg, UNM_OP_WORK),
			 -FI_EBADFLAGS);
	EP_CLOSE(&foreign->fid, &c->fid);
	ep_quiet(p.a);
}

/* In the order of thresholds, and of the calls for equal thresholds. */
static void test_order(void **state)
{
	static const size_t threshold[] = { 3, 1, 2, 2, 4 };
	static const int order[] = { 1, 2, 3, 0 };
	struct fi_triggered_context ctx[5];
	struct ep_pair p = trigger_pair();
	struct fid_cntr *c = open_cntr(p.a);
	char out[5] = { 0, 1, 2, 3, 4 }, in[5];

	for (int i = 0; i < 5; i++)
		EP_OK(fi_recv(p.b->ep, &in[i], 1, NULL, FI_ADDR_UNSPEC,
			      &in[i]));
	for (int i = 0; i < 5; i++) {
		ctx[i] = at(c, threshold[i]);
		assert_int_equal(send_at(p.a, &out[i], p.ab, &ctx[i], 0), 0);
	}
	ep_quiet(p.b);
	ep_quiet(p.a);
	assert_int_equal(fi_close(&c->fid), -FI_EBUSY);
	fi_cntr_adderr(c, 9);		/* errors do not count */
	ep_quiet(p.a);
	fi_cntr_add(c, 3);
	for (int i = 0; i < 4; i++) {
		ep_sent(p.a, &ctx[order[i]]);
		ep_received(p.b, &in[i]);
		assert_int_equal(in[i], order[i]);
	}
	ep_quiet(p.a);
	/* if the threshold is reached already, it starts at once */
	ctx[0] = at(c, 2);
	assert_int_equal(send_at(p.a, &out[0], p.ab, &ctx[0], 0), 0);
	ep_sent(p.a, &ctx[0]);
	ep_received(p.b, &in[4]);
	assert_int_equal(in[4], 0);
	/* an operation that was not triggered is dropped with its endpoint */
	assert_int_equal(fi_close(&p.a->ep->fid), 0);
	p.a->ep = NULL;
	assert_int_equal(fi_close(&c->fid), 0);
}

/* A receive that is posted when a first message has come, and a send when that
 * receive is complete: by counters of endpoints. */
static void test_chain_of_messages(void **state)
{
	struct fi_triggered_context ctx[3];
	struct ep_pair p = trigger_pair();
	char in[2] = { 0, 0 }, out[2] = { 7, 8 }, back = 0;
	struct iovec iov = { &in[1], 1 }, tiov = { &in[1], 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = &ctx[0] };
	struct fi_msg_tagged tmsg = { .msg_iov = &tiov, .iov_count = 1,
				      .tag = 5, .context = &ctx[1] };

	tmsg.addr = p.ba;
	EP_OK(fi_recv(p.b->ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, &in[0]));
	EP_OK(fi_trecv(p.a->ep, &back, 1, NULL, p.ab, 5, 0, &back));
	ctx[0] = at(p.b->rxcntr, 1);
	ctx[1] = at(p.b->rxcntr, 2);
	assert_int_equal(fi_recvmsg(p.b->ep, &msg, FI_TRIGGER |
				    FI_COMPLETION), 0);
	assert_int_equal(fi_tsendmsg(p.b->ep, &tmsg, FI_TRIGGER |
				     FI_COMPLETION), 0);
	EP_OK(fi_inject(p.a->ep, &out[1], 1, p.ab));
	EP_OK(fi_inject(p.a->ep, &out[0], 1, p.ab));
	ep_received(p.b, &in[0]);
	assert_int_equal(ep_received(p.b, &ctx[0]).len, 1);
	ep_sent(p.b, &ctx[1]);
	ep_received(p.a, &back);
	assert_int_equal(in[0], 8);
	assert_int_equal(in[1], 7);
	assert_int_equal(back, 7);
	/* and a tagged receive */
	ctx[2] = at(p.b->txcntr, 1);
	tmsg = (struct fi_msg_tagged){ .msg_iov = &tiov, .iov_count = 1,
				       .addr = FI_ADDR_UNSPEC, .tag = 9,
				       .context = &ctx[2] };
	EP_OK(fi_tinject(p.a->ep, &out[1], 1, p.ab, 9));
	assert_int_equal(fi_trecvmsg(p.b->ep, &tmsg, FI_TRIGGER |
				     FI_COMPLETION), 0);
	assert_int_equal(ep_received(p.b, &ctx[2]).tag, 9);
	assert_int_equal(in[1], 8);
}

static void test_cancel(void **state)
{
	struct fi_triggered_context ctx;
	struct ep_pair p = trigger_pair();
	struct fid_cntr *c = open_cntr(p.a);
	struct ep_comp comp;
	char out = 1;

	ctx = at(c, 1);
	assert_int_equal(fi_cancel(&p.a->ep->fid, &ctx), -FI_ENOENT);
	assert_int_equal(send_at(p.a, &out, p.ab, &ctx, 0), 0);
	assert_int_equal(fi_cancel(&p.a->ep->fid, &ctx), 0);
	comp = ep_wait(p.a, &ctx);
	assert_int_equal(comp.err, FI_ECANCELED);
	assert_int_equal(fi_cancel(&p.a->ep->fid, &ctx), -FI_ENOENT);
	fi_cntr_add(c, 1);
	ep_quiet(p.a);
	assert_int_equal(fi_close(&c->fid), 0);
	/* an operation that fails when it is started is reported as an error */
	c = open_cntr(p.a);
	ctx = at(c, 1);
	assert_int_equal(send_at(p.a, &out, 12345, &ctx, 0), 0);
	fi_cntr_add(c, 1);
	assert_int_not_equal(ep_wait(p.a, &ctx).err, 0);
	assert_int_equal(fi_close(&c->fid), 0);
}

/* ---- Deferred work --------------------------------------------------- */

static void test_deferred_messages(void **state)
{
	struct work k[4];
	struct fid_cntr *go, *sent, *got;
	struct ep_pair p = trigger_pair();
	char in[2] = { 0, 0 }, out[2] = { 5, 6 };

	go = open_cntr(p.a);
	sent = open_cntr(p.a);
	got = open_cntr(p.b);
	work_msg(&k[0], FI_OP_RECV, p.b, &in[0], FI_ADDR_UNSPEC, 0, 0);
	work_msg(&k[1], FI_OP_TRECV, p.b, &in[1], FI_ADDR_UNSPEC, 77, 0);
	assert_int_equal(queue(p.b, &k[0], got, 0, got), 0);
	assert_int_equal(queue(p.b, &k[1], got, 1, got), 0);
	work_msg(&k[2], FI_OP_SEND, p.a, &out[0], p.ab, 0, 0);
	work_msg(&k[3], FI_OP_TSEND, p.a, &out[1], p.ab, 77, 0);
	assert_int_equal(queue(p.a, &k[2], go, 2, sent), 0);
	assert_int_equal(queue(p.a, &k[3], sent, 1, sent), 0);
	ep_settle();
	assert_int_equal(fi_cntr_read(sent), 0);
	/* successes and errors both count */
	fi_cntr_add(go, 1);
	fi_cntr_adderr(go, 1);
	EP_UNTIL(fi_cntr_read(sent) == 2 && fi_cntr_read(got) == 2);
	assert_int_equal(in[0], 5);
	assert_int_equal(in[1], 6);
	/* no other completion is reported */
	ep_pair_quiet(&p);
	assert_int_equal(fi_cntr_read(p.a->txcntr), 0);
	assert_int_equal(fi_cntr_read(p.b->rxcntr), 0);
	EP_CLOSE(&go->fid, &sent->fid, &got->fid);
}

/* FI_COMPLETION: the work also writes an entry; long messages complete later;
 * errors. */
static void test_deferred_completions(void **state)
{
	static char big_in[200000], big_out[200000];
	struct fid_cntr *go, *done;
	struct work k, r;
	struct ep_pair p = trigger_pair();
	char in, out = 3;

	go = open_cntr(p.a);
	done = open_cntr(p.a);
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	work_msg(&k, FI_OP_SEND, p.a, &out, p.ab, 0, FI_COMPLETION);
	assert_int_equal(queue(p.a, &k, go, 0, done), 0);
	ep_sent(p.a, &k.w.context);
	ep_received(p.b, &in);
	assert_int_equal(fi_cntr_read(done), 1);
	/* rendezvous, both sides deferred */
	memset(big_out, 9, sizeof(big_out));
	work_msg(&r, FI_OP_RECV, p.b, big_in, p.ba, 0, FI_COMPLETION);
	r.iov.iov_len = sizeof(big_in);
	assert_int_equal(queue(p.b, &r, p.b->rxcntr, 1, NULL), 0);
	work_msg(&k, FI_OP_SEND, p.a, big_out, p.ab, 0, FI_COMPLETION);
	k.iov.iov_len = sizeof(big_out);
	assert_int_equal(queue(p.a, &k, go, 0, done), 0);
	ep_sent(p.a, &k.w.context);
	assert_int_equal(ep_received(p.b, &r.w.context).len, sizeof(big_in));
	assert_memory_equal(big_in, big_out, sizeof(big_in));
	assert_int_equal(fi_cntr_read(done), 2);
	/* an invalid address: one error, and an entry if requested */
	for (int entry = 0; entry < 2; entry++) {
		work_msg(&k, FI_OP_SEND, p.a, &out, 4711, 0,
			 entry ? FI_COMPLETION : 0);
		assert_int_equal(queue(p.a, &k, go, 0, done), 0);
		assert_int_equal(fi_cntr_readerr(done), entry + 1);
		if (entry)
			assert_int_not_equal(ep_wait(p.a, &k.w.context).err,
					     0);
	}
	assert_int_equal(fi_cntr_readerr(p.a->txcntr), 0);
	/* a posted receive is cancelled by its context */
	work_msg(&r, FI_OP_RECV, p.b, &in, p.ba, 0, FI_COMPLETION);
	assert_int_equal(queue(p.b, &r, p.b->rxcntr, 0, NULL), 0);
	assert_int_equal(fi_cancel(&p.b->ep->fid, &r.w.context), 0);
	assert_int_equal(ep_wait(p.b, &r.w.context).err, FI_ECANCELED);
	EP_CLOSE(&go->fid, &done->fid);
}

/* As fabtests do: one structure for two works, changed in between. */
static void test_deferred_counters(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_cntr *go = open_cntr(e), *c = open_cntr(e);
	struct work k;

	k.w.op_type = FI_OP_CNTR_SET;
	k.w.op.cntr = &k.op.cntr;
	k.op.cntr = (struct fi_op_cntr){ c, 5 };
	assert_int_equal(queue(e, &k, go, 3, NULL), 0);
	k.w.op_type = FI_OP_CNTR_ADD;
	k.op.cntr = (struct fi_op_cntr){ c, 6 };
	assert_int_equal(queue(e, &k, go, 3, NULL), 0);
	/* deferred work can trigger other work */
	k.op.cntr = (struct fi_op_cntr){ go, 100 };
	assert_int_equal(queue(e, &k, c, 11, NULL), 0);
	fi_cntr_add(go, 2);
	assert_int_equal(fi_cntr_read(c), 0);
	assert_int_equal(fi_close(&c->fid), -FI_EBUSY);
	fi_cntr_add(go, 1);
	assert_int_equal(fi_cntr_wait(c, 11, -1), 0);
	assert_int_equal(fi_cntr_read(c), 11);
	assert_int_equal(fi_cntr_wait(go, 103, -1), 0);
	EP_CLOSE(&c->fid, &go->fid);
}

static void test_deferred_refusals(void **state)
{
	struct fi_deferred_work none = { .op_type = FI_OP_SEND };
	struct ep_pair p = trigger_pair();
	struct fid_cntr *c, *foreign;
	struct ep *not = without(p.a);
	struct work k;
	struct fid *domain = &p.a->domain->fid;
	char b;

	c = open_cntr(p.a);
	foreign = open_cntr(p.b);
	assert_int_equal(fi_control(domain, FI_QUEUE_WORK, NULL), -FI_EINVAL);
	assert_int_equal(fi_control(domain, FI_QUEUE_WORK, &none),
			 -FI_EINVAL);
	assert_int_equal(fi_control(domain, FI_CANCEL_WORK, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_control(domain, FI_FLUSH_WORK, p.a->cq),
			 -FI_EINVAL);
	work_msg(&k, FI_OP_SEND, p.a, &b, p.ab, 0, 0);
	assert_int_equal(queue(p.a, &k, NULL, 1, NULL), -FI_EINVAL);
	work_msg(&k, FI_OP_SEND, p.a, &b, p.ab, 0, 0);
	assert_int_equal(queue(p.a, &k, foreign, 1, NULL), -FI_EINVAL);
	work_msg(&k, FI_OP_SEND, p.a, &b, p.ab, 0, 0);
	assert_int_equal(queue(p.a, &k, c, 1, foreign), -FI_EINVAL);
	work_msg(&k, FI_OP_SEND, p.b, &b, p.ab, 0, 0);
	assert_int_equal(queue(p.a, &k, c, 1, NULL), -FI_EINVAL);
	work_msg(&k, FI_OP_RECV, p.a, &b, p.ab, 0, FI_MULTI_RECV);
	assert_int_equal(queue(p.a, &k, c, 1, NULL), -FI_ENOSYS);
	work_msg(&k, FI_OP_SEND, p.a, &b, p.ab, 0, 0);
	k.w.op_type = 99;
	assert_int_equal(queue(p.a, &k, c, 1, NULL), -FI_ENOSYS);
	work_msg(&k, FI_OP_SEND, p.a, &b, p.ab, 0, 0);
	k.op.msg.ep = NULL;
	assert_int_equal(queue(p.a, &k, c, 1, NULL), -FI_EINVAL);
	work_msg(&k, FI_OP_SEND, not, &b, 0, 0, 0);
	assert_int_equal(queue(p.a, &k, c, 1, NULL), -FI_EOPNOTSUPP);
	k.w.op_type = FI_OP_CNTR_ADD;
	k.w.op.cntr = &k.op.cntr;
	k.op.cntr = (struct fi_op_cntr){ foreign, 1 };
	assert_int_equal(queue(p.a, &k, c, 1, NULL), -FI_EINVAL);
	k.op.cntr = (struct fi_op_cntr){ c, 1 };
	assert_int_equal(queue(p.a, &k, c, 1, c), -FI_EINVAL);
	assert_int_equal(fi_control(domain, FI_GETWAIT, &b), -FI_ENOSYS);
	EP_CLOSE(&c->fid, &foreign->fid);
}

static void test_cancel_and_flush(void **state)
{
	struct fid_cntr *c, *d;
	struct work k[3];
	struct ep_pair p = trigger_pair();
	struct fid *domain = &p.a->domain->fid;
	char out = 1;

	c = open_cntr(p.a);
	d = open_cntr(p.a);
	for (int i = 0; i < 3; i++) {
		work_msg(&k[i], FI_OP_SEND, p.a, &out, p.ab, 0, 0);
		assert_int_equal(queue(p.a, &k[i], i < 2 ? c : d, 1,
				       p.a->txcntr), 0);
	}
	assert_int_equal(fi_control(domain, FI_CANCEL_WORK, &k[0].w), 0);
	assert_int_equal(fi_control(domain, FI_CANCEL_WORK, &k[0].w),
			 -FI_ENOENT);
	assert_int_equal(fi_control(domain, FI_FLUSH_WORK, d), 0);
	fi_cntr_add(d, 5);
	fi_cntr_add(c, 5);
	EP_UNTIL(fi_cntr_read(p.a->txcntr) == 1);
	assert_int_equal(fi_control(domain, FI_CANCEL_WORK, &k[1].w),
			 -FI_ENOENT);
	ep_settle();
	assert_int_equal(fi_cntr_read(p.a->txcntr), 1);
	for (int i = 0; i < 3; i++) {
		work_msg(&k[i], FI_OP_SEND, p.a, &out, p.ab, 0, 0);
		assert_int_equal(queue(p.a, &k[i], c, 100 + i, NULL), 0);
	}
	assert_int_equal(fi_close(&c->fid), -FI_EBUSY);
	assert_int_equal(fi_control(domain, FI_FLUSH_WORK, NULL), 0);
	EP_CLOSE(&c->fid, &d->fid);
}

/* More work than can be started at once: refused work is retried in order,
 * while work for another peer continues. */
static void test_refused_work_is_tried_again(void **state)
{
	struct fid_cntr *go, *done;
	uint32_t *out = ep_alloc(MANY * sizeof(*out)), in = 0;
	struct ep_pair p = trigger_pair();
	struct ep *third = ep_open(NULL);
	fi_addr_t at3 = ep_insert(p.a, third);
	struct work k;
	char c = 1, in3 = 0;
	uint64_t end;

	go = open_cntr(p.a);
	done = open_cntr(p.a);
	for (uint32_t i = 0; i < MANY; i++) {
		out[i] = i;
		work_msg(&k, FI_OP_SEND, p.a, &out[i], p.ab, 0, 0);
		k.iov.iov_len = 4;
		assert_int_equal(queue(p.a, &k, go, 1, done), 0);
	}
	work_msg(&k, FI_OP_SEND, p.a, &c, at3, 0, 0);
	assert_int_equal(queue(p.a, &k, go, 2, done), 0);
	EP_OK(fi_recv(third->ep, &in3, 1, NULL, FI_ADDR_UNSPEC, &in3));
	fi_cntr_add(go, 2);
	/* b does not poll; the third endpoint gets its message nevertheless */
	end = ep_deadline();
	while (in3 == 0) {
		fi_cntr_read(go);
		fi_cntr_read(done);
		ep_poll(third);
		ep_in_time(end, "work behind work that is refused");
	}
	assert_true(fi_cntr_read(done) < MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		EP_OK(fi_recv(p.b->ep, &in, 4, NULL, p.ba, &in));
		ep_received(p.b, &in);
		assert_int_equal(in, i);
	}
	EP_UNTIL(fi_cntr_read(done) == MANY + 1);
	assert_int_equal(fi_cntr_readerr(done), 0);
	EP_CLOSE(&go->fid, &done->fid);
}

/* ---- Aliases --------------------------------------------------------- */

/* As rdm_rma_trigger does: a call without flags through an alias whose default
 * flag is FI_TRIGGER. */
static void test_alias_triggers(void **state)
{
	struct fi_triggered_context ctx;
	struct fid_ep *alias = NULL;
	struct ep_pair p = trigger_pair();
	struct work k;
	char out = 4, in = 0;

	assert_int_equal(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT |
				     FI_TRIGGER | FI_COMPLETION), 0);
	ctx = at(p.a->rxcntr, 1);
	assert_int_equal(fi_send(alias, &out, 1, NULL, p.ab, &ctx), 0);
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	ep_quiet(p.b);
	fi_cntr_add(p.a->rxcntr, 1);
	ep_sent(p.a, &ctx);
	ep_received(p.b, &in);
	/* deferred work may name an alias */
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	work_msg(&k, FI_OP_SEND, p.a, &out, p.ab, 0, 0);
	k.op.msg.ep = alias;
	assert_int_equal(queue(p.a, &k, p.a->rxcntr, 0, NULL), 0);
	ep_received(p.b, &in);
	assert_int_equal(fi_close(&alias->fid), 0);
}

/* ---- One-sided ------------------------------------------------------- */

/* A write, a read of what it wrote, and atomics on that: each starts when the
 * one before is complete. */
static void onesided_chain(struct ep_pair *p, struct fid_cntr *go,
			   struct fid_cntr *done, uint64_t key, uint64_t *v)
{
	struct iovec iov = { &v[0], 8 };
	struct fi_rma_iov remote = { 0, 8, key };
	struct fi_ioc ioc = { &v[2], 1 }, result = { &v[3], 1 };
	struct fi_ioc compare = { &v[4], 1 };
	struct fi_rma_ioc rioc = { 0, 1, key };
	struct fi_op_rma rma = { .ep = p->a->ep, .msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p->ab,
		.rma_iov = &remote, .rma_iov_count = 1 } };
	struct fi_op_atomic a = { .ep = p->a->ep, .msg = {
		.msg_iov = &ioc, .iov_count = 1, .addr = p->ab,
		.rma_iov = &rioc, .rma_iov_count = 1,
		.datatype = FI_UINT64, .op = FI_SUM } };
	struct fi_op_fetch_atomic f = { .ep = p->a->ep, .msg = a.msg,
		.fetch = { .msg_iov = &result, .iov_count = 1 } };
	struct fi_op_compare_atomic c = { .ep = p->a->ep, .msg = a.msg,
		.fetch = { .msg_iov = &result, .iov_count = 1 },
		.compare = { .msg_iov = &compare, .iov_count = 1 } };

	assert_int_equal(queue_op(p->a, FI_OP_WRITE, &rma, go, 1, done), 0);
	iov.iov_base = &v[1];
	assert_int_equal(queue_op(p->a, FI_OP_READ, &rma, done, 1, done), 0);
	assert_int_equal(queue_op(p->a, FI_OP_ATOMIC, &a, done, 2, done), 0);
	assert_int_equal(queue_op(p->a, FI_OP_FETCH_ATOMIC, &f, done, 3,
				  done), 0);
	c.msg.op = FI_CSWAP;
	result.addr = &v[5];
	assert_int_equal(queue_op(p->a, FI_OP_COMPARE_ATOMIC, &c, done, 4,
				  done), 0);
	/* no region has this key: the completion is an error */
	remote.key = 12345;
	assert_int_equal(queue_op(p->a, FI_OP_WRITE, &rma, done, 5, done), 0);
	memset(&iov, 0xff, sizeof(iov));
	memset(&remote, 0xff, sizeof(remote));
	memset(&ioc, 0xff, sizeof(ioc));
	memset(&rioc, 0xff, sizeof(rioc));
}

static void test_deferred_onesided(void **state)
{
	uint64_t mem = 0, v[6] = { 40, 0, 2, 0, 44, 0 };
	struct fi_triggered_context ctx;
	struct fid_ep *alias = NULL;
	struct fid_cntr *go, *done;
	struct ep_pair p = trigger_pair();
	struct fid_mr *mr;

	go = open_cntr(p.a);
	done = open_cntr(p.a);
	assert_int_equal(fi_mr_reg(p.b->domain, &mem, 8, FI_REMOTE_READ |
				   FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL), 0);
	onesided_chain(&p, go, done, 7, v);
	ep_settle();
	assert_int_equal(mem, 0);
	fi_cntr_add(go, 1);
	EP_UNTIL(fi_cntr_read(done) == 5 && fi_cntr_readerr(done) == 1);
	assert_int_equal(v[1], 40);
	assert_int_equal(v[3], 42);	/* fetched before the second sum */
	assert_int_equal(v[5], 44);	/* equal, so it was swapped */
	assert_int_equal(mem, 2);
	ep_pair_quiet(&p);
	/* as rdm_rma_trigger does */
	assert_int_equal(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT |
				     FI_TRIGGER | FI_COMPLETION), 0);
	ctx = at(go, 2);
	assert_int_equal(fi_write(alias, &v[0], 8, NULL, p.ab, 0, 7, &ctx),
			 0);
	ep_settle();
	assert_int_equal(mem, 2);
	fi_cntr_add(go, 1);
	assert_int_equal(ep_wait(p.a, &ctx).err, 0);
	EP_UNTIL(mem == 40);
	ctx = at(go, 2);
	assert_int_equal(fi_fetch_atomic(alias, &v[2], 1, NULL, &v[3], NULL,
					 p.ab, 0, 7, FI_UINT64, FI_SUM, &ctx),
			 0);
	assert_int_equal(ep_wait(p.a, &ctx).err, 0);
	assert_int_equal(v[3], 40);
	assert_int_equal(mem, 42);
	EP_CLOSE(&alias->fid, &mr->fid, &go->fid, &done->fid);
}

/* ---- Threads --------------------------------------------------------- */

static void *count_up(void *arg)
{
	for (int i = 0; i < 1000; i++)
		fi_cntr_add(arg, 1);
	return NULL;
}

/* Two threads trigger work while two others wait for its completion. */
struct waiter {
	struct fid_cntr *cntr;
	int ret;
};

static void *await_all(void *arg)
{
	struct waiter *w = arg;

	w->ret = fi_cntr_wait(w->cntr, 2000, 120000);
	return NULL;
}

static void test_threads(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);
	struct fid_cntr *go = open_cntr(e), *done = open_cntr(e);
	struct waiter w[2] = { { done, 1 }, { done, 1 } };
	pthread_t thread[4];
	struct work k;

	for (int i = 1; i <= 2000; i++) {
		k.w.op_type = FI_OP_CNTR_ADD;
		k.w.op.cntr = &k.op.cntr;
		k.op.cntr = (struct fi_op_cntr){ done, 1 };
		assert_int_equal(queue(e, &k, go, i, NULL), 0);
	}
	for (int i = 0; i < 2; i++) {
		thread[i] = unit_thread(await_all, &w[i]);
		thread[2 + i] = unit_thread(count_up, go);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(w[0].ret, 0);
	assert_int_equal(w[1].ret, 0);
	assert_int_equal(fi_cntr_read(done), 2000);
	EP_CLOSE(&go->fid, &done->fid);
}

UNIT_MAIN(
	EP_TEST(test_refusals),
	EP_TEST(test_order),
	EP_TEST(test_chain_of_messages),
	EP_TEST(test_cancel),
	EP_TEST(test_deferred_messages),
	EP_TEST(test_deferred_completions),
	EP_TEST(test_deferred_counters),
	EP_TEST(test_deferred_refusals),
	EP_TEST(test_cancel_and_flush),
	EP_TEST(test_refused_work_is_tried_again),
	EP_TEST(test_alias_triggers),
	EP_TEST(test_deferred_onesided),
	EP_TEST(test_threads),
)
