/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_direct.h - operations on a peer's memory that need no work of the peer.
 */
#ifndef UNM_DIRECT_H
#define UNM_DIRECT_H

struct hal_dma_comp;
struct unm_access;
struct unm_ep;
struct unm_peer;

/* 0: done, or under way; 1: not this way; -FI_EAGAIN. */
int unm_direct(struct unm_peer *peer, const struct unm_access *a);

/* Go on with those under way; a transfer ended. */
void unm_direct_progress(struct unm_ep *ep);
void unm_direct_dma(struct unm_ep *ep, const struct hal_dma_comp *comp);
void unm_direct_abort(struct unm_peer *peer, int err);
void unm_direct_drop(struct unm_ep *ep);

/* Tokens of its transfers have this bit. */
#define UNM_DMA_ONESIDED	(UINT64_C(1) << 31)

#endif /* UNM_DIRECT_H */
