/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_retry.c - operations that the endpoint refuses until the application
 * itself frees what is missing: a blocked thread is woken then, and no thread
 * blocks before a retry.
 */
#include <poll.h>

#include <rdma/fi_rma.h>

#include "lib/ep_work.h"

#define RX_SIZE	"64"		/* the smallest limit of posted receives */
#define RECVS	64		/* the same */

/* Endpoints, and a counter of a on which a thread may block. */
struct waker {
	struct ep_pair p;
	struct fid *fid;		/* of done */
	int fd;				/* descriptor of done */
	struct fid_cntr *done;
	struct fid_mr *mr;		/* of in, at b; NULL: none */
	struct work w;
	char in[2], sent;
};

static bool readable(struct waker *k)
{
	struct pollfd pfd = { .fd = k->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* As fi_poll(3) says: read, fi_trywait(), and block only if that succeeds. If
 * there is a peer, a message of the HAL, as while peers connect, may make the
 * descriptor readable at any time; without a peer nothing does after a
 * fi_trywait() that succeeds. The work, if any, is not started before. */
static void block(struct waker *k)
{
	uint64_t end = ep_deadline();

	for (;;) {
		bool blocks = fi_trywait(k->p.a->fabric, &k->fid, 1) == 0;
		bool events = readable(k);

		if (blocks && !events)
			return;
		assert_false(blocks && k->p.b == NULL);
		assert_int_equal(fi_cntr_read(k->done), 0);
		ep_in_time(end, "a moment without events");
	}
}

static void woken(struct waker *k)
{
	assert_true(readable(k));
	assert_int_equal(fi_trywait(k->p.a->fabric, &k->fid, 1), -FI_EAGAIN);
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

/* Polls until the work has completed. */
static void until_done(struct waker *k)
{
	for (uint64_t end = ep_deadline(); fi_cntr_read(k->done) == 0; ) {
		if (k->p.b != NULL)
			ep_poll(k->p.b);
		ep_in_time(end, "work that was refused");
	}
	assert_int_equal(fi_cntr_readerr(k->done), 0);
}

static void waker_close(struct waker *k)
{
	assert_int_equal(fi_close(&k->p.a->ep->fid), 0);
	k->p.a->ep = NULL;
	EP_CLOSE(k->fid);
	if (k->mr != NULL)
		EP_CLOSE(&k->mr->fid);
	ep_close(k->p.a);
	if (k->p.b != NULL)
		ep_close(k->p.b);
}

/* ---- A full completion queue ----------------------------------------- */

/* The queue of a is full and refuses work that is ready. Its first entry is an
 * error, if with_error. The thread may block on the counter of the work. */
static void full_open(struct waker *k, enum fi_op_type type, bool with_error)
{
	const struct ep_want want = { .wait = FI_WAIT_FD, .cntrs = true,
				      .threading = FI_THREAD_SAFE,
				      .cq_size = WORK_FULL };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_FD };
	struct ep_pair p = ep_pair(&want);
	struct fi_rma_iov to = { .len = 1, .key = 3 };
	struct fi_op_rma rma = { p.a->ep, { &k->w.iov, NULL, 1, p.ab, &to, 1,
				 NULL, 0 }, FI_COMPLETION };

	*k = (struct waker){ .p = p, .sent = 2 };
	EP_OK(fi_cntr_open(p.a->domain, &attr, &k->done, NULL));
	k->fid = &k->done->fid;
	EP_OK(fi_control(k->fid, FI_GETWAIT, &k->fd));
	if (with_error) {
		EP_OK(fi_recv(p.a->ep, k->in, 1, NULL, FI_ADDR_UNSPEC, k->in));
		EP_OK(fi_cancel(&p.a->ep->fid, k->in));
	}
	fill_queue(&p, WORK_FULL - with_error);
	EP_OK(fi_recv(p.b->ep, &k->in[1], 1, NULL, FI_ADDR_UNSPEC, &k->in[1]));
	if (type == FI_OP_WRITE)
		EP_OK(fi_mr_reg(p.b->domain, k->in, 1, FI_REMOTE_WRITE, 0, 3,
				0, &k->mr, NULL));
	work_msg(&k->w, type, p.a, type == FI_OP_RECV ? k->in : &k->sent, p.ab,
		 0, FI_COMPLETION);
	EP_OK(type == FI_OP_WRITE ?
	      queue_op(p.a, type, &rma, p.a->txcntr, 0, k->done) :
	      queue(p.a, &k->w, p.a->txcntr, 0, k->done));
	block(k);
}

/* A read makes space for work that the full queue refused, also in the polls of
 * this read: a blocked thread is woken, and none blocks before a retry. */
static void test_reading_a_full_queue_retries_work(void **state)
{
	static const enum fi_op_type types[] = { FI_OP_SEND, FI_OP_RECV,
						 FI_OP_WRITE };
	struct fi_cq_tagged_entry c[2 * WORK_FULL];
	struct fi_cq_err_entry err = { 0 };
	struct waker k;

	for (int i = 0; i < 6; i++) {
		full_open(&k, types[i / 2], i % 2);
		if (i % 2)
			assert_int_equal(fi_cq_readerr(k.p.a->cq, &err, 0), 1);
		else
			assert_int_equal(fi_cq_read(k.p.a->cq, c,
						    2 * WORK_FULL), WORK_FULL);
		woken(&k);
		fi_cntr_read(k.done);
		if (types[i / 2] == FI_OP_SEND)
			work_left(&k, 1);
		else if (types[i / 2] == FI_OP_RECV)
			EP_OK(fi_inject(k.p.b->ep, &k.sent, 1, k.p.ba));
		until_done(&k);
		assert_int_equal(k.in[types[i / 2] == FI_OP_SEND], 2);
		waker_close(&k);
	}
}

/* ---- Too many receives ----------------------------------------------- */

static void *first_recv;	/* context of the receive posted first */

/* Posts as many receives with tag 1 as a may have. */
static void post_all(struct ep *a)
{
	static char in[RECVS];

	first_recv = in;
	for (int i = 0; i < RECVS; i++)
		EP_OK(fi_trecv(a->ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, 1, 0,
			       &in[i]));
	assert_int_equal(fi_trecv(a->ep, in, 1, NULL, FI_ADDR_UNSPEC, 1, 0,
				  NULL), -FI_EAGAIN);
}

/* Searches a message with this tag, which also makes progress. */
static int peek(struct ep *a, uint64_t tag)
{
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = tag,
				     .context = &msg };

	EP_OK(fi_trecvmsg(a->ep, &msg, FI_PEEK));
	return ep_wait(a, &msg).err;
}

/* Work is refused because a has posted too many receives; the message for it is
 * stored. */
static void crowded_open(struct waker *k)
{
	const struct ep_want want = { .wait = FI_WAIT_FD, .cntrs = true,
				      .threading = FI_THREAD_SAFE };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_FD };
	uint64_t end = ep_deadline();

	*k = (struct waker){ .p = ep_pair(&want), .sent = 2 };
	EP_OK(fi_cntr_open(k->p.a->domain, &attr, &k->done, NULL));
	k->fid = &k->done->fid;
	EP_OK(fi_control(k->fid, FI_GETWAIT, &k->fd));
	EP_OK(fi_tinject(k->p.b->ep, &k->sent, 1, k->p.ba, 9));
	while (peek(k->p.a, 9) != 0)
		ep_in_time(end, "a message to be stored");
	post_all(k->p.a);
	work_msg(&k->w, FI_OP_TRECV, k->p.a, k->in, FI_ADDR_UNSPEC, 9, 0);
	EP_OK(queue(k->p.a, &k->w, k->p.a->txcntr, 0, k->done));
	block(k);
}

