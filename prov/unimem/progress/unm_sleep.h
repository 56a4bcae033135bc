/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_sleep.h - sleeping on a wait object: the endpoints that shall end the
 * sleep are armed first.
 */
#ifndef UNM_SLEEP_H
#define UNM_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct unm_idle;
struct unm_list;
struct unm_wait;

/*
 * fi_trywait(): may one of theirs sleep? news: there is something to read.
 * eps: endpoints it is to be woken by, NULL: none. 0, -FI_EAGAIN; -FI_EINVAL:
 * it is no object that anybody sleeps on.
 */
int unm_wait_try(struct unm_wait *w, bool news, struct unm_list *eps);

/*
 * One of ours sleeps until something happens on the endpoints of a list, until
 * it is woken, or for so long (ms; < 0: no limit, but a limit there is: the
 * caller looks at its condition and calls again). The domain's lock is
 * released meanwhile. eps NULL: it is woken by other threads only.
 */
void unm_wait_sleep(struct unm_wait *w, struct unm_list *eps, int64_t ms);

/* The same, or where there is nothing to sleep on give the processor away. */
void unm_wait_idle(struct unm_wait *w, struct unm_list *eps,
		   struct unm_idle *idle, int64_t ms);

/* The same without being woken by endpoints, a millisecond at most. */
void unm_wait_nap(struct unm_wait *w);

#endif /* UNM_SLEEP_H */
