/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cntr.c - counters: values, bindings, and every form of waiting while
 * another thread or a peer changes the value. The tests fail if a wait never
 * ends.
 *
 * UNM_TEST_ROUNDS: wake-ups of each form (1000).
 */
#include "lib/ep_wait.h"

#define ROUNDS	((int)unit_number("UNM_TEST_ROUNDS", UNIT_SLOW ? 200 : 1000))

/* ---- Values ---------------------------------------------------------- */

static void test_values(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_cntr *c;

	assert_int_equal(fi_cntr_open(e->domain, NULL, &c, NULL), 0);
	assert_int_equal(fi_cntr_read(c), 0);
	assert_int_equal(fi_cntr_readerr(c), 0);
	assert_int_equal(fi_cntr_add(c, 3), 0);
	assert_int_equal(fi_cntr_add(c, 4), 0);
	assert_int_equal(fi_cntr_adderr(c, 2), 0);
	assert_int_equal(fi_cntr_read(c), 7);
	assert_int_equal(fi_cntr_readerr(c), 2);
	assert_int_equal(fi_cntr_set(c, UINT64_MAX), 0);
	assert_int_equal(fi_cntr_seterr(c, 9), 0);
	assert_true(fi_cntr_read(c) == UINT64_MAX);
	assert_int_equal(fi_cntr_readerr(c), 9);
	assert_int_equal(fi_cntr_set(c, 1), 0);
	assert_int_equal(fi_cntr_read(c), 1);
	assert_int_equal(fi_close(&c->fid), 0);
}

/* Checks FI_GETWAIT and fi_trywait() for this kind of wait object. */
static void gives(struct ep *e, enum fi_wait_obj obj)
{
	struct fid_cntr *c = open_waiting_cntr(e, obj);
	bool none = obj == FI_WAIT_NONE || obj == FI_WAIT_YIELD;
	struct fi_mutex_cond mc = { NULL, NULL };
	struct pollfd pfd = { .fd = -1 };
	struct fi_wait_pollfd list = { .nfds = 0, .fd = &pfd };
	enum fi_wait_obj got = FI_WAIT_SET;
	struct fid *fids[] = { &c->fid };
	int fd = -1;

	assert_int_equal(fi_control(fids[0], FI_GETWAITOBJ, &got), 0);
	assert_int_equal(got, obj);
	assert_int_equal(fi_control(fids[0], FI_GETOPSFLAG, &fd), -FI_ENOSYS);
	switch (obj) {
	case FI_WAIT_FD:
		assert_int_equal(fi_control(fids[0], FI_GETWAIT, &fd), 0);
		assert_true(fd >= 0);
		break;
	case FI_WAIT_MUTEX_COND:
		assert_int_equal(fi_control(fids[0], FI_GETWAIT, &mc), 0);
		assert_non_null(mc.mutex);
		assert_non_null(mc.cond);
		break;
	case FI_WAIT_POLLFD:
		assert_int_equal(fi_control(fids[0], FI_GETWAIT, &list),
				 -FI_ETOOSMALL);
		assert_int_equal(list.nfds, 1);
		assert_int_equal(fi_control(fids[0], FI_GETWAIT, &list), 0);
		assert_true(pfd.fd >= 0);
		assert_int_equal(pfd.events, POLLIN);
		break;
	default:
		assert_int_equal(fi_control(fids[0], FI_GETWAIT, &fd),
				 -FI_ENOSYS);
	}
	assert_int_equal(fi_trywait(e->fabric, fids, 1),
			 none ? -FI_EINVAL : 0);
	assert_int_equal(fi_close(fids[0]), 0);
}

static void test_attributes(void **state)
{
	static const enum fi_wait_obj good[] = {
		FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
		FI_WAIT_YIELD, FI_WAIT_POLLFD,
	};
	struct fi_cntr_attr attr = { .wait_obj = 99 };
	struct ep *e = ep_open(NULL);
	struct fid_cntr *c = NULL;

	assert_int_equal(fi_cntr_open(e->domain, &attr, &c, NULL),
			 -FI_ENOSYS);
	attr = (struct fi_cntr_attr){ .events = 7 };
	assert_int_equal(fi_cntr_open(e->domain, &attr, &c, NULL),
			 -FI_ENOSYS);
	attr = (struct fi_cntr_attr){ .flags = 1 };
	assert_int_equal(fi_cntr_open(e->domain, &attr, &c, NULL),
			 -FI_EINVAL);
	attr = (struct fi_cntr_attr){ .wait_obj = FI_WAIT_SET };
	assert_int_equal(fi_cntr_open(e->domain, &attr, &c, NULL),
			 -FI_EINVAL);
	assert_null(c);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		gives(e, good[i]);
}

