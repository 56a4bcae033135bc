/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_notify.c - signals and event fds of processes that have registered an
 * opcode. unimem-mailboxd notifies the processes that write actions to its
 * sockets, unimem-mailbox-cuse those that write them to its devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/mbox_notify.h"

/* The context of event_fd_signal(): of the process, from the first event fd on.
 * The thread that uses the registrations uses it. */
static struct {
	aio_context_t context;
	int zero;			/* /dev/zero */
	bool ready;
} g_aio;

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

/*
 * Add 1 to an event fd. The process that owns it can make it blocking, and fill
 * it, between any check and a write(2), which would then never return. So the
 * kernel adds the 1 at the end of an asynchronous read of /dev/zero: that never
 * waits, and a full event fd stays full. fd -1: read only. False: the kernel
 * refuses, for example by seccomp.
 */
static bool event_fd_signal(int fd)
{
	char byte;
	struct iocb read = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)g_aio.zero,
		.aio_buf = (uintptr_t)&byte, .aio_nbytes = sizeof(byte),
		.aio_flags = fd >= 0 ? IOCB_FLAG_RESFD : 0,
		.aio_resfd = (uint32_t)fd,
	};
	struct iocb *list[] = { &read };
	struct timespec now = { 0 };
	struct io_event done;

	if (syscall(SYS_io_submit, g_aio.context, 1L, list) != 1)
		return false;
	/* a read of /dev/zero ends before io_submit() returns */
	return syscall(SYS_io_getevents, g_aio.context, 1L, 1L, &done,
		       &now) == 1;
}

/* 0; -EOPNOTSUPP: the kernel has no asynchronous reads for this process. */
static int aio_ready(void)
{
	if (g_aio.ready)
		return 0;
	g_aio.zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (g_aio.zero < 0)
		return errno == EMFILE || errno == ENFILE ? -errno :
		       -EOPNOTSUPP;
	g_aio.context = 0;
	if (syscall(SYS_io_setup, 1L, &g_aio.context) == 0) {
		g_aio.ready = event_fd_signal(-1);
		if (g_aio.ready)
			return 0;
		(void)syscall(SYS_io_destroy, g_aio.context);
	}
	close(g_aio.zero);
	return -EOPNOTSUPP;
}

/* The daemon does not signal another file. */
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
	int fd, ret = aio_ready();

	if (ret != 0)
		return ret;
	if (event_fd >= 0) {
		fd = dup(event_fd);
		if (fd < 0)
			return -errno;
	} else {
		fd = process_fd(pid, val);
		if (fd < 0)
			return fd;
	}
	/* <unimem/mailbox.h> promises the error for one that blocks */
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

/* An event fd at its maximum is readable already. */
void mbox_notify_send(const struct mbox_notify *notify)
{
	struct pollfd pfd = { .fd = notify->event_fd, .events = POLLOUT };

	/* a process that has ended needs no signal */
	if (notify->process >= 0)
		(void)syscall(SYS_pidfd_send_signal, notify->process,
			      notify->signal, NULL, 0);
	if (notify->event_fd >= 0 && poll(&pfd, 1, 0) == 1)
		(void)event_fd_signal(notify->event_fd);
}
