/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_auto.c - the progress thread of a domain.
 *
 * The thread arms the domain's endpoints, sleeps on their descriptors, and
 * polls the endpoints when it is woken. An application thread that polls
 * disarms the endpoints and wakes the progress thread. As long as an
 * application thread polls, the progress thread sleeps for a millisecond at a
 * time without arming the endpoints, so that the two threads do not wake and
 * disarm each other; it arms them again when the polling has ended.
 *
 * A forked child has no progress thread. fork() waits until no thread is in a
 * call on a domain with a progress thread, so that the child's copy of the
 * domain is consistent. It waits for UNM_FORK_US at most, because a signal
 * handler may fork in the middle of a call: then the lock stays taken in the
 * child, and closing objects there does without it (unm_lock_close()).
 *
 * Entry points: unm_auto_start(), unm_auto_stop(). Condition variables are
 * signalled by unm_wait_signal_conds() (core/unm_wake.c), which the thread
 * calls.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_wake.h"
#include "progress/unm_auto.h"
#include "progress/unm_progress.h"
#include "progress/unm_sleep.h"
#include "trigger/unm_trigger.h"
#include "unm_log.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

#define UNM_FORK_US	200000		/* longest wait of fork() for a lock */

/*
 * A progress thread, from unm_auto_start() to unm_auto_stop():
 * domain->progress. wait, turns and stop are protected by the domain's lock;
 * link and held by g_unm_autos_lock; the rest does not change while the thread
 * runs.
 */
struct unm_auto {
	struct unm_domain *domain;
	struct unm_list link;		/* in g_unm_autos */
	struct unm_wait wait;		/* the thread sleeps on it */
	pthread_t thread;
	pid_t pid;			/* process that the thread is in */
	uint32_t turns;			/* polls of the endpoints until the
					 * thread last polled, a sum */
	bool stop;			/* the thread shall return */
	bool held, held_conds;		/* fork() holds the domain's lock, its
					 * cond_lock */
};

/* ---- fork() ---------------------------------------------------------- */

static pthread_mutex_t g_unm_autos_lock = PTHREAD_MUTEX_INITIALIZER;
static struct unm_list g_unm_autos = { &g_unm_autos, &g_unm_autos };
static pthread_once_t g_unm_autos_once = PTHREAD_ONCE_INIT;

/* Take a lock, unless a signal handler that forks interrupted its holder: false
 * after UNM_FORK_US. */
static bool unm_auto_take(pthread_mutex_t *lock)
{
	uint64_t end = unm_now_us() + UNM_FORK_US;

	while (pthread_mutex_trylock(lock) != 0) {
		if (unm_now_us() > end)
			return false;
		sched_yield();
	}
	return true;
}

static void unm_auto_before_fork(void)
{
	pthread_mutex_lock(&g_unm_autos_lock);
	unm_list_for_each(pos, &g_unm_autos) {
		struct unm_auto *a = unm_container(pos, struct unm_auto, link);

		a->held_conds = unm_auto_take(&a->domain->cond_lock);
		a->held = unm_auto_take(&a->domain->lock);
	}
}

static void unm_auto_after_fork(void)
{
	unm_list_for_each(pos, &g_unm_autos) {
		struct unm_auto *a = unm_container(pos, struct unm_auto, link);

		if (a->held)
			pthread_mutex_unlock(&a->domain->lock);
		if (a->held_conds)
			pthread_mutex_unlock(&a->domain->cond_lock);
	}
	pthread_mutex_unlock(&g_unm_autos_lock);
}

/* glibc removes the handlers when the library is unloaded. */
static void unm_auto_handlers(void)
{
	pthread_atfork(unm_auto_before_fork, unm_auto_after_fork,
		       unm_auto_after_fork);
}

static void unm_auto_unlist(struct unm_auto *a)
{
	pthread_mutex_lock(&g_unm_autos_lock);
	unm_list_remove(&a->link);
	pthread_mutex_unlock(&g_unm_autos_lock);
}

/* ---- The thread ------------------------------------------------------ */

/* How often any thread has polled the domain's endpoints. */
static uint32_t unm_auto_turns(const struct unm_auto *a)
{
	uint32_t turns = 0;

	unm_list_for_each(pos, &a->domain->eps)
		turns += unm_container(pos, struct unm_ep_links,
				       node)->ep->turns;
	return turns;
}

static int unm_auto_poll(struct unm_auto *a)
{
	int done = 0;

	unm_poll_begin(&a->domain->eps);
	unm_list_for_each(pos, &a->domain->eps)
		done += unm_progress(unm_container(pos, struct unm_ep_links,
						   node)->ep);
	return done + unm_trigger_run(a->domain);
}

