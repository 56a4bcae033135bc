/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_revoke.c - revoking cached remote keys, when a memory region or an
 * endpoint is closed: the owner's side of docs/protocol.md, section 12. The
 * initiator's side is in rma/unm_rkey.c. Because the wait makes progress, this
 * file is above msg/ and rma/.
 */
#include <sched.h>

#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"
#include "hal/hal.h"
#include "progress/unm_progress.h"
#include "progress/unm_revoke.h"
#include "unm_env.h"
#include "unm_log.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

/*
 * Store the epoch and the region of the last revocation to the peer, then read
 * the peer's guard: if the peer is inside, peer->guard_awaited holds the guard.
 * An earlier revocation that may not have arrived need not be stored again: a
 * peer that missed it sees the epoch grow by more than one and evicts all keys.
 */
static void unm_revoke_send(struct unm_peer *peer)
{
	uint64_t word = (uint64_t)peer->epoch << 32 | peer->revoking;

	peer->guard_awaited = 0;
	peer->revoke_pending = hal_rx_back_sync(peer->hp, UNM_PEER_BACK_REVOKED,
						word) != 0;
	/* a peer that was sent no packet has no remote key */
	if (peer->revoke_pending || !peer->hello_sent)
		return;
	word = hal_tx_back_sync(peer->hp, UNM_PEER_BACK_GUARD);
	if (word & 1)
		peer->guard_awaited = word;
}

/* Notify the peers that were sent remote keys. by: how much the epoch grows: 1
 * revokes the keys of this region, more than 1 revokes all keys. */
static void unm_revoke_ep(struct unm_ep *ep, uint32_t region, uint32_t by)
{
	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (peer->hp == NULL || !peer->rkeys_sent)
			continue;
		peer->epoch += by;
		peer->revoking = region;
		unm_revoke_send(peer);
		ep->stats->revokes++;
	}
}

/* True: a peer of the endpoint is inside, or not yet notified. */
static bool unm_revoke_waits(struct unm_ep *ep)
{
	bool waits = false;

	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (peer->hp == NULL || peer->hp->dead) {
			peer->revoke_pending = false;
			peer->guard_awaited = 0;
		}
		if (peer->revoke_pending)
			unm_revoke_send(peer);
		if (peer->guard_awaited != 0 &&
		    hal_tx_back_sync(peer->hp, UNM_PEER_BACK_GUARD) !=
		    peer->guard_awaited)
			peer->guard_awaited = 0;
		waits |= peer->guard_awaited != 0 || peer->revoke_pending;
	}
	return waits;
}

/* The time is over: name the first peer that is still inside, in one line. If
 * no other thread waits for the peers, wait for none of them any more. call:
 * the call that waited. */
static void unm_revoke_give_up(struct unm_ep *ep, const char *call, bool *named)
{
	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (!*named &&
		    (peer->guard_awaited != 0 || peer->revoke_pending)) {
			UNM_WARN(MR, "%s gives up after %d ms: peer "
				 "interface %u:%u has been in the middle of an "
				 "access all the time. It is stopped, or "
				 "FI_UNIMEM_CLOSE_MS is too short", call,
				 g_unm_env.close_ms, peer->hp->addr.board,
				 peer->hp->addr.iface);
			*named = true;
		}
		if (ep->domain->revokers != 0)
			continue;
		peer->guard_awaited = 0;
		peer->revoke_pending = false;
	}
}

static bool unm_revoke_all_out(struct unm_domain *domain)
{
	bool waits = false;

	unm_list_for_each(pos, &domain->eps)
		waits |= unm_revoke_waits(unm_container(pos,
				struct unm_ep_links, node)->ep);
	return !waits;
}

/*
 * Wait for peers that are inside. All endpoints of the domain make progress:
 * one of them may access another's memory, and two processes may wait for each
 * other. Returns 0, or -FI_EBUSY after FI_UNIMEM_CLOSE_MS, because a peer stays
 * inside for as long as its process is stopped.
 */
static int unm_revoke_wait(struct unm_domain *domain, const char *call)
{
	uint64_t end = unm_now_us() + (uint64_t)g_unm_env.close_ms * 1000;
	bool late = false, named = false, out;

	domain->revokers++;
	while (!(out = unm_revoke_all_out(domain)) && !late) {
		/* check once more after the end of the time: this process may
		 * have been stopped meanwhile */
		late = unm_now_us() > end;
		unm_list_for_each(pos, &domain->eps)
			unm_progress(unm_container(pos, struct unm_ep_links,
						   node)->ep);
		unm_unlock(domain);
		sched_yield();
		unm_lock(domain);
	}
	domain->revokers--;
	if (out)
		return 0;
	unm_list_for_each(pos, &domain->eps)
		unm_revoke_give_up(unm_container(pos, struct unm_ep_links,
						 node)->ep, call, &named);
	return -FI_EBUSY;
}

int unm_mr_revoke(struct unm_mr *mr, const char *call)
{
	int ret;

	if (!mr->rkey_sent)
		return 0;
	mr->closing = true;
	unm_list_for_each(pos, &mr->domain->eps)
		unm_revoke_ep(unm_container(pos, struct unm_ep_links,
					    node)->ep, mr->number, 1);
	ret = unm_revoke_wait(mr->domain, call);
	mr->closing = false;
	mr->rkey_sent = ret != 0;
	mr->exported = mr->exported && ret != 0;
	return ret;
}

int unm_target_close(struct unm_ep *ep)
{
	int ret;

	ep->closing = true;
	unm_revoke_ep(ep, 0, 2);
	ret = unm_revoke_wait(ep->domain, "fi_close()");
	ep->closing = ret == 0;
	return ret;
}
