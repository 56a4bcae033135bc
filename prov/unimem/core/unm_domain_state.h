/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_domain_state.h - state of a fabric and of a domain, and the domain's lock
 * (unm_domain_state.c). api/unm_domain.c opens and closes both.
 */
#ifndef UNM_DOMAIN_STATE_H
#define UNM_DOMAIN_STATE_H

#include <pthread.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>

#include "core/unm_obj.h"
#include "util/unm_list.h"

struct hal;
struct unm_auto;
struct unm_heap;
struct unm_mr;
struct unm_work;

#define UNM_WAYS	8192		/* bits of unm_domain.refused, 2^n */

/* A fabric, from fi_fabric() to fi_close(). */
struct unm_fabric {
	struct fid_fabric fid;
	struct unm_ref ref;		/* domains, event queues, wait sets */
};

/*
 * A domain, from fi_domain() to fi_close(). Its lock protects its own fields
 * and those of all endpoints, queues, counters, vectors and regions in it.
 */
struct unm_domain {
	struct fid_domain fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;		/* objects in the domain */
	struct hal *hal;		/* device, one a domain */
	_Atomic(struct unm_heap *) heap;	/* dmable memory, unm_mem.c;
						 * NULL: never requested */
	struct fi_info *info;		/* copy of the argument of fi_domain()
					 */
	void *regions;			/* open regions by key, a tree of
					 * tsearch(3): unm_region.c */
	struct unm_mr *region_hit;	/* region found last, or NULL */
	uint32_t region_number;		/* number of the newest region */
	uint32_t av_number;		/* number of the newest vector */
	/*
	 * The lock is taken by the API calls, and only if the application
	 * asked for more thread safety than FI_THREAD_DOMAIN.
	 */
	bool locked;			/* the lock is in use */
	bool runs;			/* a thread is starting ready work */
	_Atomic int waiters;		/* threads that wait for the lock */
	struct unm_list ready;		/* deferred work to be started:
					 * unm_trigger.c */
	pthread_mutex_t lock;
	struct unm_list eps;		/* enabled endpoints */
	struct unm_list cntrs;		/* counters that any endpoint may
					 * increment (unm_cntr.of_all) */
	struct unm_list cqs;		/* all completion queues */
	struct unm_list works;		/* all deferred work */
	struct unm_work *starts;	/* work that is being started */
	struct unm_list *next;		/* work in ready to be started next */
	uint32_t awaits;		/* threads that wait for the end of
					 * starts */
	uint32_t revokers;		/* threads that wait until peers have
					 * left memory: unm_revoke.c */
	uint32_t passes;		/* passes over ready begun so far */
	bool moved;			/* unm_trigger_again() was called since
					 * the current pass began */
	bool fruitless;			/* unm_trigger_again() was not called
					 * since the previous pass began */
	uint64_t refused[UNM_WAYS / 64];	/* bit: a hash of endpoint,
						 * direction and destination of
						 * work that was refused in the
						 * current pass */
	struct unm_auto *progress;	/* progress thread, unm_auto.c; NULL:
					 * none */
	struct unm_wait *thread_wait;	/* its wait object, or NULL */
	bool progress_woken;		/* the progress thread was woken since
					 * it last polled */
	struct unm_list conds;		/* wait objects whose condition
					 * variable this thread signals */
	pthread_mutex_t cond_lock;	/* protects conds; taken before lock */
};

/* Slow path of unm_lock(): block until the lock is free. */
void unm_lock_wait(struct unm_domain *domain);

/* Release the lock for threads that wait for it, and take it again. Called by a
 * thread that polls for a long time, because a mutex is not fair. */
void unm_lock_pass(struct unm_domain *domain);

/*
 * Take the lock to close an object; opener: process that opened the object.
 * False if this process is a forked child, and a thread of the parent held the
 * lock at the fork. The lock is never released then, and the caller must not
 * touch the state that it protects, which may be inconsistent.
 */
bool unm_lock_close(struct unm_domain *domain, pid_t opener);

/* Take the lock, if the domain uses it. */
static inline void unm_lock(struct unm_domain *domain)
{
	if (domain->locked && pthread_mutex_trylock(&domain->lock) != 0)
		unm_lock_wait(domain);
}

static inline void unm_unlock(struct unm_domain *domain)
{
	if (domain->locked)
		pthread_mutex_unlock(&domain->lock);
}

static inline struct unm_domain *unm_domain(struct fid_domain *fid)
{
	return (struct unm_domain *)fid;
}

/* ---- Work that is ready: trigger/unm_trigger.c starts it ----------------- */

/* Operations that were refused may be possible now: try all ready work again.
 */
static inline void unm_trigger_again(struct unm_domain *domain)
{
	domain->moved = true;
	domain->fruitless = false;
}

/* True if work is ready. */
static inline bool unm_trigger_waits(const struct unm_domain *domain)
{
	return !unm_list_empty(&domain->ready);
}

/*
 * True: work is ready that may start now, so nobody may sleep before a poll has
 * tried it. False: two passes over the ready work were refused everywhere, and
 * nothing has changed since; unm_ep_signal_retry(), unm_ep_signal_recv() or the
 * call that reads a full completion queue wakes the sleepers when some of it
 * can start. The domain is locked.
 */
static inline bool unm_trigger_runnable(const struct unm_domain *domain)
{
	return unm_trigger_waits(domain) &&
		(domain->moved || !domain->fruitless ||
		 domain->next != &domain->ready);
}

#endif /* UNM_DOMAIN_STATE_H */
