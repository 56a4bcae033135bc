/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_target.h - peers' operations on regions of this process. */
#ifndef UNM_TARGET_H
#define UNM_TARGET_H

#include <stdbool.h>
#include <stdint.h>

struct unm_mr;
struct unm_peer;
struct unm_wire_msg;

uint32_t unm_answer_size(void);
int unm_target_request(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Tell how many posted requests were executed. */
void unm_target_tell(struct unm_peer *peer);
int unm_target_progress(struct unm_peer *peer);
void unm_target_abort(struct unm_peer *peer);

/* We are about to forget a peer that lives: it knows no route any more. false:
 * it may not have been told; again, until it was, or is dead. */
bool unm_target_expel(struct unm_peer *peer);

/* Its key is out of the table: end what streams from it. */
void unm_mr_end_streams(struct unm_mr *mr);

#endif /* UNM_TARGET_H */
