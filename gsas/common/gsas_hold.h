/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_hold.h - a lock by which a process shows all services of the host that a
 * process of its job lives. Part of libgsas and of gsasd.
 *
 * A process that loads libgsas holds its job: it has a lock on the file of its
 * network namespace, to which the boards of an emulation belong, at an offset
 * that is a hash of the job's key. A child that it forks holds the job as well.
 * The kernel releases the lock when the last of these processes has ended or
 * started another program, which holds its own job when it loads libgsas.
 */
#ifndef GSAS_HOLD_H
#define GSAS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Open the file of the locks. Returns a descriptor, or -errno. The descriptor
 * is 64 or above if possible, because a program may rely on low numbers. */
int gsas_hold_open(void);

/* Hold a job of user uid until fd and all its copies (of forked children) are
 * closed. 0, -errno. */
int gsas_hold_take(int fd, uint32_t uid, const uint64_t key[2]);

/* Does a process hold the job of user uid, by another descriptor than fd? While
 * a lock that is no hold covers the place: by any descriptor. true as well if
 * that cannot be known, for example because the kernel has no memory. */
bool gsas_hold_held(int fd, uint32_t uid, const uint64_t key[2]);

#endif /* GSAS_HOLD_H */
