/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_pid.h - the id of this process; private to the HAL.
 */
#ifndef HAL_PID_H
#define HAL_PID_H

#include <sys/types.h>

/* As getpid(), mostly without a system call: for checks on the data path
 * whether this is a forked child. Not for a child of vfork(), which shares the
 * memory of its parent. Any thread. */
pid_t hal_pid(void);

#endif /* HAL_PID_H */
