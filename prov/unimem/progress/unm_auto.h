/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_auto.h - the progress thread of a domain: FI_PROGRESS_AUTO, and whoever
 * waits on a condition variable. There is none unless one is asked for.
 */
#ifndef UNM_AUTO_H
#define UNM_AUTO_H

struct unm_domain;
struct unm_wait;

/* Start it if there is none yet; the domain is locked from here on. Where it
 * was not before, no other thread is in a call on the domain: its application
 * promised so. The caller has no lock. 0; -FI_EMFILE, -FI_ENOMEM, -FI_EAGAIN:
 * no thread, one line says so. */
int unm_auto_start(struct unm_domain *domain);

/* Stop and join it, if there is one; in a forked child there is nothing to be
 * joined. */
void unm_auto_stop(struct unm_domain *domain);

/* Its condition variable is the thread's to signal, or no longer. */
void unm_auto_heed(struct unm_wait *w);
void unm_auto_forget(struct unm_wait *w);

#endif /* UNM_AUTO_H */
