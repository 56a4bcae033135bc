/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_link.c - peers of an interface, and the links between them.
 *
 * Offsets in a link, in bytes:
 *   0               struct hal_back, stored by the receiver
 *   256             struct hal_sleep, see hal_types.h for the writers
 *   320             emu_link_closed()
 *   4096            struct hal_cell[depth], stored by the sender
 *   8192            under the timing model: struct emu_stamps, stored by the
 *                   receiver
 *   geo.space_off   receive space, stored by the sender
 *
 * The sender makes the link, so that it can send before the receiver has
 * accepted the connection. All pages below the receive space are allocated when
 * the link is made; emu_space_ready() allocates those of the space before they
 * are used. An access to a page that cannot be allocated would end in a signal.
 *
 * hal_emu_link.h declares the functions; emu_peer_free(), emu_space_ready() and
 * emu_space_trim() are in the backend table.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/emu/hal_emu_board.h"
#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_dma.h"
#include "hal/emu/hal_emu_event.h"
#include "hal/emu/hal_emu_link.h"
#include "hal/emu/hal_emu_stamp.h"
#include "hal/hal_limit.h"
#include "hal/hal_peer.h"

#define LINK_SLEEP_OFF	256
#define LINK_CELLS_OFF	4096
_Static_assert(LINK_SLEEP_OFF + sizeof(struct hal_sleep) <=
	       EMU_LINK_CLOSED_OFF &&
	       EMU_LINK_CLOSED_OFF + HAL_LINE <= LINK_CELLS_OFF,
	       "emu_link_closed() has a line of its own");
#define HASH_FIRST	16		/* buckets at first */
#define LINKS_AHEAD	16		/* links per check of free memory */
#define POPULATE_TRIES	1000		/* interrupted calls in a row */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

/* ---- Peers by address ------------------------------------------------ */

static struct emu_peer **peer_bucket(const struct emu_if *eif,
				     const struct hal_addr *addr)
{
	uint32_t key = (addr->iface ^ (uint32_t)addr->board << 16) *
		       2654435761u;

	return &eif->hash[key >> 8 & (eif->hash_size - 1)];
}

static bool peer_live(const struct emu_peer *peer)
{
	return !peer->p.dead && peer->dying == 0;
}

struct emu_peer *emu_peer_find(struct emu_if *eif, const struct hal_addr *addr)
{
	struct emu_peer *peer, *dead = NULL;

	if (eif->hash_size == 0)
		return NULL;
	for (peer = *peer_bucket(eif, addr); peer != NULL;
	     peer = peer->hash_next) {
		const struct hal_addr *a = &peer->p.addr;

		if (a->board != addr->board || a->iface != addr->iface ||
		    a->uid != addr->uid)
			continue;
		/* a nonce that is not known yet may be the same */
		if (peer_live(peer) && (a->nonce == addr->nonce ||
					a->nonce == HAL_ADDR_ANY ||
					addr->nonce == HAL_ADDR_ANY))
			return peer;
		if (a->nonce == addr->nonce)
			dead = peer;
	}
	return dead;
}

static void hash_insert(struct emu_if *eif, struct emu_peer *peer)
{
	struct emu_peer **at = peer_bucket(eif, &peer->p.addr);

	peer->hash_next = *at;
	*at = peer;
}

static int hash_grow(struct emu_if *eif)
{
	uint32_t old_size = eif->hash_size;
	uint32_t size = old_size != 0 ? old_size * 2 : HASH_FIRST;
	struct emu_peer **old = eif->hash, **fresh;

	fresh = calloc(size, sizeof(*fresh));
	if (fresh == NULL)
		/* a table that is too small has longer chains, and works */
		return old_size != 0 ? 0 : -FI_ENOMEM;
	eif->hash = fresh;
	eif->hash_size = size;
	for (uint32_t i = 0; i < old_size; i++) {
		while (old[i] != NULL) {
			struct emu_peer *peer = old[i];

			old[i] = peer->hash_next;
			hash_insert(eif, peer);
		}
	}
	free(old);
	return 0;
}

int emu_peer_new(struct emu_if *eif, const struct hal_addr *addr,
		 struct emu_peer **out)
{
	struct emu_peer *peer;
	int ret;

	if (eif->npeers >= eif->hash_size) {
		ret = hash_grow(eif);
		if (ret != 0)
			return ret;
	}
	peer = hal_peer_alloc(&eif->i, addr, sizeof(*peer));
	if (peer == NULL)
		return -FI_ENOMEM;
	peer->pidsrc.kind = EMU_SRC_PIDFD;
	peer->pidsrc.fd = -1;
	unm_list_init(&peer->event);
	hash_insert(eif, peer);
	eif->npeers++;
	*out = peer;
	return 0;
}

