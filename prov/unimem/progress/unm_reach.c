/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_reach.c - keeps connections to the peers on other hosts whose messages
 * posted receives wait for. unm_reach.h declares the entry points.
 *
 * A peer on another host without a connection, because nothing was sent yet or
 * because it is suspended (docs/net.md, section 10), ends without notice. A
 * receive that names it would wait for ever. So the endpoint connects to it
 * within a second: the dial fails if the peer has ended, and progress tears the
 * peer down as any other. Most messages come sooner, with a connection of the
 * sender's, so that posting a receive connects nothing itself. A source that
 * computes answers late: the HAL bounds how many connections are being made,
 * and the other sources have to wait.
 */
#include <string.h>

#include "core/unm_av_table.h"
#include "core/unm_named.h"
#include "core/unm_peer.h"
#include "hal/hal.h"
#include "progress/unm_reach.h"

bool unm_reach_awaited(struct hal_peer *hp)
{
	const struct unm_peer *peer = hp->user;

	return peer != NULL && unm_named_find(&peer->ep->named, peer->fi_addr);
}

/* Does an index of the address vector name one process of another host? */
static bool unm_reach_far(const struct unm_ep *ep, uint32_t index)
{
	const struct unm_av_entry *entry = &ep->av->entry[index];
	const struct hal_host *host = unm_av_host(ep->av, index);

	return entry->valid && entry->addr.nonce != HAL_ADDR_ANY &&
		host != NULL && memcmp(host->id, ep->hif->host->id,
				       sizeof(host->id)) != 0;
}

/* Begin to connect to a source that has no object of a peer. False: it is to be
 * tried again. */
static bool unm_reach_dial(struct unm_ep *ep, uint32_t index)
{
	struct unm_peer *peer;

	if (!hal_if_may_resume(ep->hif) || unm_peer_find(ep, index, &peer) != 0)
		return false;
	hal_peer_resume(peer->hp);
	return true;
}

/* Has a source an object of a peer, which may have ended? */
static bool unm_reach_known(const struct unm_ep *ep, uint32_t index)
{
	unm_list_for_each(pos, &ep->peers)
		if (unm_container(pos, struct unm_peer, all)->fi_addr == index)
			return true;
	return false;
}

/* Begin to connect to the sources without an entry that have no object of a
 * peer. There was no memory for entries, so that any source may be named. */
static void unm_reach_rest(struct unm_ep *ep)
{
	for (uint32_t i = ep->named.slots; i < ep->av->count; i++) {
		if (!hal_if_may_resume(ep->hif))
			return;
		if (unm_reach_far(ep, i) && !unm_reach_known(ep, i))
			unm_reach_dial(ep, i);
	}
}

/* Begin to connect to the sources that have no object of a peer. */
static void unm_reach_new(struct unm_ep *ep)
{
	struct unm_named *named = &ep->named;
	uint32_t n = named->slots < ep->av->count ? named->slots :
		ep->av->count;

	unm_list_for_each(pos, &ep->peers) {
		fi_addr_t index = unm_container(pos, struct unm_peer,
						all)->fi_addr;

		if (index < named->slots)
			named->entry[index].known = true;
	}
	for (uint32_t i = 0; i < n; i++) {
		bool known = named->entry[i].known;

		named->entry[i].known = false;
		if (named->entry[i].recvs != 0)
			named->entry[i].reached = known ||
				!unm_reach_far(ep, i) || unm_reach_dial(ep, i);
	}
}

/* Connect again to sources that are suspended. */
static void unm_reach_again(struct unm_ep *ep)
{
	struct unm_list *left = NULL;

	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (peer->hp == NULL || peer->hp->host == NULL ||
		    !unm_named_find(&ep->named, peer->fi_addr))
			continue;
		if (left == NULL && !hal_peer_resume(peer->hp))
			left = pos;
		if (left != NULL)
			unm_named_lapse(&ep->named, peer->fi_addr);
	}
	if (left != NULL) {
		/* it is the first one next time: the head of the list moves in
		 * front of it */
		unm_list_remove(&ep->peers);
		unm_list_append(left, &ep->peers);
	}
}

void unm_reach_all(struct unm_ep *ep)
{
	ep->named.fresh = false;
	unm_reach_new(ep);
	if (ep->named.all)
		unm_reach_rest(ep);
	unm_reach_again(ep);
}
