/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_target.h - peers' operations on regions of this process. */
#ifndef UNM_TARGET_H
#define UNM_TARGET_H

#include <stdbool.h>
#include <stdint.h>

struct unm_ep;
struct unm_mr;
struct unm_peer;
struct unm_wire_msg;

uint32_t unm_answer_size(void);
int unm_target_request(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Tell how many posted requests were executed. */
void unm_target_tell(struct unm_peer *peer);
int unm_target_progress(struct unm_peer *peer);
void unm_target_abort(struct unm_peer *peer);

/* Our endpoint is closed: nobody is in our memory any more. -FI_EBUSY: a peer
 * is, and the endpoint stays open. */
int unm_target_close(struct unm_ep *ep);

/* We are about to forget a peer that lives: it knows no route any more. false:
 * it may not have been told; again, until it was, or is dead. */
bool unm_target_expel(struct unm_peer *peer);

/*
 * Revoke all cached remote keys of a region and wait until no peer accesses it
 * directly any more. 0, or -FI_EBUSY: FI_UNIMEM_CLOSE_MS is over, a peer may
 * still be inside, and the region is as it was. Called with the domain's lock,
 * which is released meanwhile and held again on return: requests are executed.
 */
int unm_mr_unroute(struct unm_mr *mr);

/* Its key is out of the table: end what streams from it. */
void unm_mr_end_streams(struct unm_mr *mr);

#endif /* UNM_TARGET_H */
