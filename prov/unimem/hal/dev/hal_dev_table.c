/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_table.c - which peers are alive: the tables of holders, and the marks
 * for peers that are to end.
 *
 * The drivers keep a table for each board: its interfaces and who holds them
 * (HAL_KDEV_TABLE of hal_kdev.h). A peer lives as long as the table of its
 * board shows its nonce. The copy that this file reads is in the memory of the
 * local board, so that a dead board blocks no process that asks for its
 * interfaces. Peers that have ended, broke the protocol or are on a board that
 * does not answer are only marked here; hal_dev_life.c acts upon the marks.
 */
#define _GNU_SOURCE
#include "hal/dev/hal_dev_table.h"
#include "hal/hal_task.h"
#include "util/unm_clock.h"

#define READ_TRIES	8		/* of an entry that is being changed */
#define LATE_NS		500000000u	/* a dying peer may deliver packets */

/* ---- Marks ------------------------------------------------------------- */

void dev_mark_dying(struct dev_peer *peer, int status)
{
	if (peer->dying != 0)
		return;
	peer->dying = status;
	peer->dying_at = unm_now_ns();
	dev_if(peer->p.hif)->ndying++;
}

void dev_disconnect(struct dev_peer *peer)
{
	peer->disconnected = true;
	dev_mark_dying(peer, -FI_EIO);
}

void dev_disconnect_lossy(struct dev_peer *peer)
{
	dev_disconnect(peer);
	peer->dying = -FI_EIO;
}

void dev_disconnect_all(struct dev_if *dif)
{
	for (struct dev_peer *p = dif->peers; p != NULL; p = p->next)
		if (!p->p.dead)
			dev_disconnect(p);
}

bool dev_overdue(const struct dev_peer *peer)
{
	return unm_now_ns() - peer->dying_at > LATE_NS;
}

/* ---- Tables ------------------------------------------------------------ */

/* The mapped table of a board; mapped at first use. NULL: that failed. */
static const struct hal_mmio_map *table_of(struct dev_if *dif, uint32_t board)
{
	struct hal_mmio_map *map = &dif->tables[board];

	if (map->mm == NULL &&
	    dif->io->map(dif->mm, hal_kdev_off(HAL_KDEV_TABLE,
			 (uint64_t)board * DEV_PAGE), DEV_PAGE, map) != 0) {
		map->mm = NULL;
		return NULL;
	}
	return map;
}

int dev_holder(struct dev_if *dif, uint32_t board, uint32_t iface,
	       struct hal_kdev_entry *entry)
{
	const struct hal_mmio_map *map = table_of(dif, board);
	uint64_t off = (uint64_t)iface * sizeof(*entry);
	uint64_t after;

	if (map == NULL)
		return -FI_ENOMEM;
	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t before;

		/* The driver writes the nonce last on a claim and first
		 * on a release: equal nonces before and after the entry
		 * mean that it did not change. */
		dif->io->load(map, off, &before, sizeof(before));
		dif->io->status_before_memory(dif->mm);
		dif->io->load(map, off, entry, sizeof(*entry));
		dif->io->status_before_memory(dif->mm);
		dif->io->load(map, off, &after, sizeof(after));
		if (before == after && entry->nonce == after)
			return after == 0 ? -FI_ECONNREFUSED : 0;
	}
	return -FI_EAGAIN;
}

int dev_holds(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	const struct hal_mmio_map *map = table_of(dif, peer->p.addr.board);
	uint64_t nonce;

	if (map == NULL)
		return -FI_ENOMEM;
	dif->io->load(map, (uint64_t)peer->p.addr.iface *
		      sizeof(struct hal_kdev_entry), &nonce, sizeof(nonce));
	return nonce == peer->p.addr.nonce;
}

int dev_peer_process(struct hal_peer *hp, uint64_t *id)
{
	struct dev_peer *peer = dev_peer(hp);
	struct dev_if *dif = dev_if(hp->hif);
	struct hal_kdev_entry e;
	struct hal_task task;
	int ret;

	if (hp->dead || peer->gone)
		return -FI_ECONNRESET;
	if (hp->addr.board != dif->i.addr.board)
		return -FI_ENOSYS;	/* a process of another kernel */
	ret = dev_holder(dif, hp->addr.board, hp->addr.iface, &e);
	if (ret == -FI_ECONNREFUSED ||
	    (ret == 0 && e.nonce != hp->addr.nonce))
		return -FI_ECONNRESET;
	if (ret != 0)
		return ret;
	task.ns = e.pid_ns;
	task.start = e.pid_start;
	task.pid = (pid_t)e.pid;
	ret = e.pid == 0 ? -FI_ENOSYS : hal_task_open(&task);
	if (ret >= 0)
		*id = e.pid;
	return ret;
}

/* ---- Stores ------------------------------------------------------------ */

void dev_mark_gone(struct dev_peer *peer)
{
	bool connected = peer->connected_reported ||
			 peer->accept != DEV_ACCEPT_NONE;

	peer->gone = true;
	dev_mark_dying(peer, connected ? -FI_ECONNRESET : -FI_ECONNREFUSED);
}

/* A load from a board ended in a bus error: mark all peers on it as gone, also
 * those that ended before, so that nothing is stored to the board any more. */
static void board_lost(struct dev_if *dif, uint32_t board)
{
	hal_log(0, "board %u does not answer (bus error): the connections of "
		"interface %u:%u to that board end",
		board, dif->i.addr.board, dif->i.addr.iface);
	for (struct dev_peer *p = dif->peers; p != NULL; p = p->next)
		if (p->p.addr.board == board)
			dev_mark_gone(p);
}

int dev_stored(struct dev_peer *peer, const struct hal_mmio_map *map)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	int holds;

	if (peer->gone)
		return -FI_ECONNRESET;
	holds = dev_holds(peer);
	if (holds < 0)
		return holds;	/* its board may be dead: read nothing back */
	if (holds == 0) {
		/* The peer may have sent packets before its entry was
		 * cleared. Order the next read of the mailbox after the
		 * load of the entry. */
		dif->io->status_before_memory(dif->mm);
		dev_mark_gone(peer);
		return -FI_ECONNRESET;
	}
	if (dif->io->stores_before_notify(map) == 0)
		return 0;
	board_lost(dif, peer->p.addr.board);
	return -FI_ECONNRESET;
}
