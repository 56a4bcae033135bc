/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_domain_state.h - fabric and domain: their state, and the lock that
 * protects what belongs to a domain.
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

#define UNM_WAYS	8192		/* bits for ways of work, 2^n */

struct unm_fabric {
	struct fid_fabric fid;
	struct unm_ref ref;
};

struct unm_domain {
	struct fid_domain fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;
	struct hal *hal;
	_Atomic(struct unm_heap *) heap;	/* NULL: no dmable memory was
						 * asked for: unm_mem.c */
	struct fi_info *info;		/* as the domain was asked for */
	void *regions;			/* those open, by key:
					 * unm_region.c */
	struct unm_mr *region_hit;	/* the one found last, or NULL */
	uint32_t region_number;		/* given last */
	uint32_t av_number;		/* of the vector opened last */
	/*
	 * One lock for the domain's endpoints, queues and vectors, taken at the
	 * API and only where the application asked for more than
	 * FI_THREAD_DOMAIN.
	 */
	bool locked;
	bool runs;			/* a thread starts what is ready */
	_Atomic int waiters;		/* threads that want the lock */
	struct unm_list ready;		/* work to be started: unm_trigger.c */
	pthread_mutex_t lock;
	struct unm_list eps;		/* enabled ones */
	struct unm_list cntrs;		/* those that any of them moves */
	struct unm_list cqs;		/* all completion queues */
	struct unm_list works;		/* all of it */
	struct unm_work *starts;	/* the one that is being started */
	struct unm_list *next;		/* ... and the one to be so next */
	uint32_t awaits;		/* threads that wait for its end */
	uint32_t revokers;		/* threads that wait for peers inside
					 * memory: unm_revoke.c */
	uint32_t passes;		/* over ready, begun so far */
	bool moved;			/* since this one began something did */
	bool fruitless;			/* and in the last one nothing */
	uint64_t refused[UNM_WAYS / 64];	/* ways, in this one */
	struct unm_auto *progress;	/* thread, or NULL: unm_auto.c */
	struct unm_wait *thread_wait;	/* what it sleeps on, or NULL */
	bool kicked;			/* it was woken since it last polled */
	struct unm_list conds;		/* wait objects it has to signal ... */
	pthread_mutex_t cond_lock;	/* ... and their lock, before ours */
};

void unm_lock_wait(struct unm_domain *domain);
void unm_lock_pass(struct unm_domain *domain);
/*
 * The lock, to close what a process opened. False: this is a forked child, and
 * a thread of the parent's had the lock, here for ever. What that guards may be
 * half changed, and is left alone.
 */
bool unm_lock_close(struct unm_domain *domain, pid_t opener);

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

/* What was refused may go now: all of it is worth a look. */
static inline void unm_trigger_again(struct unm_domain *domain)
{
	domain->moved = true;
	domain->fruitless = false;
}

static inline bool unm_trigger_waits(const struct unm_domain *domain)
{
	return !unm_list_empty(&domain->ready);
}

/*
 * True: work is ready that may start now, so nobody may sleep before a poll has
 * tried it. False: two passes over the ready work were refused everywhere, and
 * nothing has changed since; unm_room() wakes the sleepers when some of it can
 * start. The domain is locked.
 */
static inline bool unm_trigger_news(const struct unm_domain *domain)
{
	return unm_trigger_waits(domain) &&
		(domain->moved || !domain->fruitless ||
		 domain->next != &domain->ready);
}

#endif /* UNM_DOMAIN_STATE_H */
