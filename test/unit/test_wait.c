/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_wait.c - sleeping on completion queues: fi_cq_sread(), file descriptors,
 * fi_cq_signal(). The other side is a thread with an endpoint of another
 * domain.
 *
 * The tests fail if a wait never ends; they do not judge how long a wait
 * took.
 */
#include "hal/hal.h"
#include "lib/ep_wait.h"
#include "lib/ep_xfer.h"

struct hal_addr;
struct hal_if;
struct hal_peer;

static const struct ep_want with_fd = { .wait = FI_WAIT_FD };

/* ---- A peer in another thread ---------------------------------------- */

struct peer {
	struct ep *e;
	fi_addr_t to;
	pthread_t thread;
	long delay_ms;
	size_t len;
	int count;			/* messages it sends */
	int answers;			/* messages it waits for */
	int failed;			/* no asserts in another thread */
};

static int peer_send(struct peer *pe, void *buf)
{
	uint64_t end = ep_now() + LONG_MS * 1000;
	struct fi_cq_tagged_entry c;
	ssize_t ret;

	do {
		ret = fi_send(pe->e->ep, buf, pe->len, NULL, pe->to, buf);
		fi_cq_read(pe->e->cq, NULL, 0);
	} while (ret == -FI_EAGAIN && ep_now() < end);
	do {
		ret = fi_cq_read(pe->e->cq, &c, 1);
	} while (ret == -FI_EAGAIN && ep_now() < end);
	return ret == 1 ? 0 : -1;
}

static int peer_answer(struct peer *pe, void *buf)
{
	uint64_t end = ep_now() + LONG_MS * 1000;
	struct fi_cq_tagged_entry c;
	ssize_t ret;

	if (fi_recv(pe->e->ep, buf, pe->len, NULL, FI_ADDR_UNSPEC, buf) != 0)
		return -1;
	do {
		ret = fi_cq_read(pe->e->cq, &c, 1);
	} while (ret == -FI_EAGAIN && ep_now() < end);
	return ret == 1 ? 0 : -1;
}

static void *peer_main(void *arg)
{
	struct peer *pe = arg;
	char *buf = malloc(pe->len);

	xfer_fill(buf, pe->len, pe->len, 0);
	for (int i = 0; i < pe->count && !pe->failed; i++) {
		usleep(pe->delay_ms * 1000);
		pe->failed = peer_send(pe, buf) != 0;
	}
	for (int i = 0; i < pe->answers && !pe->failed; i++) {
		usleep(pe->delay_ms * 1000);
		pe->failed = peer_answer(pe, buf) != 0;
	}
	free(buf);
	return NULL;
}

static void peer_start(struct peer *pe)
{
	pe->thread = unit_thread(peer_main, pe);
}

static void peer_end(struct peer *pe)
{
	pthread_join(pe->thread, NULL);
	assert_int_equal(pe->failed, 0);
}

/* Connects both before threads start, because the fixture polls all
 * endpoints. */
static struct ep_pair connected(const struct ep_want *want)
{
	struct ep_pair p = ep_pair(want);
	char c = 0;

	EP_OK(fi_recv(p.a->ep, &c, 1, NULL, p.ab, &c));
	EP_OK(fi_recv(p.b->ep, &c, 1, NULL, p.ba, &c));
	EP_OK(fi_inject(p.a->ep, &c, 1, p.ab));
	EP_OK(fi_inject(p.b->ep, &c, 1, p.ba));
	ep_received(p.a, &c);
	ep_received(p.b, &c);
	ep_quiet(p.a);
	return p;
}

/* ---- fi_cq_sread ----------------------------------------------------- */

static void test_sread_times_out(void **state)
{
	struct ep_pair p = connected(&with_fd);
	struct fi_cq_tagged_entry e;
	uint64_t start = ep_now();
	fi_addr_t src;

	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, 30), -FI_EAGAIN);
	assert_true(ep_now() - start >= 30000);
	start = ep_now();
	assert_int_equal(fi_cq_sreadfrom(p.b->cq, &e, 1, &src, NULL, 250),
			 -FI_EAGAIN);
	assert_true(ep_now() - start >= 250000);
}

