/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_signal.c - gsas_wait_until(), gsas_put_signal(), waits for
 * arrays of requests, and gets under way together, on mapped pages and by
 * requests
 */
#include "lib/gsas_services.h"
#include "util/unm_clock.h"

#define ROUNDS		300
#define BYTES		4096
#define REQUESTS	600		/* more than a board takes at a time */

/* ---- Waits for words ---------------------------------------------------- */

static void test_comparisons(void **state)
{
	static const struct {
		enum gsas_compare compare;
		bool below, equal, above;	/* is 4, 5, 6 ? 5 true? */
	} cases[] = {
		{ GSAS_EQ, false, true, false }, { GSAS_NE, true, false, true },
		{ GSAS_LT, true, false, false }, { GSAS_LE, true, true, false },
		{ GSAS_GT, false, false, true }, { GSAS_GE, false, true, true },
	};
	gsas_addr at = host_alloc(1, 0, GSAS_MAPPED);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool wants[] = {
			cases[i].below, cases[i].equal, cases[i].above
		};

		for (uint64_t word = 4; word <= 6; word++) {
			uint64_t seen = 99;

			assert_int_equal(gsas_write64(at, word), 0);
			assert_int_equal(gsas_wait_until(at, cases[i].compare,
							 5, 0, &seen),
					 wants[word - 4] ? 0 : -ETIMEDOUT);
			assert_int_equal(seen, wants[word - 4] ? word : 99);
		}
	}
	/* unsigned */
	assert_int_equal(gsas_write64(at, UINT64_MAX), 0);
	assert_int_equal(gsas_wait_until(at, GSAS_GT, 1, 0, NULL), 0);
	assert_int_equal(gsas_free(at), 0);
}

static void test_wait_errors(void **state)
{
	gsas_addr at = host_alloc(1, 0, GSAS_MAPPED);
	uint64_t before;

	assert_int_equal(gsas_wait_until(at, GSAS_GE + 1, 0, -1, NULL),
			 -EINVAL);
	assert_int_equal(gsas_wait_until(at, GSAS_EQ, 0, -2, NULL), -EINVAL);
	before = unm_now_ns();
	assert_int_equal(gsas_wait_until(at, GSAS_NE, 0, 30, NULL),
			 -ETIMEDOUT);
	assert_true(unm_now_ns() - before >= 30000000);
	assert_int_equal(gsas_free(at), 0);
	assert_int_equal(gsas_wait_until(at, GSAS_NE, 0, -1, NULL), -ESTALE);
}

/* Without a limit, and with pages freed while a thread waits. */
static void *free_later(void *arg)
{
	usleep(20000);
	HOLDS(gsas_free(*(gsas_addr *)arg) == 0);
	return NULL;
}

static void test_freed_meanwhile(void **state)
{
	for (int mapped = 0; mapped < 2; mapped++) {
		gsas_addr at = host_alloc(1, 1, mapped ? GSAS_MAPPED : 0);
		pthread_t thread = unit_thread(free_later, &at);

		assert_int_equal(gsas_wait_until(at, GSAS_NE, 0, -1, NULL),
				 -ESTALE);
		pthread_join(thread, NULL);
	}
}

/* A wait sleeps: it does not use up the processor. */
static void test_sleeps(void **state)
{
	gsas_addr at = host_alloc(1, 0, GSAS_MAPPED);
	struct timespec begin, end;
	double used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	assert_int_equal(gsas_wait_until(at, GSAS_NE, 0, 300, NULL),
			 -ETIMEDOUT);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	used = (double)(end.tv_sec - begin.tv_sec) +
		(double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	assert_true(used < 0.15);
	assert_int_equal(gsas_free(at), 0);
}

/* ---- Data with a signal ------------------------------------------------- */

/* Two threads pass a buffer to and fro; each waits for the other's signal, and
 * checks the bytes that came with it. */
struct exchange {
	gsas_addr data, signal;		/* of this thread */
	gsas_addr peer_data, peer_signal;
	bool packets;
};

static void *exchange_run(void *arg)
{
	const struct exchange *x = arg;
	uint64_t words[BYTES / 8];

	host_packets(x->packets);
	for (uint64_t n = 1; n <= ROUNDS; n++) {
		for (size_t i = 0; i < BYTES / 8; i++)
			words[i] = n * 1000 + i;
		HOLDS(gsas_put_signal(x->peer_data, words, BYTES,
				      x->peer_signal, GSAS_OP_SUM, 1) == 0);
		HOLDS(gsas_wait_until(x->signal, GSAS_GE, n, -1, NULL) == 0);
		HOLDS(gsas_get(words, x->data, BYTES) == 0);
		for (size_t i = 0; i < BYTES / 8; i++)
			HOLDS(words[i] == n * 1000 + i ||
			      words[i] == (n + 1) * 1000 + i);
	}
	return NULL;
}

/* flags of the data, and of the signal's page */
static void exchange(unsigned data_flags, unsigned signal_flags, bool packets)
{
	struct exchange x[2];
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		x[i].data = host_alloc(1, i, data_flags);
		x[i].signal = host_alloc(1, i, signal_flags);
		x[i].packets = packets;
	}
	for (int i = 0; i < 2; i++) {
		x[i].peer_data = x[1 - i].data;
		x[i].peer_signal = x[1 - i].signal;
	}
	thread = unit_thread(exchange_run, &x[0]);
	exchange_run(&x[1]);
	host_packets(false);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gsas_free(x[i].data), 0);
		assert_int_equal(gsas_free(x[i].signal), 0);
	}
}

