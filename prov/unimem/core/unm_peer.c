/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer.c - the object of another endpoint: its place in the address vector,
 * opening the connection, message credits, and the end of its use.
 *
 * unm_peer.h declares the entry points. The end of a peer, which completes its
 * operations in error, is in progress/unm_peer_life.c. docs/protocol.md,
 * sections 4 and 6, defines HELLO and the credits.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/unm_av_table.h"
#include "core/unm_cq_ring.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_match.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "unm_env.h"
#include "unm_log.h"
#include "util/unm_list.h"

_Static_assert(UNM_WIRE_RKEY < HAL_PKT_RESERVED,
	       "packet types from HAL_PKT_RESERVED on are the HAL's");

/* ---- Objects --------------------------------------------------------- */

struct unm_peer *unm_peer_new(struct unm_ep *ep, struct hal_peer *hp)
{
	struct unm_peer *peer = aligned_alloc(64, sizeof(*peer));

	if (peer == NULL)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	peer->ep = ep;
	peer->hp = hp;
	peer->msg_limit = UNM_PEER_CREDITS;
	peer->granted = UNM_PEER_CREDITS;
	peer->fi_addr = FI_ADDR_NOTAVAIL;
	unm_list_init(&peer->backlog);
	unm_list_init(&peer->await);
	unm_list_init(&peer->rts);
	unm_list_init(&peer->streams);
	unm_list_init(&peer->control);
	unm_list_init(&peer->recvs);
	unm_list_init(&peer->in_pending);
	unm_list_init(&peer->in_grown);
	unm_list_init(&peer->throttled);
	unm_list_init(&peer->msgs);
	unm_list_init(&peer->posted);
	unm_list_init(&peer->await_result);
	unm_list_init(&peer->unsent);
	unm_list_init(&peer->cached);
	unm_list_init(&peer->imports);
	unm_list_init(&peer->answers);
	unm_list_init(&peer->nacks);
	unm_list_append(&ep->peers, &peer->all);
	unm_list_append(&ep->unresolved, &peer->unresolved);
	hp->user = peer;
	ep->stats->peers++;
	return peer;
}

void unm_peer_delete(struct unm_peer *peer)
{
	unm_list_remove(&peer->all);
	unm_list_remove(&peer->unresolved);
	unm_list_remove(&peer->in_pending);
	unm_list_remove(&peer->throttled);
	free(peer->space);
	free(peer->hints);
	free(peer->ways);
	free(peer);
}

struct unm_ways *unm_peer_ways(struct unm_peer *peer)
{
	if (peer->ways == NULL)
		peer->ways = calloc(1, sizeof(*peer->ways));
	return peer->ways;
}

void unm_peer_ref(struct unm_peer *peer)
{
	peer->refs++;
}

void unm_peer_unref(struct unm_peer *peer)
{
	if (--peer->refs == 0 && peer->hp == NULL)
		unm_peer_delete(peer);
}

void unm_peer_schedule(struct unm_peer *peer)
{
	if (!unm_list_empty(&peer->in_pending))
		return;
	unm_list_append(&peer->ep->pending_peers, &peer->in_pending);
	if (peer->ep->armed)	/* no wake-up by this peer is requested */
		unm_ep_wake_all(peer->ep);
}

/* ---- Index in the address vector ------------------------------------- */

/* The index of a peer has changed: match its stored messages by the new one. */
static void unm_peer_rematch(struct unm_peer *peer)
{
	unm_list_for_each(pos, &peer->msgs) {
		struct unm_msg *msg = unm_container(pos, struct unm_msg,
						    of_peer);

		if (!unm_list_empty(&msg->match.all))	/* not claimed */
			unm_match_source_changed(&peer->ep->match[msg->tagged],
						 &msg->match);
	}
}

static void unm_peer_set_index(struct unm_peer *peer, fi_addr_t index)
{
	if (index == peer->fi_addr)
		return;
	peer->fi_addr = index;
	unm_list_remove(&peer->unresolved);
	if (index == FI_ADDR_NOTAVAIL)
		unm_list_append(&peer->ep->unresolved, &peer->unresolved);
	unm_peer_rematch(peer);
}

void unm_peer_resolve(struct unm_peer *peer)
{
	struct unm_ep *ep = peer->ep;

	if (ep->av != NULL)
		unm_peer_set_index(peer, unm_av_find(ep->av,
						     unm_peer_addr(peer)));
}

void unm_peer_inserted(struct unm_ep *ep)
{
	/* dead peers too: messages of theirs may be stored */
	unm_list_for_each_safe(pos, tmp, &ep->unresolved)
		unm_peer_resolve(unm_container(pos, struct unm_peer,
					       unresolved));
}