/* A thread that reads the queue of sends until stop is set. */
struct other {
	struct ep *e;
	long nap;			/* ms in between */
	_Atomic bool stop;
};

static void *read_sends(void *arg)
{
	struct other *o = arg;
	struct fi_cq_tagged_entry c;

	while (!atomic_load(&o->stop)) {
		fi_cq_read(o->e->txcq, &c, 1);
		if (o->nap != 0)
			usleep(o->nap * 1000);
	}
	return NULL;
}

/* fi_cq_sread() sleeps, in rounds of 100 ms, and does not keep polling: alone,
 * and while another thread reads another queue of the same endpoint now and
 * then. A call that kept polling would do so some 100,000 times. */
static void test_sread_sleeps(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD, .two_cqs = true,
				.threading = FI_THREAD_SAFE };
	struct other o = { .nap = 5 };
	struct fi_cq_tagged_entry e;
	struct unm_stats was, is;
	struct ep_pair p = connected(&want);
	pthread_t thread = 0;

	o.e = p.b;
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			thread = unit_thread(read_sends, &o);
		was = stats_of(p.b->ep);
		assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, 250),
				 -FI_EAGAIN);
		is = stats_of(p.b->ep);
		assert_in_range(is.sleeps - was.sleeps, 1, 1000);
		assert_in_range(is.polls - was.polls, 0, 20000);
	}
	atomic_store(&o.stop, true);
	pthread_join(thread, NULL);
}

static void test_sread_without_a_wait_object(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_cq_tagged_entry e;
	int fd;

	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_signal(p.b->cq), -FI_ENOSYS);
	assert_int_equal(fi_control(&p.b->cq->fid, FI_GETWAIT, &fd),
			 -FI_ENOSYS);
}

static void sread_one(enum fi_wait_obj wait, size_t len, int timeout)
{
	struct ep_want want = { .wait = wait };
	struct ep_pair p = connected(&want);
	struct peer pe = { .e = p.a, .to = p.ab, .delay_ms = 30, .len = len,
			   .count = 3 };
	char *in = malloc(len);

	peer_start(&pe);
	for (int i = 0; i < 3; i++) {
		struct fi_cq_tagged_entry e = { 0 };
		ssize_t ret;

		EP_TRY(fi_recv(p.b->ep, in, len, NULL, FI_ADDR_UNSPEC, in));
		ret = fi_cq_sread(p.b->cq, &e, 1, NULL, timeout);
		assert_int_equal(ret, 1);
		assert_ptr_equal(e.op_context, in);
		assert_int_equal(e.len, len);
		assert_true(xfer_filled(in, len, len, 0));
		memset(in, 0, len);
	}
	peer_end(&pe);
	free(in);
	ep_pair_close(&p);
}

static void test_sread_wakes_for_a_message(void **state)
{
	static const size_t lens[] = { 8, 4000, 100000, 2000000 };

	for (int i = 0; i < 4; i++) {
		sread_one(FI_WAIT_FD, lens[i], LONG_MS);
		sread_one(FI_WAIT_UNSPEC, lens[i], -1);
	}
}

/* A sender sleeps until its rendezvous or delivery completes. */
static void test_sread_wakes_for_the_end_of_a_send(void **state)
{
	static const size_t lens[] = { 8, 4000, 100000, 2000000 };

	for (int i = 0; i < 4; i++) {
		struct ep_want want = with_fd;
		struct fi_cq_tagged_entry e = { 0 };
		struct peer pe = { .delay_ms = 50, .len = lens[i],
				   .answers = 1 };
		char *out = malloc(lens[i]);
		struct ep_pair p;

		want.tx_op_flags = FI_DELIVERY_COMPLETE;
		p = connected(&want);
		pe.e = p.b;
		peer_start(&pe);
		xfer_fill(out, lens[i], lens[i], 0);
		assert_int_equal(fi_send(p.a->ep, out, lens[i], NULL, p.ab,
					 out), 0);
		assert_int_equal(fi_cq_sread(p.a->cq, &e, 1, NULL, LONG_MS),
				 1);
		assert_ptr_equal(e.op_context, out);
		peer_end(&pe);
		free(out);
		ep_pair_close(&p);
	}
}

