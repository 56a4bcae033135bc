/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_eq.c - event queue: a list and an eventfd that counts it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "unm_ep.h"
#include "unm_log.h"
#include "unm_ops.h"
#include "util/unm_list.h"

struct unm_eq {
	struct fid_eq fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;
	pthread_mutex_t lock;
	struct unm_list events;
	bool writable;
	enum fi_wait_obj wait;
	int fd;
};

struct unm_event {
	struct unm_list link;
	uint32_t type;
	size_t len;
	char data[];
};

static struct unm_eq *unm_eq(struct fid_eq *fid)
{
	return (struct unm_eq *)fid;
}

static ssize_t unm_eq_take(struct unm_eq *eq, uint32_t *type, void *buf,
			   size_t len, uint64_t flags)
{
	struct unm_event *ev;
	uint64_t count;
	ssize_t ret;

	pthread_mutex_lock(&eq->lock);
	if (unm_list_empty(&eq->events)) {
		ret = -FI_EAGAIN;
		goto out;
	}
	ev = unm_container(eq->events.next, struct unm_event, link);
	if (ev->len > len) {
		ret = -FI_ETOOSMALL;
		goto out;
	}
	*type = ev->type;
	memcpy(buf, ev->data, ev->len);
	ret = ev->len;
	if (!(flags & FI_PEEK)) {
		ssize_t n = read(eq->fd, &count, sizeof(count));

		(void)n;		/* semaphore: one event less */
		unm_list_remove(&ev->link);
		free(ev);
	}
out:
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t unm_eq_read(struct fid_eq *fid, uint32_t *type, void *buf,
			   size_t len, uint64_t flags)
{
	if (flags & ~FI_PEEK)
		return -FI_EINVAL;
	return unm_eq_take(unm_eq(fid), type, buf, len, flags);
}

static ssize_t unm_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
			      uint64_t flags)
{
	(void)fid;
	(void)buf;
	(void)flags;
	return -FI_EAGAIN;		/* nothing here fails later */
}

static ssize_t unm_eq_write(struct fid_eq *fid, uint32_t type,
			    const void *buf, size_t len, uint64_t flags)
{
	struct unm_eq *eq = unm_eq(fid);
	struct unm_event *ev;
	uint64_t one = 1;
	ssize_t n;

	if (!eq->writable || flags != 0)
		return -FI_EINVAL;
	ev = malloc(sizeof(*ev) + len);
	if (ev == NULL)
		return -FI_ENOMEM;
	ev->type = type;
	ev->len = len;
	memcpy(ev->data, buf, len);
	pthread_mutex_lock(&eq->lock);
	unm_list_append(&eq->events, &ev->link);
	n = write(eq->fd, &one, sizeof(one));
	(void)n;
	pthread_mutex_unlock(&eq->lock);
	return len;
}

static ssize_t unm_eq_sread(struct fid_eq *fid, uint32_t *type, void *buf,
			    size_t len, int timeout, uint64_t flags)
{
	struct unm_eq *eq = unm_eq(fid);
	struct pollfd pfd = { .fd = eq->fd, .events = POLLIN };
	uint64_t end = unm_now_us() + (uint64_t)timeout * 1000;
	int64_t left = -1;
	ssize_t ret;

	if (flags & ~FI_PEEK)
		return -FI_EINVAL;
	for (;;) {
		ret = unm_eq_take(eq, type, buf, len, flags);
		if (ret != -FI_EAGAIN)
			return ret;
		if (timeout >= 0) {
			left = (int64_t)(end - unm_now_us());
			if (left <= 0)
				return -FI_EAGAIN;
			left = (left + 999) / 1000;
		}
		poll(&pfd, 1, left);
	}
}

static const char *unm_eq_strerror(struct fid_eq *fid, int prov_errno,
				   const void *err_data, char *buf, size_t len)
{
	(void)fid;
	(void)err_data;
	(void)buf;
	(void)len;
	return fi_strerror(prov_errno);
}

static struct fi_ops_eq unm_ops_eq = {
	.size = sizeof(struct fi_ops_eq),
	.read = unm_eq_read,
	.readerr = unm_eq_readerr,
	.write = unm_eq_write,
	.sread = unm_eq_sread,
	.strerror = unm_eq_strerror,
};

static int unm_eq_control(struct fid *fid, int command, void *arg)
{
	struct unm_eq *eq = unm_container(fid, struct unm_eq, fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (eq->wait == FI_WAIT_NONE)
			return -FI_ENOSYS;
		*(int *)arg = eq->fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->wait;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int unm_eq_close(struct fid *fid)
{
	struct unm_eq *eq = unm_container(fid, struct unm_eq, fid.fid);
	struct unm_list *node;

	if (unm_ref_busy(&eq->ref))
		return -FI_EBUSY;
	while ((node = unm_list_pop(&eq->events)) != NULL)
		free(unm_container(node, struct unm_event, link));
	close(eq->fd);
	pthread_mutex_destroy(&eq->lock);
	unm_ref_put(&eq->fabric->ref);
	free(eq);
	return 0;
}

static struct fi_ops unm_ops_eq_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_eq_close,
	.bind = unm_no_bind,
	.control = unm_eq_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **fid, void *context)
{
	struct unm_eq *eq;

	if (attr != NULL && attr->wait_obj != FI_WAIT_NONE &&
	    attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	eq = calloc(1, sizeof(*eq));
	if (eq == NULL)
		return -FI_ENOMEM;
	eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (eq->fd < 0) {
		int ret = -errno;

		UNM_WARN(EQ, "no event descriptor: %s (ulimit -n?)",
			 fi_strerror(-ret));
		free(eq);
		return ret;
	}
	pthread_mutex_init(&eq->lock, NULL);
	unm_list_init(&eq->events);
	eq->writable = attr != NULL && (attr->flags & FI_WRITE);
	eq->wait = attr != NULL ? attr->wait_obj : FI_WAIT_UNSPEC;
	eq->fabric = (struct unm_fabric *)fabric;
	unm_ref_get(&eq->fabric->ref);
	unm_fid_init(&eq->fid.fid, FI_CLASS_EQ, &unm_ops_eq_fid, context);
	eq->fid.ops = &unm_ops_eq;
	*fid = &eq->fid;
	return 0;
}
