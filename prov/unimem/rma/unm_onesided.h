/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_onesided.h - operations on the memory of peers, and theirs on ours.
 *
 *   unm_rma.c, unm_atomic.c	fi_rma(3), fi_atomic(3): arguments to operations
 *   unm_onesided.c		ours, by requests that the target executes
 *   unm_direct.c		ours, where no target needs to look
 *   unm_prompt.c		which of both, where either would do
 *   unm_rkey.c		what is known about peers' regions
 *   unm_target.c		peers' requests on our regions
 *
 * docs/protocol.md, sections 10 to 12, is the definition.
 */
#ifndef UNM_ONESIDED_H
#define UNM_ONESIDED_H

#include <rdma/fi_rma.h>

#include "hal/hal.h"
#include "unm_offer.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

struct unm_ep;
struct unm_wire_msg;

#define UNM_REMOTES_MAX	UNM_IOV_MAX	/* remote ranges of one call */

enum unm_kind {
	UNM_PUT = 1,
	UNM_GET,
	UNM_ATOMIC,			/* nothing comes back */
	UNM_FETCH,
	UNM_COMPARE,
};

/* A vector of local memory. */
struct unm_vec {
	const struct iovec *iov;
	size_t count;
};

/* What a call asks for; lives on the caller's stack. */
struct unm_access {
	enum unm_kind kind;
	uint8_t op, type;		/* atomics: enum gsas_op, gsas_type */
	uint8_t unit;			/* bytes of an element; 1: PUT, GET */
	bool inject;
	bool has_data;
	struct unm_vec src;		/* what goes there */
	struct unm_vec cmp;		/* COMPARE: what is compared */
	struct unm_vec dst;		/* what comes back */
	const struct fi_rma_iov *remote;	/* ranges, len in bytes */
	size_t nremote;
	uint64_t len;			/* sum of the ranges */
	uint64_t data;
	uint64_t flags;
	void *context;
};

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

/* A peer's region as its owner described it. */
struct unm_route {
	struct unm_list link;		/* peer's routes, last used first */
	struct unm_route *chain;	/* next one of its bucket */
	uint64_t key;
	uint64_t start, len;		/* addresses of the region */
	uint64_t base;			/* memory of start */
	uint32_t region;		/* its number */
	uint32_t refs;			/* operations that use it */
	uint8_t reach;			/* enum unm_wire_reach and for what */
	bool told;			/* else it was asked for */
	bool stale;			/* not to be used any more */
	struct hal_key mem_key;
	struct unm_import *mem;		/* DMABLE, once imported */
	struct hal *alias;		/* SHARED: win is an alias of its;
					 * NULL: of mem */
	struct hal_window win;
};

/* Start one: 0, -FI_EAGAIN, or why not. */
ssize_t unm_onesided(struct unm_ep *ep, fi_addr_t dest,
		     const struct unm_access *a);

/* unm_onesided.c */
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

/* unm_direct.c: 0: done, or under way; 1: not this way; -FI_EAGAIN. */
int unm_direct(struct unm_peer *peer, const struct unm_access *a);
/* Go on with those under way; a transfer ended. */
void unm_direct_progress(struct unm_ep *ep);
void unm_direct_dma(struct unm_ep *ep, const struct hal_dma_comp *comp);
void unm_direct_abort(struct unm_peer *peer, int err);
void unm_direct_drop(struct unm_ep *ep);

/* unm_prompt.c: shall the peer access its ordinary memory itself? */
bool unm_prompt(struct unm_peer *peer, uint64_t len);

/* unm_rkey.c: the route to a region, or NULL: by requests. */
struct unm_route *unm_route_find(struct unm_peer *peer, uint64_t key);
/* Shall a request ask for one? It did. */
bool unm_route_wanted(const struct unm_peer *peer, uint64_t key);
void unm_route_asked(struct unm_peer *peer, uint64_t key);
void unm_route_unasked(struct unm_peer *peer, uint64_t key);
int unm_route_told(struct unm_peer *peer, const struct unm_wire_msg *m);
void unm_route_put(struct unm_route *route);
void unm_route_forget(struct unm_peer *peer);
void unm_route_look(struct unm_peer *peer);
/* The peer's object goes; the HAL knows it no more. */
void unm_route_clear(struct unm_peer *peer);
/* Peers' memory is accessed between these two only; false: not now. */
bool unm_guard_enter(struct unm_peer *peer);
void unm_guard_leave(struct unm_peer *peer);

/* unm_target.c */
uint32_t unm_answer_size(void);
int unm_target_request(struct unm_peer *peer, const struct unm_wire_msg *m);
/* Tell how many posted requests were executed. */
void unm_target_tell(struct unm_peer *peer);
int unm_target_progress(struct unm_peer *peer);
void unm_target_abort(struct unm_peer *peer);
/* Our endpoint is closed: nobody is in our memory any more. -FI_EBUSY: a peer
 * is, and the endpoint stays open. */
int unm_target_close(struct unm_ep *ep);
/* We are about to forget a peer that lives: it knows no route any more. false:
 * it may not have been told; again, until it was, or is dead. */
bool unm_target_expel(struct unm_peer *peer);

#endif /* UNM_ONESIDED_H */
