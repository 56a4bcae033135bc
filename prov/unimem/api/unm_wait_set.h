/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wait_set.h - the state of a wait set, and adding objects to it and
 * removing them. The calls of fi_wait(3) are in unm_poll_set.c.
 */
#ifndef UNM_WAIT_SET_H
#define UNM_WAIT_SET_H

#include <pthread.h>
#include <sys/types.h>

#include <rdma/fi_eq.h>

#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "util/unm_list.h"

/*
 * A wait set, from fi_wait_open() to fi_close(). Closing fails with -FI_EBUSY
 * while objects are in the set, so each member is valid.
 */
struct unm_wait_set {
	struct fid_wait fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;		/* counts the members */
	pthread_mutex_t lock;		/* protects members; taken before the
					 * lock of a member's domain */
	struct unm_list members;	/* unm_wait.in_set */
	struct unm_wait wait;		/* epfd holds epfd and appev of each
					 * member */
	pid_t owner;			/* the process that opened the set; a
					 * forked child has another pid */
};

struct unm_wait_set *unm_wait_set(struct fid_wait *fid);
/* Add a wait object to a set, or remove it. No lock is held. join returns 0, or
 * a negative fi_errno after one line in the log. */
int unm_wait_set_join(struct unm_wait_set *set, struct unm_wait *w);
void unm_wait_set_leave(struct unm_wait_set *set, struct unm_wait *w);
/* The set's wait object if that is a condition variable, else NULL. */
struct unm_wait *unm_wait_set_cond(struct unm_wait_set *set);

#endif /* UNM_WAIT_SET_H */
