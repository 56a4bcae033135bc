/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_life.c - start and end of services, threads, forked children and
 * processes of other jobs; and queues whose threads come and go.
 */

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_progress.h"
#include "client/gsas_wait.h"
#include "lib/gsas_services.h"
#include "op/gsas_op.h"
#include "util/unm_clock.h"

#define ROUNDS	(UNIT_SLOW ? 100 : 1000)

/* ---- Services ------------------------------------------------------------ */

static void test_service_ends(void **state)
{
	static uint8_t bytes[GSAS_PAGE];
	gsas_addr a = host_alloc(1, 1, 0), m = host_alloc(1, 1, GSAS_MAPPED);
	gsas_addr other = host_alloc(1, 0, 0);
	struct gsas_queue_handle *q;
	uint64_t value, granule = a >> GSAS_SEGMENT_SHIFT;
	gsas_addr qa;
	size_t len;
	void *p, *again;
	bool mapped = gsas_map(m, &p, &len) == 0;

	assert_int_equal(gsas_write64(a, 1), 0);
	assert_int_equal(gsas_write64(m, 1), 0);
	assert_int_equal(gsas_queue_create(100, 8, g_first + 1, 0, NULL, &qa),
			 0);
	assert_int_equal(gsas_queue_open(qa, &q), 0);
	assert_int_equal(gsas_enqueue(q, 1), 0);
	assert_int_equal(gsas_write64_post(a, 1), 0);
	host_stop(1);
	assert_int_equal(gsas_read64(a, &value), -ECONNRESET);
	/* no service, and none can be started */
	assert_int_equal(gsas_read64(a, &value), -ECONNREFUSED);
	assert_int_equal(gsas_put(a, bytes, sizeof(bytes)), -ECONNREFUSED);
	assert_int_equal(gsas_alloc(1, g_first + 1, 0, NULL, &a),
			 -ECONNREFUSED);
	assert_int_equal(gsas_enqueue(q, 1), -ECONNRESET);
	assert_int_equal(gsas_dequeue(q, &value), -ECONNRESET);
	/* posted operations may be lost, which one fence reports */
	assert_int_equal(gsas_fence(-1), -ECONNRESET);
	assert_int_equal(gsas_fence(-1), 0);
	/* pointers stay valid; other boards are not affected */
	if (mapped)
		assert_int_equal(*(uint64_t *)p, 1);
	assert_int_equal(gsas_write64(other, 3), 0);

	host_start(1);
	/* the next service knows nothing of the earlier regions */
	assert_int_equal(gsas_read64(m, &value), -EFAULT);
	a = host_alloc(1, 1, GSAS_MAPPED);
	if (mapped) {
		/* not at the earlier addresses, which are still mapped here */
		assert_true(a >> GSAS_SEGMENT_SHIFT != granule);
		assert_int_equal(gsas_map(a, &again, &len), 0);
	}
	assert_int_equal(gsas_write64(a, 5), 0);
	assert_int_equal(host_read(a), 5);
	assert_int_equal(gsas_enqueue(q, 1), -ECONNRESET);
	gsas_queue_close(q);
	if (mapped)
		assert_int_equal(*(uint64_t *)p, 1);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_free(other), 0);
}

/* Started requests of every kind end with the service. */
#define STARTED	50

