/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wait.h - opening and closing the wait object of a queue or counter. Joins
 * the object to its wait set (FI_WAIT_SET), and starts the progress thread that
 * signals condition variables. core/unm_wake.h has the wait object itself.
 */
#ifndef UNM_WAIT_H
#define UNM_WAIT_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct unm_domain;
struct unm_wait;

/*
 * Open the wait object w, all zero, of the object fid; the last step of opening
 * fid, as other threads may use it from then on. domain: the domain of fid;
 * NULL: fid is an event queue or a wait set. set: the wait set to join if obj
 * is FI_WAIT_SET, else ignored. Returns 0; -FI_EINVAL: set is no wait set;
 * -FI_ENOSYS: obj is not offered; -FI_EMFILE, -FI_ENOMEM after one line in the
 * log. On failure nothing stays open. The domain is not locked.
 */
int unm_wait_open(struct unm_wait *w, struct fid *fid,
		  struct unm_domain *domain, enum fi_wait_obj obj,
		  struct fid_wait *set);
/* Leave the wait set and the progress thread, then close the descriptors. The
 * domain is not locked. */
void unm_wait_close(struct unm_wait *w);

/* FI_GETWAIT and FI_GETWAITOBJ of fi_control(3). Returns 0; -FI_ENOSYS: another
 * command, or the wait object has nothing that the application could block on;
 * -FI_ETOOSMALL: no space in a struct fi_wait_pollfd. */
int unm_wait_control(struct unm_wait *w, int command, void *arg);

#endif /* UNM_WAIT_H */
