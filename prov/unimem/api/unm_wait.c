/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_wait.c - opening and closing the wait objects of queues and counters, see
 * unm_wait.h. */
#include <poll.h>

#include "api/unm_wait.h"
#include "api/unm_wait_set.h"
#include "core/unm_wake.h"
#include "progress/unm_auto.h"

static int unm_wait_join(struct unm_wait *w)
{
	int ret = 0;

	if (w->set != NULL)
		ret = unm_wait_set_join(w->set, w);
	if (ret != 0 || w->cond_of == NULL || w->domain == NULL)
		return ret;
	/* the progress thread signals condition variables */
	ret = unm_auto_start(w->domain);
	if (ret != 0) {
		if (w->set != NULL)
			unm_wait_set_leave(w->set, w);
		return ret;
	}
	unm_auto_add_cond(w);
	return 0;
}

int unm_wait_open(struct unm_wait *w, struct fid *fid,
		  struct unm_domain *domain, enum fi_wait_obj obj,
		  struct fid_wait *set)
{
	int ret;

	if (obj == FI_WAIT_SET &&
	    (set == NULL || set->fid.fclass != FI_CLASS_WAIT))
		return -FI_EINVAL;
	ret = unm_wait_make(w, fid, domain, obj);
	if (ret != 0)
		return ret;
	if (obj == FI_WAIT_SET) {
		w->set = unm_wait_set(set);
		w->cond_of = unm_wait_set_cond(w->set);
	}
	ret = unm_wait_join(w);
	if (ret != 0)
		unm_wait_shut(w);
	return ret;
}

void unm_wait_close(struct unm_wait *w)
{
	/* first: the progress thread uses the set of the wait object */
	if (w->domain != NULL && w->cond_of != NULL)
		unm_auto_remove_cond(w);
	if (w->set != NULL)
		unm_wait_set_leave(w->set, w);
	unm_wait_shut(w);
}

int unm_wait_control(struct unm_wait *w, int command, void *arg)
{
	struct fi_wait_pollfd *list = arg;
	int fd = w->appfd >= 0 ? w->appfd : w->epfd;
	size_t room;

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = w->obj;
		return 0;
	}
	if (command != FI_GETWAIT)
		return -FI_ENOSYS;
	switch (w->obj) {
	case FI_WAIT_FD:
		*(int *)arg = fd;
		return 0;
	case FI_WAIT_MUTEX_COND:
		*(struct fi_mutex_cond *)arg = (struct fi_mutex_cond){
			.mutex = &w->mutex, .cond = &w->cond,
		};
		return 0;
	case FI_WAIT_POLLFD:	/* one descriptor, which never changes */
		room = list->nfds;
		list->change_index = 1;
		list->nfds = 1;
		if (room < 1)
			return -FI_ETOOSMALL;
		list->fd[0].fd = fd;
		list->fd[0].events = POLLIN;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
