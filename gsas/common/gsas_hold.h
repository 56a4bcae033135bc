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

/* The file of the locks: a descriptor above those that programs count on, or
 * -errno. */
int gsas_hold_open(void);

/* By this descriptor, until it and its copies are closed. 0, -errno. */
int gsas_hold_take(int fd, uint32_t uid, const uint64_t key[2]);

/* Does anybody hold that job of the user, by another descriptor? */
bool gsas_hold_held(int fd, uint32_t uid, const uint64_t key[2]);

#endif /* GSAS_HOLD_H */
