/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wake.c - wait objects: their descriptors, and waking who sleeps on them.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/unm_domain_state.h"
#include "core/unm_wake.h"
#include "hal/hal.h"
#include "unm_log.h"
#include "unm_refuse.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

/* ---- Opening --------------------------------------------------------- */

int unm_wait_add_fd(struct unm_wait *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ret;

	if (w->epfd < 0 ||
	    epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) == 0 || errno == EEXIST)
		return 0;
	ret = -errno;
	UNM_WARN(CORE, "cannot wait for a descriptor: %s "
		 "(fs.epoll.max_user_watches?)", fi_strerror(-ret));
	return ret;
}

/* A wait set needs no event fd, because nothing signals the set itself. A
 * member of a set gets no epoll set for the application, because the kernel
 * limits the depth of nested epoll sets. */
static int unm_wait_descriptors(struct unm_wait *w)
{
	struct epoll_event ev = { .events = EPOLLIN };

	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epfd < 0)
		return -errno;
	if (w->fid != NULL && w->fid->fclass == FI_CLASS_WAIT)
		return 0;
	w->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->evfd < 0)
		return -errno;
	if (w->obj == FI_WAIT_UNSPEC || w->obj == FI_WAIT_MUTEX_COND)
		return 0;
	w->appev = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->appev < 0)
		return -errno;
	if (w->obj == FI_WAIT_SET)
		return 0;
	w->appfd = epoll_create1(EPOLL_CLOEXEC);
	if (w->appfd < 0 ||
	    epoll_ctl(w->appfd, EPOLL_CTL_ADD, w->epfd, &ev) != 0 ||
	    epoll_ctl(w->appfd, EPOLL_CTL_ADD, w->appev, &ev) != 0)
		return -errno;
	return 0;
}

/* The mutex is recursive: an application may hold it in a call that signals. */
static int unm_wait_mutex_cond(struct unm_wait *w)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&w->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&w->cond, NULL);
	return 0;
}

void unm_wait_shut(struct unm_wait *w)
{
	int *const fds[] = { &w->appfd, &w->appev, &w->epfd, &w->evfd };

	for (int i = 0; i < 4; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	if (w->obj == FI_WAIT_MUTEX_COND) {
		pthread_mutex_destroy(&w->mutex);
		pthread_cond_destroy(&w->cond);
	}
}

static const char *unm_wait_name(const struct unm_wait *w)
{
	switch (w->fid != NULL ? w->fid->fclass : FI_CLASS_UNSPEC) {
	case FI_CLASS_CQ:
		return "cq";
	case FI_CLASS_CNTR:
		return "cntr";
	case FI_CLASS_EQ:
		return "eq";
	case FI_CLASS_WAIT:
		return "wait set";
	default:
		return "progress thread";
	}
}

int unm_wait_make(struct unm_wait *w, struct fid *fid,
		  struct unm_domain *domain, enum fi_wait_obj obj)
{
	char name[UNM_NAMES_MAX];
	int ret = 0;

	w->obj = obj;
	w->fid = fid;
	w->domain = domain;
	w->epfd = w->evfd = w->appfd = w->appev = -1;
	unm_list_init(&w->in_conds);
	unm_list_init(&w->in_set);
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
	case FI_WAIT_SET:
		break;
	case FI_WAIT_MUTEX_COND:
		ret = unm_wait_mutex_cond(w);
		w->cond_of = w;
		break;
	default:
		UNM_INFO(CORE, "%s: wait object %s asked, offered: none, "
			 "unspec, set, fd, mutex_cond, yield, pollfd\n",
			 unm_wait_name(w),
			 unm_value_name(UNM_TYPE_WAIT, obj, name,
					sizeof(name)));
		return -FI_ENOSYS;
	}
	if (ret == 0)
		ret = unm_wait_descriptors(w);
	if (ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM)
		UNM_WARN(CORE, "cannot make a wait object of a %s: %s "
			 "(ulimit -n?)", unm_wait_name(w), fi_strerror(-ret));
	if (ret != 0)
		unm_wait_shut(w);
	return ret;
}

