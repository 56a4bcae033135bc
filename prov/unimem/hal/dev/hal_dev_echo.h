/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_echo.h - the proof that a packetizer transmits (hal_dev_echo.c).
 */
#ifndef HAL_DEV_ECHO_H
#define HAL_DEV_ECHO_H

#include "hal/dev/hal_dev_types.h"

/*
 * Called by the service while dif->unproven is set or dif->echo is not
 * DEV_ECHO_NONE: send an echo 10 ms after an unproven packet, and disconnect
 * all peers if it does not arrive.
 */
void dev_echo_run(struct dev_if *dif);

#endif /* HAL_DEV_ECHO_H */
