/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_dma.h - dmable memory and cDMA transfers; private to hal/emu.
 */
#ifndef HAL_EMU_DMA_H
#define HAL_EMU_DMA_H

#include "hal/emu/hal_emu_types.h"

/* Functions of struct hal_ops; hal_dma.h defines what each does. */
int emu_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr);
int emu_mem_adopt(struct hal *hal, int fd, void *addr, size_t bytes,
		  struct hal_mem **mem);
void emu_mem_free(struct hal_mem *mem);
int emu_mem_key(struct hal_mem *mem, struct hal_key *key);
int emu_mem_open(struct hal *hal, const struct hal_key *key,
		 struct hal_mem **mem, void **addr);
bool emu_mem_covers(struct hal *hal, const void *addr, uint64_t len);
int emu_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **rmem);
void emu_mem_release(struct hal_rmem *rmem);
uint64_t emu_mem_bytes(const struct hal_rmem *rmem);
void *emu_mem_window(struct hal_rmem *rmem, uint64_t *bytes);
int emu_dma_post(struct hal_if *hif, const struct hal_dma *dma,
		 uint64_t token);
int emu_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max);

/* The local region of a key: *fd is a new descriptor, which the caller closes,
 * msg gets its size and board. 0; -FI_EKEYREJECTED: no region has this key;
 * -FI_EMFILE. Any thread may call this. */
int emu_mem_lookup(struct hal_emu *emu, const struct hal_key *key, int *fd,
		   struct emu_mem_msg *msg);

/* Take the answer to an import that this process requested: map the region of
 * fds, or note the error. An answer that nobody requested is ignored. */
void emu_mem_reply(struct emu_peer *peer, const struct emu_mem_msg *msg,
		   const struct emu_fds *fds);

/* Release all imports of a peer, whoever still uses them. */
void emu_rmems_free(struct emu_peer *peer);

/* End the outstanding transfers of a peer: emu_dma_poll() completes them with
 * -FI_ECANCELED. None of them accesses the peer or its memory any more. */
void emu_dma_cancel(struct emu_peer *peer);

#endif /* HAL_EMU_DMA_H */
