/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_open.h - opens connections to the mailbox daemon in threads, because an
 * open may start a daemon, and wait for it.
 */
#ifndef CUSE_OPEN_H
#define CUSE_OPEN_H

#include <stdbool.h>

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 310
#endif
#include <cuse_lowlevel.h>

#include "cuse/cuse_loop.h"
#include "util/unm_list.h"

#define CUSE_OPENERS	16		/* threads at a time; more opens wait */

struct cuse_opener;

/* An open(2), from cuse_open() until done() has returned. Its thread writes fd
 * and nothing else. */
struct cuse_open {
	struct unm_list node;		/* in waiting, or in none */
	struct cuse_opener *opener;
	fuse_req_t req;			/* NULL: interrupted, and answered; or
					 * of the daemon itself */
	bool own;			/* of the daemon itself */
	struct fuse_file_info info;	/* of the request */
	int mailbox;			/* node */
	int fd;				/* result: connection, or a negative
					 * errno */
};

/* One for the daemon. The loop's thread uses it. */
struct cuse_opener {
	int epoll;
	struct cuse_source results;	/* a pipe that has pointers to results;
					 * its other end is write_fd */
	int write_fd;
	int (*open)(int node);		/* a connection, or a negative errno; in
					 * any thread, and may block */
	/* Called with each result: answers result->req unless it is NULL, and
	 * owns result->fd. */
	void (*done)(struct cuse_opener *opener, struct cuse_open *result);
	struct unm_list waiting;	/* opens that have no thread yet */
	unsigned running;		/* threads */
};

/* 0 or a negative errno. The caller sets open and done afterwards. */
int cuse_opener_init(struct cuse_opener *opener, int epoll);

/* Requests that wait fail with EIO. Threads must have ended. */
void cuse_opener_fini(struct cuse_opener *opener);

/* Open the mailbox of a node for a request; NULL: for the daemon itself. 0 or a
 * negative errno, then done() is not called. */
int cuse_open(struct cuse_opener *opener, fuse_req_t req,
	      const struct fuse_file_info *info, int mailbox);

#endif /* CUSE_OPEN_H */
