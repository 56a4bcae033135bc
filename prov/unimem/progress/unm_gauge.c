/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_gauge.c - the gauges in an endpoint's statistics: queue lengths, credits
 * and ages of operations. unm_progress.c refreshes them by clock, so that no
 * message pays for them: the age of an operation counts from the first refresh
 * that finds it, not from its start. The counters of the same page
 * (core/unm_stats.h) are updated where the events happen.
 */
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_stats.h"
#include "progress/unm_gauge.h"
#include "rma/unm_cache.h"
#include "rma/unm_rkey.h"
#include "util/unm_list.h"

#define UNM_SCAN_OPS	256	/* operations examined in one refresh */

/* Lower *oldest to us, if that is earlier. *oldest 0: no time yet. */
static void unm_earlier(uint64_t *oldest, uint64_t us)
{
	if (*oldest == 0 || us < *oldest)
		*oldest = us;
}

/* The time at which the operation was first found. A pool slot is reused: a
 * changed generation stamp means a new operation (or the same receive after it
 * moved from posted to in transfer), so its age starts again. */
static uint64_t unm_seen(struct unm_seen *seen, uint32_t stamp, uint64_t now_us)
{
	if (seen->stamp != stamp) {
		seen->stamp = stamp;
		seen->us = now_us;
	}
	return seen->us;
}

static void unm_scan_send(struct unm_age_scan *s, struct unm_tx_op *op,
			  uint64_t now_us)
{
	if (op->node.gen & 1)
		unm_earlier(&s->oldest,
			    unm_seen(&op->seen, op->node.gen, now_us));
}

/* Leave out multi-receive buffers: they are meant to stay posted for long. Each
 * message that is received into one has an operation of its own. */
static void unm_scan_recv(struct unm_age_scan *s, struct unm_rx_op *op,
			  uint64_t now_us)
{
	bool posted = op->state == UNM_RX_POSTED;

	if (!(op->node.gen & 1) || (op->flags & FI_MULTI_RECV))
		return;
	unm_earlier(posted ? &s->oldest_recv : &s->oldest,
		    unm_seen(&op->seen, op->node.gen + posted, now_us));
}

static uint64_t unm_age(uint64_t us, uint64_t now_us)
{
	return us == 0 ? 0 : now_us > us ? now_us - us : 1;
}

/*
 * Find the ages of the oldest operations by a periodic scan of both pools. Each
 * refresh examines UNM_SCAN_OPS operations, so that its cost does not grow with
 * the pools; the gauges change when a scan is complete.
 */
static void unm_gauge_scan_ages(struct unm_ep *ep, uint64_t now_us)
{
	struct unm_age_scan *s = &ep->age_scan;

	for (int i = 0; i < UNM_SCAN_OPS; i++, s->next++) {
		uint32_t recv = s->next - ep->tx_pool.count;

		if (s->next < ep->tx_pool.count) {
			unm_scan_send(s, (void *)ep->tx_pool.node[s->next],
				      now_us);
		} else if (recv < ep->rx_pool.count) {
			unm_scan_recv(s, (void *)ep->rx_pool.node[recv],
				      now_us);
		} else {
			ep->stats->oldest_us = unm_age(s->oldest, now_us);
			ep->stats->oldest_recv_us = unm_age(s->oldest_recv,
							    now_us);
			*s = (struct unm_age_scan){ 0 };
			return;
		}
	}
}

void unm_gauge_refresh(struct unm_ep *ep, uint64_t now_us)
{
	struct unm_stats *st = ep->stats;
	uint64_t credits = UNM_PEER_CREDITS, entries = 0, bytes = 0;

	st->posted = ep->match[0].nrecv + ep->match[1].nrecv;
	st->unexpected = ep->match[0].nmsg + ep->match[1].nmsg;
	st->unexpected_bytes = ep->unexpected_bytes;
	st->inflight = ep->tx_pool.used + ep->os_pool.used;
	st->transfers = ep->rx_pool.used - st->posted;
	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);
		uint64_t limit;

		if (peer->hp == NULL)
			continue;
		if (peer->ncached != 0) {	/* release what is revoked or
						 * idle, so that the memory can
						 * be freed */
			/* a peer that cannot be reached yet was asked for no
			 * remote key, but memory of it may be imported */
			if (peer->hello_sent)
				unm_rkey_poll_revoked(peer);
			unm_cache_evict_idle(peer, now_us);
		}
		entries += peer->ncached;
		bytes += peer->cached_bytes;
		limit = peer->hello_sent ? unm_peer_limit(peer) :
			UNM_PEER_CREDITS;
		if (limit - peer->msgs_sent < credits)
			credits = limit - peer->msgs_sent;
	}
	st->credits_min = credits;
	st->rkey_entries = entries;
	st->rkey_bytes = bytes;
	unm_gauge_scan_ages(ep, now_us);
	/* do not wait for the end of the scan where no operation is left */
	if (st->inflight + st->transfers == 0)
		st->oldest_us = 0;
	if (st->posted == 0)
		st->oldest_recv_us = 0;
}
