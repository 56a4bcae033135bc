/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_xfer.h - send and receive one message by any of libfabric's calls, and
 * check every byte, flag and field of its completion; uses ep_pair.h
 */
#ifndef EP_XFER_H
#define EP_XFER_H

#include "lib/ep_pair.h"

/* Which call sends, which call receives. */
enum xfer_tx {
	XFER_SEND, XFER_SENDV, XFER_SENDMSG, XFER_SENDMSG_DATA,
	XFER_SENDMSG_INJECT, XFER_INJECT, XFER_SENDDATA, XFER_INJECTDATA,
	XFER_TX_CALLS
};
enum xfer_rx { XFER_RECV, XFER_RECVV, XFER_RECVMSG, XFER_RX_CALLS };

#define XFER_IOV	8
#define XFER_GUARD	32		/* bytes around each segment of a buffer
					 * that must stay unchanged */

/* One message. The test owns it, from xfer_make() to xfer_free(). */
struct xfer {
	/* The test sets these fields before xfer_make(). */
	bool tagged;
	enum xfer_tx tx;
	enum xfer_rx rx;
	size_t len;			/* length of the message, bytes */
	size_t room;			/* length of the receive buffer, bytes;
					 * 0: len */
	unsigned tx_iov, rx_iov;	/* segments of the buffers; 0: one */
	uint64_t tag, ignore;		/* ignore: for the receive */
	uint64_t data;			/* remote CQ data */
	uint64_t tx_flags;		/* flags for fi_sendmsg(), added to
					 * those of tx */
	uint64_t seed;			/* selects the contents */
	/* xfer_make() sets these fields. */
	uint8_t *out, *in;		/* send and receive memory */
	struct iovec out_iov[XFER_IOV], in_iov[XFER_IOV];
	struct fi_context2 txc, rxc;	/* contexts of the operations */
};

/* Fill a buffer with bytes from to from + len of the pattern of a seed, or
 * return whether it contains them. Patterns differ by seed and by offset. */
void xfer_fill(void *buf, size_t len, uint64_t seed, size_t from);
bool xfer_filled(const void *buf, size_t len, uint64_t seed, size_t from);

/* Allocate the buffers, and fill the send buffer. Sets x->room, x->tx_iov and
 * x->rx_iov if they are 0. */
void xfer_make(struct xfer *x);
void xfer_free(struct xfer *x);
/* Return whether the sending call reports a completion, carries remote CQ data,
 * injects. */
bool xfer_tx_completes(const struct xfer *x);
bool xfer_has_data(const struct xfer *x);
bool xfer_inject(const struct xfer *x);

/* Call the sending or receiving function that x selects, and return what it
 * returns. An injected send buffer is overwritten afterwards. */
ssize_t xfer_send(struct ep *e, fi_addr_t dest, struct xfer *x);
ssize_t xfer_recv(struct ep *e, fi_addr_t src, struct xfer *x);
/* Wait for the completion of the receive; check its fields and all bytes of the
 * receive buffer. src is the expected source. */
void xfer_check(struct ep *e, fi_addr_t src, struct xfer *x);
/* Check the receive buffer only: it starts with the first len bytes of the
 * message, and the rest is unchanged. */
void xfer_check_bytes(struct xfer *x, size_t len);

#endif /* EP_XFER_H */
