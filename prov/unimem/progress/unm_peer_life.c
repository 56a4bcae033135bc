/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer_life.c - tearing down peers: of one peer that died or was
 * disconnected, and of all peers of an endpoint that is being closed. The files
 * of msg/ and rma/ end the operations of their own protocol; this file calls
 * them in the right order. Creating peers: core/unm_peer.c.
 */
#include <stdlib.h>

#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "hal/hal.h"
#include "msg/unm_lost.h"
#include "msg/unm_rendezvous.h"
#include "msg/unm_send.h"
#include "progress/unm_peer_life.h"
#include "rma/unm_cache.h"
#include "rma/unm_direct.h"
#include "rma/unm_request.h"
#include "rma/unm_target.h"
#include "util/unm_list.h"

void unm_peer_tear_down(struct unm_peer *peer, int err)
{
	struct unm_ep *ep = peer->ep;
	struct hal_peer *hp = peer->hp;

	unm_peer_ref(peer);
	unm_cache_evict_all(peer);
	peer->addr = hp->addr;
	peer->hp = NULL;
	peer->msg_limit = peer->msgs_sent;	/* disables the fast path */
	hal_peer_free(hp);			/* ends DMA transfers */
	unm_peer_space_leave(peer);
	unm_list_remove(&peer->in_pending);
	unm_list_remove(&peer->throttled);
	unm_send_abort(peer, err);
	unm_recv_abort(peer, err);
	unm_onesided_abort(peer, err);
	unm_direct_abort(peer, err);
	unm_target_abort(peer);
	ep->stats->deaths++;
	unm_peer_mark_dead(peer);
	unm_lost_peer(peer, err);
	unm_peer_unref(peer);
}

bool unm_peer_waits(struct hal_peer *hp)
{
	const struct unm_peer *peer = hp->user;
	bool waits = peer != NULL &&
		!(unm_list_empty(&peer->await) && unm_list_empty(&peer->rts) &&
		  unm_list_empty(&peer->streams) &&
		  unm_list_empty(&peer->control) &&
		  unm_list_empty(&peer->recvs) &&
		  unm_list_empty(&peer->backlog) &&
		  unm_list_empty(&peer->posted) &&
		  unm_list_empty(&peer->await_result) &&
		  unm_list_empty(&peer->unsent) &&
		  unm_list_empty(&peer->answers) &&
		  peer->accesses == 0 && !peer->guard_entering &&
		  peer->due == 0 &&
		  peer->guard_awaited == 0 && !peer->revoke_pending);

	if (peer != NULL && !waits)	/* the connection may be closed now */
		unm_named_lapse(&peer->ep->named, peer->fi_addr);
	return waits;
}

void unm_peer_close_all(struct unm_ep *ep)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&ep->peers)) != NULL) {
		struct unm_peer *peer = unm_container(node, struct unm_peer,
						      all);

		unm_target_abort(peer);		/* pending answers refer to
						 * memory regions */
		unm_cache_free_all(peer);
		unm_peer_delete(peer);
	}
	free(ep->peer_of);
	ep->peer_of = NULL;
	ep->peer_slots = 0;
}
