/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_progress.h - one bounded loop that moves everything an endpoint has under
 * way, and the sleep of threads that found nothing to move.
 */
#ifndef UNM_PROGRESS_H
#define UNM_PROGRESS_H

#include <stdbool.h>

#include "core/unm_domain_state.h"
#include "trigger/unm_trigger.h"

struct unm_ep;
struct unm_idle;
struct unm_list;
struct unm_peer;

/* Move what can be moved. Returns things done. */
int unm_progress(struct unm_ep *ep);

/* Take what a peer sent, boundedly. Returns packets taken. */
int unm_progress_peer(struct unm_peer *peer);

/* Progress the endpoints of a list (unm_ep_links), the domain
 * locked. True: nothing moved for long; unm_yield() once the lock is free. */
bool unm_poll(struct unm_list *eps, struct unm_idle *idle);

/* A thread slept on them: look at connections and deaths, whatever the clock
 * says. */
void unm_slept_list(struct unm_list *eps);

/* 0: every endpoint armed; -FI_EAGAIN: something is there. */
int unm_arm_list(struct unm_list *eps);

/* A sleeper is awake and polls for the others, too; or polls no longer: who
 * still sleeps has to look. */
void unm_awake_list(struct unm_list *eps);
void unm_leave_list(struct unm_list *eps);

/* unm_poll(), and then what that set off. */
static inline bool unm_trigger_poll(struct unm_domain *domain,
				    struct unm_list *eps,
				    struct unm_idle *idle)
{
	bool yield = unm_poll(eps, idle);

	if (__builtin_expect(unm_trigger_waits(domain), 0) &&
	    unm_trigger_run(domain) != 0)
		return false;
	return yield;
}

#endif /* UNM_PROGRESS_H */
