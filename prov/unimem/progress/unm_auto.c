/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_auto.c - the progress thread of a domain.
 *
 * It sleeps on the descriptors of the domain's endpoints, armed, and polls them
 * when it is woken. Who polls for himself disarms them and wakes it: while that
 * goes on it looks once in a millisecond whether it still does, without arming,
 * so that neither disturbs the other; when it has ended, it sleeps again.
 *
 * A forked child has no such thread. So that what it was about to change is
 * whole in the child, fork() waits until no domain with a thread is in a call;
 * but not for long, as a signal handler may fork in the middle of one. Then the
 * lock stays taken in the child, and what closes objects there does without.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_idle.h"
#include "core/unm_wake.h"
#include "progress/unm_auto.h"
#include "progress/unm_progress.h"
#include "progress/unm_sleep.h"
#include "trigger/unm_trigger.h"
#include "unm_log.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

#define UNM_FORK_US	200000		/* for a lock that is not let go */

struct unm_auto {
	struct unm_domain *domain;
	struct unm_list link;		/* g_unm_autos */
	struct unm_wait wait;
	struct unm_idle idle;
	pthread_t thread;
	pid_t pid;			/* whose thread it is */
	uint32_t turns;			/* of the endpoints, as it left them */
	bool stop;
	bool held, held_conds;		/* its domain's locks, over a fork() */
};

/* ---- fork() ---------------------------------------------------------- */

static pthread_mutex_t g_unm_autos_lock = PTHREAD_MUTEX_INITIALIZER;
static struct unm_list g_unm_autos = { &g_unm_autos, &g_unm_autos };
static pthread_once_t g_unm_autos_once = PTHREAD_ONCE_INIT;

/* A signal handler that forks may have interrupted a call of ours. */
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

/* The handlers go with the library when it is unloaded. */
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

	unm_awake_list(&a->domain->eps);
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

		domain->kicked = false;
		empty = unm_auto_poll(a) == 0 ? empty + 1 : 0;
		a->turns = unm_auto_turns(a);
		unm_unlock(domain);
		conds = unm_wait_conds(domain);
		unm_lock(domain);
		if (a->stop || domain->kicked || empty < UNM_CLOCK_POLLS)
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

/* A thread of a library takes no signal of the application's, but for those
 * that are its own fault. */
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

/* Endpoints and thread find each other: both come under the domain's lock. */
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

/* One at a time, and no fork() before it is in the list. */
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
		unm_wait_kick(domain);
		unm_unlock(domain);
		pthread_join(a->thread, NULL);
	}
	domain->progress = NULL;
	domain->thread_wait = NULL;
	unm_wait_shut(&a->wait);
	free(a);
}

void unm_auto_heed(struct unm_wait *w)
{
	pthread_mutex_lock(&w->domain->cond_lock);
	unm_list_append(&w->domain->conds, &w->in_conds);
	pthread_mutex_unlock(&w->domain->cond_lock);
}

/* In a forked child nobody signals, and the lock may be taken for ever. */
void unm_auto_forget(struct unm_wait *w)
{
	struct unm_domain *domain = w->domain;

	if (domain->progress->pid == getpid())
		pthread_mutex_lock(&domain->cond_lock);
	else if (pthread_mutex_trylock(&domain->cond_lock) != 0)
		return;
	unm_list_remove(&w->in_conds);
	pthread_mutex_unlock(&domain->cond_lock);
}
