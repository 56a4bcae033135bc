/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_mem.c - dmable memory of this process, and imports: memory of peers
 * that the local engine can reach.
 *
 * The driver counts generations of allocations and keeps the holds; an import
 * that it refuses is stale. Preparing an import takes the driver more than 10
 * us [O 2.1], so an import is kept after its last release, and checked before
 * it is used again. hal_dev_region.c has the calls that also map memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/dev/hal_dev_mem.h"
#include "hal/dev/hal_dev_region.h"
#include "hal/dev/hal_dev_table.h"
#include "util/unm_clock.h"
#include "util/unm_random.h"

#define MEM_MAX		(UINT64_C(1) << HAL_GADDR_BOARD_SHIFT)
#define IMPORTS_KEPT	8		/* unused imports per peer */
#define PENDING_MAX	64		/* unfinished imports per peer */
/* An unfinished import that nobody has asked for again in this time (ns) may be
 * freed: its user may have given up. */
#define PENDING_NS	UINT64_C(100000000)

/* ---- Own dmable memory ------------------------------------------------- */

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + DEV_PAGE - 1) & ~(uint64_t)(DEV_PAGE - 1);
}

int dev_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **out, void **addr)
{
	struct hal_dev *dev = (struct hal_dev *)hal;
	struct hal_mem *mem;
	int ret;

	if (board >= (int)hal->caps.boards || bytes == 0)
		return -FI_EINVAL;
	if (board < 0)
		board = hal->own_board;
	/* Memory of another board is mapped as Device memory, which ordinary
	 * code cannot use. */
	if (board != hal->own_board &&
	    !(hal->caps.flags & HAL_CAP_ANY_BOARD))
		return -FI_EINVAL;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -FI_ENOMEM;
	mem->dev = dev;
	mem->secret = unm_random();
	mem->bytes = whole_pages(bytes);
	hal_lock(&dev->lock);
	ret = bytes > MEM_MAX ? -FI_ENOMEM :
		dev_region_alloc(dev->mm, (uint32_t)board, mem->bytes,
				 mem->secret, 0, &mem->region);
	if (ret == 0)
		unm_list_append(&dev->mems, &mem->list);
	hal_unlock(&dev->lock);
	if (ret != 0) {
		hal_log(0, "cannot get %zu bytes of dmable memory on board %d: "
			"%s", bytes, board, strerror(-ret));
		free(mem);
		return ret;
	}
	*out = mem;
	*addr = mem->region.map.base;
	return 0;
}

/* The driver maps local memory as ordinary cached memory. It prepares nothing
 * for the engine then, so the import is finished at once. */
int dev_mem_open(struct hal *hal, const struct hal_key *key,
		 struct hal_mem **out, void **addr)
{
	struct hal_dev *dev = (struct hal_dev *)hal;
	struct hal_kdev_import imp;
	struct hal_mem *mem;
	int ret;

	if (hal_gaddr_board(key->word[0]) != (uint32_t)hal->own_board)
		return -FI_EINVAL;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -FI_ENOMEM;
	mem->dev = dev;
	mem->secret = key->word[1];
	hal_lock(&dev->lock);
	ret = dev_region_import(dev->mm, key->word[0], mem->secret,
				&mem->region, &imp);
	if (ret == 0) {
		mem->bytes = imp.bytes;
		unm_list_append(&dev->mems, &mem->list);
	} else {
		dev_region_abandon(dev->mm, &mem->region);
	}
	hal_unlock(&dev->lock);
	if (ret != 0) {
		free(mem);
		return ret == -ESTALE || ret == -EACCES ? -FI_EKEYREJECTED :
		       ret == -EAGAIN ? -FI_EIO : -FI_ENOMEM;
	}
	*out = mem;
	*addr = mem->region.map.base;
	return 0;
}

void dev_mem_free(struct hal_mem *mem)
{
	struct hal_dev *dev = mem->dev;

	hal_lock(&dev->lock);
	unm_list_remove(&mem->list);
	dev_region_drop(&mem->region);
	hal_unlock(&dev->lock);
	free(mem);
}

int dev_mem_key(struct hal_mem *mem, struct hal_key *key)
{
	key->word[0] = mem->region.ref;
	key->word[1] = mem->secret;
	return 0;
}

