/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken_shared.c - mutations of sequentially consistent back words, of
 * windows, and of memory allocation, see broken.h
 */
#include <string.h>

#include "broken.h"

#define SHADOW_MAX	(1u << 16)
#define MEMS_MAX	64

/* ---- Back words ------------------------------------------------------ */

#define LATE_PUMPS	4		/* more pumps than two peers can differ
					 * by */

/* Delay word 0 as a posted write: it is stored after LATE_PUMPS pumps, later
 * than stores that follow it. */
static void posted_back_store(struct hal_peer *peer, int word, uint64_t val)
{
	struct bpeer *bp = broken_peer(peer);

	if (word != 0) {
		broken_back_store(peer, word, val);
		return;
	}
	bp->late_word = val;
	bp->word_late = LATE_PUMPS;
}

static void let_word_go(struct bpeer *bp, void *arg)
{
	(void)arg;
	if (bp->word_late != 0 && --bp->word_late == 0)
		broken_back_store(bp->peer, 0, bp->late_word);
}

static void posted_pump(struct hal_if *hif)
{
	broken_each(hif, let_word_go, NULL);
	if (broken_base->pump != NULL)
		broken_base->pump(hif);
}

static int no_back_barrier(struct hal_peer *peer)
{
	(void)peer;
	return 0;
}

static void install_posted_back(struct hal_ops *ops)
{
	ops->back_store = posted_back_store;
	ops->back_barrier = no_back_barrier;
	ops->pump = posted_pump;
}

/* ---- Windows --------------------------------------------------------- */

/* A copy that a window shows instead of the region. The tests that must fail
 * use one region at a time. */
static _Alignas(64) uint8_t shadow[SHADOW_MAX], snapshot[SHADOW_MAX];
static uint8_t *region;
static uint64_t region_bytes;

static void *shadow_window(struct hal_rmem *rmem, uint64_t *bytes)
{
	uint8_t *addr = broken_base->mem_window(rmem, bytes);

	if (*bytes > SHADOW_MAX)
		return addr;
	region = addr;
	region_bytes = *bytes;
	memcpy(shadow, addr, *bytes);
	memcpy(snapshot, addr, *bytes);
	return shadow;
}

static void shadow_release(struct hal_rmem *rmem)
{
	region = NULL;
	broken_base->mem_release(rmem);
}

static void install_shadow(struct hal_ops *ops)
{
	if (ops->mem_window == NULL)
		return;
	ops->mem_window = shadow_window;
	ops->mem_release = shadow_release;
}

/* Write the stores of a window to the region after the next packet. */
static int late_window_send(struct bpeer *bp, const struct packet *p)
{
	int ret = broken_forward(bp, p);

	if (ret == 0 && region != NULL) {
		memcpy(region, snapshot, region_bytes);
		memcpy(snapshot, shadow, region_bytes);
	}
	return ret;
}

/* Place the window eight bytes off, in a region that is larger. */
static int alloc_more(struct hal *hal, int board, size_t bytes,
		      struct hal_mem **mem, void **addr)
{
	return broken_base->mem_alloc(hal, board, bytes + 4096, mem, addr);
}

static void *window_off(struct hal_rmem *rmem, uint64_t *bytes)
{
	uint8_t *addr = broken_base->mem_window(rmem, bytes);

	*bytes -= 8;
	return addr + 8;
}

static void install_off(struct hal_ops *ops)
{
	ops->mem_alloc = alloc_more;
	if (ops->mem_window != NULL)
		ops->mem_window = window_off;
}

static void install_no_window(struct hal_ops *ops)
{
	ops->mem_window = NULL;
}

/* ---- Memory ---------------------------------------------------------- */

struct known {
	struct hal_mem *mem;
	void *addr;
	size_t bytes;
};
static struct known known[MEMS_MAX], freed;
static unsigned nknown;

/* Reuse freed memory although it is imported. */
static int alloc_again(struct hal *hal, int board, size_t bytes,
		       struct hal_mem **mem, void **addr)
{
	int ret;

	if (freed.mem != NULL && bytes <= freed.bytes) {
		*mem = freed.mem;
		*addr = freed.addr;
		memset(freed.addr, 0, freed.bytes);
		freed.mem = NULL;
		return 0;
	}
	ret = broken_base->mem_alloc(hal, board, bytes, mem, addr);
	if (ret == 0)
		known[nknown++ % MEMS_MAX] =
			(struct known){ *mem, *addr, bytes };
	return ret;
}

static void free_for_next(struct hal_mem *mem)
{
	for (unsigned i = 0; i < MEMS_MAX; i++) {
		if (known[i].mem == mem && freed.mem == NULL) {
			freed = known[i];
			return;
		}
	}
	broken_base->mem_free(mem);
}

static void install_reuse(struct hal_ops *ops)
{
	ops->mem_alloc = alloc_again;
	ops->mem_free = free_for_next;
}

/* Report that an allocation succeeded which has failed. */
static int alloc_promise(struct hal *hal, int board, size_t bytes,
			 struct hal_mem **mem, void **addr)
{
	int ret = broken_base->mem_alloc(hal, board, bytes, mem, addr);

	return ret != -FI_ENOMEM ? ret :
	       broken_base->mem_alloc(hal, board, 4096, mem, addr);
}

static void install_promise(struct hal_ops *ops)
{
	ops->mem_alloc = alloc_promise;
}

const struct mutation broken_shared[] = {
	{ "back-sync-posted", "back_sync_by_turns", .veil = broken_veil_back,
	  .install = install_posted_back },
	{ "back-sync-posted-threads", "back_sync_threads",
	  .veil = broken_veil_back, .install = install_posted_back },
	{ "back-sync-posted-processes", "proc_back_sync",
	  .veil = broken_veil_back, .install = install_posted_back },
	{ "window-off", "window_store_before_packet", .install = install_off },
	{ "window-late", "window_store_before_packet",
	  .send = late_window_send, .install = install_shadow },
	{ "window-late-behind-words", "window_store_before_back_word",
	  .send = late_window_send, .install = install_shadow },
	{ "window-late-threads", "window_store_threads",
	  .send = late_window_send, .install = install_shadow },
	{ "window-late-processes", "proc_window_store",
	  .send = late_window_send, .install = install_shadow },
	{ "window-stale", "window_load", .install = install_shadow },
	{ "window-private", "proc_window_atomics", .install = install_shadow },
	{ "window-none", "window_where_coherent",
	  .install = install_no_window, .rings = true },
	{ "memory-reused", "window_after_free", .install = install_reuse },
	{ "memory-promised", "mem_too_much", .install = install_promise },
};
const int broken_shared_count = sizeof(broken_shared) /
				sizeof(broken_shared[0]);
