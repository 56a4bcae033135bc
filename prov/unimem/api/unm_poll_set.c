/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_poll_set.c - fi_poll(3): poll sets and wait sets. A poll set reports
 * which of its queues and counters have events; it never sleeps. A wait set
 * sleeps until one of its members has an event; its state and membership are in
 * unm_wait_set.c. core/unm_wake.c wakes sleepers.
 */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/unm_cntr.h"
#include "api/unm_cq.h"
#include "api/unm_eq.h"
#include "api/unm_poll_set.h"
#include "api/unm_wait.h"
#include "api/unm_wait_set.h"
#include "core/unm_cntr_value.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "progress/unm_progress.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "unm_refuse.h"
#include "util/unm_list.h"

#define UNM_SET_SLEEP_MS	100	/* longest sleep in one go */

/* ---- Members --------------------------------------------------------- */

static struct unm_cq *unm_fid_cq(struct fid *fid)
{
	return unm_container(fid, struct unm_cq, fid.fid);
}

static struct unm_cntr *unm_fid_cntr(struct fid *fid)
{
	return unm_container(fid, struct unm_cntr, fid.fid);
}

/* The reference count of a queue or counter, and its domain; NULL: the object
 * is neither. */
static struct unm_ref *unm_fid_ref(struct fid *fid, struct unm_domain **domain)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		*domain = unm_fid_cq(fid)->domain;
		return &unm_fid_cq(fid)->ref;
	case FI_CLASS_CNTR:
		*domain = unm_fid_cntr(fid)->domain;
		return &unm_fid_cntr(fid)->ref;
	default:
		return NULL;
	}
}

/* Make progress on a queue or counter; the domain is locked. True: many polls
 * in a row were empty. */
static bool unm_fid_progress(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ) {
		struct unm_cq *cq = unm_fid_cq(fid);

		unm_wait_awake(&cq->wait);
		return unm_trigger_poll(cq->domain, &cq->eps, &cq->idle);
	} else {
		struct unm_cntr *cntr = unm_fid_cntr(fid);

		unm_wait_awake(&cntr->wait);
		return unm_trigger_poll(cntr->domain, unm_cntr_eps(cntr),
					&cntr->idle);
	}
}

/* ---- Poll sets ------------------------------------------------------- */

/* A poll set, from fi_poll_open() to fi_close(). */
struct unm_pollset {
	struct fid_poll fid;
	struct unm_domain *domain;
	pthread_mutex_t lock;		/* protects polled; taken before the
					 * domain's lock */
	struct unm_list polled;		/* unm_polled.link */
};

/* A member of a poll set, from poll_add to poll_del; holds a reference. */
struct unm_polled {
	struct unm_list link;
	struct fid *fid;		/* queue or counter */
	uint64_t value, errors;		/* of a counter, when last reported */
};

static struct unm_pollset *unm_pollset(struct fid_poll *fid)
{
	return (struct unm_pollset *)fid;
}

/* True: the member is to be reported: a queue that is not empty, or a counter
 * that changed since it was last reported. */
static bool unm_polled_ready(struct unm_polled *p)
{
	struct unm_cntr *cntr;
	uint64_t value, errors;
	bool ready;

	if (p->fid->fclass == FI_CLASS_CQ)
		return unm_cq_readable(unm_fid_cq(p->fid));
	cntr = unm_fid_cntr(p->fid);
	value = unm_cntr_get(&cntr->value);
	errors = unm_cntr_get(&cntr->errors);
	ready = value != p->value || errors != p->errors;
	p->value = value;
	p->errors = errors;
	return ready;
}

static int unm_pollset_poll(struct fid_poll *fid, void **context, int count)
{
	struct unm_pollset *set = unm_pollset(fid);
	struct unm_domain *domain = set->domain;
	bool idle = true;
	int n = 0;

	if (count < 0 || (context == NULL && count != 0))
		return -FI_EINVAL;
	pthread_mutex_lock(&set->lock);
	unm_lock(domain);
	unm_list_for_each(pos, &set->polled)
		idle &= unm_fid_progress(unm_container(pos, struct unm_polled,
						       link)->fid);
	unm_list_for_each(pos, &set->polled) {
		struct unm_polled *p = unm_container(pos, struct unm_polled,
						     link);

		if (n == count)
			break;
		if (unm_polled_ready(p))
			context[n++] = p->fid->context;
	}
	unm_unlock(domain);
	pthread_mutex_unlock(&set->lock);
	if (n == 0 && idle)
		sched_yield();
	return n;
}

