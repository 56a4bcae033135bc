/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_stall.c - clients of the atomic service that take no answers, and
 * the sleep of the service while there are such clients and without any.
 */
#include "lib/gsas_bare_client.h"

/* ---- Clients that take no answers ---------------------------------------- */

/* Sends until neither requests nor answers move. Returns the number of
 * requests. */
static uint64_t stall(struct bare *r, uint64_t at)
{
	uint64_t sent = 0;

	for (int quiet = 0; quiet < 1000; quiet++) {
		for (; bare_send(r, GSAS_FAD64, (uint8_t)(sent % 255 + 1), at,
				 1, 0); sent++)
			quiet = 0;
		step(r);
	}
	return sent;
}

/* Other clients are served, the service sleeps meanwhile, and nothing is
 * lost. */
static void test_no_answers_taken(void **state)
{
	struct bare *blocked = &g_bare[0], *other = &g_bare[1];
	uint64_t at, sent, sleeps;
	struct answer a;

	bare_join(blocked);
	bare_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	sent = stall(blocked, at);
	assert_true(sent >= g_hal->caps.pkt_depth);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(ask(other, GSAS_FAD64, at + 8, 1, 0), i);
	/* there are requests, but they cannot be served */
	sleeps = stat()->sleeps;
	for (int i = 0; i < 10; i++)
		gsas_board_sleep(g_board, -1);
	assert_true(stat()->sleeps >= sleeps + 9);
	assert_true(ask(other, GSAS_READ64, at, 0, 0) < sent);
	for (uint64_t i = 0; i < sent; i++) {
		UNTIL(blocked, bare_take(blocked, &a));
		assert_int_equal(a.error, GSAS_OK);
		assert_int_equal(a.tag, i % 255 + 1);
		assert_int_equal(a.result, i);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

/* Take n answers, the first of which has this result. */
static void drain(struct bare *r, uint64_t first, uint64_t n)
{
	struct answer a;

	for (uint64_t i = first; i < first + n; i++) {
		UNTIL(r, bare_take(r, &a));
		assert_int_equal(a.result, i);
	}
}

/* The wake-ups since the counter was at `wakes`, without that of
 * serve_here(). */
static int64_t woken_since(uint64_t wakes)
{
	return (int64_t)(stat()->wakes - wakes) - 1;
}

/* The service sleeps while requests have to wait. Other clients wake it before
 * its timeout, and so does free space for answers. On a busy machine the
 * service may not fall asleep in time: another round decides then. */
static void test_sleep_delays_no_client(void **state)
{
	struct bare *blocked = &g_bare[0], *other = &g_bare[1];
	uint64_t end = now_s() + SECONDS, asked = 0, got = 0, at, sent, wakes;
	int64_t by_requests = 0, by_credits = 0;

	if (getenv("FI_UNIMEM_FAULT") != NULL ||
	    !(g_hal->caps.flags & HAL_CAP_EVENT))
		skip();
	bare_join(blocked);
	bare_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	while (by_requests <= 10 || by_credits <= 0) {
		assert_true(now_s() < end);
		sent = stall(blocked, at);
		wakes = stat()->wakes;
		serve_apart();
		for (int i = 0; i < 50; i++, asked++) {
			usleep(1000);
			assert_int_equal(ask(other, GSAS_FAD64, at + 8, 1, 0),
					 asked);
		}
		serve_here();
		by_requests += woken_since(wakes);
		wakes = stat()->wakes;
		serve_apart();
		usleep(20000);
		drain(blocked, got, sent);
		got += sent;
		serve_here();
		by_credits += woken_since(wakes);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

/* The client closes instead of taking answers: its requests were executed. */
static void test_requests_before_the_end(void **state)
{
	struct bare *blocked = &g_bare[0], *other = &g_bare[1];
	uint64_t at, sent;

	bare_join(blocked);
	bare_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	sent = stall(blocked, at);
	bare_close(blocked);
	UNTIL(other, stat()->clients == 1);
	assert_int_equal(ask(other, GSAS_READ64, at, 0, 0), sent);
	ask(other, GSAS_FREE, 0, at, 0);
}

/* If the answer of an allocation cannot be delivered, the memory is freed. */
static void test_allocation_without_an_answer(void **state)
{
	struct bare *blocked = &g_bare[0], *other = &g_bare[1];
	const uint64_t depth = g_hal->caps.pkt_depth;
	uint64_t at;

	bare_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	for (int i = 0; i < 2; i++) {
		/* the first is allocated at once, the second is deferred */
		const uint64_t pages = i == 0 ? 1 : 5000;
		const uint64_t allocs = stat()->op[GSAS_ALLOC];

		bare_join(blocked);
		for (uint64_t k = 0; k < depth; k++)
			UNTIL(blocked, bare_send(blocked, GSAS_READ64, 1, at, 0,
						 0));
		UNTIL(blocked, bare_send(blocked, GSAS_ALLOC, 2, 0, pages, 0));
		UNTIL(blocked, stat()->op[GSAS_ALLOC] == allocs + 1);
		assert_int_equal(stat()->pages, 1 + pages);
		/* a request is still pending when it ends */
		UNTIL(blocked, bare_send(blocked, GSAS_FENCE, 3, 0, 0, 0));
		bare_close(blocked);
		UNTIL(other, stat()->clients == 1 && stat()->pages == 1);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

/* ---- Sleeping ------------------------------------------------------------ */

/* Every kind of event ends a sleep without timeout. */
static void test_sleeps_and_wakes(void **state)
{
	struct bare *r = &g_bare[0];
	uint64_t rng = 1, at;

	serve_apart();
	bare_join(r);
	at = ask(r, GSAS_ALLOC, 0, 1, 0);
	for (uint32_t i = 0; i < ROUNDS / 4; i++) {
		usleep(unit_below(&rng, 300));
		assert_int_equal(ask(r, GSAS_FAD64, at, 1, 0), i);
		if (i % 16 == 0)	/* a new peer, and its end */
			bare_join(&g_bare[1]);
		if (i % 16 == 8)
			bare_close(&g_bare[1]);
		if (i % 32 == 4)	/* a deferred request */
			ask(r, GSAS_FREE, 0, ask(r, GSAS_ALLOC, 0, 256, 0), 0);
		if (i % 32 == 20)
			gsas_board_wake(g_board);
	}
	ask(r, GSAS_FREE, 0, at, 0);
	serve_here();
	assert_true(stat()->sleeps > 0);
	assert_true(stat()->wakes > 0 && stat()->wakes <= stat()->sleeps);
}

/* In one thread, by turns: the service does not sleep while a request is
 * there. */
static void test_no_sleep_with_work(void **state)
{
	struct bare *r = &g_bare[0];
	uint64_t at, wakes;
	struct answer a;

	if (getenv("FI_UNIMEM_FAULT") != NULL)
		skip();			/* the decorator may hold requests */
	bare_join(r);
	at = ask(r, GSAS_ALLOC, 0, 1, 0);
	for (uint64_t i = 0; i < 100; i++) {
		UNTIL(r, bare_send(r, GSAS_FAD64, 1, at, 1, 0));
		/* without an event this would sleep for ever */
		do {
			gsas_board_sleep(g_board, -1);
			gsas_board_poll(g_board);
			bare_service(r);
		} while (!bare_take(r, &a));
		assert_int_equal(a.result, i);
	}
	/* wakes one sleep only */
	gsas_board_wake(g_board);
	gsas_board_sleep(g_board, -1);
	wakes = stat()->wakes;
	for (int i = 0; i < 10; i++)
		gsas_board_sleep(g_board, 1);
	assert_true(stat()->wakes < wakes + 10);
	ask(r, GSAS_FREE, 0, at, 0);
}

/* A timer of the HAL ends sleeps in which nothing comes. The service counts no
 * wake-up then, and polls blocked work no more often. */
static void test_timer_is_no_event(void **state)
{
	unsigned int sleep_ms = g_hal->params.sleep_ms;
	uint64_t sleeps, wakes;

	if (getenv("FI_UNIMEM_FAULT") != NULL)
		skip();			/* the decorator refuses to arm */
	/* The other tests run without the timer, so that a lost event ends no
	 * sleep. Here it expires long before the 200 ms are over. */
	g_hal->params.sleep_ms = 20;
	for (int i = 0; i < 3; i++)	/* events that earlier tests left */
		gsas_board_sleep(g_board, 200);
	sleeps = stat()->sleeps;
	wakes = stat()->wakes;
	for (int i = 0; i < 4; i++)
		gsas_board_sleep(g_board, 200);
	g_hal->params.sleep_ms = sleep_ms;
	assert_int_equal(stat()->sleeps, sleeps + 4);
	assert_int_equal(stat()->wakes, wakes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_answers_taken),
		TEST(test_sleep_delays_no_client),
		TEST(test_requests_before_the_end),
		TEST(test_allocation_without_an_answer),
		TEST(test_sleeps_and_wakes),
		TEST(test_no_sleep_with_work),
		TEST(test_timer_is_no_event),
	};

	return bare_begin() != 0 ? 99 : bare_end(unit_run(tests));
}
