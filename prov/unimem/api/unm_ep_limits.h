/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep_limits.h - the lengths up to which an endpoint uses each protocol
 * (unm_ep_limits.c).
 */
#ifndef UNM_EP_LIMITS_H
#define UNM_EP_LIMITS_H

#include <stdint.h>

struct unm_ep;

/*
 * The most receive space to use at a peer, in bytes: the smallest power of two
 * that is no smaller than cache, from UNM_PEER_SPACE_SHORT to all (which is a
 * power of two). cache: bytes of a processor's cache of level 2; 0 or less: not
 * known. Lines that a receiver has read stay in this cache, and a sender that
 * writes to them again has to fetch each from there.
 */
uint32_t unm_ep_space_most(uint32_t all, long cache);

/* Compute the limits of an endpoint, whose interface is open, from what its HAL
 * can do and from the environment. They do not change later. */
void unm_ep_limits(struct unm_ep *ep);

#endif /* UNM_EP_LIMITS_H */
