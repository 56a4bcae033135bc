/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_lock.h - lock between the threads of one process; private to the HAL.
 *
 * For slow paths only: a waiting thread spins and yields the processor. The
 * lock is no lock between processes.
 */
#ifndef HAL_LOCK_H
#define HAL_LOCK_H

/* All zero: free. Any memory of the process; no destructor is needed. */
struct hal_lock {
	_Atomic int holder;		/* process id of the holder, 0: free */
};

/* Wait for the lock and take it. The calling thread must not hold it already.
 * A forked child takes over a lock that a thread of its parent held at fork(),
 * so the data under the lock may then be half changed. */
void hal_lock(struct hal_lock *lock);

/* Release the lock that the calling thread holds. */
void hal_unlock(struct hal_lock *lock);

#endif /* HAL_LOCK_H */
