/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev.c - device and interfaces of the device backend: opening and closing,
 * the service, sleeping, dumps, and the tables of HAL operations.
 *
 * The same code drives the silicon (hal_dev_ops) and the register model
 * (hal_sim_ops), through hal_mmio.h. hal_dev_types.h has the objects and lists
 * the other files. docs/hal.md, section 12, says how the laws of the HAL are
 * kept.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hal/dev/hal_dev.h"
#include "hal/dev/hal_dev_conf.h"
#include "hal/dev/hal_dev_conn.h"
#include "hal/dev/hal_dev_dma.h"
#include "hal/dev/hal_dev_echo.h"
#include "hal/dev/hal_dev_engine.h"
#include "hal/dev/hal_dev_life.h"
#include "hal/dev/hal_dev_mbox.h"
#include "hal/dev/hal_dev_mem.h"
#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_table.h"
#include "hal/hal_backend.h"
#include "hal/hal_board.h"
#include "hal/hal_page.h"
#include "hal/hal_peer.h"

#define SPACE_BYTES	65536u		/* receive space, unless configured */
#define TICK_SOON_NS	1000000		/* timer of a sleep while something is
					 * under way: must_poll_soon() */
#define TICK_IDLE_NS	20000000	/* timer of other sleeps: is each peer
					 * alive? */
#define SERVICE_PACKETS	256u		/* received by one service */
#define PUMP_PACKETS	32		/* received by one pump */

/* ---- Device ------------------------------------------------------------ */

/* Read what the driver reports, and check that versions agree. */
static int read_info(struct hal_dev *dev, struct hal_mmio *mm,
		     struct hal_kdev_info *info)
{
	int ret;

	memset(info, 0, sizeof(*info));
	info->magic = HAL_KDEV_MAGIC;
	info->version = HAL_KDEV_VERSION;
	ret = dev->io->ioctl(mm, HAL_KDEV_IO_INFO, info);
	if (ret == 0 && info->magic == HAL_KDEV_MAGIC &&
	    info->version == HAL_KDEV_VERSION)
		return 0;
	if ((ret == 0 || ret == -EPROTO) && info->magic == HAL_KDEV_MAGIC)
		hal_log(0, "the driver behind %s speaks version %u, this "
			"library version %d: install driver and library of "
			"the same unimem", dev->platform.node, info->version,
			HAL_KDEV_VERSION);
	else
		hal_log(0, "%s is no unimem device: name the right node in "
			"FI_UNIMEM_DEV", dev->platform.node);
	return -FI_ENODEV;
}

/* Check the ranges of the values that the driver reports. */
static int check_info(const struct hal_dev *dev,
		      const struct hal_kdev_info *info)
{
	if (info->boards >= 1 && info->boards <= HAL_REG_BOARDS_MAX &&
	    info->board < info->boards && info->ifs >= 1 &&
	    info->ifs < HAL_REG_IFS && info->fifo_words >= 8 &&
	    info->fifo_words % HAL_MIF_PKT_WORDS == 0 &&
	    info->xfer_depth != 0 && info->xfer_max != 0)
		return 0;
	hal_log(0, "the driver behind %s reports impossible values: board "
		"%u of %u, %u interfaces, mailboxes of %u words, %u transfers "
		"of up to %llu bytes: install driver and library of the same "
		"unimem, then modprobe -r unimem; modprobe unimem",
		dev->platform.node, info->board, info->boards, info->ifs,
		info->fifo_words,
		info->xfer_depth, (unsigned long long)info->xfer_max);
	return -FI_ENODEV;
}

/* Check that the device belongs to the board that it was opened for. */
static int check_number(const struct hal_dev *dev,
			const struct hal_kdev_info *info, uint32_t board)
{
	const struct hal_platform *pf = &dev->platform;
	const char *file = dev_platform_file(&dev->hal.params);

	if (info->board == board)
		return 0;
	if (board == pf->board)
		hal_log(0, "%s is of board %u, %s says board = %u: correct the "
			"line, or leave it out", pf->node, info->board, file,
			board);
	else
		hal_log(0, "%s is of board %u, wanted is board %u: write node "
			"= in %s with %%u for the number of the board",
			pf->node, info->board, board, file);
	return -FI_ENODEV;
}

