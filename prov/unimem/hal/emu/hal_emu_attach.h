/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_attach.h - access to ordinary memory of peers; private to hal/emu.
 */
#ifndef HAL_EMU_ATTACH_H
#define HAL_EMU_ATTACH_H

#include "hal/emu/hal_emu_types.h"

/* Make the random word by which peers recognize the address space of this
 * process (emu->word, emu->word_value); remove it. Without memory for the word
 * there is none, and peers do not reach ordinary memory of this process. */
void emu_attach_open(struct hal_emu *emu);
void emu_attach_close(struct hal_emu *emu);

/* Set peer->p.dma_any: may this process access ordinary memory of the peer?
 * Reads the peer's word once. peer->pid, pidsrc and probe_* are set. */
void emu_attach_probe(struct emu_peer *peer);

/*
 * Copy up to n bytes of transfer d, from byte done of the transfer on; n > 0.
 * Returns the number of bytes copied, > 0, or a negative status of struct
 * hal_dma_comp. Marks the peer as dying if its process runs another program.
 */
int64_t emu_attach_move(const struct hal_dma *d, uint64_t done, uint64_t n);

#endif /* HAL_EMU_ATTACH_H */