int dev_mem_gaddr(struct hal_dev *dev, const void *addr, uint64_t len,
		  uint64_t *gaddr)
{
	int ret = -FI_EINVAL;

	hal_lock(&dev->lock);
	unm_list_for_each(pos, &dev->mems) {
		struct hal_mem *mem = unm_container(pos, struct hal_mem, list);
		uint64_t off = (uintptr_t)addr -
			       (uintptr_t)mem->region.map.base;

		if (off > mem->bytes || len > mem->bytes - off)
			continue;
		*gaddr = dev_ref_gaddr(mem->region.ref) + off;
		ret = 0;
		break;
	}
	hal_unlock(&dev->lock);
	return ret;
}

bool dev_mem_covers(struct hal *hal, const void *addr, uint64_t len)
{
	uint64_t gaddr;

	return dev_mem_gaddr((struct hal_dev *)hal, addr, len, &gaddr) == 0;
}

/* ---- Regions of peers -------------------------------------------------- */

/* The pointer to the import with a key; it points to NULL if there is none. */
static struct hal_rmem **rmem_find(struct dev_peer *peer,
				   const struct hal_key *key)
{
	struct hal_rmem **at = &peer->rmems;

	while (*at != NULL && ((*at)->key.word[0] != key->word[0] ||
			       (*at)->key.word[1] != key->word[1]))
		at = &(*at)->next;
	return at;
}

/* Is the memory on the board of the interface? */
static bool rmem_local(const struct hal_rmem *rmem)
{
	return hal_gaddr_board(dev_ref_gaddr(rmem->key.word[0])) ==
	       rmem->peer->p.hif->addr.board;
}

static void rmem_drop(struct hal_rmem **at)
{
	struct hal_rmem *rmem = *at;

	*at = rmem->next;
	if (rmem->map.mm != NULL)
		rmem->map.ops->unmap(&rmem->map);
	if (rmem->hold != 0)
		dev_hold_drop(dev_if(rmem->peer->p.hif)->mm, rmem->hold);
	free(rmem);
}

/*
 * Free unused imports, the oldest first, until keep of them are left; the list
 * has the newest first. Imports of the own board need no route and are not
 * kept, because they keep memory from being used again. Free unfinished imports
 * that were asked for last before that time (ns).
 */
static void imports_trim(struct dev_peer *peer, unsigned keep, uint64_t before)
{
	struct hal_rmem **at = &peer->rmems;
	unsigned idle = 0;

	while (*at != NULL) {
		if ((*at)->pending ? (*at)->requested_at < before :
		    (*at)->refs == 0 && (rmem_local(*at) || ++idle > keep))
			rmem_drop(at);
		else
			at = &(*at)->next;
	}
}

void dev_imports_trim(struct dev_if *dif)
{
	for (struct dev_peer *p = dif->peers; p != NULL; p = p->next)
		imports_trim(p, 0, unm_now_ns() - PENDING_NS);
}

/* Ask the driver for the import. After -FI_EAGAIN it stays in the list, so that
 * it can be asked for again. */
static int import_request(struct dev_if *dif, struct hal_rmem *rmem)
{
	struct hal_kdev_import imp = {
		.ref = rmem->key.word[0], .secret = rmem->key.word[1],
		.hold = rmem->hold,
	};
	int ret;

	rmem->requested_at = unm_now_ns();
	ret = dif->io->ioctl(dif->mm, HAL_KDEV_IO_IMPORT, &imp);
	if (ret == -ENOSPC) {
		dev_imports_trim(dif);
		ret = dif->io->ioctl(dif->mm, HAL_KDEV_IO_IMPORT, &imp);
	}
	rmem->pending = ret == -EAGAIN;
	if (ret == 0 || ret == -EAGAIN)
		rmem->hold = imp.hold;
	rmem->bytes = imp.bytes;
	rmem->map_off = imp.map_off;
	return ret == 0 ? 0 : ret == -EAGAIN ? -FI_EAGAIN :
	       ret == -ESTALE || ret == -EACCES ? -FI_EKEYREJECTED :
	       -FI_ENOMEM;
}