/* Default packets per peer: the packets of four peers fit into a mailbox. */
static uint32_t default_depth(const struct hal_kdev_info *info)
{
	uint32_t depth = 4;

	while (depth < 16 && depth * 2 * 4 <= info->fifo_words /
	       HAL_MIF_PKT_WORDS)
		depth *= 2;
	return depth;
}

static void set_caps(struct hal_dev *dev)
{
	const struct hal_platform *pf = &dev->platform;
	struct hal_caps *caps = &dev->hal.caps;

	caps->backend = dev->io->backend;
	caps->profile = pf->timed ? "model+times" : dev->io->profile;
	caps->flags = HAL_CAP_EVENT;
	if (dev->info.flags & HAL_KDEV_ANY_BOARD)
		caps->flags |= HAL_CAP_ANY_BOARD;
	caps->boards = pf->boards != 0 && pf->boards < dev->info.boards ?
		       pf->boards : dev->info.boards;
	caps->ifs_per_board = dev->info.ifs;
	caps->pkt_payload = 8 * (HAL_PKT_WORDS - 1);
	caps->pkt_depth = pf->pkt_depth != 0 ? pf->pkt_depth :
			  default_depth(&dev->info);
	caps->space_bytes = pf->space_bytes != 0 ? pf->space_bytes :
			    SPACE_BYTES;
	caps->dma_depth = DEV_DMA_DEPTH;
	dev->hal.own_board = (int)dev->info.board;
}

static int open_device(struct hal_dev *dev, const struct hal_params *params)
{
	int ret;

	ret = dev->io->probe(params, &dev->platform);
	if (ret != 0)
		return ret;
	ret = dev->io->open(&dev->platform, dev->platform.board, &dev->mm);
	if (ret != 0)
		return dev_explain_open(dev, dev->platform.board, ret);
	ret = read_info(dev, dev->mm, &dev->info);
	if (ret == 0)
		ret = check_info(dev, &dev->info);
	if (ret == 0 && dev->platform.board != UINT32_MAX)
		ret = check_number(dev, &dev->info, dev->platform.board);
	if (ret != 0)
		goto err_close;
	set_caps(dev);
	if (dev->platform.engine != HAL_ENGINE_KERNEL) {
		ret = dev_engine_open(dev);
		if (ret != 0)
			goto err_close;
	}
	return 0;

err_close:
	dev->io->close(dev->mm);
	return ret;
}

int dev_open_with(const struct hal_ops *ops, const struct hal_mmio_ops *io,
		  const struct hal_params *params, struct hal **hal)
{
	struct hal_dev *dev = calloc(1, sizeof(*dev));
	int ret;

	if (dev == NULL) {
		hal_log(0, "no memory for the device");
		return -FI_ENOMEM;
	}
	dev->hal.ops = ops;
	dev->hal.params = *params;
	dev->io = io;
	dev->pid = getpid();
	unm_list_init(&dev->mems);
	ret = open_device(dev, params);
	if (ret != 0) {
		free(dev);
		return ret;
	}
	*hal = &dev->hal;
	return 0;
}

static int dev_open(const struct hal_params *params, struct hal **hal)
{
	return dev_open_with(&hal_dev_ops, &hal_mmio_dev_ops, params, hal);
}

static int sim_open(const struct hal_params *params, struct hal **hal)
{
	return dev_open_with(&hal_sim_ops, &hal_sim_mmio_ops, params, hal);
}

static void dev_close(struct hal *hal)
{
	struct hal_dev *dev = (struct hal_dev *)hal;

	while (!unm_list_empty(&dev->mems))
		dev_mem_free(unm_container(dev->mems.next, struct hal_mem,
					   list));
	if (dev->engine != NULL)
		dev_engine_close(dev);
	dev->io->close(dev->mm);
	free(dev);
}

/* ---- Interfaces -------------------------------------------------------- */

static int watch(struct dev_if *dif, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(dif->epfd, EPOLL_CTL_ADD, fd, &ev) != 0 ? -errno : 0;
}

