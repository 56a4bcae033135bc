/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer.c - the object of another endpoint: its place in the address vector,
 * opening the connection, message credits, receive space, and sending a message
 * of words and bytes.
 *
 * unm_peer.h declares the entry points. The end of a peer, which completes its
 * operations in error, is in progress/unm_peer_life.c. docs/protocol.md,
 * sections 4 and 6, defines HELLO and the credits.
 */
#include <errno.h>
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
#include "core/unm_space.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "unm_env.h"
#include "unm_log.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

#define UNM_PEER_ALIGNED	512	/* bytes of the shortest message in
					 * receive space that is aligned */
#define UNM_SPACE_PAUSE	10000		/* us between attempts to allocate
					 * receive space, or to connect */
#define UNM_CONNECT_PAUSE	1000000	/* us, the most between attempts to
					 * connect, after some failures */
#define UNM_SPACE_STEP	8		/* a ring of receive space becomes so
					 * many times larger at once */
#define UNM_SPACE_LONG	8192		/* bytes from which on an extent may use
					 * more than UNM_PEER_SPACE_SHORT */
#define UNM_SPACE_IDLE	1000000		/* us without a message through a grown
					 * space, after which another peer may
					 * have its memory */
#define UNM_SPACE_LAST	30000000	/* us of failed attempts after which a
					 * peer is disconnected */
#define UNM_SPACE_GAP	5000000		/* us without an attempt that end a
					 * shortage */

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

/* ---- Credits and space ----------------------------------------------- */

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

/* False: an attempt failed a moment ago for lack of memory or descriptors. */
static bool unm_peer_may_try(const struct unm_peer *peer)
{
	return peer->space_since == 0 || unm_now_us() >= peer->space_retry;
}

/* Does a failure at this time belong to the shortage of the last attempt? */
static bool unm_peer_short(const struct unm_peer *peer, uint64_t now)
{
	return peer->space_since != 0 &&
		now <= peer->space_retry + UNM_SPACE_GAP;
}

/* Begin an attempt, which hal_log_lower(false) ends. Of one shortage the HAL
 * logs the first failure as an error. */
static void unm_peer_try(const struct unm_peer *peer)
{
	hal_log_lower(unm_peer_short(peer, unm_now_us()));
}

/*
 * There was no memory for receive space, or no memory or descriptor for a
 * connection, which the HAL has logged. The shortage may end: messages are
 * refused, or wait, until the next attempt. The pause until then grows with the
 * shortage up to pause_max, us. If all attempts fail for UNM_SPACE_LAST, the
 * peer is disconnected, which logs what.
 */
static void unm_peer_starved(struct unm_peer *peer, uint64_t pause_max,
			     const char *what)
{
	uint64_t now = unm_now_us(), pause;

	if (!unm_peer_short(peer, now))
		peer->space_since = now;
	else if (now - peer->space_since > UNM_SPACE_LAST)
		unm_peer_fail(peer, what, 0);
	pause = (now - peer->space_since) / 2;
	if (pause < UNM_SPACE_PAUSE)
		pause = UNM_SPACE_PAUSE;
	peer->space_retry = now + (pause < pause_max ? pause : pause_max);
}

/* Allocate so many bytes of a new ring of the peer's receive space, for an
 * extent that does not fit otherwise. False: no memory; if that lasts for 30 s,
 * the peer is disconnected. */
static bool unm_peer_space_ready(struct unm_peer *peer, uint32_t bytes)
{
	const struct hal_caps *caps = peer->ep->hif->caps;
	uint32_t all = caps->space_bytes < UNM_PEER_SPACE ?
		caps->space_bytes : UNM_PEER_SPACE;
	bool ready;

	if (!unm_peer_may_try(peer)) {
		/* no event reports free memory */
		unm_ep_signal_retry(peer->ep);
		return false;
	}
	unm_peer_try(peer);
	ready = hal_space_ready(peer->hp, bytes < all ? bytes : all) == 0;
	if (ready && peer->space == NULL)
		peer->space = unm_space_new(all, caps->pkt_depth);
	hal_log_lower(false);
	if (!ready || peer->space == NULL) {
		unm_peer_starved(peer, UNM_SPACE_PAUSE,
				 "no memory for receive space in 30 seconds");
		unm_ep_signal_retry(peer->ep);
		return false;
	}
	if (bytes < peer->space->bytes)
		peer->space->ready = bytes;
	else
		unm_space_complete(peer->space);
	peer->space_used = peer->space->bytes;
	peer->space_since = 0;
	return true;
}

/* Allocate the first part of the peer's receive space, for an extent of len
 * bytes. At a peer on another host that is the whole new ring, which takes no
 * memory here. */
static bool unm_peer_space_first(struct unm_peer *peer, uint32_t len)
{
	return unm_peer_space_ready(peer, len > UNM_PEER_SPACE_FIRST ||
				    peer->hp->host != NULL ?
				    UNM_PEER_SPACE : UNM_PEER_SPACE_FIRST);
}

