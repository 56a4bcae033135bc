/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_file.h - an open device file of a mailbox: reads, writes, polls.
 *
 * A file has one connection to the mailbox daemon, a socket as mailbox_open()
 * returns it. Each call answers its FUSE request: at once, or when a message,
 * free space, the answer of the daemon, its end or an interrupt comes.
 */
#ifndef CUSE_FILE_H
#define CUSE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 310
#endif
#include <cuse_lowlevel.h>

#include "cuse/cuse_act.h"
#include "cuse/cuse_loop.h"
#include "util/unm_list.h"

#define CUSE_KEPT	256		/* messages that a file keeps for its
					 * readers; more wait in the daemon */

/* An open file of one process, or of several that inherited it. One thread uses
 * it, from cuse_file_new() to cuse_file_free(). */
struct cuse_file {
	struct unm_list node;		/* in the list of all files */
	int epoll;
	struct cuse_source conn;	/* in the loop until the daemon has
					 * closed the connection */
	int fd;				/* of the connection; owned */
	bool local;			/* the local mailbox */
	bool hung_up;			/* the daemon has closed it */
	bool drained;			/* ... and no message is left in it */
	bool full;			/* the last send found no space */
	struct unm_list readers;	/* struct cuse_wait that need a message:
					 * empty, or count is 0 */
	struct unm_list writers;	/* ... that need space, in order */
	struct fuse_pollhandle *poller;	/* to be notified; NULL: none */
	struct cuse_acts acts;		/* of a file of the local mailbox */
	unsigned first, count;		/* of kept */
	uint64_t kept[CUSE_KEPT];	/* messages that are not yet read */
};

/* Returns a file, which owns the connection fd then; NULL: no memory. */
struct cuse_file *cuse_file_new(int epoll, int fd, bool local);

/* Close a file. Requests that still wait fail with EIO. */
void cuse_file_free(struct cuse_file *file);

/* read(2) of size bytes. wait: the file is blocking. */
void cuse_file_read(struct cuse_file *file, fuse_req_t req, size_t size,
		    bool wait);

/* write(2): a message, or an action for the local mailbox. */
void cuse_file_write(struct cuse_file *file, fuse_req_t req, const void *buf,
		     size_t size, bool wait);

/* poll(2): answer what is ready. ph: notify it of the next change; the file
 * owns it then. NULL: nothing new is to be notified. */
void cuse_file_poll(struct cuse_file *file, fuse_req_t req,
		    struct fuse_pollhandle *ph);

#endif /* CUSE_FILE_H */
