/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sleepers.c - which sleepers are woken if several sleep: on one object,
 * on a counter that any endpoint changes, after a refused send. The tests fail
 * if a wait never ends.
 *
 * UNM_TEST_ROUNDS: wake-ups of each form (200).
 */
#include <fcntl.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "api/unm_cntr.h"
#include "api/unm_wait.h"
#include "core/unm_cntr_value.h"
#include "core/unm_peer.h"
#include "lib/ep_wait.h"
#include "lib/proc_files.h"

#define ROUNDS	((int)unit_number("UNM_TEST_ROUNDS", UNIT_SLOW ? 50 : 200))
#define SLEEPERS	3
#define REMOTE		(FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct unm_ep *inside(struct ep *e)
{
	return (struct unm_ep *)e->ep;
}

static int get_fd(struct fid *fid)
{
	int fd = -1;

	assert_int_equal(fi_control(fid, FI_GETWAIT, &fd), 0);
	assert_true(fd >= 0);
	return fd;
}

/* Block as fi_trywait() has permitted, until woken. */
static void block(struct fid *fid, enum fi_wait_obj obj)
{
	struct pollfd pfd = { .events = POLLIN };
	struct fi_mutex_cond mc;
	struct timespec end;

	if (obj == FI_WAIT_FD) {
		pfd.fd = get_fd(fid);
		assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
		return;
	}
	assert_int_equal(fi_control(fid, FI_GETWAIT, &mc), 0);
	end = long_from_now();
	assert_int_equal(pthread_cond_timedwait(mc.cond, mc.mutex, &end), 0);
}

static void hold(struct fid *fid, enum fi_wait_obj obj, bool on)
{
	struct fi_mutex_cond mc;

	if (obj != FI_WAIT_MUTEX_COND)
		return;
	assert_int_equal(fi_control(fid, FI_GETWAIT, &mc), 0);
	if (on)
		pthread_mutex_lock(mc.mutex);
	else
		pthread_mutex_unlock(mc.mutex);
}

/* ---- Several threads asleep on one object ---------------------------- */

struct crowd {
	struct fid_cntr *cntr;
	struct ep *e;
	_Atomic int got, failed;
	_Atomic bool stop;
	int rounds;
};

static void *wait_for_each(void *arg)
{
	struct crowd *c = arg;

	for (int i = 1; i <= c->rounds; i++) {
		if (fi_cntr_wait(c->cntr, i, LONG_MS) != 0)
			atomic_fetch_add(&c->failed, 1);
		atomic_fetch_add(&c->got, 1);
	}
	return NULL;
}

static void crowd_start(struct crowd *c, pthread_t *t, void *(*fn)(void *))
{
	for (int i = 0; i < SLEEPERS; i++)
		t[i] = unit_thread(fn, c);
}

static void crowd_end(struct crowd *c, pthread_t *t)
{
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&c->failed), 0);
}

/* Every sleeper is woken, every time, also while others are still waking up. */
static void test_all_who_wait_for_a_counter_wake(void **state)
{
	static const enum fi_wait_obj objs[] = {
		FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
	};
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	uint64_t rng = 1;

	for (int k = 0; k < 3; k++) {
		struct ep *e = ep_open(&want);
		struct crowd c = { .cntr = open_waiting_cntr(e, objs[k]),
				   .rounds = ROUNDS };
		pthread_t t[SLEEPERS];

		crowd_start(&c, t, wait_for_each);
		for (int i = 1; i <= c.rounds; i++) {
			/* threads may lag behind by some values */
			while (atomic_load(&c.got) < (i - 3) * SLEEPERS)
				usleep(50);
			usleep(unit_below(&rng, 400));
			assert_int_equal(fi_cntr_add(c.cntr, 1), 0);
		}
		crowd_end(&c, t);
		assert_int_equal(fi_close(&c.cntr->fid), 0);
		ep_close(e);
	}
}