/*
 * The part of a new ring that has memory has no space for an extent of len
 * bytes. While one short message follows the other, they go on there, until the
 * ring has begun at 0 UNM_SPACE_LAPS times. The rest of the ring gets memory
 * then, or if the extent is longer, or if several messages are under way; these
 * can wait for each other, so without memory they do.
 */
static void unm_peer_space_rest(struct unm_peer *peer, uint32_t len)
{
	struct unm_space *space = peer->space;
	bool several = space->head != space->tail;

	unm_space_restart(space);
	if (len > UNM_PEER_SPACE_FIRST) {
		unm_peer_space_ready(peer, space->bytes);
		return;
	}
	if ((!several && !unm_space_should_grow(space)) ||
	    (peer->space_retry != 0 && unm_now_us() < peer->space_retry))
		return;
	if (hal_space_ready(peer->hp, space->bytes) != 0) {
		peer->space_retry = unm_now_us() + UNM_SPACE_PAUSE;
		return;
	}
	unm_space_complete(space);
}

void unm_peer_space_leave(struct unm_peer *peer)
{
	if (unm_list_empty(&peer->in_grown))
		return;
	unm_list_remove(&peer->in_grown);
	peer->ep->grown_bytes -= peer->space_used;
}

/*
 * May the space at a peer of this host take so many bytes more? The memory of
 * these peers is bounded. If there is too little left, the peer that was
 * examined longest ago is examined. If nothing was sent through its space for
 * UNM_SPACE_IDLE, its memory is given back.
 */
static bool unm_peer_space_claim(struct unm_peer *peer, uint32_t bytes)
{
	struct unm_ep *ep = peer->ep;
	uint64_t now = unm_now_us();
	struct unm_peer *idle;

	if (ep->grown_bytes + bytes <= g_unm_env.space_max)
		return true;
	if (unm_list_empty(&ep->grown))
		return false;
	idle = unm_container(ep->grown.next, struct unm_peer, in_grown);
	unm_list_remove(&idle->in_grown);
	unm_list_append(&ep->grown, &idle->in_grown);
	unm_space_reclaim(idle->space, hal_tx_done(idle->hp));
	if (idle->space->mark_tail != idle->grown_mark) {
		idle->grown_mark = idle->space->mark_tail;
		idle->grown_us = now;
	}
	if (idle == peer || now - idle->grown_us < UNM_SPACE_IDLE ||
	    idle->space->head != idle->space->tail)
		return false;
	unm_peer_space_leave(idle);
	idle->space_used = UNM_PEER_SPACE;
	unm_space_resize(idle->space, UNM_PEER_SPACE);
	hal_space_trim(idle->hp, UNM_PEER_SPACE);
	return ep->grown_bytes + bytes <= g_unm_env.space_max;
}

/* Note that a peer of this host uses so many bytes of receive space more than
 * before. */
static void unm_peer_space_count(struct unm_peer *peer, uint32_t more)
{
	struct unm_ep *ep = peer->ep;

	peer->grown_mark = peer->space->mark_tail;
	peer->grown_us = unm_now_us();
	unm_list_remove(&peer->in_grown);
	unm_list_append(&ep->grown, &peer->in_grown);
	ep->grown_bytes += more;
}

/*
 * Use more of the receive space of a peer that needs it for an extent of len
 * bytes. At peers of this host that takes at most FI_UNIMEM_SPACE_MAX bytes; on
 * other hosts a sender allocates nothing. If these bytes are taken, the peer
 * may try again after as many bytes of messages as before; if there is no
 * memory, after a pause.
 */
static void unm_peer_space_grow(struct unm_peer *peer, uint32_t len)
{
	struct unm_space *space = peer->space;
	bool counts = peer->hp->host == NULL;
	struct unm_ep *ep = peer->ep;
	uint32_t used = peer->space_used, most = ep->space_most;
	uint32_t bytes = used < most / UNM_SPACE_STEP ?
		used * UNM_SPACE_STEP : most;
	uint32_t more = unm_list_empty(&peer->in_grown) ? bytes : bytes - used;

	if (used >= most || !unm_space_should_grow(space) ||
	    (used >= UNM_PEER_SPACE_SHORT && len < UNM_SPACE_LONG) ||
	    (peer->space_retry != 0 && unm_now_us() < peer->space_retry))
		return;
	if (counts && !unm_peer_space_claim(peer, more)) {
		unm_space_resize(space, space->bytes);
		return;
	}
	if (hal_space_ready(peer->hp, bytes) != 0) {
		peer->space_retry = unm_now_us() + UNM_SPACE_PAUSE;
		return;
	}
	peer->space_used = bytes;
	unm_space_resize(space, bytes);
	if (counts)
		unm_peer_space_count(peer, more);
}

/*
 * Fit the ring to an extent of len bytes, if it is empty. A sender that writes
 * to a line again fetches it from the receiver's cache, unless the line has
 * left that meanwhile: so long messages use a large ring. Short messages, of
 * which few bytes are under way, are faster in a ring that stays in the
 * sender's cache.
 */