/* Number of unfinished imports. */
static unsigned imports_pending(const struct dev_peer *peer)
{
	unsigned n = 0;

	for (struct hal_rmem *r = peer->rmems; r != NULL; r = r->next)
		n += r->pending;
	return n;
}

/*
 * Add an import to the list. The number of unfinished imports is limited.
 * Beyond the limit, those that nobody has asked for in PENDING_NS are freed;
 * younger ones stay, because otherwise many imports at a time would evict each
 * other and none would be finished.
 */
static int import_new(struct dev_peer *peer, const struct hal_key *key,
		     struct hal_rmem **out)
{
	struct hal_rmem *rmem;

	if (imports_pending(peer) >= PENDING_MAX)
		imports_trim(peer, IMPORTS_KEPT, unm_now_ns() - PENDING_NS);
	if (imports_pending(peer) >= PENDING_MAX)
		return -FI_EAGAIN;
	rmem = calloc(1, sizeof(*rmem));
	if (rmem == NULL)
		return -FI_ENOMEM;
	rmem->peer = peer;
	rmem->key = *key;
	rmem->pending = true;
	rmem->next = peer->rmems;
	peer->rmems = rmem;
	*out = rmem;
	return 0;
}

/* Is an import stale that was kept? It is not while its memory exists. */
static bool import_stale(struct dev_if *dif, const struct hal_rmem *rmem)
{
	struct hal_kdev_hold h = { .hold = rmem->hold };

	return dif->io->ioctl(dif->mm, HAL_KDEV_IO_CHECK, &h) != 0;
}

/* Does the peer still hold its interface? 0, or the error of the import. */
static int still_there(struct dev_peer *peer)
{
	int holds;

	if (!dev_lives(peer))
		return -FI_ECONNRESET;
	holds = dev_holds(peer);
	return holds < 0 ? holds : holds == 0 ? -FI_ECONNRESET : 0;
}

int dev_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **out)
{
	struct dev_peer *peer = dev_peer(hp);
	struct dev_if *dif = dev_if(hp->hif);
	struct hal_rmem *rmem;
	int ret;

	ret = still_there(peer);
	if (ret != 0)
		return ret;
	rmem = *rmem_find(peer, key);
	if (rmem == NULL) {
		ret = import_new(peer, key, &rmem);
		if (ret != 0)
			return ret;
	}
	if (rmem->pending)
		ret = import_request(dif, rmem);
	else if (import_stale(dif, rmem))
		ret = -FI_EKEYREJECTED;
	if (ret != 0) {
		/* Search again: imports that come before this one in the list
		 * may have been freed. */
		if (rmem->refs == 0 && ret != -FI_EAGAIN)
			rmem_drop(rmem_find(peer, key));
		return ret;
	}
	rmem->refs++;
	*out = rmem;
	return 0;
}

void dev_mem_release(struct hal_rmem *rmem)
{
	if (--rmem->refs == 0)
		imports_trim(rmem->peer, IMPORTS_KEPT, 0);
}

/*
 * Memory of the interface's own board is ordinary memory of this processor.
 * Memory of another board would be mapped as Device memory, which ordinary code
 * cannot use, and has no atomics.
 */
void *dev_mem_window(struct hal_rmem *rmem, uint64_t *bytes)
{
	struct dev_if *dif = dev_if(rmem->peer->p.hif);
	int ret;

	*bytes = 0;
	if (!rmem_local(rmem))
		return NULL;
	if (rmem->map.mm == NULL) {
		ret = dif->io->map(dif->mm, rmem->map_off,
				   whole_pages(rmem->bytes), &rmem->map);
		if (ret != 0) {
			rmem->map.mm = NULL;
			hal_log(0, "cannot map %llu bytes of a peer on this "
				"board: %s; transfers are used instead",
				(unsigned long long)rmem->bytes,
				strerror(-ret));
			return NULL;
		}
	}
	*bytes = rmem->bytes;
	return rmem->map.base;
}

uint64_t dev_mem_bytes(const struct hal_rmem *rmem)
{
	return rmem->bytes;
}

void dev_rmems_free(struct dev_peer *peer)
{
	while (peer->rmems != NULL)
		rmem_drop(&peer->rmems);
}
