/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_poll.c - fi_poll(3): poll sets and wait sets over queues and counters of
 * endpoints that exchange messages, and over event queues.
 *
 * UNM_TEST_ROUNDS: wake-ups of each form (500).
 */
#include "lib/ep_wait.h"

#define ROUNDS	((int)unit_number("UNM_TEST_ROUNDS", UNIT_SLOW ? 100 : 500))

/* ---- Poll sets ------------------------------------------------------- */

static void test_poll_set_takes_queues_and_counters(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct fi_poll_attr attr = { .flags = 1 };
	struct ep *e = ep_open(&want), *other = ep_open(&want);
	struct fid_poll *set;
	struct fid_eq *eq;
	void *ctx[4];

	assert_int_equal(fi_poll_open(e->domain, &attr, &set), -FI_EBADFLAGS);
	assert_int_equal(fi_poll_open(e->domain, NULL, &set), 0);
	assert_int_equal(fi_poll(set, ctx, 4), 0);
	assert_int_equal(fi_poll(set, ctx, -1), -FI_EINVAL);
	assert_int_equal(fi_poll(set, NULL, 1), -FI_EINVAL);
	assert_int_equal(fi_poll(set, NULL, 0), 0);
	assert_int_equal(fi_eq_open(e->fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_poll_add(set, &eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_poll_add(set, &e->ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &other->cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &e->cq->fid, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_poll_add(set, &e->cq->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &e->cq->fid, 0), -FI_EALREADY);
	assert_int_equal(fi_poll_del(set, &e->rxcntr->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &e->rxcntr->fid, 0), 0);
	assert_int_equal(fi_poll_del(set, &e->rxcntr->fid, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_poll_del(set, &e->rxcntr->fid, 0), 0);
	assert_int_equal(fi_close(&e->ep->fid), 0);
	e->ep = NULL;
	/* members and the domain cannot be closed before the set */
	assert_int_equal(fi_close(&e->cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&set->fid), 0);
}

static void test_poll_set_reports(void **state)
{
	struct ep_want want = { .disabled = true, .no_txcq = true,
				.no_rxcq = true };
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_poll *set;
	struct fi_cq_entry comp;
	void *ctx[2] = { NULL, NULL };
	struct ep *a = ep_open(NULL), *b = ep_open(&want);
	char in, out = 1;

	assert_int_equal(fi_cq_open(b->domain, &cqa, &cq, &cq), 0);
	assert_int_equal(fi_cntr_open(b->domain, NULL, &cntr, &cntr), 0);
	assert_int_equal(fi_ep_bind(b->ep, &cq->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(b->ep, &cntr->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(b->ep), 0);
	assert_int_equal(fi_poll_open(b->domain, NULL, &set), 0);
	assert_int_equal(fi_poll_add(set, &cq->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &cntr->fid, 0), 0);
	assert_int_equal(fi_poll(set, ctx, 2), 0);
	assert_int_equal(fi_recv(b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	EP_OK(fi_inject(a->ep, &out, 1, ep_insert(a, b)));
	/* fi_poll() makes the progress that delivers the message */
	for (uint64_t end = ep_deadline(); fi_poll(set, ctx, 2) != 2; ) {
		ep_poll(a);
		ep_in_time(end, "fi_poll");
	}
	assert_ptr_equal(ctx[0], &cq);
	assert_ptr_equal(ctx[1], &cntr);
	/* the counter is reported once, the queue while it has entries */
	assert_int_equal(fi_poll(set, ctx, 2), 1);
	assert_ptr_equal(ctx[0], &cq);
	fi_cntr_adderr(cntr, 1);
	assert_int_equal(fi_poll(set, ctx, 1), 1);
	assert_ptr_equal(ctx[0], &cq);
	assert_int_equal(fi_cq_read(cq, &comp, 1), 1);
	assert_int_equal(fi_poll(set, ctx, 2), 1);
	assert_ptr_equal(ctx[0], &cntr);
	assert_int_equal(fi_poll(set, ctx, 2), 0);
	assert_int_equal(fi_close(&b->ep->fid), 0);
	b->ep = NULL;
	EP_CLOSE(&set->fid, &cq->fid, &cntr->fid);
}

/* ---- Wait sets ------------------------------------------------------- */

static void test_wait_set_attributes(void **state)
{
	static const enum fi_wait_obj good[] = {
		FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD,
		FI_WAIT_POLLFD,
	};
	static const enum fi_wait_obj bad[] = {
		FI_WAIT_NONE, FI_WAIT_SET, 99,
	};
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_FD, .flags = 1 };
	struct ep *e = ep_open(NULL);
	struct fid_wait *set;

	assert_int_equal(fi_wait_open(e->fabric, &attr, &set), -FI_EBADFLAGS);
	for (int i = 0; i < 3; i++) {
		attr = (struct fi_wait_attr){ .wait_obj = bad[i] };
		assert_int_equal(fi_wait_open(e->fabric, &attr, &set),
				 -FI_ENOSYS);
	}
	for (int i = 0; i < 5; i++) {
		enum fi_wait_obj obj = FI_WAIT_NONE;
		struct fid *fids[1];

		attr = (struct fi_wait_attr){ .wait_obj = good[i] };
		assert_int_equal(fi_wait_open(e->fabric, &attr, &set), 0);
		assert_int_equal(fi_control(&set->fid, FI_GETWAITOBJ, &obj),
				 0);
		assert_int_equal(obj, good[i]);
		fids[0] = &set->fid;
		assert_int_equal(fi_trywait(e->fabric, fids, 1),
				 good[i] == FI_WAIT_YIELD ? -FI_EINVAL : 0);
		assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
		assert_int_equal(fi_wait(set, 20), -FI_ETIMEDOUT);
		assert_int_equal(fi_close(&set->fid), 0);
	}
}

/* A queue, a counter and an event queue in one wait set. */
struct world {
	struct ep *a, *b;
	fi_addr_t ab;
	struct fid_wait *set;
	struct fid_cq *cq;
	struct fid_cntr *cntr, *own;	/* own: counts no events */
	struct fid_eq *eq;
	_Atomic int asked;
	int count;
	uint64_t rng;
};

static void world_open(struct world *w, enum fi_wait_obj obj)
{
	struct ep_want want = { .disabled = true, .no_txcq = true,
				.no_rxcq = true, .threading = FI_THREAD_SAFE };
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fi_cq_attr cq = { .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_SET, .flags = FI_WRITE };

	w->b = ep_open(&want);
	assert_int_equal(fi_wait_open(w->b->fabric, &attr, &w->set), 0);
	cq.wait_set = cntr.wait_set = eq.wait_set = w->set;
	assert_int_equal(fi_cq_open(w->b->domain, &cq, &w->cq, NULL), 0);
	assert_int_equal(fi_cntr_open(w->b->domain, &cntr, &w->cntr, NULL),
			 0);
	assert_int_equal(fi_cntr_open(w->b->domain, &cntr, &w->own, NULL), 0);
	assert_int_equal(fi_eq_open(w->b->fabric, &eq, &w->eq, NULL), 0);
	assert_int_equal(fi_close(&w->set->fid), -FI_EBUSY);
	assert_int_equal(fi_ep_bind(w->b->ep, &w->cq->fid, FI_SEND | FI_RECV),
			 0);
	assert_int_equal(fi_ep_bind(w->b->ep, &w->cntr->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(w->b->ep), 0);
	want = (struct ep_want){ .threading = FI_THREAD_SAFE };
	w->a = ep_open(&want);
	w->ab = ep_insert(w->a, w->b);
	w->count = ROUNDS;
}

static void world_close(struct world *w)
{
	ep_close(w->a);
	assert_int_equal(fi_close(&w->b->ep->fid), 0);
	w->b->ep = NULL;
	EP_CLOSE(&w->cq->fid, &w->cntr->fid, &w->own->fid, &w->eq->fid,
		 &w->set->fid);
	ep_close(w->b);
}

/* In turn: sends a message, adds to a counter, writes an event, signals. */
static void *stir(void *arg)
{
	struct world *w = arg;
	struct fi_eq_entry ev = { .data = 1 };
	char c = 1;

	for (int i = 1; i <= w->count; i++) {
		while (atomic_load(&w->asked) < i)
			usleep(20);
		usleep(unit_below(&w->rng, 400));
		switch (i % 4) {
		case 0:
			while (fi_inject(w->a->ep, &c, 1, w->ab) ==
			       -FI_EAGAIN)
				fi_cq_read(w->a->cq, NULL, 0);
			break;
		case 1:
			fi_cntr_add(w->own, 1);
			break;
		case 2:
			fi_eq_write(w->eq, FI_NOTIFY, &ev, sizeof(ev), 0);
			break;
		default:
			fi_cq_signal(w->cq);
		}
	}
	return NULL;
}

/* Takes the event of step i; false if there is none. A signal leaves nothing to
 * read: it only ends the wait. */
static bool took(struct world *w, int i, uint64_t *own)
{
	struct fi_cq_entry comp;
	struct fi_eq_entry ev;
	uint64_t now;
	uint32_t type;

	switch (i % 4) {
	case 0:
		if (fi_cq_read(w->cq, &comp, 1) != 1)
			return false;
		fi_cntr_read(w->cntr);
		return true;
	case 1:
		now = fi_cntr_read(w->own);
		if (now == *own)
			return false;
		*own = now;
		return true;
	case 2:
		return fi_eq_read(w->eq, &type, &ev, sizeof(ev), 0) ==
			sizeof(ev);
	default:
		return true;
	}
}

typedef void (*block_fn)(struct world *w);

static void block_wait(struct world *w)
{
	assert_int_equal(fi_wait(w->set, LONG_MS), 0);
}

static void block_fd(struct world *w)
{
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[] = { &w->set->fid };

	assert_int_equal(fi_control(&w->set->fid, FI_GETWAIT, &pfd.fd), 0);
	if (fi_trywait(w->b->fabric, fids, 1) == 0)
		assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
}

static void block_cond(struct world *w)
{
	struct fid *fids[] = { &w->set->fid };
	struct fi_mutex_cond mc;
	struct timespec end;
	int ret = 0;

	assert_int_equal(fi_control(&w->set->fid, FI_GETWAIT, &mc), 0);
	end = long_from_now();
	pthread_mutex_lock(mc.mutex);
	if (fi_trywait(w->b->fabric, fids, 1) == 0)
		ret = pthread_cond_timedwait(mc.cond, mc.mutex, &end);
	pthread_mutex_unlock(mc.mutex);
	assert_int_equal(ret, 0);
}

static void stirred(enum fi_wait_obj obj, block_fn block)
{
	struct world w = { .asked = 0 };
	pthread_t thread;
	uint64_t own = 0;
	char in;

	world_open(&w, obj);
	thread = unit_thread(stir, &w);
	for (int i = 1; i <= w.count; i++) {
		if (i % 4 == 0)
			assert_int_equal(fi_recv(w.b->ep, &in, 1, NULL,
						 FI_ADDR_UNSPEC, NULL), 0);
		atomic_store(&w.asked, i);
		do {
			block(&w);
		} while (!took(&w, i, &own));
	}
	pthread_join(thread, NULL);
	world_close(&w);
}

static void test_wait_set_wakes(void **state)
{
	stirred(FI_WAIT_UNSPEC, block_wait);
	stirred(FI_WAIT_FD, block_wait);
	stirred(FI_WAIT_YIELD, block_wait);
	stirred(FI_WAIT_MUTEX_COND, block_wait);
}

static void test_wait_set_fd(void **state)
{
	stirred(FI_WAIT_FD, block_fd);
}

static void test_wait_set_cond(void **state)
{
	stirred(FI_WAIT_MUTEX_COND, block_cond);
}

/* ---- Queues by condition variable ------------------------------------ */

static void *write_events(void *arg)
{
	struct world *w = arg;
	struct fi_eq_entry ev = { .data = 1 };

	for (int i = 1; i <= w->count; i++) {
		while (atomic_load(&w->asked) < i)
			usleep(20);
		usleep(unit_below(&w->rng, 200));
		fi_eq_write(w->eq, FI_NOTIFY, &ev, sizeof(ev), 0);
	}
	return NULL;
}

static void test_eq_cond(void **state)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND,
				   .flags = FI_WRITE };
	struct world w = { .count = ROUNDS };
	struct fi_mutex_cond mc;
	struct fi_eq_entry ev;
	struct fid *fids[1];
	pthread_t thread;
	uint32_t type;

	w.a = ep_open(NULL);
	assert_int_equal(fi_eq_open(w.a->fabric, &attr, &w.eq, NULL), 0);
	assert_int_equal(fi_control(&w.eq->fid, FI_GETWAIT, &mc), 0);
	fids[0] = &w.eq->fid;
	thread = unit_thread(write_events, &w);
	for (int i = 1; i <= w.count; i++) {
		struct timespec end = long_from_now();

		atomic_store(&w.asked, i);
		if (i % 2 == 0) {
			assert_int_equal(fi_eq_sread(w.eq, &type, &ev,
						     sizeof(ev), LONG_MS, 0),
					 sizeof(ev));
			continue;
		}
		pthread_mutex_lock(mc.mutex);
		while (fi_trywait(w.a->fabric, fids, 1) == 0)
			assert_int_equal(pthread_cond_timedwait(mc.cond,
						mc.mutex, &end), 0);
		pthread_mutex_unlock(mc.mutex);
		assert_int_equal(fi_eq_read(w.eq, &type, &ev, sizeof(ev), 0),
				 sizeof(ev));
	}
	pthread_join(thread, NULL);
	/* a thread that holds the mutex may write */
	pthread_mutex_lock(mc.mutex);
	fi_eq_write(w.eq, FI_NOTIFY, &ev, sizeof(ev), 0);
	pthread_mutex_unlock(mc.mutex);
	assert_int_equal(fi_close(&w.eq->fid), 0);
}

/* Waits by condition variable and by yielding; this thread is the peer. */
static void *send_when_asked(void *arg)
{
	struct world *w = arg;
	char c = 1;

	for (int i = 1; i <= w->count; i++) {
		while (atomic_load(&w->asked) < i)
			usleep(20);
		usleep(unit_below(&w->rng, 300));
		while (fi_inject(w->a->ep, &c, 1, w->ab) == -FI_EAGAIN)
			fi_cq_read(w->a->cq, NULL, 0);
	}
	return NULL;
}

static void cq_cond_wait(struct ep *e)
{
	struct fid *fids[] = { &e->cq->fid };
	struct fi_mutex_cond mc;
	struct timespec end;
	struct fi_cq_tagged_entry c;
	int ret = 0;

	assert_int_equal(fi_control(&e->cq->fid, FI_GETWAIT, &mc), 0);
	end = long_from_now();
	pthread_mutex_lock(mc.mutex);
	while (ret == 0 && fi_cq_read(e->cq, &c, 1) != 1)
		if (fi_trywait(e->fabric, fids, 1) == 0)
			ret = pthread_cond_timedwait(mc.cond, mc.mutex, &end);
	pthread_mutex_unlock(mc.mutex);
	assert_int_equal(ret, 0);
}

static void cq_form(enum fi_wait_obj obj)
{
	struct ep_want want = { .wait = obj, .threading = FI_THREAD_SAFE };
	struct world w = { .count = ROUNDS };
	struct fi_cq_tagged_entry c;
	pthread_t thread;
	char in;

	w.b = ep_open(&want);
	want.wait = FI_WAIT_NONE;
	w.a = ep_open(&want);
	w.ab = ep_insert(w.a, w.b);
	thread = unit_thread(send_when_asked, &w);
	for (int i = 1; i <= w.count; i++) {
		assert_int_equal(fi_recv(w.b->ep, &in, 1, NULL,
					 FI_ADDR_UNSPEC, NULL), 0);
		atomic_store(&w.asked, i);
		if (obj == FI_WAIT_MUTEX_COND && i % 2 == 0)
			cq_cond_wait(w.b);
		else
			assert_int_equal(fi_cq_sread(w.b->cq, &c, 1, NULL,
						     LONG_MS), 1);
	}
	pthread_join(thread, NULL);
	assert_int_equal(fi_cq_sread(w.b->cq, &c, 1, NULL, 5), -FI_EAGAIN);
	assert_int_equal(fi_cq_signal(w.b->cq), 0);
	assert_int_equal(fi_cq_sread(w.b->cq, &c, 1, NULL, LONG_MS),
			 -FI_EAGAIN);
	ep_close(w.a);
	ep_close(w.b);
}

static void test_cq_cond_and_yield(void **state)
{
	cq_form(FI_WAIT_MUTEX_COND);
	cq_form(FI_WAIT_YIELD);
	cq_form(FI_WAIT_POLLFD);
}

/* ---- Signals --------------------------------------------------------- */

static void *read_once(void *arg)
{
	struct world *w = arg;
	struct fi_cq_tagged_entry c;

	for (int i = 0; i < w->count; i++) {
		if (fi_cq_sread(w->b->cq, &c, 1, NULL, LONG_MS) != -FI_EAGAIN)
			break;
		atomic_fetch_add(&w->asked, 1);
	}
	return NULL;
}

/* One thread sleeps in a call, another one calls fi_trywait() and polls all the
 * time: each signal ends the sleep of the first. */
static void test_a_signal_is_not_taken_by_who_polls(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD,
				.threading = FI_THREAD_SAFE };
	struct world w = { .count = ROUNDS };
	struct fi_cq_tagged_entry c;
	struct fid *fids[1];
	pthread_t thread;

	w.b = ep_open(&want);
	fids[0] = &w.b->cq->fid;
	thread = unit_thread(read_once, &w);
	for (int i = 0; i < w.count; i++) {
		uint64_t end = ep_deadline();

		usleep(unit_below(&w.rng, 200));
		assert_int_equal(fi_cq_signal(w.b->cq), 0);
		while (atomic_load(&w.asked) <= i) {
			fi_trywait(w.b->fabric, fids, 1);
			fi_cq_read(w.b->cq, &c, 1);
			ep_in_time(end, "a signal");
		}
	}
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&w.asked), w.count);
}

EP_THREADS_MAIN(
	EP_TEST(test_poll_set_takes_queues_and_counters),
	EP_TEST(test_poll_set_reports),
	EP_TEST(test_wait_set_attributes),
	EP_TEST(test_wait_set_wakes),
	EP_TEST(test_wait_set_fd),
	EP_TEST(test_wait_set_cond),
	EP_TEST(test_eq_cond),
	EP_TEST(test_cq_cond_and_yield),
	EP_TEST(test_a_signal_is_not_taken_by_who_polls),
)
