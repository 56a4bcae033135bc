/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wake.h - wait object of a queue, a counter, a wait set or the domain's
 * progress thread: threads that sleep, and their wake-up (unm_wake.c).
 *
 * There are two kinds of sleepers. They share no descriptor except those of the
 * endpoints, so that neither consumes the other's wake-up:
 *   internal  threads inside fi_cq_sread() or fi_cntr_wait(); they poll the
 *             endpoints and evfd
 *   external  threads of the application that block on the object of
 *             FI_GETWAIT after fi_trywait() returned 0; they poll appfd, which
 *             contains the endpoints and appev, or a condition variable
 *
 * The lock of the domain protects a wait object; an event queue has no domain,
 * and the queue's own lock protects its wait object. With FI_WAIT_NONE and
 * FI_WAIT_YIELD there is no descriptor, and no thread sleeps.
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

/* A wait object, embedded in the object that fid names. Descriptors are -1 if
 * they do not exist. */
struct unm_wait {
	uint32_t wanted;	/* not 0: a thread may sleep, so events have to
				 * call unm_wait_wake() */
	enum fi_wait_obj obj;	/* kind, as the application requested it */
	struct unm_domain *domain;	/* NULL: of an event queue or a wait
					 * set */
	struct fid *fid;		/* object that the wait object belongs
					 * to; NULL: the progress thread */
	struct unm_wait_set *set;	/* FI_WAIT_SET: the set it is in */
	int epfd;		/* epoll set of the endpoints' descriptors; in a
				 * wait set, of epfd and appev of its members */
	int evfd;		/* event fd that wakes internal sleepers */
	int appev;		/* event fd that wakes external sleepers */
	int appfd;		/* epoll set of epfd and appev: FI_GETWAIT */
	uint32_t asleep;	/* internal sleepers */
	uint32_t unaware;	/* internal sleepers that were woken and do not
				 * run yet */
	uint32_t epoch;		/* wake-ups of internal sleepers */
	bool waited;		/* an external sleeper may sleep: fi_trywait()
				 * returned 0, and no wake-up followed */
	bool woken;		/* external sleepers were woken since the last
				 * fi_trywait() */
	bool signalled;		/* the next fi_trywait() returns -FI_EAGAIN */
	bool due;		/* the condition variable is to be signalled */
	struct unm_wait *cond_of;	/* wait object with this condition
					 * variable: itself or its set; NULL:
					 * none */
	struct unm_list in_conds;	/* in domain->conds */
	struct unm_list in_set;		/* in the list of its set */
	pthread_mutex_t mutex;	/* FI_WAIT_MUTEX_COND */
	pthread_cond_t cond;
};

/*
 * Make a wait object; the structure is all zero. FI_WAIT_SET: the caller sets
 * set and cond_of. Returns as unm_wait_open() of api/unm_wait.h does.
 */
int unm_wait_make(struct unm_wait *w, struct fid *fid,
		  struct unm_domain *domain, enum fi_wait_obj obj);

/* Close the descriptors. */
void unm_wait_shut(struct unm_wait *w);

/* True if an internal sleeper can sleep. */
static inline bool unm_wait_sleeps(const struct unm_wait *w)
{
	return w->evfd >= 0;
}

/* Wake all sleepers, so that they poll. Call if wanted is not 0. */
void unm_wait_wake(struct unm_wait *w);

/* The calling thread is going to poll, and may consume events that would have
 * woken an external sleeper: wake the sleeper now, so that it polls itself. */
void unm_wait_wake_external(struct unm_wait *w);
static inline void unm_wait_awake(struct unm_wait *w)
{
	if (__builtin_expect(w->waited, 0))
		unm_wait_wake_external(w);
}

/* Wake the domain's progress thread, if there is one. The domain is locked. */
void unm_wait_wake_progress(struct unm_domain *domain);

/* Set waited: an external sleeper may sleep from now on, or must not. */
void unm_wait_set_waited(struct unm_wait *w, bool waited);

/* Reset the event fd, if it was raised. */
void unm_wait_lower(int fd);

/* Wake the external sleepers, and let the next fi_trywait() return -FI_EAGAIN.
 */
void unm_wait_signal(struct unm_wait *w);

/* Raise or reset the event fds of an event queue; there: the queue has an event
 * to read. The queue is locked. */
void unm_wait_set_readable(struct unm_wait *w, bool there);

/* Signal the condition variable of the object or of its set. The caller holds
 * no lock. */
void unm_wait_broadcast(struct unm_wait *w);

/* Block until the event queue has an event to read, at most ms milliseconds
 * (negative: no limit). */
void unm_wait_for_event(struct unm_wait *w, int64_t ms);

/* Add a descriptor whose readability wakes all sleepers. 0, or a negative
 * fi_errno after a log line. */
int unm_wait_add_fd(struct unm_wait *w, int fd);

/* Signal the condition variables that are due. The domain is not locked. False
 * if a mutex was locked by another thread: call again soon. */
bool unm_wait_signal_conds(struct unm_domain *domain);

/* Milliseconds until end (us), rounded up, at least 0; -1 if timeout is
 * negative. */
int64_t unm_wait_left(uint64_t end, int timeout);

/* The time (us) timeout milliseconds from now; 0 if timeout is negative. */
uint64_t unm_wait_end(int timeout);

#endif /* UNM_WAKE_H */
