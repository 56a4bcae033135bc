/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_recv.h - arrivals: between unm_progress.c, which reads packets, and
 * unm_recv.c and unm_rendezvous.c, which act upon them. */
#ifndef UNM_RECV_H
#define UNM_RECV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

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

/* unm_recv.c: a message came; it meets a receive, or is kept. */
void unm_recv_message(struct unm_ep *ep, const struct unm_got *got);
struct unm_rx_op *unm_rx_op_new(struct unm_ep *ep, void *context,
				uint64_t flags, bool tagged);
void unm_rx_op_vector(struct unm_rx_op *op, const struct iovec *iov,
		      size_t count);
size_t unm_multi_take(struct unm_ep *ep, struct unm_rx_op *buf,
		      uint64_t msg_len, void **where);
uint64_t unm_multi_put(struct unm_ep *ep, struct unm_rx_op *buf);
uint32_t unm_buf_size(int class);

/* unm_rendezvous.c: a matched receive takes a message still at its sender. The
 * operation may be gone when this returns. */
void unm_rendezvous_begin(struct unm_ep *ep, struct unm_rx_op *op,
			  const struct unm_got *got);
/* Tell the sender its message is not wanted. */
void unm_rendezvous_refuse(struct unm_ep *ep, const struct unm_got *got);

#endif /* UNM_RECV_H */
