/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim.h - what tests do to the register model beside hal_mmio.h
 * (hal_sim.c).
 */
#ifndef HAL_SIM_H
#define HAL_SIM_H

#include "hal/sim/hal_sim_types.h"

/* Let a board die in the given way, or live again (SIM_LIVES). */
void hal_sim_death(struct hal_mmio *mm, uint32_t board, enum sim_death death);

/* Map the trusted page, which the driver maps for no process. */
void hal_sim_trusted(struct hal_mmio *mm, struct hal_mmio_map *map);

#endif /* HAL_SIM_H */
