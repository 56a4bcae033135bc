/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_sleep.h - sleeping on a wait object. Before a thread sleeps, the
 * endpoints whose packets are to wake it are armed (hal_if_arm()).
 *
 * core/unm_wake.h defines the two kinds of sleepers: threads inside the
 * provider's blocking calls, and application threads that block on what
 * FI_GETWAIT returned after fi_trywait(3) allowed it. The caller of each
 * function here holds the lock of the wait object's domain.
 */
#ifndef UNM_SLEEP_H
#define UNM_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct unm_idle;
struct unm_list;
struct unm_wait;

/*
 * fi_trywait() on one object. ready: the object has an entry, an event or a new
 * value to read. eps: endpoints that are to wake the application, a list of
 * struct unm_ep_links; NULL: none. Returns 0 if the application may block,
 * -FI_EAGAIN if it has to poll first, or -FI_EINVAL: nothing can block on a
 * wait object of this type.
 */
int unm_wait_try(struct unm_wait *w, bool ready, struct unm_list *eps);

/*
 * Sleep in a blocking call: until a packet or an event arrives at one of the
 * endpoints, until another thread wakes the wait object, or for ms milliseconds
 * at most (negative: no limit). The sleep may end early for no reason, so the
 * caller checks its condition again. eps NULL: no endpoint is armed.
 * The domain's lock is released during the sleep.
 */
void unm_wait_sleep(struct unm_wait *w, struct unm_list *eps, int64_t ms);

/* As unm_wait_sleep(); a wait object without descriptors (FI_WAIT_YIELD) yields
 * the processor instead. */
void unm_wait_idle(struct unm_wait *w, struct unm_list *eps,
		   struct unm_idle *idle, int64_t ms);

/* Sleep for a millisecond at most, without arming endpoints: only another
 * thread ends the sleep earlier. The domain's lock is released meanwhile. */
void unm_wait_nap(struct unm_wait *w);

#endif /* UNM_SLEEP_H */
