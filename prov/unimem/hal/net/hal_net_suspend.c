/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_suspend.c - suspends peers that are idle, when a process has links to
 * more peers than FI_UNIMEM_NET_PEERS allows.
 *
 * hal_net_suspend.h declares the entry points; docs/net.md, section 10, defines
 * the messages. A suspended peer has no connection and no link of the engine,
 * but the same object, with the numbers of its frames and all that callers of
 * the HAL see. The first frame that one side wants to send connects both again
 * (net_peer_resume()). A connection is closed only after both sides have
 * processed all frames, so that none is lost and none comes twice.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "hal/hal_fault_point.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_dma.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "hal/net/hal_net_suspend.h"
#include "util/unm_clock.h"

#define AGAIN_NS	UINT64_C(10000000)	/* until a peer that refused is
						 * asked again */
#define AGAIN_SHIFT	7			/* doubles up to 1.28 s */
#define ACK_NS		UINT64_C(100000000)	/* a process that runs has
						 * acknowledged a frame then */
#define LINK_FDS	3			/* descriptors of a link: of its
						 * connection, and two of UCX */
#define LINKS_MIN	8

uint32_t net_suspend_limit(int param)
{
	struct rlimit lim;
	uint64_t links;

	if (param != 0)
		return (uint32_t)param;
	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 ||
	    lim.rlim_cur == RLIM_INFINITY)
		return UINT32_MAX;
	links = (uint64_t)lim.rlim_cur / 4 * 3 / LINK_FDS;
	return links < LINKS_MIN ? LINKS_MIN :
		links < UINT32_MAX ? (uint32_t)links : UINT32_MAX;
}

/* ---- Counting ------------------------------------------------------ */

void net_suspend_count(struct net_peer *peer)
{
	if (!peer->counted)
		/* relaxed: a number, which orders nothing */
		atomic_fetch_add_explicit(&peer->nif->net->nlinks, 1,
					  memory_order_relaxed);
	peer->counted = true;
}

static void uncount(struct net_peer *peer)
{
	if (peer->counted)
		/* relaxed: as above */
		atomic_fetch_sub_explicit(&peer->nif->net->nlinks, 1,
					  memory_order_relaxed);
	peer->counted = false;
}

static bool too_many(const struct net_hal *net)
{
	/* relaxed: as above */
	return atomic_load_explicit(&net->nlinks, memory_order_relaxed) >
		net->links_max;
}

/* ---- Idle peers ---------------------------------------------------- */

/* Has this side nothing to send, and does it wait for nothing? Its caller may
 * wait for slots that the peer has not released: then the end of the peer has
 * to be noticed. */
static bool idle(struct net_peer *peer)
{
	const struct hal_rx *rx = &peer->p.rx;
	const struct hal_if *hif = peer->nif->hif;

	return !peer->nif->lingers &&
		hif->peer_waits != NULL && !hif->peer_waits(&peer->p) &&
		peer->cur == NULL && peer->back_dirty == 0 &&
		unm_list_empty(&peer->queue) && peer->s.kept == 0 &&
		!net_dma_busy(peer) &&
		(!peer->p.tx.open ||
		 hal_tx_done(&peer->p) == peer->p.tx.next) &&
		(rx->cells == NULL || rx->flushed == peer->rx_fill);
}

/* Does the user of the interface wait for a packet of it? */
static bool awaited(struct net_peer *peer)
{
	const struct hal_if *hif = peer->nif->hif;

	return hif->peer_awaited != NULL && hif->peer_awaited(&peer->p);
}

static void send_counts(struct net_peer *peer, enum net_ctl_type type)
{
	struct {
		struct net_bye bye;
		uint8_t mac[NET_MAC];
	} msg = {
		.bye = {
			.ctl.type = (uint16_t)type,
			.sent = peer->s.sent, .taken = peer->s.taken,
		},
	};

	net_conn_send(peer->conn, &msg, sizeof(msg.bye));
}

/* Wait for an acknowledgement of all frames. False: the peer does not answer,
 * as a process that is stopped. */
static bool answers(struct net_peer *peer, uint64_t now)
{
	if (peer->asked < peer->s.sent)
		net_flush(peer, NET_F_ASK);
	if (peer->ack_seq != peer->s.sent) {
		peer->ack_seq = peer->s.sent;
		peer->ack_by = now + ACK_NS;
	}
	return now < peer->ack_by;
}

