/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_work.c - deferred work under difficulties: flags that it cannot have,
 * full queues, peers that do not poll, and calls while another thread is about
 * to start the work. test_retry.c has work that the application's own calls
 * make possible again.
 */
#include <poll.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "api/unm_cntr.h"
#include "core/unm_cntr_value.h"
#include "lib/ep_work.h"
#include "lib/os_pair.h"
#include "trigger/unm_trigger.h"

#define STUCK	3000		/* more than a peer takes without polling */
#define WAYS	300		/* more than are tried in one poll */
#define CALL_US	20000		/* a call that does not wait has returned by
				 * then */

/* ---- Flags ----------------------------------------------------------- */

struct flagged {
	enum fi_op_type type;
	uint64_t flags;
};

static int queue_flagged(struct ep *e, const struct flagged *f,
			 struct fid_cntr *go)
{
	struct fi_op_rma rma = { .ep = e->ep, .flags = f->flags };
	struct fi_op_atomic a = { .ep = e->ep, .flags = f->flags };
	struct fi_op_fetch_atomic fa = { .ep = e->ep, .flags = f->flags };
	struct fi_op_compare_atomic ca = { .ep = e->ep, .flags = f->flags };
	struct work k;
	char b;

	switch (f->type) {
	case FI_OP_READ:
	case FI_OP_WRITE:
		return queue_op(e, f->type, &rma, go, 1, NULL);
	case FI_OP_ATOMIC:
		return queue_op(e, f->type, &a, go, 1, NULL);
	case FI_OP_FETCH_ATOMIC:
		return queue_op(e, f->type, &fa, go, 1, NULL);
	case FI_OP_COMPARE_ATOMIC:
		return queue_op(e, f->type, &ca, go, 1, NULL);
	default:
		work_msg(&k, f->type, e, &b, 0, 0, f->flags);
		return queue(e, &k, go, 1, NULL);
	}
}

static void test_flags(void **state)
{
	static const struct flagged bad[] = {
		{ FI_OP_TRECV, FI_PEEK }, { FI_OP_TRECV, FI_CLAIM },
		{ FI_OP_TRECV, FI_PEEK | FI_CLAIM },
		{ FI_OP_TRECV, FI_PEEK | FI_DISCARD },
		{ FI_OP_TRECV, FI_MULTI_RECV }, { FI_OP_RECV, FI_MULTI_RECV },
		{ FI_OP_RECV, FI_PEEK }, { FI_OP_SEND, FI_INJECT },
		{ FI_OP_TSEND, FI_INJECT }, { FI_OP_SEND, FI_PEEK },
		{ FI_OP_WRITE, FI_INJECT }, { FI_OP_ATOMIC, FI_INJECT },
		{ FI_OP_READ, FI_INJECT }, { FI_OP_READ, FI_REMOTE_CQ_DATA },
		{ FI_OP_ATOMIC, FI_REMOTE_CQ_DATA },
		{ FI_OP_FETCH_ATOMIC, FI_INJECT },
		{ FI_OP_COMPARE_ATOMIC, FI_INJECT },
		{ FI_OP_SEND, UINT64_C(1) << 55 },
		{ FI_OP_RECV, UINT64_C(1) << 62 },
	};
	static const struct flagged good[] = {
		{ FI_OP_RECV, FI_COMPLETION | FI_MORE },
		{ FI_OP_TRECV, FI_COMPLETION | FI_TRIGGER },
		{ FI_OP_SEND, FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA },
		{ FI_OP_TSEND, FI_TRANSMIT_COMPLETE | FI_MORE },
		{ FI_OP_WRITE, FI_COMPLETION | FI_REMOTE_CQ_DATA },
		{ FI_OP_READ, FI_COMPLETION },
		{ FI_OP_ATOMIC, FI_DELIVERY_COMPLETE },
		{ FI_OP_FETCH_ATOMIC, FI_COMPLETION },
		{ FI_OP_COMPARE_ATOMIC, FI_COMPLETION },
	};
	struct ep *e = ep_open(NULL);
	struct fid_cntr *go = open_cntr(e);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (queue_flagged(e, &bad[i], go) != -FI_ENOSYS)
			unit_fail("flags %zu were taken", i);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (queue_flagged(e, &good[i], go) != 0)
			unit_fail("flags %zu were refused", i);
	assert_int_equal(fi_control(&e->domain->fid, FI_FLUSH_WORK, NULL), 0);
	assert_int_equal(fi_close(&go->fid), 0);
}

