/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu.c - emulation of boards in shared memory: device and interfaces.
 *
 * Entry point: hal_emu_ops. hal_emu_types.h lists the files of the emulation.
 *
 * The emulation has no thread and no signal handler, makes no name in a file
 * system, and leaves nothing behind when its last user ends. An interface is a
 * listening socket, an epoll set and a public page. Connections and ended peers
 * are handled in emu_service(), which the caller of the HAL calls periodically.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/emu/hal_emu_alias.h"
#include "hal/emu/hal_emu_attach.h"
#include "hal/emu/hal_emu_board.h"
#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_dma.h"
#include "hal/emu/hal_emu_event.h"
#include "hal/emu/hal_emu_link.h"
#include "hal/emu/hal_emu_model.h"
#include "hal/emu/hal_emu_msg.h"
#include "hal/emu/hal_emu_name.h"
#include "hal/emu/hal_emu_proof.h"
#include "hal/emu/hal_emu_recv.h"
#include "hal/emu/hal_emu_sleep.h"
#include "hal/emu/hal_emu_stamp.h"
#include "hal/hal_backend.h"
#include "hal/hal_board.h"
#include "hal/hal_limit.h"
#include "hal/hal_line.h"
#include "hal/hal_page.h"
#include "util/unm_random.h"

#define IF_ROOM		(1u << 20)	/* bytes that must be free to open an
					 * interface */
#define EVENTS_BURST	64		/* epoll events per service */
#define ACCEPT_ROUNDS	64		/* calls of emu_accept() before a peer
					 * is declared dead */
#define MUTE_SHARE	4		/* connections without a HELLO: one of
					 * so many descriptors, ... */
#define MUTE_MOST	65536		/* ... and at most so many */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

/* ---- Device ---------------------------------------------------------- */

/* Can pages of a mapping be allocated with MADV_POPULATE_WRITE, which returns
 * an error if there is no memory? */
static bool populate_works(void)
{
	char *page;
	int policy = '0', fd;
	bool works;

	/* Under strict accounting (2) the page of a later fault may be refused,
	 * by a signal. Then links are allocated whole, when they are made. */
	fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &policy, 1) != 1)
			policy = '0';
		close(fd);
	}
	if ((policy & 0xff) == '2')
		return false;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	works = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
	munmap(page, 4096);
	return works;
}

static int emu_open(const struct hal_params *params, struct hal **hal)
{
	struct hal_emu *emu;
	int ret;

	emu = calloc(1, sizeof(*emu));
	if (emu == NULL) {
		hal_log(0, "no memory for the emulation");
		return -FI_ENOMEM;
	}
	unm_list_init(&emu->imports);
	emu->hal.ops = &hal_emu_ops;
	emu->hal.params = *params;
	emu->pid = getpid();
	ret = emu_board_init(emu);
	if (ret != 0)
		goto err_free;
	emu->pidfd = pidfd_open(emu->pid, 0);
	if (emu->pidfd < 0) {
		ret = -errno;
		hal_log(0, "cannot open a pidfd: %s%s", strerror(-ret),
			hal_log_advice(ret, ": the emulation needs Linux 5.3 "
			"and a seccomp filter that allows pidfd_open"));
		goto err_board;
	}
	if (emu->model != NULL)
		emu_model_open(emu, &hal_emu_ops);
	emu->proc_ours = emu_proc_ours(emu);
	emu_attach_open(emu);
	emu->populate = populate_works();
	emu->claims = hal_line_can_claim();
	emu->demotes = hal_line_can_demote();
	emu_sleep_open(emu);
	*hal = &emu->hal;
	return 0;

err_board:
	emu_board_fini(emu);
err_free:
	free(emu);
	return ret;
}

static void emu_close(struct hal *hal)
{
	struct hal_emu *emu = (struct hal_emu *)hal;

	for (uint32_t i = 0; i < emu->nmems; i++)
		if (emu->mems[i].mem != NULL)
			emu_mem_free(emu->mems[i].mem);
	if (emu->pid == getpid())
		close(emu->pidfd);
	emu_attach_close(emu);
	emu_board_fini(emu);
	free(emu->mems);
	free(emu);
}

/* ---- Interfaces ------------------------------------------------------ */

