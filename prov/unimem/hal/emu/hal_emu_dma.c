/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_dma.c - dmable memory and the cDMA engine.
 *
 * Dmable memory is a sealed memfd. A peer that imports it maps it, and a
 * transfer is a copy by the CPU. hal_emu_attach.c accesses ordinary memory of a
 * peer. Each emu_dma_poll() moves a bounded number of bytes, and takes turns
 * between the transfers. hal_emu_dma.h declares the functions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "hal/emu/hal_emu_attach.h"
#include "hal/emu/hal_emu_board.h"
#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_dma.h"
#include "hal/hal_board.h"
#include "util/unm_clock.h"

#define POLL_BYTES	(1u << 20)	/* bytes moved by one emu_dma_poll() */
#define TURN_BYTES	(1u << 18)	/* bytes of one turn of a transfer */
#define MEM_MAX		((size_t)1 << 46)	/* bytes of a region */
#define EMU_MEMS_MAX	4096		/* dmable regions of a process */
#define EMU_ANSWERS_MAX	64		/* answered imports of a peer that no
					 * call has fetched; a caller that
					 * fetches each has fewer */

/* ---- Local regions --------------------------------------------------- */

/* Enter mem in the table, which is locked. */
static int slot_take(struct hal_emu *emu, struct hal_mem *mem)
{
	struct emu_mem_slot *grown;
	uint32_t i, max;

	for (i = 0; i < emu->nmems; i++)
		if (emu->mems[i].mem == NULL)
			goto found;
	if (emu->nmems >= EMU_MEMS_MAX)
		return -FI_ENOMEM;
	max = emu->nmems != 0 ? emu->nmems * 2 : 16;
	grown = realloc(emu->mems, max * sizeof(*grown));
	if (grown == NULL)
		return -FI_ENOMEM;
	memset(grown + emu->nmems, 0, (max - emu->nmems) * sizeof(*grown));
	emu->mems = grown;
	emu->nmems = max;
found:
	emu->mems[i].mem = mem;
	emu->mems[i].gen++;
	mem->index = i;
	return 0;
}

static int mem_back(struct hal_mem *mem, size_t bytes)
{
	int ret;

	ret = hal_seg_create("unimem-mem", bytes, bytes, &mem->fd);
	if (ret != 0)
		return ret;
	ret = hal_map_get(mem->fd, bytes, &mem->map);
	if (ret != 0) {
		hal_log(0, "cannot map %zu bytes of dmable memory: %s", bytes,
			strerror(-ret));
		close(mem->fd);
		return ret;
	}
	mem->addr = mem->map->addr;
	mem->len = mem->map->len;
	return 0;
}

/* Make the key of a region whose memory is there, and enter the region in the
 * table. */
static int mem_enter(struct hal_emu *emu, struct hal_mem *mem)
{
	uint64_t *word = mem->key.word;
	int ret;

	if (getrandom(&word[1], sizeof(word[1]), 0) < 0)
		return -errno;
	hal_lock(&emu->lock);
	ret = slot_take(emu, mem);
	if (ret == 0)
		word[0] = (uint64_t)emu->mems[mem->index].gen << 32 |
			  mem->index;
	hal_unlock(&emu->lock);
	return ret;
}

int emu_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **out, void **addr)
{
	struct hal_emu *emu = (struct hal_emu *)hal;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct hal_mem *mem;
	int ret;

	if (board < 0)
		board = hal->own_board;
	if (!hal_board_here(hal, (uint32_t)board) || bytes == 0)
		return -FI_EINVAL;
	if (bytes > MEM_MAX) {
		hal_log(0, "cannot get %zu bytes of dmable memory: no machine "
			"has so much", bytes);
		return -FI_ENOMEM;
	}
	bytes = (bytes + page - 1) & ~(page - 1);
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -FI_ENOMEM;
	mem->emu = emu;
	mem->board = (uint32_t)board;
	ret = mem_back(mem, bytes);
	if (ret != 0)
		goto err_free;
	emu_board_place(emu, (uint32_t)board, mem->map);
	ret = mem_enter(emu, mem);
	if (ret != 0)
		goto err_back;
	*out = mem;
	*addr = mem->addr;
	return 0;

err_back:
	hal_map_put(mem->map);
	close(mem->fd);
err_free:
	free(mem);
	return ret;
}

