/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_revoke.h - revoking the remote keys that peers have cached: the peers are
 * notified, and the caller waits for peers in the middle of a direct access.
 */
#ifndef UNM_REVOKE_H
#define UNM_REVOKE_H

struct unm_ep;
struct unm_mr;

/*
 * Revoke all cached remote keys of a region and wait until no peer accesses the
 * region directly. Returns 0, or -FI_EBUSY if a peer may still be inside after
 * FI_UNIMEM_CLOSE_MS: then the region stays registered. Called with the
 * domain's lock, which is released during the wait and held on return; the
 * domain's endpoints make progress meanwhile and execute requests. call: the
 * application's call, for the line that -FI_EBUSY logs.
 */
int unm_mr_revoke(struct unm_mr *mr, const char *call);

/*
 * The same for all regions, by an endpoint that is being closed: no peer may
 * reach memory through the endpoint any more. Returns 0, or -FI_EBUSY if a peer
 * may still be inside after FI_UNIMEM_CLOSE_MS: then the endpoint stays open.
 */
int unm_target_close(struct unm_ep *ep);

#endif /* UNM_REVOKE_H */
