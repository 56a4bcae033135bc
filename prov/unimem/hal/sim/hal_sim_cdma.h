/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_cdma.h - registers of the register model's engine (hal_sim_cdma.c).
 */
#ifndef HAL_SIM_CDMA_H
#define HAL_SIM_CDMA_H

#include "hal/sim/hal_sim_types.h"

/* Accesses of 4 bytes; each also lets a transfer advance. */
uint32_t sim_cdma_read(struct sim_mm *mm, uint32_t off);
void sim_cdma_write(struct sim_mm *mm, uint32_t off, uint32_t val);

/* Is the interrupt output high? The call also lets a transfer advance. */
bool sim_cdma_interrupt(struct sim_mm *mm);

/* Put all registers into their state after a reset. */
void sim_cdma_reset(struct sim_world *w, struct sim_board *b);

#endif /* HAL_SIM_CDMA_H */
