/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_events.c - the life of transfers of <unimem/unim_dma.h>: order,
 * ids, call-backs, event fd, notification, and the end of a board's service.
 */
#include <dirent.h>
#include <poll.h>
#include <sys/wait.h>

#include "lib/rdma_nodes.h"

#define MIB	(UINT64_C(1) << 20)

/* ---- Order and ids ----------------------------------------------------- */

/* Transfers start in the order of submission: where one is pending, all later
 * ones are. */
static void test_order(void **state)
{
	enum { N = 200 };
	unim_dma_buffer_t *a = buffer_on(0, 4 * MIB);
	unim_dma_buffer_t *b = buffer_on(1, 4 * MIB);
	unim_dma_transfer_id_t id[N];
	int waits = 0;

	(void)state;
	for (int i = 0; i < N; i++) {
		id[i] = unim_dma_submit_transfer(a, b, 0, 0, i % 3 ? 4 * MIB :
						 16, NULL, NULL);
		assert_true(id[i] != 0);
	}
	while (unim_dma_status(id[N - 1]) == DMA_PENDING) {
		bool started = false;

		/* backwards: what starts during the loop does not confuse it */
		for (int i = N - 1; i >= 0; i--) {
			unim_dma_status_t status = DMA_FAILED;

			assert_int_equal(unim_dma_test(id[i], &status), 0);
			assert_int_not_equal(status, DMA_FAILED);
			assert_false(started && status == DMA_PENDING);
			started |= status != DMA_PENDING;
		}
		waits++;
	}
	/* there were more than the HAL takes at once */
	assert_true(waits > 0);
	for (int i = 0; i < N; i++)
		completes(id[i]);
	unim_free_buf(a);
	unim_free_buf(b);
}

/* Ids are unique, also those of the library that is opened next; the states of
 * the last 2^14 transfers are known. */
static void test_ids(void **state)
{
	enum { N = 40000, KNOWN = 1 << 14 };
	unim_dma_transfer_id_t *id = calloc(N, sizeof(*id));
	unim_dma_buffer_t *a = NULL;
	unim_dma_status_t status;
	int before = 0;

	(void)state;
	for (int i = 0; i < N; i++) {
		if (i % (N / 2) == 0) {
			unim_dma_cleanup();
			assert_int_equal(unim_dma_init(node_of(0)), 0);
			a = buffer_on(0, PAGE);
		}
		id[i] = unim_dma_submit_transfer(a, a, 0, 8, 8, NULL, NULL);
		completes(id[i]);
		assert_true(id[i] != 0);
	}
	for (int i = 0; i < N / 2; i++)
		before += id[i] >= id[N / 2] && id[i] <= id[N - 1];
	assert_int_equal(before, 0);
	for (int i = 1; i < N; i++)
		assert_true(id[i] != id[i - 1]);
	assert_int_equal(unim_dma_test(id[N - 1], &status), 0);
	assert_int_equal(unim_dma_test(id[N - KNOWN], &status), 0);
	assert_int_equal(unim_dma_test(id[N - KNOWN - 1], &status), -ENOENT);
	assert_int_equal(unim_dma_status(id[0]), DMA_FAILED);
	assert_int_equal(unim_dma_error(), -ENOENT);
	assert_int_equal(unim_dma_wait(0, 0), -ENOENT);
	free(id);
}

/* ---- Call-backs -------------------------------------------------------- */

static _Atomic int g_calls;
static unim_dma_buffer_t *g_buf[2];

static void count(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}

/* A call-back that submits the next transfer, without end but for 100. */
static void chain(void *arg)
{
	HOLDS(arg == &g_calls);
	if (atomic_fetch_add(&g_calls, 1) < 100)
		HOLDS(unim_dma_submit_transfer(g_buf[0], g_buf[1], 0, 0, 64,
					       chain, arg) != 0);
}

/* The thread that makes call-backs leaves signals to the program, but not those
 * of mistakes in a call-back. */