static void close_fds(struct dev_if *dif)
{
	if (dif->timer_fd >= 0)
		close(dif->timer_fd);
	if (dif->epfd >= 0)
		close(dif->epfd);
}

static int open_fds(struct dev_if *dif)
{
	int ret;

	if ((dif->epfd = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
	    (dif->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC |
					    TFD_NONBLOCK)) < 0)
		ret = -errno;
	else
		ret = watch(dif, dif->timer_fd);
	if (ret == 0)
		return 0;
	hal_log(0, "cannot open an interface: %s%s", strerror(-ret),
		hal_log_advice(ret, ""));
	close_fds(dif);
	return ret;
}

/* Get the event fd of the mailbox, and watch it. */
static int open_event(struct dev_if *dif)
{
	dif->event_fd = dif->io->event_fd(dif->mm);
	return dif->event_fd < 0 ? dif->event_fd : watch(dif, dif->event_fd);
}

/* Map the pages of mailbox and packetizer. */
static int open_pages(struct dev_if *dif)
{
	uint32_t n = dif->i.addr.iface;
	uint64_t status[2];
	int ret;

	ret = dif->io->map(dif->mm, hal_kdev_off(HAL_KDEV_MIF,
			   HAL_MIF_PAGE(n)), HAL_REG_PAGE, &dif->mif);
	if (ret != 0) {
		dev_explain_map(dif->dev, HAL_KDEV_MIF, ret);
		return ret;
	}
	ret = dif->io->map(dif->mm, hal_kdev_off(HAL_KDEV_PIF,
			   HAL_PIF_PAGE(n)), HAL_REG_PAGE, &dif->pif);
	if (ret != 0) {
		dev_explain_map(dif->dev, HAL_KDEV_PIF, ret);
		dif->io->unmap(&dif->mif);
		return ret;
	}
	/* ACK or NACK of the previous holder's last packet. */
	dif->io->read128(&dif->pif, HAL_PIF_STATUS, status);
	dif->pif_answer = status[0] & (HAL_PIF_ACK | HAL_PIF_NACK);
	return 0;
}

static int claim_any(struct dev_if *dif, struct hal_kdev_claim *c)
{
	struct hal_dev *dev = dif->dev;
	int ret;

	/* Relaxed: a counter that orders nothing. */
	c->hint = 1 + atomic_fetch_add_explicit(&dev->ifs_opened, 1,
						memory_order_relaxed) %
		  dev->info.ifs;
	ret = dif->io->ioctl(dif->mm, HAL_KDEV_IO_CLAIM, c);
	if (ret == -EBUSY)
		hal_log(0, "board %u has no free interface (%u of %u in use): "
			"start fewer processes per board", dif->info.board,
			dif->info.ifs, dif->info.ifs);
	return ret;
}

static int claim_service(struct dev_if *dif, struct hal_kdev_claim *c)
{
	int ret = dif->io->ioctl(dif->mm, HAL_KDEV_IO_SERVICE, c);

	if (ret == -EBUSY)
		hal_log(1, "board %u has an atomic service already",
			dif->info.board);
	else if (ret == -EACCES)
		hal_log(0, "this process may not be the atomic service of "
			"board %u: run it as the user whom the driver allows "
			"it", dif->info.board);
	else if (ret == -ENOTTY)
		hal_log(0, "the driver of board %u keeps its interface 0 to "
			"itself: the atomic service needs one with "
			"HAL_KDEV_IO_SERVICE", dif->info.board);
	return ret == -ENOTTY ? -FI_ENOSYS : ret;
}

/* The driver searches from the hint on; release an interface with another
 * number. */
static int claim_number(struct dev_if *dif, struct hal_kdev_claim *c,
			  int number)
{
	int ret;

	c->hint = (uint32_t)number;
	ret = dif->io->ioctl(dif->mm, HAL_KDEV_IO_CLAIM, c);
	if (ret == 0 && c->iface != c->hint) {
		dif->io->ioctl(dif->mm, HAL_KDEV_IO_RELEASE, NULL);
		ret = -EBUSY;
	}
	if (ret != -EBUSY)
		return ret;
	hal_log(0, "interface %u:%d is in use: wait for its holder to end, or "
		"choose another number", dif->info.board, number);
	return -FI_EADDRINUSE;
}

