/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_progress.c - the progress function of an endpoint: it processes received
 * packets, sends what could not be sent at once, and continues transfers. It
 * also arms endpoints for threads that are about to sleep.
 *
 * Progress runs in the calls that an application polls with, in its blocking
 * calls, and in the progress thread (unm_auto.c), always with the domain's
 * lock. One call does a bounded amount of work. New connections and dead peers
 * are checked by clock, every FI_UNIMEM_SERVICE_US. A thread that polls in vain
 * yields the processor (core/unm_idle.h), so that more ranks than cores need no
 * setting.
 *
 * Entry points: unm_progress() for one endpoint, unm_poll() for those of a
 * queue, unm_arm_list() before a sleep. The packets are acted upon by msg/ and
 * rma/; docs/protocol.md defines them.
 */

#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_idle.h"
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_long.h"
#include "msg/unm_lost.h"
#include "msg/unm_recv.h"
#include "msg/unm_rendezvous.h"
#include "msg/unm_rx_op.h"
#include "msg/unm_send.h"
#include "progress/unm_gauge.h"
#include "progress/unm_peer_life.h"
#include "progress/unm_progress.h"
#include "progress/unm_reach.h"
#include "rma/unm_direct.h"
#include "rma/unm_request.h"
#include "rma/unm_rkey.h"
#include "rma/unm_target.h"
#include "unm_env.h"
#include "unm_log.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

#define UNM_BURST	32		/* packets from one peer in a row */
#define UNM_EVENTS	16		/* read from the HAL at once */
#define UNM_HOT		16		/* peers polled in every round */
#define UNM_FETCHED	512		/* bytes of an eager or carried message,
					 * or of a piece, that are prefetched */
#define UNM_STREAM_POLLS	64	/* busy polls per check of a stream */
#define UNM_GAUGES_NS	5000000		/* between refreshes of gauges */

/* ---- Receiving packets ----------------------------------------------- */

/* True: a packet of this type refers to bytes in the receive space. */
static bool unm_in_space(uint8_t type)
{
	return type == UNM_WIRE_CARRIED || type == UNM_WIRE_DATA ||
		type == UNM_WIRE_NEXT ||
		(type & ~UNM_WIRE_TAGGED) == UNM_WIRE_EAGER ||
		(type & ~UNM_WIRE_TAGGED) == UNM_WIRE_LONG;
}

/* Decode a message of type UNM_WIRE_CARRIED: its words did not fit in a packet,
 * so the sender wrote them to the receive space. The packet's token holds the
 * head that the words would have had. */
static int unm_carried(struct unm_peer *peer, struct unm_wire_msg *m)
{
	uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
	uint64_t head = m->token;
	uint8_t type = hal_head_type(head);
	int n = unm_wire_words(type, hal_head_flags(head));
	const uint8_t *at = hal_space(peer->hp, m->extent.off);

	if (n <= 0 || m->extent.len < 8u * n || type < UNM_WIRE_RTS ||
	    (unm_in_space(type) && type != UNM_WIRE_DATA))
		return -FI_EINVAL;
	/* the bytes are fetched while the words before them are */
	for (uint32_t i = 64; i < UNM_FETCHED && i < m->extent.len; i += 64)
		__builtin_prefetch(at + i);
	m->nbytes = m->extent.len - 8u * n;
	m->bytes = at + 8 * n;
	if (unm_wire_onesided(type) ? hal_head_flags(head) & UNM_WIRE_LEN_MASK :
	    m->nbytes)
		return -FI_EINVAL;
	memcpy(word, at, 8u * n);
	return unm_wire_decode(m, head, word, &peer->ep->limits);
}

static int unm_hello(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	if (peer->hello_received)
		return -FI_EINVAL;
	if (m->hello.version < UNM_WIRE_VERSION_MIN ||
	    m->hello.version_min > UNM_WIRE_VERSION) {
		UNM_WARN(EP_CTRL, "peer speaks protocol version %u (%u at "
			 "least), this provider %u: install the same unimem "
			 "everywhere", m->hello.version,
			 m->hello.version_min, UNM_WIRE_VERSION);
		unm_peer_disconnect(peer);
		return 0;
	}
	peer->hello_received = true;
	return 0;
}