static void test_exchange(void **state)
{
	exchange(GSAS_MAPPED, GSAS_MAPPED, false);
	exchange(0, 0, false);
	exchange(GSAS_MAPPED, 0, false);
	exchange(0, GSAS_MAPPED, false);
	exchange(GSAS_MAPPED, GSAS_MAPPED, true);
}

static void test_put_signal_errors(void **state)
{
	gsas_addr at = host_alloc(2, 0, GSAS_MAPPED);
	gsas_addr other = host_alloc(1, 1, GSAS_MAPPED);
	gsas_addr gone = host_alloc(1, 0, 0);
	uint64_t word = 7;

	assert_int_equal(gsas_free(gone), 0);
	assert_int_equal(gsas_put_signal(at, &word, 8, other, GSAS_OP_WRITE, 1),
			 -EINVAL);
	assert_int_equal(gsas_put_signal(at, &word, 8, at + 8, GSAS_OP_CSWAP,
					 1), -ENOSYS);
	assert_int_equal(gsas_put_signal(at, &word, 8, at + 8, (enum gsas_op)-1,
					 1), -ENOSYS);
	assert_int_equal(host_read(at), 0);
	/* a put that fails changes no signal, and needs none of both */
	assert_int_equal(gsas_put_signal(gone, &word, 8, at + 8, GSAS_OP_WRITE,
					 1), -ESTALE);
	assert_int_equal(host_read(at + 8), 0);
	assert_int_equal(gsas_put_signal(at, &word, 8, gone, GSAS_OP_WRITE, 1),
			 -ESTALE);
	assert_int_equal(host_read(at), 7);
	/* no bytes: the signal alone; its low bits are ignored */
	assert_int_equal(gsas_put_signal(at, NULL, 0, at + 13, GSAS_OP_MAX, 3),
			 0);
	assert_int_equal(host_read(at + 8), 3);
	assert_int_equal(gsas_free(at), 0);
	assert_int_equal(gsas_free(other), 0);
}

/* ---- Arrays of requests ------------------------------------------------- */

static void test_wait_all(void **state)
{
	static struct gsas_req req[REQUESTS];
	static uint64_t value[REQUESTS];
	gsas_addr at[2] = { host_alloc(2, 0, 0), host_alloc(2, 1, 0) };

	for (uint64_t i = 0; i < REQUESTS; i++)
		assert_int_equal(gsas_write64_start(at[i % 2] + i / 2 * 8, i,
						    &req[i]), 0);
	assert_int_equal(gsas_wait_all(req, REQUESTS), 0);
	for (uint64_t i = 0; i < REQUESTS; i++)
		assert_int_equal(gsas_read64_start(at[i % 2] + i / 2 * 8,
						   &value[i], &req[i]), 0);
	assert_int_equal(gsas_wait_all(req, REQUESTS), 0);
	for (uint64_t i = 0; i < REQUESTS; i++)
		assert_int_equal(value[i], i);
	assert_int_equal(gsas_wait_all(req, 0), 0);
	/* an error in the middle: the other requests are done */
	assert_int_equal(gsas_free(at[1]), 0);
	for (uint64_t i = 0; i < 10; i++)
		gsas_write64_start(at[i == 5], 70 + i, &req[i]);
	assert_int_equal(gsas_wait_all(req, 10), -ESTALE);
	assert_int_equal(host_read(at[0]), 79);
	assert_int_equal(gsas_free(at[0]), 0);
}