static void *read_until_stopped(void *arg)
{
	struct crowd *c = arg;
	struct fi_cq_tagged_entry comp;
	ssize_t ret;

	while (!atomic_load(&c->stop)) {
		uint64_t start = ep_now();

		ret = fi_cq_sread(c->e->cq, &comp, 1, NULL, LONG_MS);
		if (ret == 1)
			atomic_fetch_add(&c->got, 1);
		else if (ret != -FI_EAGAIN ||
			 ep_now() - start >= (uint64_t)LONG_MS * 1000)
			atomic_fetch_add(&c->failed, 1);
	}
	return NULL;
}

/* Each message wakes at least one thread, a signal wakes all. */
static void test_all_who_read_a_queue_wake(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD,
				.threading = FI_THREAD_SAFE };
	struct ep_pair p = ep_pair(&want);
	struct crowd c = { .e = p.b, .rounds = ROUNDS };
	pthread_t t[SLEEPERS];
	uint64_t rng = 2;
	char in, out = 1;

	for (int i = 0; i < c.rounds; i++)
		assert_int_equal(fi_recv(p.b->ep, &in, 1, NULL,
					 FI_ADDR_UNSPEC, NULL), 0);
	crowd_start(&c, t, read_until_stopped);
	for (int i = 1; i <= c.rounds; i++) {
		while (fi_inject(p.a->ep, &out, 1, p.ab) == -FI_EAGAIN)
			fi_cq_read(p.a->cq, NULL, 0);
		usleep(unit_below(&rng, 400));
	}
	for (uint64_t end = ep_deadline();
	     atomic_load(&c.got) < c.rounds; usleep(100)) {
		fi_cq_read(p.a->cq, NULL, 0);
		ep_in_time(end, "readers of one queue");
	}
	atomic_store(&c.stop, true);
	assert_int_equal(fi_cq_signal(p.b->cq), 0);
	crowd_end(&c, t);
	assert_int_equal(atomic_load(&c.got), c.rounds);
}

/* A thread that was woken and does not run yet is not woken again; a new
 * sleeper is. */
static void test_one_wake_up_for_many_completions(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct crowd c = { .rounds = 1 };
	pthread_t t[SLEEPERS];
	struct unm_cntr *cntr;
	uint32_t before, once, twice;

	c.e = ep_open(&want);
	c.cntr = open_waiting_cntr(c.e, FI_WAIT_FD);
	cntr = unm_cntr(c.cntr);
	crowd_start(&c, t, wait_for_each);
	for (uint32_t asleep = 0; asleep != SLEEPERS; usleep(100)) {
		unm_lock(cntr->domain);
		asleep = cntr->wait.asleep;
		unm_unlock(cntr->domain);
	}
	unm_lock(cntr->domain);
	before = cntr->wait.epoch;
	for (int i = 0; i < 100; i++)
		unm_cntr_add(cntr, 1);
	once = cntr->wait.epoch - before;
	cntr->wait.asleep++;		/* as if one more thread slept */
	unm_cntr_add(cntr, 1);
	twice = cntr->wait.epoch - before;
	cntr->wait.asleep--;
	cntr->wait.unaware--;
	unm_unlock(cntr->domain);
	crowd_end(&c, t);
	assert_int_equal(once, 1);
	assert_int_equal(twice, 2);
	assert_int_equal(fi_close(&c.cntr->fid), 0);
}

/* ---- Counters that any endpoint changes ------------------------------ */

struct writer {
	struct ep *a;
	fi_addr_t to;
	uint64_t key;
	_Atomic int asked;
	int count;
	int failed;
};

static int write_one(struct writer *w)
{
	uint64_t end = ep_now() + (uint64_t)LONG_MS * 1000;
	static char word[8];
	struct fi_cq_tagged_entry c;
	ssize_t ret;

	do {
		ret = fi_write(w->a->ep, word, 8, NULL, w->to, 0, w->key, w);
		fi_cq_read(w->a->cq, NULL, 0);
	} while (ret == -FI_EAGAIN && ep_now() < end);
	do {
		ret = fi_cq_read(w->a->cq, &c, 1);
	} while (ret == -FI_EAGAIN && ep_now() < end);
	return ret == 1 ? 0 : -1;
}

