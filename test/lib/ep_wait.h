/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_wait.h - helpers of tests in which threads sleep in queues, counters and
 * wait sets until another thread wakes them; uses ep_pair.h
 */
#ifndef EP_WAIT_H
#define EP_WAIT_H

#include <poll.h>

#include "api/unm_domain.h"
#include "api/unm_ep.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_stats.h"
#include "lib/ep_pair.h"

#define LONG_MS	(UNIT_SLOW ? 120000 : 20000)	/* ms after which a wait counts
						 * as endless */

/* A counter with this wait object. */
static inline struct fid_cntr *open_waiting_cntr(struct ep *e,
						 enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .wait_obj = wait };
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(e->domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* The statistics of an endpoint that another thread may use. */
static inline struct unm_stats stats_of(struct fid_ep *fid)
{
	struct unm_ep *ep = (struct unm_ep *)fid;
	struct unm_stats st;

	unm_lock(ep->domain);
	st = *ep->stats;
	unm_unlock(ep->domain);
	return st;
}

/* LONG_MS from now, for pthread_cond_timedwait(). */
static inline struct timespec long_from_now(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LONG_MS / 1000;
	return end;
}

#endif /* EP_WAIT_H */