/* Get an interface: number is that of the interface, HAL_IF_ANY or
 * HAL_IF_SERVICE. Returns 0, or an error after a log line. */
static int claim(struct dev_if *dif, int number)
{
	struct hal_kdev_claim c = { 0 };
	int ret;

	ret = number == HAL_IF_ANY ? claim_any(dif, &c) :
	      number == HAL_IF_SERVICE ? claim_service(dif, &c) :
					 claim_number(dif, &c, number);
	if (ret == -FI_EBUSY || ret == -FI_EADDRINUSE ||
	    (number == HAL_IF_SERVICE && (ret == -FI_EACCES ||
					  ret == -FI_ENOSYS)))
		return ret;		/* logged already */
	HAL_FAULT_POINT(HAL_FAULT_POINT_BOUND);
	if (ret == 0) {
		dif->identity = c.identity;
		dif->i.addr.iface = c.iface;
		dif->i.addr.nonce = c.nonce;
		ret = open_event(dif);
	}
	if (ret != 0) {
		hal_log(0, "cannot take an interface of board %u: %s%s",
			dif->info.board, strerror(-ret), hal_log_advice(ret,
			": dmesg shows the driver's reason"));
		return ret;
	}
	return open_pages(dif);
}

static struct dev_if *if_new(struct hal_dev *dev)
{
	struct dev_if *dif = calloc(1, sizeof(*dif));

	if (dif == NULL)
		return NULL;
	dif->tables = calloc(dev->hal.caps.boards, sizeof(*dif->tables));
	if (dif->tables == NULL) {
		free(dif);
		return NULL;
	}
	dif->i.ops = dev->hal.ops;
	dif->i.caps = &dev->hal.caps;
	dif->i.hal = &dev->hal;
	dif->i.addr.version = HAL_ADDR_VERSION;
	dif->i.addr.uid = geteuid();
	dif->dev = dev;
	dif->io = dev->io;
	dif->pid = getpid();
	dif->epfd = -1;
	dif->timer_fd = -1;
	unm_list_init(&dif->backlog);
	return dif;
}

static void if_delete(struct dev_if *dif)
{
	free(dif->i.inbound);
	free(dif->tables);
	free(dif);
}

static int open_board(struct dev_if *dif, uint32_t board)
{
	struct hal_dev *dev = dif->dev;
	int ret;

	ret = dif->io->open(&dev->platform, board, &dif->mm);
	if (ret != 0) {
		dev_explain_open(dev, board, ret);
		return ret;
	}
	ret = read_info(dev, dif->mm, &dif->info);
	if (ret == 0)
		ret = check_info(dev, &dif->info);
	if (ret == 0)
		ret = check_number(dev, &dif->info, board);
	if (ret != 0)
		dif->io->close(dif->mm);
	dif->i.addr.board = (uint16_t)board;
	return ret;
}

static void dev_if_close(struct hal_if *hif);

static int dev_if_open(struct hal *hal, int board, int number,
		       struct hal_if **hif)
{
	struct hal_dev *dev = (struct hal_dev *)hal;
	struct dev_if *dif;
	int ret;

	ret = hal_board_check(hal, &board);
	if (ret != 0)
		return ret;
	dif = if_new(dev);
	if (dif == NULL) {
		hal_log(0, "no memory for an interface");
		return -FI_ENOMEM;
	}
	ret = open_board(dif, (uint32_t)board);
	if (ret != 0)
		goto err_free;
	ret = open_fds(dif);
	if (ret != 0)
		goto err_board;
	ret = claim(dif, number);
	if (ret != 0)
		goto err_fds;
	ret = hal_page_open(&dif->i, &dif->page_fd, &dif->page_map);
	if (ret != 0)
		goto err_claim;
	ret = dev_mbox_learn(dif);
	if (ret != 0) {
		/* Packets may have created peers already. */
		dev_if_close(&dif->i);
		return ret;
	}
	*hif = &dif->i;
	return 0;

err_claim:
	dif->io->unmap(&dif->pif);
	dif->io->unmap(&dif->mif);
err_fds:
	close_fds(dif);
err_board:
	dif->io->close(dif->mm);
err_free:
	if_delete(dif);
	return ret;
}

