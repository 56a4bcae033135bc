/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep_limits.h - the lengths up to which an endpoint uses each protocol
 * (unm_ep_limits.c).
 */
#ifndef UNM_EP_LIMITS_H
#define UNM_EP_LIMITS_H

struct unm_ep;

/* Compute the limits of an endpoint, whose interface is open, from what its HAL
 * can do and from the environment. They do not change later. */
void unm_ep_limits(struct unm_ep *ep);

#endif /* UNM_EP_LIMITS_H */
