/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_prompt.c - chooses how a put or get of a peer's ordinary memory is
 * executed: by the peer, after a request, or by this process, by cross-memory
 * attach. Entry point: unm_prompt(). docs/protocol.md, section 11.
 *
 * A peer that polls executes a small request in a tenth of the time of a system
 * call that enters the peer's address space. A peer that computes executes the
 * request when its computation ends. A request is therefore sent only while the
 * peer is known to make progress: it has released a packet between two samples,
 * and the earlier sample is not longer ago than FI_UNIMEM_PROMPT_US. A peer
 * without packets to release cannot show progress, so an operation by attach
 * sends a probe, an empty packet. At most one probe is under way, and no probe
 * is sent if it would wake a sleeping peer.
 *
 * A sample reads the clock, and a cache line that the peer writes all the time.
 * A short operation therefore uses the last sample again, if all of these hold:
 * - When the last sample was taken, the peer was known to make progress. Since
 *   that progress no more than FI_UNIMEM_PROMPT_US have passed.
 * - The sample is not older than an eighth of FI_UNIMEM_PROMPT_US. These times
 *   are measured by the processor's counter, unm_ticks(). Until its rate is
 *   known, each operation takes a sample.
 * - Fewer than UNM_PROMPT_USES operations have used the sample again. So the
 *   number of requests to a peer that makes no progress has a limit, also if
 *   the counter is wrong, for example because it stopped in deep idle while
 *   the endpoint slept.
 *
 * If a peer stops polling just after a request was sent, the request waits
 * until the peer polls again; later operations are executed by attach. The
 * waiting operation itself is not executed by attach as well, because the peer
 * would still execute the request afterwards.
 */
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "rma/unm_prompt.h"
#include "unm_env.h"
#include "util/unm_clock.h"

#define UNM_PROMPT_SAMPLES	8	/* least samples per prompt_us while
					 * short operations follow each other */
#define UNM_PROMPT_USES		256	/* short operations that use a sample
					 * again */

/* Send a probe, unless it would wake the peer. */
static void unm_probe(struct unm_peer *peer)
{
	if (hal_tx_wakes(peer->hp) || unm_peer_connect(peer) != 0)
		return;
	/* the result does not matter: the next operation probes again */
	hal_pkt_send(peer->hp, hal_head(UNM_WIRE_PROBE, 0), NULL, 0, NULL, 0);
}

/* Was the peer seen to make progress less than bound ago? */
static bool unm_prompt_known(const struct unm_peer *peer, uint64_t now,
			     uint64_t bound)
{
	return peer->prompt_ns != 0 && now - peer->prompt_ns <= bound;
}

/* Use the last sample for one more short operation, if that is allowed. If the
 * counter went back, the unsigned difference is large, so it is not. */
static bool unm_prompt_use_sample(struct unm_peer *peer)
{
	if (peer->sample_uses_left == 0 ||
	    unm_ticks() - peer->sample_ticks >= peer->sample_ticks_max)
		return false;
	peer->sample_uses_left--;
	return true;
}

/* A sample was taken at the time now, and at the counter's value ticks or
 * later, and the peer is known to make progress: allow short operations to use
 * the sample until it is an eighth of the bound old, but not beyond the bound
 * itself. */
static void unm_prompt_keep_sample(struct unm_peer *peer, uint64_t ticks,
				   uint64_t now, uint64_t bound)
{
	struct unm_tick_rate *rate = &peer->ep->rate;
	uint64_t ns = bound / UNM_PROMPT_SAMPLES;
	uint64_t left = bound - (now - peer->prompt_ns);

	if (unm_tick_rate_due(rate, now))
		unm_tick_rate_measure(rate, ticks, now, unm_ticks());
	peer->sample_uses_left = UNM_PROMPT_USES;
	peer->sample_ticks = ticks;
	peer->sample_ticks_max = (uint64_t)((double)(ns < left ? ns : left) *
					    rate->per_ns);
}

bool unm_prompt(struct unm_peer *peer, uint64_t len)
{
	uint64_t bound = (uint64_t)g_unm_env.prompt_us * 1000;
	uint64_t ticks, now, done;

	if (len > g_unm_env.prompt_max || bound == 0)
		return false;
	if (len <= UNM_PROMPT_SURE && unm_prompt_use_sample(peer))
		return true;
	ticks = unm_ticks();
	now = unm_now_ns();
	done = hal_tx_done(peer->hp);
	/* The peer released packets after the last sample, at a time that is
	 * not known. Before the first sample, that may be long ago. */
	if (done != peer->sampled_done && peer->sampled_ns != 0)
		peer->prompt_ns = peer->sampled_ns;
	peer->sampled_done = done;
	peer->sampled_ns = now;
	if (unm_prompt_known(peer, now, bound)) {
		unm_prompt_keep_sample(peer, ticks, now, bound);
		return true;
	}
	peer->sample_uses_left = 0;
	if (done == hal_tx_sent(peer->hp))
		unm_probe(peer);
	return false;
}
