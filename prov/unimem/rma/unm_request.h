/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_request.h - one-sided operations that are sent as requests for the target
 * to execute (unm_request.c; docs/protocol.md, section 10), and the operation
 * object that unm_direct.c uses as well.
 *
 * The caller of each function holds the lock of the endpoint's domain.
 */
#ifndef UNM_REQUEST_H
#define UNM_REQUEST_H

#include <rdma/fi_rma.h>

#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_way.h"
#include "hal/hal.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

struct unm_ep;
struct unm_wire_msg;

#define UNM_REMOTES_MAX	UNM_IOV_MAX	/* most remote ranges of one call */

/* State of an operation; docs/protocol.md, section 10, has the diagram. */
enum unm_os_state {
	UNM_OS_SEND = 1,		/* some requests are not sent yet */
	UNM_OS_WAIT,			/* all requests are sent; answers, or
					 * the count of executed requests, are
					 * awaited */
	UNM_OS_DIRECT,			/* unm_direct.c executes it in steps */
};

/*
 * A one-sided operation that is under way. It is an object of the endpoint's
 * os_pool, and lives until its completion is reported. a and its vectors point
 * into the object itself. An operation without a result (put, atomic) is sent
 * as "posted" requests: only their number comes back. Injected puts that only
 * a counter reports share an object while no other posted operation is begun in
 * between: this one, and a request each of the more that were merged into it.
 */
struct unm_os_op {
	struct unm_pool_node node;
	struct unm_list link;		/* in peer->posted (no result comes
					 * back), peer->await_result (a result
					 * does), or ep->direct */
	struct unm_list unsent;		/* in peer->unsent: state is SEND */
	struct unm_peer *peer;		/* target */
	enum unm_os_state state;
	bool dma;			/* DIRECT: a transfer is under way */
	bool check;			/* send PUT_CHECK or GET_CHECK, because
					 * a transfer ended with -FI_EFAULT */
	bool asked;			/* a request asked for a remote key */
	uint8_t at;			/* index in remote of the range that
					 * the next request is for */
	uint8_t buf_class;		/* size class of buf */
	uint64_t off;			/* bytes of that range already in
					 * requests */
	uint64_t sent;			/* bytes of all ranges in requests, or
					 * moved in steps */
	uint64_t got;			/* bytes of results received */
	uint64_t number;		/* number of its last posted request,
					 * 0: none */
	uint32_t due;			/* requests without a complete result */
	uint32_t due_bytes;		/* bytes of these, of FETCH, COMPARE */
	uint64_t more;			/* puts that share this object, without
					 * the first that is not reported; they
					 * have the requests up to number */
	int status;			/* negative fi_errno of the first
					 * error, 0: none; of puts that share
					 * the object, the first one's */
	uint64_t step;			/* DIRECT: bytes of the transfer that
					 * is under way */
	uint64_t begun_ns;		/* unm_now_ns() when it began; 0: its
					 * time does not count */
	uint8_t how;			/* enum unm_way_how, while it is counted
					 * in ep->os_clock */
	void *buf;			/* FI_INJECT: copy of src, then of cmp,
					 * in ep->buf_pool; or NULL */
	struct unm_cached *rkey;	/* DIRECT: remote key, one reference */
	struct unm_access a;		/* the call's arguments */
	struct iovec src[UNM_IOV_MAX], cmp[UNM_IOV_MAX], dst[UNM_IOV_MAX];
	struct fi_rma_iov remote[UNM_REMOTES_MAX];
};

/* The measurements for puts, or gets, of this length. NULL: there are none. */
static inline struct unm_way *unm_os_way(const struct unm_peer *peer,
					 const struct unm_access *a)
{
	struct unm_ways *ways = peer->ways;

	return ways != NULL ? &ways->os[a->kind == UNM_GET]
		[unm_way_os_class(a->len)] : NULL;
}

/* Allocate an operation with a copy of *a, in no list. NULL if too many are
 * under way: the application is asked to retry when one ends. */
struct unm_os_op *unm_os_new(struct unm_peer *peer,
			     const struct unm_access *a);

/* A put or get for which there is a choice goes this way from now on. begun_ns:
 * unm_now_ns() when it began; 0: its time does not count. */
void unm_os_goes(struct unm_os_op *op, enum unm_way_how how, uint64_t begun_ns);

/* Report the completion of an operation with op->status, and release it. */
void unm_os_done(struct unm_os_op *op);

/* Release an operation that was never sent, without a completion. */
void unm_os_release(struct unm_os_op *op);

/* Append an operation to the peer's lists, so that progress sends its remaining
 * requests after those of earlier operations. */
void unm_os_queue(struct unm_os_op *op);

/* With FI_INJECT the application may overwrite the operand and compare buffers
 * when the call returns: copy them into op->buf. The result buffer stays in use
 * by the operation. 0 or -FI_ENOMEM. */
int unm_os_copy_operands(struct unm_ep *ep, struct unm_os_op *op);

/* Send an operation as requests. how: UNM_WAY_ASSISTED if its time counts, from
 * peer->sampled_ns on, else UNM_WAY_NONE. Returns 0 if it was begun;
 * -FI_EAGAIN if no request can be sent now, and the caller arranges that the
 * application retries; another negative fi_errno if it failed. */
int unm_os_try(struct unm_peer *peer, const struct unm_access *a,
	       enum unm_way_how how);

/* Send requests that wait, and complete operations whose posted requests were
 * executed. Returns the number of things done. */
int unm_onesided_progress(struct unm_peer *peer);

/* Complete all operations in peer->posted and peer->await_result with an error;
 * err: positive fi_errno. The peer is dead. */
void unm_onesided_abort(struct unm_peer *peer, int err);

/* Handle a RESULT or a REFUSED message of a target. Returns 0, or -FI_EINVAL if
 * the message violates the protocol. */
int unm_onesided_result(struct unm_peer *peer, const struct unm_wire_msg *m);
int unm_onesided_refused(struct unm_peer *peer, const struct unm_wire_msg *m);

#endif /* UNM_REQUEST_H */
