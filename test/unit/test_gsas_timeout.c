/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_timeout.c - a service that is stopped (SIGSTOP, a debugger): calls
 * end with -ETIMEDOUT after GSAS_TIMEOUT, whatever they wait for. A service
 * that runs but is slow is waited for.
 */

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_progress.h"
#include "client/gsas_queue_handle.h"
#include "client/gsas_wait.h"
#include "lib/gsas_services.h"
#include "util/unm_clock.h"

#define LIMIT_MS	300		/* GSAS_TIMEOUT */
#define SLOW_MS		1000		/* of a thread whose service has to
					 * answer in time, on a busy machine
					 * too */
#define QUOTA		4096		/* words of a queue */
#define FLOOD		1000000		/* more requests than any board takes */

/* The service runs again; waits until it serves. */
static gsas_addr resume(pid_t pid)
{
	gsas_addr a;

	assert_int_equal(kill(pid, SIGCONT), 0);
	while (gsas_alloc(1, g_first + 1, 0, NULL, &a) != 0)
		;
	/* from here on starting a request asks the service nothing */
	assert_int_equal(gsas_write64(a, 1), 0);
	return a;
}

/* All waits since the service last answered, which began at begin or up to 1 ms
 * before, lasted so long. */
static void check_waited(uint64_t begin, uint64_t ms)
{
	assert_true(unm_now_ns() - begin >= (ms - 1) * 1000000);
}

static void test_stopped(void **state)
{
	static uint8_t bytes[1 << 20];
	gsas_addr here = host_alloc(1, 0, 0), a;
	uint64_t value, begin;
	struct gsas_req one, put;
	pid_t pid;
	int ret;

	host_stop(1);
	pid = host_process(1);
	a = resume(pid);
	/* waits for an answer; the time before the call does not count */
	usleep(LIMIT_MS * 1000);
	unit_stop(pid);
	begin = unm_now_ns();
	assert_int_equal(gsas_read64(a, &value), -ETIMEDOUT);
	check_waited(begin, LIMIT_MS);
	/* the other board is not affected */
	assert_int_equal(gsas_write64(here, 3), 0);
	/* a call made while it is stopped ends, too */
	assert_true(gsas_read64(a, &value) < 0);
	a = resume(pid);
	/* several requests, one of which cannot be sent completely */
	unit_stop(pid);
	assert_int_equal(gsas_fad64_start(a, 1, NULL, &one), 0);
	assert_int_equal(gsas_put_start(a, bytes, GSAS_PAGE, &put), 0);
	assert_int_equal(gsas_wait(&put), -ETIMEDOUT);
	assert_int_equal(gsas_wait(&one), -ETIMEDOUT);
	a = resume(pid);
	/* waits for space for posted requests */
	unit_stop(pid);
	ret = 0;
	for (int i = 0; i < FLOOD && ret == 0; i++)
		ret = gsas_write64_post(a, 1);
	assert_int_equal(ret, -ETIMEDOUT);
	assert_true(gsas_fence(-1) < 0);
	a = resume(pid);
	assert_int_equal(gsas_write64(a, 5), 0);
	assert_int_equal(host_read(a), 5);
	assert_int_equal(gsas_free(here), 0);
	unit_kill(pid);
	host_start(1);
}

/* A thread that polls, and computes in between, has no other call that ends. */
static void test_stopped_polled(void **state)
{
	struct gsas_req req[2];
	uint64_t begin;
	size_t index;
	gsas_addr a;
	pid_t pid;
	int ret;

	host_stop(1);
	pid = host_process(1);
	for (int any = 0; any < 2; any++) {
		a = resume(pid);
		unit_stop(pid);
		begin = unm_now_ns();
		for (int i = 0; i < 2; i++)
			assert_int_equal(gsas_fad64_start(a, 1, NULL, &req[i]),
					 0);
		do {
			usleep(500);
			ret = any ? gsas_test_any(req, 2, &index) :
				gsas_test(&req[0]);
		} while (ret == -FI_EINPROGRESS &&
			 unm_now_ns() - begin < UINT64_C(60000000000));
		assert_int_equal(ret, -ETIMEDOUT);
		check_waited(begin, LIMIT_MS);
		assert_int_equal(gsas_wait(&req[any ? 1 - index : 1]),
				 -ETIMEDOUT);
	}
	(void)resume(pid);
	unit_kill(pid);
	host_start(1);
}

