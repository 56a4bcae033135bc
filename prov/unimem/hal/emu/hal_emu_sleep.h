/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_sleep.h - sleeping until a packet comes; private to hal/emu.
 */
#ifndef HAL_EMU_SLEEP_H
#define HAL_EMU_SLEEP_H

#include "hal/emu/hal_emu_types.h"

/* Register this process for the barriers that receivers issue before they
 * sleep, see emu_arm(). Sets emu->membarrier: whether that succeeded. */
void emu_sleep_open(struct hal_emu *emu);

/* Open and close the timer of an interface, which is in its epoll set. Returns
 * 0, or a negative errno value after a log line. */
int emu_sleep_if_open(struct emu_if *eif);
void emu_sleep_if_close(struct emu_if *eif);

/* hal_if_arm() and hal_if_disarm(), see hal.h. */
int emu_arm(struct hal_if *hif);
void emu_disarm(struct hal_if *hif);

/* Let the timer end the sleep of an armed interface at time at, in ns of the
 * monotonic clock, or earlier. */
void emu_sleep_until(struct emu_if *eif, uint64_t at);

/* To be called when the timer of the interface has expired. */
void emu_sleep_tick(struct emu_if *eif);

#endif /* HAL_EMU_SLEEP_H */
