/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_mem.h - the register model's kernel device: memory and its holders
 * (hal_sim_mem.c).
 */
#ifndef HAL_SIM_MEM_H
#define HAL_SIM_MEM_H

#include "hal/sim/hal_sim_types.h"

/* ALLOC, IMPORT, CHECK and DROP of hal_kdev.h; they return 0 or -errno. The
 * driver's lock is not held. */
int sim_mem_alloc(struct sim_mm *mm, struct hal_kdev_alloc *a);
int sim_mem_import(struct sim_mm *mm, struct hal_kdev_import *imp);
int sim_mem_check(struct sim_mm *mm, uint32_t hold);
int sim_mem_drop(struct sim_mm *mm, uint32_t hold);

/* Map memory that the file holds, and unmap it. The driver's lock is not
 * held. */
int sim_mem_map(struct sim_mm *mm, uint64_t gaddr, size_t len,
		struct hal_mmio_map *map);
void sim_mem_unmap(struct sim_mm *mm, uint64_t gaddr);

/* Does an open file of this process hold the range? */
bool sim_mem_held(struct sim_world *w, uint64_t gaddr, uint64_t len);

/* Copy n bytes between two global addresses; nothing if no board has one of the
 * ranges. */
void sim_mem_move(struct sim_world *w, uint64_t dst, uint64_t src, uint64_t n);

/* Is the range inside allocated memory of a board? */
bool sim_mem_decodes(struct sim_world *w, uint64_t gaddr, uint64_t len);

/* Drop all holds of an open file. The driver's lock is held. */
void sim_mem_file_over(struct sim_world *w, uint32_t board, uint32_t file);

/* Derive counts and maps of memory anew from the holds, after a holder of the
 * driver's lock has died. The lock is held. */
void sim_mem_rebuild(struct sim_world *w);

#endif /* HAL_SIM_MEM_H */
