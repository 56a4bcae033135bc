/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_kdev.h - the register model's kernel device: open files, interfaces,
 * ends of processes (hal_sim_kdev.c).
 */
#ifndef HAL_SIM_KDEV_H
#define HAL_SIM_KDEV_H

#include "hal/sim/hal_sim_types.h"

/* Get a free entry of the board's open files for mm. 0 or -ENFILE. */
int sim_file_open(struct sim_mm *mm);

/* Take back all that belongs to the open file, and free its entry. */
void sim_file_close(struct sim_mm *mm);

/* The calls of hal_kdev.h. Returns 0 or -errno. */
int sim_kdev_ioctl(struct sim_mm *mm, unsigned long cmd, void *arg);

/* The event fd of the mailbox of mm, made at the first call, or -errno. */
int sim_event_fd(struct sim_mm *mm);

/* Take back all that belongs to a dead process. The driver's lock is held. */
void sim_reap(struct sim_world *w, uint64_t owner);

#endif /* HAL_SIM_KDEV_H */
