/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net.c - the table of functions with which a backend has peers on other
 * hosts too.
 *
 * Entry points: hal_net_wrap(), hal_net_board_host(). Interfaces, memory and
 * the peers of this host are those of the backend. A peer on another host has
 * a table of its own (net_peer_ops). Nothing of the engine is loaded before
 * the first connection to or from another host.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hal/hal_fault_point.h"
#include "hal/hal_log.h"
#include "hal/hal_peer.h"
#include "hal/net/hal_net.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_connect.h"
#include "hal/net/hal_net_dma.h"
#include "hal/net/hal_net_dir.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_meet.h"
#include "hal/net/hal_net_peer.h"
#include "hal/net/hal_net_region.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "hal/net/hal_net_suspend.h"
#include "util/unm_clock.h"

#define ARM_ROUNDS	64		/* calls of the engine before a sleep */
/* Longest sleep with peers: as long as no frame has come, between these. */
#define LOOK_MIN_NS	UINT64_C(100000000)
#define LOOK_MAX_NS	UINT64_C(1600000000)

static struct net_hal *net_hal(const struct hal_ops *ops)
{
	return (struct net_hal *)((char *)(uintptr_t)ops -
				  offsetof(struct net_hal, ops));
}

/* ---- Interfaces ---------------------------------------------------- */

static struct net_if *nif_new(struct hal_if *hif, struct net_hal *net)
{
	struct net_if *nif = calloc(1, sizeof(*nif));

	if (nif == NULL)
		return NULL;
	nif->hif = hif;
	nif->net = net;
	nif->base = net->base;
	nif->peer_ops = &net_peer_ops;
	nif->proven = net_meet_proven;
	nif->control = net_meet_input;
	nif->host = net->host;
	nif->base_src = (struct net_src){ NET_SRC_BASE, net->base->fd(hif) };
	nif->listen = (struct net_src){ NET_SRC_LISTEN, -1 };
	nif->engine_src = (struct net_src){ NET_SRC_ENGINE, -1 };
	nif->timer = (struct net_src){ NET_SRC_TIMER, -1 };
	unm_list_init(&nif->conns);
	unm_list_init(&nif->ended);
	unm_list_init(&nif->peers);
	unm_list_init(&nif->events);
	unm_list_init(&nif->dirty);
	unm_list_init(&nif->active);
	unm_list_init(&nif->spare);
	return nif;
}

static void close_fds(struct net_if *nif)
{
	if (nif->timer.fd >= 0)
		close(nif->timer.fd);
	if (nif->epfd >= 0)
		close(nif->epfd);
}

static int watch_two(struct net_if *nif)
{
	struct net_src *const src[] = { &nif->base_src, &nif->timer };

	for (int i = 0; i < 2; i++) {
		struct epoll_event ev = {
			.events = EPOLLIN, .data.ptr = src[i],
		};

		if (epoll_ctl(nif->epfd, EPOLL_CTL_ADD, src[i]->fd, &ev) != 0)
			return -errno;
	}
	return 0;
}

static int open_fds(struct net_if *nif)
{
	int ret = 0;

	nif->epfd = epoll_create1(EPOLL_CLOEXEC);
	nif->timer.fd = timerfd_create(CLOCK_MONOTONIC,
				       TFD_CLOEXEC | TFD_NONBLOCK);
	if (nif->epfd < 0 || nif->timer.fd < 0)
		ret = -errno;
	if (ret == 0)
		ret = watch_two(nif);
	if (ret == 0 && getrandom(nif->host.secret, NET_SECRET, 0) !=
	    NET_SECRET)
		ret = -FI_EIO;
	if (ret != 0)
		hal_log(0, "cannot open an interface for other hosts: %s%s",
			strerror(-ret), hal_log_advice(ret, ""));
	else
		ret = net_listen(nif);
	if (ret != 0)
		close_fds(nif);
	return ret;
}

