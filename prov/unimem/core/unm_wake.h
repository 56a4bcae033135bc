/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wake.h - wait object of a queue, a counter or the domain's own thread:
 * what somebody sleeps on, and who is to be woken.
 *
 * Two kinds of sleepers, that share no descriptor but those of the endpoints,
 * so that neither takes the other's wake-up:
 *   ours     threads inside fi_cq_sread(), fi_cntr_wait(): endpoints and evfd
 *   theirs   whoever was told by fi_trywait() that it may block on what
 *            FI_GETWAIT gave it: endpoints and appev, both in appfd, or a
 *            condition variable
 *
 * It is under the lock of its domain; that of an event queue, which has no
 * domain, under the queue's. With FI_WAIT_NONE and FI_WAIT_YIELD it has no
 * descriptor and nobody sleeps on it.
 */
#ifndef UNM_WAKE_H
#define UNM_WAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fi_eq.h>

#include "util/unm_list.h"

struct unm_domain;
struct unm_wait_set;

struct unm_wait {
	uint32_t wanted;	/* != 0: somebody sleeps, news are to be told */
	enum fi_wait_obj obj;
	struct unm_domain *domain;	/* NULL: of an event queue, or a set */
	struct fid *fid;		/* whose it is */
	struct unm_wait_set *set;	/* FI_WAIT_SET: the one it is in */
	int epfd;		/* the endpoints' descriptors; of a set, epfd
				 * and appev of all that are in it */
	int evfd;		/* wakes ours */
	int appev;		/* wakes theirs */
	int appfd;		/* theirs: epfd and appev */
	uint32_t asleep;	/* ours */
	uint32_t unaware;	/* of these, woken and not up yet */
	uint32_t epoch;		/* wake-ups of ours */
	bool waited;		/* one of theirs may sleep: fi_trywait() agreed
				 * and it was not woken since */
	bool told;		/* woken, and fi_trywait() not called since */
	bool signalled;		/* the next of theirs to sleep is refused */
	bool due;		/* its condition is to be signalled */
	struct unm_wait *cond_of;	/* whose condition that is: its own,
					 * that of its set, or NULL */
	struct unm_list in_conds;	/* domain->conds */
	struct unm_list in_set;
	pthread_mutex_t mutex;	/* FI_WAIT_MUTEX_COND */
	pthread_cond_t cond;
};

/*
 * Make a wait object; the structure is all zero. FI_WAIT_SET: the caller sets
 * set and cond_of. Returns as unm_wait_open() of api/unm_wait.h does.
 */
int unm_wait_make(struct unm_wait *w, struct fid *fid,
		  struct unm_domain *domain, enum fi_wait_obj obj);
/* Close its descriptors. */
void unm_wait_shut(struct unm_wait *w);

/* May a call of ours sleep on it? */
static inline bool unm_wait_sleeps(const struct unm_wait *w)
{
	return w->evfd >= 0;
}

/* Whoever sleeps has to look. Slow path of wanted != 0. */
void unm_wait_wake(struct unm_wait *w);

/* We shall poll: one of theirs will not be woken by what we find and has to
 * look for itself. It may be the very one that calls. */
void unm_wait_tell(struct unm_wait *w);
static inline void unm_wait_awake(struct unm_wait *w)
{
	if (__builtin_expect(w->waited, 0))
		unm_wait_tell(w);
}

/* Have the thread of the domain look, if there is one; the domain is locked. */
void unm_wait_kick(struct unm_domain *domain);

/* One of theirs may sleep from now on, or must not. */
void unm_wait_may(struct unm_wait *w, bool waited);
/* Take back what was written to evfd or appev. */
void unm_wait_lower(int fd);

/* For theirs: whoever sleeps is woken, and the next to is refused. */
void unm_wait_signal(struct unm_wait *w);

/* An event queue's: there is something to read, or there is nothing. Under the
 * lock of the queue. */
void unm_wait_level(struct unm_wait *w, bool there);
/* Signal its condition variable, or that of its set; no lock is held. */
void unm_wait_broadcast(struct unm_wait *w);
/* Block until there is something to read: 0, or after so long (ms). */
void unm_wait_there(struct unm_wait *w, int64_t ms);

/* It is woken by any descriptor that is readable. 0, or a negative fi_errno,
 * one line says so. */
int unm_wait_add_fd(struct unm_wait *w, int fd);

/* Signal the condition variables that are due; the domain is not locked. False:
 * a mutex was taken, try again soon. */
bool unm_wait_conds(struct unm_domain *domain);

/* ms until a time (us), rounded up, at least 0; -1 if timeout is negative */
int64_t unm_wait_left(uint64_t end, int timeout);
uint64_t unm_wait_end(int timeout);

#endif /* UNM_WAKE_H */
