/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_reg.c - the registrations of a node, and the delivery of messages.
 *
 * Messages are delivered in the order in which they came, whatever their
 * opcodes. A message is delivered when the socket of the reader has taken it. A
 * full socket delays the messages of its own opcodes only.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/mbox_reg.h"

#define BURST	256			/* messages in a row */

void mbox_regs_init(struct mbox_regs *regs)
{
	memset(regs, 0, sizeof(*regs));
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		regs->reg[op].process = regs->reg[op].event_fd = -1;
}

static void reg_clear(struct mbox_reg *reg)
{
	if (reg->process >= 0)
		close(reg->process);
	if (reg->event_fd >= 0)
		close(reg->event_fd);
	memset(reg, 0, sizeof(*reg));
	reg->process = reg->event_fd = -1;
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

static int set_event_fd(struct mbox_reg *reg, int val,
			const struct mbox_origin *origin)
{
	int fd;

	if (origin->event_fd >= 0) {
		fd = dup(origin->event_fd);
		if (fd < 0)
			return -errno;
	} else {
		fd = process_fd(origin->pid, val);
		if (fd < 0)
			return fd;
	}
	/* a write of the daemon must not block */
	if (!is_event_fd(fd) || !(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
		close(fd);
		return -EINVAL;
	}
	reg->event_fd = fd;
	return 0;
}

static int set_signal(struct mbox_reg *reg, int val,
		      const struct mbox_origin *origin)
{
	int fd;

	if (val < 1 || val > SIGRTMAX)
		return -EINVAL;
	fd = process_open(origin->pid);
	if (fd < 0)
		return fd;
	reg->process = fd;
	reg->signal = val;
	return 0;
}

static bool is_full(const struct mbox_regs *regs, const void *owner)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		if (regs->reg[op].owner == owner && regs->reg[op].full)
			return true;
	return false;
}

static int reg_add(struct mbox_regs *regs, const struct mailbox_action_t *act,
		   const struct mbox_origin *origin)
{
	struct mbox_reg *reg = &regs->reg[act->opcode];
	int ret = 0;

	if (reg->owner != NULL)
		return -EBUSY;
	if (act->action == 's')
		ret = set_signal(reg, act->val, origin);
	else if (act->action == 'e')
		ret = set_event_fd(reg, act->val, origin);
	if (ret != 0)
		return ret;
	reg->full = is_full(regs, origin->owner);
	reg->owner = origin->owner;
	reg->fd = origin->fd;
	return 0;
}

int mbox_regs_act(struct mbox_regs *regs, const struct mailbox_action_t *act,
		  const struct mbox_origin *origin)
{
	if (act->opcode >= MAILBOX_OPCODES)
		return -EINVAL;
	switch (act->action) {
	case 'r':
	case 's':
	case 'e':
		return reg_add(regs, act, origin);
	case 'u':
		if (regs->reg[act->opcode].owner != origin->owner)
			return -ENOENT;
		reg_clear(&regs->reg[act->opcode]);
		return 0;
	default:
		return -EINVAL;
	}
}

void mbox_regs_remove(struct mbox_regs *regs, const void *owner)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		if (regs->reg[op].owner == owner)
			reg_clear(&regs->reg[op]);
}

/* All opcodes of a descriptor, so that no message overtakes one that waits. */
static void set_full(struct mbox_regs *regs, const void *owner, bool full)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		if (regs->reg[op].owner == owner)
			regs->reg[op].full = full;
}

void mbox_regs_writable(struct mbox_regs *regs, const void *owner)
{
	set_full(regs, owner, /* full */ false);
}

/* An event fd at its maximum is readable already, and a write would block if
 * the process has cleared O_NONBLOCK since. */
static void notify(const struct mbox_reg *reg)
{
	struct pollfd pfd = { .fd = reg->event_fd, .events = POLLOUT };
	uint64_t one = 1;

	/* a process that has ended needs no signal */
	if (reg->process >= 0)
		(void)syscall(SYS_pidfd_send_signal, reg->process, reg->signal,
			      NULL, 0);
	if (reg->event_fd >= 0 && poll(&pfd, 1, 0) == 1 &&
	    write(reg->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

/* The oldest message whose reader can take it; NULL: none. */
static struct mbox_entry *oldest(struct mbox_regs *regs, struct mbox_hal *mh)
{
	struct mbox_entry *first = NULL;

	for (unsigned op = 0; op < MAILBOX_OPCODES; op++) {
		const struct mbox_reg *reg = &regs->reg[op];
		struct mbox_entry *entry = mbox_hal_first(mh, op);

		if (entry == NULL || reg->owner == NULL || reg->full)
			continue;
		if (first == NULL || entry->arrival < first->arrival)
			first = entry;
	}
	return first;
}

/* Returns false if the reader's socket has not taken the message. */
static bool deliver(struct mbox_regs *regs, struct mbox_entry *entry)
{
	struct mbox_reg *reg = &regs->reg[MAILBOX_OPCODE(entry->message)];

	if (send(reg->fd, &entry->message, MBOX_MESSAGE,
		 MSG_DONTWAIT | MSG_NOSIGNAL) == MBOX_MESSAGE) {
		mbox_hal_take(entry);
		notify(reg);
		return true;
	}
	if (errno == ENOBUFS || errno == ENOMEM)
		regs->retry = true;
	else			/* the reader is slow, or has ended: an event
				 * will close the client */
		set_full(regs, reg->owner, /* full */ true);
	return false;
}

bool mbox_regs_deliver(struct mbox_regs *regs, struct mbox_hal *mh)
{
	struct mbox_entry *entry;
	unsigned n = 0;

	regs->retry = false;
	while (n < BURST && !regs->retry &&
	       (entry = oldest(regs, mh)) != NULL)
		n += deliver(regs, entry);
	return n != 0;
}