static int net_if_open(struct hal *hal, int board, int number,
		       struct hal_if **out)
{
	struct net_hal *net = hal->net;
	struct hal_if *hif;
	struct net_if *nif;
	int ret;

	ret = net->base->if_open(hal, board, number, &hif);
	if (ret != 0)
		return ret;
	nif = nif_new(hif, net);
	if (nif != NULL)
		nif->host.port = net_known_port(nif);
	ret = nif == NULL ? -FI_ENOMEM : net_dma_open(nif);
	if (ret == 0)
		ret = open_fds(nif);
	if (ret != 0)
		goto err;
	hif->net = nif;
	hif->host = &nif->host;
	hif->ops = &net->ops;
	*out = hif;
	return 0;

err:
	if (nif != NULL)
		net_dma_close(nif);
	free(nif);
	net->base->if_close(hif);
	return ret;
}

/* The objects of hal/net, in the process that opened them or in a child. */
static void nif_close(struct net_if *nif)
{
	bool parent = nif->net->pid == getpid();
	struct unm_list *node;

	HAL_FAULT_POINT(HAL_FAULT_POINT_CLOSING);
	if (parent)
		net_linger(nif, NULL);
	else
		net_conns_close(nif, false);
	while (!unm_list_empty(&nif->peers)) {
		struct net_peer *peer = unm_container(nif->peers.next,
						      struct net_peer, link);

		if (parent) {
			net_meet_bye(peer, NET_CTL_BYE);
			net_peer_drop(peer, false);
		} else {
			net_peer_free_copy(peer);
		}
	}
	if (parent)
		net_conns_close(nif, true);
	if (parent && nif->worker != NULL &&
	    nif->engine->close(nif->worker) != 0)
		hal_log(0, "interface %u:%u: %s has messages to a host that "
			"does not answer: its memory and descriptors stay",
			nif->hif->addr.board, nif->hif->addr.iface,
			nif->engine->name);
	while ((node = unm_list_pop(&nif->spare)) != NULL)
		free(unm_container(node, struct net_frame, link));
	close_fds(nif);
	net_dma_close(nif);
	free(nif->slot);
	free(nif);
}

static void net_if_close(struct hal_if *hif)
{
	struct net_if *nif = net_if(hif);
	const struct hal_ops *base = nif->base;

	nif_close(nif);
	hif->net = NULL;
	hif->host = NULL;
	base->if_close(hif);
}

/* ---- Progress ------------------------------------------------------ */

/* In a forked child all peers are dead, for it alone. */
static void end_in_child(struct net_if *nif)
{
	if (nif->child)
		return;
	nif->child = true;
	hal_log(0, "interface %u:%u: a forked child cannot use peers on other "
		"hosts; let it run another program", nif->hif->addr.board,
		nif->hif->addr.iface);
	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      link);

		if (peer->p.dead)
			continue;
		peer->p.dead = true;
		net_dma_cancel(peer);
		net_peer_event(peer, HAL_EV_DEAD, -FI_ECONNRESET);
	}
}

static int net_service(struct hal_if *hif, struct hal_event *ev, int max)
{
	struct net_if *nif = net_if(hif);
	uint64_t now;
	int n;

	n = nif->base->service(hif, ev, max);
	if (net_forked(nif)) {
		end_in_child(nif);
		return n + net_events_take(nif, ev + n, max - n);
	}
	net_progress(nif);
	net_conns_input(nif, 0);
	if (!unm_list_empty(&nif->conns) || !unm_list_empty(&nif->peers) ||
	    !nif->listening) {
		now = unm_now_ns();
		net_conns_tick(nif, now);
		net_peers_tick(nif, now);
	}
	net_flush_later(nif);
	return n + net_events_take(nif, ev + n, max - n);
}