/* The file is checked as one that came from a peer: peers check it so, too. */
int emu_mem_adopt(struct hal *hal, int fd, void *addr, size_t bytes,
		  struct hal_mem **out)
{
	struct hal_emu *emu = (struct hal_emu *)hal;
	struct hal_mem *mem;
	int ret;

	if (bytes == 0 || bytes > MEM_MAX || hal_seg_check(fd, bytes) != 0)
		return -FI_EINVAL;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -FI_ENOMEM;
	mem->emu = emu;
	mem->board = (uint32_t)hal->own_board;
	mem->addr = addr;
	mem->len = bytes;
	mem->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ret = mem->fd < 0 ? -errno : mem_enter(emu, mem);
	if (ret == 0) {
		*out = mem;
		return 0;
	}
	if (mem->fd >= 0)
		close(mem->fd);
	free(mem);
	return ret;
}

/* The key has the generation of the entry, so a later region in this entry has
 * another key. */
void emu_mem_free(struct hal_mem *mem)
{
	struct hal_emu *emu = mem->emu;

	hal_lock(&emu->lock);
	emu->mems[mem->index].mem = NULL;
	hal_unlock(&emu->lock);
	if (mem->fd >= 0 && emu->pid == getpid())
		close(mem->fd);
	hal_map_put(mem->map);
	free(mem);
}

int emu_mem_key(struct hal_mem *mem, struct hal_key *key)
{
	*key = mem->key;
	return 0;
}