static void *unm_auto_main(void *arg)
{
	struct unm_auto *a = arg;
	struct unm_domain *domain = a->domain;
	uint32_t empty = 0;

	unm_lock(domain);
	while (!a->stop) {
		bool others = unm_auto_turns(a) != a->turns;
		bool conds;

		domain->progress_woken = false;
		empty = unm_auto_poll(a) == 0 ? empty + 1 : 0;
		a->turns = unm_auto_turns(a);
		unm_unlock(domain);
		conds = unm_wait_signal_conds(domain);
		unm_lock(domain);
		/* poll on after work or a wake-up; nap while other threads poll
		 * or a condition's mutex was taken; else sleep */
		if (a->stop || domain->progress_woken ||
		    empty < UNM_CLOCK_POLLS)
			;
		else if (others || !conds)
			unm_wait_nap(&a->wait);
		else
			unm_wait_sleep(&a->wait, &domain->eps, -1);
		unm_lock_pass(domain);
	}
	unm_unlock(domain);
	return NULL;
}

/* ---- Start and stop -------------------------------------------------- */

/* Create the thread with all signals blocked, so that the application's signal
 * handlers do not run in it; except for the signals of its own faults. */
static int unm_auto_thread(struct unm_auto *a)
{
	static const int faults[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
	};
	sigset_t all, was;
	int ret;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	ret = pthread_create(&a->thread, NULL, unm_auto_main, a);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return -ret;
}

/* Start the thread. The domain's lock is held until the endpoints wake its wait
 * object, so that an endpoint that is enabled meanwhile is not missed. */
static int unm_auto_begin(struct unm_auto *a)
{
	struct unm_domain *domain = a->domain;
	int ret;

	if (!domain->locked)
		domain->locked = true;
	unm_lock(domain);
	ret = unm_wait_add_all(&a->wait);
	if (ret == 0)
		ret = unm_auto_thread(a);
	if (ret == 0) {
		domain->progress = a;
		domain->thread_wait = &a->wait;
	}
	unm_unlock(domain);
	if (ret != 0)
		UNM_WARN(DOMAIN, "no progress thread: %s (ulimit -u, "
			 "ulimit -n?)", fi_strerror(-ret));
	return ret;
}

static int unm_auto_open(struct unm_domain *domain)
{
	struct unm_auto *a = calloc(1, sizeof(*a));
	int ret;

	if (a == NULL)
		return -FI_ENOMEM;
	a->domain = domain;
	a->pid = getpid();
	ret = unm_wait_make(&a->wait, NULL, domain, FI_WAIT_UNSPEC);
	if (ret != 0)
		goto free_auto;
	ret = unm_auto_begin(a);
	if (ret != 0)
		goto close_wait;
	unm_list_append(&g_unm_autos, &a->link);
	return 0;
close_wait:
	unm_wait_shut(&a->wait);
free_auto:
	free(a);
	return ret;
}

/* g_unm_autos_lock is held until the thread is in the list: two callers start
 * one thread, and fork() does not miss it. */
int unm_auto_start(struct unm_domain *domain)
{
	int ret = 0;

	pthread_once(&g_unm_autos_once, unm_auto_handlers);
	pthread_mutex_lock(&g_unm_autos_lock);
	if (domain->progress == NULL)
		ret = unm_auto_open(domain);
	pthread_mutex_unlock(&g_unm_autos_lock);
	return ret;
}

void unm_auto_stop(struct unm_domain *domain)
{
	struct unm_auto *a = domain->progress;

	if (a == NULL)
		return;
	unm_auto_unlist(a);
	if (a->pid == getpid()) {
		unm_lock(domain);
		a->stop = true;
		unm_wait_wake_progress(domain);
		unm_unlock(domain);
		pthread_join(a->thread, NULL);
	}
	domain->progress = NULL;
	domain->thread_wait = NULL;
	unm_wait_shut(&a->wait);
	free(a);
}

void unm_auto_add_cond(struct unm_wait *w)
{
	pthread_mutex_lock(&w->domain->cond_lock);
	unm_list_append(&w->domain->conds, &w->in_conds);
	pthread_mutex_unlock(&w->domain->cond_lock);
}

/* In a forked child no thread signals, and the lock may stay taken for ever. */
void unm_auto_remove_cond(struct unm_wait *w)
{
	struct unm_domain *domain = w->domain;

	if (domain->progress->pid == getpid())
		pthread_mutex_lock(&domain->cond_lock);
	else if (pthread_mutex_trylock(&domain->cond_lock) != 0)
		return;
	unm_list_remove(&w->in_conds);
	pthread_mutex_unlock(&domain->cond_lock);
}