/* ---- A full queue ---------------------------------------------------- */

/* Waits for a counter of a; a's queue is not read. */
static void until(struct ep_pair *p, struct fid_cntr *cntr, uint64_t value)
{
	uint64_t end = ep_deadline();

	while (fi_cntr_read(cntr) < value) {
		ep_poll(p->b);
		ep_in_time(end, "work beside a full queue");
	}
}

/* Sends messages to the two receives of a. */
static void send_back(struct ep_pair *p, char *out)
{
	uint64_t end = ep_deadline();

	while (fi_inject(p->b->ep, out, 1, p->ba) != 0)
		stir(p, end);
	while (fi_tinject(p->b->ep, out, 1, p->ba, 9) != 0)
		stir(p, end);
}

/* Queues a write, and a sum that fetches the written value. */
static void access_beside(struct ep_pair *p, struct fid_cntr *go,
			  struct fid_cntr *done, uint64_t n)
{
	uint64_t mem = 7, v[3] = { 8, 1, 0 };
	struct iovec iov = { &v[0], 8 };
	struct fi_rma_iov remote = { 0, 8, 3 };
	struct fi_ioc ioc = { &v[1], 1 }, result = { &v[2], 1 };
	struct fi_rma_ioc rioc = { 0, 1, 3 };
	struct fi_op_rma rma = { .ep = p->a->ep, .msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p->ab,
		.rma_iov = &remote, .rma_iov_count = 1 } };
	struct fi_op_fetch_atomic f = { .ep = p->a->ep, .msg = {
		.msg_iov = &ioc, .iov_count = 1, .addr = p->ab,
		.rma_iov = &rioc, .rma_iov_count = 1,
		.datatype = FI_UINT64, .op = FI_SUM },
		.fetch = { .msg_iov = &result, .iov_count = 1 } };
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(p->b->domain, &mem, 8, FI_REMOTE_READ |
				   FI_REMOTE_WRITE, 0, 3, 0, &mr, NULL), 0);
	assert_int_equal(queue_op(p->a, FI_OP_WRITE, &rma, go, 0, done), 0);
	until(p, done, n + 1);
	assert_int_equal(queue_op(p->a, FI_OP_FETCH_ATOMIC, &f, go, 0, done),
			 0);
	until(p, done, n + 2);
	assert_int_equal(v[2], 8);
	assert_int_equal(mem, 9);
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* FI_COMPLETION of the work decides whether it needs an entry, not the flags
 * with which the endpoint is bound to the queue. */
