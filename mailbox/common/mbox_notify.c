/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_notify.c - signals and event fds of processes that have registered an
 * opcode. unimem-mailboxd notifies the processes that write actions to its
 * sockets, unimem-mailbox-cuse those that write them to its devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/mbox_notify.h"

void mbox_notify_init(struct mbox_notify *notify)
{
	notify->process = notify->event_fd = -1;
	notify->signal = 0;
}

void mbox_notify_clear(struct mbox_notify *notify)
{
	if (notify->process >= 0)
		close(notify->process);
	if (notify->event_fd >= 0)
		close(notify->event_fd);
	mbox_notify_init(notify);
}

/* Returns a descriptor, or a negative errno. */
static int process_open(pid_t pid)
{
	long fd;

	if (pid == 0)			/* in a PID namespace not seen here */
		return -ESRCH;
	fd = syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : (int)fd;
}

/* A copy of descriptor number fd of a process, or a negative errno. */
static int process_fd(pid_t pid, int fd)
{
	int process = process_open(pid);
	long ret;

	if (process < 0)
		return process;
	ret = syscall(SYS_pidfd_getfd, process, fd, 0);
	if (ret < 0)
		ret = errno == ENOSYS ? -EPERM : -errno;
	close(process);
	return (int)ret;
}

/* Another file might block the daemon, or be damaged by it. */
static bool is_event_fd(int fd)
{
	static const char is[] = "anon_inode:[eventfd]";
	char path[40], target[sizeof(is)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) == sizeof(is) - 1 &&
	       memcmp(target, is, sizeof(is) - 1) == 0;
}

static int set_event_fd(struct mbox_notify *notify, int val, pid_t pid,
			int event_fd)
{
	int fd;

	if (event_fd >= 0) {
		fd = dup(event_fd);
		if (fd < 0)
			return -errno;
	} else {
		fd = process_fd(pid, val);
		if (fd < 0)
			return fd;
	}
	/* a write of the daemon must not block */
	if (!is_event_fd(fd) || !(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
		close(fd);
		return -EINVAL;
	}
	notify->event_fd = fd;
	return 0;
}

static int set_signal(struct mbox_notify *notify, int val, pid_t pid)
{
	int fd;

	if (val < 1 || val > SIGRTMAX)
		return -EINVAL;
	fd = process_open(pid);
	if (fd < 0)
		return fd;
	notify->process = fd;
	notify->signal = val;
	return 0;
}

int mbox_notify_set(struct mbox_notify *notify,
		    const struct mailbox_action_t *act, pid_t pid,
		    int event_fd)
{
	if (act->action == 's')
		return set_signal(notify, act->val, pid);
	if (act->action == 'e')
		return set_event_fd(notify, act->val, pid, event_fd);
	return 0;
}

/* An event fd at its maximum is readable already, and a write would block if
 * the process has cleared O_NONBLOCK since. */
void mbox_notify_send(const struct mbox_notify *notify)
{
	struct pollfd pfd = { .fd = notify->event_fd, .events = POLLOUT };
	uint64_t one = 1;

	/* a process that has ended needs no signal */
	if (notify->process >= 0)
		(void)syscall(SYS_pidfd_send_signal, notify->process,
			      notify->signal, NULL, 0);
	if (notify->event_fd >= 0 && poll(&pfd, 1, 0) == 1 &&
	    write(notify->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}