/* Each event has at most one counter; one counter may count several events. */
static void test_bindings(void **state)
{
	static const uint64_t events[] = {
		FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ,
		FI_REMOTE_WRITE,
	};
	struct ep_want want = { .disabled = true, .no_txcq = true,
				.no_rxcq = true };
	struct fid_cntr *c[6], *foreign, *both;
	struct ep *e, *other;
	struct unm_ep *ep;

	e = ep_open(&want);
	other = ep_open(&want);
	foreign = open_waiting_cntr(other, FI_WAIT_NONE);
	assert_int_equal(fi_ep_bind(e->ep, &foreign->fid, FI_SEND),
			 -FI_EINVAL);
	assert_int_equal(fi_close(&foreign->fid), 0);
	for (int i = 0; i < 6; i++) {
		c[i] = open_waiting_cntr(e, FI_WAIT_UNSPEC);
		assert_int_equal(fi_ep_bind(e->ep, &c[i]->fid, FI_MULTI_RECV),
				 -FI_EBADFLAGS);
		assert_int_equal(fi_ep_bind(e->ep, &c[i]->fid, events[i]), 0);
		assert_int_equal(fi_ep_bind(e->ep, &c[i]->fid, events[i]),
				 -FI_EINVAL);
	}
	ep = (struct unm_ep *)e->ep;
	assert_ptr_equal(ep->tx_cntr, c[0]);
	assert_ptr_equal(ep->rx_cntr, c[1]);
	assert_ptr_equal(ep->rd_cntr, c[2]);
	assert_ptr_equal(ep->wr_cntr, c[3]);
	assert_ptr_equal(ep->rem_rd_cntr, c[4]);
	assert_ptr_equal(ep->rem_wr_cntr, c[5]);
	both = open_waiting_cntr(other, FI_WAIT_NONE);
	assert_int_equal(fi_ep_bind(other->ep, &both->fid, FI_READ |
				    FI_WRITE), 0);
	ep = (struct unm_ep *)other->ep;
	assert_ptr_equal(ep->rd_cntr, both);
	assert_ptr_equal(ep->wr_cntr, both);
	assert_int_equal(fi_close(&both->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&other->ep->fid), 0);
	other->ep = NULL;
	assert_int_equal(fi_close(&both->fid), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(fi_close(&e->ep->fid), 0);
	e->ep = NULL;
	for (int i = 0; i < 6; i++)
		assert_int_equal(fi_close(&c[i]->fid), 0);
}

/* ---- Waiting --------------------------------------------------------- */

static const enum fi_wait_obj forms[] = {
	FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD,
	FI_WAIT_MUTEX_COND,
};
#define FORMS	(int)(sizeof(forms) / sizeof(forms[0]))

static void test_wait_ends(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);

	for (int i = 0; i < FORMS; i++) {
		struct fid_cntr *c = open_waiting_cntr(e, forms[i]);
		uint64_t start = ep_now();

		assert_int_equal(fi_cntr_wait(c, 0, -1), 0);
		assert_int_equal(fi_cntr_wait(c, 1, 0), -FI_ETIMEDOUT);
		assert_int_equal(fi_cntr_wait(c, 1, 30), -FI_ETIMEDOUT);
		assert_true(ep_now() - start >= 30000);
		fi_cntr_add(c, 5);
		assert_int_equal(fi_cntr_wait(c, 5, -1), 0);
		/* errors from before the call end no wait */
		fi_cntr_adderr(c, 1);
		assert_int_equal(fi_cntr_wait(c, 6, 1), -FI_ETIMEDOUT);
		assert_int_equal(fi_close(&c->fid), 0);
	}
}

/* A thread that changes the counter when it is asked to. */
struct mover {
	struct fid_cntr *cntr;
	_Atomic int asked, done;
	int count;
	uint64_t rng;
};

static void *move(void *arg)
{
	struct mover *m = arg;

	for (int i = 1; i <= m->count; i++) {
		while (atomic_load(&m->asked) < i)
			usleep(20);
		usleep(unit_below(&m->rng, 300));
		switch (i % 3) {
		case 0:
			fi_cntr_set(m->cntr, i);
			break;
		case 1:
			fi_cntr_add(m->cntr, 1);
			break;
		default:
			fi_cntr_adderr(m->cntr, 1);
			fi_cntr_add(m->cntr, 1);
		}
		atomic_store(&m->done, i);
	}
	return NULL;
}

