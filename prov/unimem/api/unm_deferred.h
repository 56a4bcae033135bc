/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_deferred.h - fi_trigger(3): requests to queue, cancel and flush deferred
 * work. */
#ifndef UNM_DEFERRED_H
#define UNM_DEFERRED_H

struct unm_domain;

/* fi_control(3) on a domain: FI_QUEUE_WORK, FI_CANCEL_WORK (arg: struct
 * fi_deferred_work) and FI_FLUSH_WORK. Returns 0, a negative fi_errno, or
 * -FI_ENOSYS for other commands. The domain is not locked. */
int unm_trigger_control(struct unm_domain *domain, int command, void *arg);

#endif /* UNM_DEFERRED_H */
