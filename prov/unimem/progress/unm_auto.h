/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_auto.h - the progress thread of a domain. A domain has one if it was
 * opened with FI_PROGRESS_AUTO, or as soon as an object of the domain is opened
 * with a condition variable (FI_WAIT_MUTEX_COND), which the thread signals. It
 * runs until the domain is closed.
 */
#ifndef UNM_AUTO_H
#define UNM_AUTO_H

struct unm_domain;
struct unm_wait;

/*
 * Start the domain's progress thread, unless it runs already, and switch the
 * domain's lock on. Thread-safe; the caller holds no lock. If the lock was off
 * (FI_THREAD_DOMAIN), no other thread may be in a call on the domain: the
 * application has promised that by its threading model. Returns 0, or after one
 * line in the log -FI_EMFILE, -FI_ENOMEM or -FI_EAGAIN: there is no thread.
 */
int unm_auto_start(struct unm_domain *domain);

/* Stop and join the domain's progress thread, if it has one. A forked child has
 * no such thread: there the call only frees its state. No lock is held. */
void unm_auto_stop(struct unm_domain *domain);

/* Make the progress thread signal the condition variable of a wait object
 * (add), or stop it from doing so (remove). The domain has a progress thread,
 * and the caller holds no lock. */
void unm_auto_add_cond(struct unm_wait *w);
void unm_auto_remove_cond(struct unm_wait *w);

#endif /* UNM_AUTO_H */
