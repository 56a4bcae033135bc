/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_act.h - the actions that processes write to an open file of the local
 * mailbox, and the registrations that they make.
 */
#ifndef CUSE_ACT_H
#define CUSE_ACT_H

#include <stdbool.h>
#include <stdint.h>

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 310
#endif
#include <cuse_lowlevel.h>

#include "common/mbox_notify.h"
#include "cuse/cuse_loop.h"
#include "util/unm_list.h"

/* The process that has written a registration with a signal. */
struct cuse_writer {
	int status;			/* its /proc/PID/status; else -1 */
	uid_t uid;			/* its user when it wrote */
};

/* The actions of one file: a member of it. One thread uses them. */
struct cuse_acts {
	int epoll;
	int fd;				/* connection to the mailbox daemon; the
					 * file owns it */
	bool ended;			/* the daemon has closed it */
	struct unm_list waiting;	/* struct cuse_wait, in order; the first
					 * one is under way if answer.fd >= 0 */
	struct cuse_source answer;	/* socket for the daemon's answer */
	uint16_t registered;		/* bit n: opcode n is registered */
	struct mbox_notify notify[MAILBOX_OPCODES];
	struct cuse_writer writer[MAILBOX_OPCODES];	/* of notify */
};

void cuse_acts_init(struct cuse_acts *acts, int epoll, int fd);

/* End the registrations' notifications; requests that wait fail with EIO. */
void cuse_acts_fini(struct cuse_acts *acts);

/* Do an action, after those that wait, and answer the request with its result:
 * the size of an action, or an error of mailbox_action(). */
void cuse_acts_write(struct cuse_acts *acts, fuse_req_t req,
		     const struct mailbox_action_t *action);

/* The daemon has closed the connection: actions that wait, and later ones, fail
 * with EIO. */
void cuse_acts_end(struct cuse_acts *acts);

/* A message has come: notify the process that has registered its opcode. A
 * signal is not sent if the user that has registered it could not send it to
 * the process any more, because that has become another user's. */
void cuse_acts_notify(const struct cuse_acts *acts, uint64_t message);

#endif /* CUSE_ACT_H */