/* A message whose payload is not in the packet: in the receive space (eager) or
 * in the sender's memory (rendezvous). */
static void unm_message(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	bool eager = (m->type & ~UNM_WIRE_TAGGED) == UNM_WIRE_EAGER;
	struct unm_got got = {
		.peer = peer, .tagged = m->type & UNM_WIRE_TAGGED,
		.has_data = m->has_data, .rendezvous = !eager,
		.tag = m->tag, .data = m->data,
		.len = eager ? m->extent.len : m->len,
		.bytes = eager ? hal_space(peer->hp, m->extent.off) : NULL,
	};

	if (!eager) {
		got.token = m->token;
		got.addr = m->addr;
		got.dmable = m->dmable;
	}
	if (got.dmable)
		got.key = (struct hal_key){ { m->mem_key[0], m->mem_key[1] } };
	unm_recv_message(peer->ep, &got);
}

/* The first piece of an eager message in several pieces. */
static int unm_message_long(struct unm_peer *peer, const struct unm_wire_msg *m)
{
	struct unm_got got = {
		.peer = peer, .tagged = m->type & UNM_WIRE_TAGGED,
		.has_data = m->has_data, .rendezvous = true,
		.tag = m->tag, .data = m->data, .len = m->len,
		.bytes = hal_space(peer->hp, m->extent.off),
		.here = m->extent.len,
	};

	if (peer->long_left != 0)	/* one after the other */
		return -FI_EINVAL;
	peer->long_left = m->len - m->extent.len;
	unm_recv_message(peer->ep, &got);
	return 0;
}

/* A further piece of it. */
static int unm_next(struct unm_peer *peer, const void *bytes, uint32_t len)
{
	struct unm_rx_op *whole;
	int ret = unm_long_next(peer, bytes, len, &whole);

	if (whole != NULL)
		unm_rendezvous_arrived(peer->ep, whole);
	return ret;
}

static int unm_dispatch(struct unm_peer *peer, struct unm_wire_msg *m)
{
	switch (m->type) {
	case UNM_WIRE_HELLO:
		return unm_hello(peer, m);
	case UNM_WIRE_EAGER:
	case UNM_WIRE_EAGER_TAGGED:
	case UNM_WIRE_RTS:
	case UNM_WIRE_RTS_TAGGED:
		unm_message(peer, m);
		return 0;
	case UNM_WIRE_LONG:
	case UNM_WIRE_LONG_TAGGED:
		return unm_message_long(peer, m);
	case UNM_WIRE_NEXT:
		return unm_next(peer, hal_space(peer->hp, m->extent.off),
				m->extent.len);
	case UNM_WIRE_CTS:
		unm_send_on_cts(peer, m);
		return 0;
	case UNM_WIRE_DATA:
		return unm_recv_data(peer, m->token,
				     hal_space(peer->hp, m->extent.off),
				     m->extent.len);
	case UNM_WIRE_FIN:
		unm_send_on_fin(peer, m);
		return 0;
	case UNM_WIRE_PUT:
	case UNM_WIRE_PUT_DATA:
	case UNM_WIRE_ATOMIC:
	case UNM_WIRE_GET:
	case UNM_WIRE_FETCH:
	case UNM_WIRE_COMPARE:
		return unm_target_request(peer, m);
	case UNM_WIRE_RESULT:
		return unm_onesided_result(peer, m);
	case UNM_WIRE_REFUSED:
		return m->nbytes != 0 ? -FI_EINVAL :
			unm_onesided_refused(peer, m);
	case UNM_WIRE_RKEY:
		return m->nbytes != 0 ? -FI_EINVAL : unm_rkey_received(peer, m);
	case UNM_WIRE_PROBE:		/* releasing the packet is the answer */
		return m->nbytes != 0 ? -FI_EINVAL : 0;
	default:
		return -FI_EINVAL;
	}
}

/* Process a packet that no fast path below took: of another type, or
 * malformed. A peer can change the cell at any time, so each word is read once,
 * then checked and used. */