static void test_full_queue(void **state)
{
	struct ep_want want = { .cntrs = true, .cq_size = WORK_FULL };
	struct ep_pair p = ep_pair(&want);
	struct fid_cntr *go = open_cntr(p.a), *done = open_cntr(p.a);
	char in[2] = { 0, 0 }, out = 5;
	struct work k;

	fill_queue(&p, WORK_FULL);
	assert_int_equal(fi_send(p.a->ep, &out, 1, NULL, p.ab, NULL),
			 -FI_EAGAIN);
	for (int i = 0; i < 2; i++) {
		work_msg(&k, i == 0 ? FI_OP_RECV : FI_OP_TRECV, p.a, &in[i],
			 FI_ADDR_UNSPEC, 9, 0);
		assert_int_equal(queue(p.a, &k, go, 0, done), 0);
	}
	send_back(&p, &out);
	until(&p, done, 2);
	assert_int_equal(in[0] + in[1], 10);
	for (int i = 0; i < 2; i++) {
		work_msg(&k, i == 0 ? FI_OP_SEND : FI_OP_TSEND, p.a, &out,
			 p.ab, 9, 0);
		assert_int_equal(queue(p.a, &k, go, 0, done), 0);
		until(&p, done, 3 + i);
	}
	access_beside(&p, go, done, 4);
	/* work that needs an entry waits for space in the queue */
	work_msg(&k, FI_OP_SEND, p.a, &out, p.ab, 0, FI_COMPLETION);
	assert_int_equal(queue(p.a, &k, go, 0, done), 0);
	EP_FOR_US(1000) {
		assert_int_equal(fi_cntr_read(done), 6);
		ep_poll(p.b);
	}
	ep_sent(p.a, &k.w.context);
	assert_int_equal(fi_cntr_read(done), 7);
	assert_int_equal(fi_close(&p.a->ep->fid), 0);
	p.a->ep = NULL;
	EP_CLOSE(&go->fid, &done->fid);
}

/* ---- Peers that do not poll ------------------------------------------ */

/* Check that unm_trigger_run() has nothing left to do, so that a thread may
 * sleep although work waits. */
static void sleeps_over_it(struct ep *e)
{
	for (int i = 0, idle = 0; ep_inside() && idle < 200; i++) {
		struct unm_domain *domain = unm_domain(e->domain);
		int ret;

		unm_lock(domain);
		ret = unm_trigger_run(domain);
		unm_unlock(domain);
		idle = ret == 0 ? idle + 1 : 0;
		assert_true(i < 10000);
	}
}

/* b does not poll. All work to b is refused, by however many addresses; work to
 * the third endpoint is executed, by any address. */
