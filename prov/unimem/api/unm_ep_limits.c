/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep_limits.c - the lengths up to which an endpoint uses each protocol, see
 * unm_ep_limits.h.
 *
 * The parameters that switch protocols off are read here only, so that a
 * message pays nothing for them: a protocol that is off has the limit 0.
 */
#include <unistd.h>

#include "api/unm_ep_limits.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "unm_env.h"

#define UNM_PIECE_MIN	256	/* eager limits below this are not those of
				 * pieces */

/* Messages with or without a tag, with or without data. */
static void unm_ep_limits_of(struct unm_ep *ep, int tagged, int data)
{
	const struct hal_caps *caps = ep->hif->caps;
	uint16_t end = 0;

	ep->inline_end[tagged][data] = 0;
	if (g_unm_env.inline_on) {
		end = unm_wire_inline_max(caps->pkt_payload, tagged, data) + 1;
		ep->inline_end[tagged][data] = end;
		if (caps->flags & HAL_CAP_WIDE)
			end = caps->pkt_wide - 8 * tagged - 8 * data + 1;
	}
	ep->packet_end[tagged][data] = end;
	if (ep->eager_max != 0 && end <= ep->eager_max)
		end = ep->eager_max + 1;
	ep->short_end[tagged][data] = end;
}

uint32_t unm_ep_space_most(uint32_t all, long cache)
{
	uint32_t most = UNM_PEER_SPACE_SHORT;

	if (cache <= 0)
		cache = 2 * UNM_PEER_SPACE_SHORT;
	while (most < cache && most < all)
		most *= 2;
	return most < all ? most : all;
}

void unm_ep_limits(struct unm_ep *ep)
{
	const struct hal_caps *caps = ep->hif->caps;
	uint32_t longest = caps->space_bytes / 4 < UNM_PEER_SPACE / 2 ?
		caps->space_bytes / 4 : UNM_PEER_SPACE / 2;
	long cache = 0;

#ifdef _SC_LEVEL2_CACHE_SIZE
	cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
	ep->space_most = unm_ep_space_most(unm_space_pow2(caps->space_bytes),
					   cache);
	ep->limits.pkt_payload = caps->pkt_payload;
	ep->limits.pkt_wide = caps->pkt_wide;
	ep->limits.space_bytes = caps->space_bytes;
	ep->eager_max = g_unm_env.eager_max < longest ?
		g_unm_env.eager_max : longest;
	ep->piece_max = ep->eager_max >= UNM_PIECE_MIN ? ep->eager_max :
		longest;
	/* a LONG message is not carried: its words fit the packet */
	ep->long_max = ep->eager_max == UNM_WIRE_EAGER_LIMIT &&
		caps->pkt_payload >= 32 && g_unm_env.bounce == 0 ?
		g_unm_env.long_max : 0;
	for (int tagged = 0; tagged < 2; tagged++)
		for (int data = 0; data < 2; data++)
			unm_ep_limits_of(ep, tagged, data);
}
