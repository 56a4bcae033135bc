/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_alias.h - fi_ep_alias(3): a second handle of an endpoint, whose calls
 * have other default flags. */
#ifndef UNM_ALIAS_H
#define UNM_ALIAS_H

#include <rdma/fi_endpoint.h>

struct unm_ep;

/* Open an alias of an endpoint. arg: struct fi_alias, whose flags hold exactly
 * one of FI_TRANSMIT and FI_RECV and the default flags of that direction; the
 * alias is returned in its fid. Returns 0; -FI_EINVAL: no direction, or both;
 * -FI_EBADFLAGS: a flag that cannot be a default; -FI_ENOMEM. */
int unm_alias_open(struct unm_ep *ep, void *arg);

/* The default flags of an endpoint were computed or have changed: compute those
 * of its aliases. Takes the domain's lock. */
void unm_alias_update(struct unm_ep *ep);

#endif /* UNM_ALIAS_H */