static void killed_amid_requests(void)
{
	const size_t bytes = 400 * GSAS_PAGE;
	static struct gsas_req req[STARTED], put;
	uint8_t *mem = calloc(1, bytes);
	pid_t pid = host_process(1);
	struct gsas_thread *t;
	int n = STARTED, status;
	gsas_addr a;

	/* until the end of the last service is known */
	while ((status = gsas_alloc(400, g_first + 1, 0, NULL, &a)) != 0)
		assert_int_equal(status, -ECONNRESET);
	/* from here on the client knows that it is not mapped */
	assert_int_equal(gsas_write64(a, 1), 0);
	assert_int_equal(gsas_thread_get(&t), 0);
	/* so many requests fit while the service does not poll */
	if (n > (int)t->hif->caps->pkt_depth / 2)
		n = (int)t->hif->caps->pkt_depth / 2;
	unit_stop(pid);
	for (int i = 0; i < n; i++)
		assert_int_equal(gsas_fad64_start(a, 1, NULL, &req[i]), 0);
	assert_int_equal(gsas_put_start(a, mem, bytes, &put), 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(gsas_test(&req[i]), -EINPROGRESS);
	assert_int_equal(gsas_test(&put), -EINPROGRESS);
	unit_kill(pid);
	for (int i = 0; i < n; i++)
		assert_int_equal(gsas_wait(&req[i]), -ECONNRESET);
	assert_int_equal(gsas_wait(&put), -ECONNRESET);
	assert_int_equal(gsas_test(&put), -ECONNRESET);
	free(mem);
}

static void test_service_is_killed(void **state)
{
	host_stop(1);
	for (int round = 0; round < 5; round++)
		killed_amid_requests();
	host_start(1);
}

/* Adds on mapped memory, without packets, until the service ends. */
static void *count(void *arg)
{
	int ret;

	while ((ret = gsas_fad64(*(gsas_addr *)arg, 1, NULL)) == 0)
		;
	return (void *)(intptr_t)ret;
}

static void test_service_is_killed_behind_mappings(void **state)
{
	pthread_t thread;
	uint64_t value;
	gsas_addr a;
	void *result;

	host_stop(0);
	for (int round = 0; round < 3; round++) {
		pid_t pid = host_process(0);

		while (gsas_alloc(700, g_first, GSAS_MAPPED, NULL, &a))
			;
		thread = unit_thread(count, &a);
		while (gsas_read64(a, &value) == 0 && value == 0)
			;
		/* on every backend: it is the board of this process */
		assert_non_null(gsas_direct(a));
		unit_kill(pid);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_int_equal((intptr_t)result, -ECONNRESET);
		assert_int_equal(gsas_read64(a, &value), -ECONNRESET);
	}
	host_start(0);
}

/* Answers that the service sent before its end count, although the client sees
 * the end first. */
#define ANSWERED	20

static void test_answers_before_the_end_count(void **state)
{
	static struct gsas_req req[ANSWERED];
	static int64_t was[ANSWERED];
	struct gsas_thread *t;
	gsas_addr a;

	assert_int_equal(gsas_thread_get(&t), 0);
	if (strcmp(t->hif->caps->backend, "emu") != 0)
		skip();		/* a sender has to poll there */
	a = host_alloc(1, 1, 0);
	assert_int_equal(gsas_write64(a, 0), 0);
	for (int i = 0; i < ANSWERED; i++)
		assert_int_equal(gsas_fad64_start(a, 1, &was[i], &req[i]), 0);
	atomic_store(&g_host[1].stop, true);
	pthread_join(g_host[1].thread, NULL);
	while (gsas_board_poll(g_host[1].board))
		;		/* serves the requests that it has */
	gsas_board_close(g_host[1].board);
	while (t->conn[g_first + 1]->peer != NULL)
		gsas_thread_events(t);
	for (int i = 0; i < ANSWERED; i++) {
		assert_int_equal(gsas_wait(&req[i]), 0);
		assert_int_equal(was[i], i);
	}
	host_start(1);
}

/* The connection ended without a call that noticed it: sending fails. */
static void test_send_after_the_end(void **state)
{
	struct gsas_msg msg = { .opcode = GSAS_FENCE };
	struct gsas_request request = { 0 };
	struct gsas_thread *t;
	struct gsas_conn *conn;

	assert_int_equal(gsas_free(host_alloc(1, 1, 0)), 0);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first + 1, &conn), 0);
	host_stop(1);
	while (conn->peer != NULL)
		gsas_thread_events(t);
	assert_int_equal(gsas_conn_try_send(conn, &msg, NULL), -ECONNRESET);
	assert_int_equal(gsas_conn_send(conn, &msg, &request), -ECONNRESET);
	assert_int_equal(gsas_space_put(conn, 0, &msg, 8), -ECONNRESET);
	host_start(1);
}

/* Calls while the service ends return one of these. */
static _Atomic bool g_enough;

static bool end_seen(int ret)
{
	return ret == 0 || ret == -ECONNRESET || ret == -ECONNREFUSED ||
	       /* of the last service: unknown to this one */
	       ret == -EFAULT || ret == -EINVAL || ret == -ESTALE ||
	       ret == -EAGAIN;
}