static __attribute__((noinline))
void unm_packet(struct unm_peer *peer, const struct hal_cell *cell,
		uint64_t head)
{
	const struct unm_wire_limits *lim = &peer->ep->limits;
	uint64_t word[UNM_WIRE_WORDS_MAX];
	int n = unm_wire_words(hal_head_type(head), hal_head_flags(head));
	struct unm_wire_msg m;
	int ret = -FI_EINVAL;

	if (n < 0 || 8u * n > lim->pkt_payload)
		goto out;
	if (!peer->hello_received && hal_head_type(head) != UNM_WIRE_HELLO)
		goto out;
	for (int i = 0; i < n; i++)
		word[i] = hal_cell_word(cell, i);
	if (unm_wire_onesided(hal_head_type(head))) {
		m.bytes = cell->payload + 8 * n;
		m.nbytes = hal_head_flags(head) & UNM_WIRE_LEN_MASK;
		if (8u * n + m.nbytes > lim->pkt_payload)
			goto out;
	}
	ret = unm_wire_decode(&m, head, word, lim);
	/* a sender announces the receive space before it writes there */
	if (ret == 0 && unm_in_space(m.type) && peer->hp->rx.space == NULL)
		ret = -FI_EINVAL;
	if (ret == 0 && m.type == UNM_WIRE_CARRIED)
		ret = unm_carried(peer, &m);
	if (ret == 0)
		ret = unm_dispatch(peer, &m);
out:
	if (ret != 0)
		unm_peer_fail(peer, "malformed packet", head);
}

/* Deliver a message whose bytes are in its packet: len of them, behind the
 * words. payload: words of 8 bytes. */
static inline __attribute__((always_inline))
void unm_message_inline(struct unm_peer *peer, const void *payload,
			uint64_t head, uint32_t len)
{
	const volatile uint64_t *word = payload;	/* each is read once */
	struct unm_got got;
	unsigned lead = 0;

	got.peer = peer;
	got.tagged = hal_head_type(head) & UNM_WIRE_TAGGED;
	got.has_data = hal_head_flags(head) & UNM_WIRE_HAS_DATA;
	got.rendezvous = false;
	got.dmable = false;
	got.tag = got.tagged ? word[lead++] : 0;
	got.data = got.has_data ? word[lead++] : 0;
	got.len = len;
	got.bytes = (const uint8_t *)payload + 8 * lead;
	unm_recv_message(peer->ep, &got);
}

/* Fast path for the most common packet, an inline message: head and payload are
 * in the cell. False: the packet is of another type or malformed. */
static inline bool unm_packet_inline(struct unm_peer *peer,
				     const struct hal_cell *cell,
				     uint64_t head)
{
	uint8_t type = hal_head_type(head), flags = hal_head_flags(head);
	uint32_t len = flags & UNM_WIRE_LEN_MASK;

	if ((type & ~UNM_WIRE_TAGGED) != UNM_WIRE_INLINE ||
	    !peer->hello_received || (flags & UNM_WIRE_LEN_64) ||
	    len + 8 * unm_wire_lead(type, flags) >
	    peer->ep->limits.pkt_payload)
		return false;
	unm_message_inline(peer, cell->payload, head, len);
	return true;
}

/* The same for a message in a wide packet. Its two halves are copied, because
 * the head of the second slot is between them. */
static bool unm_packet_wide(struct unm_peer *peer, const struct hal_cell *cell,
			    uint64_t head)
{
	uint8_t type = hal_head_type(head), flags = hal_head_flags(head);
	uint32_t len = unm_wire_wide_len(flags);
	uint64_t payload[HAL_PKT_WIDE / 8];

	if ((type & ~UNM_WIRE_TAGGED) != UNM_WIRE_WIDE ||
	    !peer->hello_received ||
	    !unm_wire_wide_ok(len + 8 * unm_wire_lead(type, flags),
			      &peer->ep->limits))
		return false;
	memcpy(payload, cell->payload, HAL_PKT_MAX);
	memcpy(payload + HAL_PKT_MAX / 8, hal_rx_second(peer->hp),
	       HAL_PKT_MAX);
	hal_rx_release(peer->hp);	/* the second slot */
	unm_message_inline(peer, payload, head, len);
	return true;
}

