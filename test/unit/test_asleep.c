/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_asleep.c - RMA and atomics on the memory of a target that sleeps, in
 * each call that can sleep.
 *
 * A request wakes the target's thread and is executed, but the application's
 * call does not return. An access that the initiator executes directly does not
 * even wake the target. At the end the target gets an event, and its call
 * returns.
 *
 * The tests fail if a wait never ends; they do not judge how long a wait
 * took.
 */
#include "lib/ep_wait.h"
#include "lib/ep_xfer.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define LEN	((size_t)300000)

/* The call in which the target sleeps. CQ_FD: fi_trywait() and poll().
 * POLL_SET: fi_poll(), which never sleeps. EVENTS: fi_eq_sread(), which makes
 * no progress: the domain's own thread does, or (NO_PROGRESS) none. */
enum bed { CQ_SREAD, CQ_FD, CNTR_WAIT, WAIT_SET, POLL_SET, EVENTS, NO_PROGRESS,
	   BEDS };

struct sleeper {
	struct os_pair p;
	enum bed bed;
	struct fid_wait *set;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_poll *polls;
	struct fid_eq *eq;
	pthread_t thread;
	char in;
	_Atomic bool up;		/* its call has returned */
	_Atomic bool failed;		/* no asserts in another thread */
};

/* ---- The sleeper's thread ------------------------------------------------ */

static bool take(struct sleeper *s)
{
	struct fi_cq_tagged_entry c;

	return fi_cq_read(s->cq, &c, 1) == 1 && c.op_context == &s->in;
}

static bool sleep_on_fd(struct sleeper *s)
{
	struct fid *fids[] = { &s->cq->fid };
	struct pollfd pfd = { .events = POLLIN };
	bool ok = fi_control(fids[0], FI_GETWAIT, &pfd.fd) == 0;

	while (ok && !take(s))
		if (fi_trywait(s->p.b->fabric, fids, 1) == 0)
			ok = poll(&pfd, 1, LONG_MS) == 1;
	return ok;
}

static bool sleep_in_set(struct sleeper *s)
{
	while (!take(s))
		if (fi_wait(s->set, LONG_MS) != 0)
			return false;
	return true;
}

static bool poll_set(struct sleeper *s)
{
	uint64_t end = ep_now() + (uint64_t)LONG_MS * 1000;
	void *ctx;

	while (fi_poll(s->polls, &ctx, 1) == 0)
		if (ep_now() > end)
			return false;
	return take(s);
}

static void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry c;
	struct fi_eq_entry ev;
	uint32_t type;
	bool ok;

	switch (s->bed) {
	case CQ_SREAD:
		ok = fi_cq_sread(s->cq, &c, 1, NULL, LONG_MS) == 1 &&
			c.op_context == &s->in;
		break;
	case CQ_FD:
		ok = sleep_on_fd(s);
		break;
	case CNTR_WAIT:
		ok = fi_cntr_wait(s->cntr, 1, LONG_MS) == 0;
		break;
	case WAIT_SET:
		ok = sleep_in_set(s);
		break;
	case POLL_SET:
		ok = poll_set(s);
		break;
	default:
		ok = fi_eq_sread(s->eq, &type, &ev, sizeof(ev), LONG_MS, 0) ==
			sizeof(ev);
		break;
	}
	s->failed = !ok;
	s->up = true;
	return NULL;
}

/* ---- Putting the target to sleep ----------------------------------------- */

/* The target's objects; the object that it sleeps on is bound to its
 * endpoint. */
static void make_bed(struct sleeper *s)
{
	struct ep *b = s->p.b;
	struct fi_wait_attr set = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
				 .wait_obj = FI_WAIT_FD };
	struct fi_cntr_attr cntr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_FD, .flags = FI_WRITE };

	if (s->bed == WAIT_SET) {
		assert_int_equal(fi_wait_open(b->fabric, &set, &s->set), 0);
		cq.wait_obj = cntr.wait_obj = FI_WAIT_SET;
		cq.wait_set = cntr.wait_set = s->set;
	}
	assert_int_equal(fi_cq_open(b->domain, &cq, &s->cq, NULL), 0);
	assert_int_equal(fi_cntr_open(b->domain, &cntr, &s->cntr, NULL), 0);
	assert_int_equal(fi_eq_open(b->fabric, &eq, &s->eq, NULL), 0);
	assert_int_equal(fi_poll_open(b->domain, NULL, &s->polls), 0);
	assert_int_equal(fi_poll_add(s->polls, &s->cq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b->ep, &s->cq->fid, FI_TRANSMIT |
				    FI_RECV), 0);
	assert_int_equal(fi_ep_bind(b->ep, &s->cntr->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(b->ep), 0);
}

static void strip_bed(struct sleeper *s)
{
	struct ep *b = s->p.b;

	assert_int_equal(fi_close(&b->ep->fid), 0);
	b->ep = NULL;
	EP_CLOSE(&s->polls->fid, &s->cq->fid, &s->cntr->fid, &s->eq->fid);
	if (s->set != NULL)
		assert_int_equal(fi_close(&s->set->fid), 0);
}

