/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_join.h - processes of a register model (hal_sim_join.c).
 */
#ifndef HAL_SIM_JOIN_H
#define HAL_SIM_JOIN_H

#include <sys/socket.h>

#include "hal/sim/hal_sim_types.h"

/*
 * Join the model with these parameters; make it if no process has it. Returns 0
 * and *w, or a negative errno value: -EADDRINUSE if another process needs more
 * than ten seconds to join, -EBUSY if the model has SIM_PARTS processes.
 */
int sim_join(const struct sim_params *par, struct sim_world **w);

/* Close connections of processes that joined meanwhile: they have learnt from
 * the kernel what they need. */
void sim_part_hang_up(struct sim_world *w);

/* Detach from a model. All files must be closed. Frees w. */
void sim_leave(struct sim_world *w);

/* Free a forked child's copy of w; the parent stays in the model. */
void sim_forget(struct sim_world *w);

/* Does the process with this owner word live? */
bool sim_alive(struct sim_world *w, uint64_t owner);

/*
 * Take and release the lock of the driver, which protects the driver's tables
 * of all boards. A lock whose holder is dead is taken over, and the derived
 * tables are rebuilt first.
 */
void sim_lock(struct sim_world *w);
void sim_unlock(struct sim_world *w);

/* Time of the model in ns: unm_now_ns(), or params.tick per access. */
uint64_t sim_now(struct sim_world *w);

/* Let the processor stall until a time of the model. */
void sim_stall(struct sim_world *w, uint64_t until);

/* Fill in a struct sockaddr_un with an abstract name of this model. Returns the
 * length of the address. */
socklen_t sim_name(void *sun, const char *what, uint64_t hash, uint64_t n);

/* Have the drivers of the other boards noticed the death of a board? They do
 * after HAL_KDEV_DEAD_MS. */
bool sim_known_dead(struct sim_world *w, uint32_t board);

#endif /* HAL_SIM_JOIN_H */
