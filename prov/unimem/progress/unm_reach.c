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
 * sender's, so that posting a receive connects nothing itself.
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

static bool unm_reach_dead(const struct unm_ep *ep, uint32_t index)
{
	return index < ep->peer_slots && ep->peer_of[index] != NULL &&
		ep->peer_of[index]->hp == NULL;
}

void unm_reach_all(struct unm_ep *ep)
{
	uint32_t n = ep->named.slots < ep->av->count ? ep->named.slots :
		ep->av->count;
	struct unm_peer *peer;

	for (uint32_t i = 0; i < n; i++)
		/* a peer that cannot be opened now is tried again */
		if (ep->named.count[i] != 0 && unm_reach_far(ep, i) &&
		    !unm_reach_dead(ep, i) &&
		    unm_peer_open(ep, i, &peer) == 0)
			hal_peer_resume(peer->hp);
}