/* The bytes of an extent; the first lines are prefetched. */
static inline const void *unm_fetch(struct unm_peer *peer,
				    struct unm_wire_extent extent)
{
	const char *bytes = hal_space(peer->hp, extent.off);

	for (uint32_t at = 0; at < UNM_FETCHED && at < extent.len; at += 64)
		__builtin_prefetch(bytes + at);
	return bytes;
}

/* The same for an eager message, whose bytes are in receive space. Its first
 * lines are fetched while the receive is searched. */
static bool unm_packet_eager(struct unm_peer *peer, const struct hal_cell *cell,
			     uint64_t head)
{
	uint8_t type = hal_head_type(head), flags = hal_head_flags(head);
	unsigned lead = unm_wire_lead(type, flags);
	struct unm_wire_extent extent;
	struct unm_got got;

	if ((type & ~UNM_WIRE_TAGGED) != UNM_WIRE_EAGER ||
	    (flags & ~UNM_WIRE_HAS_DATA) || !peer->hello_received ||
	    peer->hp->rx.space == NULL ||
	    !unm_wire_read_eager(&extent, hal_cell_word(cell, lead),
				 &peer->ep->limits))
		return false;
	got.bytes = unm_fetch(peer, extent);
	got.peer = peer;
	got.tagged = type & UNM_WIRE_TAGGED;
	got.has_data = flags & UNM_WIRE_HAS_DATA;
	got.rendezvous = false;
	got.dmable = false;
	got.tag = got.tagged ? hal_cell_word(cell, 0) : 0;
	got.data = got.has_data ? hal_cell_word(cell, lead - 1) : 0;
	got.len = extent.len;
	unm_recv_message(peer->ep, &got);
	return true;
}

/* The same for a piece of a stream or of a long eager message. */
static bool unm_packet_piece(struct unm_peer *peer, const struct hal_cell *cell,
			     uint64_t head)
{
	bool data = hal_head_type(head) == UNM_WIRE_DATA;
	struct unm_wire_extent extent;
	const void *bytes;

	if ((!data && hal_head_type(head) != UNM_WIRE_NEXT) ||
	    !peer->hello_received || peer->hp->rx.space == NULL ||
	    !unm_wire_read_extent(&extent, hal_cell_word(cell, data),
				  &peer->ep->limits))
		return false;
	bytes = unm_fetch(peer, extent);
	if ((data ? unm_recv_data(peer, hal_cell_word(cell, 0), bytes,
				  extent.len) :
	     unm_next(peer, bytes, extent.len)) != 0)
		unm_peer_fail(peer, "malformed packet", head);
	return true;
}

/* Process a peer's packets, of which the first is in cell. Returns how many. */
static int unm_progress_packets(struct unm_peer *peer,
				const struct hal_cell *cell, uint64_t head)
{
	struct hal_peer *hp = peer->hp;
	int n = 0;

	do {
		if (!unm_packet_inline(peer, cell, head) &&
		    !unm_packet_wide(peer, cell, head) &&
		    !unm_packet_eager(peer, cell, head) &&
		    !unm_packet_piece(peer, cell, head))
			unm_packet(peer, cell, head);
		hal_rx_release(hp);
		/* a sender of a stream waits for space */
		if (hal_head_type(head) == UNM_WIRE_DATA ||
		    hal_head_type(head) == UNM_WIRE_NEXT)
			hal_rx_flush(hp);
		n++;
	} while (n < UNM_BURST && !peer->failed &&
		 (cell = hal_rx_peek(hp, &head)) != NULL);
	/* Both words are on one cache line of the sender, which waits for the
	 * count of executed requests: store that one last, so that the sender
	 * has the line for good when it sees the count. Wake a sender that
	 * sleeps after both stores only. */
	hal_rx_store_done(hp);
	if (peer->posted_got != peer->posted_reported)
		unm_target_report_executed(peer);
	hal_rx_wake(hp);
	/* the peer has used half of its credits */
	if (peer->msgs_got + UNM_PEER_CREDITS - peer->granted >=
	    UNM_PEER_CREDITS / 2)
		unm_peer_grant(peer);
	return n;
}

