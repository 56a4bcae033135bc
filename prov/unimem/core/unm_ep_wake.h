/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep_wake.h - the wait objects that an endpoint wakes: those of its queues
 * and counters, of counters that any endpoint may increment, and of the
 * domain's progress thread (unm_ep_wake.c). unm_wake.h has a single wait
 * object.
 *
 * The caller of each function holds the lock of the domain.
 */
#ifndef UNM_EP_WAKE_H
#define UNM_EP_WAKE_H

struct unm_cntr;
struct unm_domain;
struct unm_ep;
struct unm_wait;

/* Add the descriptor of an endpoint that is being enabled to all wait objects
 * that it wakes, or remove the descriptor when the endpoint is closed. Adding
 * returns 0, or a negative fi_errno after a log line; then some wait objects
 * may have the descriptor. */
int unm_wait_add_ep(struct unm_ep *ep);
void unm_wait_remove_ep(struct unm_ep *ep);

/* Add the descriptors of all endpoints of the domain to one wait object.
 * Returns as unm_wait_add_ep() does. */
int unm_wait_add_all(struct unm_wait *w);

/* Wake all threads that sleep on wait objects of the endpoint, because a call
 * of another thread has made polling necessary after fi_trywait() had returned
 * 0. */
void unm_ep_wake_all(struct unm_ep *ep);

/* Report that operations which returned -FI_EAGAIN may be tried again. Threads
 * that block on a descriptor of the endpoint's queues and counters are woken,
 * and the next fi_trywait() for each of them returns -FI_EAGAIN. */
void unm_ep_signal_retry(struct unm_ep *ep);

/* Work became ready, or work that was refused became possible. The current call
 * may not be a poll, so wake the threads that sleep. */
void unm_trigger_wake(struct unm_domain *domain);

/* A receive was released after others had been refused (ep->recvs_wanted):
 * report that these, and refused work, may be tried again. The current call may
 * not be a poll. */
void unm_ep_signal_recv(struct unm_ep *ep);

/* Take a reference to a counter for deferred work or a region: from now on any
 * endpoint of the domain may increment the counter. Returns 0; -FI_ENOMEM or
 * -FI_ENOSPC if the endpoints' descriptors cannot be added to the counter's
 * wait object: then no reference is taken. */
int unm_cntr_of_all(struct unm_cntr *cntr);

#endif /* UNM_EP_WAKE_H */
