/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_check.h - what ends a process that misuses the register model
 * (hal_sim_check.c).
 */
#ifndef HAL_SIM_CHECK_H
#define HAL_SIM_CHECK_H

#include "hal/sim/hal_sim_types.h"

/* End the process with a log line: it did something that the hardware would not
 * survive, or that its documentation forbids. */
void sim_misuse(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/* Called by each access: ends the process if status_before_memory() is missing
 * since a packet or the end of a transfer was read. */
void sim_access(const struct sim_mm *mm);

/* Called before a packet or a transfer (named by what) is started: ends the
 * process if memory_before_start() is missing since the last start. */
void sim_start(struct sim_mm *mm, const char *what);

#endif /* HAL_SIM_CHECK_H */