/* Words of a queue are posted, so none of them is a pending request. */
static void test_stopped_queue(void **state)
{
	struct gsas_queue_handle *q;
	gsas_addr addr;
	uint64_t begin;
	pid_t pid;
	int ret = 0;

	host_stop(1);
	pid = host_process(1);
	(void)resume(pid);
	assert_int_equal(gsas_queue_create(QUOTA, QUOTA, g_first + 1, 0, NULL,
					   &addr), 0);
	assert_int_equal(gsas_queue_open(addr, &q), 0);
	assert_int_equal(gsas_enqueue(q, 0), 0);
	unit_stop(pid);
	begin = unm_now_ns();
	for (int i = 0; i < FLOOD && ret == 0; i++)
		ret = gsas_enqueue(q, 1);
	assert_int_equal(ret, -ETIMEDOUT);
	check_waited(begin, LIMIT_MS);
	assert_int_equal(gsas_enqueue(q, 2), -ECONNRESET);
	gsas_queue_close(q);
	(void)resume(pid);
	assert_true(gsas_fence(-1) < 0);
	unit_kill(pid);
	host_start(1);
}

/* A wait for a word, without a limit and with a longer one. */
static void stopped_dequeue(int ms)
{
	struct gsas_queue_handle *q;
	uint64_t word, begin;
	gsas_addr addr;
	pid_t pid;

	host_stop(1);
	pid = host_process(1);
	(void)resume(pid);
	assert_int_equal(gsas_queue_create(8, 8, g_first + 1, 0, NULL, &addr),
			 0);
	assert_int_equal(gsas_queue_open(addr, &q), 0);
	assert_int_equal(gsas_dequeue(q, &word), -EAGAIN);
	begin = unm_now_ns();
	/* The limit of the call is not that of the service. This wait counts
	 * as waited for the service, too. */
	assert_int_equal(gsas_dequeue_wait(q, &word, 1), -ETIMEDOUT);
	assert_int_equal(gsas_dequeue(q, &word), -EAGAIN);
	unit_stop(pid);
	assert_int_equal(gsas_dequeue_wait(q, &word, ms), -ETIMEDOUT);
	check_waited(begin, LIMIT_MS);
	assert_int_equal(gsas_dequeue_wait(q, &word, ms), -ECONNRESET);
	gsas_queue_close(q);
	(void)resume(pid);
	unit_kill(pid);
	host_start(1);
}

static void test_stopped_dequeue(void **state)
{
	stopped_dequeue(-1);
	stopped_dequeue(100 * LIMIT_MS);
}

/* A wait for a word that gets no credit for its request ends at its own limit,
 * without an end of the connection. */
static void test_dequeue_without_credit(void **state)
{
	struct gsas_queue_handle *q;
	struct gsas_msg msg = { .opcode = GSAS_WRITE64 };
	struct gsas_thread *t;
	struct gsas_conn *conn;
	gsas_addr addr;
	uint64_t word;
	pid_t pid;
	int ret;

	host_stop(0);
	pid = host_process(0);
	while (gsas_alloc(1, g_first, 0, NULL, &msg.address) != 0)
		;
	assert_int_equal(gsas_queue_create(8, 8, g_first, 0, NULL, &addr), 0);
	assert_int_equal(gsas_queue_open(addr, &q), 0);
	assert_int_equal(gsas_dequeue(q, &word), -EAGAIN);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &conn), 0);
	unit_stop(pid);
	do {
		hal_if_pump(t->hif);
		ret = gsas_conn_try_send(conn, &msg, NULL);
	} while (ret == 0);
	assert_int_equal(ret, -FI_EAGAIN);
	assert_int_equal(gsas_dequeue_wait(q, &word, 1), -ETIMEDOUT);
	assert_non_null(conn->peer);
	assert_false(q->waits);
	/* the request is sent once the service runs */
	assert_int_equal(kill(pid, SIGCONT), 0);
	while (!q->waits)
		assert_int_equal(gsas_dequeue_wait(q, &word, 1), -ETIMEDOUT);
	assert_int_equal(gsas_enqueue(q, 7), 0);
	assert_int_equal(gsas_dequeue_wait(q, &word, -1), 0);
	assert_int_equal(word, 7);
	assert_int_equal(gsas_fence(-1), 0);
	gsas_queue_close(q);
	unit_kill(pid);
	host_start(0);
	while (gsas_alloc(1, g_first, 0, NULL, &addr) != 0)
		;
	assert_int_equal(gsas_free(addr), 0);
}

