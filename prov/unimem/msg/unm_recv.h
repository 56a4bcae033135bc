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

/* A message that arrived. */
struct unm_got {
	struct unm_peer *peer;
	bool tagged;
	bool has_data;
	bool rendezvous;		/* it is still at its sender */
	uint64_t tag;
	uint64_t data;
	uint64_t len;			/* as sent */
	const void *bytes;		/* not rendezvous */
	uint64_t token;			/* rendezvous: sender's operation ... */
	uint64_t addr;			/* ... and buffer, see unm_wire.h */
	bool dmable;
	struct hal_key key;
};

/* A message came; it meets a receive, or is kept. */
void unm_recv_message(struct unm_ep *ep, const struct unm_got *got);
struct unm_rx_op *unm_rx_op_new(struct unm_ep *ep, void *context,
				uint64_t flags, bool tagged);
void unm_rx_op_vector(struct unm_rx_op *op, const struct iovec *iov,
		      size_t count);
size_t unm_multi_take(struct unm_ep *ep, struct unm_rx_op *buf,
		      uint64_t msg_len, void **where);
uint64_t unm_multi_put(struct unm_ep *ep, struct unm_rx_op *buf);

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
ssize_t unm_recv_peek(struct unm_ep *ep, uint64_t tag, uint64_t ignore,
		      fi_addr_t src, void *context, uint64_t flags);
ssize_t unm_recv_claimed(struct unm_ep *ep, const struct iovec *iov,
			 size_t count, void *context, uint64_t flags);
ssize_t unm_recv_cancel(struct unm_ep *ep, void *context);

/* The same for a caller that has the domain's lock. */
ssize_t unm_recv_cancel_locked(struct unm_ep *ep, void *context);

#endif /* UNM_RECV_H */