/* If there is an entry, the call does not sleep, also if it is an error. */
static void test_sread_returns_what_is_there(void **state)
{
	struct ep_pair p = connected(&with_fd);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	char in;

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	assert_int_equal(fi_cancel(&p.b->ep->fid, &in), 0);
	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, -1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(p.b->cq, &err, 0), 1);
	assert_int_equal(err.err, FI_ECANCELED);
}

/* ---- Descriptors ----------------------------------------------------- */

static int cq_fd(struct fid_cq *cq)
{
	enum fi_wait_obj obj;
	int fd = -1;

	assert_int_equal(fi_control(&cq->fid, FI_GETWAITOBJ, &obj), 0);
	assert_int_equal(obj, FI_WAIT_FD);
	assert_int_equal(fi_control(&cq->fid, FI_GETWAIT, &fd), 0);
	assert_true(fd >= 0);
	return fd;
}

/*
 * Waits until fi_trywait() permits to block on these descriptors and nothing
 * wakes the caller for ms. Single wake-ups without an event are allowed, an
 * endless series is not. ms is less than 20, the interval at which the register
 * model polls.
 */
static void fall_asleep(struct ep *e, struct fid **fids, struct pollfd *pfd,
			int n, int ms)
{
	uint64_t end = ep_deadline();

	for (;;) {
		EP_OK(fi_trywait(e->fabric, fids, n));
		if (poll(pfd, n, ms) == 0)
			return;
		ep_step();
		ep_in_time(end, "falling asleep");
	}
}

/* The loop of fi_poll(3): fi_trywait(), then block; a wake-up may be without an
 * event. */
static void wait_on_fd(struct ep *e, struct fid_cq *cq, void *ctx)
{
	struct fid *fids[] = { &cq->fid };
	struct pollfd pfd = { .fd = cq_fd(cq), .events = POLLIN };
	uint64_t end = ep_now() + (uint64_t)LONG_MS * 1000;
	struct fi_cq_tagged_entry c = { 0 };

	for (;;) {
		ssize_t ret = fi_cq_read(cq, &c, 1);

		if (ret == 1)
			break;
		assert_int_equal(ret, -FI_EAGAIN);
		ret = fi_trywait(e->fabric, fids, 1);
		if (ret == 0)
			assert_int_not_equal(poll(&pfd, 1, LONG_MS), 0);
		else
			assert_int_equal(ret, -FI_EAGAIN);
		ep_in_time(end, "fi_trywait");
	}
	assert_ptr_equal(c.op_context, ctx);
}

static void test_fd_becomes_readable(void **state)
{
	static const size_t lens[] = { 8, 4000, 100000, 2000000 };

	for (int i = 0; i < 4; i++) {
		struct ep_pair p = connected(&with_fd);
		struct peer pe = { .e = p.a, .to = p.ab, .delay_ms = 30,
				   .len = lens[i], .count = 3 };
		char *in = malloc(lens[i]);

		peer_start(&pe);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(fi_recv(p.b->ep, in, lens[i], NULL,
						 FI_ADDR_UNSPEC, in), 0);
			wait_on_fd(p.b, p.b->cq, in);
			assert_true(xfer_filled(in, lens[i], lens[i], 0));
		}
		peer_end(&pe);
		free(in);
		ep_pair_close(&p);
	}
}