static const struct hal_ops *g_ops;	/* the HAL's own, where a test replaces
					 * some of them */
static struct gsas_conn *g_conn;	/* that waits */
static pid_t g_stopped;			/* its service, 0: it runs again */

/* The events of the interface. The service runs again as soon as time of a wait
 * has counted. */
static int service_resumes(struct hal_if *hif, struct hal_event *ev, int max)
{
	if (g_stopped != 0 && g_conn->waited != 0) {
		HOLDS(kill(g_stopped, SIGCONT) == 0);
		g_stopped = 0;
	}
	return g_ops->service(hif, ev, max);
}

/* After a wait for a credit the next wait has the whole limit, although no
 * packet has come in between. */
static void test_credit(void **state)
{
	struct gsas_thread *t;
	struct hal_ops ops;
	uint64_t limit;
	gsas_addr a;
	pid_t pid;

	host_stop(1);
	pid = host_process(1);
	a = resume(pid);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first + 1, &g_conn), 0);
	g_ops = t->hif->ops;	/* of the interface */
	ops = *g_ops;
	ops.service = service_resumes;
	t->hif->ops = &ops;
	limit = t->timeout;
	t->timeout = 100 * limit;	/* a slow machine resumes it slowly */
	unit_stop(pid);
	g_stopped = pid;
	while (g_stopped != 0)
		assert_int_equal(gsas_write64_post(a, 1), 0);
	t->hif->ops = g_ops;
	t->timeout = limit;
	assert_int_equal((int)g_conn->waited, 0);
	assert_int_equal(gsas_fence(-1), 0);
	unit_kill(pid);
	host_start(1);
}

static pid_t g_stops;	/* service that import_unanswered() stops */

/* The service has answered MAP, and stops before it answers the HAL's request
 * for the memory. */
static int import_unanswered(struct hal_peer *peer, const struct hal_key *key,
			     struct hal_rmem **rmem)
{
	if (g_stops != 0)
		unit_stop(g_stops);
	g_stops = 0;
	return -FI_EAGAIN;
}

static uint64_t g_slow_until;		/* ns */

/* The service lives, and takes long for the HAL's request. */
static int import_slow(struct hal_peer *peer, const struct hal_key *key,
		       struct hal_rmem **rmem)
{
	return unm_now_ns() < g_slow_until ? -FI_EAGAIN :
		g_ops->mem_import(peer, key, rmem);
}

static void slow_import(gsas_addr a)
{
	struct gsas_conn *conn;
	struct gsas_thread *t;
	struct hal_ops ops;
	uint64_t begin = unm_now_ns();

	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &conn), 0);
	g_ops = conn->peer->ops;
	ops = *g_ops;
	ops.mem_import = import_slow;
	conn->peer->ops = &ops;
	g_slow_until = begin + 3 * LIMIT_MS * UINT64_C(1000000);
	assert_int_equal(gsas_write64(a, 5), 0);
	assert_true(unm_now_ns() >= g_slow_until);
	assert_non_null(conn->peer);
	conn->peer->ops = g_ops;
	/* the next wait has the whole limit */
	assert_int_equal((int)conn->waited, 0);
}

static void test_stopped_import(void **state)
{
	gsas_addr a;
	struct gsas_conn *conn;
	struct gsas_thread *t;
	struct hal_ops ops;
	uint64_t begin;
	pid_t pid;

	host_stop(0);
	pid = host_process(0);
	while (gsas_alloc(1, g_first, GSAS_MAPPED, NULL, &a) != 0)
		;
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &conn), 0);
	ops = *conn->peer->ops;
	ops.mem_import = import_unanswered;
	conn->peer->ops = &ops;
	g_stops = pid;
	begin = unm_now_ns();
	assert_int_equal(gsas_write64(a, 1), -ETIMEDOUT);
	check_waited(begin, LIMIT_MS);
	assert_int_equal(g_stops, 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	while (gsas_alloc(1, g_first, GSAS_MAPPED, NULL, &a) != 0)
		;
	slow_import(a);
	unit_kill(pid);
	host_start(0);
	while (gsas_alloc(1, g_first, 0, NULL, &a) != 0)
		;
	assert_int_equal(gsas_free(a), 0);
}

static void *put_late(void *arg)
{
	struct gsas_queue_handle *q;

	usleep(3 * SLOW_MS * 1000);
	HOLDS(gsas_queue_open(*(gsas_addr *)arg, &q) == 0);
	HOLDS(gsas_enqueue(q, 9) == 0);
	gsas_queue_close(q);
	return NULL;
}

