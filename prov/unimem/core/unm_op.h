/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_op.h - operations that are under way: sends, receives, unexpected
 * messages; and the arguments of send and one-sided calls.
 *
 * Operations are objects of the endpoint's pools, under the lock of its domain.
 * msg/ executes sends and receives, rma/ one-sided operations (unm_request.h).
 */
#ifndef UNM_OP_H
#define UNM_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "core/unm_match.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

struct unm_cached;
struct unm_peer;

/* Internal flag: the operation's context is a struct unm_deferred, because the
 * operation is deferred work (unm_trigger.h). */
#define UNM_OP_WORK	(UINT64_C(1) << 62)

/* Arguments of a send call; on the caller's stack, or in struct unm_tx_op. */
struct unm_send {
	const struct iovec *iov;
	size_t count;
	size_t len;			/* sum of iov */
	uint64_t tag;
	uint64_t data;
	void *context;
	uint64_t flags;			/* UNM_TX_MSG_FLAGS, UNM_OP_WORK */
	bool tagged;
	bool has_data;
	bool inject;			/* the buffer may be reused after the
					 * call; without FI_INJECT in flags:
					 * fi_inject(), no completion */
};

/* Kinds of one-sided operations. */
enum unm_kind {
	UNM_PUT = 1,
	UNM_GET,
	UNM_ATOMIC,			/* without a result */
	UNM_FETCH,
	UNM_COMPARE,
};

/* A vector of local memory. */
struct unm_vec {
	const struct iovec *iov;
	size_t count;
};

/* Arguments of a one-sided call; on the caller's stack, or in struct
 * unm_os_op. The initializers in the one-sided calls (api/unm_rma.c,
 * api/unm_atomic.c) name all fields: gcc clears a structure of which some are
 * left out by an instruction (rep stos) that takes longer than a store to each
 * field. */
struct unm_access {
	enum unm_kind kind;
	uint8_t op, type;		/* atomics: enum gsas_op, gsas_type */
	uint8_t unit;			/* bytes of an element; 1: PUT, GET */
	bool inject;
	bool has_data;
	struct unm_vec src;		/* bytes to send */
	struct unm_vec cmp;		/* COMPARE: values to compare */
	struct unm_vec dst;		/* result */
	const struct fi_rma_iov *remote;	/* ranges, len in bytes */
	size_t nremote;
	uint64_t len;			/* sum of the ranges */
	uint64_t data;
	uint64_t flags;
	void *context;
};

enum unm_tx_state {
	UNM_TX_BACKLOG = 1,	/* not sent yet */
	UNM_TX_AWAIT,		/* sent; done when the peer released packet */
	UNM_TX_RTS,		/* rendezvous announced: the peer reads the
				 * message, or requests it in pieces */
	UNM_TX_STREAM,		/* the peer requested pieces, some are left */
	UNM_TX_STREAMED,	/* every piece is sent: FIN will come */
};

/* When unm_gauge.c first visited an operation; all 0 in a new object. */
struct unm_seen {
	uint64_t us;
	uint32_t stamp;			/* generation of the object then */
};

/* A send that outlives its call. */
struct unm_tx_op {
	struct unm_pool_node node;
	struct unm_list link;		/* in one list of its peer */
	struct unm_peer *peer;
	enum unm_tx_state state;
	bool bad;			/* STREAM: send.iov is not readable */
	bool waits;			/* STREAM: for receive space */
	uint32_t freed;			/* STREAM: extents that had become free
					 * when it began to wait */
	uint8_t buf_class;
	void *buf;			/* BACKLOG: copy of injected bytes */
	void *bounce;			/* copy that the peer's engine reads, or
					 * NULL */
	uint64_t packet;		/* AWAIT: number of its last slot */
	uint64_t peer_token;		/* STREAM: receiver's operation */
	uint64_t sent;			/* STREAM: bytes sent */
	uint64_t wanted;		/* STREAM: bytes requested */
	struct unm_seen seen;
	struct unm_send send;		/* its iov is the following */
	struct iovec iov[UNM_IOV_MAX];
};