/* Propose to suspend a peer. False: frames to it have to be acknowledged
 * first, as one would come after the proposal of a peer that proposes, too. */
static bool propose(struct net_peer *peer, uint64_t now)
{
	if (peer->s.acked != peer->s.sent)
		return false;
	send_counts(peer, NET_CTL_SUSPEND);
	peer->state = NET_SUSPENDING;
	peer->suspend_at = now + (AGAIN_NS << peer->keeps);
	uncount(peer);
	HAL_FAULT_POINT(HAL_FAULT_POINT_NET_PROPOSED);
	return true;
}

/* Suspend those idle peers that are awaited, or those that are not, until there
 * are not too many links. True: there will not be once frames to some of the
 * peers are acknowledged, or it is so already. A peer that does not answer is
 * left out: it must not delay other peers. */
static bool suspend_some(struct net_if *nif, uint64_t now, bool which)
{
	bool soon = false;

	unm_list_for_each(pos, &nif->active) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      active);

		if (peer->state != NET_UP || peer->dying != 0 ||
		    peer->suspend_at > now || !idle(peer) ||
		    awaited(peer) != which)
			continue;
		if (!propose(peer, now))
			soon |= answers(peer, now);
		else if (!too_many(nif->net))
			return true;
	}
	return soon;
}

void net_suspend_tick(struct net_if *nif, uint64_t now)
{
	if (too_many(nif->net) && !suspend_some(nif, now, false))
		suspend_some(nif, now, true);
}

/* ---- Messages ------------------------------------------------------ */

void net_suspend_now(struct net_peer *peer)
{
	bool asked = peer->resume_asked;

	net_peer_unlink(peer);
	/* the peer has processed all frames */
	peer->s.acked = peer->s.sent;
	peer->s.reported = peer->s.taken;
	peer->ack_due = false;
	peer->ask_at = 0;
	peer->gap_ns = 0;
	peer->link_failed = false;
	peer->resume_asked = false;
	net_peer_pause(peer);
	if (!unm_list_empty(&peer->queue) || peer->cur != NULL ||
	    peer->back_dirty != 0)
		net_peer_resume(peer);
	else if (asked)
		hal_peer_resume(&peer->p);
}

int net_suspend_input(struct net_peer *peer, const struct net_bye *msg,
		      size_t len)
{
	struct {
		struct net_ctl ctl;
		uint8_t mac[NET_MAC];
	} keep = { .ctl.type = NET_CTL_KEEP };
	bool equal;

	if (peer->state < NET_UP || len != sizeof(*msg) ||
	    net_stream_ack(&peer->s, msg->taken) != 0)
		return -EPROTO;
	if (peer->dying != 0)
		return 0;
	equal = msg->taken == peer->s.sent && msg->sent == peer->s.taken;
	if (peer->state == NET_SUSPENDING) {	/* it agrees, or proposes too */
		if (!equal)
			return -EPROTO;
	} else if (!equal || !idle(peer) || peer->conn->nin != 0) {
		/* BYE or LEAVE follows, without waiting for the answer */
		net_conn_send(peer->conn, &keep, sizeof(keep.ctl));
		return 0;
	} else {
		send_counts(peer, NET_CTL_SUSPEND);
		HAL_FAULT_POINT(HAL_FAULT_POINT_NET_AGREED);
	}
	net_suspend_now(peer);
	return 0;
}

void net_suspend_not(struct net_peer *peer)
{
	peer->state = NET_UP;
	peer->resume_asked = false;
	net_queue_send(peer);
	net_flush(peer, NET_F_ASK);
}

int net_keep_input(struct net_peer *peer)
{
	uint8_t keeps = peer->keeps;

	if (peer->state != NET_SUSPENDING)
		return -EPROTO;
	if (peer->link_failed) {
		net_peer_lost(peer, NET_LINK_TEXT, -FI_ECONNRESET);
		return 0;
	}
	net_suspend_count(peer);
	net_peer_used(peer);
	peer->keeps = keeps < AGAIN_SHIFT ? keeps + 1 : keeps;
	net_suspend_not(peer);
	return 0;
}
