/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_file.c - an open device file of a mailbox: reads, writes, polls, and the
 * connection to the daemon. cuse_act.c does actions.
 *
 * The messages of a connection are read as they come, because a process is
 * notified of each one, and kept for the readers. CUSE_KEPT of them are; then
 * the connection is not read, and the daemon keeps the messages back.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mbox_wire.h"
#include "cuse/cuse_file.h"
#include "cuse/cuse_wait.h"

/* Wait for what the file needs from the connection. */
static void update(struct cuse_file *file)
{
	uint32_t events = 0;

	if (file->hung_up) {
		cuse_loop_remove(file->epoll, &file->conn);
		return;
	}
	if (file->local && file->count < CUSE_KEPT)
		events |= EPOLLIN;
	if (!unm_list_empty(&file->writers) ||
	    (file->full && file->poller != NULL))
		events |= EPOLLOUT;
	cuse_loop_set(file->epoll, &file->conn, events);
}

/* ---- Poll ---------------------------------------------------------------- */

static bool has_space(struct cuse_file *file)
{
	struct pollfd pfd = { .fd = file->fd, .events = POLLOUT };

	if (file->local)
		return true;
	file->full = !unm_list_empty(&file->writers) ||
		     poll(&pfd, 1, 0) != 1 || (pfd.revents & POLLOUT) == 0;
	return !file->full;
}

/* All that is ready, whatever was asked for: the kernel selects. A read of a
 * remote mailbox returns 0 at once. */
static unsigned ready(struct cuse_file *file)
{
	unsigned events = 0;

	if (file->count != 0 || file->hung_up || !file->local)
		events |= POLLIN | POLLRDNORM;
	if (file->hung_up)
		events |= POLLHUP | POLLERR;
	else if (has_space(file))
		events |= POLLOUT | POLLWRNORM;
	return events;
}

static void forget_poller(struct cuse_file *file)
{
	if (file->poller != NULL)
		fuse_pollhandle_destroy(file->poller);
	file->poller = NULL;
}

/* Something has become ready: the kernel polls again. */
static void wake(struct cuse_file *file)
{
	if (file->poller != NULL)
		(void)fuse_lowlevel_notify_poll(file->poller);
	forget_poller(file);
}

void cuse_file_poll(struct cuse_file *file, fuse_req_t req,
		    struct fuse_pollhandle *ph)
{
	if (ph != NULL) {
		forget_poller(file);
		file->poller = ph;
	}
	(void)fuse_reply_poll(req, ready(file));
	update(file);
}

/* ---- Messages to the readers --------------------------------------------- */

static void keep(struct cuse_file *file, uint64_t message)
{
	file->kept[(file->first + file->count++) % CUSE_KEPT] = message;
	cuse_acts_notify(&file->acts, message);
}

static uint64_t take(struct cuse_file *file)
{
	uint64_t message = file->kept[file->first];

	file->first = (file->first + 1) % CUSE_KEPT;
	file->count--;
	return message;
}

/* Read the connection while there is free space. If the daemon has ended, the
 * kernel reports ECONNRESET once, then the messages that were left, then the
 * end. */
static void fill(struct cuse_file *file)
{
	while (file->local && !file->drained && file->count < CUSE_KEPT) {
		uint64_t message;
		ssize_t n = recv(file->fd, &message, sizeof(message),
				 MSG_DONTWAIT);

		if (n == sizeof(message))
			keep(file, message);
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n < 0 && errno == ECONNRESET)
			file->hung_up = true;
		else if (n >= 0 || errno != EINTR)
			file->hung_up = file->drained = true;
	}
}

/* Give messages to the readers that wait, the longest waiting first. Readers
 * for which there is no message go on waiting. Returns whether a message was
 * given. */
static bool serve_readers(struct cuse_file *file)
{
	struct cuse_wait *wait;
	bool given = false;

	while (file->count != 0 &&
	       (wait = cuse_wait_first(&file->readers)) != NULL) {
		uint64_t message = take(file);

		(void)fuse_reply_buf(cuse_wait_take(wait),
				     (const char *)&message, sizeof(message));
		given = true;
	}
	return given;
}

/* The daemon has closed the connection: no request waits any longer, and the
 * process that polls is notified. The loop reports the end only until update()
 * has removed the connection. */
static void end(struct cuse_file *file)
{
	cuse_wait_err_all(&file->readers, EIO);
	cuse_wait_err_all(&file->writers, EIO);
	cuse_acts_end(&file->acts);
	wake(file);
}

