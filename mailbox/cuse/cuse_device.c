/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_device.c - the character devices of all mailboxes.
 *
 * A device is a session of libfuse on a descriptor of /dev/cuse. libfuse parses
 * the requests of the kernel and calls the functions on_open() to on_poll();
 * cuse_file.c answers the requests of an open file, cuse_open.c those to open
 * one. The watch, a connection of the daemon's own, reports the end of the
 * local mailbox daemon also while no file is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cuse/cuse_device.h"
#include "cuse/cuse_file.h"

/* A device, from cuse_devices_add() to cuse_devices_fini(). */
struct device {
	struct unm_list node;
	struct cuse_devices *all;
	struct cuse_source src;		/* descriptor of session, which owns
					 * it */
	struct fuse_session *session;
	int mailbox;			/* node */
	bool exists;
	char name[CUSE_NAME_MAX];
};

void cuse_device_name(char name[CUSE_NAME_MAX], const char *dir, int node)
{
	char letters[8];
	char *p = letters + sizeof(letters) - 1;

	*p = '\0';
	for (int n = node + 1; n > 0; n = (n - 1) / 26)
		*--p = (char)('A' + (n - 1) % 26);
	snprintf(name, CUSE_NAME_MAX, "%.32s/mailbox%s", dir, p);
}

/* ---- Requests ------------------------------------------------------------ */

static struct cuse_file *file_of(const struct fuse_file_info *info)
{
	return (struct cuse_file *)(uintptr_t)info->fh;
}

static bool blocking(const struct fuse_file_info *info)
{
	return (info->flags & O_NONBLOCK) == 0;
}

/* Connect the watch again: one open at a time, however many processes open
 * devices meanwhile. */
static void open_watch(struct cuse_devices *all)
{
	if (all->watch.fd >= 0 || all->watching)
		return;
	all->watching = true;		/* on_opened() may come at once */
	if (cuse_open(&all->opener, NULL, NULL, all->own) != 0)
		all->watching = false;
}

static void on_open(fuse_req_t req, struct fuse_file_info *info)
{
	const struct device *dev = fuse_req_userdata(req);
	int ret;

	open_watch(dev->all);
	ret = cuse_open(&dev->all->opener, req, info, dev->mailbox);
	if (ret != 0)
		(void)fuse_reply_err(req, -ret);
}

static void on_opened(struct cuse_opener *opener, struct cuse_open *open)
{
	struct cuse_devices *all =
		unm_container(opener, struct cuse_devices, opener);
	bool local = open->mailbox == all->own;
	struct cuse_file *file;

	if (open->own)
		all->watching = false;
	if (open->req == NULL) {
		if (local && open->fd >= 0 && all->watch.fd < 0)
			cuse_devices_watch(all, open->fd);
		else if (open->fd >= 0)
			close(open->fd);
		return;
	}
	if (open->fd < 0) {
		(void)fuse_reply_err(open->req, -open->fd);
		return;
	}
	file = cuse_file_new(all->epoll, open->fd, local);
	if (file == NULL) {
		close(open->fd);
		(void)fuse_reply_err(open->req, ENOMEM);
		return;
	}
	unm_list_append(&all->files, &file->node);
	open->info.fh = (uintptr_t)file;
	if (fuse_reply_open(open->req, &open->info) != 0)
		cuse_file_free(file);
}

static void on_read(fuse_req_t req, size_t size, off_t off,
		    struct fuse_file_info *info)
{
	(void)off;
	cuse_file_read(file_of(info), req, size, blocking(info));
}

static void on_write(fuse_req_t req, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *info)
{
	(void)off;
	cuse_file_write(file_of(info), req, buf, size, blocking(info));
}

static void on_release(fuse_req_t req, struct fuse_file_info *info)
{
	cuse_file_free(file_of(info));
	(void)fuse_reply_err(req, 0);
}

static void on_poll(fuse_req_t req, struct fuse_file_info *info,
		    struct fuse_pollhandle *ph)
{
	cuse_file_poll(file_of(info), req, ph);
}

static void on_init_done(void *userdata)
{
	struct device *dev = userdata;

	dev->exists = true;
}

static const struct cuse_lowlevel_ops g_ops = {
	.init_done = on_init_done,
	.open = on_open,
	.read = on_read,
	.write = on_write,
	.release = on_release,
	.poll = on_poll,
};

/* ---- Devices ------------------------------------------------------------- */

static void lose(struct device *dev, const char *why)
{
	char line[CUSE_NAME_MAX + 100];

	cuse_loop_remove(dev->all->epoll, &dev->src);
	dev->all->lost = true;
	snprintf(line, sizeof(line), "/dev/%s: %s", dev->name, why);
	dev->all->log(line);
}