typedef void (*waiter_fn)(struct ep *e, struct fid_cntr *c, uint64_t value);

static void wait_rounds(enum fi_wait_obj obj, waiter_fn waiter)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);
	struct mover m = { .cntr = open_waiting_cntr(e, obj), .count = ROUNDS };
	pthread_t thread = unit_thread(move, &m);

	for (int i = 1; i <= m.count; i++) {
		atomic_store(&m.asked, i);
		waiter(e, m.cntr, i);
	}
	pthread_join(thread, NULL);
	assert_int_equal(fi_close(&m.cntr->fid), 0);
	ep_close(e);
}

static void by_call(struct ep *e, struct fid_cntr *c, uint64_t value)
{
	int ret;

	(void)e;
	while ((ret = fi_cntr_wait(c, value, LONG_MS)) == -FI_EAVAIL)
		;
	assert_int_equal(ret, 0);
}

static void by_fd(struct ep *e, struct fid_cntr *c, uint64_t value)
{
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[] = { &c->fid };

	assert_int_equal(fi_control(&c->fid, FI_GETWAIT, &pfd.fd), 0);
	while (fi_cntr_read(c) < value) {
		fi_cntr_readerr(c);
		if (fi_trywait(e->fabric, fids, 1) == 0)
			assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
	}
}

static void by_cond(struct ep *e, struct fid_cntr *c, uint64_t value)
{
	struct fid *fids[] = { &c->fid };
	struct fi_mutex_cond mc;
	struct timespec end;
	int ret = 0;

	assert_int_equal(fi_control(&c->fid, FI_GETWAIT, &mc), 0);
	end = long_from_now();
	pthread_mutex_lock(mc.mutex);
	while (fi_cntr_read(c) < value && ret == 0) {
		fi_cntr_readerr(c);
		if (fi_trywait(e->fabric, fids, 1) == 0)
			ret = pthread_cond_timedwait(mc.cond, mc.mutex, &end);
	}
	pthread_mutex_unlock(mc.mutex);
	assert_int_equal(ret, 0);
}

static void test_another_thread_wakes(void **state)
{
	for (int i = 0; i < FORMS; i++)
		wait_rounds(forms[i], by_call);
}

static void test_another_thread_wakes_the_fd(void **state)
{
	wait_rounds(FI_WAIT_FD, by_fd);
}

static void test_another_thread_signals_the_cond(void **state)
{
	wait_rounds(FI_WAIT_MUTEX_COND, by_cond);
}

static void *add_error(void *arg)
{
	usleep(20000);
	fi_cntr_adderr(arg, 1);
	return NULL;
}

static void test_an_error_ends_the_wait(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);

	for (int i = 0; i < FORMS; i++) {
		struct fid_cntr *c = open_waiting_cntr(e, forms[i]);
		pthread_t thread = unit_thread(add_error, c);

		assert_int_equal(fi_cntr_wait(c, 1, LONG_MS), -FI_EAVAIL);
		pthread_join(thread, NULL);
		assert_int_equal(fi_cntr_readerr(c), 1);
		assert_int_equal(fi_close(&c->fid), 0);
	}
}

/* fi_trywait() fails while a change was not read. A change after it succeeded
 * makes the descriptor readable, until fi_trywait() is called again. */
static void test_trywait(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_cntr *c = open_waiting_cntr(e, FI_WAIT_FD);
	struct fid *fids[] = { &c->fid };
	struct pollfd pfd = { .events = POLLIN };

	assert_int_equal(fi_control(&c->fid, FI_GETWAIT, &pfd.fd), 0);
	assert_int_equal(fi_trywait(e->fabric, fids, 1), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			fi_cntr_adderr(c, 1);
		else
			fi_cntr_add(c, 1);
		assert_int_equal(poll(&pfd, 1, 0), 1);
		assert_int_equal(fi_trywait(e->fabric, fids, 1), -FI_EAGAIN);
		assert_int_equal(fi_trywait(e->fabric, fids, 1), -FI_EAGAIN);
		if (i == 1)
			fi_cntr_readerr(c);
		else
			fi_cntr_read(c);
		assert_int_equal(fi_trywait(e->fabric, fids, 1), 0);
		assert_int_equal(poll(&pfd, 1, 0), 0);
	}
	assert_int_equal(fi_close(&c->fid), 0);
}

/* ---- Messages -------------------------------------------------------- */

/* An endpoint with counters of that wait object, instead of its default
 * ones. */