void unm_peer_mark_dead(struct unm_peer *peer)
{
	struct unm_ep *ep = peer->ep;
	fi_addr_t index;

	if (ep->av == NULL)
		return;
	index = unm_av_find_exact(ep->av, &peer->addr);
	if (index == FI_ADDR_NOTAVAIL ||
	    (index >= ep->peer_slots && unm_peer_slots(ep, index + 1) != 0) ||
	    ep->peer_of[index] != NULL)
		return;
	ep->peer_of[index] = peer;
	unm_peer_ref(peer);
}

void unm_peer_removed(struct unm_ep *ep, fi_addr_t index)
{
	unm_named_lapse(&ep->named, index);
	if (index < ep->peer_slots && ep->peer_of[index] != NULL) {
		struct unm_peer *peer = ep->peer_of[index];

		ep->peer_of[index] = NULL;
		if (peer->hp == NULL)
			unm_peer_mark_dead(peer);
		unm_peer_unref(peer);
	}
}

bool unm_peer_resolve_removed(struct unm_ep *ep)
{
	bool moved = false;

	unm_list_for_each(pos, &ep->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (peer->fi_addr == FI_ADDR_NOTAVAIL ||
		    ep->av->entry[peer->fi_addr].valid)
			continue;
		unm_peer_resolve(peer);
		moved |= peer->fi_addr != FI_ADDR_NOTAVAIL;
	}
	return moved;
}

/* ---- Connecting ------------------------------------------------------ */

int unm_peer_slots(struct unm_ep *ep, uint32_t need)
{
	uint32_t n = ep->peer_slots ? ep->peer_slots : 64;
	struct unm_peer **slot;

	while (n < need)
		n *= 2;
	slot = realloc(ep->peer_of, n * sizeof(*slot));
	if (slot == NULL)
		return -FI_ENOMEM;
	for (uint32_t i = ep->peer_slots; i < n; i++)
		slot[i] = NULL;
	ep->peer_of = slot;
	ep->peer_slots = n;
	return 0;
}

int unm_peer_connect(struct unm_peer *peer)
{
	struct unm_wire_hello hello = {
		.version = UNM_WIRE_VERSION,
		.version_min = UNM_WIRE_VERSION_MIN,
	};
	struct hal_peer *hp;
	uint64_t w;
	int ret;

	if (peer->hello_sent)
		return 0;
	if (!peer->hp->tx.open) {
		ret = hal_connect_host(peer->ep->hif, &peer->hp->addr,
				       peer->hp->host, &hp);
		if (ret != 0)
			return ret;
	}
	memcpy(&w, &hello, sizeof(w));
	ret = hal_pkt_send(peer->hp, hal_head(UNM_WIRE_HELLO, 0), &w, 1,
			   NULL, 0);
	if (ret == 0)
		peer->hello_sent = true;
	return ret;
}

int unm_peer_find(struct unm_ep *ep, fi_addr_t dest, struct unm_peer **out)
{
	struct hal_peer *hp;
	struct unm_peer *peer;
	int ret;

	ret = hal_connect_host(ep->hif, &ep->av->entry[dest].addr,
			       unm_av_host(ep->av, dest), &hp);
	if (ret != 0) {
		if (ret != -FI_EAGAIN)
			UNM_INFO(EP_CTRL, "no connection to address %" PRIu64
				 ": %s\n", dest, fi_strerror(-ret));
		return ret;
	}
	peer = hp->user;
	if (peer == NULL) {
		peer = unm_peer_new(ep, hp);
		if (peer == NULL) {
			hal_peer_free(hp);
			return -FI_ENOMEM;
		}
	}
	if (peer->fi_addr == FI_ADDR_NOTAVAIL)
		unm_peer_set_index(peer, ep->av->entry[dest].first);
	*out = peer;
	return 0;
}

/* Connect to the peer of an index that has no object yet, and send HELLO. */
static int unm_peer_open_new(struct unm_ep *ep, fi_addr_t dest,
			     struct unm_peer **out)
{
	const struct unm_av_entry *entry = ep->av->entry;
	fi_addr_t first = entry[dest].first;
	int ret;

	/* A duplicate uses the peer of the first index. If the first address
	 * has no nonce (any holder), one with a nonce connects on its own. */
	if (first != dest && entry[first].addr.nonce == entry[dest].addr.nonce)
		ret = unm_peer_open(ep, first, out);
	else
		ret = unm_peer_find(ep, dest, out);
	if (ret == 0)
		ret = unm_peer_connect(*out);
	if (ret != 0)
		return ret;
	ep->peer_of[dest] = *out;
	unm_peer_ref(*out);
	return 0;
}

