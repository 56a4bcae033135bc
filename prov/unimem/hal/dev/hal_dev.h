/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev.h - opening of the device backend over an implementation of
 * hal_mmio.h (hal_dev.c). The tables hal_dev_ops and hal_sim_ops are in
 * hal_backend.h.
 */
#ifndef HAL_DEV_H
#define HAL_DEV_H

#include "hal/dev/hal_dev_types.h"

/*
 * Open the device object of a backend: ops is its table, io what it drives.
 * Returns 0; -FI_EINVAL, -FI_ENODEV, -FI_ENOMEM or -FI_EMFILE after a log line.
 * hal_ops.close frees *hal.
 */
int dev_open_with(const struct hal_ops *ops, const struct hal_mmio_ops *io,
		  const struct hal_params *params, struct hal **hal);

#endif /* HAL_DEV_H */
