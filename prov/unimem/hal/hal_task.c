/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_task.c - names a process so that a later process with the same id is not
 * taken for it: by its id, its start time and its pid namespace.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_task.h"

#define START_FIELD	22	/* of /proc/PID/stat, counted from 1 */

/* The start time of a process; name: "self", or its id. 0; -FI_ENOSYS: the file
 * is not there, is hidden from this process (hidepid), or has another format;
 * -FI_EMFILE. */
static int start_of(const char *name, uint64_t *start)
{
	char file[32], text[1024], *at;
	ssize_t n;
	int fd;

	snprintf(file, sizeof(file), "/proc/%s/stat", name);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -FI_EMFILE :
		       -FI_ENOSYS;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -FI_ENOSYS;	/* it ended after open() */
	text[n] = '\0';
	/* Field 2 is the program's name in parentheses, which may have spaces
	 * and parentheses of its own. */
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (at == NULL)
		return -FI_ENOSYS;
	*start = strtoull(at, NULL, 10);
	return 0;
}

static uint64_t own_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

int hal_task_self(struct hal_task *task)
{
	task->pid = getpid();
	task->ns = own_ns();
	return task->ns == 0 ? -FI_ENOSYS : start_of("self", &task->start);
}

int hal_task_open(const struct hal_task *task)
{
	struct pollfd pfd = { .events = POLLIN };
	uint64_t start;
	char name[16];
	int ret;

	if (task->ns == 0 || task->ns != own_ns())
		return -FI_ENOSYS;
	pfd.fd = (int)syscall(SYS_pidfd_open, task->pid, 0);
	if (pfd.fd < 0)
		return errno == ESRCH ? -FI_ECONNRESET :
		       errno == EMFILE || errno == ENFILE ? -FI_EMFILE :
		       -FI_ENOSYS;
	/* The descriptor belongs to whichever process has the id now. If that
	 * process lives after its start time was read, the time is its own. */
	snprintf(name, sizeof(name), "%d", (int)task->pid);
	ret = start_of(name, &start);
	if (ret != -FI_EMFILE && poll(&pfd, 1, 0) != 0)
		ret = -FI_ECONNRESET;
	if (ret == 0 && start != task->start)
		ret = -FI_ECONNRESET;
	if (ret == 0)
		return pfd.fd;
	close(pfd.fd);
	return ret;
}
