/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_lost.h - receives that name a source which has died: they end in error
 * (unm_lost.c).
 *
 * No other process ever has the address of a peer that died, so such a receive
 * would wait for ever. Three kinds of receives stay posted: those from any
 * source; those that name an address of any incarnation, because another
 * process may take the interface; those that name a peer which closed its
 * endpoint in order, because a program that ends may leave receives posted.
 * docs/protocol.md, section 9, has the rules.
 */
#ifndef UNM_LOST_H
#define UNM_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unm_ep_state.h"

/* End the posted receives that name this peer, which has just been torn down:
 * they complete with err, a positive fi_errno. The domain is locked. */
void unm_lost_peer(struct unm_peer *peer, int err);

/* End a multi-receive buffer that was posted although its source is lost,
 * because stored messages of that source were there. The same for all posted
 * receives that name the source. The domain is locked. */
void unm_lost_source(struct unm_ep *ep, uint64_t src, int err);

/* To be called after posted receives got other sources, and the stored messages
 * of these sources: end those that name a source which is lost. Before, such a
 * receive named an address of any incarnation. The domain is locked. */
void unm_lost_renamed(struct unm_ep *ep);

/* Posted receives from any source, tagged or not. */
uint32_t unm_lost_count_any(const struct unm_ep *ep);

/* The part of unm_lost() that is seldom reached. */
bool unm_lost_find(const struct unm_ep *ep, uint64_t src);

/* Has the source of a receive, as unm_match_recv.src names it, died? */
static inline bool unm_lost(const struct unm_ep *ep, uint64_t src)
{
	return __builtin_expect(ep->lost, 0) && unm_lost_find(ep, src);
}

#endif /* UNM_LOST_H */