/* A message is kept: no reader waits. */
static void read_kept(struct cuse_file *file, fuse_req_t req)
{
	uint64_t message = take(file);
	bool known = file->hung_up;

	(void)fuse_reply_buf(req, (const char *)&message, sizeof(message));
	fill(file);
	if (file->hung_up && !known)
		end(file);
}

void cuse_file_read(struct cuse_file *file, fuse_req_t req, size_t size,
		    bool wait)
{
	if (size < sizeof(uint64_t)) {
		(void)fuse_reply_err(req, EINVAL);
		return;
	}
	if (file->count != 0) {
		read_kept(file, req);
	} else if (file->hung_up) {
		(void)fuse_reply_err(req, EIO);
	} else if (!file->local) {
		(void)fuse_reply_buf(req, NULL, 0);
	} else if (wait) {
		cuse_wait_add(&file->readers, req, NULL, NULL);
	} else {
		(void)fuse_reply_err(req, EAGAIN);
	}
	update(file);
}

/* ---- Messages of the writers --------------------------------------------- */

/* 0; -EAGAIN: no space; -EIO: the daemon has ended; another negative errno. */
static int send_message(struct cuse_file *file, uint64_t message)
{
	ssize_t n;

	if (file->hung_up)
		return -EIO;
	do {
		n = send(file->fd, &message, sizeof(message),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n == sizeof(message))
		return 0;
	file->full = errno == EAGAIN;
	return errno == EPIPE || errno == ECONNRESET ? -EIO : -errno;
}

static void serve_writers(struct cuse_file *file)
{
	struct cuse_wait *wait;
	int ret;

	while ((wait = cuse_wait_first(&file->writers)) != NULL) {
		ret = send_message(file, wait->u.message);
		if (ret == -EAGAIN)
			return;
		if (ret == 0)
			(void)fuse_reply_write(cuse_wait_take(wait),
					       sizeof(wait->u.message));
		else
			cuse_wait_err(wait, -ret);
	}
}

/* A write does not overtake those that wait. */
static void write_message(struct cuse_file *file, fuse_req_t req,
			  uint64_t message, bool wait)
{
	int ret = -EAGAIN;

	if (unm_list_empty(&file->writers))
		ret = send_message(file, message);
	if (ret == 0)
		(void)fuse_reply_write(req, sizeof(message));
	else if (ret == -EAGAIN && wait)
		cuse_wait_add(&file->writers, req, NULL, &message);
	else
		(void)fuse_reply_err(req, -ret);
	update(file);
}

void cuse_file_write(struct cuse_file *file, fuse_req_t req, const void *buf,
		     size_t size, bool wait)
{
	struct mailbox_action_t action;
	uint64_t message;

	if (file->local && size == sizeof(action)) {
		memcpy(&action, buf, sizeof(action));
		cuse_acts_write(&file->acts, req, &action);
	} else if (!file->local && size == sizeof(message)) {
		memcpy(&message, buf, sizeof(message));
		write_message(file, req, message, wait);
	} else {
		(void)fuse_reply_err(req, EINVAL);
	}
}

/* ---- Connection ---------------------------------------------------------- */

static void on_event(struct cuse_source *src, uint32_t events)
{
	struct cuse_file *file = unm_container(src, struct cuse_file, conn);

	if (events & (EPOLLHUP | EPOLLERR))
		file->hung_up = true;
	/* more than CUSE_KEPT readers may wait */
	do {
		fill(file);
	} while (serve_readers(file));
	if (file->hung_up) {
		end(file);
	} else {
		if (events & EPOLLOUT) {
			file->full = false;
			serve_writers(file);
		}
		wake(file);
	}
	update(file);
}

struct cuse_file *cuse_file_new(int epoll, int fd, bool local)
{
	struct cuse_file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	file->epoll = epoll;
	file->fd = fd;
	file->local = local;
	file->conn.handle = on_event;
	unm_list_init(&file->node);
	unm_list_init(&file->readers);
	unm_list_init(&file->writers);
	cuse_acts_init(&file->acts, epoll, fd);
	if (cuse_loop_add(epoll, &file->conn, fd, local ? EPOLLIN : 0) != 0) {
		free(file);
		return NULL;
	}
	return file;
}

void cuse_file_free(struct cuse_file *file)
{
	cuse_loop_remove(file->epoll, &file->conn);
	cuse_wait_err_all(&file->readers, EIO);
	cuse_wait_err_all(&file->writers, EIO);
	cuse_acts_fini(&file->acts);
	forget_poller(file);
	unm_list_remove(&file->node);
	close(file->fd);
	free(file);
}