static void unmap_tables(struct dev_if *dif)
{
	for (uint32_t b = 0; b < dif->i.caps->boards; b++)
		if (dif->tables[b].mm != NULL)
			dif->io->unmap(&dif->tables[b]);
}

static void dev_if_close(struct hal_if *hif)
{
	struct dev_if *dif = dev_if(hif);
	bool own = dif->pid == getpid();

	HAL_FAULT_POINT(HAL_FAULT_POINT_CLOSING);
	dif->closing = true;
	while (dif->peers != NULL) {
		if (own)
			dev_peer_free(&dif->peers->p);
		else
			dev_peer_forget(dif->peers);
	}
	if (own) {
		dev_dma_cancel(dif, NULL);
		dif->io->ioctl(dif->mm, HAL_KDEV_IO_RELEASE, NULL);
	}
	close(dif->page_fd);
	close_fds(dif);
	unmap_tables(dif);
	dif->io->unmap(&dif->pif);
	dif->io->unmap(&dif->mif);
	dif->io->close(dif->mm);
	hal_map_put(dif->page_map);
	if_delete(dif);
}

static int dev_fd(struct hal_if *hif)
{
	return dev_if(hif)->epfd;
}

/* ---- Service ----------------------------------------------------------- */

static int dev_service(struct hal_if *hif, struct hal_event *ev, int max)
{
	struct dev_if *dif = dev_if(hif);
	uint64_t count;

	if (dif->signalled &&
	    read(dif->event_fd, &count, sizeof(count)) == sizeof(count))
		dif->signalled = dif->armed;
	dev_mbox_run(dif, SERVICE_PACKETS);
	if (!unm_list_empty(&dif->backlog))
		dev_backlog_run(dif);
	if (dif->unproven || dif->echo != DEV_ECHO_NONE)
		dev_echo_run(dif);
	dev_peers_poll(dif);
	if (dif->ndying != 0)
		dev_end_dying(dif);
	return dif->nevents != 0 ? dev_take_events(dif, ev, max) : 0;
}

static void dev_pump(struct hal_if *hif)
{
	struct dev_if *dif = dev_if(hif);

	if (dif->pif_holds != DEV_PIF_FREE)
		dev_pif_idle(dif, 1);
	if (!unm_list_empty(&dif->backlog))
		dev_backlog_run(dif);
	dev_mbox_run(dif, PUMP_PACKETS);
}

/* ---- Sleeping ---------------------------------------------------------- */

static void set_tick(struct dev_if *dif, long ns)
{
	struct itimerspec tick = { { 0, ns }, { 0, ns } };

	timerfd_settime(dif->timer_fd, 0, &tick, NULL);
}

/* Is something under way whose progress no packet announces? */
static bool must_poll_soon(const struct dev_if *dif)
{
	if (!unm_list_empty(&dif->backlog) || dif->naccepting != 0 ||
	    dif->ndying != 0 || dif->pif_holds != DEV_PIF_FREE ||
	    dif->unproven || dif->echo != DEV_ECHO_NONE)
		return true;
	for (const struct dev_peer *p = dif->peers; p != NULL; p = p->next)
		/* Relaxed: this thread has written it. */
		if ((p->hello != DEV_HELLO_NONE && !p->connected_reported) ||
		    p->space_retry.at != 0 ||
		    atomic_load_explicit(&p->sleep.tx_asleep,
					 memory_order_relaxed))
			return true;
	return false;
}

static void dev_disarm(struct hal_if *hif)
{
	struct dev_if *dif = dev_if(hif);

	if (!dif->armed)
		return;
	dif->armed = false;
	set_tick(dif, 0);
}

/*
 * The mailbox signals packets by an event. Stores of peers, and their ends,
 * have no event: a timer wakes the sleeper to poll for them.
 */
