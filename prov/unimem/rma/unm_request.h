/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_request.h - operations on the memory of peers, sent as requests that the
 * target executes.
 */
#ifndef UNM_REQUEST_H
#define UNM_REQUEST_H

#include <rdma/fi_rma.h>

#include "core/unm_op.h"
#include "hal/hal.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

struct unm_ep;
struct unm_wire_msg;

#define UNM_REMOTES_MAX	UNM_IOV_MAX	/* remote ranges of one call */

enum unm_os_state {
	UNM_OS_SEND = 1,		/* requests are still to be sent */
	UNM_OS_WAIT,			/* their answers are awaited */
	UNM_OS_DIRECT,			/* we do it ourselves, in steps */
};

/* One under way. a and its vectors point into the operation itself. */
struct unm_os_op {
	struct unm_pool_node node;
	struct unm_list link;		/* peer's posted or asked, endpoint's
					 * direct */
	struct unm_list unsent;		/* peer's, too */
	struct unm_peer *peer;
	enum unm_os_state state;
	bool dma;			/* DIRECT: a transfer is under way */
	bool check;			/* the target checks its memory: a
					 * transfer ended with -FI_EFAULT */
	uint8_t at;			/* range to go on with ... */
	uint8_t buf_class;
	uint64_t off;			/* ... behind these bytes of it */
	uint64_t sent;			/* bytes asked for, or moved */
	uint64_t got;			/* bytes that came back */
	uint64_t number;		/* its last posted request, 0: none */
	uint32_t due;			/* requests whose results are to come */
	uint32_t due_bytes;		/* bytes of these, if fetched */
	int status;			/* negative fi_errno: the first error */
	uint64_t step;			/* DIRECT: bytes under way */
	void *buf;			/* injected: copy of src, then of cmp */
	struct unm_route *route;	/* DIRECT */
	struct unm_access a;
	struct iovec src[UNM_IOV_MAX], cmp[UNM_IOV_MAX], dst[UNM_IOV_MAX];
	struct fi_rma_iov remote[UNM_REMOTES_MAX];
};

struct unm_os_op *unm_os_new(struct unm_peer *peer,
			     const struct unm_access *a);
void unm_os_done(struct unm_os_op *op);
void unm_os_undo(struct unm_os_op *op);
void unm_os_queue(struct unm_os_op *op);
int unm_os_keep(struct unm_ep *ep, struct unm_os_op *op);
/* Send an operation as requests. Returns 0 if it was begun, or -FI_EAGAIN if no
 * request can be sent now: then nothing asks the application to try again. */
int unm_os_try(struct unm_peer *peer, const struct unm_access *a);
int unm_onesided_progress(struct unm_peer *peer);
void unm_onesided_abort(struct unm_peer *peer, int err);
int unm_onesided_result(struct unm_peer *peer, const struct unm_wire_msg *m);
int unm_onesided_refused(struct unm_peer *peer, const struct unm_wire_msg *m);

#endif /* UNM_REQUEST_H */
