/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_watch.c - marks the pages of a service as freed when the process of the
 * service has ended, for threads that access mapped pages and exchange no
 * packets with the service.
 *
 * A service that ends by itself stores 0 in the words of its pages, so that all
 * clients find them freed. A service that is killed cannot. So each process
 * that maps segments has one thread, which sleeps until the process of a
 * service ends and then stores these words. Operations on mapped pages load
 * the word in any case, so they do not become slower. Part of libgsas;
 * gsas_window.c adds segments, gsas_segments.c removes them.
 *
 * A forked child has neither the thread nor the mappings. It starts a thread of
 * its own when it maps its first segment.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client/gsas_job.h"
#include "client/gsas_watch.h"
#include "common/gsas_pkt.h"
#include "hal/hal_process.h"
#include "util/unm_list.h"

#define STACK_BYTES	(256 << 10)	/* enough for sanitizers */

/* A segment that a thread has mapped, from gsas_watch_add() to
 * gsas_watch_remove(). gsas_lock() protects it. */
struct gsas_watch {
	struct unm_list list;		/* in service->segments */
	struct service *service;
	pid_t pid;			/* process that added the segment */
	uint8_t *memory;		/* where it is mapped */
	uint64_t bytes;
};

/* The process of a service, while a segment of it is mapped. gsas_lock()
 * protects it. */
struct service {
	struct unm_list list;		/* in g_watch.services */
	struct unm_list segments;	/* struct gsas_watch */
	uint64_t id;			/* hal_peer_process() */
	uint64_t number;		/* data of its epoll event; unique */
	int fd;				/* readable: the process has ended */
	bool ended;
};

static struct {
	struct unm_list services;
	pid_t pid;			/* process to which these belong */
	int epfd;			/* of the thread */
	uint64_t number;		/* last service.number given */
} g_watch;

/* ---- The thread ---------------------------------------------------------- */

/* Mark all pages of a segment as freed. Words that are 0 are not stored again:
 * they may be in pages that have no memory yet. */
static void clear_words(const struct gsas_watch *watch)
{
	_Atomic uint32_t *word = (_Atomic uint32_t *)watch->memory;

	for (uint64_t i = 0; i < watch->bytes / GSAS_PAGE_BYTES; i++)
		if (atomic_load_explicit(&word[i], memory_order_relaxed) != 0)
			atomic_store_explicit(&word[i], 0,
					      memory_order_release);
}

static void service_ended(uint64_t number)
{
	gsas_lock();
	unm_list_for_each_safe(pos, tmp, &g_watch.services) {
		struct service *s = unm_container(pos, struct service, list);

		if (s->number != number)
			continue;
		s->ended = true;
		epoll_ctl(g_watch.epfd, EPOLL_CTL_DEL, s->fd, NULL);
		unm_list_for_each_safe(at, next, &s->segments)
			clear_words(unm_container(at, struct gsas_watch, list));
	}
	gsas_unlock();
}

static void *watch_main(void *arg)
{
	int epfd = (int)(intptr_t)arg;
	struct epoll_event ev;

	for (;;)
		if (epoll_wait(epfd, &ev, 1, -1) == 1)
			service_ended(ev.data.u64);
	return NULL;
}

/* Start the thread, with all signals blocked: the program's threads handle
 * signals. */
static int thread_start(int epfd)
{
	pthread_attr_t attr;
	sigset_t all, was;
	pthread_t thread;
	int ret = pthread_attr_init(&attr);

	if (ret != 0)
		return -FI_ENOMEM;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	ret = pthread_create(&thread, &attr, watch_main,
			     (void *)(intptr_t)epfd);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	pthread_attr_destroy(&attr);
	return ret != 0 ? -FI_EAGAIN : 0;
}

/* ---- Services, under the lock -------------------------------------------- */

/* In a forked child: close the copies of the parent's descriptors. */
static void watch_close_inherited(void)
{
	if (g_watch.pid == 0)
		return;
	unm_list_for_each(pos, &g_watch.services)
		close(unm_container(pos, struct service, list)->fd);
	close(g_watch.epfd);
	g_watch.pid = 0;
}

static int watch_begin(void)
{
	int ret;

	if (g_watch.pid == getpid())
		return 0;
	watch_close_inherited();
	unm_list_init(&g_watch.services);
	g_watch.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (g_watch.epfd < 0)
		return errno == EMFILE || errno == ENFILE ? -FI_EMFILE :
			-FI_ENOMEM;
	ret = thread_start(g_watch.epfd);
	if (ret != 0)
		close(g_watch.epfd);
	else
		g_watch.pid = getpid();
	return ret;
}

/* True while the process lives. Once it has ended, another process may have its
 * id, because an id may be a process id. */
static bool service_lives(const struct service *s)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLIN };

	return !s->ended && poll(&pfd, 1, 0) == 0;
}

/* The service of a process, made if there is none. Takes over fd, also when it
 * fails. NULL: no memory. */
static struct service *service_get(uint64_t id, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct service *s;

	unm_list_for_each_safe(pos, tmp, &g_watch.services) {
		s = unm_container(pos, struct service, list);
		if (s->id == id && service_lives(s)) {
			close(fd);
			return s;
		}
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		goto close_fd;
	unm_list_init(&s->segments);
	s->id = id;
	s->fd = fd;
	s->number = ++g_watch.number;
	ev.data.u64 = s->number;
	if (epoll_ctl(g_watch.epfd, EPOLL_CTL_ADD, fd, &ev) != 0)
		goto free_service;
	unm_list_append(&g_watch.services, &s->list);
	return s;

free_service:
	free(s);
close_fd:
	close(fd);
	return NULL;
}

/* Free the service of a process if no segment of it is mapped. */
static void service_put(struct service *s)
{
	if (!unm_list_empty(&s->segments))
		return;
	unm_list_remove(&s->list);
	/* closing fd may not remove it from epfd, because the HAL may have a
	 * descriptor of the same open file */
	if (!s->ended)
		epoll_ctl(g_watch.epfd, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	free(s);
}

/* ---- Segments ------------------------------------------------------------ */

/* Takes over fd, also when it fails. */
static int watch_add(uint64_t id, int fd, struct gsas_watch *watch)
{
	int ret = watch_begin();

	if (ret != 0) {
		close(fd);
		return ret;
	}
	watch->service = service_get(id, fd);
	if (watch->service == NULL)
		return -FI_ENOMEM;
	watch->pid = g_watch.pid;
	unm_list_append(&watch->service->segments, &watch->list);
	return 0;
}

int gsas_watch_add(struct hal_peer *peer, uint8_t *memory, uint64_t bytes,
		   struct gsas_watch **watch)
{
	struct gsas_watch *w;
	uint64_t id;
	int ret, fd = hal_peer_process(peer, &id);

	*watch = NULL;
	if (fd < 0)
		return fd;
	w = calloc(1, sizeof(*w));
	if (w == NULL) {
		close(fd);
		return -FI_ENOMEM;
	}
	w->memory = memory;
	w->bytes = bytes;
	gsas_lock();
	ret = watch_add(id, fd, w);
	gsas_unlock();
	if (ret == 0)
		*watch = w;
	else
		free(w);
	return ret;
}

void gsas_watch_remove(struct gsas_watch *watch)
{
	if (watch == NULL)
		return;
	if (watch->pid == getpid()) {
		gsas_lock();
		unm_list_remove(&watch->list);
		service_put(watch->service);
		gsas_unlock();
	}
	free(watch);
}
