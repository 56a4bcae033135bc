/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_notify.h - how the process that has registered an opcode is notified of
 * each message: by a signal, an event fd, or not at all.
 */
#ifndef MBOX_NOTIFY_H
#define MBOX_NOTIFY_H

#include <sys/types.h>

#include "unimem/mailbox.h"

/* Of one registration. One thread uses it. */
struct mbox_notify {
	int process;			/* 's': pidfd; else -1 */
	int signal;
	int event_fd;			/* 'e'; else -1 */
};

/* No notification. */
void mbox_notify_init(struct mbox_notify *notify);

/*
 * Make the notification of action 'r', 's' or 'e' ready; notify has none yet.
 * pid: the process that wrote the action, 0: in a PID namespace that is not
 * seen here. event_fd: the event fd, if it came with the action; it stays the
 * caller's. -1: descriptor act->val of the process. 0; -EINVAL: wrong signal,
 * or no event fd, or one that blocks; -EPERM: the kernel does not give the
 * descriptor; -EOPNOTSUPP: the kernel does not let this process signal event
 * fds without blocking (io_setup(2)); -EAGAIN: too many files of processes that
 * are no event fds are being closed; -ESRCH, -EBADF, -EMFILE.
 */
int mbox_notify_set(struct mbox_notify *notify,
		    const struct mailbox_action_t *act, pid_t pid,
		    int event_fd);

/* End the notification, if there is any. */
void mbox_notify_clear(struct mbox_notify *notify);

/* Notify the process of one message. Never blocks, whatever the process does
 * with its event fd. */
void mbox_notify_send(const struct mbox_notify *notify);

#endif /* MBOX_NOTIFY_H */
