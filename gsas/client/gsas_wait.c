/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_wait.c - waits for events, answers, tags, credits and units of the
 * receive spaces: polls, then yields the processor, then sleeps.
 *
 * Only calls of programs wait; handling what is received never does
 * (gsas_progress.h), so there is no recursion.
 */
#include <poll.h>

#include "client/gsas_conn.h"
#include "client/gsas_progress.h"
#include "client/gsas_wait.h"
#include "util/unm_clock.h"
#include "util/unm_yield.h"

#define YIELDS		256		/* polls with a yield before a sleep */
#define SLEEP_MS	100		/* longest sleep in one go */
#define CHECK_NS	20000		/* between checks for silent services */
#define STEP_NS		200000000	/* most that one check counts as
					 * waited: the process may have been
					 * stopped in between */
#define GAP_NS		1000000		/* longest time between two waits that
					 * counts as waited, and most of the
					 * time between two polls that does */

/* ---- Events -------------------------------------------------------------- */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Ask the services to wake this thread when they release packets, because a
 * GET or PUT in parts or the caller waits for a credit; or take that back. */
static void wake_for_credits(struct gsas_thread *t, bool on)
{
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->peer != NULL &&
		    (!on || t->waits_to_send || conn->bulk != NULL))
			hal_tx_sleep(conn->peer, on);
	}
}

/* The time to sleep, in milliseconds. */
static int sleep_ms(const struct gsas_thread *t)
{
	uint64_t now, left;

	if (t->waits_to_send)
		return 1;
	if (t->deadline == 0)
		return SLEEP_MS;
	now = unm_now_ns();
	left = now < t->deadline ? (t->deadline - now) / 1000000 + 1 : 0;
	return left < SLEEP_MS ? (int)left : SLEEP_MS;
}

static void sleep_for_event(struct gsas_thread *t)
{
	struct pollfd pfd = { .fd = hal_if_fd(t->hif), .events = POLLIN };

	wake_for_credits(t, true);
	if (hal_if_arm(t->hif) == 0) {
		/* A service may have released packets before it was asked for
		 * the wake-up. Progress uses these credits for requests in
		 * parts. A caller that waits for a credit checks again after
		 * sleep_ms(), which is 1 ms then. */
		if (!gsas_thread_progress(t))
			poll(&pfd, 1, sleep_ms(t));
		hal_if_disarm(t->hif);
	}
	wake_for_credits(t, false);
	gsas_thread_events(t);
}

/* Count ns as waited for each service that has not answered. Returns whether
 * requests may have completed. */
static bool count_waited(struct gsas_thread *t, uint64_t ns)
{
	bool moved = false;

	if (t->timeout == 0)
		return false;
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->peer != NULL)
			moved |= gsas_conn_check_timeout(conn, ns);
	}
	return moved;
}

/*
 * Count how long this thread has waited without an answer, for each service.
 * The time between two waits does not count, unless it is at most GAP_NS:
 * otherwise a thread that waits again and again for less than CHECK_NS would
 * never count any time. Returns whether requests may have completed.
 */
static bool check_timeouts(struct gsas_thread *t, uint64_t now)
{
	uint64_t step = now - t->timeout_checked;

	if (step < CHECK_NS)
		return false;
	if (t->begins && step > GAP_NS)
		step = 0;
	if (step > STEP_NS)
		step = STEP_NS;
	t->timeout_checked = now;
	t->begins = false;
	return count_waited(t, step);
}

bool gsas_poll_step(struct gsas_thread *t)
{
	bool moved = gsas_thread_progress(t);
	uint64_t now = unm_now_ns(), step = now - t->timeout_checked;

	if (now >= t->next_events)
		gsas_thread_events(t);
	if (step < CHECK_NS)
		return moved;
	t->timeout_checked = now;
	return count_waited(t, step < GAP_NS ? step : GAP_NS) || moved;
}

void gsas_wait_step(struct gsas_thread *t)
{
	uint64_t now;

	if (gsas_thread_progress(t)) {
		t->polls = 0;
		return;
	}
	if (++t->polls < t->yield.spin) {
		relax();
		return;
	}
	now = unm_now_ns();
	if (now >= t->next_events)
		gsas_thread_events(t);
	if (check_timeouts(t, now)) {
		t->polls = 0;
		return;
	}
	if (t->polls < t->yield.spin + YIELDS ||
	    !(t->hif->caps->flags & HAL_CAP_EVENT))
		gsas_yielded(&t->yield, unm_yield());
	else
		sleep_for_event(t);
}

void gsas_conn_wait_step(struct gsas_conn *conn)
{
	conn->blocked = true;
	gsas_wait_step(conn->thread);
	conn->blocked = false;
}

/* ---- Requests ------------------------------------------------------------ */

int gsas_conn_send_until(struct gsas_conn *conn, const struct gsas_msg *msg,
			 struct gsas_request *request, uint64_t end)
{
	struct gsas_thread *t = conn->thread;
	int ret = gsas_conn_try_send(conn, msg, request);

	if (__builtin_expect(ret != -FI_EAGAIN, 1))
		return ret;
	gsas_wait_begin(t);
	t->waits_to_send = true;
	do {
		gsas_conn_wait_step(conn);
		ret = gsas_conn_try_send(conn, msg, request);
	} while (ret == -FI_EAGAIN && unm_now_ns() < end);
	t->waits_to_send = false;
	if (ret == 0)		/* the service released or answered packets */
		conn->waited = 0;
	return ret;
}

int gsas_request_wait(struct gsas_thread *t, struct gsas_request *request)
{
	gsas_wait_begin(t);
	while (request->status == -FI_EINPROGRESS)
		gsas_wait_step(t);
	return request->status;
}

int gsas_request_do(struct gsas_conn *conn, const struct gsas_msg *msg,
		    struct gsas_request *request)
{
	int ret;

	gsas_request_begin(request, conn->thread->number);
	ret = gsas_conn_send(conn, msg, request);
	return ret != 0 ? ret : gsas_request_wait(conn->thread, request);
}

/* Units of one space are held while units of the other are waited for. This
 * cannot deadlock: the requests whose units are waited for hold all units that
 * they need, and will be answered. */
int gsas_space_wait(struct gsas_conn *conn, uint32_t in, uint32_t out,
		    struct gsas_msg *msg, uint32_t *at)
{
	gsas_wait_begin(conn->thread);
	while (!gsas_space_try(conn, in, out, msg, at)) {
		gsas_wait_step(conn->thread);
		if (conn->peer == NULL)
			return conn->closed_error;
	}
	return 0;
}
