/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep_wake.h - the wait objects that an endpoint wakes: those of the queues
 * and counters it is bound to, and of the domain's thread.
 */
#ifndef UNM_EP_WAKE_H
#define UNM_EP_WAKE_H

struct unm_cntr;
struct unm_ep;
struct unm_wait;

/* An endpoint is enabled, or closed: those that wait on what it may move are
 * woken by it, or no longer. The domain is locked. 0, or a negative fi_errno,
 * one line says so; then some may be woken already. */
int unm_wait_add_ep(struct unm_ep *ep);
void unm_wait_remove_ep(struct unm_ep *ep);
/* The same of one wait object, by all endpoints of the domain there are. The
 * domain is locked. */
int unm_wait_add_all(struct unm_wait *w);

/* What a thread blocked on a descriptor was promised by fi_trywait() is no
 * longer so, by another thread's doing: have it look again. */
void unm_disturb(struct unm_ep *ep);

/* What was refused may be tried again: whoever blocks on a descriptor is woken,
 * and fi_trywait() refuses once, for each queue and counter. */
void unm_room(struct unm_ep *ep);

/* Take a reference for work or a region that counts there: progress of the
 * whole domain moves it from now on. The domain is locked. 0; -FI_ENOMEM,
 * -FI_ENOSPC: not all endpoints would wake who waits, no reference is taken. */
int unm_cntr_of_all(struct unm_cntr *cntr);

#endif /* UNM_EP_WAKE_H */