static void test_trywait_refuses_when_an_entry_is_there(void **state)
{
	struct ep_pair p = connected(&with_fd);
	struct fid *fids[2] = { &p.b->cq->fid, &p.b->cq->fid };
	struct fi_cq_err_entry err = { 0 };
	char in;

	assert_int_equal(EP_TRY(fi_trywait(p.b->fabric, fids, 1)), 0);
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	assert_int_equal(fi_cancel(&p.b->ep->fid, &in), 0);
	assert_int_equal(fi_trywait(p.b->fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_trywait(p.b->fabric, fids, 2), -FI_EAGAIN);
	assert_int_equal(fi_cq_readerr(p.b->cq, &err, 0), 1);
	fids[0] = &p.b->av->fid;
	assert_int_equal(fi_trywait(p.b->fabric, fids, 1), -FI_EINVAL);
}

/* Two queues of one endpoint: one thread blocks on the descriptor of the
 * receive queue while another reads the send queue, and thereby receives the
 * message. */
static void test_fd_wakes_for_progress_of_another_thread(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD, .two_cqs = true,
				.threading = FI_THREAD_SAFE };
	struct ep_pair p = connected(&want);
	struct other o = { .e = p.b };
	pthread_t thread;
	char in[8], out[8];

	xfer_fill(out, 8, 8, 0);
	for (int i = 0; i < 20; i++) {
		struct fid *fids[] = { &p.b->cq->fid };
		struct pollfd pfd = { .fd = cq_fd(p.b->cq), .events = POLLIN };
		ssize_t sent;
		int ret;

		EP_OK(fi_recv(p.b->ep, in, 8, NULL, FI_ADDR_UNSPEC, in));
		EP_OK(fi_trywait(p.b->fabric, fids, 1));
		/* from here on this thread counts as blocked */
		atomic_store(&o.stop, false);
		thread = unit_thread(read_sends, &o);
		usleep(i % 4 * 1000);
		sent = fi_inject(p.a->ep, out, 8, p.ab);
		ret = sent == 0 ? poll(&pfd, 1, LONG_MS) : 0;
		atomic_store(&o.stop, true);
		pthread_join(thread, NULL);
		assert_int_equal(sent, 0);
		assert_int_equal(ret, 1);
		ep_received(p.b, in);
	}
}

/* A thread blocks on the descriptor. Another thread starts an operation that
 * needs polling to complete. (One thread does both here: it does not read in
 * between.) */
static void start_behind_trywait(struct ep_pair *p, size_t len, bool send)
{
	struct fid *fids[] = { &p->b->cq->fid };
	struct pollfd pfd = { .fd = cq_fd(p->b->cq), .events = POLLIN };
	char *out = malloc(len), *in = malloc(len);

	xfer_fill(out, len, len, 0);
	if (!send)
		EP_OK(fi_send(p->a->ep, out, len, NULL, p->ab, out));
	ep_settle();
	fall_asleep(p->b, fids, &pfd, 1, 0);
	if (send) {
		EP_OK(fi_recv(p->a->ep, in, len, NULL, p->ab, in));
		assert_int_equal(fi_send(p->b->ep, out, len, NULL, p->ba,
					 out), 0);
	} else {
		assert_int_equal(fi_recv(p->b->ep, in, len, NULL, p->ba, in),
				 0);
	}
	for (uint64_t end = ep_deadline(); poll(&pfd, 1, 1) == 0; ) {
		ep_poll(p->a);
		ep_in_time(end, "poll");
	}
	ep_sent(send ? p->b : p->a, out);
	ep_received(send ? p->a : p->b, in);
	assert_true(xfer_filled(in, len, len, 0));
	free(out);
	free(in);
}

static void test_fd_wakes_for_what_another_thread_starts(void **state)
{
	static const size_t lens[] = { 8, 4000, 100000, 2000000 };
	struct ep_want want = { .wait = FI_WAIT_FD,
				.threading = FI_THREAD_SAFE,
				.tx_op_flags = FI_DELIVERY_COMPLETE };
	struct ep_pair p = connected(&want);

	for (int i = 0; i < 4; i++) {
		start_behind_trywait(&p, lens[i], false);
		start_behind_trywait(&p, lens[i], true);
	}
	ep_quiet(p.b);
}

/* Calls that another thread may make while a thread blocks on the descriptor of
 * the queue. None of them takes an entry. */
