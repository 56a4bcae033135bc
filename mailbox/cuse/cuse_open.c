/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_open.c - threads that open connections to the mailbox daemon.
 *
 * A thread opens one connection, writes the pointer of its struct cuse_open to
 * a pipe, and ends. The pipe is the only thing that threads share.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cuse/cuse_open.h"

static void *run(void *arg)
{
	struct cuse_open *open = arg;

	open->fd = open->opener->open(open->mailbox);
	/* CUSE_OPENERS pointers fit into the pipe: this never blocks */
	if (write(open->opener->write_fd, &open, sizeof(open)) !=
	    sizeof(open))
		abort();
	return NULL;
}

/* The kernel waits for the answer. The result is discarded when it comes. */
static void on_interrupt(fuse_req_t req, void *data)
{
	struct cuse_open *open = data;

	(void)fuse_reply_err(req, EINTR);
	open->req = NULL;
	if (unm_list_empty(&open->node))
		return;			/* its thread runs */
	unm_list_remove(&open->node);
	free(open);
}

/* 0 or a negative errno. */
static int start_thread(struct cuse_open *open)
{
	pthread_t thread;
	int ret = pthread_create(&thread, NULL, run, open);

	if (ret == 0)
		pthread_detach(thread);
	return -ret;
}

static void start(struct cuse_opener *opener)
{
	while (opener->running < CUSE_OPENERS) {
		struct unm_list *node = unm_list_pop(&opener->waiting);
		struct cuse_open *open;
		int ret;

		if (node == NULL)
			return;
		open = unm_container(node, struct cuse_open, node);
		ret = start_thread(open);
		if (ret == 0) {
			opener->running++;
			continue;
		}
		open->fd = ret;
		opener->done(opener, open);
		free(open);
	}
}

static void on_result(struct cuse_source *src, uint32_t events)
{
	struct cuse_opener *opener =
		unm_container(src, struct cuse_opener, results);
	struct cuse_open *open;

	(void)events;
	if (read(src->fd, &open, sizeof(open)) != sizeof(open))
		return;
	opener->running--;
	opener->done(opener, open);
	free(open);
	start(opener);
}

int cuse_opener_init(struct cuse_opener *opener, int epoll)
{
	int fds[2], ret;

	opener->epoll = epoll;
	opener->running = 0;
	opener->results.handle = on_result;
	unm_list_init(&opener->waiting);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	ret = cuse_loop_add(epoll, &opener->results, fds[0], EPOLLIN);
	if (ret != 0) {
		close(fds[0]);
		close(fds[1]);
		return ret;
	}
	opener->write_fd = fds[1];
	return 0;
}

void cuse_opener_fini(struct cuse_opener *opener)
{
	int fd = opener->results.fd;

	unm_list_for_each_safe(pos, tmp, &opener->waiting) {
		struct cuse_open *open =
			unm_container(pos, struct cuse_open, node);

		if (open->req != NULL)
			(void)fuse_reply_err(open->req, EIO);
		unm_list_remove(pos);
		free(open);
	}
	cuse_loop_remove(opener->epoll, &opener->results);
	close(fd);
	close(opener->write_fd);
}

int cuse_open(struct cuse_opener *opener, fuse_req_t req,
	      const struct fuse_file_info *info, int mailbox)
{
	struct cuse_open *open;

	if (req != NULL && fuse_req_interrupted(req))
		return -EINTR;
	open = calloc(1, sizeof(*open));
	if (open == NULL)
		return -ENOMEM;
	open->opener = opener;
	open->req = req;
	open->own = req == NULL;
	open->mailbox = mailbox;
	if (info != NULL)
		open->info = *info;
	unm_list_append(&opener->waiting, &open->node);
	if (req != NULL)
		fuse_req_interrupt_func(req, on_interrupt, open);
	start(opener);
	return 0;
}