static bool key_equal(const struct hal_key *a, const struct hal_key *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

int emu_mem_lookup(struct hal_emu *emu, const struct hal_key *key, int *fd,
		   struct emu_mem_msg *msg)
{
	uint32_t index = (uint32_t)key->word[0];
	struct hal_mem *mem = NULL;
	int ret = -FI_EKEYREJECTED;

	hal_lock(&emu->lock);
	if (index < emu->nmems)
		mem = emu->mems[index].mem;
	if (mem != NULL && mem->fd >= 0 && key_equal(&mem->key, key)) {
		msg->bytes = mem->len;
		msg->board = mem->board;
		*fd = fcntl(mem->fd, F_DUPFD_CLOEXEC, 0);
		ret = *fd < 0 ? -errno : 0;
	}
	hal_unlock(&emu->lock);
	return ret;
}

/* ---- Regions of other processes, as local memory ---------------------- */

/* Take a reference to the mapping of a region: one of this process, or one that
 * an interface of this process has imported. -FI_EKEYREJECTED: neither. */
static int open_map(struct hal_emu *emu, const struct hal_key *key,
		    struct hal_map **map, uint32_t *board)
{
	struct emu_mem_msg msg;
	int fd, ret;

	ret = emu_mem_lookup(emu, key, &fd, &msg);
	if (ret == 0) {
		*board = msg.board;
		ret = hal_map_get(fd, msg.bytes, map);
		close(fd);
		return ret;
	}
	hal_lock(&emu->lock);
	unm_list_for_each(pos, &emu->imports) {
		struct hal_rmem *rmem =
			unm_container(pos, struct hal_rmem, imported);

		if (ret != -FI_EKEYREJECTED || !key_equal(&rmem->key, key))
			continue;
		*board = rmem->board;
		*map = hal_map_hold(rmem->map);
		ret = 0;
	}
	hal_unlock(&emu->lock);
	return ret;
}

/* A key does not name its owner, so a region of another process has to be
 * imported before. */
int emu_mem_open(struct hal *hal, const struct hal_key *key,
		 struct hal_mem **out, void **addr)
{
	struct hal_emu *emu = (struct hal_emu *)hal;
	struct hal_mem *mem;
	int ret;

	if (hal->caps.flags & HAL_CAP_COHERENT)
		return -FI_ENOSYS;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -FI_ENOMEM;
	mem->emu = emu;
	mem->key = *key;
	mem->fd = -1;
	ret = open_map(emu, key, &mem->map, &mem->board);
	if (ret != 0)
		goto err_free;
	ret = -FI_EINVAL;
	if (mem->board != (uint32_t)hal->own_board)
		goto err_map;
	mem->addr = mem->map->addr;
	mem->len = mem->map->len;
	hal_lock(&emu->lock);
	ret = slot_take(emu, mem);
	hal_unlock(&emu->lock);
	if (ret != 0)
		goto err_map;
	*out = mem;
	*addr = mem->addr;
	return 0;

err_map:
	hal_map_put(mem->map);
err_free:
	free(mem);
	return ret;
}

bool emu_mem_covers(struct hal *hal, const void *addr, uint64_t len)
{
	struct hal_emu *emu = (struct hal_emu *)hal;
	bool inside = false;

	hal_lock(&emu->lock);
	for (uint32_t i = 0; i < emu->nmems && !inside; i++) {
		const struct hal_mem *mem = emu->mems[i].mem;
		uint64_t off;

		if (mem == NULL)
			continue;
		off = (uintptr_t)addr - (uintptr_t)mem->addr;
		inside = off <= mem->len && len <= mem->len - off;
	}
	hal_unlock(&emu->lock);
	return inside;
}

/* ---- Regions of peers ------------------------------------------------ */

static struct hal_rmem *rmem_find(struct emu_peer *peer,
				  const struct hal_key *key)
{
	struct hal_rmem *rmem = peer->rmems;

	while (rmem != NULL && !key_equal(&rmem->key, key))
		rmem = rmem->next;
	return rmem;
}

static void rmem_drop(struct hal_rmem *rmem)
{
	struct hal_emu *emu = emu_if(rmem->peer->p.hif)->emu;
	struct hal_rmem **at = &rmem->peer->rmems;

	while (*at != rmem)
		at = &(*at)->next;
	*at = rmem->next;
	if (rmem->map != NULL) {
		hal_lock(&emu->lock);
		unm_list_remove(&rmem->imported);
		hal_unlock(&emu->lock);
	}
	hal_map_put(rmem->map);
	free(rmem);
}

/* A caller may never fetch the answer to its import. If there are too many such
 * answers, release the oldest. */
static void rmems_evict(struct emu_peer *peer)
{
	struct hal_rmem *rmem, *oldest = NULL;
	int n = 0;

	for (rmem = peer->rmems; rmem != NULL; rmem = rmem->next) {
		if (rmem->refs != 0 || rmem->status == -FI_EAGAIN)
			continue;
		oldest = rmem;		/* the list has the newest first */
		n++;
	}
	if (n >= EMU_ANSWERS_MAX)
		rmem_drop(oldest);
}

/* When the local engine has the route to a region that is requested now; 0: it
 * needs none. */
static uint64_t route_due(const struct hal_emu *emu)
{
	return emu->model == NULL ? 0 :
		unm_now_ns() + emu->model->figures.route_registration;
}

/* Request a region from the peer. -FI_EAGAIN: requested, or not possible now
 * because EMU_REQS_MAX requests are not answered. */
static int import_ask(struct emu_peer *peer, const struct hal_key *key)
{
	struct emu_conn *conn = peer->out != NULL ? peer->out : peer->in;
	struct hal_rmem *rmem;
	union emu_msg msg;
	int ret;

	if (peer->nreqs == EMU_REQS_MAX || (conn->todo & EMU_TODO_ANSWER))
		return -FI_EAGAIN;
	rmems_evict(peer);
	rmem = calloc(1, sizeof(*rmem));
	if (rmem == NULL)
		return -FI_ENOMEM;
	memset(&msg.mem, 0, sizeof(msg.mem));
	msg.mem.key = *key;
	ret = emu_conn_send(conn, &msg, sizeof(msg.mem), EMU_MEM_REQ, 0, NULL,
			    0);
	if (ret != 0) {
		free(rmem);
		return ret;
	}
	rmem->peer = peer;
	rmem->key = *key;
	rmem->status = -FI_EAGAIN;
	rmem->route_due = route_due(emu_if(peer->p.hif)->emu);
	rmem->next = peer->rmems;
	peer->rmems = rmem;
	peer->nreqs++;
	return -FI_EAGAIN;
}

int emu_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **out)
{
	struct emu_peer *peer = emu_peer(hp);
	struct hal_rmem *rmem;
	int ret;

	if (hp->dead || peer->dying != 0)
		return -FI_ECONNRESET;
	rmem = rmem_find(peer, key);
	if (rmem == NULL)
		return import_ask(peer, key);
	ret = rmem->status;
	if (ret == 0 && rmem->route_due != 0 &&
	    unm_now_ns() < rmem->route_due)
		return -FI_EAGAIN;
	if (ret == 0) {
		rmem->refs++;
		*out = rmem;
	} else if (ret != -FI_EAGAIN) {
		rmem_drop(rmem);
	}
	return ret;
}

