/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_deferred.h - the deferred work of fi_trigger(3). */
#ifndef UNM_DEFERRED_H
#define UNM_DEFERRED_H

struct unm_domain;

/* FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of fi_control(3). */
int unm_trigger_control(struct unm_domain *domain, int command, void *arg);

#endif /* UNM_DEFERRED_H */
