/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_store.h - remote stores and loads of the register model
 * (hal_sim_store.c).
 */
#ifndef HAL_SIM_STORE_H
#define HAL_SIM_STORE_H

#include "hal/sim/hal_sim_types.h"

/* store() and load() of hal_mmio_ops. */
void sim_store(struct hal_mmio_map *map, uint64_t off, const void *src,
	       size_t len);
void sim_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
	      size_t len);

/* Wait, under the timing model, as a load behind the stores of mm does. */
void sim_store_wait(struct sim_mm *mm);

/* Carry out the stores of mm to a board that are held back. */
void sim_store_flush(struct sim_mm *mm, uint32_t board);

/* Does a load from the memory of a board get an answer? */
bool sim_load_answered(struct sim_mm *mm, uint32_t board);

/* Carry out one store of mm that is held back, or none; under the timing model
 * all that have arrived. At least one must be held back. */
void sim_store_some(struct sim_mm *mm);

/* Carry out stores that other files have held back for too long, or under the
 * timing model until they have arrived. */
void sim_store_sweep(struct sim_mm *mm, uint64_t now);

/* Carry out all stores that a file has held back, for its owner. */
void sim_store_file_over(struct sim_world *w, uint32_t board, uint32_t file);

/* Carry out what is due by the clock, at most every 500 us. Called where a
 * process waits and nothing happens. */
void sim_sweep(struct sim_mm *mm);

#endif /* HAL_SIM_STORE_H */
