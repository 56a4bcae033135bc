/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_reach.h - keeps connections to the peers on other hosts whose messages
 * posted receives wait for (unm_reach.c), so that the end of such a peer is
 * noticed and ends the receives.
 */
#ifndef UNM_REACH_H
#define UNM_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unm_ep_state.h"

struct hal_peer;

/* Does a posted receive name this peer? For hal_if.peer_awaited. */
bool unm_reach_awaited(struct hal_peer *hp);

/* The part of unm_reach() that is seldom reached. */
void unm_reach_all(struct unm_ep *ep);

/* Connect to the peers on other hosts that posted receives name, if that was
 * not tried for a second. now: unm_now_ns(). The domain is locked. */
static inline void unm_reach(struct unm_ep *ep, uint64_t now)
{
	if (__builtin_expect(!unm_named_any(&ep->named), 1) ||
	    now < ep->next_reach)
		return;
	ep->next_reach = now + UINT64_C(1000000000);
	unm_reach_all(ep);
}

/* The same before a sleep that may have no end: also if a receive has named a
 * source since then that was not examined while it is connected. A loop of
 * receives of a connected source and of sleeps examines it once a second. */
static inline void unm_reach_before_sleep(struct unm_ep *ep, uint64_t now)
{
	if (ep->named.fresh)
		ep->next_reach = 0;
	unm_reach(ep, now);
}

#endif /* UNM_REACH_H */
