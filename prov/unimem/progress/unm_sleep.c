/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_sleep.c - sleeping on wait objects: fi_trywait() for application threads,
 * and the sleep of the provider's blocking calls. Waking is in core/unm_wake.c;
 * wait sets block in api/unm_poll_set.c.
 */
#include <poll.h>
#include <sched.h>

#include "core/unm_domain_state.h"
#include "core/unm_idle.h"
#include "core/unm_wake.h"
#include "progress/unm_progress.h"
#include "progress/unm_sleep.h"

#define UNM_SLEEP_MS	100		/* longest sleep in one go */

int unm_wait_try(struct unm_wait *w, bool ready, struct unm_list *eps)
{
	bool was_woken = w->woken && w->appev >= 0;
	bool owed = w->waited || was_woken;
	int ret = 0;

	if (w->obj == FI_WAIT_NONE || w->obj == FI_WAIT_YIELD)
		return -FI_EINVAL;
	if (was_woken)
		unm_wait_lower(w->appev);
	w->woken = false;
	unm_wait_set_waited(w, false);
	if (ready || w->signalled ||
	    (w->domain != NULL && unm_trigger_runnable(w->domain)))
		ret = -FI_EAGAIN;
	else if (eps != NULL)
		ret = unm_arm_list(eps);
	if (w->obj != FI_WAIT_SET)	/* unm_wait_set_try() clears it */
		w->signalled = false;
	if (ret == 0)
		unm_wait_set_waited(w, true);
	else if (owed)			/* another thread may be blocked */
		unm_wait_wake_external(w);
	return ret;
}

/* Block for ms milliseconds at most. on_eps: endpoints may end the sleep. The
 * domain's lock is released during the sleep. */
static void unm_wait_block(struct unm_wait *w, bool on_eps, int ms)
{
	struct pollfd pfd[2] = {
		{ .fd = w->evfd, .events = POLLIN },
		{ .fd = w->epfd, .events = POLLIN },
	};
	uint32_t epoch = w->epoch;

	w->asleep++;
	w->wanted++;
	unm_unlock(w->domain);
	poll(pfd, on_eps ? 2 : 1, ms);
	unm_lock(w->domain);
	w->asleep--;
	w->wanted--;
	/* the last thread that this wake-up was for resets the event fd */
	if (epoch != w->epoch && w->unaware != 0 && --w->unaware == 0)
		unm_wait_lower(w->evfd);
}

void unm_wait_sleep(struct unm_wait *w, struct unm_list *eps, int64_t ms)
{
	struct unm_domain *domain = w->domain;

	if (eps != NULL && unm_arm_list(eps) != 0) {
		/* there is work: poll again, but yield first, as the process
		 * that we wait for may need this processor */
		unm_unlock(domain);
		sched_yield();
		unm_lock(domain);
		return;
	}
	if (ms < 0 || ms > UNM_SLEEP_MS)
		ms = UNM_SLEEP_MS;
	if (ms != 0 && unm_trigger_waits(domain))
		ms = 1;			/* retry work that was refused */
	unm_wait_block(w, true, (int)ms);
	if (eps != NULL)
		unm_service_list(eps);
}

void unm_wait_idle(struct unm_wait *w, struct unm_list *eps,
		   struct unm_idle *idle, int64_t ms)
{
	if (unm_wait_sleeps(w)) {
		unm_wait_sleep(w, eps, ms);
		return;
	}
	unm_unlock(w->domain);
	unm_idle_yield(idle);
	unm_lock(w->domain);
}

void unm_wait_nap(struct unm_wait *w)
{
	unm_wait_block(w, false, 1);
}
