/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_device.h - the character devices of all mailboxes, and what they share.
 */
#ifndef CUSE_DEVICE_H
#define CUSE_DEVICE_H

#include <stdbool.h>

#include "cuse/cuse_loop.h"
#include "cuse/cuse_open.h"
#include "util/unm_list.h"

#define CUSE_NAME_MAX	64		/* bytes of a device's name */

/* All devices of a daemon. One thread uses them. */
struct cuse_devices {
	int epoll;
	int own;			/* the local node */
	void (*log)(const char *line);
	struct cuse_opener opener;
	struct cuse_source watch;	/* a connection to the local daemon,
					 * which keeps it alive and reports its
					 * end */
	bool watching;			/* an open for the watch has begun, and
					 * has no result yet */
	struct unm_list devices;
	struct unm_list files;		/* open ones, of all devices */
	struct fuse_buf buf;		/* the request that is being handled */
	unsigned waiting;		/* devices that do not exist yet */
	bool lost;			/* the kernel has ended a device, or
					 * refused it; a line was logged */
};

/*
 * own: the local node. open: as that of struct cuse_opener. log: logs a line
 * without newline. 0 or a negative errno, with nothing to undo.
 */
int cuse_devices_init(struct cuse_devices *all, int own, int (*open)(int node),
		      void (*log)(const char *line));

/* Open files and requests that wait fail with EIO; the devices disappear.
 * Returns whether no thread runs any more. If one does, the process has to end
 * by _exit(2), because the thread uses all->opener. */
bool cuse_devices_fini(struct cuse_devices *all);

/* Use this connection to the local daemon to watch it. The devices own it. */
void cuse_devices_watch(struct cuse_devices *all, int fd);

/* The name of a node's device: DIR/mailboxA, B ... Z, AA, AB ... */
void cuse_device_name(char name[CUSE_NAME_MAX], const char *dir, int node);

/*
 * Make the device of a node. fd: of /dev/cuse, non-blocking; the devices own it
 * afterwards, in any case. The device exists once the kernel has answered, in
 * cuse_devices_step(). 0 or a negative errno.
 */
int cuse_devices_add(struct cuse_devices *all, int node, const char *name,
		     int fd);

/* Wait up to ms milliseconds (-1: without end) for one event, and handle it.
 * Returns as cuse_loop_step(). */
int cuse_devices_step(struct cuse_devices *all, int ms);

#endif /* CUSE_DEVICE_H */
