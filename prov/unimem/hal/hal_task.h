/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_task.h - names a process so that a later process with the same id is not
 * taken for it (hal_task.c).
 */
#ifndef HAL_TASK_H
#define HAL_TASK_H

#include <stdint.h>
#include <sys/types.h>

/* A process, as the processes of its pid namespace see it. */
struct hal_task {
	uint64_t ns;		/* inode of the pid namespace; 0: not known */
	uint64_t start;		/* start time in clock ticks since the boot:
				 * field 22 of /proc/PID/stat, proc(5) */
	pid_t pid;
};

/* The calling process. Returns 0; -FI_ENOSYS: there is no /proc. Any thread. */
int hal_task_self(struct hal_task *task);

/*
 * Open a pidfd of a process of this pid namespace. Returns a descriptor that
 * becomes readable when the process ends, and that is closed by exec();
 * -FI_ENOSYS: the process is in another pid namespace, /proc is missing or
 * hides it, or the kernel has no pidfds (Linux 5.3); -FI_ECONNRESET: the
 * process has ended; -FI_EMFILE. Any thread.
 */
int hal_task_open(const struct hal_task *task);

#endif /* HAL_TASK_H */