/* ---- Waking ---------------------------------------------------------- */

static void unm_wait_raise(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n;			/* full: a wake-up is pending */
}

void unm_wait_lower(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;			/* nobody was woken */
}

void unm_wait_set_waited(struct unm_wait *w, bool waited)
{
	w->wanted += waited - w->waited;
	w->waited = waited;
}

void unm_wait_wake_progress(struct unm_domain *domain)
{
	if (domain->thread_wait == NULL)
		return;
	domain->progress_woken = true;
	unm_wait_wake(domain->thread_wait);
}

void unm_wait_wake_external(struct unm_wait *w)
{
	unm_wait_set_waited(w, false);
	w->woken = true;
	if (w->appev >= 0)
		unm_wait_raise(w->appev);
	if (w->domain != NULL && w->cond_of != NULL) {
		w->due = true;
		unm_wait_wake_progress(w->domain);
	}
}

void unm_wait_wake(struct unm_wait *w)
{
	if (w->unaware != w->asleep) {	/* else all of them are on their way */
		w->epoch++;
		w->unaware = w->asleep;
		unm_wait_raise(w->evfd);
	}
	if (w->waited)
		unm_wait_wake_external(w);
}

void unm_wait_signal(struct unm_wait *w)
{
	w->signalled = w->obj != FI_WAIT_UNSPEC;
	if (w->waited)
		unm_wait_wake_external(w);
}

/*
 * The lock of the domain is not held: whoever calls fi_trywait() holds the
 * mutex and wants the lock. Nor do we wait for a mutex, as its owner may be
 * about to close another object.
 */
bool unm_wait_signal_conds(struct unm_domain *domain)
{
	bool all = true;

	pthread_mutex_lock(&domain->cond_lock);
	unm_list_for_each(pos, &domain->conds) {
		struct unm_wait *w = unm_container(pos, struct unm_wait,
						   in_conds);
		struct unm_wait *c = w->cond_of;
		bool due;

		unm_lock(domain);
		due = w->due;
		w->due = false;
		unm_unlock(domain);
		if (!due)
			continue;
		if (pthread_mutex_trylock(&c->mutex) != 0) {
			unm_lock(domain);
			w->due = true;
			unm_unlock(domain);
			all = false;
			continue;
		}
		pthread_cond_broadcast(&c->cond);
		pthread_mutex_unlock(&c->mutex);
	}
	pthread_mutex_unlock(&domain->cond_lock);
	return all;
}

/* ---- Time left ------------------------------------------------------- */

uint64_t unm_wait_end(int timeout)
{
	return timeout < 0 ? 0 : unm_now_us() + (uint64_t)timeout * 1000;
}

int64_t unm_wait_left(uint64_t end, int timeout)
{
	int64_t left = (int64_t)(end - unm_now_us());

	if (timeout < 0)
		return -1;
	return left > 0 ? (left + 999) / 1000 : 0;
}

/* ---- Event queues ---------------------------------------------------- */

void unm_wait_set_readable(struct unm_wait *w, bool there)
{
	int fds[] = { w->evfd, w->appev };

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0 && there)
			unm_wait_raise(fds[i]);
		else if (fds[i] >= 0)
			unm_wait_lower(fds[i]);
}

void unm_wait_broadcast(struct unm_wait *w)
{
	struct unm_wait *c = w->cond_of;

	if (w->cond_of == NULL)
		return;
	pthread_mutex_lock(&c->mutex);
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->mutex);
}

void unm_wait_for_event(struct unm_wait *w, int64_t ms)
{
	struct pollfd pfd = { .fd = w->evfd, .events = POLLIN };

	if (w->evfd < 0)
		sched_yield();
	else
		poll(&pfd, 1, (int)ms);
}
