/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_window.h - memory of peers as a processor accesses it: part of hal.h,
 * which includes this file. docs/hal.md, sections 7 and 14.
 */
#ifndef HAL_WINDOW_H
#define HAL_WINDOW_H

#include "hal/hal_types.h"

/* ---- Windows to imported regions --------------------------------------- */

/*
 * An imported region as a processor may access it; addr NULL: by transfers
 * only, because the memory is on another board and HAL_CAP_COHERENT is missing,
 * or it cannot be mapped. It lasts as long as the import, also if the owner
 * frees the region or ends. Stores are ordered before a packet sent, and a word
 * stored back, after them; atomics on it (hal_win_word) are atomic for every
 * processor that reaches the region. Any thread may use it.
 */
struct hal_window {
	uint8_t *addr;
	uint64_t bytes;
};

static inline void hal_mem_window(struct hal_peer *peer, struct hal_rmem *rmem,
				  struct hal_window *win)
{
	win->bytes = 0;
	win->addr = peer->ops->mem_window == NULL ? NULL :
		peer->ops->mem_window(rmem, &win->bytes);
}

/* off + len <= win->bytes: nobody checks, here and below */
static inline void hal_win_store(const struct hal_window *win, uint64_t off,
				 const void *src, size_t len)
{
	__builtin_memcpy(win->addr + off, src, len);
}

static inline void hal_win_load(const struct hal_window *win, uint64_t off,
				void *dst, size_t len)
{
	__builtin_memcpy(dst, win->addr + off, len);
}

/* Where an atomic operation finds its operand. */
static inline void *hal_win_word(const struct hal_window *win, uint64_t off)
{
	return win->addr + off;
}

/* ---- Windows to shared mappings ---------------------------------------- */

/*
 * Memory that several processes of a host have mapped from one file. The owner
 * of a range asks for the key that names the bytes of the file behind it. A
 * process that has mapped the same bytes itself opens the key and gets a second
 * mapping of them, an alias, which lasts until it is closed, whatever the
 * program does with its own mapping meanwhile. A process gets no memory that
 * its program has not mapped then; other aliases of it do not count.
 */
#define HAL_ALIASES_MAX	1024	/* of all peers of a process */

enum hal_alias_access {
	HAL_ALIAS_READ	= 1 << 0,
	HAL_ALIAS_WRITE	= 1 << 1,
};

/*
 * Name the bytes behind [addr, addr + len) of this process, len > 0. access:
 * enum hal_alias_access; the mapping has to allow all of it. 0; -FI_ENOENT: not
 * all of it is one shared mapping of a file that nobody can open by name, or
 * not with that access; -FI_ENOSYS: no HAL_CAP_ALIAS. Reads the list of this
 * process's mappings: not for the path of an operation. Any thread.
 */
static inline int hal_alias_key(struct hal *hal, const void *addr, uint64_t len,
				uint32_t access, struct hal_key *key)
{
	return hal->caps.flags & HAL_CAP_ALIAS ?
		hal->ops->alias_key(addr, len, access, key) : -FI_ENOSYS;
}

/*
 * Map len bytes that a peer's key names once more; *win is the alias. 0;
 * -FI_ENOENT: this process has not mapped all of them with that access, or the
 * file ends before, or has holes that cannot be filled now; -FI_ENOMEM, also
 * for more than HAL_ALIASES_MAX; -FI_ENOSYS. A key that the peer made up opens
 * nothing but what this process has mapped. Costs and threads as above.
 */
static inline int hal_alias_open(struct hal_peer *peer,
				 const struct hal_key *key, uint64_t len,
				 uint32_t access, struct hal_window *win)
{
	return peer->hif->caps->flags & HAL_CAP_ALIAS ?
		peer->ops->alias_open(key, len, access, win) : -FI_ENOSYS;
}

/* The alias is gone when this returns. A forked child does not inherit it, and
 * unmaps nothing here. */
static inline void hal_alias_close(struct hal *hal, struct hal_window *win)
{
	hal->ops->alias_close(hal, win);
	win->addr = NULL;
	win->bytes = 0;
}

#endif /* HAL_WINDOW_H */
