/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_board.h - profiles, boards, and the memory nodes they lie on; private
 * to hal/emu.
 */
#ifndef HAL_EMU_BOARD_H
#define HAL_EMU_BOARD_H

#include "hal/emu/hal_emu_types.h"

/* Set geometry, capabilities, local rank and own board of the device from its
 * parameters and from the launcher. 0, or -FI_EINVAL after a log line. Where
 * boards lie on memory nodes, loads hwloc; emu_board_fini() unloads it. */
int emu_board_init(struct hal_emu *emu);
void emu_board_fini(struct hal_emu *emu);

/* Bind the pages of a mapping to the memory node that the board lies on. Does
 * nothing where boards have no memory nodes of their own. */
void emu_board_place(struct hal_emu *emu, uint32_t board,
		     const struct hal_map *map);

#endif /* HAL_EMU_BOARD_H */