static void other_does(int what, struct ep *e, struct fid **fids)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry c;
	char in;

	switch (what) {
	case 0:
		assert_int_equal(fi_cq_read(e->cq, &c, 1), -FI_EAGAIN);
		break;
	case 1:
		assert_int_equal(fi_cq_readerr(e->cq, &err, 0), -FI_EAGAIN);
		break;
	case 2:
		for (int ms = 0; ms < 20; ms += 19)
			assert_int_equal(fi_cq_sread(e->cq, &c, 1, NULL, ms),
					 -FI_EAGAIN);
		break;
	default:
		EP_OK(fi_recv(e->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
		assert_int_equal(fi_cancel(&e->ep->fid, &in), 0);
		assert_int_equal(fi_trywait(e->fabric, fids, 1), -FI_EAGAIN);
	}
}

static void test_fd_wakes_whatever_another_thread_does(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD,
				.threading = FI_THREAD_SAFE };

	for (int i = 0; i < 4; i++) {
		struct ep_pair p = connected(&want);
		struct fid *fids[] = { &p.b->cq->fid };
		struct pollfd pfd = { .fd = cq_fd(p.b->cq), .events = POLLIN };
		char in, out = 1;

		EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
		fall_asleep(p.b, fids, &pfd, 1, 0);
		other_does(i, p.b, fids);
		assert_int_equal(fi_inject(p.a->ep, &out, 1, p.ab), 0);
		/* the thread that blocks */
		assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
		ep_received(p.b, &in);
		p.b->ncomp = 0;
		/* no further wake-ups */
		fall_asleep(p.b, fids, &pfd, 1, 1);
		ep_pair_close(&p);
	}
}

/* One thread can wait for two queues of one endpoint, and sleeps. */
static void test_two_queues_can_be_waited_on_at_once(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD, .two_cqs = true };
	struct ep_pair p = connected(&want);
	struct fid *both[] = { &p.b->cq->fid, &p.b->txcq->fid };
	struct pollfd pfd[2] = {
		{ .fd = cq_fd(p.b->cq), .events = POLLIN },
		{ .fd = cq_fd(p.b->txcq), .events = POLLIN },
	};
	char in, out = 1;

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	fall_asleep(p.b, both, pfd, 2, 2);
	assert_int_equal(fi_inject(p.a->ep, &out, 1, p.ab), 0);
	assert_true(poll(pfd, 2, LONG_MS) > 0);
	ep_received(p.b, &in);
}

/* A send was refused because no connection can be made now. A later connection
 * would wake nobody, so fi_trywait() fails until the send was retried. */
static int connect_later(struct hal_if *hif, const struct hal_addr *addr,
			 struct hal_peer **peer)
{
	(void)hif;
	(void)addr;
	(void)peer;
	return -FI_EAGAIN;
}

static void test_no_sleep_while_there_is_no_connection(void **state)
{
	const struct hal_ops *was;
	struct hal_ops later;
	struct ep_pair p = ep_pair(&with_fd);
	struct fid *fids[1];
	struct hal_if *hif;
	char out = 1;

	fids[0] = &p.a->cq->fid;
	hif = ((struct unm_ep *)p.a->ep)->hif;
	was = hif->ops;
	later = *was;
	later.connect = connect_later;
	ep_settle();
	EP_OK(fi_trywait(p.a->fabric, fids, 1));
	hif->ops = &later;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_inject(p.a->ep, &out, 1, p.ab),
				 -FI_EAGAIN);
		assert_int_equal(fi_trywait(p.a->fabric, fids, 1),
				 -FI_EAGAIN);
		/* returned once */
		EP_OK(fi_trywait(p.a->fabric, fids, 1));
	}
	hif->ops = was;
	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
}

