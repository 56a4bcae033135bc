/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_backend.h - the backends that hal.c chooses from; private to the HAL.
 *
 * FI_UNIMEM_HAL names one. A backend is a table of functions (struct
 * hal_ops); its other declarations are private to its folder.
 */
#ifndef HAL_BACKEND_H
#define HAL_BACKEND_H

#include "hal/hal_types.h"

/* "emu": boards emulated in shared memory of one host (emu/hal_emu.c) */
extern const struct hal_ops hal_emu_ops;
/* "dev": boards, through the kernel driver (dev/hal_dev.c) */
extern const struct hal_ops hal_dev_ops;
/* "sim": the same code as "dev" above a model of the registers (sim/) */
extern const struct hal_ops hal_sim_ops;

#endif /* HAL_BACKEND_H */
