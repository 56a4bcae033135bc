/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_loop.c - the event loop of unimem-mailbox-cuse, on epoll(7). All events
 * are level-triggered.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "cuse/cuse_loop.h"

int cuse_loop_add(int epoll, struct cuse_source *src, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	src->fd = -1;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
		return -errno;
	src->fd = fd;
	src->events = events;
	return 0;
}

void cuse_loop_set(int epoll, struct cuse_source *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	if (src->fd < 0 || src->events == events)
		return;
	src->events = events;
	/* cannot fail: the descriptor is there, and needs no memory */
	(void)epoll_ctl(epoll, EPOLL_CTL_MOD, src->fd, &ev);
}

void cuse_loop_remove(int epoll, struct cuse_source *src)
{
	if (src->fd < 0)
		return;
	(void)epoll_ctl(epoll, EPOLL_CTL_DEL, src->fd, NULL);
	src->fd = -1;
}

int cuse_loop_step(int epoll, int ms)
{
	struct epoll_event ev;
	struct cuse_source *src;
	int n = epoll_wait(epoll, &ev, 1, ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		return 0;
	src = ev.data.ptr;
	src->handle(src, ev.events);
	return 1;
}