static void *use_what_ends(void *arg)
{
	static const uint8_t bytes[3 * GSAS_PAGE];
	struct gsas_queue_handle *q;
	uint64_t word;
	gsas_addr a;

	(void)arg;
	while (!atomic_load(&g_enough)) {
		if (gsas_alloc(3, g_first + 1, 0, NULL, &a) == 0)
			HOLDS(end_seen(gsas_put(a, bytes, sizeof(bytes))));
		if (gsas_alloc(1, g_first + 1, GSAS_MAPPED, NULL, &a) == 0)
			HOLDS(end_seen(gsas_fad64(a, 1, NULL)));
		if (gsas_queue_create(8, 8, g_first + 1, 0, NULL, &a) != 0 ||
		    gsas_queue_open(a, &q) != 0)
			continue;
		HOLDS(end_seen(gsas_enqueue(q, 1)));
		HOLDS(end_seen(gsas_dequeue(q, &word)));
		gsas_queue_close(q);
		HOLDS(end_seen(gsas_free(a)));
	}
	return NULL;
}

static void test_service_ends_amid_calls(void **state)
{
	pthread_t thread[2];

	atomic_store(&g_enough, false);
	for (int i = 0; i < 2; i++)
		thread[i] = unit_thread(use_what_ends, NULL);
	for (int i = 0; i < ROUNDS / 10; i++) {
		usleep(2000);
		host_stop(1);
		host_start(1);
	}
	atomic_store(&g_enough, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

/* ---- Threads ------------------------------------------------------------- */

static void *use(void *arg)
{
	gsas_addr a = *(gsas_addr *)arg;

	HOLDS(gsas_fad64(a, 1, NULL) == 0);
	return NULL;
}

/* Threads open and close interfaces: more threads than interfaces. */
static void test_threads_come_and_go(void **state)
{
	gsas_addr a = host_alloc(1, 0, 0), m = host_alloc(1, 1, GSAS_MAPPED);
	pthread_t thread;

	for (int i = 0; i < ROUNDS; i++) {
		thread = unit_thread(use, i % 2 ? &a : &m);
		pthread_join(thread, NULL);
	}
	assert_int_equal(host_read(a), ROUNDS / 2);
	assert_int_equal(host_read(m), ROUNDS / 2);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_free(m), 0);
}

/* A thread ends with requests under way: its result buffers are not written
 * afterwards, and its requests are executed or not. */
struct leaver {
	gsas_addr a;
	struct gsas_req *req;
	int64_t *was;
};

static void *leave(void *arg)
{
	struct leaver *l = arg;

	for (int i = 0; i < 100; i++)
		HOLDS(gsas_fad64_start(l->a, 1, &l->was[i], &l->req[i]) == 0);
	return NULL;
}

static void test_thread_leaves_requests(void **state)
{
	struct leaver l = { .a = host_alloc(1, 1, 0) };
	pthread_t thread;
	uint64_t value;

	for (int i = 0; i < 20; i++) {
		l.req = calloc(100, sizeof(*l.req));
		l.was = calloc(100, sizeof(*l.was));
		thread = unit_thread(leave, &l);
		pthread_join(thread, NULL);
		/* started by another thread */
		assert_int_equal(gsas_test(&l.req[99]), -EINVAL);
		assert_int_equal(gsas_wait(&l.req[99]), -EINVAL);
		free(l.req);
		free(l.was);
	}
	assert_int_equal(gsas_read64(l.a, &value), 0);
	assert_true(value <= 2000);
	assert_int_equal(gsas_free(l.a), 0);
}

/* As many threads as the board has interfaces, and one more. */
#define EXANODE_IFS	63

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int ready, busy;
	bool go;
} g_crowd = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0 };

static void *crowd(void *arg)
{
	gsas_addr a = *(gsas_addr *)arg;
	int ret = gsas_fad64(a, 1, NULL);

	HOLDS(ret == 0 || ret == -EBUSY);
	pthread_mutex_lock(&g_crowd.lock);
	g_crowd.ready++;
	g_crowd.busy += ret != 0;
	pthread_cond_broadcast(&g_crowd.cond);
	while (!g_crowd.go)
		pthread_cond_wait(&g_crowd.cond, &g_crowd.lock);
	pthread_mutex_unlock(&g_crowd.lock);
	return NULL;
}

