/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_mem.h - dmable memory of this process, and imported memory of peers
 * (hal_dev_mem.c).
 */
#ifndef HAL_DEV_MEM_H
#define HAL_DEV_MEM_H

#include "hal/dev/hal_dev_types.h"

/* Dmable memory that this process has allocated; from dev_mem_alloc() to
 * dev_mem_free(). dev->lock protects the list. */
struct hal_mem {
	struct hal_dev *dev;
	struct unm_list list;		/* in dev->mems */
	struct dev_region region;
	uint64_t secret;		/* a part of its key */
	uint64_t bytes;			/* whole pages */
};

/*
 * An import: a peer's memory that the local engine can reach. It belongs to the
 * peer's list. Once refs is 0 it is kept for the next dev_mem_import(), which
 * then only checks that the memory still exists. Only the thread that uses the
 * interface touches it.
 */
struct hal_rmem {
	struct dev_peer *peer;
	struct hal_rmem *next;		/* in peer->rmems, newest first */
	struct hal_key key;		/* word 0: reference, word 1: secret */
	uint64_t bytes;			/* size, once the driver has said it */
	uint64_t map_off;		/* window, if mm is not NULL */
	struct hal_mmio_map map;	/* window; mm is NULL without */
	uint32_t hold;			/* number of the hold; 0: the driver has
					 * not begun the import */
	int refs;			/* users: callers and transfers */
	bool pending;			/* the driver has not finished it */
	uint64_t requested_at;		/* ns: when the driver was asked last */
};

/* hal_ops.mem_alloc: allocate dmable memory on a board, -1: the local one.
 * Returns 0, -FI_EINVAL, or the driver's errno value after a log line. */
int dev_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr);

/* hal_ops.mem_free. Transfers that use the memory must be over. */
void dev_mem_free(struct hal_mem *mem);

/* hal_ops.mem_key: the key by which a peer imports the memory. Returns 0. */
int dev_mem_key(struct hal_mem *mem, struct hal_key *key);

/* hal_ops.mem_open: memory of another process on this board. */
int dev_mem_open(struct hal *hal, const struct hal_key *key,
		 struct hal_mem **out, void **addr);

/* Find the global address of len bytes at addr. Returns 0, or -FI_EINVAL if
 * they are not in one piece of dmable memory. Any thread. */
int dev_mem_gaddr(struct hal_dev *dev, const void *addr, uint64_t len,
		  uint64_t *gaddr);

/* hal_ops.mem_covers: the same question without the address. Any thread. */
bool dev_mem_covers(struct hal *hal, const void *addr, uint64_t len);

/*
 * hal_ops.mem_import: import a peer's memory. Returns 0; -FI_EAGAIN while the
 * driver prepares it: call again; -FI_EKEYREJECTED: the key is stale or wrong;
 * -FI_ECONNRESET: the peer has ended; -FI_ENOMEM.
 */
int dev_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **rmem);

/* hal_ops.mem_release: one user less. Up to eight unused imports per peer are
 * kept. */
void dev_mem_release(struct hal_rmem *rmem);

/* hal_ops.mem_window: the mapping of an import whose memory is on the board of
 * the interface. NULL, and *bytes 0: it is on another board, or it cannot be
 * mapped, after a log line. */
void *dev_mem_window(struct hal_rmem *rmem, uint64_t *bytes);
/* hal_ops.mem_bytes: the size of an import that was successful. */
uint64_t dev_mem_bytes(const struct hal_rmem *rmem);

/* Evict all unused imports of the interface, because the driver has no space
 * for another one. */
void dev_imports_trim(struct dev_if *dif);

/* Free all imports of a peer, used or not. Transfers that use them must be
 * over. */
void dev_rmems_free(struct dev_peer *peer);

#endif /* HAL_DEV_MEM_H */
