/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_wait.c - FUSE requests that wait in a file, and their interrupts.
 *
 * The kernel interrupts a request when its process gets a signal. It then waits
 * for the answer, without which the process could not even be killed: so an
 * interrupt is always answered at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "cuse/cuse_wait.h"

static void on_interrupt(fuse_req_t req, void *data)
{
	struct cuse_wait *wait = data;

	(void)fuse_reply_err(req, EINTR);
	wait->req = NULL;
	if (wait->sent)
		return;
	unm_list_remove(&wait->node);
	free(wait);
}

void cuse_wait_add(struct unm_list *list, fuse_req_t req,
		   const struct mailbox_action_t *action,
		   const uint64_t *message)
{
	struct cuse_wait *wait;

	/* libfuse would call on_interrupt(), and use the request after it */
	if (fuse_req_interrupted(req)) {
		(void)fuse_reply_err(req, EINTR);
		return;
	}
	wait = calloc(1, sizeof(*wait));
	if (wait == NULL) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	wait->req = req;
	if (action != NULL)
		wait->u.action = *action;
	if (message != NULL)
		wait->u.message = *message;
	unm_list_append(list, &wait->node);
	fuse_req_interrupt_func(req, on_interrupt, wait);
}

fuse_req_t cuse_wait_take(struct cuse_wait *wait)
{
	fuse_req_t req = wait->req;

	unm_list_remove(&wait->node);
	free(wait);
	return req;
}

void cuse_wait_err(struct cuse_wait *wait, int error)
{
	fuse_req_t req = cuse_wait_take(wait);

	if (req != NULL)
		(void)fuse_reply_err(req, error);
}

void cuse_wait_err_all(struct unm_list *list, int error)
{
	struct cuse_wait *wait;

	while ((wait = cuse_wait_first(list)) != NULL)
		cuse_wait_err(wait, error);
}

struct cuse_wait *cuse_wait_first(const struct unm_list *list)
{
	if (unm_list_empty(list))
		return NULL;
	return unm_container(list->next, struct cuse_wait, node);
}
