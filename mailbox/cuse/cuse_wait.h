/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_wait.h - FUSE requests that wait in a file: for a message, for free
 * space, or for the daemon to do an action.
 */
#ifndef CUSE_WAIT_H
#define CUSE_WAIT_H

#include <stdbool.h>

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 310
#endif
#include <cuse_lowlevel.h>

#include "unimem/mailbox.h"
#include "util/unm_list.h"

/* A request, from cuse_wait_add() to its answer, or to an interrupt. One thread
 * uses it. */
struct cuse_wait {
	struct unm_list node;
	fuse_req_t req;			/* NULL: interrupted, and answered */
	bool sent;			/* an action that the daemon has got: an
					 * interrupt does not remove it */
	union {
		uint64_t message;	/* to be sent */
		struct mailbox_action_t action;
	} u;
};

/*
 * Append a request to a list. An interrupt of the request answers EINTR, and
 * removes and frees it unless it was sent. action, message: what it has; NULL:
 * nothing. Without memory the request is answered with ENOMEM.
 */
void cuse_wait_add(struct unm_list *list, fuse_req_t req,
		   const struct mailbox_action_t *action,
		   const uint64_t *message);

/* Remove a request from its list, and free the wait. Returns the request, which
 * the caller answers; NULL: it was interrupted, and has its answer. */
fuse_req_t cuse_wait_take(struct cuse_wait *wait);

/* Take a request, and answer it with an error. */
void cuse_wait_err(struct cuse_wait *wait, int error);

/* End all requests of a list with an error. */
void cuse_wait_err_all(struct unm_list *list, int error);

/* The first request of a list; NULL: none. */
struct cuse_wait *cuse_wait_first(const struct unm_list *list);

#endif /* CUSE_WAIT_H */