static struct unm_polled *unm_pollset_find(struct unm_pollset *set,
					   struct fid *fid)
{
	unm_list_for_each(pos, &set->polled) {
		struct unm_polled *p = unm_container(pos, struct unm_polled,
						     link);

		if (p->fid == fid)
			return p;
	}
	return NULL;
}

static int unm_pollset_add(struct fid_poll *fid, struct fid *event,
			   uint64_t flags)
{
	struct unm_pollset *set = unm_pollset(fid);
	struct unm_domain *domain = NULL;
	struct unm_ref *ref = unm_fid_ref(event, &domain);
	struct unm_polled *p;
	char name[UNM_NAMES_MAX];
	int ret = 0;

	if (flags != 0)
		return -FI_EBADFLAGS;
	if (ref == NULL || domain != set->domain) {
		UNM_INFO(CORE, "%s asked for a poll set, offered: cq, cntr, "
			 "of its domain\n",
			 unm_value_name(UNM_TYPE_CLASS, event->fclass, name,
					sizeof(name)));
		return -FI_EINVAL;
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -FI_ENOMEM;
	p->fid = event;
	pthread_mutex_lock(&set->lock);
	if (unm_pollset_find(set, event) != NULL) {
		ret = -FI_EALREADY;
		free(p);
	} else {
		unm_ref_get(ref);
		unm_list_append(&set->polled, &p->link);
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

static void unm_polled_free(struct unm_polled *p)
{
	struct unm_domain *domain;

	unm_ref_put(unm_fid_ref(p->fid, &domain));
	unm_list_remove(&p->link);
	free(p);
}

static int unm_pollset_del(struct fid_poll *fid, struct fid *event,
			   uint64_t flags)
{
	struct unm_pollset *set = unm_pollset(fid);
	struct unm_polled *p;

	if (flags != 0)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&set->lock);
	p = unm_pollset_find(set, event);
	if (p != NULL)
		unm_polled_free(p);
	pthread_mutex_unlock(&set->lock);
	return p != NULL ? 0 : -FI_EINVAL;
}

static struct fi_ops_poll unm_ops_poll = {
	.size = sizeof(struct fi_ops_poll),
	.poll = unm_pollset_poll,
	.poll_add = unm_pollset_add,
	.poll_del = unm_pollset_del,
};

/* Release the members. A poll set can always be closed, because no object is
 * bound to it. */
static int unm_pollset_close(struct fid *fid)
{
	struct unm_pollset *set = unm_container(fid, struct unm_pollset,
						fid.fid);

	while (!unm_list_empty(&set->polled))
		unm_polled_free(unm_container(set->polled.next,
					      struct unm_polled, link));
	pthread_mutex_destroy(&set->lock);
	unm_ref_put(&set->domain->ref);
	free(set);
	return 0;
}

static struct fi_ops unm_ops_poll_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_pollset_close,
	.bind = unm_no_bind,
	.control = unm_no_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_pollset_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **fid)
{
	struct unm_pollset *set;

	if (attr != NULL && attr->flags != 0)
		return -FI_EBADFLAGS;
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return -FI_ENOMEM;
	set->domain = unm_domain(domain);
	pthread_mutex_init(&set->lock, NULL);
	unm_list_init(&set->polled);
	unm_ref_get(&set->domain->ref);
	unm_fid_init(&set->fid.fid, FI_CLASS_POLL, &unm_ops_poll_fid, NULL);
	set->fid.ops = &unm_ops_poll;
	*fid = &set->fid;
	return 0;
}

/* ---- Wait sets ------------------------------------------------------- */

static int unm_member_try(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return unm_cq_trywait(unm_fid_cq(fid));
	case FI_CLASS_CNTR:
		return unm_cntr_trywait(unm_fid_cntr(fid));
	default:
		return unm_eq_trywait(fid);
	}
}

static int unm_wait_set_arm(struct unm_wait_set *set)
{
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	unm_list_for_each(pos, &set->members)
		if (ret == 0)
			ret = unm_member_try(unm_container(pos,
						struct unm_wait, in_set)->fid);
	pthread_mutex_unlock(&set->lock);
	return ret;
}

/* fi_trywait() reported the signals of the members: clear them. */
static void unm_wait_set_calm(struct unm_wait_set *set)
{
	pthread_mutex_lock(&set->lock);
	unm_list_for_each(pos, &set->members) {
		struct unm_wait *w = unm_container(pos, struct unm_wait,
						   in_set);

		if (w->domain == NULL)
			continue;
		unm_lock(w->domain);
		w->signalled = false;
		unm_unlock(w->domain);
	}
	pthread_mutex_unlock(&set->lock);
}

