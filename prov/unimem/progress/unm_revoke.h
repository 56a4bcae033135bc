/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_revoke.h - revoking cached remote keys: peers are notified, and those in
 * the middle of an access are waited for.
 */
#ifndef UNM_REVOKE_H
#define UNM_REVOKE_H

struct unm_ep;
struct unm_mr;

/*
 * Revoke all cached remote keys of a region and wait until no peer accesses it
 * directly any more. 0, or -FI_EBUSY: FI_UNIMEM_CLOSE_MS is over, a peer may
 * still be inside, and the region is as it was. Called with the domain's lock,
 * which is released meanwhile and held again on return: requests are executed.
 */
int unm_mr_unroute(struct unm_mr *mr);

/* Our endpoint is closed: nobody is in our memory any more. -FI_EBUSY: a peer
 * is, and the endpoint stays open. */
int unm_target_close(struct unm_ep *ep);

#endif /* UNM_REVOKE_H */