static void net_pump(struct hal_if *hif)
{
	struct net_if *nif = net_if(hif);

	if (nif->base->pump != NULL)
		nif->base->pump(hif);
	if (nif->worker == NULL)
		return;
	net_progress(nif);
	net_flush_due(nif);
	if (nif->dial_due && !net_forked(nif))
		net_peers_tick(nif, unm_now_ns());
}

static int net_fd(struct hal_if *hif)
{
	return net_if(hif)->epfd;
}

static uint64_t longest_sleep(struct net_if *nif, uint64_t now)
{
	uint64_t idle;

	if (nif->idle_frames != nif->nframes || nif->idle_since == 0)
		nif->idle_since = now;
	nif->idle_frames = nif->nframes;
	idle = now - nif->idle_since;
	return idle < LOOK_MIN_NS ? LOOK_MIN_NS :
		idle > LOOK_MAX_NS ? LOOK_MAX_NS : idle;
}

/* Wake the sleeper when a connection or a peer has to be given up, and now and
 * then while there are peers. A wake-up of the engine that is lost, or a frame
 * that the caller sends after the arm, waits no longer than nothing has come
 * before. */
static void set_timer(struct net_if *nif, uint64_t now)
{
	uint64_t at = net_deadline(nif);
	struct itimerspec spec = { { 0, 0 }, { 0, 0 } };

	if (nif->npeers != 0 && at > now + longest_sleep(nif, now))
		at = now + longest_sleep(nif, now);
	if (at != UINT64_MAX) {
		spec.it_value.tv_sec = (time_t)(at / 1000000000);
		spec.it_value.tv_nsec = (long)(at % 1000000000);
	}
	timerfd_settime(nif->timer.fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Send all, and read what is there. The engine promises to wake only if it had
 * no work when it was armed. False: there is no end of it. */
static bool settle(struct net_if *nif)
{
	for (int i = 0; i < ARM_ROUNDS; i++) {
		net_flush_later(nif);
		if ((nif->worker == NULL ||
		     nif->engine->progress(nif->worker) == 0) &&
		    unm_list_empty(&nif->dirty))
			return true;
	}
	return false;
}

static int net_arm(struct hal_if *hif)
{
	struct net_if *nif = net_if(hif);
	uint64_t now = 0;
	int ret;

	if (net_forked(nif))
		return -FI_EAGAIN;
	if (nif->npeers != 0) {
		now = unm_now_ns();
		/* net_peers_tick() suspends only peers for which nothing waits
		 * to be sent, so send it first */
		net_flush_later(nif);
		/* starts the clock of frames that were sent just now */
		net_peers_tick(nif, now);
	}
	if (!settle(nif) || !unm_list_empty(&nif->events))
		return -FI_EAGAIN;
	ret = nif->base->arm(hif);
	if (ret != 0)
		return ret;
	/* the engine wakes only for what comes after it was armed */
	if ((nif->worker != NULL && nif->engine->arm(nif->worker) != 0) ||
	    (nif->npeers != 0 && hal_inbound_pending(hif))) {
		nif->base->disarm(hif);
		return -FI_EAGAIN;
	}
	set_timer(nif, now);
	return 0;
}

static bool net_may_resume(struct hal_if *hif)
{
	return net_peers_reach(net_if(hif)->net);
}

static void net_dump(struct hal_if *hif, FILE *out)
{
	struct net_if *nif = net_if(hif);
	char text[64];

	nif->base->dump(hif, out);
	fprintf(out, "net: %s port %u engine %s peers %u unproven %u frames of "
		"nobody %llu\n", net_host_text(&nif->host, text),
		nif->host.port, nif->worker != NULL ? nif->engine->name :
		"not started", nif->npeers, nif->nhalf,
		(unsigned long long)nif->nstrange);
	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *p = unm_container(pos, struct net_peer, link);

		fprintf(out, "  peer %u:%u at %s%s%s sent %llu acknowledged "
			"%llu received %llu\n", p->p.addr.board,
			p->p.addr.iface, net_host_text(&p->host, text),
			p->p.dead ? " dead" : "",
			p->state == NET_SUSPENDED ? " suspended" :
			p->state < NET_UP ? " connecting" : "",
			(unsigned long long)p->s.sent,
			(unsigned long long)p->s.acked,
			(unsigned long long)p->s.taken);
	}
}

/* ---- Set-up -------------------------------------------------------- */

static void net_close(struct hal *hal)
{
	struct net_hal *net = net_hal(hal->ops);

	hal->ops = net->base;
	hal->net = NULL;
	hal->caps.backend = net->base_name;
	net_regions_close(net);
	net_dir_free(net->dir);
	munmap((void *)(uintptr_t)net->here, sizeof(*net->here));
	explicit_bzero(&net->key, sizeof(net->key));
	free(net);
	hal->ops->close(hal);
}

static void override(struct hal_ops *ops)
{
	ops->close = net_close;
	ops->if_open = net_if_open;
	ops->if_close = net_if_close;
	ops->service = net_service;
	ops->fd = net_fd;
	ops->arm = net_arm;
	ops->connect = net_connect;
	ops->connect_host = net_connect_host;
	ops->pump = net_pump;
	ops->may_resume = net_may_resume;
	ops->mem_alloc = net_mem_alloc;
	ops->mem_adopt = net_mem_adopt;
	ops->mem_free = net_mem_free;
	ops->dma_post = net_dma_post;
	ops->dma_poll = net_dma_poll;
	ops->dump = net_dump;
}

/* Number the boards of the backend, which count from 0, by the directory. */
static void number_boards(struct hal *hal, const struct net_dir *dir)
{
	hal->first_board = dir->host[dir->self].first;
	hal->far_boards = dir->boards - hal->caps.boards;
	hal->own_board += (int)hal->first_board;
	hal->caps.boards = dir->boards;
}

/* A page that the kernel clears in a forked child. A kernel that does not know
 * MADV_WIPEONFORK does not protect the child. */
static int here_new(struct net_hal *net)
{
	long bytes = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -FI_ENOMEM;
	(void)madvise(page, (size_t)bytes, MADV_WIPEONFORK);
	net->here = page;
	*net->here = 1;
	return 0;
}

int hal_net_wrap(struct hal *hal, struct net_dir *dir)
{
	struct net_hal *net = calloc(1, sizeof(*net));
	int ret;

	ret = net == NULL ? -FI_ENOMEM :
		net_host_find(hal->params.net, &net->host, net->device);
	if (ret == 0 && dir != NULL)
		ret = net_key_load(hal->params.net_key, &net->key);
	if (ret == 0)
		ret = here_new(net);
	if (ret != 0) {
		net_dir_free(dir);
		free(net);
		return ret;
	}
	net->dir = dir;
	if (dir != NULL)
		number_boards(hal, dir);
	net->base = hal->ops;
	net->base_name = hal->caps.backend;
	net->dead_ns = (uint64_t)hal->params.net_dead_ms * 1000000;
	net->half_ns = NET_HALF_NS;
	net->drain_ns = NET_DRAIN_NS;
	net->links_max = net_suspend_limit(hal->params.net_peers);
	net->dial_ns = (uint64_t)hal->params.net_dial_ms * 1000000;
	net->pid = getpid();
	net->ops = *net->base;
	override(&net->ops);
	snprintf(net->name, sizeof(net->name), "%s+net", net->base->name);
	net->ops.name = net->name;
	net_regions_use(net->base);
	hal->net = net;
	hal->ops = &net->ops;
	hal->caps.backend = net->name;
	return 0;
}

const char *hal_net_board_host(const struct hal *hal, uint32_t board)
{
	const struct net_hal *net = hal->net;
	int k = net->dir != NULL ? net_dir_of_board(net->dir, board) : -1;

	return k >= 0 ? net->dir->host[k].name : NULL;
}
