/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_xfer.h - the register model's kernel device: transfers
 * (hal_sim_xfer.c).
 */
#ifndef HAL_SIM_XFER_H
#define HAL_SIM_XFER_H

#include "hal/sim/hal_sim_types.h"

/* write(), read() and CANCEL of hal_kdev.h. */
ssize_t sim_xfer_write(struct sim_mm *mm, const void *buf, size_t len);
ssize_t sim_xfer_read(struct sim_mm *mm, void *buf, size_t len);
int sim_xfer_cancel(struct sim_mm *mm, uint64_t id);

/* Let the transfers of mm advance. */
void sim_xfer_run(struct sim_mm *mm);

#endif /* HAL_SIM_XFER_H */
