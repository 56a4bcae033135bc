/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_lock.c - lock between the threads of one process, safe over fork().
 *
 * Entry points: hal_lock(), hal_unlock().
 */
#include <sched.h>
#include <stdatomic.h>

#include "hal/hal_lock.h"
#include "hal/hal_pid.h"

/* After so many failed attempts a waiting thread yields the processor. */
#define SPINS		32

/*
 * The word holds the process id of the holder: a child that is forked while
 * another thread holds the lock finds the id of its parent, and takes the lock
 * over. No pthread_atfork() handler is needed: a library that may be unloaded
 * must not leave one behind.
 */
void hal_lock(struct hal_lock *lock)
{
	int self = (int)hal_pid();

	for (int spins = 0; ; spins++) {
		int seen = 0;

		/* pairs with the release in hal_unlock() */
		if (atomic_compare_exchange_strong_explicit(&lock->holder,
				&seen, self, memory_order_acquire,
				memory_order_relaxed))
			return;
		if (seen != self &&
		    atomic_compare_exchange_strong_explicit(&lock->holder,
				&seen, self, memory_order_acquire,
				memory_order_relaxed))
			return;
		if (spins > SPINS)
			sched_yield();
	}
}

void hal_unlock(struct hal_lock *lock)
{
	/* pairs with the acquire in hal_lock() */
	atomic_store_explicit(&lock->holder, 0, memory_order_release);
}