/* The same if an answer waits for a connection. */
static void test_no_sleep_while_an_answer_has_no_connection(void **state)
{
	static struct hal_ops later;
	static char big[100000];
	const struct hal_ops *was;
	struct ep_pair p = ep_pair(&with_fd);
	struct fid *fids[1];
	struct hal_if *hif;

	fids[0] = &p.b->cq->fid;
	hif = ((struct unm_ep *)p.b->ep)->hif;
	was = hif->ops;
	later = *was;
	later.connect = connect_later;
	hif->ops = &later;
	/* the receiver reads no bytes on any data path: the answer is all it
	 * sends */
	EP_OK(fi_recv(p.b->ep, NULL, 0, NULL, p.ba, fids));
	EP_OK(fi_send(p.a->ep, big, sizeof(big), NULL, p.ab, big));
	assert_int_equal(ep_wait(p.b, fids).err, FI_ETRUNC);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fi_trywait(p.b->fabric, fids, 1), -FI_EAGAIN);
	hif->ops = was;
	ep_sent(p.a, big);
	ep_settle();
	EP_OK(fi_trywait(p.b->fabric, fids, 1));
}

/* ---- fi_cq_signal ---------------------------------------------------- */

static void *signal_main(void *arg)
{
	usleep(50000);
	fi_cq_signal(arg);
	return NULL;
}

static void test_signal_ends_sread(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD,
				.threading = FI_THREAD_SAFE };
	struct ep_pair p = connected(&want);
	struct fi_cq_tagged_entry e;
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		uint64_t start = ep_now();

		thread = unit_thread(signal_main, p.b->cq);
		assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, LONG_MS),
				 -FI_EAGAIN);
		assert_true(ep_now() - start < (uint64_t)LONG_MS * 1000);
		pthread_join(thread, NULL);
	}
	/* an earlier signal is not lost, and counts once */
	assert_int_equal(fi_cq_signal(p.b->cq), 0);
	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, LONG_MS),
			 -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, 10), -FI_EAGAIN);
}

/* ---- Two endpoints on one queue -------------------------------------- */

static void test_one_queue_of_two_endpoints(void **state)
{
	struct ep_pair p = connected(&with_fd);
	struct peer pe = { .e = p.a, .delay_ms = 30, .len = 8, .count = 1 };
	struct fi_cq_tagged_entry e;
	struct fid_ep *second;
	char name[64], in[8];
	size_t len = sizeof(name);

	assert_int_equal(fi_endpoint(p.b->domain, p.b->info, &second, NULL),
			 0);
	assert_int_equal(fi_ep_bind(second, &p.b->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(second, &p.b->cq->fid, FI_TRANSMIT |
				    FI_RECV), 0);
	assert_int_equal(fi_enable(second), 0);
	assert_int_equal(fi_getname(&second->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(p.a->av, name, 1, &pe.to, 0, NULL), 1);
	assert_int_equal(fi_recv(second, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	peer_start(&pe);
	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, LONG_MS), 1);
	assert_ptr_equal(e.op_context, in);
	peer_end(&pe);
	assert_int_equal(fi_close(&second->fid), 0);
	/* without the second endpoint again */
	assert_int_equal(fi_cq_sread(p.b->cq, &e, 1, NULL, 10), -FI_EAGAIN);
}

EP_THREADS_MAIN(
	EP_TEST(test_sread_times_out),
	EP_TEST_INSIDE(test_sread_sleeps),
	EP_TEST(test_sread_without_a_wait_object),
	EP_TEST(test_sread_wakes_for_a_message),
	EP_TEST(test_sread_wakes_for_the_end_of_a_send),
	EP_TEST(test_sread_returns_what_is_there),
	EP_TEST(test_fd_becomes_readable),
	EP_TEST(test_trywait_refuses_when_an_entry_is_there),
	EP_TEST(test_fd_wakes_for_progress_of_another_thread),
	EP_TEST(test_fd_wakes_for_what_another_thread_starts),
	EP_TEST(test_fd_wakes_whatever_another_thread_does),
	EP_TEST(test_two_queues_can_be_waited_on_at_once),
	EP_TEST_INSIDE(test_no_sleep_while_there_is_no_connection),
	EP_TEST_INSIDE(test_no_sleep_while_an_answer_has_no_connection),
	EP_TEST(test_signal_ends_sread),
	EP_TEST(test_one_queue_of_two_endpoints),
)
