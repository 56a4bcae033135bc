/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_auto.c - FI_PROGRESS_AUTO: a thread of the domain makes progress while
 * the application does not poll. The thread sleeps while nothing happens, ends
 * with the domain, and a forked child works without it.
 */
#include <dirent.h>
#include <inttypes.h>

#include "api/unm_wait.h"
#include "core/unm_wake.h"
#include "lib/ep_wait.h"
#include "lib/proc_files.h"
#include "progress/unm_auto.h"

#define BIG	(1 << 20)	/* bytes: a rendezvous, in which both sides have
				 * to make progress */

/* Waits until there are n threads: a joined thread is listed a little
 * longer. */
static void threads_become(int n)
{
	uint64_t end = ep_deadline();

	while (proc_names("/proc/self/task", "") != n) {
		usleep(1000);
		ep_in_time(end, "the threads of a domain");
	}
}

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void node_open(struct node *n, enum fi_progress control,
		      enum fi_progress data)
{
	struct ep_want want = { .threading = FI_THREAD_DOMAIN };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT,
				 .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_info *hints = ep_hints(&want);

	hints->domain_attr->control_progress = control;
	hints->domain_attr->data_progress = data;
	assert_int_equal(ep_getinfo(hints, &n->info), 0);
	fi_freeinfo(hints);
	if (control != FI_PROGRESS_UNSPEC)
		assert_int_equal(n->info->domain_attr->control_progress,
				 control);
	if (data != FI_PROGRESS_UNSPEC)
		assert_int_equal(n->info->domain_attr->data_progress, data);
	assert_int_equal(ep_fabric(n->info, &n->fabric), 0);
	assert_int_equal(fi_domain(n->fabric, n->info, &n->domain, NULL), 0);
	assert_int_equal(fi_av_open(n->domain, &av, &n->av, NULL), 0);
	assert_int_equal(fi_cq_open(n->domain, &cq, &n->cq, NULL), 0);
	assert_int_equal(fi_endpoint(n->domain, n->info, &n->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(n->ep, &n->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(n->ep, &n->cq->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_enable(n->ep), 0);
}

static int node_close(struct node *n)
{
	int ret = fi_close(&n->ep->fid) | fi_close(&n->cq->fid) |
		fi_close(&n->av->fid) | fi_close(&n->domain->fid) |
		fi_close(&n->fabric->fid);

	fi_freeinfo(n->info);
	return ret;
}

static fi_addr_t node_knows(struct node *n, struct node *other)
{
	size_t len = 64;
	fi_addr_t to;
	char name[64];

	assert_int_equal(fi_getname(&other->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(n->av, name, 1, &to, 0, NULL), 1);
	return to;
}

static int node_comp(struct node *n, void *context, int polls)
{
	struct fi_cq_entry c = { NULL };
	uint64_t end = ep_deadline();

	while (polls == 0 || polls-- > 1) {
		ssize_t ret = fi_cq_read(n->cq, &c, 1);

		if (ret == 1)
			return c.op_context == context ? 0 : -1;
		if (ret != -FI_EAGAIN || ep_now() > end)
			return -2;
	}
	return -3;
}

static void test_no_thread_unless_asked_for(void **state)
{
	static const enum fi_progress kinds[][2] = {
		{ FI_PROGRESS_UNSPEC, FI_PROGRESS_UNSPEC },
		{ FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL },
		{ FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL },
		{ FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO },
		{ FI_PROGRESS_AUTO, FI_PROGRESS_AUTO },
	};
	struct node n;
	int before;

	/* a sanitizer may have a thread of its own from the first one on */
	node_open(&n, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	before = proc_names("/proc/self/task", "") - 1;
	assert_int_equal(node_close(&n), 0);
	threads_become(before);
	for (int i = 0; i < 5; i++) {
		node_open(&n, kinds[i][0], kinds[i][1]);
		threads_become(before + (i >= 2));
		assert_int_equal(node_close(&n), 0);
		threads_become(before);
	}
}

/* a sends by rendezvous and polls; b has posted a receive and makes no call:
 * the send of a ends. */
static void test_it_moves_what_nobody_polls_for(void **state)
{
	struct node a, b;
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);
	fi_addr_t to;

	node_open(&a, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL);
	node_open(&b, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	to = node_knows(&a, &b);
	for (int i = 0; i < 20; i++) {
		ssize_t ret;

		memset(out, i + 1, BIG);
		assert_int_equal(fi_recv(b.ep, in, BIG, NULL, FI_ADDR_UNSPEC,
					 in), 0);
		if (i % 4 == 3)
			usleep(150000);	/* the thread sleeps by now */
		while ((ret = fi_send(a.ep, out, BIG, NULL, to, out)) ==
		       -FI_EAGAIN)
			fi_cq_read(a.cq, NULL, 0);
		assert_int_equal(ret, 0);
		assert_int_equal(node_comp(&a, out, 0), 0);
		assert_int_equal(node_comp(&b, in, 0), 0);
		assert_memory_equal(in, out, BIG);
	}
	assert_int_equal(node_close(&a), 0);
	assert_int_equal(node_close(&b), 0);
}

/* Both sides poll and both have threads. The application and the thread do not
 * disturb each other, and a sleeping call returns when the thread finds an
 * event. */
static void test_it_shares_with_who_polls(void **state)
{
	struct node a, b;
	fi_addr_t to;
	char in, out = 1;

	node_open(&a, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	node_open(&b, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	to = node_knows(&a, &b);
	for (int i = 0; i < (UNIT_SLOW ? 200 : 2000); i++) {
		struct fi_cq_entry c = { NULL };

		assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC,
					 &in), 0);
		while (fi_inject(a.ep, &out, 1, to) == -FI_EAGAIN)
			fi_cq_read(a.cq, NULL, 0);
		if (i % 2 == 0) {
			assert_int_equal(node_comp(&b, &in, 0), 0);
			continue;
		}
		assert_int_equal(fi_cq_sread(b.cq, &c, 1, NULL, 60000), 1);
		assert_ptr_equal(c.op_context, &in);
	}
	assert_int_equal(node_close(&a), 0);
	assert_int_equal(node_close(&b), 0);
}

/* The thread wakes ten times a second, which the endpoint counts as a sleep and
 * as many polls as fit between two readings of the clock. A thread that
 * slept 1 ms at a time would poll 1000 times a second, and one that did not
 * sleep 100,000 times. */
static void test_it_sleeps(void **state)
{
	struct unm_stats was[4], is;
	struct node n[4];

	for (int i = 0; i < 4; i++)
		node_open(&n[i], FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	usleep(200000);
	for (int i = 0; i < 4; i++)
		was[i] = stats_of(n[i].ep);
	usleep(1500000);
	for (int i = 0; i < 4; i++) {
		uint64_t sleeps, polls;

		is = stats_of(n[i].ep);
		sleeps = is.sleeps - was[i].sleeps;
		polls = is.polls - was[i].polls;
		assert_in_range(sleeps, 1, 100);
		assert_in_range(polls, 0, sleeps * UNM_CLOCK_POLLS + 500);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(node_close(&n[i]), 0);
}

/* ---- One thread per domain -------------------------------------------- */

#define OPENERS	4

struct opener {
	struct ep *e;
	int nr, failed;
	pthread_barrier_t *start;
};

/* The first opener enables the endpoint, the rest open objects that need the
 * domain's thread. */
static void *open_at_once(void *arg)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct opener *o = arg;
	struct fid_cq *cq;

	pthread_barrier_wait(o->start);
	if (o->nr == 0) {
		o->failed = fi_enable(o->e->ep) != 0;
		return NULL;
	}
	o->failed = fi_cq_open(o->e->domain, &attr, &cq, NULL) != 0 ||
		fi_close(&cq->fid) != 0;
	return NULL;
}

/* Is a descriptor in an epoll set? */
static bool has_fd(int epfd, int fd)
{
	char path[64], line[256];
	bool has = false;
	int tfd;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		has |= sscanf(line, "tfd: %d", &tfd) == 1 && tfd == fd;
	fclose(f);
	return has;
}

static void test_objects_opened_at_once(void **state)
{
	struct ep_want want = { .disabled = true,
				.threading = FI_THREAD_SAFE };
	pthread_barrier_t start;
	int before = 0;

	pthread_barrier_init(&start, NULL, OPENERS);
	/* the first round counts the threads without the domain's */
	for (int i = 0; i <= (UNIT_SLOW ? 10 : 40); i++) {
		struct opener o[OPENERS];
		pthread_t t[OPENERS];
		struct unm_ep *ep;
		struct ep *e = ep_open(&want);

		for (int k = 0; k < OPENERS; k++) {
			o[k] = (struct opener){ .e = e, .nr = k,
						.start = &start };
			t[k] = unit_thread(open_at_once, &o[k]);
		}
		for (int k = 0; k < OPENERS; k++) {
			pthread_join(t[k], NULL);
			assert_int_equal(o[k].failed, 0);
		}
		if (i == 0)
			before = proc_names("/proc/self/task", "") - 1;
		threads_become(before + 1);
		ep = (struct unm_ep *)e->ep;
		assert_true(has_fd(ep->domain->thread_wait->epfd,
				   hal_if_fd(ep->hif)));
		ep_close(e);
		threads_become(before);
	}
	pthread_barrier_destroy(&start);
}

/* The signals that every thread of this process except the first blocks. */
static uint64_t blocked_signals(void)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t blocked = 0, mask;
	struct dirent *d;

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL) {
		char path[512], line[256];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 d->d_name);
		f = d->d_name[0] != '.' && atoi(d->d_name) != getpid() ?
			fopen(path, "r") : NULL;
		if (f == NULL)
			continue;
		while (fgets(line, sizeof(line), f) != NULL)
			if (sscanf(line, "SigBlk: %" SCNx64, &mask) == 1)
				blocked |= mask;
		fclose(f);
	}
	closedir(dir);
	return blocked;
}

/* The domain's thread blocks all signals but those of its own faults. */
static void test_signals(void **state)
{
	static const int faults[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
	};
	uint64_t end = ep_deadline(), own = 0, blocked;
	struct node n;

	if (UNIT_SLOW)			/* a sanitizer may have threads, too */
		skip();
	node_open(&n, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	for (int i = 0; i < 5; i++)
		own |= UINT64_C(1) << (faults[i] - 1);
	/* a thread that starts or ends blocks all signals */
	while (((blocked = blocked_signals()) & own) != 0 || blocked == 0) {
		usleep(1000);
		ep_in_time(end, "signals of the thread");
	}
	assert_true(blocked >> (SIGTERM - 1) & 1);
	assert_true(blocked >> (SIGUSR1 - 1) & 1);
	assert_int_equal(node_close(&n), 0);
}

/* ---- fork() ---------------------------------------------------------- */

/* Children forked at any moment close the inherited objects, and the parent
 * continues. */
static void test_fork(void **state)
{
	struct node a, b;
	fi_addr_t to;
	char in, out = 1;

	node_open(&a, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	node_open(&b, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	to = node_knows(&a, &b);
	for (int i = 0; i < (UNIT_SLOW ? 20 : 100); i++) {
		pid_t pid;

		assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC,
					 &in), 0);
		while (fi_inject(a.ep, &out, 1, to) == -FI_EAGAIN)
			fi_cq_read(a.cq, NULL, 0);
		pid = unit_fork();
		if (pid == 0) {
			alarm(60);
			_exit(node_close(&a) != 0 || node_close(&b) != 0);
		}
		assert_int_equal(node_comp(&b, &in, 0), 0);
		assert_int_equal(unit_exit_code(pid), 0);
	}
	assert_int_equal(node_close(&a), 0);
	assert_int_equal(node_close(&b), 0);
}

/* A thread holds the domain's lock during fork(): in the child the lock is
 * never released, and closing the inherited objects works nevertheless. */
struct holder {
	struct unm_domain *domain;
	_Atomic bool holds, stop;
};

static void *hold_lock(void *arg)
{
	struct holder *h = arg;

	pthread_mutex_lock(&h->domain->cond_lock);
	unm_lock(h->domain);
	atomic_store(&h->holds, true);
	while (!atomic_load(&h->stop))
		usleep(1000);
	unm_unlock(h->domain);
	pthread_mutex_unlock(&h->domain->cond_lock);
	return NULL;
}

static void test_fork_in_a_call(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_MUTEX_COND, .cntrs = true,
				.threading = FI_THREAD_SAFE };
	struct holder h = { .domain = NULL };
	struct fid_mr *mr;
	pthread_t thread;
	struct ep *e = ep_open(&want);
	char mem[8];
	pid_t pid;

	assert_int_equal(fi_mr_reg(e->domain, mem, sizeof(mem),
				   FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &e->rxcntr->fid, FI_REMOTE_WRITE), 0);
	h.domain = ((struct unm_ep *)e->ep)->domain;
	thread = unit_thread(hold_lock, &h);
	while (!atomic_load(&h.holds))
		usleep(1000);
	pid = unit_fork();
	if (pid == 0) {
		alarm(20);
		_exit(fi_close(&mr->fid) != 0 || ep_teardown(NULL) != 0);
	}
	atomic_store(&h.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(unit_exit_code(pid), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	ep_close(e);
}

EP_THREADS_MAIN(
	EP_TEST(test_no_thread_unless_asked_for),
	EP_TEST(test_it_moves_what_nobody_polls_for),
	EP_TEST(test_it_shares_with_who_polls),
	EP_TEST_INSIDE(test_it_sleeps),
	EP_TEST_INSIDE(test_objects_opened_at_once),
	EP_TEST(test_signals),
	EP_TEST(test_fork),
	EP_TEST_INSIDE(test_fork_in_a_call),
)
