/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_progress.h - progress of an endpoint: receive packets, continue transfers
 * and requests, notice new connections and dead peers; and arming endpoints
 * before threads sleep. The domain is locked in each call. The lists of
 * endpoints hold struct unm_ep_links.
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

/* Make progress on an endpoint: a bounded amount of work. Returns how many
 * packets, transfers and operations advanced; 0: the endpoint was idle. */
int unm_progress(struct unm_ep *ep);

/* Process packets of one peer, up to a limit. Returns how many there were. */
int unm_progress_peer(struct unm_peer *peer);

/* Make progress on the endpoints of a list. idle: counts the empty polls of the
 * queue or counter that is polled. True: there were many in a row, so the
 * caller shall call unm_idle_yield() when it has released the lock. */
bool unm_poll(struct unm_list *eps, struct unm_idle *idle);

/* To be called after a thread slept on the endpoints of a list: check
 * connections and dead peers at once, without waiting for their interval. */
void unm_service_list(struct unm_list *eps);

/* Arm the endpoints of a list, so that packets and events make their
 * descriptors readable. 0: all are armed, the thread may sleep; -FI_EAGAIN:
 * there is something to do now, and some endpoints may be armed. */
int unm_arm_list(struct unm_list *eps);

/* A thread begins to poll the endpoints of a list: disarm them, so that packets
 * no longer wake the other sleepers. When it ends, it wakes the threads that
 * still sleep on those endpoints: they poll, and arm them again. */
void unm_poll_begin(struct unm_list *eps);
void unm_poll_end(struct unm_list *eps);

/* unm_poll(), then start triggered and deferred work that became ready. False
 * also if work was started; the rest as unm_poll(). */
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
