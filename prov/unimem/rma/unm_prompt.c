/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_prompt.c - who moves the bytes of a put or get of a peer's ordinary
 * memory: the peer, asked by a request, or this process by cross-memory attach?
 *
 * A peer that polls executes a small request in a tenth of the time of a system
 * call that enters its address space. A peer that computes executes it when it
 * has finished. So a request is sent while the peer is known to make progress:
 * it has released a packet since the last operation, and that operation is not
 * longer ago than FI_UNIMEM_PROMPT_US. Whoever was sent nothing releases
 * nothing, so an operation by attach sends a probe, an empty packet; there is
 * one under way at most, and none that would wake a sleeper.
 *
 * A request that was sent to a peer that stops polling at this moment waits
 * until the peer goes on; the operations after it go by attach. It is not sent
 * a second way: the peer would execute it again, later.
 */
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "rma/unm_prompt.h"
#include "unm_env.h"
#include "util/unm_clock.h"

static void unm_probe(struct unm_peer *peer)
{
	if (hal_tx_wakes(peer->hp) || unm_peer_greet(peer) != 0)
		return;
	/* refused: the next operation sends one */
	hal_pkt_send(peer->hp, hal_head(UNM_WIRE_PROBE, 0), NULL, 0, NULL, 0);
}

bool unm_prompt(struct unm_peer *peer, uint64_t len)
{
	uint64_t bound = (uint64_t)g_unm_env.prompt_us * 1000;
	uint64_t now, done;

	if (len > g_unm_env.prompt_max || bound == 0)
		return false;
	now = unm_now_ns();
	done = hal_tx_done(peer->hp);
	/* The peer released packets after the last check, at a time that is not
	 * known. Before the first check, that may be long ago. */
	if (done != peer->looked_done && peer->looked_ns != 0)
		peer->prompt_ns = peer->looked_ns;
	peer->looked_done = done;
	peer->looked_ns = now;
	if (peer->prompt_ns != 0 && now - peer->prompt_ns <= bound)
		return true;
	if (done == hal_tx_sent(peer->hp))
		unm_probe(peer);
	return false;
}
