/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_conf.h - the platform file, and the log lines for what it names and
 * cannot be opened (hal_dev_conf.c, docs/porting.md).
 */
#ifndef HAL_DEV_CONF_H
#define HAL_DEV_CONF_H

#include <stdbool.h>

#include "hal/dev/hal_mmio.h"

struct hal_dev;

/* Does this host have boards? True if params->dev names a platform file or a
 * node of the driver, or if the usual ones exist. Nothing is opened, so opening
 * "dev" may still fail. For hal.c. */
bool hal_dev_present(const struct hal_params *params);

/*
 * Fill in *platform from FI_UNIMEM_DEV (params->dev) and the platform file:
 * hal_mmio_ops.probe of the silicon. Returns 0, or -FI_EINVAL after a log line
 * that names file, line and what is allowed.
 */
int dev_platform_probe(const struct hal_params *params,
		       struct hal_platform *platform);

/* Path of the platform file that applies. It lives as long as *params. */
const char *dev_platform_file(const struct hal_params *params);

/*
 * Write the name of a board's device node to out, a string of at most room - 1
 * characters: platform->node, with the board's number for "%u". board
 * UINT32_MAX: the local board. Returns 0, or -EINVAL where the name does not
 * fit or needs a number that board does not give.
 */
int dev_platform_node(const struct hal_platform *platform, uint32_t board,
		      char *out, size_t room);

/* Log why a board's device cannot be opened. err is a negative errno value;
 * returns the fi_errno for it: -FI_EMFILE, -FI_ENOMEM or -FI_ENODEV. */
int dev_explain_open(const struct hal_dev *dev, uint32_t board, int err);

/* Log why a page of registers cannot be mapped. which is HAL_KDEV_MIF, _PIF or
 * _CDMA, err a negative errno value. */
void dev_explain_map(const struct hal_dev *dev, enum hal_kdev_block which,
		     int err);

#endif /* HAL_DEV_CONF_H */
