/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_eq.c - fi_eq(3): event queues. The provider reports no events, as
 * endpoints have no connections and address vectors are filled synchronously; a
 * queue holds the events that the application writes (fi_eq_write()).
 */
#include <stdlib.h>
#include <string.h>

#include "api/unm_eq.h"
#include "api/unm_wait.h"
#include "core/unm_domain_state.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "unm_nosys.h"
#include "util/unm_list.h"

/* An event queue, from fi_eq_open() to fi_close(). */
struct unm_eq {
	struct fid_eq fid;
	struct unm_fabric *fabric;
	struct unm_ref ref;
	pthread_mutex_t lock;		/* protects events and wait */
	struct unm_list events;		/* unm_event.link, oldest first */
	bool writable;			/* opened with FI_WRITE */
	struct unm_wait wait;
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
		unm_list_remove(&ev->link);
		free(ev);
		if (unm_list_empty(&eq->events))
			unm_wait_set_readable(&eq->wait, false);
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
	return -FI_EAGAIN;		/* no call fails asynchronously */
}

static ssize_t unm_eq_write(struct fid_eq *fid, uint32_t type,
			    const void *buf, size_t len, uint64_t flags)
{
	struct unm_eq *eq = unm_eq(fid);
	struct unm_event *ev;

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
	unm_wait_set_readable(&eq->wait, true);
	pthread_mutex_unlock(&eq->lock);
	unm_wait_broadcast(&eq->wait);
	return len;
}

static ssize_t unm_eq_sread(struct fid_eq *fid, uint32_t *type, void *buf,
			    size_t len, int timeout, uint64_t flags)
{
	struct unm_eq *eq = unm_eq(fid);
	uint64_t end = unm_wait_end(timeout);
	int64_t left;
	ssize_t ret;

	if (eq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (flags & ~FI_PEEK)
		return -FI_EINVAL;
	for (;;) {
		ret = unm_eq_take(eq, type, buf, len, flags);
		if (ret != -FI_EAGAIN)
			return ret;
		left = unm_wait_left(end, timeout);
		if (left == 0)
			return -FI_EAGAIN;
		unm_wait_for_event(&eq->wait, left);
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

	return unm_wait_control(&eq->wait, command, arg);
}

bool unm_eq_readable(struct fid *fid)
{
	struct unm_eq *eq = unm_container(fid, struct unm_eq, fid.fid);
	bool readable;

	pthread_mutex_lock(&eq->lock);
	readable = !unm_list_empty(&eq->events);
	pthread_mutex_unlock(&eq->lock);
	return readable;
}

int unm_eq_trywait(struct fid *fid)
{
	struct unm_eq *eq = unm_container(fid, struct unm_eq, fid.fid);

	if (eq->wait.obj == FI_WAIT_NONE || eq->wait.obj == FI_WAIT_YIELD)
		return -FI_EINVAL;
	return unm_eq_readable(fid) ? -FI_EAGAIN : 0;
}

struct unm_ref *unm_eq_ref(struct fid *fid, const struct unm_fabric *fabric)
{
	struct unm_eq *eq = unm_container(fid, struct unm_eq, fid.fid);

	return eq->fabric == fabric ? &eq->ref : NULL;
}

static int unm_eq_close(struct fid *fid)
{
	struct unm_eq *eq = unm_container(fid, struct unm_eq, fid.fid);
	struct unm_list *node;

	if (unm_ref_busy(&eq->ref))
		return -FI_EBUSY;
	while ((node = unm_list_pop(&eq->events)) != NULL)
		free(unm_container(node, struct unm_event, link));
	unm_wait_close(&eq->wait);
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
	struct fi_eq_attr none = { .wait_obj = FI_WAIT_UNSPEC };
	struct unm_eq *eq;
	int ret;

	if (attr == NULL)
		attr = &none;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (eq == NULL)
		return -FI_ENOMEM;
	pthread_mutex_init(&eq->lock, NULL);
	unm_list_init(&eq->events);
	eq->writable = attr->flags & FI_WRITE;
	eq->fabric = (struct unm_fabric *)fabric;
	unm_fid_init(&eq->fid.fid, FI_CLASS_EQ, &unm_ops_eq_fid, context);
	eq->fid.ops = &unm_ops_eq;
	ret = unm_wait_open(&eq->wait, &eq->fid.fid, NULL, attr->wait_obj,
			    attr->wait_set);
	if (ret != 0) {
		pthread_mutex_destroy(&eq->lock);
		free(eq);
		return ret;
	}
	unm_ref_get(&eq->fabric->ref);
	*fid = &eq->fid;
	return 0;
}