int unm_wait_set_try(struct fid *fid)
{
	struct unm_wait_set *set = unm_container(fid, struct unm_wait_set,
						 fid.fid);

	int ret;

	if (set->wait.obj == FI_WAIT_YIELD)
		return -FI_EINVAL;
	ret = unm_wait_set_arm(set);
	if (ret == -FI_EAGAIN)		/* reports pending signals */
		unm_wait_set_calm(set);
	return ret;
}

/* Make progress on a member. True: it has something to read, or was
 * signalled. */
static bool unm_member_ready(struct unm_wait *w)
{
	bool ready;

	if (w->domain == NULL)
		return unm_eq_readable(w->fid);
	unm_lock(w->domain);
	unm_fid_progress(w->fid);
	ready = w->fid->fclass == FI_CLASS_CQ ?
		unm_cq_readable(unm_fid_cq(w->fid)) :
		unm_cntr_changed(unm_fid_cntr(w->fid));
	if (w->signalled) {
		w->signalled = false;
		ready = true;
	}
	unm_unlock(w->domain);
	return ready;
}

static bool unm_wait_set_ready(struct unm_wait_set *set)
{
	bool ready = false;

	pthread_mutex_lock(&set->lock);
	unm_list_for_each(pos, &set->members)
		ready |= unm_member_ready(unm_container(pos, struct unm_wait,
						       in_set));
	pthread_mutex_unlock(&set->lock);
	return ready;
}

static void unm_wait_set_block(struct unm_wait_set *set, int64_t ms)
{
	struct pollfd pfd = { .fd = set->wait.epfd, .events = POLLIN };

	if (set->wait.epfd < 0 || unm_wait_set_arm(set) != 0) {
		sched_yield();
		return;
	}
	if (ms < 0 || ms > UNM_SET_SLEEP_MS)
		ms = UNM_SET_SLEEP_MS;
	poll(&pfd, 1, (int)ms);
}

static int unm_wait_set_wait(struct fid_wait *fid, int timeout)
{
	struct unm_wait_set *set = unm_wait_set(fid);
	uint64_t end = unm_wait_end(timeout);

	for (;;) {
		int64_t left;

		if (unm_wait_set_ready(set))
			return 0;
		left = unm_wait_left(end, timeout);
		if (left == 0)
			return -FI_ETIMEDOUT;
		unm_wait_set_block(set, left);
	}
}

static struct fi_ops_wait unm_ops_wait = {
	.size = sizeof(struct fi_ops_wait),
	.wait = unm_wait_set_wait,
};

static int unm_wait_set_close(struct fid *fid)
{
	struct unm_wait_set *set = unm_container(fid, struct unm_wait_set,
						 fid.fid);

	if (unm_ref_busy(&set->ref))
		return -FI_EBUSY;
	unm_wait_close(&set->wait);
	pthread_mutex_destroy(&set->lock);
	unm_ref_put(&set->fabric->ref);
	free(set);
	return 0;
}

static int unm_wait_set_control(struct fid *fid, int command, void *arg)
{
	struct unm_wait_set *set = unm_container(fid, struct unm_wait_set,
						 fid.fid);

	return unm_wait_control(&set->wait, command, arg);
}

static struct fi_ops unm_ops_wait_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_wait_set_close,
	.bind = unm_no_bind,
	.control = unm_wait_set_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		      struct fid_wait **fid)
{
	struct fi_wait_attr none = { .wait_obj = FI_WAIT_UNSPEC };
	struct unm_wait_set *set;
	int ret;

	if (attr == NULL)
		attr = &none;
	if (attr->flags != 0)
		return -FI_EBADFLAGS;
	if (attr->wait_obj == FI_WAIT_NONE || attr->wait_obj == FI_WAIT_SET) {
		UNM_INFO(FABRIC, "wait set with %s asked, offered: unspec, fd, "
			 "mutex_cond, yield, pollfd\n",
			 attr->wait_obj == FI_WAIT_SET ? "FI_WAIT_SET" :
			 "FI_WAIT_NONE");
		return -FI_ENOSYS;
	}
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return -FI_ENOMEM;
	set->fabric = (struct unm_fabric *)fabric;
	set->owner = getpid();
	pthread_mutex_init(&set->lock, NULL);
	unm_list_init(&set->members);
	unm_fid_init(&set->fid.fid, FI_CLASS_WAIT, &unm_ops_wait_fid, NULL);
	set->fid.ops = &unm_ops_wait;
	ret = unm_wait_open(&set->wait, &set->fid.fid, NULL, attr->wait_obj,
			    NULL);
	if (ret != 0) {
		pthread_mutex_destroy(&set->lock);
		free(set);
		return ret;
	}
	unm_ref_get(&set->fabric->ref);
	*fid = &set->fid;
	return 0;
}
