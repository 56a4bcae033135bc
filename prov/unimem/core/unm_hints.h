/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_hints.h - moves cache lines of a peer's receive space before they are
 * needed. docs/optimization.md has the figures.
 */
#ifndef UNM_HINTS_H
#define UNM_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unm_hint_way.h"
#include "core/unm_peer.h"
#include "core/unm_space.h"
#include "hal/hal.h"
#include "util/unm_clock.h"

#define UNM_HINTS_MAX	8192	/* most bytes that are moved at once */

/*
 * Call it after sending the packet that names len bytes at off. waits: the peer
 * probably waits for this message, and copies it now. The domain is locked.
 *
 * CLAIM fetches the lines of the next message for writing, because the peer has
 * read them last. The next message is taken to be as long as this one. If it
 * does not fit into the ring, nothing is fetched.
 *
 * DEMOTE moves the lines of this message to the cache of the package, where the
 * peer finds them sooner. In a window of messages that would delay the next
 * message, so it is tried only if the peer waits.
 *
 * Returns whether the lines of this message were moved.
 */
static inline bool unm_hints(struct unm_peer *peer, uint32_t off, uint32_t len,
			     bool waits)
{
	uint8_t ways = waits && hal_space_demotes(peer->hp) ?
		UNM_HINT_DEMOTE + 1 : UNM_HINT_CLAIM + 1;
	uint32_t n = len < UNM_HINTS_MAX ? len : UNM_HINTS_MAX, next;
	struct unm_hint_way *h;
	uint8_t way;

	if (peer->hints == NULL || !hal_space_claims(peer->hp))
		return false;
	h = &peer->hints->kind[waits][unm_hint_class(len)];
	if (__builtin_expect(h->held != 0, 1))
		way = unm_hint_way_held(h);
	else
		way = unm_hint_way_measure(h, ways, unm_ticks());
	if (way == UNM_HINT_NONE)
		return false;
	if (way == UNM_HINT_DEMOTE)
		hal_space_demote(peer->hp, off, n);
	next = unm_space_find(peer->space, len);
	if (next != UNM_SPACE_NONE)
		hal_space_claim(peer->hp, next, n);
	return way == UNM_HINT_DEMOTE;
}

#endif /* UNM_HINTS_H */
