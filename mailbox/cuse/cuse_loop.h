/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_loop.h - the event loop of unimem-mailbox-cuse: descriptors, and the
 * functions that handle their events.
 */
#ifndef CUSE_LOOP_H
#define CUSE_LOOP_H

#include <stdint.h>

/* A descriptor of the loop: a member of the object that it belongs to. The
 * object owns the descriptor. One thread uses a loop. */
struct cuse_source {
	int fd;				/* -1: not in the loop */
	uint32_t events;		/* EPOLL* that are waited for; EPOLLHUP
					 * and EPOLLERR always are */
	void (*handle)(struct cuse_source *src, uint32_t events);
};

/* Add a descriptor. 0 or a negative errno; src->fd is -1 after an error. */
int cuse_loop_add(int epoll, struct cuse_source *src, int fd, uint32_t events);

/* Wait for other events of a source that is in the loop. */
void cuse_loop_set(int epoll, struct cuse_source *src, uint32_t events);

/* Remove a source. Does not close its descriptor. Nothing happens if it is not
 * in the loop. */
void cuse_loop_remove(int epoll, struct cuse_source *src);

/* Wait up to ms milliseconds (-1: without end) for one event, and handle it: at
 * most one, so that its function may free any source. Returns the number of
 * events, or a negative errno other than -EINTR. */
int cuse_loop_step(int epoll, int ms);

#endif /* CUSE_LOOP_H */