/* Both endpoints, the region, and a cached remote key where there is one. */
static void go_to_bed(struct sleeper *s, enum os_way way)
{
	const struct ep_want want = {
		.disabled = true, .no_txcq = true, .no_rxcq = true,
		.progress = s->bed == EVENTS ? FI_PROGRESS_AUTO :
			FI_PROGRESS_MANUAL,
	};
	struct os_pair *p = &s->p;
	struct unm_stats *st;

	p->way = way;
	p->key = 11;
	p->a = ep_open(NULL);
	p->b = ep_open(&want);
	make_bed(s);
	g_unm_env.direct = way != OS_REQUESTS;
	p->ab = ep_insert(p->a, p->b);
	p->mem = os_alloc(p->b, way, LEN);
	p->mr = os_reg(p->b, p->mem, LEN, OS_ALL, p->key);
	st = ((struct unm_ep *)p->a->ep)->stats;
	for (uint64_t end = ep_deadline(); st->tx_direct == 0 &&
	     st->tx_requests < 5; ep_in_time(end, "a remote key")) {
		EP_OK(fi_inject_write(p->a->ep, "", 1, p->ab, 0, p->key));
		for (int i = 0; i < 1000; i++) {
			fi_cq_read(s->cq, NULL, 0);
			ep_step();
		}
	}
	assert_int_equal(fi_recv(p->b->ep, &s->in, 1, NULL, FI_ADDR_UNSPEC,
				 &s->in), 0);
	s->thread = unit_thread(sleeper_main, s);
	usleep(20000);
}

/* Send the target a message: its call returns. */
static void get_up(struct sleeper *s)
{
	struct fi_eq_entry ev = { .data = 1 };
	struct os_pair *p = &s->p;

	assert_false(s->up);
	if (s->bed == EVENTS || s->bed == NO_PROGRESS)
		assert_int_equal(fi_eq_write(s->eq, 1, &ev, sizeof(ev), 0),
				 sizeof(ev));
	else
		EP_OK(fi_inject(p->a->ep, "x", 1, p->ab));
	pthread_join(s->thread, NULL);
	assert_true(s->up && !s->failed);
	assert_int_equal(fi_close(&p->mr->fid), 0);
	os_free(p->b, p->way, p->mem);
	strip_bed(s);
	ep_close(p->a);
	ep_close(p->b);
}

/* ---- Accesses meanwhile -------------------------------------------------- */

static void done(struct sleeper *s, const void *context)
{
	assert_int_equal(ep_wait(s->p.a, context).err, 0);
	assert_false(s->up);
}

static void put_and_get(struct sleeper *s, size_t len)
{
	uint8_t *out = malloc(len), *in = calloc(1, len);
	struct os_pair *p = &s->p;

	xfer_fill(out, len, len, 0);
	EP_OK(fi_write(p->a->ep, out, len, NULL, p->ab, 0, p->key, out));
	done(s, out);
	assert_memory_equal(p->mem, out, len);
	usleep(2000);
	EP_OK(fi_read(p->a->ep, in, len, NULL, p->ab, 0, p->key, in));
	done(s, in);
	assert_memory_equal(in, out, len);
	free(in);
	free(out);
}

static void add_and_swap(struct sleeper *s)
{
	uint64_t zero = 0, one = 1, was = 9;
	struct os_pair *p = &s->p;
	struct fid_ep *ep = p->a->ep;

	EP_OK(fi_atomic(ep, &zero, 1, NULL, p->ab, 64, p->key, FI_UINT64,
			FI_ATOMIC_WRITE, &zero));
	done(s, &zero);
	usleep(2000);
	EP_OK(fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, p->ab, 64, p->key,
			      FI_UINT64, FI_SUM, &one));
	done(s, &one);
	assert_int_equal(was, 0);
	usleep(2000);
	EP_OK(fi_compare_atomic(ep, &zero, 1, NULL, &one, NULL, &was, NULL,
				p->ab, 64, p->key, FI_UINT64, FI_CSWAP,
				&was));
	done(s, &was);
	assert_int_equal(was, 1);
}

/* An access that is executed directly sends no request to the target. */
static void undisturbed(enum os_way way, enum bed bed)
{
	bool atomics = os_window(way) || bed != NO_PROGRESS;
	struct sleeper s = { .bed = bed };
	uint64_t requests;

	/* without progress of the target no request is executed */
	if ((way == OS_REQUESTS && bed == NO_PROGRESS) || !os_runs(way))
		return;
	go_to_bed(&s, way);
	for (int i = 0; i < 3; i++) {
		requests = os_requests(&s.p);
		put_and_get(&s, 8);
		put_and_get(&s, LEN);
		if (way != OS_REQUESTS)
			assert_int_equal(os_requests(&s.p), requests);
		usleep(2000);
		if (atomics)
			add_and_swap(&s);
		if (os_window(way))
			assert_int_equal(os_requests(&s.p), requests);
		usleep(2000);
	}
	assert_true(way == OS_REQUESTS ? os_direct(&s.p) == 0 :
		    os_direct(&s.p) > 0);
	get_up(&s);
}

static void by_every_way(enum bed bed)
{
	EP_NEEDS_INSIDE();
	for (int way = 0; way < OS_WAYS; way++)
		undisturbed(way, bed);
}

#define TEST(name, bed)							\
	static void test_##name(void **state)				\
	{								\
		by_every_way(bed);					\
	}

TEST(in_cq_sread, CQ_SREAD)
TEST(in_poll_of_a_descriptor, CQ_FD)
TEST(in_cntr_wait, CNTR_WAIT)
TEST(in_a_wait_set, WAIT_SET)
TEST(calling_fi_poll, POLL_SET)
TEST(in_eq_sread_with_auto_progress, EVENTS)
TEST(in_eq_sread_without_progress, NO_PROGRESS)

EP_THREADS_MAIN(
	EP_TEST(test_in_cq_sread),
	EP_TEST(test_in_poll_of_a_descriptor),
	EP_TEST(test_in_cntr_wait),
	EP_TEST(test_in_a_wait_set),
	EP_TEST(test_calling_fi_poll),
	EP_TEST(test_in_eq_sread_with_auto_progress),
	EP_TEST(test_in_eq_sread_without_progress),
)
