/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_onesided.h - operations on the memory of peers, and theirs on ours.
 *
 *   unm_rma.c, unm_atomic.c	fi_rma(3), fi_atomic(3): arguments to operations
 *   unm_onesided.c		start of ours, directly or by requests
 *   unm_request.c		ours, by requests that the target executes
 *   unm_direct.c		ours, where no target needs to look
 *   unm_prompt.c		which of both, where either would do
 *   unm_rkey.c		what is known about peers' regions
 *   unm_target.c		peers' requests on our regions
 *
 * docs/protocol.md, sections 10 to 12, is the definition.
 */
#ifndef UNM_ONESIDED_H
#define UNM_ONESIDED_H

#include <sys/types.h>

#include <rdma/fabric.h>

struct unm_access;
struct unm_ep;

/* Start one: 0, -FI_EAGAIN, or why not. */
ssize_t unm_onesided(struct unm_ep *ep, fi_addr_t dest,
		     const struct unm_access *a);

#endif /* UNM_ONESIDED_H */