/* A service that runs but answers late is not taken for stopped. */
static void test_slow(void **state)
{
	struct gsas_queue_handle *q;
	pthread_t thread;
	struct gsas_thread *t;
	gsas_addr addr;
	uint64_t word;

	assert_int_equal(gsas_queue_create(8, 8, g_first, 0, NULL, &addr), 0);
	assert_int_equal(gsas_queue_open(addr, &q), 0);
	assert_int_equal(gsas_thread_get(&t), 0);
	t->timeout = SLOW_MS * UINT64_C(1000000);
	thread = unit_thread(put_late, &addr);
	assert_int_equal(gsas_dequeue_wait(q, &word, -1), 0);
	assert_int_equal(word, 9);
	t->timeout = LIMIT_MS * UINT64_C(1000000);
	pthread_join(thread, NULL);
	gsas_queue_close(q);
	assert_int_equal(gsas_free(addr), 0);
}

/* A step of a wait may count more than the limit, if the process did not run.
 * The service is asked before the connection is closed, and its answer counts
 * although nobody has polled it. */
static void test_long_step(void **state)
{
	const uint64_t limit = LIMIT_MS * UINT64_C(1000000);
	struct gsas_conn *conn;
	struct gsas_thread *t;
	gsas_addr a;
	uint64_t head;

	assert_int_equal(gsas_alloc(1, g_first, 0, NULL, &a), 0);
	assert_int_equal(gsas_write64(a, 1), 0);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &conn), 0);
	conn->blocked = true;
	gsas_conn_check_timeout(conn, 2 * limit);
	assert_non_null(conn->peer);
	assert_true(conn->probed);
	while (hal_rx_peek(conn->peer, &head) == NULL)
		hal_if_pump(t->hif);
	gsas_conn_check_timeout(conn, 2 * limit);
	conn->blocked = false;
	assert_non_null(conn->peer);
	assert_int_equal((int)conn->waited, 0);
	assert_int_equal(gsas_free(a), 0);
}

static int g_arms;	/* attempts to sleep */
static int g_arrived;	/* calls of answer_arrives() */

static int counts_arms(struct hal_if *hif)
{
	g_arms++;
	return -FI_EAGAIN;
}

/* The events of the interface. Meanwhile the limit passes, and the answer to
 * the probe arrives. */
static int answer_arrives(struct hal_if *hif, struct hal_event *ev, int max)
{
	const uint64_t limit = LIMIT_MS * UINT64_C(1000000);
	uint64_t head;

	g_arrived++;
	(void)gsas_conn_check_timeout(g_conn, 2 * limit);
	while (hal_rx_peek(g_conn->peer, &head) == NULL)
		hal_if_pump(hif);
	return 0;
}

/* A step of a wait in which the check of the limit reads an answer does not
 * sleep: the answer may be the one that the caller waits for. */
static void test_answer_read_by_check(void **state)
{
	struct gsas_thread *t;
	struct hal_ops ops;
	gsas_addr a;

	assert_int_equal(gsas_alloc(1, g_first, 0, NULL, &a), 0);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &g_conn), 0);
	g_ops = t->hif->ops;
	ops = *g_ops;
	ops.service = answer_arrives;
	ops.arm = counts_arms;
	t->hif->ops = &ops;
	t->polls = UINT32_MAX / 2;	/* the step would sleep */
	t->next_events = 0;
	t->timeout_checked = 0;
	gsas_conn_wait_step(g_conn);
	t->hif->ops = g_ops;
	assert_int_equal(g_arrived, 1);
	assert_int_equal(g_arms, 0);
	assert_non_null(g_conn->peer);
	assert_int_equal((int)g_conn->waited, 0);
	assert_int_equal(gsas_free(a), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_stopped_polled),
		cmocka_unit_test(test_stopped_queue),
		cmocka_unit_test(test_stopped_dequeue),
		cmocka_unit_test(test_dequeue_without_credit),
		cmocka_unit_test(test_credit),
		cmocka_unit_test(test_stopped_import),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_long_step),
		cmocka_unit_test(test_answer_read_by_check),
	};
	char text[16];

	host_process_main(argc, argv);
	host_boards();
	snprintf(text, sizeof(text), "%d", LIMIT_MS);
	setenv("GSAS_TIMEOUT", text, 1);
	return unit_run_with(tests, host_setup, host_teardown);
}
