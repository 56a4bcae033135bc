/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_recv.h - arrivals: between unm_progress.c, which reads packets, and
 * unm_recv.c and unm_rendezvous.c, which act upon them. */
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

/* A message came; it meets a receive, or is kept. */
void unm_recv_message(struct unm_ep *ep, const struct unm_got *got);

/* Indices were removed from the address vector: posted receives that name one
 * match no more, and those that name a duplicate match its new name. */
void unm_recv_removed(struct unm_ep *ep);
ssize_t unm_recv_buf(struct unm_ep *ep, bool tagged, void *buf, size_t len,
		     fi_addr_t src, uint64_t tag, uint64_t ignore,
		     void *context, uint64_t flags);
ssize_t unm_recv_vector(struct unm_ep *ep, bool tagged,
			const struct iovec *iov, size_t count, fi_addr_t src,
			uint64_t tag, uint64_t ignore, void *context,
			uint64_t flags);
ssize_t unm_recv_claimed(struct unm_ep *ep, const struct iovec *iov,
			 size_t count, void *context, uint64_t flags);
ssize_t unm_recv_cancel(struct unm_ep *ep, void *context);

/* The same for a caller that has the domain's lock. */
ssize_t unm_recv_cancel_locked(struct unm_ep *ep, void *context);

/* FI_PEEK: may it be done now? Sets the source to compare messages with. The
 * domain is locked. 0, -FI_EINVAL; -FI_EAGAIN: the completion queue is full. */
int unm_recv_may_peek(const struct unm_ep *ep, fi_addr_t addr, uint64_t *src);
/* Look for a stored message, and complete with what was found. The domain is
 * locked. */
void unm_recv_peek(struct unm_ep *ep, uint64_t tag, uint64_t ignore,
		   uint64_t src, void *context, uint64_t flags);

#endif /* UNM_RECV_H */
