/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_lost.c - receives that name a source which has died. unm_lost.h declares
 * the entry points and says which receives these are.
 *
 * A receive that matched a message is not posted any more: unm_recv_abort()
 * ends those in transfer. So each receive completes once.
 */
#include "core/unm_av_table.h"
#include "core/unm_complete.h"
#include "core/unm_match.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "msg/unm_lost.h"
#include "msg/unm_rx_op.h"
#include "util/unm_list.h"

static void unm_lost_end(struct unm_ep *ep, struct unm_rx_op *op, int err)
{
	struct unm_rx_done done = {
		.context = op->match.context, .tagged = op->tagged,
		.flags = op->flags & (FI_COMPLETION | UNM_OP_WORK),
		.tag = op->match.tag, .src = FI_ADDR_NOTAVAIL, .err = err,
	};

	if (op->flags & FI_MULTI_RECV) {
		op->retired = true;
		unm_multi_cancel(ep, op, err);
		return;
	}
	unm_rx_op_release(ep, op);
	unm_complete_rx(ep, &done);
}

void unm_lost_source(struct unm_ep *ep, uint64_t src, int err)
{
	struct unm_list taken, *node;

	unm_list_init(&taken);
	for (int tagged = 0; tagged < 2; tagged++)
		if (ep->match[tagged].nrecv != 0)
			unm_match_take_source(&ep->match[tagged], src, &taken);
	while ((node = unm_list_pop(&taken)) != NULL)
		unm_lost_end(ep, unm_container(node, struct unm_rx_op,
					       match.link), err);
}

/* Does an index of the address vector name this one incarnation? */
static bool unm_lost_for_good(const struct unm_ep *ep, fi_addr_t index)
{
	return ep->av->entry[index].addr.nonce != HAL_ADDR_ANY;
}

void unm_lost_peer(struct unm_peer *peer, int err)
{
	struct unm_ep *ep = peer->ep;

	if (peer->closed || !ep->directed)
		return;
	ep->lost = true;
	if (peer->fi_addr != FI_ADDR_NOTAVAIL &&
	    unm_lost_for_good(ep, peer->fi_addr))
		unm_lost_source(ep, peer->fi_addr, err);
}

void unm_lost_renamed(struct unm_ep *ep)
{
	if (!ep->lost)
		return;
	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (peer->hp == NULL && unm_lost(ep, peer->fi_addr))
			unm_lost_source(ep, peer->fi_addr, FI_ECONNRESET);
	}
}

bool unm_lost_find(const struct unm_ep *ep, uint64_t src)
{
	const struct unm_peer *peer;

	if (src >= ep->peer_slots)	/* UNM_MATCH_ANY, too */
		return false;
	peer = ep->peer_of[src];
	return peer != NULL && peer->hp == NULL && !peer->closed &&
		unm_lost_for_good(ep, src);
}

uint32_t unm_lost_count_any(const struct unm_ep *ep)
{
	return unm_match_count_any(&ep->match[0]) +
		unm_match_count_any(&ep->match[1]);
}