int unm_peer_open(struct unm_ep *ep, fi_addr_t dest, struct unm_peer **out)
{
	struct unm_peer *peer;
	int ret;

	if (__builtin_expect(!ep->enabled, 0))
		return -FI_EOPBADSTATE;
	if (dest >= ep->av->count || !ep->av->entry[dest].valid)
		return -FI_EINVAL;
	if (dest >= ep->peer_slots) {
		ret = unm_peer_slots(ep, dest + 1);
		if (ret != 0)
			return ret;
	}
	peer = ep->peer_of[dest];
	if (peer != NULL && peer->hp == NULL &&
	    ep->av->entry[dest].addr.nonce == HAL_ADDR_ANY) {
		/* dead; another process may hold the interface now */
		ep->peer_of[dest] = NULL;
		unm_peer_unref(peer);
		peer = NULL;
	}
	if (peer == NULL) {
		ret = unm_peer_open_new(ep, dest, &peer);
		if (ret != 0)
			return ret;
	}
	if (peer->hp == NULL)
		return -FI_ECONNRESET;
	*out = peer;
	return 0;
}

/* ---- Credits --------------------------------------------------------- */

uint64_t unm_peer_limit(const struct unm_peer *peer)
{
	uint64_t limit = hal_tx_back(peer->hp, UNM_PEER_BACK_LIMIT);

	/* the word is 0 until the peer has received half of the first
	 * credits */
	return limit > UNM_PEER_CREDITS ? limit : UNM_PEER_CREDITS;
}

bool unm_peer_credit(struct unm_peer *peer)
{
	uint64_t limit = unm_peer_limit(peer);

	if (limit > peer->msg_limit)
		peer->msg_limit = limit;
	return peer->msg_limit != peer->msgs_sent;
}

/* Is the completion queue full? Then unm_peer_grant_throttled() is called once
 * it is read. */
static bool unm_peer_cq_full(struct unm_ep *ep)
{
	if (!unm_cq_full(ep->rx_cq))
		return false;
	ep->rx_cq->throttles = true;
	return true;
}

/* Hold back the credits of this peer? Those of every peer while the completion
 * queue is full, and those of a peer with unexpected messages while unexpected
 * messages take FI_UNIMEM_UNEXPECTED_MAX bytes or more. */
static bool unm_peer_must_throttle(const struct unm_peer *peer)
{
	struct unm_ep *ep = peer->ep;

	if (unm_peer_cq_full(ep))
		return true;
	return !unm_list_empty(&peer->msgs) &&
		ep->unexpected_bytes >= g_unm_env.unexpected_max;
}

void unm_peer_grant(struct unm_peer *peer)
{
	if (unm_peer_must_throttle(peer)) {
		if (unm_list_empty(&peer->throttled))
			unm_list_append(&peer->ep->throttled, &peer->throttled);
		return;
	}
	unm_list_remove(&peer->throttled);
	peer->granted = peer->msgs_got + UNM_PEER_CREDITS;
	hal_rx_back(peer->hp, UNM_PEER_BACK_LIMIT, peer->granted);
}

void unm_peer_grant_throttled(struct unm_ep *ep)
{
	if (unm_peer_cq_full(ep))
		return;
	unm_list_for_each_safe(pos, tmp, &ep->throttled)
		unm_peer_grant(unm_container(pos, struct unm_peer, throttled));
}

/* ---- Refused sends, disconnection ------------------------------------ */

void unm_peer_disconnect(struct unm_peer *peer)
{
	if (peer->hp == NULL)
		return;
	peer->failed = true;
	unm_peer_schedule(peer);
}

/*
 * The peer may have released packets between the failed send and this call. The
 * wake-up for them is lost, so ask the application to retry once before it
 * sleeps.
 */
void unm_peer_note_refusal(struct unm_peer *peer)
{
	uint64_t released = hal_tx_done(peer->hp);

	peer->retry = released != peer->refused_at;
	peer->refusals = peer->retry ? 0 : peer->refusals + 1;
	peer->refused_at = released;
	peer->refused = true;
	unm_peer_schedule(peer);
}

void unm_peer_fail(struct unm_peer *peer, const char *what, uint64_t head)
{
	if (peer->failed || peer->hp == NULL)
		return;
	UNM_WARN(EP_DATA, "peer interface %u:%u dropped: %s (0x%016" PRIx64 ")",
		 peer->hp->addr.board, peer->hp->addr.iface, what, head);
	unm_peer_disconnect(peer);
}
