/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_loss.c - notices frames that the engine has lost while its link
 * lasts.
 *
 * hal_net_loss.h declares the entry points. The engine promises to lose
 * nothing. If it does, the peer must end: nothing is skipped, and nobody waits
 * for ever. The receiver ends a peer whose next frame is missing although later
 * frames have come. The sender makes a later frame: it asks for an
 * acknowledgement if frames stay without one.
 */
#include "hal/hal_log.h"
#include "hal/net/hal_net_loss.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"

#define LOOK_NS		UINT64_C(100000000)	/* longest time that counts
						 * between two calls: this
						 * process may have been
						 * stopped in between */
#define ASK_NS		UINT64_C(1000000000)	/* until the first question */
#define ASKS		4		/* questions, at doubled intervals: a
					 * peer that is stopped answers none */

/* Is the next frame missing for longer than another host may be silent? */
static bool gap_lasts(struct net_peer *peer, uint64_t now)
{
	uint64_t past = now - peer->gap_seen;

	peer->gap_seen = now;
	if (peer->gap_taken != peer->s.taken || peer->gap_ns == 0) {
		peer->gap_taken = peer->s.taken;
		peer->gap_ns = 1;
		return false;
	}
	peer->gap_ns += past < LOOK_NS ? past : LOOK_NS;
	return peer->gap_ns > peer->nif->net->dead_ns;
}

/* Ask for an acknowledgement if frames that were sent ASK_NS ago have none. */
static void ask(struct net_peer *peer, uint64_t now)
{
	if (peer->s.acked >= peer->ask_acked) {
		peer->ask_acked = peer->s.sent;
		peer->asks = 0;
		peer->ask_at = peer->s.acked == peer->s.sent ? 0 : now + ASK_NS;
	}
	if (peer->ask_at == 0 || peer->ask_at > now)
		return;
	peer->ask_at = ++peer->asks < ASKS ? now + (ASK_NS << peer->asks) :
		UINT64_MAX;
	net_flush(peer, NET_F_ASK);
}

void net_loss_tick(struct net_peer *peer, uint64_t now)
{
	if (peer->state != NET_UP)
		return;
	if (peer->s.kept == 0) {
		peer->gap_ns = 0;
	} else if (gap_lasts(peer, now)) {
		hal_log(0, "interface %u:%u on another host: frame %llu was "
			"lost: disconnected", peer->p.addr.board,
			peer->p.addr.iface,
			(unsigned long long)peer->s.taken + 1);
		net_peer_dying(peer, -FI_EIO);
		return;
	}
	ask(peer, now);
}

uint64_t net_loss_deadline(const struct net_peer *peer)
{
	uint64_t at = peer->ask_at != 0 ? peer->ask_at : UINT64_MAX;

	if (peer->state != NET_UP)
		return UINT64_MAX;
	if (peer->s.kept != 0 && peer->gap_seen + LOOK_NS < at)
		at = peer->gap_seen + LOOK_NS;
	return at;
}