static void *write_when_asked(void *arg)
{
	struct writer *w = arg;

	for (int i = 1; i <= w->count && !w->failed; i++) {
		while (atomic_load(&w->asked) < i)
			usleep(20);
		usleep(i % 3 * 2000);
		w->failed = write_one(w) != 0;
	}
	return NULL;
}

static struct fid_mr *counted(struct ep *e, void *mem, size_t len,
			      struct fid_cntr *cntr)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(e->domain, mem, len, REMOTE, 0, 7, 0, &mr,
				   NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	return mr;
}

static void *read_now_and_then(void *arg)
{
	struct crowd *c = arg;
	struct fi_cq_tagged_entry comp;

	while (!atomic_load(&c->stop)) {
		fi_cq_read(c->e->cq, &comp, 1);
		usleep(1500);
	}
	return NULL;
}

/* A counter of a region, whose endpoint is enabled after the counter was bound;
 * another thread may poll the endpoint now and then. */
static void region_wakes(enum fi_wait_obj obj, bool polled)
{
	struct ep_want late = { .disabled = true,
				.threading = FI_THREAD_SAFE };
	struct ep *b = ep_open(&late), *a = ep_open(NULL);
	struct fid_cntr *cntr = open_waiting_cntr(b, obj);
	struct writer w = { .a = a, .key = 7, .count = ROUNDS / 10 };
	struct crowd c = { .e = b };
	struct fid *fids[] = { &cntr->fid };
	pthread_t writer, reader = 0;
	char mem[8];
	struct fid_mr *mr = counted(b, mem, sizeof(mem), cntr);

	assert_int_equal(fi_enable(b->ep), 0);
	w.to = ep_insert(a, b);
	writer = unit_thread(write_when_asked, &w);
	if (polled)
		reader = unit_thread(read_now_and_then, &c);
	for (int i = 1; i <= w.count; i++) {
		atomic_store(&w.asked, i);
		if (i % 4 == 0) {
			assert_int_equal(fi_cntr_wait(cntr, i, LONG_MS), 0);
			continue;
		}
		hold(fids[0], obj, true);
		while (fi_cntr_read(cntr) < (uint64_t)i)
			if (fi_trywait(b->fabric, fids, 1) == 0)
				block(fids[0], obj);
		hold(fids[0], obj, false);
	}
	/* progress for the last write's answer */
	for (uint64_t end = ep_deadline(); atomic_load(&w.asked) == w.count &&
	     pthread_tryjoin_np(writer, NULL) != 0; usleep(100)) {
		fi_cntr_read(cntr);
		ep_in_time(end, "a write");
	}
	atomic_store(&c.stop, true);
	if (polled)
		pthread_join(reader, NULL);
	assert_int_equal(w.failed, 0);
	assert_int_equal(fi_cntr_read(cntr), w.count);
	EP_CLOSE(&mr->fid, fids[0]);
	ep_close(a);
	ep_close(b);
}

static void test_a_region_wakes_who_waits_for_its_counter(void **state)
{
	for (int polled = 0; polled < 2; polled++) {
		region_wakes(FI_WAIT_FD, polled);
		region_wakes(FI_WAIT_MUTEX_COND, polled);
	}
}

/* A thread blocks on the counter's descriptor; another thread polls the
 * endpoint once, and so receives the event that would wake the first thread.
 * (One thread does both here.) The first thread must be woken. */