static void test_a_thread_too_many(void **state)
{
	const char *profile = getenv("FI_UNIMEM_PROFILE");
	gsas_addr a = host_alloc(1, 0, 0);
	pthread_t thread[EXANODE_IFS + 2];
	struct unit_capture ear;
	char text[1024];

	if (profile == NULL || strcmp(profile, "exanode") != 0) {
		assert_int_equal(gsas_free(a), 0);
		skip();
	}
	g_crowd.ready = g_crowd.busy = 0;
	g_crowd.go = false;
	ear = unit_capture_begin();
	/* the main thread has one already */
	for (int i = 0; i < EXANODE_IFS + 1; i++) {
		thread[i] = unit_thread(crowd, &a);
		pthread_mutex_lock(&g_crowd.lock);
		while (g_crowd.ready <= i)
			pthread_cond_wait(&g_crowd.cond, &g_crowd.lock);
		pthread_mutex_unlock(&g_crowd.lock);
	}
	unit_capture_end(&ear, text, sizeof(text));
	assert_int_equal(g_crowd.busy, 2);
	assert_non_null(strstr(text, "63 of 63"));
	pthread_mutex_lock(&g_crowd.lock);
	g_crowd.go = true;
	pthread_cond_broadcast(&g_crowd.cond);
	pthread_mutex_unlock(&g_crowd.lock);
	for (int i = 0; i < EXANODE_IFS + 1; i++)
		pthread_join(thread[i], NULL);
	/* now interfaces are free again */
	thread[0] = unit_thread(use, &a);
	pthread_join(thread[0], NULL);
	assert_int_equal(gsas_free(a), 0);
}

/* A queue is freed while two producers wait for grants: one has put words in,
 * the other was granted none. */
struct waiter {
	gsas_addr a;
	_Atomic bool waits;
	int ret;
};

static int until_freed(struct gsas_queue_handle *q)
{
	uint64_t end = unm_now_ns() + UINT64_C(20000000000);
	int ret = -EAGAIN;

	while (ret == -EAGAIN && unm_now_ns() < end)
		ret = gsas_enqueue(q, 1);
	return ret;
}

static void *wait_for_grants(void *arg)
{
	struct waiter *w = arg;
	struct gsas_queue_handle *q;

	HOLDS(gsas_queue_open(w->a, &q) == 0);
	HOLDS(gsas_enqueue(q, 1) == -EAGAIN);
	atomic_store(&w->waits, true);
	w->ret = until_freed(q);
	HOLDS(gsas_enqueue(q, 1) == w->ret);
	gsas_queue_close(q);
	return NULL;
}

static void test_freed_while_they_wait(void **state)
{
	struct gsas_queue_handle *q;
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		struct waiter w = { .ret = 0 };

		assert_int_equal(gsas_queue_create(2, 8, g_first + 1, 0, NULL,
						   &w.a), 0);
		assert_int_equal(gsas_queue_open(w.a, &q), 0);
		for (int n = 0; n < 2; n += until_freed(q) == 0)
			;
		assert_int_equal(gsas_fence(-1), 0);
		thread = unit_thread(wait_for_grants, &w);
		while (!atomic_load(&w.waits))
			usleep(100);
		assert_int_equal(gsas_enqueue(q, 1), -EAGAIN);
		assert_int_equal(gsas_free(w.a), 0);
		pthread_join(thread, NULL);
		assert_int_equal(w.ret, -ESTALE);
		assert_int_equal(until_freed(q), -ESTALE);
		assert_int_equal(gsas_enqueue(q, 1), -ESTALE);
		assert_int_equal(gsas_fence(-1), 0);
		gsas_queue_close(q);
	}
}

/* ---- Forked children ----------------------------------------------------- */

static int in_child(gsas_addr a, gsas_addr m, struct gsas_req *req,
		    struct gsas_queue_handle *q)
{
	uint64_t value;

	if (gsas_test(req) != -EINVAL || gsas_wait(req) != -EINVAL)
		return 1;
	if (gsas_enqueue(q, 1) != -EINVAL || gsas_dequeue(q, &value) != -EINVAL)
		return 2;
	gsas_queue_close(q);
	for (int i = 0; i < 10; i++)
		if (gsas_fad64(a, 1, NULL) != 0 || gsas_fad64(m, 1, NULL) != 0)
			return 3;
	return gsas_fence(-1) == 0 ? 0 : 4;
}

/* As on a system that wipes no memory in a child (qemu-user). */
static void nothing_is_wiped(bool so)
{
	static bool was;
	struct gsas_thread *t;

	assert_int_equal(gsas_thread_get(&t), 0);
	if (so)
		was = t->wiped;
	if (!was)
		return;
	t->wiped = !so;
	gsas_hot = so ? &g_host_cold : t->hot;
	assert_int_equal(madvise(t->hot, sizeof(*t->hot), so ?
				 MADV_KEEPONFORK : MADV_WIPEONFORK), 0);
}

