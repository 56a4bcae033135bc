/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_target.h - execution of peers' requests on the memory regions of this
 * process (unm_target.c; docs/protocol.md, sections 10 and 11). The caller of
 * each function holds the lock of the endpoint's domain.
 */
#ifndef UNM_TARGET_H
#define UNM_TARGET_H

#include <stdbool.h>
#include <stdint.h>

struct unm_mr;
struct unm_peer;
struct unm_wire_msg;

/* Bytes of an object of ep->answer_pool. */
uint32_t unm_answer_size(void);

/* Execute a decoded request of a peer and answer it. Returns 0, also if the
 * request is refused, or -FI_EINVAL if it violates the protocol. */
int unm_target_request(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Store the number of executed posted requests into the peer's back word, if it
 * has changed. The number stays below that of the oldest refused request. */
void unm_target_report_executed(struct unm_peer *peer);

/* Send answers and refusals that wait. Returns the number of things done. */
int unm_target_progress(struct unm_peer *peer);

/* Release all answers and refusals to a peer that is dead. */
void unm_target_abort(struct unm_peer *peer);

/*
 * Revoke all remote keys that a live peer has received, before its object is
 * released. Returns false if the revocation may not have reached the peer: call
 * again until it returns true or the peer is dead.
 */
bool unm_target_revoke_all(struct unm_peer *peer);

/* End the results that are still being sent from a region, with
 * FI_EKEYREJECTED. The region's key is already removed from the table. */
void unm_mr_end_streams(struct unm_mr *mr);

#endif /* UNM_TARGET_H */