static void test_a_poll_elsewhere_wakes_the_waiter(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	struct fid_cntr *cntr = open_waiting_cntr(b, FI_WAIT_FD);
	struct pollfd pfd = { .fd = get_fd(&cntr->fid), .events = POLLIN };
	struct fid *fids[] = { &cntr->fid };
	struct fi_cq_tagged_entry c;
	char mem[8], word[8] = { 1 };
	struct fid_mr *mr = counted(b, mem, sizeof(mem), cntr);
	fi_addr_t to = ep_insert(a, b);

	EP_OK(fi_write(a->ep, word, 8, NULL, to, 0, 7, word));
	assert_int_equal(ep_wait(a, word).err, 0);
	assert_int_equal(fi_cntr_read(cntr), 1);
	ep_settle();
	for (uint64_t end = ep_deadline(); ; ep_in_time(end, "asleep")) {
		EP_OK(fi_trywait(b->fabric, fids, 1));
		if (poll(&pfd, 1, 0) == 0)
			break;
	}
	assert_int_equal(fi_cq_read(b->cq, &c, 1), -FI_EAGAIN);
	assert_int_equal(fi_write(a->ep, word, 8, NULL, to, 0, 7, word), 0);
	assert_int_equal(poll(&pfd, 1, LONG_MS), 1);
	assert_int_equal(ep_wait(a, word).err, 0);
	EP_CLOSE(&mr->fid, fids[0]);
}

/* An endpoint is in the epoll set of such a counter from fi_enable() until it
 * is closed, also if a child has a copy of the descriptor. */
static void test_the_set_of_a_counter_of_all(void **state)
{
	struct ep_want want = { .disabled = true };
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct ep *e = ep_open(&want);
	char mem[8];
	pid_t child;
	int epfd;

	cntr = open_waiting_cntr(e, FI_WAIT_FD);
	epfd = unm_cntr(cntr)->wait.epfd;
	mr = counted(e, mem, sizeof(mem), cntr);
	assert_int_equal(proc_self_watched(epfd), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(proc_self_watched(epfd), 1);
	child = unit_fork();
	if (child == 0)
		for (;;)
			pause();
	assert_int_equal(fi_close(&e->ep->fid), 0);
	e->ep = NULL;
	assert_int_equal(proc_self_watched(epfd), 0);
	unit_kill(child);
	EP_CLOSE(&mr->fid, &cntr->fid);
}

/* A wait that no event could end fails: no descriptors are available. */
static void test_a_counter_that_cannot_wait_for_all(void **state)
{
	struct fi_op_cntr op = { .value = 1 };
	struct fi_deferred_work work = { .threshold = 1,
					 .op_type = FI_OP_CNTR_ADD };
	struct fid_cntr *cntr, *first;
	struct fid_mr *mr;
	char text[512], mem[8];
	struct unm_wait *wait;
	struct unit_capture ear;
	int epfd, null;
	struct ep *e = ep_open(NULL);

	first = open_waiting_cntr(e, FI_WAIT_NONE);
	cntr = open_waiting_cntr(e, FI_WAIT_FD);
	wait = &unm_cntr(cntr)->wait;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(null >= 0);
	assert_int_equal(fi_mr_reg(e->domain, mem, sizeof(mem), REMOTE, 0, 7,
				   0, &mr, NULL), 0);
	op.cntr = cntr;
	work.triggering_cntr = first;
	work.op.cntr = &op;
	epfd = wait->epfd;
	wait->epfd = null;
	ear = unit_capture_begin();
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE),
			 -FI_EINVAL);
	assert_int_equal(fi_control(&e->domain->fid, FI_QUEUE_WORK, &work),
			 -FI_EINVAL);
	assert_int_equal(unit_capture_end(&ear, text, sizeof(text)), 2);
	assert_non_null(strstr(text, "cannot wait for a descriptor"));
	wait->epfd = epfd;
	close(null);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_control(&e->domain->fid, FI_QUEUE_WORK, &work), 0);
	assert_int_equal(proc_self_watched(epfd), 1);
	assert_int_equal(fi_cntr_add(first, 1), 0);
	assert_int_equal(fi_cntr_read(cntr), 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	/* every reference was released */
	EP_CLOSE(&cntr->fid, &first->fid);
}

/* ---- Refused sends --------------------------------------------------- */

/* Such an endpoint, connected to one that is not polled. */
static struct ep_pair lonely(const struct ep_want *want)
{
	struct ep_pair p = { .a = ep_open(want), .b = ep_open(NULL) };
	char c = 0;

	p.ab = ep_insert(p.a, p.b);
	EP_OK(fi_recv(p.b->ep, &c, 1, NULL, FI_ADDR_UNSPEC, &c));
	EP_OK(fi_inject(p.a->ep, &c, 1, p.ab));
	ep_received(p.b, &c);
	ep_settle();
	return p;
}

