/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wait.h - wait objects as the API opens them: also FI_WAIT_SET and those
 * with a condition variable, which the progress thread signals.
 */
#ifndef UNM_WAIT_H
#define UNM_WAIT_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct unm_domain;
struct unm_wait;

/*
 * Open the wait object of an object that is ready but for it; the structure is
 * all zero. domain: NULL, see above. set: of FI_WAIT_SET, else not looked at.
 * -FI_EINVAL: no such set; -FI_ENOSYS: no such object; -FI_EMFILE, -FI_ENOMEM:
 * one line says so. On failure nothing is left.
 */
int unm_wait_open(struct unm_wait *w, struct fid *fid,
		  struct unm_domain *domain, enum fi_wait_obj obj,
		  struct fid_wait *set);
void unm_wait_close(struct unm_wait *w);

/* FI_GETWAIT, FI_GETWAITOBJ of fi_control(3); -FI_ENOSYS: another one, or it
 * has nothing to give. */
int unm_wait_control(struct unm_wait *w, int command, void *arg);

#endif /* UNM_WAIT_H */