static void check_signals(void *arg)
{
	sigset_t blocked;

	HOLDS(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
	HOLDS(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1));
	HOLDS(!sigismember(&blocked, SIGSEGV) &&
	      !sigismember(&blocked, SIGBUS) &&
	      !sigismember(&blocked, SIGFPE) &&
	      !sigismember(&blocked, SIGILL) &&
	      !sigismember(&blocked, SIGTRAP));
	count(arg);
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = -2;			/* . and .. */

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* Wait until there are n threads: the kernel lists a joined thread a little
 * longer. */
static void threads_become(int n)
{
	for (int ms = 0; threads() != n && ms < LONG_MS; ms++)
		usleep(1000);
	assert_int_equal(threads(), n);
}

/* Transfers, the event fd, polls and notification: all that a program can do
 * without a call-back. */
static void use_without_callbacks(void)
{
	unim_dma_buffer_t *a = buffer_on(0, MIB), *b = buffer_on(1, MIB);
	struct unim_dma_request q = {
		.src = a, .dst = b, .size = MIB, .notify = 1,
	};
	unim_dma_transfer_id_t id, ended;

	assert_true(unim_dma_event_fd() >= 0);
	completes(unim_dma_submit_transfer(a, b, 0, 0, MIB, NULL, NULL));
	assert_int_equal(unim_dma_submit(&q, &id), 0);
	assert_int_equal(unim_dma_wait_notify(b, 0, 1, LONG_MS), 0);
	while (unim_dma_poll(&ended, 1) == 1)
		;
	completes(id);
	unim_free_buf(a);
	unim_free_buf(b);
}

/* The library has no thread before the first call-back, from before
 * unim_dma_init() on. The services of the test, in this process too, start
 * threads when they need them first. */
static void test_no_hidden_thread(void **state)
{
	unim_dma_buffer_t *a;
	int before;

	(void)state;
	assert_int_equal(unim_dma_init(node_of(0)), 0);
	use_without_callbacks();
	unim_dma_cleanup();
	before = threads();
	assert_int_equal(unim_dma_init(node_of(0)), 0);
	assert_int_equal(threads(), before);
	use_without_callbacks();
	assert_int_equal(threads(), before);
	a = buffer_on(0, PAGE);
	atomic_store(&g_calls, 0);
	completes(unim_dma_submit_transfer(a, a, 0, 8, 8, count, &g_calls));
	assert_int_equal(threads(), before + 1);
	unim_dma_cleanup();
	threads_become(before);
}

static void await_calls(int n)
{
	for (int ms = 0; atomic_load(&g_calls) < n && ms < LONG_MS; ms++)
		usleep(1000);
	usleep(10000);
	assert_int_equal(atomic_load(&g_calls), n);
}

static void test_callbacks(void **state)
{
	unim_dma_transfer_id_t id[100];
	int before;

	(void)state;
	g_buf[0] = buffer_on(0, MIB);
	g_buf[1] = buffer_on(1, MIB);
	completes(unim_dma_submit_transfer(g_buf[0], g_buf[1], 0, 0, MIB, NULL,
					   NULL));
	before = threads();
	atomic_store(&g_calls, 0);
	for (int i = 0; i < 100; i++)
		id[i] = unim_dma_submit_transfer(g_buf[0], g_buf[1], 0, 0,
						 i % 2 ? 8 : MIB, count,
						 &g_calls);
	assert_int_equal(threads(), before + 1);
	await_calls(100);
	for (int i = 0; i < 100; i++)
		completes(id[i]);
	atomic_store(&g_calls, 0);
	completes(unim_dma_submit_transfer(g_buf[0], g_buf[1], 0, 0, 8,
					   check_signals, &g_calls));
	await_calls(1);
	atomic_store(&g_calls, 0);
	chain(&g_calls);
	await_calls(101);
	assert_int_equal(threads(), before + 1);
	unim_dma_cleanup();
	threads_become(before);
	assert_int_equal(unim_dma_init(node_of(0)), 0);
}

/* A call-back that submits more than its own slot could take, when all slots
 * were given to transfers whose call-backs have not been made. */
static _Atomic bool g_all_submitted;

static void submit_three(void *arg)
{
	if (arg == NULL)
		return;
	while (!atomic_load(&g_all_submitted))
		usleep(100);
	for (int i = 0; i < 3; i++)
		HOLDS(unim_dma_submit_transfer(g_buf[0], g_buf[0], 0, 8, 8,
					       count, &g_calls) != 0);
}

static void test_callback_submits(void **state)
{
	enum { N = 1 << 14 };
	unim_dma_transfer_id_t id = 0;

	(void)state;
	g_buf[0] = buffer_on(0, PAGE);
	atomic_store(&g_calls, 0);
	atomic_store(&g_all_submitted, false);
	for (int i = 0; i < N; i++) {
		id = unim_dma_submit_transfer(g_buf[0], g_buf[0], 0, 8, 8,
					      submit_three,
					      i == 0 ? g_buf[0] : NULL);
		completes(id);
	}
	atomic_store(&g_all_submitted, true);
	await_calls(3);
}

/* Without memory for a thread a transfer with a call-back is refused; a
 * transfer without one needs no thread. */
static void test_no_thread(void **state)
{
	pthread_attr_t attr, huge;
	unim_dma_buffer_t *a = buffer_on(0, PAGE);

	(void)state;
	assert_int_equal(pthread_getattr_default_np(&attr), 0);
	assert_int_equal(pthread_getattr_default_np(&huge), 0);
	assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 50), 0);
	assert_int_equal(pthread_setattr_default_np(&huge), 0);
	assert_int_equal(unim_dma_submit_transfer(a, a, 0, 8, 8, count,
						  &g_calls), 0);
	assert_int_equal(unim_dma_error(), -ENOMEM);
	completes(unim_dma_submit_transfer(a, a, 0, 8, 8, NULL, NULL));
	assert_int_equal(pthread_setattr_default_np(&attr), 0);
	atomic_store(&g_calls, 0);
	completes(unim_dma_submit_transfer(a, a, 0, 8, 8, count, &g_calls));
	await_calls(1);
	unim_free_buf(a);
}

