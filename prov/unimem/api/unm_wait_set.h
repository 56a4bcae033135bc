/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wait_set.h - a wait set and what is in it. Its calls are in
 * unm_poll_set.c.
 */
#ifndef UNM_WAIT_SET_H
#define UNM_WAIT_SET_H

#include <pthread.h>
#include <sys/types.h>

#include <rdma/fi_eq.h>

#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "util/unm_list.h"

struct unm_wait_set {
	struct fid_wait fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;
	pthread_mutex_t lock;		/* before a domain's */
	struct unm_list members;
	struct unm_wait wait;		/* epfd: those of its members */
	pid_t owner;			/* who opened it, not a child */
};

struct unm_wait_set *unm_wait_set(struct fid_wait *fid);
int unm_wait_set_join(struct unm_wait_set *set, struct unm_wait *w);
void unm_wait_set_leave(struct unm_wait_set *set, struct unm_wait *w);
/* Its condition variable, NULL: it has none. */
struct unm_wait *unm_wait_set_cond(struct unm_wait_set *set);

#endif /* UNM_WAIT_SET_H */