/* A receive ends by fi_cancel(), or by a message that FI_PEEK finds: the work
 * that was refused because of it starts. */
static void test_a_released_receive_retries_work(void **state)
{
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 7,
				     .context = &msg };
	struct fi_cq_err_entry err = { 0 };
	struct waker k;

	for (int by_peek = 0; by_peek < 2; by_peek++) {
		uint64_t end = ep_deadline();

		crowded_open(&k);
		if (by_peek)
			EP_OK(fi_tinject(k.p.b->ep, &k.sent, 1, k.p.ba, 1));
		else
			EP_OK(fi_cancel(&k.p.a->ep->fid, first_recv));
		while (k.p.a->ep->ops->rx_size_left(k.p.a->ep) == 0) {
			EP_OK(fi_trecvmsg(k.p.a->ep, &msg, FI_PEEK));
			/* Remove the entry of the peek, or the queue fills up.
			 * The call makes no progress. */
			fi_cq_readerr(k.p.a->cq, &err, 0);
			ep_in_time(end, "the end of a receive");
		}
		woken(&k);
		until_done(&k);
		assert_int_equal(k.in[0], 2);
		waker_close(&k);
	}
}

/* ---- Calls ----------------------------------------------------------- */

/* An endpoint without a peer, and a counter to which it is bound and that only
 * reads would increment. The smallest queue. */
