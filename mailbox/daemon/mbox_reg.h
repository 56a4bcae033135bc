/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_reg.h - the registrations of a node: which descriptor gets the messages
 * of which opcode, and how its process is notified. Delivers messages.
 */
#ifndef MBOX_REG_H
#define MBOX_REG_H

#include <sys/types.h>

#include "common/mbox_notify.h"
#include "daemon/mbox_link.h"

/* The registration of an opcode. Its owner is a client of the daemon: it lives
 * until the client unregisters the opcode, or is closed. */
struct mbox_reg {
	const void *owner;		/* NULL: the opcode is free */
	int fd;				/* socket of the owner, which owns it */
	struct mbox_notify notify;
	bool full;			/* fd takes no message until
					 * mbox_reg_writable() */
};

/* All of them. One thread uses them. */
struct mbox_regs {
	struct mbox_reg reg[MAILBOX_OPCODES];
	bool retry;			/* the kernel had no memory for a
					 * message: deliver again soon */
};

/* Where an action came from. */
struct mbox_origin {
	const void *owner;		/* the client */
	int fd;				/* its socket */
	pid_t pid;			/* the process that wrote it; 0: not
					 * known */
	int event_fd;			/* that came with it; -1: none */
};

void mbox_regs_init(struct mbox_regs *regs);

/* Do what an action says. origin->event_fd stays the caller's. 0; -EINVAL,
 * -EBUSY, -ENOENT: as mailbox_action(); -EPERM: 'e' without a descriptor, and
 * the kernel does not give it; -EBADF, -EMFILE, -ESRCH. */
int mbox_regs_act(struct mbox_regs *regs, const struct mailbox_action_t *act,
		  const struct mbox_origin *origin);

/* A client is closed: remove its registrations. */
void mbox_regs_remove(struct mbox_regs *regs, const void *owner);

/* The socket of a client may take messages again. */
void mbox_regs_writable(struct mbox_regs *regs, const void *owner);

/* Deliver messages that wait, the oldest first, a bounded number. Returns
 * whether there was any. */
bool mbox_regs_deliver(struct mbox_regs *regs, struct mbox_hal *mh);

#endif /* MBOX_REG_H */