int unm_progress_peer(struct unm_peer *peer)
{
	const struct hal_cell *cell;
	uint64_t head;

	if (peer->hp->rx.cells == NULL || peer->failed ||
	    (cell = hal_rx_peek(peer->hp, &head)) == NULL)
		return 0;
	return unm_progress_packets(peer, cell, head);
}

/* The object of a peer that connected while there was no memory for the object.
 * NULL: there still is none. The packets of the peer stay in its ring. */
static __attribute__((noinline))
struct unm_peer *unm_peer_of_inbound(struct hal_peer *hp)
{
	struct unm_peer *peer = unm_peer_new(hp->hif->user, hp);

	if (peer != NULL)
		unm_peer_resolve(peer);
	return peer;
}

/* Only the ring is read unless there is a packet: polling an idle peer costs
 * one load of its next slot. */
static inline int unm_progress_hal_peer(struct hal_peer *hp)
{
	const struct hal_cell *cell;
	struct unm_peer *peer;
	uint64_t head;

	cell = hal_rx_peek(hp, &head);
	if (cell == NULL)
		return 0;
	peer = hp->user;
	if (__builtin_expect(peer == NULL, 0) &&
	    (peer = unm_peer_of_inbound(hp)) == NULL)
		return 0;
	if (peer->failed)
		return 0;
	return unm_progress_packets(peer, cell, head);
}

/*
 * Process the packets of peers. The first UNM_HOT peers of the list are polled
 * in each round, and as many of the rest in turn. A peer of the rest that sends
 * is moved into the first UNM_HOT.
 */
static int unm_progress_inbound(struct unm_ep *ep)
{
	struct hal_if *hif = ep->hif;
	uint32_t n = hif->ninbound;
	uint32_t hot = n < UNM_HOT ? n : UNM_HOT;
	int done = 0;

	for (uint32_t i = 0; i < hot; i++)
		done += unm_progress_hal_peer(hif->inbound[i]);
	for (uint32_t k = 0; n > hot && k < UNM_HOT; k++) {
		int got;

		if (ep->cold < hot || ep->cold >= n)
			ep->cold = hot;
		got = unm_progress_hal_peer(hif->inbound[ep->cold]);
		if (got != 0)
			hal_if_promote(hif, ep->cold, k);
		ep->cold++;
		done += got;
	}
	return done;
}

/* ---- Pending answers and transfers ----------------------------------- */

/*
 * Send what waits for free packets or receive space. Pieces of a stream, and
 * requests and answers of one-sided operations, take turns: each of the two may
 * take all that became free, so the one that has sent last is the second one.
 */
static int unm_progress_sends(struct unm_peer *peer)
{
	bool streams_last = peer->piece_last;
	uint64_t sent;
	int done = 0;

	if (!streams_last)
		done += unm_send_progress(peer);
	sent = hal_tx_sent(peer->hp);
	done += unm_target_progress(peer);
	done += unm_onesided_progress(peer);
	if (hal_tx_sent(peer->hp) != sent)
		peer->piece_last = false;
	if (streams_last)
		done += unm_send_progress(peer);
	return done;
}

/*
 * Continue the operations of the peers in ep->pending_peers, and tear down
 * those peers that have failed. A peer leaves the list when nothing is pending
 * for it. The loop ends at the peer that was last at the start, so that peers
 * that join meanwhile do not prolong it.
 */
static int unm_progress_pending(struct unm_ep *ep)
{
	struct unm_list *last = ep->pending_peers.prev;
	struct unm_list *pos = ep->pending_peers.next;
	int done = 0;
	bool end;

	do {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      in_pending);
		end = pos == last;
		pos = pos->next;
		if (peer->failed) {
			/* disconnect it; its process may continue */
			if (!peer->hp->dead && !unm_target_revoke_all(peer)) {
				ep->must_poll = true;
				continue;
			}
			unm_peer_tear_down(peer, FI_ECONNABORTED);
			done++;		/* its operations have ended */
			continue;
		}
		done += unm_recv_progress(peer);
		done += unm_progress_sends(peer);
		if (!unm_peer_has_pending(peer)) {
			if (ep->armed)	/* no release of it is awaited */
				hal_tx_sleep(peer->hp, false);
			unm_list_remove(&peer->in_pending);
		}
	} while (!end);
	return done;
}