static int dev_arm(struct hal_if *hif)
{
	struct dev_if *dif = dev_if(hif);

	dev_mbox_run(dif, SERVICE_PACKETS);
	if (dif->nevents != 0 || hal_inbound_pending(hif))
		return -FI_EAGAIN;
	dif->armed = true;
	dif->signalled = true;
	set_tick(dif, must_poll_soon(dif) ? TICK_SOON_NS : TICK_IDLE_NS);
	if (dif->io->ioctl(dif->mm, HAL_KDEV_IO_ARM, NULL) == 0)
		return 0;
	dev_disarm(hif);
	return -FI_EAGAIN;
}

/* ---- Dump -------------------------------------------------------------- */

static void dump_peer(const struct dev_peer *peer, FILE *out)
{
	const struct hal_peer *p = &peer->p;

	fprintf(out, "  peer %u:%u%s%s", p->addr.board, p->addr.iface,
		p->dead ? " dead" : peer->dying != 0 ? " ending" : "",
		peer->hello != DEV_HELLO_NONE && !peer->connected_reported ?
		" connecting" : "");
	if (p->tx.open)
		fprintf(out, " sent %llu released %llu waiting %u",
			(unsigned long long)p->tx.next,
			(unsigned long long)atomic_load_explicit(
				&p->tx.back->done, memory_order_relaxed),
			peer->q_last - peer->q_first);
	if (p->rx.cells != NULL)
		fprintf(out, " arrived %llu received %llu reported "
			"%llu",
			(unsigned long long)peer->came,
			(unsigned long long)p->rx.next,
			(unsigned long long)p->rx.flushed);
	fputc('\n', out);
}

static void dev_dump(struct hal_if *hif, FILE *out)
{
	struct dev_if *dif = dev_if(hif);
	const struct dev_stats *st = &dif->stats;

	fprintf(out, "interface %u:%u %s %s nonce %016llx peers %u inbound %u "
		"transfers %u%s\n", hif->addr.board, hif->addr.iface,
		hif->caps->backend, hif->caps->profile,
		(unsigned long long)hif->addr.nonce, dif->npeers,
		hif->ninbound, dif->dma_busy, dif->armed ? " asleep" : "");
	fprintf(out, "  packets sent %llu refused %llu queued %llu resent %llu "
		"received %llu of unknown senders %llu stored at close "
		"%llu overwritten %llu\n",
		(unsigned long long)st->sent, (unsigned long long)st->nacks,
		(unsigned long long)st->queued, (unsigned long long)st->resent,
		(unsigned long long)st->came, (unsigned long long)st->unknown,
		(unsigned long long)st->stored_at_end,
		(unsigned long long)st->overwritten);
	for (const struct dev_peer *p = dif->peers; p != NULL; p = p->next)
		dump_peer(p, out);
}

/* ---- Tables ------------------------------------------------------------ */

#define DEV_OPS(backend, opener)					\
	.name = backend,						\
	.open = opener,							\
	.close = dev_close,						\
	.if_open = dev_if_open,						\
	.if_close = dev_if_close,					\
	.service = dev_service,						\
	.fd = dev_fd,							\
	.arm = dev_arm,							\
	.disarm = dev_disarm,						\
	.connect = dev_connect,						\
	.peer_free = dev_peer_free,					\
	.peer_process = dev_peer_process,				\
	.wake = dev_wake,						\
	.pkt_send = dev_pkt_send,					\
	.space_ready = dev_space_ready,					\
	.space_write = dev_space_write,					\
	.space_barrier = dev_space_barrier,				\
	.back_store = dev_back_store,					\
	.back_barrier = dev_back_barrier,				\
	.pump = dev_pump,						\
	.mem_alloc = dev_mem_alloc,					\
	.mem_free = dev_mem_free,					\
	.mem_key = dev_mem_key,						\
	.mem_open = dev_mem_open,					\
	.mem_covers = dev_mem_covers,					\
	.mem_import = dev_mem_import,					\
	.mem_release = dev_mem_release,					\
	.mem_window = dev_mem_window,					\
	.mem_bytes = dev_mem_bytes,					\
	.dma_post = dev_dma_post,					\
	.dma_poll = dev_dma_poll,					\
	.dump = dev_dump

const struct hal_ops hal_dev_ops = { DEV_OPS("dev", dev_open) };
const struct hal_ops hal_sim_ops = { DEV_OPS("sim", sim_open) };