/* Map the region of an answer, and let emu_mem_open() find it. */
static int rmem_map(struct hal_rmem *rmem, const struct emu_mem_msg *msg,
		    int fd)
{
	struct hal_emu *emu = emu_if(rmem->peer->p.hif)->emu;
	int ret;

	ret = hal_map_get(fd, msg->bytes, &rmem->map);
	if (ret != 0)
		return ret;
	rmem->bytes = msg->bytes;
	rmem->board = msg->board;
	hal_lock(&emu->lock);
	unm_list_append(&emu->imports, &rmem->imported);
	hal_unlock(&emu->lock);
	return 0;
}

/* The peer may send anything: each field is checked. */
void emu_mem_reply(struct emu_peer *peer, const struct emu_mem_msg *msg,
		   const struct emu_fds *fds)
{
	struct hal_rmem *rmem = rmem_find(peer, &msg->key);
	int ret;

	if (rmem == NULL || rmem->status != -FI_EAGAIN)
		return;
	peer->nreqs--;
	if (msg->head.status == -FI_EMFILE || msg->head.status == -FI_ENOMEM)
		ret = msg->head.status;
	else if (msg->head.status != 0)
		ret = -FI_EKEYREJECTED;
	else if (fds->n != 1 || msg->bytes == 0 || msg->bytes > MEM_MAX)
		ret = fds->lost ? -FI_EMFILE : -FI_EIO;
	else
		ret = hal_seg_check(fds->fd[0], msg->bytes);
	if (ret == 0)
		ret = rmem_map(rmem, msg, fds->fd[0]);
	if (ret != 0 && ret != -FI_EKEYREJECTED)
		hal_log(0, "cannot import %llu bytes of interface %u:%u: %s",
			(unsigned long long)msg->bytes, peer->p.addr.board,
			peer->p.addr.iface, strerror(-ret));
	rmem->status = ret;
}

/* The last user unmaps the region. A region that the peer has freed stays
 * mapped until then, and until then its key still works here. */
void emu_mem_release(struct hal_rmem *rmem)
{
	if (--rmem->refs == 0)
		rmem_drop(rmem);
}

uint64_t emu_mem_bytes(const struct hal_rmem *rmem)
{
	return rmem->bytes;
}

/* A board that is not coherent with others is so with its own processors. */
void *emu_mem_window(struct hal_rmem *rmem, uint64_t *bytes)
{
	const struct hal_if *hif = rmem->peer->p.hif;

	if (!(hif->caps->flags & HAL_CAP_COHERENT) &&
	    rmem->board != hif->addr.board)
		return NULL;
	*bytes = rmem->bytes;
	return rmem->map->addr;
}

void emu_rmems_free(struct emu_peer *peer)
{
	while (peer->rmems != NULL)
		rmem_drop(peer->rmems);
}

/* ---- Engine ---------------------------------------------------------- */

static int check_post(struct emu_if *eif, const struct hal_dma *d)
{
	uint64_t limit = d->rmem != NULL ? d->rmem->bytes : UINT64_MAX;

	if (d->peer == NULL || d->peer->hif != &eif->i ||
	    (d->op != HAL_DMA_GET && d->op != HAL_DMA_PUT) ||
	    (d->local == NULL && d->len != 0) ||
	    (d->rmem != NULL && d->rmem->peer != emu_peer(d->peer)) ||
	    d->raddr > limit || d->len > limit - d->raddr)
		return -FI_EINVAL;
	/* the engine of the prototype accesses dmable memory only, at both
	 * ends */
	if (!(eif->i.caps->flags & HAL_CAP_DMA_ANY) && d->len != 0 &&
	    !emu_mem_covers(eif->i.hal, d->local, d->len))
		return -FI_EINVAL;
	if (d->rmem == NULL && !d->peer->dma_any && !d->peer->dead)
		return -FI_EACCES;
	return 0;
}

