/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_recv.h - receiving: posting, peeking and cancelling receives, and the
 * arrival of messages.
 *
 * progress/unm_progress.c reads the packets. docs/protocol.md defines the
 * messages.
 */
#ifndef UNM_RECV_H
#define UNM_RECV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/fabric.h>

#include "hal/hal.h"

struct unm_ep;
struct unm_got;
struct unm_handle;

/* Deliver an arrived message into the posted receive that it matches, or store
 * a copy. The domain is locked. */
void unm_recv_message(struct unm_ep *ep, const struct unm_got *got);

/* To be called after indices were removed from the address vector: a posted
 * receive that names a removed index matches no message any more. A receive
 * that names a duplicate of it matches the new first index of that address, and
 * gets the oldest message that is stored under this index, or ends in error if
 * this is the index of a peer that died. moved: result of
 * unm_peer_resolve_removed(). The domain is locked. */
void unm_recv_removed(struct unm_ep *ep, bool moved);

/* Post a receive into a vector of count entries, or complete it with a stored
 * message. kind: FI_MSG or FI_TAGGED. flags: those of the operation, with
 * FI_COMPLETION and UNM_OP_WORK; FI_MULTI_RECV is ignored for FI_TAGGED. 0;
 * -FI_EAGAIN: a limit of receives is reached or the completion queue is full;
 * -FI_ECONNRESET: src has died, and no stored message of it matches;
 * -FI_EINVAL: src or count; -FI_EOPBADSTATE: the endpoint cannot receive. */
ssize_t unm_recv_vector(struct unm_ep *ep, uint64_t kind,
			const struct iovec *iov, size_t count, fi_addr_t src,
			uint64_t tag, uint64_t ignore, void *context,
			uint64_t flags);

/* The same into a buffer of len bytes, with the flags of the handle. */
ssize_t unm_recv_tagged(struct unm_handle *h, void *buf, size_t len,
			fi_addr_t src, uint64_t tag, uint64_t ignore,
			void *context);
ssize_t unm_recv_untagged(struct unm_handle *h, void *buf, size_t len,
			  fi_addr_t src, void *context);

/* FI_CLAIM without FI_PEEK: receive the message that was claimed with context,
 * or discard it (FI_DISCARD). 0; -FI_EINVAL: there is none; others as above. */
ssize_t unm_recv_claimed(struct unm_ep *ep, const struct iovec *iov,
			 size_t count, void *context, uint64_t flags);

/* Cancel a posted receive by its context. 0: a completion with FI_ECANCELED
 * follows; -FI_ENOENT: no posted receive has this context. */
ssize_t unm_recv_cancel(struct unm_ep *ep, void *context);

/* The same for a caller that has the domain's lock. */
ssize_t unm_recv_cancel_locked(struct unm_ep *ep, void *context);

/* Can FI_PEEK be executed now? Sets *src to the source to match. The domain is
 * locked. 0; -FI_EINVAL: addr; -FI_EAGAIN: the completion queue is full and has
 * accepted its limit of peeks (unm_cq_may_peek()). */
int unm_recv_may_peek(const struct unm_ep *ep, fi_addr_t addr, uint64_t *src);

/* Execute FI_PEEK: complete with the first stored tagged message that matches,
 * with FI_ECONNRESET if src has died, else with FI_ENOMSG; flags may have
 * FI_CLAIM or FI_DISCARD. The domain is locked. */
void unm_recv_peek(struct unm_ep *ep, uint64_t tag, uint64_t ignore,
		   uint64_t src, void *context, uint64_t flags);

#endif /* UNM_RECV_H */
