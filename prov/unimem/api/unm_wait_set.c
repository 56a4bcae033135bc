/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_wait_set.c - adding wait objects to a wait set and removing them. The
 * calls of fi_wait(3) are in unm_poll_set.c. */
#include <sys/epoll.h>
#include <unistd.h>

#include "api/unm_wait_set.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "util/unm_list.h"

struct unm_wait_set *unm_wait_set(struct fid_wait *fid)
{
	return (struct unm_wait_set *)fid;
}

struct unm_wait *unm_wait_set_cond(struct unm_wait_set *set)
{
	return set->wait.obj == FI_WAIT_MUTEX_COND ? &set->wait : NULL;
}

int unm_wait_set_join(struct unm_wait_set *set, struct unm_wait *w)
{
	int ret;

	pthread_mutex_lock(&set->lock);
	ret = unm_wait_add_fd(&set->wait, w->epfd);
	if (ret == 0)
		ret = unm_wait_add_fd(&set->wait, w->appev);
	if (ret == 0) {
		unm_list_append(&set->members, &w->in_set);
		unm_ref_get(&set->ref);
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

void unm_wait_set_leave(struct unm_wait_set *set, struct unm_wait *w)
{
	pthread_mutex_lock(&set->lock);
	/* The child of a fork() has copies of the descriptors, which would keep
	 * them in the epoll set, so remove them before they are closed. The
	 * epoll set is shared too, so only the opener changes it. */
	if (set->wait.epfd >= 0 && set->owner == getpid()) {
		epoll_ctl(set->wait.epfd, EPOLL_CTL_DEL, w->epfd, NULL);
		epoll_ctl(set->wait.epfd, EPOLL_CTL_DEL, w->appev, NULL);
	}
	unm_list_remove(&w->in_set);
	pthread_mutex_unlock(&set->lock);
	unm_ref_put(&set->ref);		/* the set may be closed now */
}
