/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_queue_wait.c - queues as programs use them: no -EAGAIN before the
 * quota is reached, no memory before there are words, gsas_dequeue_wait(), and
 * a queue that is freed while gsas_enqueue() waits.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "lib/gsas_services.h"
#include "client/gsas_conn.h"
#include "client/gsas_queue_handle.h"
#include "util/unm_clock.h"

#define QUOTA	(UINT32_C(1) << 20)
#define WAITERS	4

static gsas_addr queue_new(uint64_t quota, struct gsas_queue_handle **q)
{
	gsas_addr addr;

	assert_int_equal(gsas_queue_create(quota, 512, g_first, GSAS_WORLD,
					   NULL, &addr), 0);
	assert_int_equal(gsas_queue_open(addr, q), 0);
	return addr;
}

static void queue_end(gsas_addr addr, struct gsas_queue_handle *q)
{
	gsas_queue_close(q);
	assert_int_equal(gsas_free(addr), 0);
}

/* Bytes of all shared memory that this process has open. */
static uint64_t committed(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t bytes = 0;
	struct dirent *d;

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL) {
		char name[300], to[64];
		struct stat st;
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%s", d->d_name);
		n = readlink(name, to, sizeof(to));
		if (n > 7 && memcmp(to, "/memfd:", 7) == 0 &&
		    stat(name, &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	}
	closedir(dir);
	return bytes;
}

/* gsas_enqueue() fails when the quota is reached and not before, however fast
 * words are put in. */
static void test_only_the_quota_stops(void **state)
{
	struct gsas_queue_handle *q;
	gsas_addr addr = queue_new(QUOTA, &q);
	uint64_t word, before;

	before = committed();
	for (uint64_t i = 0; i < QUOTA; i++)
		assert_int_equal(gsas_enqueue(q, i), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gsas_enqueue(q, 0), -EAGAIN);
	assert_int_equal(gsas_fence(-1), 0);
	/* not the difference: the service may have given back memory of
	 * another test meanwhile */
	if (before != 0)
		assert_true(committed() >= QUOTA * 8);
	for (uint64_t i = 0; i < QUOTA; i++) {
		assert_int_equal(gsas_dequeue(q, &word), 0);
		assert_int_equal(word, i);
	}
	assert_int_equal(gsas_dequeue(q, &word), -EAGAIN);
	/* the service notices taken words at intervals at the latest */
	while (gsas_enqueue(q, 1) == -EAGAIN)
		;
	assert_int_equal(gsas_dequeue_wait(q, &word, -1), 0);
	queue_end(addr, q);
}

static void test_empty_commits_nothing(void **state)
{
	struct gsas_queue_handle *q;
	uint64_t before = committed();
	gsas_addr addr = queue_new(QUOTA, &q);

	if (before == 0) {
		queue_end(addr, q);
		skip();			/* another kind of shared memory */
	}
	assert_true(committed() - before <= 16 * GSAS_PAGE);
	assert_int_equal(gsas_enqueue(q, 1), 0);
	assert_int_equal(gsas_fence(-1), 0);
	assert_true(committed() - before <= 16 * GSAS_PAGE);
	queue_end(addr, q);
}

/* ---- Waiting for a word -------------------------------------------------- */

struct waiter {
	pthread_t thread;
	gsas_addr addr;
	bool packets;
	int ms, ret;
	uint64_t word;
	_Atomic int *ready;
};

static void *wait_for_word(void *arg)
{
	struct waiter *w = arg;
	struct gsas_queue_handle *q;

	host_packets(w->packets);
	HOLDS(gsas_queue_open(w->addr, &q) == 0);
	atomic_fetch_add(w->ready, 1);
	w->ret = gsas_dequeue_wait(q, &w->word, w->ms);
	gsas_queue_close(q);
	return NULL;
}

/* Starts threads that wait for a word, or are about to. */
static void waiters_start(struct waiter *w, int n, gsas_addr addr, bool packets)
{
	static _Atomic int ready;

	atomic_store(&ready, 0);
	for (int i = 0; i < n; i++) {
		w[i] = (struct waiter){
			.addr = addr, .packets = packets, .ms = -1,
			.ready = &ready,
		};
		w[i].thread = unit_thread(wait_for_word, &w[i]);
	}
	while (atomic_load(&ready) != n)
		usleep(100);
	usleep(20000);			/* most of them sleep by now */
}

static void each_gets_one(bool packets)
{
	struct gsas_queue_handle *q;
	gsas_addr addr = queue_new(1000, &q);
	struct waiter w[WAITERS];
	uint64_t sum = 0;

	waiters_start(w, WAITERS, addr, packets);
	for (uint64_t i = 0; i < WAITERS; i++) {
		assert_int_equal(gsas_enqueue(q, UINT64_C(1) << i), 0);
		if (i % 2)
			usleep(3000);
	}
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].ret, 0);
		sum += w[i].word;
	}
	assert_int_equal(sum, (1 << WAITERS) - 1);
	queue_end(addr, q);
}

