/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dma.h - dmable memory and transfers of the cDMA engine: part of hal.h,
 * which includes this file. docs/hal.md, section 7.
 */
#ifndef HAL_DMA_H
#define HAL_DMA_H

#include "hal/hal_types.h"

/* Allocate dmable memory on a board (-1: the own board), rounded up to pages
 * and mapped at *addr. 0; -FI_EINVAL; -FI_ENOMEM after a log line. Any
 * thread. */
static inline int hal_mem_alloc(struct hal *hal, int board, size_t bytes,
				struct hal_mem **mem, void **addr)
{
	return hal->ops->mem_alloc(hal, board, bytes, mem, addr);
}

/*
 * Make memory of the caller dmable: bytes at addr, all of a memfd that the
 * caller has mapped there from its start (MAP_SHARED, for reading and writing),
 * and has sealed against shrinking and growing. The HAL keeps a descriptor of
 * its own. The mapping must last until hal_mem_free(), which does not unmap it.
 * Its pages need not be allocated yet. 0; -FI_ENOSYS: the platform has no such
 * memory; -FI_EINVAL: fd is no such file; -FI_ENOMEM, -FI_EMFILE. Any thread.
 */
static inline int hal_mem_adopt(struct hal *hal, int fd, void *addr,
				size_t bytes, struct hal_mem **mem)
{
	return hal->ops->mem_adopt == NULL ? -FI_ENOSYS :
		hal->ops->mem_adopt(hal, fd, addr, bytes, mem);
}

/* Free a region. Its key opens nothing from now on; peers that have imported
 * the region keep their mapping. Any thread. */
static inline void hal_mem_free(struct hal *hal, struct hal_mem *mem)
{
	hal->ops->mem_free(mem);
}

/* The key by which peers import a region; the caller sends it to them. 0. */
static inline int hal_mem_key(struct hal *hal, struct hal_mem *mem,
			      struct hal_key *key)
{
	return hal->ops->mem_key(mem, key);
}

/*
 * Map a region that another process of this user allocated on the board of
 * this process. *mem is then dmable memory of this process, too, for pointers
 * and as the local memory of transfers, until hal_mem_free(), whether the
 * other process frees it or ends. Its key is still the other process's. In the
 * emulation an interface of this process must have imported the region at the
 * time of the call. 0; -FI_ENOSYS: with HAL_CAP_COHERENT, where imports have
 * windows instead; -FI_EINVAL: the region is on another board;
 * -FI_EKEYREJECTED; -FI_ENOMEM. Any thread.
 */
static inline int hal_mem_open(struct hal *hal, const struct hal_key *key,
			       struct hal_mem **mem, void **addr)
{
	return hal->ops->mem_open == NULL ? -FI_ENOSYS :
		hal->ops->mem_open(hal, key, mem, addr);
}

/* Import a region of a peer. 0; -FI_EAGAIN: in progress, or too many are: call
 * again; -FI_EKEYREJECTED: no region has this key any more; -FI_ECONNRESET: the
 * peer is dead; -FI_ENOMEM, -FI_EMFILE. Each success needs a release. */
static inline int hal_mem_import(struct hal_peer *peer,
				 const struct hal_key *key,
				 struct hal_rmem **rmem)
{
	return peer->ops->mem_import(peer, key, rmem);
}

/* The bytes of an imported region: at least as many as its owner asked for. */
static inline uint64_t hal_mem_bytes(struct hal_peer *peer,
				     const struct hal_rmem *rmem)
{
	return peer->ops->mem_bytes(rmem);
}

static inline void hal_mem_release(struct hal_peer *peer, struct hal_rmem *rmem)
{
	peer->ops->mem_release(rmem);
}

/*
 * Start a transfer. 0: hal_dma_poll() will report exactly one completion with
 * this token, after the data are visible; completions come in any order.
 * -FI_EAGAIN: caps.dma_depth transfers are outstanding; -FI_EINVAL: the range
 * is not in the region, or local memory must be dmable and is not; -FI_EACCES:
 * rmem is NULL and peer->dma_any is not set.
 */
static inline int hal_dma_post(struct hal_if *hif, const struct hal_dma *dma,
			       uint64_t token)
{
	return hif->ops->dma_post(hif, dma, token);
}

/* Advance transfers by a bounded number of bytes, and store up to max
 * completions. Returns their number. */
static inline int hal_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp,
			       int max)
{
	return hif->ops->dma_poll(hif, comp, max);
}

#endif /* HAL_DMA_H */