/* Send until a send is refused and fi_trywait() permits to sleep. */
static void send_until_promised(struct ep *a, fi_addr_t to, struct fid *fid)
{
	char c = 1;

	for (;;) {
		ssize_t ret = fi_inject(a->ep, &c, 1, to);

		if (ret == 0)
			continue;
		assert_int_equal(ret, -FI_EAGAIN);
		if (fi_trywait(a->fabric, &fid, 1) == 0)
			return;
	}
}

static void *drain_later(void *arg)
{
	struct crowd *c = arg;
	struct fi_cq_tagged_entry comp;

	usleep(20000);
	while (!atomic_load(&c->stop)) {
		fi_cq_read(c->e->cq, &comp, 1);
		usleep(100);
	}
	return NULL;
}

/* A sender that was refused sleeps, and its peer takes packets: the sender
 * wakes and can send. No other thread polls, except the library's, if there is
 * one. */
static void refused_sleeper(const struct ep_want *want)
{
	struct ep_pair p = lonely(want);
	struct crowd c = { .e = p.b };
	struct fid *fid = &p.a->cq->fid;
	pthread_t thread;
	char out = 1;
	ssize_t ret;

	hold(fid, want->wait, true);
	send_until_promised(p.a, p.ab, fid);
	thread = unit_thread(drain_later, &c);
	do {
		block(fid, want->wait);
		do {
			ret = fi_inject(p.a->ep, &out, 1, p.ab);
		} while (ret != 0 && fi_trywait(p.a->fabric, &fid, 1) != 0);
	} while (ret != 0);
	hold(fid, want->wait, false);
	atomic_store(&c.stop, true);
	pthread_join(thread, NULL);
	ep_pair_close(&p);
}

static const struct ep_want kinds[] = {
	{ .wait = FI_WAIT_FD, .threading = FI_THREAD_SAFE },
	{ .wait = FI_WAIT_MUTEX_COND, .threading = FI_THREAD_SAFE },
	{ .wait = FI_WAIT_FD, .progress = FI_PROGRESS_AUTO },
	{ .wait = FI_WAIT_MUTEX_COND, .progress = FI_PROGRESS_AUTO },
};
#define KINDS	(int)(sizeof(kinds) / sizeof(kinds[0]))

static void test_a_refused_sender_wakes(void **state)
{
	for (int i = 0; i < KINDS; i++)
		refused_sleeper(&kinds[i]);
}

static void *sread_until_signalled(void *arg)
{
	struct ep *e = arg;
	struct fi_cq_tagged_entry c;

	fi_cq_sread(e->cq, &c, 1, NULL, LONG_MS);
	return NULL;
}

static bool refused(struct ep *e, fi_addr_t to)
{
	bool is_refused;

	unm_lock(inside(e)->domain);
	is_refused = inside(e)->peer_of[to]->refused;
	unm_unlock(inside(e)->domain);
	return is_refused;
}

/* Another thread finds that a refused sender may retry before that sender
 * sleeps: fi_trywait() returns -FI_EAGAIN, whichever thread sleeps first. */
static void woken_in_time(const struct ep_want *want, bool reader)
{
	struct ep_pair p = lonely(want);
	struct fid *fid = &p.a->txcq->fid;
	uint64_t end = ep_deadline();
	pthread_t thread = 0;

	send_until_promised(p.a, p.ab, fid);
	if (reader)
		thread = unit_thread(sread_until_signalled, p.a);
	while (refused(p.a, p.ab)) {
		fi_cq_read(p.b->cq, NULL, 0);
		usleep(100);
		ep_in_time(end, "progress by others");
	}
	usleep(50000);			/* the other threads sleep again by
					 * now */
	assert_int_equal(fi_trywait(p.a->fabric, &fid, 1), -FI_EAGAIN);
	if (reader) {
		fi_cq_signal(p.a->cq);
		pthread_join(thread, NULL);
	}
	ep_pair_close(&p);
}