/* ---- Threads ----------------------------------------------------------- */

/* Each thread uses buffers of its own, and call-backs now and then. */
static void *worker(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < 40; i++) {
		uint64_t want = seed * 1000 + i, back = 0;
		unim_dma_buffer_t *a = NULL, *b = NULL;
		unim_dma_transfer_id_t id;
		_Atomic int calls = 0;

		HOLDS(unim_dma_alloc(PAGE, UNIM_DMA_NODE, node_of((int)i % 2),
				     &a) == 0);
		HOLDS(unim_dma_get(unim_get_buf_id(a), &b) == 0);
		id = unim_dma_submit_transfer_from_mem(&want, a, 0, i, 8,
			i % 4 == 0 ? count : NULL, &calls);
		HOLDS(unim_dma_wait(id, LONG_MS) == 0);
		id = unim_dma_submit_transfer_to_mem(b, &back, i, 0, 8, NULL,
						     NULL);
		HOLDS(unim_dma_wait(id, LONG_MS) == 0 && back == want);
		while (i % 4 == 0 && atomic_load(&calls) == 0)
			sched_yield();
		unim_free_buf(b);
		unim_free_buf(a);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		thread[i] = unit_thread(worker, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* ---- Event fd ---------------------------------------------------------- */

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void test_event_fd(void **state)
{
	enum { N = 20 };
	unim_dma_buffer_t *a = buffer_on(0, MIB), *b = buffer_on(1, MIB);
	unim_dma_transfer_id_t id[N], got[3];
	int fd = unim_dma_event_fd(), n, ended = 0, times[N] = { 0 };

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unim_dma_event_fd(), fd);
	assert_false(readable(fd));
	for (int i = 0; i < N; i++)
		id[i] = unim_dma_submit_transfer(a, b, 0, 0, MIB, NULL, NULL);
	while (ended < N) {
		assert_true(readable(fd));
		n = unim_dma_poll(got, 3);
		assert_true(n >= 0 && n <= 3);
		for (int k = 0; k < n; k++)
			for (int i = 0; i < N; i++)
				times[i] += id[i] == got[k];
		ended += n;
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(times[i], 1);
	assert_int_equal(unim_dma_poll(got, 3), 0);
	assert_false(readable(fd));
	unim_free_buf(a);
	unim_free_buf(b);
}

/* ---- Notification ------------------------------------------------------ */

static void test_notify(void **state)
{
	unim_dma_buffer_t *a = buffer_on(0, MIB);
	uint8_t *text = malloc(MIB);
	unim_dma_transfer_id_t id = 0;

	(void)state;
	for (int node = 0; node < 2; node++) {
		unim_dma_buffer_t *b = buffer_on(node, MIB + PAGE);
		struct unim_dma_request q = {
			.src = a, .dst = b, .size = MIB, .notify = 1,
			.notify_off = MIB + 16,
		};

		assert_int_equal(unim_dma_wait_notify(b, MIB + 16, 0, 0), 0);
		assert_int_equal(unim_dma_wait_notify(b, MIB + 16, 1, 20),
				 -ETIMEDOUT);
		assert_int_equal(unim_dma_wait_notify(b, MIB + 4, 0, 0),
				 -EINVAL);
		for (uint64_t i = 1; i <= 5; i++) {
			fill(unim_buf_get_memory(a), MIB, i);
			assert_int_equal(unim_dma_submit(&q, &id), 0);
			assert_int_equal(unim_dma_wait_notify(b, MIB + 16, i,
							      LONG_MS), 0);
			completes(id);
			completes(unim_dma_submit_transfer_to_mem(b, text, 0,
				0, MIB, NULL, NULL));
			assert_true(filled(text, MIB, i));
		}
		/* nothing but the word was changed */
		completes(unim_dma_submit_transfer_to_mem(b, text, MIB, 0,
							  PAGE, NULL, NULL));
		for (int i = 0; i < PAGE; i++)
			assert_int_equal(text[i], i == 16 ? 5 : 0);
		unim_free_buf(b);
	}
	unim_free_buf(a);
	free(text);
}

/* ---- Forks ------------------------------------------------------------- */

/* The child opens the library for itself, and frees the objects of its parent,
 * which keeps them. */
static void test_fork(void **state)
{
	unim_dma_buffer_t *a = buffer_on(0, MIB), *b = buffer_on(1, MIB);
	int status;
	pid_t pid;

	(void)state;
	completes(unim_dma_submit_transfer(a, b, 0, 0, MIB, count, &g_calls));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		HOLDS(unim_alloc_buf_l(PAGE) == NULL);
		HOLDS(unim_dma_init(node_of(0)) == 0);
		a = unim_alloc_buf_l(MIB);
		HOLDS(a != NULL && unim_buf_get_memory(a) != NULL);
		/* without a thread, which TSan does not allow here */
		HOLDS(unim_dma_wait(unim_dma_submit_transfer(a, a, 0, MIB / 2,
				MIB / 2, NULL, NULL), LONG_MS) == 0);
		unim_dma_cleanup();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	completes(unim_dma_submit_transfer(a, b, 0, 0, MIB, NULL, NULL));
	unim_free_buf(a);
	unim_free_buf(b);
}

/* ---- A stopped service ------------------------------------------------- */

/* Stop the thread of a service, which stays connected. */
static void service_halt(int i)
{
	struct host *h = &g_host[i];

	atomic_store(&h->stop, true);
	gsas_board_wake(h->board);
	pthread_join(h->thread, NULL);
}

static void service_continue(int i)
{
	struct host *h = &g_host[i];

	atomic_store(&h->stop, false);
	h->thread = unit_thread(host_run, h);
}

/* Notifications wait for the service of a board, more than it takes at once.
 * Other transfers do not wait for them. */
static void test_stopped_service(void **state)
{
	enum { N = 700 };
	unim_dma_buffer_t *a = buffer_on(0, MIB), *b = buffer_on(1, MIB);
	struct unim_dma_request q = { .src = a, .dst = b, .size = 8,
				      .notify = 1, .notify_off = 64 };
	unim_dma_transfer_id_t id[N];

	(void)state;
	service_halt(1);
	for (int i = 0; i < N; i++)
		assert_int_equal(unim_dma_submit(&q, &id[i]), 0);
	for (int i = 0; i < 10; i++) {
		completes(unim_dma_submit_transfer(a, b, 0, 128, 4096, NULL,
						   NULL));
		completes(unim_dma_submit_transfer(a, a, 0, MIB / 2, MIB / 2,
						   NULL, NULL));
	}
	q.dst = a;
	assert_int_equal(unim_dma_submit(&q, &id[0]), 0);
	completes(id[0]);
	assert_int_equal(unim_dma_wait(id[N - 1], 0), -ETIMEDOUT);
	service_continue(1);
	for (int i = 0; i < N; i++)
		completes(id[i]);
	assert_int_equal(unim_dma_wait_notify(b, 64, N, LONG_MS), 0);
	unim_free_buf(a);
	unim_free_buf(b);
}

/* A service that stays stopped: its notifications fail when the time limit has
 * passed, and so their buffers can be freed. Time in which the program makes no
 * call does not count. */
static void test_time_limit(void **state)
{
	struct unim_dma_request q = { .size = 8, .notify = 1 };
	unim_dma_buffer_t *a, *b;
	unim_dma_status_t status;
	unim_dma_transfer_id_t id;

	(void)state;
	unim_dma_cleanup();
	setenv("GSAS_TIMEOUT", "400", 1);
	assert_int_equal(unim_dma_init(node_of(0)), 0);
	unsetenv("GSAS_TIMEOUT");
	q.src = a = buffer_on(0, PAGE);
	q.dst = b = buffer_on(1, PAGE);
	service_halt(1);
	assert_int_equal(unim_dma_submit(&q, &id), 0);
	usleep(600000);
	assert_int_equal(unim_dma_test(id, &status), 0);
	assert_int_equal(status, DMA_STARTED);
	assert_int_equal(unim_dma_wait(id, LONG_MS), -ETIMEDOUT);
	assert_int_equal(unim_dma_status(id), DMA_FAILED);
	unim_free_buf(b);
	completes(unim_dma_submit_transfer(a, a, 0, 8, 8, NULL, NULL));
	service_continue(1);
	b = buffer_on(1, PAGE);
	completes(unim_dma_submit_transfer(a, b, 0, 8, 8, NULL, NULL));
	unim_free_buf(b);
	unim_free_buf(a);
}

/* A transfer that does not end keeps its slot and its id, and stops no other
 * one; -EAGAIN comes only when no slot is free. */
static void test_all_slots(void **state)
{
	enum { SLOTS = 1 << 14 };
	unim_dma_buffer_t *a = buffer_on(0, PAGE), *b = buffer_on(1, PAGE);
	struct unim_dma_request q = { .src = a, .dst = b, .size = 8,
				      .notify = 1, .notify_off = 64 };
	unim_dma_transfer_id_t first, id = 0;

	(void)state;
	service_halt(1);
	assert_int_equal(unim_dma_submit(&q, &first), 0);
	for (int i = 0; i < 2 * SLOTS; i++) {
		id = unim_dma_submit_transfer(a, a, 0, 8, 8, NULL, NULL);
		completes(id);
	}
	assert_int_equal(unim_dma_status(first), DMA_STARTED);
	for (int i = 1; i < SLOTS; i++)
		assert_int_equal(unim_dma_submit(&q, &id), 0);
	assert_int_equal(unim_dma_submit(&q, &id), -EAGAIN);
	service_continue(1);
	completes(first);
	completes(id);
	assert_int_equal(unim_dma_wait_notify(b, 64, SLOTS, LONG_MS), 0);
	completes(unim_dma_submit_transfer(a, a, 0, 8, 8, NULL, NULL));
	unim_free_buf(a);
	unim_free_buf(b);
}

/* ---- The end of a service ---------------------------------------------- */

static void test_service_ends(void **state)
{
	enum { N = 50 };
	unim_dma_buffer_t *a = buffer_on(0, MIB), *b = buffer_on(1, MIB);
	unim_dma_transfer_id_t id[N];
	uint8_t *at = unim_buf_get_memory(b);
	int ret;

	(void)state;
	for (int i = 0; i < N; i++)
		id[i] = unim_dma_submit_transfer(a, b, 0, 0, MIB, NULL, NULL);
	host_stop(1);
	for (int i = 0; i < N; i++) {
		ret = unim_dma_wait(id[i], LONG_MS);
		assert_true(ret == 0 || ret == -ECONNRESET);
	}
	id[0] = unim_dma_submit_transfer(a, b, 0, 0, 8, NULL, NULL);
	assert_true(id[0] != 0);
	assert_int_equal(unim_dma_wait(id[0], LONG_MS), -ECONNRESET);
	assert_int_equal(unim_dma_status(id[0]), DMA_FAILED);
	assert_int_equal(unim_dma_wait_notify(b, 0, 1, LONG_MS), -ECONNRESET);
	/* a pointer lasts as long as its buffer object */
	if (at != NULL)
		at[100] = 1;
	unim_free_buf(b);
	host_start(1);
	b = buffer_on(1, MIB);
	completes(unim_dma_submit_transfer(a, b, 0, 0, MIB, NULL, NULL));
	unim_free_buf(b);
	unim_free_buf(a);
}

HOST_MAIN(
	RDMA_TEST(test_order),
	RDMA_TEST(test_ids),
	cmocka_unit_test(test_no_hidden_thread),
	RDMA_TEST(test_callbacks),
	RDMA_TEST(test_callback_submits),
	RDMA_TEST(test_no_thread),
	RDMA_TEST(test_threads),
	RDMA_TEST(test_event_fd),
	RDMA_TEST(test_notify),
	RDMA_TEST(test_fork),
	RDMA_TEST(test_stopped_service),
	RDMA_TEST(test_time_limit),
	RDMA_TEST(test_all_slots),
	RDMA_TEST(test_service_ends),
)