static void unm_peer_space_fit(struct unm_peer *peer, uint32_t len)
{
	struct unm_space *space = peer->space;
	uint32_t bytes = peer->space_used;

	if (bytes > UNM_PEER_SPACE_SHORT && len < UNM_SPACE_LONG)
		bytes = UNM_PEER_SPACE_SHORT;
	if (bytes != space->bytes && space->head == space->tail)
		unm_space_resize(space, bytes);
	unm_space_restart(space);
}

uint32_t unm_peer_find_space(struct unm_peer *peer, uint32_t len)
{
	uint32_t off;

	if (__builtin_expect(peer->space == NULL, 0) &&
	    !unm_peer_space_first(peer, len))
		return UNM_SPACE_NONE;
	off = unm_space_find(peer->space, len);
	if (off != UNM_SPACE_NONE)
		return off;
	unm_space_reclaim(peer->space, hal_tx_done(peer->hp));
	if (peer->space->ready == peer->space->bytes) {
		unm_peer_space_grow(peer, len);
		unm_peer_space_fit(peer, len);
	} else if (len <= peer->space->bytes) {
		unm_peer_space_rest(peer, len);
	}
	return unm_space_find(peer->space, len);
}

void unm_peer_put(struct unm_peer *peer, uint32_t off, const struct iovec *iov,
		  size_t count, size_t skip, size_t len)
{
	for (size_t i = 0; i < count && len != 0; i++) {
		size_t n = iov[i].iov_len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n -= skip;
		if (n > len)
			n = len;
		hal_space_write(peer->hp, off,
				(const char *)iov[i].iov_base + skip, n);
		off += n;
		len -= n;
		skip = 0;
	}
}

/* Send a message that fits a packet. */
static int unm_peer_packet(struct unm_peer *peer, uint64_t head,
			   const uint64_t *w, unsigned nw,
			   const struct unm_part *part, unsigned nparts)
{
	uint8_t bytes[HAL_PKT_MAX];
	size_t len = 0;

	for (unsigned i = 0; i < nparts; i++)
		len += unm_iov_fetch(part[i].iov, part[i].count, part[i].off,
				     bytes + len, part[i].len);
	return hal_pkt_send(peer->hp, head | hal_head(0, len), w, nw, bytes,
			    len);
}

/* Connect, to answer a peer that has connected first. A shortage of memory or
 * descriptors may end: it is -FI_EAGAIN. */
static int unm_peer_connect_back(struct unm_peer *peer)
{
	int ret;

	if (__builtin_expect(peer->hello_sent, 1))
		return 0;
	if (!unm_peer_may_try(peer))
		return -FI_EAGAIN;
	unm_peer_try(peer);
	ret = unm_peer_connect(peer);
	hal_log_lower(false);
	if (ret == -FI_EMFILE || ret == -ENFILE || ret == -FI_ENOMEM) {
		unm_peer_starved(peer, UNM_CONNECT_PAUSE, "no memory or "
				 "descriptor to answer it in 30 seconds");
		return -FI_EAGAIN;
	}
	/* -FI_EAGAIN may have been returned before anything was allocated */
	if (ret == 0)
		peer->space_since = 0;
	return ret;
}

int unm_peer_send(struct unm_peer *peer, uint64_t head, const uint64_t *w,
		  unsigned nw, const struct unm_part *part, unsigned nparts)
{
	uint32_t pad, off, at, len = 8 * nw;
	uint64_t carried[2];
	int ret;

	ret = unm_peer_connect_back(peer);
	if (ret != 0)
		return ret;
	for (unsigned i = 0; i < nparts; i++)
		len += part[i].len;
	if (len <= peer->ep->limits.pkt_payload)
		return unm_peer_packet(peer, head, w, nw, part, nparts);
	if (!hal_tx_free(peer->hp))	/* not after the copy only */
		return -FI_EAGAIN;
	/* long bytes begin a cache line, behind the words: both sides copy them
	 * from and to whole lines if the application's memory is aligned too */
	pad = len >= UNM_PEER_ALIGNED ? -8 * nw & (UNM_SPACE_ALIGN - 1) : 0;
	off = unm_peer_find_space(peer, pad + len);
	if (off == UNM_SPACE_NONE)
		return -FI_EAGAIN;
	at = off + pad;
	carried[0] = unm_wire_extent_word(at, len);
	carried[1] = head;
	hal_space_write(peer->hp, at, w, 8 * nw);
	at += 8 * nw;
	for (unsigned i = 0; i < nparts; i++) {
		unm_peer_put(peer, at, part[i].iov, part[i].count,
			     part[i].off, part[i].len);
		at += part[i].len;
	}
	hal_space_barrier(peer->hp);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SPACE);
	ret = hal_pkt_send(peer->hp, hal_head(UNM_WIRE_CARRIED, 0), carried, 2,
			   NULL, 0);
	if (ret == 0)
		unm_space_take(peer->space, off, pad + len,
			       hal_tx_sent(peer->hp) - 1);
	return ret;
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