enum unm_rx_state {
	UNM_RX_POSTED = 1,	/* waits for a message */
	UNM_RX_IMPORT,		/* rendezvous: waits for an import */
	UNM_RX_DMA_WAIT,	/* rendezvous: transfers to be posted */
	UNM_RX_DMA,		/* rendezvous: transfers under way */
	UNM_RX_CTS,		/* rendezvous: pieces not requested yet */
	UNM_RX_STREAM,		/* rendezvous: pieces arrive, or are read */
	UNM_RX_FIN,		/* rendezvous: FIN not sent yet */
	UNM_RX_LONG,		/* eager: further pieces arrive */
};

/* A receive: posted, or in transfer. Posting and delivery access only its first
 * two cache lines. */
struct unm_rx_op {
	struct unm_pool_node node;
	struct unm_match_recv match;
	uint64_t flags;			/* FI_COMPLETION, FI_MULTI_RECV,
					 * UNM_OP_WORK */
	uint64_t len;			/* sum of iov */
	uint8_t state;			/* enum unm_rx_state */
	uint8_t count;			/* of iov */
	bool tagged;
	bool retired : 1;		/* multi-receive: takes no message */
	bool canceled : 1;		/* multi-receive: unm_multi_cancel() */
	uint32_t from;			/* index in the address vector that the
					 * receive names, if match.src is not
					 * UNM_MATCH_ANY */
	struct iovec iov[UNM_IOV_MAX];	/* multi-receive: [0] shrinks */
	/* ---- the second line ends in iov[0] ---- */
	uint32_t children;		/* multi-receive: transfers into it */
	/* transfer */
	struct unm_rx_op *parent;	/* multi-receive it writes into */
	struct unm_list link;		/* peer's recvs */
	struct unm_list control;	/* peer's control, or the endpoint's
					 * dma_wait or streams */
	struct unm_peer *peer;
	uint64_t tag;			/* of the message */
	uint64_t data;
	bool has_data;
	bool fault;			/* a transfer ended with -FI_EFAULT */
	bool readable;			/* by cross-memory attach, at addr */
	uint8_t how;			/* enum unm_way_how, while it is counted
					 * in ep->msg_clock */
	uint64_t begun_ns;		/* unm_now_ns() when it was matched; 0:
					 * its time does not count */
	uint64_t msg_len;		/* as sent */
	uint64_t wanted;		/* min(msg_len, len) */
	uint64_t got;			/* STREAM: bytes from the first one on
					 * that came in pieces */
	uint64_t end;			/* STREAM: offset from which on the
					 * receiver has read the rest itself */
	uint64_t reading;		/* STREAM: bytes below end that a
					 * transfer under way reads */
	uint64_t peer_token;		/* sender's operation */
	uint64_t addr;			/* sender's buffer */
	struct unm_cached *mem;		/* import that has addr, or NULL */
	struct hal_key key;		/* IMPORT: of memory that has addr */
	uint64_t import_ns;		/* IMPORT: unm_now_ns() when it began */
	void *bounce;			/* buffer that transfers write in place
					 * of iov, or NULL */
	uint8_t dma_next;		/* next iov entry to post */
	uint8_t dma_left;		/* transfers outstanding */
	int status;			/* negative fi_errno */
	struct unm_seen seen;
};
_Static_assert(offsetof(struct unm_rx_op, iov[1]) == 128, "two lines");

/* An unexpected message. */
struct unm_msg {
	struct unm_pool_node node;
	struct unm_match_msg match;
	struct unm_peer *peer;
	struct unm_list of_peer;	/* peer's msgs, until it is received */
	void *claim;			/* context that claimed it */
	struct unm_list claimed;
	uint64_t data;
	uint64_t len;
	uint64_t token;			/* rendezvous: sender's operation */
	uint64_t addr;			/* ... and buffer */
	struct hal_key key;
	bool dmable;
	void *buf;			/* copy of the bytes, or NULL */
	uint8_t buf_class;
	bool rendezvous;		/* its bytes have not all arrived */
	bool has_data;
	bool tagged;
	uint8_t bytes[UNM_WIRE_INLINE_MAX];	/* copy, if it fits */
};

/* Copy len bytes from src into a vector (fill), or from a vector to dst
 * (fetch), from byte off of the vector on. Return the bytes copied, less than
 * len if the vector ends. */
size_t unm_iov_fill(const struct iovec *iov, size_t count, size_t off,
		    const void *src, size_t len);
size_t unm_iov_fetch(const struct iovec *iov, size_t count, size_t off,
		     void *dst, size_t len);

/* Bytes of a vector. */
static inline size_t unm_iov_len(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

#endif /* UNM_OP_H */
