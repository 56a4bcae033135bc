/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_prompt.h - choice between a request and cross-memory attach
 * (unm_prompt.c; docs/protocol.md, section 11).
 */
#ifndef UNM_PROMPT_H
#define UNM_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

struct unm_peer;

#define UNM_PROMPT_SURE	1024	/* bytes of the longest put or get that is a
				 * request without a measurement: attach was
				 * faster nowhere, or by 5 % */

/*
 * True if a put or get of len bytes of the peer's ordinary memory should be
 * sent as a request, because the peer is known to make progress; false if this
 * process should execute it by cross-memory attach. Call once an operation:
 * the call may sample the peer's progress. If it returns true for more than
 * UNM_PROMPT_SURE bytes, peer->sampled_ns is the time of the call. The domain
 * is locked.
 */
bool unm_prompt(struct unm_peer *peer, uint64_t len);

#endif /* UNM_PROMPT_H */
