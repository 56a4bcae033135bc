/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_retry.c - operations that the endpoint refuses until the application
 * itself frees what is missing: a blocked thread is woken then, and no thread
 * blocks before a retry.
 */
#include <poll.h>

#include <rdma/fi_rma.h>

#include "lib/ep_work.h"

/* Endpoints, and a counter of a on which a thread may block. */
struct waker {
	struct ep_pair p;
	struct fid *fid;		/* of done */
	int fd;				/* descriptor of done */
	struct fid_cntr *done;
	char in[2], sent;
};

static bool readable(struct waker *k)
{
	struct pollfd pfd = { .fd = k->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
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
	struct fi_rma_iov to = { .len = 1 };
	struct work w;
	struct fi_op_rma rma = { p.a->ep, { &w.iov, NULL, 1, p.ab, &to, 1, NULL,
				 0 }, FI_COMPLETION };

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
	work_msg(&w, type, p.a, &k->sent, p.ab, 0, FI_COMPLETION);
	EP_OK(type == FI_OP_WRITE ?
	      queue_op(p.a, type, &rma, p.a->txcntr, 0, k->done) :
	      queue(p.a, &w, p.a->txcntr, 0, k->done));
	for (int i = 0; fi_trywait(p.a->fabric, &k->fid, 1) != 0; i++)
		assert_true(i < 100 && fi_cntr_read(k->done) == 0);
	assert_false(readable(k));
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
		assert_true(readable(&k));
		assert_int_equal(fi_trywait(k.p.a->fabric, &k.fid, 1),
				 -FI_EAGAIN);
		fi_cntr_read(k.done);
		if (types[i / 2] == FI_OP_SEND)
			work_left(&k, 1);
		assert_int_equal(fi_close(&k.p.a->ep->fid), 0);
		k.p.a->ep = NULL;
		EP_CLOSE(k.fid);
		ep_close(k.p.a);
		ep_close(k.p.b);
	}
}

int main(void)
{
	/* tests here assert that nothing wakes a sleeper */
	setenv("FI_UNIMEM_SLEEP_MS", "0", 1);

	const struct CMUnitTest tests[] = {
		EP_TEST(test_reading_a_full_queue_retries_work),
	};

	return unit_run(tests);
}