static void test_many_addresses_of_stopped_peers(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep_pair p = trigger_pair();
	struct ep *third = ep_open(&want);
	struct fid_cntr *go = open_cntr(p.a), *done = open_cntr(p.a);
	char out = 1, in;
	struct work k;

	for (int i = 0; i < WAYS; i++)
		EP_OK(fi_recv(third->ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
	for (int i = 0; i < STUCK; i++) {
		work_msg(&k, FI_OP_SEND, p.a, &out, p.ab, 0, 0);
		assert_int_equal(queue(p.a, &k, go, 1, done), 0);
	}
	for (int i = 0; i < WAYS; i++) {
		work_msg(&k, FI_OP_SEND, p.a, &out, ep_insert(p.a, p.b), 0, 0);
		assert_int_equal(queue(p.a, &k, go, 2, done), 0);
	}
	for (int i = 0; i < WAYS; i++) {
		work_msg(&k, FI_OP_SEND, p.a, &out, ep_insert(p.a, third), 0,
			 0);
		assert_int_equal(queue(p.a, &k, go, 3, done), 0);
	}
	fi_cntr_add(go, 3);
	for (uint64_t end = ep_deadline();
	     fi_cntr_read(third->rxcntr) < WAYS; ) {
		fi_cntr_read(done);
		ep_in_time(end, "work behind work for stopped peers");
	}
	assert_true(fi_cntr_read(done) < STUCK + WAYS);
	sleeps_over_it(p.a);
	/* work that is left is dropped with the endpoint */
	assert_int_equal(fi_close(&p.a->ep->fid), 0);
	p.a->ep = NULL;
	EP_CLOSE(&go->fid, &done->fid);
}

/* ---- Work that a call makes ready ------------------------------------ */

/* The operation that completes inside a call of a: a send, or a put into dmable
 * memory. */
enum inside { A_SEND, A_PUT, INSIDES };

struct waker {
	struct os_pair p;
	struct fid *fid;		/* a's queue */
	int fd;				/* descriptor of that queue */
	struct fid_cntr *done;
	char in[2], out, sent;
};

/* Two connected endpoints; only the test polls a. */
static void waker_open(struct waker *k, enum inside inside)
{
	const struct ep_want want = { .wait = FI_WAIT_FD,
				      .threading = FI_THREAD_SAFE,
				      .cntrs = true };
	const struct ep_want any = { .threading = FI_THREAD_SAFE };

	k->p = os_open_as(inside == A_PUT ? OS_DMABLE : OS_REQUESTS, 64, &want,
			  &any);
	k->fid = &k->p.a->cq->fid;
	assert_int_equal(fi_control(k->fid, FI_GETWAIT, &k->fd), 0);
	k->done = open_cntr(k->p.a);
	for (int i = 0; i < 2; i++)
		EP_OK(fi_recv(k->p.b->ep, &k->in[i], 1, NULL, FI_ADDR_UNSPEC,
			      &k->in[i]));
	ep_settle();
}

static void waker_close(struct waker *k)
{
	while (k->p.a->ncomp != 0)
		ep_next(k->p.a);
	ep_settle();
	assert_int_equal(fi_close(&k->done->fid), 0);
	os_close(&k->p);
}

/* Queues a send that starts after one more completed operation of a. */
static void waker_arm(struct waker *k, enum inside inside)
{
	struct fid_cntr *cntr = inside == A_PUT ? k->p.wr : k->p.a->txcntr;
	struct work w;

	k->sent = 2;
	work_msg(&w, FI_OP_SEND, k->p.a, &k->sent, k->p.ab, 0, 0);
	assert_int_equal(queue(k->p.a, &w, cntr, fi_cntr_read(cntr) + 1,
			       k->done), 0);
}

/* The operation completes before the call returns, so polls have nothing to do
 * but the work that it made ready. */
static void complete_inside(struct waker *k, enum inside inside)
{
	k->out = 1;
	if (inside == A_PUT) {
		uint64_t direct = os_direct(&k->p);

		assert_int_equal(fi_inject_write(k->p.a->ep, &k->out, 1,
						 k->p.ab, 0, k->p.key), 0);
		k->p.nwr++;
		assert_int_equal(os_direct(&k->p), direct + 1);
	} else {
		assert_int_equal(fi_inject(k->p.a->ep, &k->out, 1, k->p.ab),
				 0);
	}
}

/* Polls only b: the work was started by the call, or never is. */
static void work_left(struct waker *k, int message)
{
	uint64_t end = ep_deadline();
	struct ep_comp c;

	while (!ep_take(k->p.b, &k->in[message], &c)) {
		ep_poll(k->p.b);
		ep_in_time(end, "work that was set off inside a call");
	}
	assert_int_equal(k->in[message], 2);
}

/* As fi_poll(3) says: read, fi_trywait(), and block only if that succeeds,
 * which takes a few polls at most if nothing happens. */
static void until_trywait(struct waker *k)
{
	for (int polls = 0; fi_trywait(k->p.a->fabric, &k->fid, 1) != 0;
	     polls++) {
		assert_true(polls < 100);
		ep_poll(k->p.a);
	}
}

static bool readable(struct waker *k)
{
	struct pollfd pfd = { .fd = k->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void trywait_case(enum inside inside, bool agreed)
{
	struct waker k;
	int message = inside == A_SEND;

	waker_open(&k, inside);
	waker_arm(&k, inside);
	until_trywait(&k);
	if (!agreed)			/* withdraws the permission */
		ep_poll(k.p.a);
	complete_inside(&k, inside);
	if (agreed)
		assert_true(readable(&k));
	until_trywait(&k);
	work_left(&k, message);
	waker_close(&k);
}

/* Ready work is started before fi_trywait() permits to block. */
static void test_trywait_knows_of_ready_work(void **state)
{
	trywait_case(A_SEND, false);
	if (os_runs(OS_DMABLE))
		trywait_case(A_PUT, false);
}

/* A thread that was allowed to block is woken by a call that starts work, made
 * by itself or by another thread. */
static void test_ready_work_wakes_the_descriptor(void **state)
{
	trywait_case(A_SEND, true);
	if (os_runs(OS_DMABLE))
		trywait_case(A_PUT, true);
}

/* b takes the messages that have come. */
static void drain(struct waker *k)
{
	static char sink;

	EP_OK(fi_recv(k->p.b->ep, &sink, 1, NULL, FI_ADDR_UNSPEC, &sink));
	ep_poll(k->p.b);
	k->p.b->ncomp = 0;
}

/* While a peer refuses the work, the thread may sleep. Once there is space, it
 * is woken and the work is started. */
static void test_refused_work_may_be_slept_over(void **state)
{
	uint64_t end = ep_deadline();
	const _Atomic uint64_t *done;
	struct waker k;
	struct work w;

	waker_open(&k, A_SEND);
	done = &unm_cntr(k.done)->value;
	while (fi_inject(k.p.a->ep, "", 1, k.p.ab) == 0)
		;
	work_msg(&w, FI_OP_SEND, k.p.a, &k.sent, k.p.ab, 0, 0);
	assert_int_equal(queue(k.p.a, &w, k.p.a->txcntr, 1, k.done), 0);
	until_trywait(&k);
	assert_int_equal(unm_cntr_get(done), 0);
	while (!readable(&k)) {
		drain(&k);
		ep_in_time(end, "a wake-up");
	}
	for (; unm_cntr_get(done) == 0; until_trywait(&k)) {
		drain(&k);
		ep_in_time(end, "refused work");
	}
	waker_close(&k);
}

/* The same, and then another thread removes the index that the work names: the
 * sleeper is woken, because the work ends in an error now. */
static void test_removal_wakes_for_refused_work(void **state)
{
	struct waker k;
	struct work w;

	waker_open(&k, A_SEND);
	while (fi_inject(k.p.a->ep, "", 1, k.p.ab) == 0)
		;
	work_msg(&w, FI_OP_SEND, k.p.a, &k.sent, k.p.ab, 0, 0);
	assert_int_equal(queue(k.p.a, &w, k.p.a->txcntr, 1, k.done), 0);
	until_trywait(&k);
	assert_false(readable(&k));
	assert_int_equal(fi_av_remove(k.p.a->av, &k.p.ab, 1, 0), 0);
	assert_true(readable(&k));
	until_trywait(&k);
	assert_int_equal(fi_cntr_readerr(k.done), 1);
	waker_close(&k);
}

/* ---- While work is being started ------------------------------------- */

/* Replaces the endpoint's calls: they block until leave is set. */
static struct {
	struct fi_ops_msg ops, *real;
	_Atomic bool inside, leave;
	bool refuse;
} gate;

static void pass_gate(void)
{
	atomic_store(&gate.inside, true);
	while (!atomic_load(&gate.leave))
		sched_yield();
}

static ssize_t gate_send(struct fid_ep *ep, const struct fi_msg *msg,
			 uint64_t flags)
{
	pass_gate();
	return gate.refuse ? -FI_EAGAIN : gate.real->sendmsg(ep, msg, flags);
}

static ssize_t gate_recv(struct fid_ep *ep, const struct fi_msg *msg,
			 uint64_t flags)
{
	pass_gate();
	return gate.refuse ? -FI_EAGAIN : gate.real->recvmsg(ep, msg, flags);
}

static void gate_shut(struct ep *e, bool refuse)
{
	gate.real = e->ep->msg;
	gate.ops = *e->ep->msg;
	gate.ops.sendmsg = gate_send;
	gate.ops.recvmsg = gate_recv;
	gate.inside = false;
	gate.leave = false;
	gate.refuse = refuse;
	e->ep->msg = &gate.ops;
}

static void *set_off(void *cntr)
{
	fi_cntr_add(cntr, 1);
	return NULL;
}

/* A call that is made meanwhile. */
struct call {
	struct ep *e;
	struct fid_cntr *go;
	enum { CANCEL, CANCEL_WORK, FLUSH, CLOSE } what;
	void *arg;
	ssize_t ret;
	_Atomic bool over;
	bool early;			/* returned before leave was set */
	pthread_t starter, thread;
};

static void *caller(void *arg)
{
	struct call *c = arg;

	if (c->what == CANCEL)
		c->ret = fi_cancel(&c->e->ep->fid, c->arg);
	else if (c->what == CLOSE)
		c->ret = fi_close(&c->e->ep->fid);
	else
		c->ret = fi_control(&c->e->domain->fid, c->what == FLUSH ?
				    FI_FLUSH_WORK : FI_CANCEL_WORK, c->arg);
	atomic_store(&c->over, true);
	return NULL;
}

static void begin(struct call *c)
{
	c->over = false;
	c->starter = unit_thread(set_off, c->go);
	while (!gate.inside)
		sched_yield();
	c->thread = unit_thread(caller, c);
	usleep(CALL_US);
	c->early = c->over;
}

static ssize_t end(struct call *c)
{
	gate.leave = true;
	pthread_join(c->starter, NULL);
	pthread_join(c->thread, NULL);
	if (c->what == CLOSE)
		c->e->ep = NULL;
	else
		c->e->ep->msg = gate.real;
	assert_false(c->early);
	return c->ret;
}

/* Queues work of this type that waits for its counter. */
static void give(struct ep_pair *p, struct work *k, enum fi_op_type type,
		 struct fid_cntr *go, char *buf)
{
	work_msg(k, type, p->a, buf, type == FI_OP_SEND ? p->ab :
		 FI_ADDR_UNSPEC, 0, FI_COMPLETION);
	assert_int_equal(queue(p->a, k, go, fi_cntr_read(go) + 1, NULL), 0);
}

/* Work that the endpoint refuses in the end is cancelled or flushed; work that
 * was started is not found. */
static void test_cancel_of_what_starts(void **state)
{
	struct ep_pair p = trigger_pair();
	struct call c = { .e = p.a, .go = open_cntr(p.a) };
	char out = 1, in = 0;
	struct work k;

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	for (int i = 0; i < 3; i++) {
		c.what = i == 0 ? CANCEL_WORK : FLUSH;
		c.arg = i == 0 ? (void *)&k.w : i == 1 ? (void *)c.go : NULL;
		give(&p, &k, FI_OP_SEND, c.go, &out);
		gate_shut(p.a, true);
		begin(&c);
		assert_int_equal(end(&c), 0);
		ep_pair_quiet(&p);
	}
	c.what = CANCEL_WORK;
	c.arg = &k.w;
	give(&p, &k, FI_OP_SEND, c.go, &out);
	gate_shut(p.a, false);
	begin(&c);
	assert_int_equal(end(&c), -FI_ENOENT);
	ep_sent(p.a, &k.w.context);
	ep_received(p.b, &in);
	assert_int_equal(fi_close(&c.go->fid), 0);
}

/* A receive is cancelled whether it was posted meanwhile or refused. */
static void test_cancel_of_receives(void **state)
{
	struct ep_pair p = trigger_pair();
	struct call c = { .e = p.a, .go = open_cntr(p.a), .what = CANCEL };
	char in;
	struct iovec iov = { &in, 1 };
	struct fi_triggered_context ctx;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = &ctx };
	struct work k;

	for (int refuse = 0; refuse < 2; refuse++) {
		ctx = at(c.go, fi_cntr_read(c.go) + 1);
		assert_int_equal(fi_recvmsg(p.a->ep, &msg, FI_TRIGGER), 0);
		c.arg = &ctx;
		gate_shut(p.a, refuse);
		begin(&c);
		assert_int_equal(end(&c), 0);
		assert_int_equal(ep_wait(p.a, &ctx).err, FI_ECANCELED);
	}
	give(&p, &k, FI_OP_RECV, c.go, &in);
	c.arg = &k.w.context;
	gate_shut(p.a, false);
	begin(&c);
	assert_int_equal(end(&c), 0);
	assert_int_equal(ep_wait(p.a, &k.w.context).err, FI_ECANCELED);
	ep_quiet(p.a);
	assert_int_equal(fi_close(&c.go->fid), 0);
}

/* The endpoint is closed while work is being started, refused or not, and while
 * other work is under way that nothing ends. */
static void test_close(void **state)
{
	static char big[200000];

	for (int refuse = 0; refuse < 2; refuse++) {
		struct ep_pair p = trigger_pair();
		struct call c = { .e = p.a, .go = open_cntr(p.a),
				  .what = CLOSE };
		struct fid_cntr *done = open_cntr(p.a);
		struct work k;
		char b = 0;

		work_msg(&k, FI_OP_SEND, p.a, big, p.ab, 0, 0);
		k.iov.iov_len = sizeof(big);
		assert_int_equal(queue(p.a, &k, c.go, 0, done), 0);
		work_msg(&k, FI_OP_TRECV, p.a, &b, p.ab, 0, 0);
		assert_int_equal(queue(p.a, &k, c.go, 0, done), 0);
		work_msg(&k, FI_OP_SEND, p.a, &b, p.ab, 0, 0);
		assert_int_equal(queue(p.a, &k, c.go, 100, done), 0);
		ep_settle();
		give(&p, &k, FI_OP_SEND, c.go, &b);
		gate_shut(p.a, refuse);
		begin(&c);
		assert_int_equal(end(&c), 0);
		assert_int_equal(fi_cntr_read(done), 0);
		EP_CLOSE(&done->fid, &c.go->fid);
		ep_teardown(NULL);
	}
}

/* A child closes the inherited objects, although the thread that was starting
 * work does not exist in it. */
static int close_inherited(struct ep *e, struct fid_cntr *go)
{
	alarm(60);
	return fi_close(&e->ep->fid) != 0 ? 1 :
		fi_close(&go->fid) != 0 ? 2 :
		fi_close(&e->cq->fid) != 0 ? 3 :
		fi_close(&e->txcntr->fid) != 0 ? 4 :
		fi_close(&e->rxcntr->fid) != 0 ? 5 :
		fi_close(&e->av->fid) != 0 ? 6 :
		fi_close(&e->domain->fid) != 0 ? 7 : 0;
}

static void test_fork(void **state)
{
	struct ep_pair p = trigger_pair();
	struct fid_cntr *go = open_cntr(p.a);
	pthread_t starter;
	char out = 1, in = 0;
	struct work k;
	int status;
	pid_t pid;

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	give(&p, &k, FI_OP_SEND, go, &out);
	gate_shut(p.a, false);
	starter = unit_thread(set_off, go);
	while (!gate.inside)
		sched_yield();
	pid = unit_fork();
	if (pid == 0)
		_exit(close_inherited(p.a, go));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	gate.leave = true;
	pthread_join(starter, NULL);
	assert_int_equal(status, 0);
	ep_sent(p.a, &k.w.context);
	ep_received(p.b, &in);
	p.a->ep->msg = gate.real;
	assert_int_equal(fi_close(&go->fid), 0);
}

int main(void)
{
	/* tests here assert that nothing wakes a sleeper */
	setenv("FI_UNIMEM_SLEEP_MS", "0", 1);

	const struct CMUnitTest tests[] = {
		EP_TEST(test_flags),
		EP_TEST(test_full_queue),
		EP_TEST(test_many_addresses_of_stopped_peers),
		EP_TEST_INSIDE(test_trywait_knows_of_ready_work),
		EP_TEST_INSIDE(test_ready_work_wakes_the_descriptor),
		EP_TEST_INSIDE(test_refused_work_may_be_slept_over),
		EP_TEST_INSIDE(test_removal_wakes_for_refused_work),
		EP_TEST(test_cancel_of_what_starts),
		EP_TEST(test_cancel_of_receives),
		EP_TEST(test_close),
		EP_TEST(test_fork),
	};

	return unit_run(tests);
}
