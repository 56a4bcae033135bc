/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer_tx.c - what an endpoint sends to a peer: the receive space that it
 * uses there, and messages of words and bytes, in a packet or through that
 * space.
 *
 * unm_peer_tx.h declares the entry points; unm_space.h allocates in the space.
 * docs/protocol.md, section 6, says how much of it is used.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_hints.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "unm_env.h"
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

/* The receive space has grown, or was trimmed: what was measured before is not
 * true for it. (A ring that is fitted to short messages is as warm as before.)
 * Without memory no hint is given. */
static void unm_peer_hints_start(struct unm_peer *peer)
{
	if (peer->hints == NULL && hal_space_claims(peer->hp))
		peer->hints = malloc(sizeof(*peer->hints));
	if (peer->hints != NULL)
		unm_hint_ways_start(peer->hints);
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
	unm_peer_hints_start(peer);
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
	unm_peer_hints_start(peer);
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
	unm_space_trim(idle->space, UNM_PEER_SPACE);
	hal_space_trim(idle->hp, UNM_PEER_SPACE);
	unm_peer_hints_start(idle);
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
	unm_peer_hints_start(peer);
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

/*
 * Does the peer probably wait for a message of this type, and nothing else? For
 * a result: it is sent at once, and no packet has come behind the request. For
 * all others, which are requests but for a few: the peer has executed the
 * requests before this one.
 */
static bool unm_peer_waits(const struct unm_peer *peer, uint8_t type)
{
	if (type == UNM_WIRE_RESULT)
		return unm_list_empty(&peer->answers) &&
			!hal_rx_more(peer->hp);
	return peer->posted_sent == peer->applied && peer->due == 0;
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
	if (ret != 0)
		return ret;
	unm_space_take(peer->space, off, pad + len, hal_tx_sent(peer->hp) - 1);
	peer->ep->stats->tx_demoted +=
		unm_hints(peer, off, pad + len, hal_space_claims(peer->hp) &&
			  unm_peer_waits(peer, hal_head_type(head)));
	return 0;
}