static void test_a_refused_sender_is_woken_in_time(void **state)
{
	for (int i = 0; i < KINDS; i++) {
		struct ep_want want = kinds[i];

		want.two_cqs = true;
		if (want.wait == FI_WAIT_FD)
			woken_in_time(&want, true);
		if (i != 0)
			woken_in_time(&want, false);
	}
}

/* A send was refused because no connection can be made now: the sender may not
 * sleep before it has retried, also if other threads make progress. */
static int connect_later(struct hal_if *hif, const struct hal_addr *addr,
			 struct hal_peer **peer)
{
	(void)hif;
	(void)addr;
	(void)peer;
	return -FI_EAGAIN;
}

static const struct hal_ops *ops_set(struct ep *e, const struct hal_ops *ops)
{
	struct hal_if *hif = inside(e)->hif;
	const struct hal_ops *was;

	unm_lock(inside(e)->domain);
	was = hif->ops;
	hif->ops = ops;
	unm_unlock(inside(e)->domain);
	return was;
}

static void test_no_sleep_without_a_connection(void **state)
{
	static struct hal_ops later;

	for (int i = 0; i < KINDS; i++) {
		struct ep_pair p = ep_pair(&kinds[i]);
		struct fid *fids[] = { &p.a->cq->fid };
		const struct hal_ops *was = inside(p.a)->hif->ops;
		char out = 1;

		later = *was;
		later.connect = connect_later;
		ep_settle();
		EP_OK(fi_trywait(p.a->fabric, fids, 1));
		ops_set(p.a, &later);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(fi_inject(p.a->ep, &out, 1, p.ab),
					 -FI_EAGAIN);
			usleep(30000);	/* another thread may sleep first */
			assert_int_equal(fi_trywait(p.a->fabric, fids, 1),
					 -FI_EAGAIN);
			/* reported once */
			EP_OK(fi_trywait(p.a->fabric, fids, 1));
		}
		ops_set(p.a, was);
		EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
		ep_pair_close(&p);
	}
}

/* ---- Closing --------------------------------------------------------- */

static void *close_when_left(void *arg)
{
	struct fid_wait *set = arg;

	while (fi_close(&set->fid) == -FI_EBUSY)
		;
	return NULL;
}

/* One thread closes a set as soon as another has closed what was in it, while
 * the library's thread signals its condition variable. */
static void test_a_member_and_its_set_are_closed_at_once(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fi_cntr_attr member = { .wait_obj = FI_WAIT_SET };
	struct ep *e = ep_open(&want);

	for (int i = 0; i < ROUNDS; i++) {
		struct fid_cntr *cntr;
		struct fid *fids[1];
		pthread_t thread;

		assert_int_equal(fi_wait_open(e->fabric, &attr,
					      &member.wait_set), 0);
		assert_int_equal(fi_cntr_open(e->domain, &member, &cntr, NULL),
				 0);
		fids[0] = &member.wait_set->fid;
		EP_OK(fi_trywait(e->fabric, fids, 1));
		thread = unit_thread(close_when_left, member.wait_set);
		fi_cntr_add(cntr, 1);
		assert_int_equal(fi_close(&cntr->fid), 0);
		pthread_join(thread, NULL);
	}
}

EP_THREADS_MAIN(
	EP_TEST(test_all_who_wait_for_a_counter_wake),
	EP_TEST(test_all_who_read_a_queue_wake),
	EP_TEST_INSIDE(test_one_wake_up_for_many_completions),
	EP_TEST(test_a_region_wakes_who_waits_for_its_counter),
	EP_TEST(test_a_poll_elsewhere_wakes_the_waiter),
	EP_TEST_INSIDE(test_the_set_of_a_counter_of_all),
	EP_TEST_INSIDE(test_a_counter_that_cannot_wait_for_all),
	EP_TEST(test_a_refused_sender_wakes),
	EP_TEST_INSIDE(test_a_refused_sender_is_woken_in_time),
	EP_TEST_INSIDE(test_no_sleep_without_a_connection),
	EP_TEST(test_a_member_and_its_set_are_closed_at_once),
)