static void hash_remove(struct emu_if *eif, struct emu_peer *peer)
{
	struct emu_peer **at = peer_bucket(eif, &peer->p.addr);

	while (*at != peer)
		at = &(*at)->hash_next;
	*at = peer->hash_next;
	eif->npeers--;
}

void emu_peer_drop(struct emu_peer *peer)
{
	struct emu_if *eif = emu_if(peer->p.hif);

	emu_dma_cancel(peer);
	emu_rmems_free(peer);
	unm_list_remove(&peer->event);
	hal_inbound_remove(&peer->p);
	hash_remove(eif, peer);
	eif->place_free = true;
	eif->nticks -= peer->ticks;
	if (peer->connected || peer->p.rx.cells != NULL)
		eif->met[eif->nmet++ % EMU_MET_MAX] = peer->p.addr.nonce;
	if (peer->dying != 0 && !peer->p.dead)
		eif->ndying--;
	emu_peer_disconnect(peer);
	emu_link_unmake(peer);
	hal_map_put(peer->rx_map);
	emu_stamp_drop(peer);
	free(peer);
}

void emu_peer_free(struct hal_peer *hp)
{
	struct emu_peer *peer = emu_peer(hp);
	struct emu_conn *const conns[] = { peer->out, peer->in };
	union emu_msg bye;

	if (emu_if(hp->hif)->pid != getpid())
		return;		/* a forked child: emu_if_close() frees it */
	if (peer->tx_map != NULL)
		/* The application may write to its buffers after this, while
		 * the peer still reads them; pairs with the release in
		 * dma_valid(). */
		atomic_exchange_explicit(emu_link_closed(peer->tx_map), 1,
					 memory_order_acquire);
	for (int i = 0; i < 2; i++) {
		if (conns[i] == NULL)
			continue;
		if (emu_if(hp->hif)->closing &&
		    !(conns[i]->todo & EMU_TODO_ANSWER))
			emu_conn_send(conns[i], &bye, sizeof(bye.head),
				      EMU_BYE, 0, NULL, 0);
		else if ((conns[i]->todo & EMU_TODO_ANSWER) &&
			 conns[i]->answer == EMU_WELCOME && peer->out == NULL)
			emu_refuse(conns[i], EMU_WELCOME, EMU_LET_GO);
	}
	emu_peer_drop(peer);
}

/* ---- Links ----------------------------------------------------------- */

/*
 * A new slot is zero, so a slot whose packet number plus one is zero modulo
 * 2^48 would seem full: the last slot, if no packet began there before (for the
 * second half of a wide packet its head is not written). Store another value
 * there, which none of its packets has. A link whose numbers begin at 0 needs
 * 2^48 slots to get there, and saves the page.
 */
static void cells_guard(struct hal_cell *cells, uint32_t depth, uint64_t first)
{
	if (first != 0)
		/* relaxed: no other process has the link yet */
		atomic_store_explicit(&cells[depth - 1].head, 1,
				      memory_order_relaxed);
}

int emu_link_make(struct emu_peer *peer, int *out)
{
	struct emu_if *eif = emu_if(peer->p.hif);
	struct hal_emu *emu = eif->emu;
	const struct emu_geo *geo = &emu->geo;
	uint64_t first = (uint64_t)emu->hal.params.seq_start;
	struct hal_tx *tx = &peer->p.tx;
	uint8_t *base;
	int fd, ret;

	/* the kernel kills processes of a control group that is full */
	if (eif->nlinks % LINKS_AHEAD == 0) {
		ret = hal_limit_check("links to a few more peers",
				      LINKS_AHEAD * (size_t)geo->space_off);
		if (ret != 0)
			return ret;
	}
	ret = hal_seg_create("unimem-link", geo->bytes,
			     emu->populate ? geo->space_off : geo->bytes, &fd);
	if (ret != 0)
		return ret;
	ret = hal_map_get(fd, geo->bytes, &peer->tx_map);
	if (ret != 0) {
		hal_log(0, "cannot map a link of %u bytes: %s%s", geo->bytes,
			strerror(-ret), ret == -FI_ENOMEM ?
			" (see ulimit -v and vm.max_map_count)" : "");
		goto err_fd;
	}
	/* the memory lies on the memory node of the receiver's board */
	emu_board_place(emu, peer->p.addr.board, peer->tx_map);
	base = peer->tx_map->addr;
	tx->back = (struct hal_back *)base;
	tx->sleep = (struct hal_sleep *)(base + LINK_SLEEP_OFF);
	tx->cells = (struct hal_cell *)(base + LINK_CELLS_OFF);
	tx->space = base + geo->space_off;
	tx->claims = emu->claims;
	tx->demotes = emu->demotes;
	tx->mask = geo->depth - 1;
	tx->next = first;
	tx->limit = first + geo->depth;
	cells_guard(tx->cells, geo->depth, first);
	/* relaxed: sending the descriptor to the peer orders it */
	atomic_store_explicit(&tx->back->done, first, memory_order_relaxed);
	if (emu->model != NULL) {
		ret = emu_stamp_tx(peer);
		if (ret != 0)
			goto err_map;
	}
	tx->open = true;
	eif->nlinks++;
	*out = fd;
	return 0;

err_map:
	emu_link_unmake(peer);
err_fd:
	close(fd);
	return ret;
}

