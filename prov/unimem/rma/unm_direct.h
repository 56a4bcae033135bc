/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_direct.h - one-sided operations that this process executes itself
 * (unm_direct.c; docs/protocol.md, section 11). The caller of each function
 * holds the lock of the endpoint's domain.
 */
#ifndef UNM_DIRECT_H
#define UNM_DIRECT_H

struct hal_dma_comp;
struct unm_access;
struct unm_ep;
struct unm_peer;

/*
 * Execute an operation on the peer's memory, if a cached remote key allows it.
 * Returns 0 if the operation has completed or is in progress; 1 if the caller
 * has to send it as a request; -FI_EAGAIN if too many operations are under way;
 * another negative fi_errno if it failed. Only with 0 is a completion reported.
 */
int unm_direct(struct unm_peer *peer, const struct unm_access *a);

/* Execute one step of one operation in ep->direct, which is not empty. */
void unm_direct_progress(struct unm_ep *ep);

/* Handle the completion of a DMA transfer that unm_direct.c posted: its token
 * has UNM_DMA_ONESIDED. */
void unm_direct_dma(struct unm_ep *ep, const struct hal_dma_comp *comp);

/* Complete all operations on a dead peer with an error; err: positive fi_errno.
 */
void unm_direct_abort(struct unm_peer *peer, int err);

/* Release the cached remote keys of all operations of an endpoint that is being
 * closed. No completion is reported. */
void unm_direct_release_all(struct unm_ep *ep);

/* Set in the tokens of transfers that unm_direct.c posts, to distinguish them
 * from transfers of rendezvous messages. */
#define UNM_DMA_ONESIDED	(UINT64_C(1) << 31)

#endif /* UNM_DIRECT_H */