/* ---- Connections and dead peers -------------------------------------- */

/* Nobody may end a job of which some processes wait for a host that does not
 * answer. A receive from any source may still get a message of another peer. */
static void unm_peer_log_lost(struct unm_ep *ep, const struct hal_peer *hp)
{
	uint32_t any = unm_lost_count_any(ep);

	if (hp->host == NULL || any == 0 || ep->lost_logged)
		return;
	ep->lost_logged = true;
	UNM_WARN(EP_CTRL, "peer interface %u:%u on another host was lost: "
		 "receives that name it end in error, %u from any "
		 "source go on waiting", hp->addr.board, hp->addr.iface, any);
}

static void unm_peer_event(struct unm_ep *ep, const struct hal_event *ev)
{
	struct unm_peer *peer = ev->peer->user;

	if (peer == NULL)
		peer = unm_peer_of_inbound(ev->peer);
	if (peer == NULL) {		/* unm_progress_hal_peer() tries again
					 * while the peer lives */
		if (ev->type == HAL_EV_DEAD)
			hal_peer_free(ev->peer);
		return;
	}
	switch (ev->type) {
	case HAL_EV_INBOUND:
	case HAL_EV_CONNECTED:
		unm_peer_resolve(peer);
		break;
	case HAL_EV_DEAD:
		UNM_INFO(EP_CTRL, "peer interface %u:%u is gone: %s\n",
			 ev->peer->addr.board, ev->peer->addr.iface,
			 fi_strerror(-ev->status));
		peer->closed = ev->status == -FI_ESHUTDOWN;
		/* process what the peer had sent: at most one packet for each
		 * slot of its ring, as its process may still be writing */
		for (uint32_t i = 0; i <= ev->peer->rx.mask; i++)
			if (unm_progress_peer(peer) == 0)
				break;
		/* complete what it had received */
		unm_send_progress(peer);
		unm_onesided_progress(peer);
		if (!peer->closed)
			unm_peer_log_lost(ep, ev->peer);
		unm_peer_tear_down(peer, FI_ECONNRESET);
		break;
	}
}

static __attribute__((noinline)) void unm_peer_service(struct unm_ep *ep)
{
	struct hal_event ev[UNM_EVENTS];
	int n;

	ep->stats->services++;
	do {
		n = hal_if_service(ep->hif, ev, UNM_EVENTS);
		for (int i = 0; i < n; i++)
			unm_peer_event(ep, &ev[i]);
	} while (n == UNM_EVENTS);
}

/* ---- Idling ---------------------------------------------------------- */

/* Check connections and dead peers, and refresh the gauges, if it is time. */
static void unm_progress_clock(struct unm_ep *ep)
{
	uint64_t now = unm_now_ns();

	ep->stats->polls += UNM_CLOCK_POLLS;
	if (now < ep->next_service)
		return;
	ep->next_service = now + (uint64_t)g_unm_env.service_us * 1000;
	unm_peer_service(ep);
	unm_reach(ep, now);
	if (now < ep->next_gauges)
		return;
	ep->next_gauges = now + UNM_GAUGES_NS;
	unm_gauge_refresh(ep, now / 1000);
}

/* Ask the peers in ep->pending_peers to wake this endpoint when they release
 * packets, or withdraw these requests (on is false). */
static void unm_pending_want_wake(struct unm_ep *ep, bool on)
{
	unm_list_for_each(pos, &ep->pending_peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      in_pending);

		if (peer->hp != NULL)
			hal_tx_sleep(peer->hp, on);
	}
}

static void unm_disarm(struct unm_ep *ep)
{
	ep->armed = false;
	hal_if_disarm(ep->hif);
	unm_pending_want_wake(ep, false);
}

void unm_poll_begin(struct unm_list *eps)
{
	unm_list_for_each(pos, eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		if (ep->armed)
			unm_disarm(ep);
	}
}

void unm_poll_end(struct unm_list *eps)
{
	unm_list_for_each(pos, eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		if (!ep->armed)
			unm_ep_wake_all(ep);
	}
}

