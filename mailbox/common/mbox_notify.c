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
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/mbox_notify.h"

#define CLOSERS_MAX	8

/* Copies that close_apart() has not closed yet. */
static _Atomic unsigned g_closers;

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

/* Is a descriptor an event fd? The daemon does not signal another file.
 * process: a number, or "self". 0; -EINVAL: it is another file; -EBADF;
 * -EPERM. */
static int check_event_fd(const char *process, int fd)
{
	static const char is[] = "anon_inode:[eventfd]";
	char path[60], target[sizeof(is)];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%s/fd/%d", process, fd);
	len = readlink(path, target, sizeof(target));
	if (len < 0)
		return errno == ENOENT ? -EBADF : errno == EACCES ? -EPERM :
		       -errno;
	return len == sizeof(is) - 1 && memcmp(target, is, sizeof(is) - 1) == 0
		? 0 : -EINVAL;
}

static void *close_main(void *arg)
{
	close((int)(intptr_t)arg);
	/* relaxed: a number, which orders nothing */
	atomic_fetch_sub_explicit(&g_closers, 1, memory_order_relaxed);
	return NULL;
}

/* Close a file of another process in a thread, because close(2) of some files
 * waits: for a FUSE server, or for a peer (SO_LINGER). If there can be no
 * thread, the descriptor stays open, and is counted for ever. */
static void close_apart(int fd)
{
	pthread_t thread;

	atomic_fetch_add_explicit(&g_closers, 1, memory_order_relaxed);
	if (pthread_create(&thread, NULL, close_main,
			   (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
}

/* A copy of an event fd of a process, or a negative errno. Other files are not
 * copied, unless the process exchanges the file behind the descriptor between
 * the check and the copy. A process that does so again and again must not take
 * all threads and descriptors of the daemon. */
static int copy_event_fd(pid_t pid, int fd)
{
	int process, copy, ret;
	char number[16];

	if (atomic_load_explicit(&g_closers, memory_order_relaxed) >=
	    CLOSERS_MAX)
		return -EAGAIN;
	process = process_open(pid);
	if (process < 0)
		return process;
	snprintf(number, sizeof(number), "%d", (int)pid);
	ret = check_event_fd(number, fd);
	if (ret != 0)
		goto close_process;
	copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	if (copy < 0) {
		ret = errno == ENOSYS ? -EPERM : -errno;
	} else if (check_event_fd("self", copy) != 0) {
		close_apart(copy);
		ret = -EINVAL;
	} else {
		ret = copy;
	}
close_process:
	close(process);
	return ret;
}

static int set_event_fd(struct mbox_notify *notify, int val, pid_t pid,
			int event_fd)
{
	int fd, ret = aio_ready();

	if (ret != 0)
		return ret;
	if (event_fd < 0) {
		fd = copy_event_fd(pid, val);
		if (fd < 0)
			return fd;
	} else {
		if (check_event_fd("self", event_fd) != 0)
			return -EINVAL;
		fd = dup(event_fd);
		if (fd < 0)
			return -errno;
	}
	/* <unimem/mailbox.h> promises the error for one that blocks */
	if (!(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
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
