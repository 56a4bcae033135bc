/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_hold.h - shows that a process of a job lives, to all services of the
 * host. Part of libgsas and of gsasd.
 *
 * A process that loads libgsas holds its job: it has a lock on the file of its
 * network namespace (where the boards of an emulation are), at a place that
 * depends on the job's key. A child that it forks holds the job as well. The
 * kernel releases the lock when the last of them has ended or started another
 * program, which holds its own job when it loads libgsas.
 */
#ifndef GSAS_HOLD_H
#define GSAS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Open the file of the locks. Returns a descriptor, if possible from 64 up, as
 * programs may rely on low numbers; or -errno. */
int gsas_hold_open(void);

/* Hold a job of user uid until fd and all its copies (of forked children) are
 * closed. 0, -errno. */
int gsas_hold_take(int fd, uint32_t uid, const uint64_t key[2]);

/* Does a process hold the job of user uid, by another descriptor than fd? */
bool gsas_hold_held(int fd, uint32_t uid, const uint64_t key[2]);

#endif /* GSAS_HOLD_H */