static __attribute__((noinline)) void unm_dma_poll(struct unm_ep *ep)
{
	struct hal_dma_comp comp[16];
	int n = hal_dma_poll(ep->hif, comp, 16);

	for (int i = 0; i < n; i++) {
		ep->dma_out--;
		if (comp[i].token & UNM_DMA_ONESIDED)
			unm_direct_dma(ep, &comp[i]);
		else
			unm_recv_dma_done(ep, &comp[i]);
	}
}

int unm_progress(struct unm_ep *ep)
{
	int done;

	if (__builtin_expect(ep->armed, 0)) {
		unm_disarm(ep);
		unm_ep_wake_all(ep);
	}
	hal_if_pump(ep->hif);
	done = unm_progress_inbound(ep);
	if (!unm_list_empty(&ep->pending_peers))
		done += unm_progress_pending(ep);
	if (ep->dma_out != 0 || !unm_list_empty(&ep->dma_wait)) {
		unm_recv_dma_post(ep);
		unm_dma_poll(ep);
		done++;
	}
	if (!unm_list_empty(&ep->streams) &&
	    (done == 0 || ep->turns % UNM_STREAM_POLLS == 0))
		unm_recv_streams(ep);
	if (!unm_list_empty(&ep->direct)) {
		unm_direct_progress(ep);
		done++;
	}
	/* read the clock in one of UNM_CLOCK_POLLS calls without work, and in
	 * one of UNM_CLOCK_BUSY calls with work */
	if ((++ep->turns & (done == 0 ? UNM_CLOCK_POLLS - 1 :
			    UNM_CLOCK_BUSY - 1)) == 0)
		unm_progress_clock(ep);
	return done;
}

bool unm_poll(struct unm_list *eps, struct unm_idle *idle)
{
	struct unm_ep *ep = NULL;
	int done = 0;

	unm_list_for_each(pos, eps) {
		ep = unm_container(pos, struct unm_ep_links, node)->ep;
		done += unm_progress(ep);
	}
	if (done != 0) {
		unm_idle_set(&idle->polls, 0);
		return false;
	}
	unm_idle_set(&idle->polls, unm_idle_get(&idle->polls) + 1);
	if (!unm_idle_long(idle))
		return false;
	if (ep != NULL)
		ep->stats->yields++;
	return true;
}

/* ---- Sleeping -------------------------------------------------------- */

/* Arm an endpoint. -FI_EAGAIN: transfers are in progress, which only polling
 * continues, or there is work to do; the endpoint is not armed. */
static int unm_arm(struct unm_ep *ep)
{
	if (ep->dma_out != 0 || !unm_list_empty(&ep->dma_wait) ||
	    !unm_list_empty(&ep->direct) || !unm_list_empty(&ep->streams))
		return -FI_EAGAIN;
	if (ep->armed)
		unm_disarm(ep);
	if (unm_named_any(&ep->named))
		unm_reach_before_sleep(ep, unm_now_ns());
	unm_pending_want_wake(ep, true);
	if (hal_if_arm(ep->hif) != 0) {
		unm_pending_want_wake(ep, false);
		unm_ep_wake_all(ep);
		return -FI_EAGAIN;
	}
	ep->armed = true;
	/* Peers that released packets before they saw the request to wake us
	 * will not do so: retry the sends. An endpoint that cannot send because
	 * of a missing return path (must_poll) gets no wake-up for that either.
	 */
	ep->must_poll = false;
	if (!unm_list_empty(&ep->pending_peers) &&
	    (unm_progress_pending(ep) != 0 || ep->must_poll)) {
		unm_disarm(ep);
		unm_ep_wake_all(ep);
		return -FI_EAGAIN;
	}
	return 0;
}

int unm_arm_list(struct unm_list *eps)
{
	unm_list_for_each(pos, eps) {
		int ret = unm_arm(unm_container(pos, struct unm_ep_links,
						node)->ep);

		if (ret != 0)
			return ret;
	}
	return 0;
}

void unm_service_list(struct unm_list *eps)
{
	unm_list_for_each(pos, eps) {
		struct unm_ep *ep = unm_container(pos, struct unm_ep_links,
						  node)->ep;

		ep->stats->sleeps++;
		ep->next_service = 0;
		unm_progress_clock(ep);
	}
}