static void alone_open(struct waker *k)
{
	const struct ep_want want = { .wait = FI_WAIT_FD, .disabled = true,
				      .threading = FI_THREAD_SAFE,
				      .cq_size = WORK_FULL };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_FD };
	struct ep *a = ep_open(&want);

	*k = (struct waker){ .p = { .a = a } };
	EP_OK(fi_cntr_open(a->domain, &attr, &k->done, NULL));
	k->fid = &k->done->fid;
	EP_OK(fi_control(k->fid, FI_GETWAIT, &k->fd));
	EP_OK(fi_ep_bind(a->ep, k->fid, FI_READ));
	EP_OK(fi_enable(a->ep));
	k->p.ab = ep_insert(a, a);
}

/* A receive that was refused because too many are posted. */
static void test_a_released_receive_signals_calls(void **state)
{
	struct fi_cq_err_entry err = { 0 };
	struct waker k;
	char in;

	alone_open(&k);
	post_all(k.p.a);
	block(&k);
	EP_OK(fi_cancel(&k.p.a->ep->fid, first_recv));
	woken(&k);
	assert_int_equal(fi_trecv(k.p.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1,
				  0, NULL), 0);
	assert_int_equal(fi_cq_readerr(k.p.a->cq, &err, 0), 1);
	block(&k);
	waker_close(&k);
}

/* A call that needs an entry of the queue of a. */
static ssize_t call_of_a(struct waker *k, int which)
{
	static const struct fi_msg_tagged any = { .addr = FI_ADDR_UNSPEC };

	if (which == 0)
		return fi_send(k->p.a->ep, &k->sent, 1, NULL, k->p.ab, NULL);
	if (which == 1)
		return fi_recv(k->p.a->ep, k->in, 1, NULL, FI_ADDR_UNSPEC,
			       k->in);
	return fi_trecvmsg(k->p.a->ep, &any, FI_PEEK);
}

/* Fill the queue of a, which is empty, with entries of cancelled receives. */
static void fill_alone(struct waker *k)
{
	for (int i = 0; i < WORK_FULL; i++) {
		EP_OK(fi_recv(k->p.a->ep, k->in, 1, NULL, FI_ADDR_UNSPEC,
			      k->in));
		EP_OK(fi_cancel(&k->p.a->ep->fid, k->in));
	}
}

/* Read n entries, which are errors. */
static void read_errors(struct waker *k, int n, int32_t want)
{
	for (int i = 0; i < n; i++) {
		struct fi_cq_err_entry err = { 0 };

		assert_int_equal(fi_cq_readerr(k->p.a->cq, &err, 0), 1);
		assert_int_equal(err.err, want);
	}
}

/* Calls that a full queue refused. No work waits. The queue accepts WORK_FULL
 * peeks before it refuses one. */
static void test_reading_a_full_queue_signals_calls(void **state)
{
	struct waker k;

	for (int which = 0; which < 3; which++) {
		int peeks = which == 2 ? WORK_FULL : 0;

		alone_open(&k);
		fill_alone(&k);
		for (int i = 0; i < peeks; i++)
			assert_int_equal(call_of_a(&k, which), 0);
		assert_int_equal(call_of_a(&k, which), -FI_EAGAIN);
		block(&k);
		read_errors(&k, peeks, FI_ECANCELED);
		assert_false(readable(&k));
		read_errors(&k, 1, peeks ? FI_ENOMSG : FI_ECANCELED);
		woken(&k);
		EP_OK(call_of_a(&k, which));
		waker_close(&k);
	}
}

/* MPI_Iprobe() of MPICH ends the job if FI_PEEK is refused, so a full queue
 * accepts FI_PEEK. The entries of peeks follow the entries before them. After
 * the queue was read below its limit, it accepts as many peeks as at first. */
static void test_a_full_queue_accepts_peeks(void **state)
{
	struct waker k;

	alone_open(&k);
	for (int n = 0; n < 3; n++) {
		fill_alone(&k);
		for (int i = 0; i < WORK_FULL; i++)
			assert_int_equal(call_of_a(&k, 2), 0);
		assert_int_equal(call_of_a(&k, 2), -FI_EAGAIN);
		read_errors(&k, WORK_FULL, FI_ECANCELED);
		read_errors(&k, WORK_FULL, FI_ENOMSG);
		ep_quiet(k.p.a);
	}
	waker_close(&k);
}

int main(void)
{
	/* tests here assert that nothing wakes a sleeper */
	setenv("FI_UNIMEM_SLEEP_MS", "0", 1);
	setenv("FI_UNIMEM_RX_SIZE", RX_SIZE, 1);

	const struct CMUnitTest tests[] = {
		EP_TEST(test_reading_a_full_queue_retries_work),
		EP_TEST(test_a_released_receive_retries_work),
		EP_TEST(test_a_released_receive_signals_calls),
		EP_TEST(test_reading_a_full_queue_signals_calls),
		EP_TEST(test_a_full_queue_accepts_peeks),
	};

	return unit_run(tests);
}
