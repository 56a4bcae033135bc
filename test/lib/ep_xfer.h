/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_xfer.h - one message by any of the calls that send and receive, with every
 * byte, flag and field of its completions checked.
 */
#ifndef EP_XFER_H
#define EP_XFER_H

#include <sys/uio.h>

#include "lib/ep_pair.h"

enum xfer_tx {
	XFER_SEND, XFER_SENDV, XFER_SENDMSG, XFER_SENDMSG_DATA,
	XFER_SENDMSG_INJECT, XFER_INJECT, XFER_SENDDATA, XFER_INJECTDATA,
	XFER_TX_CALLS
};
enum xfer_rx { XFER_RECV, XFER_RECVV, XFER_RECVMSG, XFER_RX_CALLS };

#define XFER_IOV	8
#define XFER_GUARD	32		/* bytes between pieces, untouched */

struct xfer {
	/* to be set before xfer_make() */
	bool tagged;
	enum xfer_tx tx;
	enum xfer_rx rx;
	size_t len;			/* of the message */
	size_t room;			/* of the receive; 0: as the message */
	unsigned tx_iov, rx_iov;	/* pieces; 0: one */
	uint64_t tag, ignore;		/* ignore: of the receive */
	uint64_t data;
	uint64_t tx_flags;		/* added where the call takes flags */
	uint64_t seed;
	/* by xfer_make() */
	uint8_t *out, *in;
	struct iovec out_iov[XFER_IOV], in_iov[XFER_IOV];
	struct fi_context2 txc, rxc;	/* contexts of the operations */
};

/* Bytes of a pattern; a wrong offset or another seed shows. */
void xfer_fill(void *buf, size_t len, uint64_t seed, size_t from);
bool xfer_filled(const void *buf, size_t len, uint64_t seed, size_t from);

/* Allocate and fill; x->room and pieces are set if they were 0. */
void xfer_make(struct xfer *x);
void xfer_free(struct xfer *x);
/* Does this call give a completion, carry remote data? */
bool xfer_tx_completes(const struct xfer *x);
bool xfer_has_data(const struct xfer *x);
bool xfer_inject(const struct xfer *x);

ssize_t xfer_send(struct ep *e, fi_addr_t dest, struct xfer *x);
ssize_t xfer_recv(struct ep *e, fi_addr_t src, struct xfer *x);
/* Is the receive's completion what it must be, and all of its buffer? */
void xfer_check(struct ep *e, fi_addr_t src, struct xfer *x);
/* The bytes only: len of the message from its start, the rest untouched. */
void xfer_check_bytes(struct xfer *x, size_t len);

#endif /* EP_XFER_H */