static void close_sources(struct emu_if *eif)
{
	const int fds[] = {
		eif->spare_fd, eif->epfd, eif->listen.fd, eif->proof_fd,
	};

	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int open_sources(struct emu_if *eif)
{
	int ret;

	eif->listen.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
				SOCK_NONBLOCK, 0);
	if (eif->listen.fd < 0 ||
	    (eif->epfd = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
	    (eif->spare_fd = fcntl(eif->listen.fd, F_DUPFD_CLOEXEC, 0)) < 0)
		ret = -errno;
	else
		ret = emu_name_socket(eif);
	if (ret == 0)
		return 0;
	hal_log(0, "cannot open an interface: %s%s", strerror(-ret),
		hal_log_advice(ret, ""));
	close_sources(eif);
	return ret;
}

static struct emu_if *if_new(struct hal_emu *emu, int board)
{
	struct emu_if *eif = calloc(1, sizeof(*eif));
	struct rlimit files = { 1024, 1024 };

	if (eif == NULL)
		return NULL;
	getrlimit(RLIMIT_NOFILE, &files);
	eif->mute_max = files.rlim_cur / MUTE_SHARE < MUTE_MOST ?
		(uint32_t)files.rlim_cur / MUTE_SHARE : MUTE_MOST;
	eif->i.ops = emu->hal.ops;
	eif->i.caps = &emu->hal.caps;
	eif->i.hal = &emu->hal;
	eif->i.addr.version = HAL_ADDR_VERSION;
	eif->i.addr.board = (uint16_t)board;
	eif->i.addr.uid = geteuid();
	eif->i.addr.nonce = unm_random();
	eif->emu = emu;
	eif->pid = getpid();
	eif->listen.kind = EMU_SRC_LISTEN;
	eif->listen.fd = -1;
	eif->epfd = -1;
	eif->spare_fd = -1;
	eif->proof_fd = -1;
	eif->timer.kind = EMU_SRC_TIMER;
	eif->timer.fd = -1;
	unm_list_init(&eif->events);
	eif->conns_tail = &eif->conns;
	eif->nticks = !emu->membarrier;	/* see nticks */
	return eif;
}

static int emu_if_open(struct hal *hal, int board, int number,
		       struct hal_if **hif)
{
	struct hal_emu *emu = (struct hal_emu *)hal;
	struct emu_if *eif;
	int ret;

	ret = hal_board_check(hal, &board);
	if (ret == 0)
		ret = hal_limit_check("an interface with a few peers", IF_ROOM);
	if (ret != 0)
		return ret;
	eif = if_new(emu, board);
	if (eif == NULL) {
		hal_log(0, "no memory for an interface");
		return -FI_ENOMEM;
	}
	ret = open_sources(eif);
	if (ret != 0)
		goto err_free;
	ret = number == HAL_IF_ANY ? emu_take_any(eif) :
				     emu_take_number(eif, (uint32_t)number);
	if (ret != 0)
		goto err_sources;
	ret = hal_page_open(&eif->i, &eif->page_fd, &eif->page_map);
	if (ret != 0)
		goto err_sources;
	emu_board_place(emu, eif->i.addr.board, eif->page_map);
	ret = emu_watch(eif, &eif->listen);
	if (ret == 0)
		ret = emu_sleep_if_open(eif);
	if (ret != 0)
		goto err_page;
	*hif = &eif->i;
	return 0;

err_page:
	hal_map_put(eif->page_map);
	close(eif->page_fd);
err_sources:
	close_sources(eif);
err_free:
	free(eif);
	return ret;
}

/* In a forked child, free the copies of the objects. Sockets, epoll set and
 * links are the parent's and stay as they are; the child has not inherited the
 * mappings of links. */
static void free_copies(struct emu_if *eif)
{
	for (uint32_t i = 0; i < eif->hash_size; i++) {
		while (eif->hash[i] != NULL) {
			struct emu_peer *peer = eif->hash[i];

			eif->hash[i] = peer->hash_next;
			emu_rmems_free(peer);
			hal_map_put(peer->tx_map);
			hal_map_put(peer->rx_map);
			emu_stamp_drop(peer);
			free(peer);
		}
	}
	while (eif->conns != NULL) {
		struct emu_conn *conn = eif->conns;

		eif->conns = conn->next;
		conn->next = eif->closed_conns;
		eif->closed_conns = conn;
	}
}

static void close_all(struct emu_if *eif)
{
	int fd;

	eif->closing = true;
	/* close() would not end a socket that a forked child has too */
	shutdown(eif->listen.fd, SHUT_RDWR);
	HAL_FAULT_POINT(HAL_FAULT_POINT_CLOSING);
	for (uint32_t i = 0; i < eif->hash_size; i++)
		while (eif->hash[i] != NULL)
			emu_peer_free(&eif->hash[i]->p);
	while (eif->conns != NULL)
		emu_conn_close(eif->conns);
	/* connections that are not accepted yet must end as well */
	while ((fd = accept4(eif->listen.fd, NULL, NULL,
			     SOCK_CLOEXEC)) >= 0) {
		shutdown(fd, SHUT_RDWR);
		close(fd);
	}
	emu_unwatch(eif, &eif->listen);
	emu_sleep_if_close(eif);
	close(eif->page_fd);
	close_sources(eif);
}

static void emu_if_close(struct hal_if *hif)
{
	struct emu_if *eif = emu_if(hif);

	if (eif->pid == getpid())
		close_all(eif);
	else
		free_copies(eif);
	emu_conns_free(eif);
	hal_map_put(eif->page_map);
	free(eif->hash);
	free(eif->i.inbound);
	free(eif);
}

static int emu_fd(struct hal_if *hif)
{
	return emu_if(hif)->epfd;
}

/* ---- Dead peers ------------------------------------------------------ */

/*
 * The status of HAL_EV_DEAD. -FI_ECONNREFUSED: the peer refused the connection,
 * or it ended before it accepted our link and before it sent its own. A peer
 * that did either was connected, and is reported as reset or shut down. The
 * order in which the ends of its connections and of its process were noticed
 * makes no difference: all that it sent was read before.
 */
static int last_status(const struct emu_peer *peer)
{
	bool bye = (peer->in != NULL && peer->in->bye) ||
		   (peer->out != NULL && peer->out->bye);
	bool never_met = peer->p.tx.open && !peer->connected &&
		       peer->p.rx.cells == NULL;

	if (peer->dying == -FI_ECONNRESET && never_met)
		return -FI_ECONNREFUSED;
	if (peer->dying == -FI_ECONNRESET ||
	    (peer->dying == -FI_ECONNREFUSED && !never_met && !peer->refused))
		return bye ? -FI_ESHUTDOWN : -FI_ECONNRESET;
	return peer->dying;
}

static void declare_dead(struct emu_if *eif, struct emu_peer *peer)
{
	int status = last_status(peer);

	peer->p.dead = true;
	peer->p.dma_any = false;
	eif->ndying--;
	emu_peer_disconnect(peer);
	emu_dma_cancel(peer);
	emu_event(peer, HAL_EV_DEAD, status);
}

/*
 * Declare the peers with dying set dead. All that they sent before their end
 * must be read first: a link may be in a message of another connection, or of
 * one that is not accepted yet. Under the timing model it must have arrived
 * too: until then the peer stays as it is.
 */
static void finish_dying(struct emu_if *eif)
{
	struct emu_conn *conn, *next;
	int i = 0;

	while (i++ < ACCEPT_ROUNDS && emu_accept(eif))
		;
	for (conn = eif->conns; conn != NULL; conn = next) {
		next = conn->next;
		if (conn->peer == NULL && !conn->held)
			emu_conn_input(conn);
	}
	for (uint32_t b = 0; b < eif->hash_size; b++) {
		struct emu_peer *peer = eif->hash[b];

		for (; peer != NULL; peer = peer->hash_next) {
			if (peer->dying == 0 || peer->p.dead)
				continue;
			emu_conn_drain(peer->in);
			emu_conn_drain(peer->out);
			if (eif->emu->model == NULL ||
			    !emu_stamp_under_way(peer))
				declare_dead(eif, peer);
		}
	}
}

/* ---- Service --------------------------------------------------------- */

static struct emu_peer *peer_of_pidsrc(struct emu_src *src)
{
	return (struct emu_peer *)((char *)src -
				   offsetof(struct emu_peer, pidsrc));
}

static void handle(struct emu_if *eif, struct emu_src *src)
{
	if (src->fd < 0)
		return;			/* closed earlier in this round */
	switch (src->kind) {
	case EMU_SRC_LISTEN:
		emu_accept(eif);
		break;
	case EMU_SRC_CONN:
		emu_conn_input((struct emu_conn *)src);
		break;
	case EMU_SRC_PIDFD:
		/* the event may be of the pidfd that src had before */
		if (emu_pidfd_dead(src->fd))
			emu_mark_dying(peer_of_pidsrc(src), -FI_ECONNRESET);
		break;
	case EMU_SRC_TIMER:
		emu_sleep_tick(eif);
		break;
	}
}

static void retry_todo(struct emu_if *eif)
{
	struct emu_conn *conn, *next;

	for (conn = eif->conns; conn != NULL; conn = next) {
		next = conn->next;
		if (conn->todo != 0)
			emu_conn_todo(conn);
	}
}

static int emu_service(struct hal_if *hif, struct hal_event *ev, int max)
{
	struct emu_if *eif = emu_if(hif);
	struct epoll_event evs[EVENTS_BURST];
	int n;

	/* before new connections: HELLOs that wait came earlier */
	if (eif->place_free)
		emu_unhold(eif);
	n = epoll_wait(eif->epfd, evs, EVENTS_BURST, 0);
	for (int i = 0; i < n; i++)
		handle(eif, evs[i].data.ptr);
	if (eif->ntodo != 0)
		retry_todo(eif);
	if (eif->ndying != 0)
		finish_dying(eif);
	if (eif->closed_conns != NULL)
		emu_conns_free(eif);
	return emu_events_take(eif, ev, max);
}

/* ---- Dump ------------------------------------------------------------ */

static void dump_peer(const struct emu_peer *peer, FILE *out)
{
	const struct hal_peer *p = &peer->p;

	fprintf(out, "  peer %u:%u pid %d%s%s%s", p->addr.board, p->addr.iface,
		(int)peer->pid, p->dead ? " dead" : "",
		p->dma_any ? " dma-any" : "",
		p->tx.open && !peer->connected ? " connecting" : "");
	if (p->tx.open)
		fprintf(out, " sent %llu released %llu",
			(unsigned long long)p->tx.next,
			(unsigned long long)atomic_load_explicit(
				&p->tx.back->done, memory_order_relaxed));
	if (p->rx.cells != NULL)
		fprintf(out, " received %llu flushed %llu",
			(unsigned long long)p->rx.next,
			(unsigned long long)p->rx.flushed);
	fputc('\n', out);
}

static void emu_dump(struct hal_if *hif, FILE *out)
{
	struct emu_if *eif = emu_if(hif);

	fprintf(out, "interface %u:%u emu %s nonce %016llx peers %u inbound "
		"%u transfers %u%s\n", hif->addr.board, hif->addr.iface,
		hif->caps->profile, (unsigned long long)hif->addr.nonce,
		eif->npeers, hif->ninbound, eif->dma_busy,
		eif->armed ? " asleep" : "");
	for (uint32_t i = 0; i < eif->hash_size; i++)
		for (struct emu_peer *p = eif->hash[i]; p != NULL;
		     p = p->hash_next)
			dump_peer(p, out);
}

const struct hal_ops hal_emu_ops = {
	.name = "emu",
	.open = emu_open,
	.close = emu_close,
	.if_open = emu_if_open,
	.if_close = emu_if_close,
	.service = emu_service,
	.fd = emu_fd,
	.arm = emu_arm,
	.disarm = emu_disarm,
	.connect = emu_connect,
	.peer_free = emu_peer_free,
	.peer_process = emu_peer_process,
	.wake = emu_wake,
	.space_ready = emu_space_ready,
	.space_trim = emu_space_trim,
	.mem_alloc = emu_mem_alloc,
	.mem_adopt = emu_mem_adopt,
	.mem_free = emu_mem_free,
	.mem_key = emu_mem_key,
	.mem_open = emu_mem_open,
	.mem_covers = emu_mem_covers,
	.mem_import = emu_mem_import,
	.mem_release = emu_mem_release,
	.mem_bytes = emu_mem_bytes,
	.mem_window = emu_mem_window,
	.alias_key = emu_alias_key,
	.alias_open = emu_alias_open,
	.alias_close = emu_alias_close,
	.dma_post = emu_dma_post,
	.dma_poll = emu_dma_poll,
	.dump = emu_dump,
};
