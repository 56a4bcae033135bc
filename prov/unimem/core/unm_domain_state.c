/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_domain_state.c - the slow paths of a domain's lock. */
#include <sched.h>
#include <unistd.h>

#include "core/unm_domain_state.h"

void unm_lock_wait(struct unm_domain *domain)
{
	/* a hint to unm_lock_pass(); orders nothing */
	atomic_fetch_add_explicit(&domain->waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&domain->lock);
	atomic_fetch_sub_explicit(&domain->waiters, 1, memory_order_relaxed);
}

void unm_lock_pass(struct unm_domain *domain)
{
	if (!domain->locked ||
	    atomic_load_explicit(&domain->waiters, memory_order_relaxed) == 0)
		return;
	pthread_mutex_unlock(&domain->lock);
	for (int i = 0; i < 100 && atomic_load_explicit(&domain->waiters,
						memory_order_relaxed); i++)
		sched_yield();
	unm_lock(domain);
}

bool unm_lock_close(struct unm_domain *domain, pid_t opener)
{
	if (opener == getpid())
		unm_lock(domain);
	else if (domain->locked && pthread_mutex_trylock(&domain->lock) != 0)
		return false;
	return true;
}