int emu_dma_post(struct hal_if *hif, const struct hal_dma *d, uint64_t token)
{
	struct emu_if *eif = emu_if(hif);
	struct emu_dma *dma = eif->dma;
	int ret;

	ret = check_post(eif, d);
	if (ret != 0)
		return ret;
	if (eif->dma_busy == EMU_DMA_DEPTH)
		return -FI_EAGAIN;
	while (dma->busy)
		dma++;
	dma->d = *d;
	dma->token = token;
	dma->done = 0;
	dma->busy = true;
	dma->status = d->peer->dead ? -FI_ECANCELED : -FI_EINPROGRESS;
	if (d->rmem != NULL)
		d->rmem->refs++;
	eif->dma_busy++;
	return 0;
}

/*
 * Has the peer kept its interface open during the transfer? If not, its
 * application may have written to the memory while it was read.
 *
 * A load of the word could be executed before the loads of the data. Adding 0
 * releases them instead: an exchange in emu_peer_free() that comes later
 * acquires the sum, so that the data were read before the application writes.
 */
static bool dma_valid(const struct hal_dma *d)
{
	const struct hal_map *link = emu_peer(d->peer)->rx_map;

	return link == NULL ||
		atomic_fetch_add_explicit(emu_link_closed(link), 0,
					  memory_order_release) == 0;
}

/* One turn of a transfer. Returns the bytes moved. */
static uint64_t dma_turn(struct emu_dma *dma, uint64_t budget)
{
	const struct hal_dma *d = &dma->d;
	uint64_t n = d->len - dma->done;
	int64_t moved;

	if (n > budget)
		n = budget;
	if (n > TURN_BYTES)
		n = TURN_BYTES;
	moved = (int64_t)n;
	if (n != 0 && d->rmem == NULL) {
		moved = emu_attach_move(d, dma->done, n);
	} else if (n != 0) {
		uint8_t *local = (uint8_t *)d->local + dma->done;
		uint8_t *remote = (uint8_t *)d->rmem->map->addr + d->raddr +
				  dma->done;

		if (d->op == HAL_DMA_GET)
			memcpy(local, remote, n);
		else
			memcpy(remote, local, n);
	}
	if (moved < 0) {
		dma->status = (int)moved;
		return 0;
	}
	dma->done += (uint64_t)moved;
	if (dma->done == d->len)
		dma->status = dma_valid(d) ? 0 : -FI_ECANCELED;
	else
		HAL_FAULT_POINT(HAL_FAULT_POINT_DMA_HALF);
	return (uint64_t)moved;
}

int emu_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	struct emu_if *eif = emu_if(hif);
	uint64_t budget = POLL_BYTES;
	int n = 0;

	while (n < max && eif->dma_busy != 0 && budget != 0) {
		struct emu_dma *dma = &eif->dma[eif->dma_at];

		eif->dma_at = (eif->dma_at + 1) % EMU_DMA_DEPTH;
		if (!dma->busy)
			continue;
		if (dma->status == -FI_EINPROGRESS)
			budget -= dma_turn(dma, budget);
		if (dma->status == -FI_EINPROGRESS)
			continue;
		comp[n].token = dma->token;
		comp[n].status = dma->status;
		n++;
		dma->busy = false;
		eif->dma_busy--;
		if (dma->d.rmem != NULL)
			emu_mem_release(dma->d.rmem);
	}
	return n;
}

void emu_dma_cancel(struct emu_peer *peer)
{
	struct emu_if *eif = emu_if(peer->p.hif);

	for (int i = 0; i < EMU_DMA_DEPTH && eif->dma_busy != 0; i++) {
		struct emu_dma *dma = &eif->dma[i];

		if (!dma->busy || dma->d.peer != &peer->p)
			continue;
		dma->status = -FI_ECANCELED;
		if (dma->d.rmem != NULL)
			emu_mem_release(dma->d.rmem);
		dma->d.rmem = NULL;
		dma->d.peer = NULL;
	}
}