static void test_each_gets_one(void **state)
{
	each_gets_one(false);
	each_gets_one(true);
}

static void test_time_is_over(void **state)
{
	struct gsas_queue_handle *q;
	gsas_addr addr = queue_new(8, &q);
	uint64_t word = 5, begin = unm_now_ns();

	assert_int_equal(gsas_dequeue_wait(q, &word, 0), -ETIMEDOUT);
	assert_int_equal(gsas_dequeue_wait(q, &word, 30), -ETIMEDOUT);
	assert_true(unm_now_ns() - begin >= 30000000);
	assert_int_equal(word, 5);
	/* the request of the last call still waits, for the next word */
	assert_int_equal(gsas_enqueue(q, 6), 0);
	assert_int_equal(gsas_dequeue_wait(q, &word, -1), 0);
	assert_int_equal(word, 6);
	assert_int_equal(gsas_dequeue_wait(q, &word, 1), -ETIMEDOUT);
	queue_end(addr, q);		/* with a pending request */
	addr = queue_new(8, &q);
	assert_int_equal(gsas_enqueue(q, 7), 0);
	assert_int_equal(gsas_dequeue_wait(q, &word, 0), 0);
	assert_int_equal(word, 7);
	queue_end(addr, q);
}

#define CROWD	300			/* queues; a connection has 255 tags */

/* A thread waits on more queues than it can have pending requests: requests
 * that wait for words leave tags for all other requests. */
static void test_many_queues(void **state)
{
	static struct gsas_queue_handle *q[CROWD];
	static gsas_addr addr[CROWD];
	uint64_t word;
	gsas_addr at;

	for (int i = 0; i < CROWD; i++)
		addr[i] = queue_new(8, &q[i]);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(gsas_dequeue_wait(q[i], &word, 0), -ETIMEDOUT);
	assert_int_equal(gsas_dequeue_wait(q[CROWD - 1], &word, 20),
			 -ETIMEDOUT);
	assert_int_equal(gsas_alloc(1, g_first, 0, NULL, &at), 0);
	assert_int_equal(gsas_free(at), 0);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(gsas_enqueue(q[i], 1 + (uint64_t)i), 0);
		assert_int_equal(gsas_dequeue_wait(q[i], &word, -1), 0);
		assert_int_equal(word, 1 + i);
	}
	for (int i = 0; i < CROWD; i++)
		queue_end(addr[i], q[i]);
}

/* When the queue is freed or its service ends, waiting threads return. */
static void test_no_more(void **state)
{
	struct gsas_queue_handle *q;
	struct waiter w[WAITERS];
	gsas_addr addr = queue_new(8, &q);

	waiters_start(w, WAITERS, addr, false);
	queue_end(addr, q);
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].ret, -ESTALE);
	}
	addr = queue_new(8, &q);
	waiters_start(w, WAITERS, addr, false);
	host_stop(0);
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].ret, -ECONNRESET);
	}
	host_start(0);
	gsas_queue_close(q);
}

/* ---- A queue that is freed during a call --------------------------------- */

/* While set: its words are refused credits until the queue was freed. */
static struct gsas_queue_handle *g_refused;

int __real_gsas_conn_try_send(struct gsas_conn *conn,
			      const struct gsas_msg *msg,
			      struct gsas_request *request);
int __wrap_gsas_conn_try_send(struct gsas_conn *conn,
			      const struct gsas_msg *msg,
			      struct gsas_request *request);

int __wrap_gsas_conn_try_send(struct gsas_conn *conn,
			      const struct gsas_msg *msg,
			      struct gsas_request *request)
{
	if (msg->opcode == GSAS_ENQUEUE && g_refused != NULL &&
	    g_refused->error == 0)
		return -EAGAIN;
	return __real_gsas_conn_try_send(conn, msg, request);
}

static void *frees(void *arg)
{
	HOLDS(gsas_free(*(gsas_addr *)arg) == 0);
	return NULL;
}

/* gsas_enqueue() waits for a credit, and learns meanwhile that the queue was
 * freed: each later call returns that error. */
static void test_freed_while_sending(void **state)
{
	struct gsas_queue_handle *q;
	gsas_addr addr = queue_new(1000, &q);
	pthread_t thread;

	assert_int_equal(gsas_enqueue(q, 0), 0);
	g_refused = q;
	thread = unit_thread(frees, &addr);
	assert_int_equal(gsas_enqueue(q, 1), 0);
	g_refused = NULL;
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gsas_enqueue(q, 2), -ESTALE);
	gsas_queue_close(q);
}

HOST_MAIN(
	/* first, because memory of other tests is given back later */
	cmocka_unit_test(test_empty_commits_nothing),
	cmocka_unit_test(test_only_the_quota_stops),
	cmocka_unit_test(test_each_gets_one),
	cmocka_unit_test(test_time_is_over),
	cmocka_unit_test(test_many_queues),
	cmocka_unit_test(test_freed_while_sending),
	cmocka_unit_test(test_no_more),
)