static void test_fork(void **state)
{
	gsas_addr a = host_alloc(1, 1, 0), m = host_alloc(1, 1, GSAS_MAPPED);
	struct gsas_queue_handle *q;
	struct gsas_req req;
	uint64_t value;
	gsas_addr qa;

	assert_int_equal(gsas_queue_create(100, 8, g_first, 0, NULL, &qa), 0);
	assert_int_equal(gsas_queue_open(qa, &q), 0);
	assert_int_equal(gsas_write64(m, 0), 0);	/* mapped here */
	for (int i = 0; i < 10; i++) {
		pid_t pid;

		value = 1;
		assert_int_equal(gsas_read64_start(a, &value, &req), 0);
		if (i >= 5)
			nothing_is_wiped(true);
		pid = unit_fork();
		if (pid == 0)
			_exit(in_child(a, m, &req, q));
		if (i >= 5)
			nothing_is_wiped(false);
		assert_int_equal(gsas_enqueue(q, (uint64_t)i), 0);
		assert_int_equal(unit_exit_code(pid), 0);
		assert_int_equal(gsas_wait(&req), 0);
		assert_int_equal(gsas_fence(g_first), 0);
		assert_int_equal(gsas_dequeue(q, &value), 0);
		assert_int_equal(value, i);
	}
	assert_int_equal(host_read(a), 100);
	assert_int_equal(host_read(m), 100);
	gsas_queue_close(q);
	assert_int_equal(gsas_free(qa), 0);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_free(m), 0);
}

/* ---- Other jobs ---------------------------------------------------------- */

/* Runs a process with one more environment variable; returns its exit code. */
static int process(char *const argv[], const char *name, const char *value)
{
	char *was = getenv(name), *keep = was == NULL ? NULL : strdup(was);
	pid_t pid;

	setenv(name, value, 1);
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv,
				     environ), 0);
	if (keep != NULL)
		setenv(name, keep, 1);
	else
		unsetenv(name);
	free(keep);
	return unit_exit_code(pid);
}

/* A process of another job: its rights on the addresses in argv. */
static int foreigner(char **argv)
{
	gsas_addr mine = strtoull(argv[2], NULL, 16);
	gsas_addr mapped = strtoull(argv[3], NULL, 16);
	gsas_addr group = strtoull(argv[4], NULL, 16);
	gsas_addr world = strtoull(argv[5], NULL, 16);
	gsas_addr queue = strtoull(argv[6], NULL, 16);
	struct gsas_queue_handle *q;
	uint64_t value = 0;
	size_t bytes;
	void *p;

	HOLDS(gsas_read64(mine, &value) == -EACCES);
	HOLDS(gsas_write64(mine, 666) == -EACCES);
	HOLDS(gsas_write64_post(mine, 666) == 0);
	HOLDS(gsas_fence(-1) == -EACCES);
	HOLDS(gsas_read64(mapped, &value) == -EACCES);
	HOLDS(gsas_map(mapped, &p, &bytes) == -EACCES ||
	      gsas_map(mapped, &p, &bytes) == -EOPNOTSUPP);
	HOLDS(gsas_free(mine) == -EACCES && gsas_free(world) == -EACCES);
	HOLDS(gsas_fad64(group, 1, NULL) == -EACCES);
	HOLDS(gsas_join("friends") == 0);
	HOLDS(gsas_fad64(group, 1, NULL) == 0);
	HOLDS(gsas_fad64(world, 1, NULL) == 0);
	HOLDS(gsas_queue_open(queue, &q) == 0);
	HOLDS(gsas_enqueue(q, 4711) == 0);
	HOLDS(gsas_dequeue(q, &value) == -EACCES);
	HOLDS(gsas_fence(-1) == 0);
	gsas_queue_close(q);
	return 0;
}

static char *hex(gsas_addr a)
{
	char text[32];

	snprintf(text, sizeof(text), "%llx", (unsigned long long)a);
	return strdup(text);
}

static void test_other_jobs(void **state)
{
	gsas_addr a[5];
	char *argv[8] = { "test_gsas_life", "foreigner" };
	struct gsas_queue_handle *q;
	uint64_t value;

	a[0] = host_alloc(1, 1, 0);
	a[1] = host_alloc(1, 1, GSAS_MAPPED);
	assert_int_equal(gsas_alloc(1, g_first + 1, GSAS_GROUP_ONLY |
				    GSAS_MAPPED, "friends", &a[2]), 0);
	a[3] = host_alloc(1, 1, GSAS_WORLD);
	assert_int_equal(gsas_queue_create(100, 8, g_first + 1, GSAS_WORLD,
					   NULL, &a[4]), 0);
	for (int i = 0; i < 5; i++)
		argv[2 + i] = hex(a[i]);
	assert_int_equal(process(argv, "GSAS_JOB",
				 "00112233445566778899aabbccddeeff"), 0);
	for (int i = 0; i < 5; i++) {
		free(argv[2 + i]);
		if (i >= 4)
			break;
		assert_int_equal(host_read(a[i]), i >= 2);
	}
	assert_int_equal(gsas_queue_open(a[4], &q), 0);
	assert_int_equal(gsas_dequeue(q, &value), 0);
	assert_int_equal(value, 4711);
	gsas_queue_close(q);
	for (int i = 0; i < 5; i++)
		assert_int_equal(gsas_free(a[i]), 0);
}

