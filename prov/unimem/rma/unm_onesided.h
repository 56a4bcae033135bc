/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_onesided.h - start of a one-sided operation (unm_onesided.c).
 *
 * One-sided operations are put, get and atomics. This process is the initiator
 * of its own operations, and the target of its peers' operations:
 *
 *   unm_rma.c, unm_atomic.c	initiator: arguments of fi_rma(3), fi_atomic(3)
 *   unm_onesided.c		initiator: start, directly or as requests
 *   unm_request.c		initiator: requests that the target executes
 *   unm_direct.c		initiator: operations without help of the target
 *   unm_prompt.c		initiator: choice between the two, if both work
 *   unm_rkey.c			initiator: cached remote keys, guard
 *   unm_target.c		target: requests of peers on local regions
 *
 * docs/protocol.md, sections 10 to 12, defines the protocol.
 */
#ifndef UNM_ONESIDED_H
#define UNM_ONESIDED_H

#include <sys/types.h>

#include <rdma/fabric.h>

struct unm_access;
struct unm_ep;

/*
 * Start an operation on the memory of the peer with this address. Takes the
 * domain's lock. Returns 0 if the operation has completed or is in progress;
 * -FI_EAGAIN if it cannot start now; another negative fi_errno if it is not
 * possible. Only with 0 is a completion reported. *a may be on the stack.
 */
ssize_t unm_onesided(struct unm_ep *ep, fi_addr_t dest,
		     const struct unm_access *a);

#endif /* UNM_ONESIDED_H */