static void test_wait_any(void **state)
{
	static struct gsas_req req[REQUESTS];
	static uint64_t value[REQUESTS];
	bool was[REQUESTS] = { false };
	gsas_addr at = host_alloc(2, 0, 0), gone = host_alloc(1, 1, 0);
	size_t index, done = 0;
	int ret;

	assert_int_equal(gsas_free(gone), 0);
	for (size_t i = 0; i < REQUESTS; i++)
		gsas_read64_start(i == 7 ? gone : at + i % 512 * 8, &value[i],
				  &req[i]);
	while (done < REQUESTS) {
		ret = done % 2 == 0 ? gsas_wait_any(req, REQUESTS, &index) :
			gsas_test_any(req, REQUESTS, &index);
		if (ret == -EINPROGRESS) {
			assert_int_equal(index, REQUESTS);
			continue;
		}
		assert_true(index < REQUESTS);
		assert_int_equal(ret, index == 7 ? -ESTALE : 0);
		assert_false(was[index]);
		was[index] = true;
		done++;
	}
	assert_int_equal(gsas_wait_any(req, REQUESTS, &index), -ENOENT);
	assert_int_equal(index, REQUESTS);
	assert_int_equal(gsas_test_any(req, REQUESTS, &index), -ENOENT);
	assert_int_equal(gsas_wait_any(req, 0, &index), -ENOENT);
	/* a reported request still has its result, and can be started again */
	assert_int_equal(gsas_test(&req[7]), -ESTALE);
	gsas_write64_start(at, 1, &req[7]);
	assert_int_equal(gsas_wait_any(req, REQUESTS, &index), 0);
	assert_int_equal(index, 7);
	assert_int_equal(gsas_free(at), 0);
}

static void *wait_elsewhere(void *arg)
{
	size_t index = 0;

	HOLDS(gsas_wait_all(arg, 1) == -EINVAL);
	HOLDS(gsas_wait_any(arg, 1, &index) == -EINVAL && index == 1);
	HOLDS(gsas_test_any(arg, 1, &index) == -EINVAL && index == 1);
	return NULL;
}

static void test_other_thread(void **state)
{
	gsas_addr at = host_alloc(1, 0, 0);
	struct gsas_req req;

	gsas_write64_start(at, 1, &req);
	pthread_join(unit_thread(wait_elsewhere, &req), NULL);
	assert_int_equal(gsas_wait_all(&req, 1), 0);
	assert_int_equal(gsas_free(at), 0);
}

/* ---- Gets under way together --------------------------------------------- */

/* Gets of nothing, of some bytes, and of more than a receive space. A get has
 * the bytes of the puts that were started before it, and writes only its own
 * bytes. Accesses to mapped memory are not ordered (gsas.h): there the puts are
 * done before. */
static void many_gets(unsigned flags)
{
	enum { PAGES = 100, BYTES_ALL = PAGES * GSAS_PAGE, GETS = 6 };
	static const size_t len[GETS] = {
		0, 1, 777, GSAS_PAGE, 8 * GSAS_PAGE + 3, BYTES_ALL - 64,
	};
	static uint8_t from[BYTES_ALL], to[GETS][BYTES_ALL];
	gsas_addr at[2] = { host_alloc(PAGES, 0, flags),
			    host_alloc(PAGES, 1, flags) };
	struct gsas_req put[2], get[GETS];
	uint64_t rng = 1;

	for (size_t i = 0; i < BYTES_ALL; i++)
		from[i] = (uint8_t)unit_random(&rng);
	memset(to, 0xee, sizeof(to));
	for (int b = 0; b < 2; b++)
		assert_int_equal(gsas_put_start(at[b], from, BYTES_ALL,
						&put[b]), 0);
	if (flags & GSAS_MAPPED)
		assert_int_equal(gsas_wait_all(put, 2), 0);
	for (int i = 0; i < GETS; i++)
		assert_int_equal(gsas_get_start(to[i], at[i % 2] + 7 * i,
						len[i], &get[i]), 0);
	assert_int_equal(gsas_wait_all(get, GETS), 0);
	assert_int_equal(gsas_wait_all(put, 2), 0);
	for (int i = 0; i < GETS; i++) {
		assert_memory_equal(to[i], from + 7 * i, len[i]);
		for (size_t k = len[i]; k < BYTES_ALL; k++)
			assert_int_equal(to[i][k], 0xee);
	}
	assert_int_equal(gsas_get_start(to[0], at[0], SIZE_MAX, &get[0]),
			 -EINVAL);
	assert_int_equal(gsas_wait(&get[0]), -EINVAL);
	assert_int_equal(gsas_free(at[0]), 0);
	/* freed memory: the start has the error, or the wait */
	(void)gsas_get_start(to[0], at[0], 64, &get[0]);
	assert_int_equal(gsas_wait(&get[0]), -ESTALE);
	assert_int_equal(to[0][0], 0xee);
	assert_int_equal(gsas_free(at[1]), 0);
}

static void test_many_gets(void **state)
{
	many_gets(0);
	many_gets(GSAS_MAPPED);
}

HOST_MAIN(cmocka_unit_test(test_comparisons),
	  cmocka_unit_test(test_wait_errors),
	  cmocka_unit_test(test_freed_meanwhile),
	  cmocka_unit_test(test_sleeps),
	  cmocka_unit_test(test_exchange),
	  cmocka_unit_test(test_put_signal_errors),
	  cmocka_unit_test(test_wait_all),
	  cmocka_unit_test(test_wait_any),
	  cmocka_unit_test(test_other_thread),
	  cmocka_unit_test(test_many_gets))