/* A process with an invalid job key. */
static int keyless(void)
{
	gsas_addr a;

	return gsas_alloc(1, g_first, 0, NULL, &a) == -EINVAL ? 0 : 1;
}

static void test_job_keys(void **state)
{
	char *argv[] = { "test_gsas_life", "keyless", NULL };

	assert_int_equal(strlen(getenv("GSAS_JOB")), 32);
	assert_int_equal(process(argv, "GSAS_JOB", "0123"), 0);
	assert_int_equal(process(argv, "GSAS_JOB",
				 "0x112233445566778899aabbccddeeff"), 0);
	assert_int_equal(process(argv, "GSAS_JOB",
				 "00112233445566778899aabbccddeeff00"), 0);
	assert_int_equal(process(argv, "GSAS_JOB", getenv("GSAS_JOB")), 1);
}

/* ---- Remote programs ----------------------------------------------------- */

static void test_fork_there(void **state)
{
	char path[GSAS_PATH + 8];
	uint64_t value = 0;

	assert_int_equal(gsas_fork("/bin/true", 40, g_first + 1, &value), 0);
	assert_int_equal(value, 40 + strlen("/bin/true"));
	assert_int_equal(gsas_fork("/bin/true", 0, GSAS_HERE, NULL), 0);
	assert_int_equal(gsas_fork("/missing", 0, GSAS_HERE, NULL), -ENOENT);
	assert_int_equal(gsas_fork("/forbidden", 0, GSAS_HERE, NULL), -EPERM);
	assert_int_equal(gsas_fork("", 0, GSAS_HERE, NULL), -ENOENT);
	assert_int_equal(gsas_fork(NULL, 0, GSAS_HERE, NULL), -EINVAL);
	assert_int_equal(gsas_fork("/bin/true", 0, 1 << 20, NULL), -ENXIO);
	memset(path, 'x', sizeof(path));
	path[GSAS_PATH] = '\0';
	assert_int_equal(gsas_fork(path, 0, GSAS_HERE, NULL), -ENAMETOOLONG);
	path[GSAS_PATH - 1] = '\0';
	assert_int_equal(gsas_fork(path, 1, GSAS_HERE, &value), 0);
	assert_int_equal(value, GSAS_PATH);
	unsetenv("GSAS_ARGUMENT");
	assert_int_equal(gsas_argument(&value), -ENOENT);
	setenv("GSAS_ARGUMENT", "ffffffffffffff12", 1);
	assert_int_equal(gsas_argument(&value), 0);
	assert_true(value == 0xffffffffffffff12);
	setenv("GSAS_ARGUMENT", "12zz", 1);
	assert_int_equal(gsas_argument(&value), -ENOENT);
	unsetenv("GSAS_ARGUMENT");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_service_ends),
		cmocka_unit_test(test_service_is_killed),
		cmocka_unit_test(test_service_is_killed_behind_mappings),
		cmocka_unit_test(test_answers_before_the_end_count),
		cmocka_unit_test(test_send_after_the_end),
		cmocka_unit_test(test_service_ends_amid_calls),
		cmocka_unit_test(test_threads_come_and_go),
		cmocka_unit_test(test_thread_leaves_requests),
		cmocka_unit_test(test_a_thread_too_many),
		cmocka_unit_test(test_freed_while_they_wait),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_other_jobs),
		cmocka_unit_test(test_job_keys),
		cmocka_unit_test(test_fork_there),
	};

	host_process_main(argc, argv);
	if (argc > 1)
		g_first = atoi(getenv("FI_UNIMEM_BOARD"));
	if (argc == 7 && strcmp(argv[1], "foreigner") == 0)
		return foreigner(argv);
	if (argc == 2 && strcmp(argv[1], "keyless") == 0)
		return keyless();
	host_boards();
	return unit_run_with(tests, host_setup, host_teardown);
}
