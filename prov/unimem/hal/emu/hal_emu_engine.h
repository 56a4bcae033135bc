/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_engine.h - the cDMA engine of an emulated board, under the timing
 * model (hal_emu_engine.c); private to hal/emu.
 */
#ifndef HAL_EMU_ENGINE_H
#define HAL_EMU_ENGINE_H

#include "hal/emu/hal_emu_types.h"
#include "hal/hal_time.h"

/* The engine as a process has it, from the first emu_engine_open() of its board
 * to the last emu_engine_close(). Constant in between, except for users. */
struct emu_engine {
	struct hal_time_engine *times;	/* all interfaces of the board share
					 * them */
	struct hal_map *map;
	int fd, listen_fd;		/* by which other processes of the board
					 * find the memory */
	struct unm_list list;		/* in emu_model.engines */
	uint32_t board;
	uint32_t users;			/* open interfaces; guarded by
					 * emu_model.lock */
	pid_t pid;			/* that listens: a forked child gets an
					 * engine of its own */
};

/* Get the engine of a board; make it if no process has it. 0, or a negative
 * errno after a log line. Any thread may call. */
int emu_engine_open(struct emu_model *model, uint32_t board,
		    struct emu_engine **engine);
void emu_engine_close(struct emu_model *model, struct emu_engine *e);

/* Close connections of processes that have found this one. */
void emu_engine_hang_up(const struct emu_engine *e);

#endif /* HAL_EMU_ENGINE_H */