static struct ep *open_counting(enum fi_wait_obj obj)
{
	struct ep_want want = { .disabled = true, .no_txcq = true,
				.no_rxcq = true, .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);

	e->txcntr = open_waiting_cntr(e, obj);
	e->rxcntr = open_waiting_cntr(e, obj);
	assert_int_equal(fi_ep_bind(e->ep, &e->txcntr->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->rxcntr->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	e->want.disabled = false;
	return e;
}

struct sender {
	struct ep *e;
	fi_addr_t to;
	int count;
};

static void *send_some(void *arg)
{
	struct sender *s = arg;
	char c = 1;

	for (int i = 0; i < s->count; i++) {
		usleep(i % 4 * 500);
		while (fi_inject(s->e->ep, &c, 1, s->to) == -FI_EAGAIN)
			fi_cntr_read(s->e->txcntr);
	}
	while (fi_cntr_read(s->e->txcntr) < (uint64_t)s->count)
		usleep(100);
	return NULL;
}

static void messages(enum fi_wait_obj obj, waiter_fn waiter)
{
	struct ep *a = open_counting(FI_WAIT_NONE), *b = open_counting(obj);
	struct sender s = { .e = a, .count = ROUNDS / 10 + 1 };
	pthread_t thread;
	char in;

	s.to = ep_insert(a, b);
	for (int i = 0; i < s.count; i++)
		EP_OK(fi_recv(b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
	thread = unit_thread(send_some, &s);
	for (int i = 1; i <= s.count; i++)
		waiter(b, b->rxcntr, i);
	pthread_join(thread, NULL);
	assert_int_equal(fi_cntr_read(b->rxcntr), s.count);
	assert_int_equal(fi_cntr_readerr(b->rxcntr), 0);
	ep_close(a);
	ep_close(b);
}

static void test_messages_wake(void **state)
{
	for (int i = 0; i < FORMS; i++)
		messages(forms[i], by_call);
	messages(FI_WAIT_FD, by_fd);
	messages(FI_WAIT_MUTEX_COND, by_cond);
}

static void *add_one(void *arg)
{
	usleep(100000);
	fi_cntr_add(arg, 1);
	return NULL;
}

/* A wait sleeps in rounds of 100 ms. A wait that kept polling, or slept briefly
 * and polled again, would not count as a sleep in the endpoint's statistics. */
static void sleeps(struct ep *e, struct fid_cntr *cntr)
{
	struct unm_stats was, is;
	pthread_t thread = unit_thread(add_one, cntr);

	assert_int_equal(fi_cntr_wait(cntr, 1, LONG_MS), 0);
	pthread_join(thread, NULL);
	/* a machine that does other work may not run the thread in time */
	for (int i = 0; i < 40; i++) {
		was = stats_of(e->ep);
		assert_int_equal(fi_cntr_wait(cntr, 2, 250), -FI_ETIMEDOUT);
		is = stats_of(e->ep);
		if (is.sleeps != was.sleeps)
			break;
	}
	assert_in_range(is.sleeps - was.sleeps, 1, 200);
	assert_in_range(is.polls - was.polls, 0, 20000);
}

/* A waiting thread sleeps, with and without a thread of the library, also after
 * it was woken once, and for a counter of its endpoint or of any. */
static void test_a_wait_sleeps(void **state)
{
	static const enum fi_wait_obj objs[] = {
		FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
	};

	for (int i = 0; i < 3; i++) {
		struct ep *e = open_counting(objs[i]);
		struct fid_cntr *any = open_waiting_cntr(e, objs[i]);
		struct fid_mr *mr;
		char mem;

		sleeps(e, e->rxcntr);
		assert_int_equal(fi_mr_reg(e->domain, &mem, 1, FI_REMOTE_WRITE,
					   0, 1, 0, &mr, NULL), 0);
		assert_int_equal(fi_mr_bind(mr, &any->fid, FI_REMOTE_WRITE),
				 0);
		sleeps(e, any);
		EP_CLOSE(&mr->fid, &any->fid);
		ep_close(e);
	}
}

EP_THREADS_MAIN(
	EP_TEST(test_values),
	EP_TEST(test_attributes),
	EP_TEST_INSIDE(test_bindings),
	EP_TEST(test_wait_ends),
	EP_TEST(test_another_thread_wakes),
	EP_TEST(test_another_thread_wakes_the_fd),
	EP_TEST(test_another_thread_signals_the_cond),
	EP_TEST(test_an_error_ends_the_wait),
	EP_TEST(test_trywait),
	EP_TEST(test_messages_wake),
	EP_TEST_INSIDE(test_a_wait_sleeps),
)