/* Has the kernel ended the session? It does so when it does not make the
 * device. */
static bool refused(const struct device *dev)
{
	struct pollfd pfd = { .fd = dev->src.fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLERR) != 0;
}

static void on_request(struct cuse_source *src, uint32_t events)
{
	struct device *dev = unm_container(src, struct device, src);
	struct cuse_devices *all = dev->all;
	bool existed = dev->exists;
	int n = fuse_session_receive_buf(dev->session, &all->buf);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		lose(dev, "the kernel has ended the device");
		return;
	}
	fuse_session_process_buf(dev->session, &all->buf);
	if (existed || !dev->exists)
		return;
	if (refused(dev))
		lose(dev, "the kernel does not make the device; does it "
		     "exist already?");
	else
		all->waiting--;
}

/* 0 or a negative errno; fd is the session's after success. */
static int make_session(struct device *dev, int fd)
{
	char program[] = "unimem-mailbox-cuse", path[32];
	char *argv[] = { program, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	char text[CUSE_NAME_MAX + 16];
	const char *lines[] = { text };
	const struct cuse_info info = {
		.dev_info_argc = 1, .dev_info_argv = lines,
	};

	snprintf(text, sizeof(text), "DEVNAME=%s", dev->name);
	dev->session = cuse_lowlevel_new(&args, &info, &g_ops, dev);
	fuse_opt_free_args(&args);
	if (dev->session == NULL)
		return -ENOMEM;
	/* takes the descriptor that the path names, and mounts nothing */
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	if (fuse_session_mount(dev->session, path) == 0)
		return 0;
	fuse_session_destroy(dev->session);
	return -EBADF;
}

int cuse_devices_add(struct cuse_devices *all, int node, const char *name,
		     int fd)
{
	struct device *dev = calloc(1, sizeof(*dev));
	int ret = -ENOMEM;

	if (dev == NULL)
		goto err_close;
	dev->all = all;
	dev->mailbox = node;
	dev->src.handle = on_request;
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	ret = make_session(dev, fd);
	if (ret != 0)
		goto err_free;
	ret = cuse_loop_add(all->epoll, &dev->src, fd, EPOLLIN);
	if (ret != 0) {
		fuse_session_destroy(dev->session);	/* closes fd */
		free(dev);
		return ret;
	}
	unm_list_append(&all->devices, &dev->node);
	all->waiting++;
	return 0;

err_free:
	free(dev);
err_close:
	close(fd);
	return ret;
}

/* ---- All devices --------------------------------------------------------- */

static void end_watch(struct cuse_devices *all)
{
	int fd = all->watch.fd;

	if (fd < 0)
		return;
	cuse_loop_remove(all->epoll, &all->watch);
	close(fd);
}

/* No message comes: nothing is registered. Whatever does is the end. */
static void on_watch(struct cuse_source *src, uint32_t events)
{
	struct cuse_devices *all =
		unm_container(src, struct cuse_devices, watch);

	(void)events;
	end_watch(all);
	all->log("the mailbox daemon of this node has ended: open devices fail "
		 "with EIO, and the next open connects again");
}

void cuse_devices_watch(struct cuse_devices *all, int fd)
{
	all->watch.handle = on_watch;
	if (cuse_loop_add(all->epoll, &all->watch, fd, EPOLLIN) != 0)
		close(fd);
}

int cuse_devices_init(struct cuse_devices *all, int own, int (*open)(int node),
		      void (*log)(const char *line))
{
	int ret;

	memset(all, 0, sizeof(*all));
	all->own = own;
	all->log = log;
	all->watch.fd = -1;
	unm_list_init(&all->devices);
	unm_list_init(&all->files);
	all->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (all->epoll < 0)
		return -errno;
	ret = cuse_opener_init(&all->opener, all->epoll);
	if (ret != 0) {
		close(all->epoll);
		return ret;
	}
	all->opener.open = open;
	all->opener.done = on_opened;
	return 0;
}

bool cuse_devices_fini(struct cuse_devices *all)
{
	if (all->opener.running != 0)
		return false;		/* the end of the process ends all */
	unm_list_for_each_safe(pos, tmp, &all->files)
		cuse_file_free(unm_container(pos, struct cuse_file, node));
	cuse_opener_fini(&all->opener);
	end_watch(all);
	unm_list_for_each_safe(pos, tmp, &all->devices) {
		struct device *dev = unm_container(pos, struct device, node);

		cuse_loop_remove(all->epoll, &dev->src);
		fuse_session_destroy(dev->session);	/* closes it */
		free(dev);
	}
	free(all->buf.mem);
	close(all->epoll);
	return true;
}

int cuse_devices_step(struct cuse_devices *all, int ms)
{
	return cuse_loop_step(all->epoll, ms);
}
