/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_bounce.h - bounce buffers of an endpoint: dmable memory through which
 * long messages travel whose own buffers the cDMA engine does not reach
 * (unm_bounce.c).
 *
 * An endpoint has one area for sends and one for receives, of FI_UNIMEM_BOUNCE
 * bytes each, so that sends which wait for a peer never take the buffers of the
 * receives for which that peer waits. An area is allocated from the domain's
 * heap of dmable memory at first use, and stays until the endpoint is closed:
 * its peers import it once.
 *
 * Nobody waits for a bounce buffer, because messages that no receive matches
 * keep theirs for any time: a message that gets none is streamed.
 *
 * The caller of unm_bounce_take() and unm_bounce_give() holds the lock of the
 * endpoint's domain. unm_bounce_close() is for an endpoint that no other thread
 * uses any more, and needs no lock.
 */
#ifndef UNM_BOUNCE_H
#define UNM_BOUNCE_H

#include <stdint.h>

struct unm_ep;

enum unm_bounce_way { UNM_BOUNCE_TX, UNM_BOUNCE_RX };

/* Allocate a buffer of len bytes. NULL: bounce buffers are switched off, the
 * other buffers leave no space for this one, or there was no memory for the
 * area. */
void *unm_bounce_take(struct unm_ep *ep, enum unm_bounce_way way, uint64_t len);

/* Free a buffer. No transfer from it or into it is under way. */
void unm_bounce_give(struct unm_ep *ep, enum unm_bounce_way way, void *buf);

/* Release both areas of an endpoint that is closed. */
void unm_bounce_close(struct unm_ep *ep);

#endif /* UNM_BOUNCE_H */