void emu_link_unmake(struct emu_peer *peer)
{
	emu_stamp_tx_undo(peer);
	hal_map_put(peer->tx_map);
	peer->tx_map = NULL;
	peer->space = 0;
	memset(&peer->p.tx, 0, sizeof(peer->p.tx));
}

int emu_link_take(struct emu_peer *peer, int fd, uint64_t first)
{
	struct emu_if *eif = emu_if(peer->p.hif);
	const struct emu_geo *geo = &eif->emu->geo;
	const struct hal_addr *addr = &peer->p.addr;
	struct hal_rx *rx = &peer->p.rx;
	uint8_t *base;
	int ret;

	ret = hal_seg_check(fd, geo->bytes);
	if (ret == 0)
		/* so that emu_events_take() cannot fail */
		ret = hal_inbound_reserve(&eif->i, eif->npeers);
	if (ret == 0)
		ret = hal_map_get(fd, geo->bytes, &peer->rx_map);
	if (ret != 0) {
		hal_log(emu_said(eif, EMU_SAID_LINK),
			"cannot map the link of interface %u:%u: %s",
			addr->board, addr->iface, strerror(-ret));
		return ret;
	}
	base = peer->rx_map->addr;
	rx->back = (struct hal_back *)base;
	rx->sleep = (struct hal_sleep *)(base + LINK_SLEEP_OFF);
	rx->space = base + geo->space_off;
	rx->mask = geo->depth - 1;
	rx->next = first;
	rx->flushed = first;
	rx->identity = (uint64_t)addr->board << 32 | addr->iface;
	rx->cells = (struct hal_cell *)(base + LINK_CELLS_OFF);
	ret = eif->emu->model != NULL ? emu_stamp_rx(peer) : 0;
	if (ret != 0) {
		hal_map_put(peer->rx_map);
		peer->rx_map = NULL;
		memset(rx, 0, sizeof(*rx));
		return ret;
	}
	if (eif->armed)
		/* The sender may have stored packets before this. It sends
		 * EMU_WAKE when it gets the answer to its link. */
		atomic_store_explicit(&rx->sleep->asleep, eif->sleeps,
				      memory_order_relaxed);
	return 0;
}

int emu_space_ready(struct hal_peer *hp, uint32_t bytes)
{
	struct emu_if *eif = emu_if(hp->hif);
	const struct emu_geo *geo = &eif->emu->geo;
	struct emu_peer *peer = emu_peer(hp);
	int tries = 0;

	if (bytes > geo->space_bytes)
		bytes = geo->space_bytes;
	if (bytes <= peer->space || !eif->emu->populate ||
	    peer->tx_map == NULL)
		return 0;
	if (peer->starved ? hal_memory_left(bytes) < bytes :
	    hal_limit_check("receive space", bytes - peer->space) != 0) {
		peer->starved = true;
		return -FI_ENOMEM;
	}
	/* From the start of the link: madvise() wants the start of a page, and
	 * pages larger than 4 KiB do not begin at the space. */
	while (madvise(peer->tx_map->addr, geo->space_off + bytes,
		       MADV_POPULATE_WRITE) != 0) {
		if ((errno == EINTR || errno == EAGAIN) &&
		    tries++ < POPULATE_TRIES)
			continue;
		hal_log(peer->starved, "no memory for %u bytes of receive "
			"space at interface %u:%u: %s", bytes,
			hp->addr.board, hp->addr.iface, strerror(errno));
		peer->starved = true;
		return -FI_ENOMEM;
	}
	peer->space = bytes;
	peer->starved = false;
	return 0;
}

/* Frees whole pages only. Where the space is not allocated by need, peer->space
 * is 0. */
void emu_space_trim(struct hal_peer *hp, uint32_t bytes)
{
	const struct emu_geo *geo = &emu_if(hp->hif)->emu->geo;
	struct emu_peer *peer = emu_peer(hp);
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	uint32_t from, end;		/* offsets in the link */

	if (peer->tx_map == NULL || bytes >= peer->space)
		return;
	from = (geo->space_off + bytes + page - 1) & ~(page - 1);
	end = geo->space_off + peer->space;
	if (from < end && madvise((uint8_t *)peer->tx_map->addr + from,
				  end - from, MADV_REMOVE) == 0)
		peer->space = from - geo->space_off;
}
