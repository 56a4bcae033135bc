/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_board.h - the board of a process, and the boards that it may name;
 * private to the HAL.
 */
#ifndef HAL_BOARD_H
#define HAL_BOARD_H

#include "hal/hal_types.h"

/* The board of this process, of a number of boards: wanted (FI_UNIMEM_BOARD),
 * unless it is -1; else the local ranks are distributed over the boards in
 * blocks; else 0. rank and nranks are from hal_launcher_ranks(). Returns the
 * board, or -FI_EINVAL after a log line. */
int hal_board_own(int wanted, int boards, long rank, long nranks);

/* Number of boards of this host, as parameters of the emulation ask for. */
uint32_t hal_board_count(const struct hal_params *params);

/* Check the board of a call of hal_if_open(), and replace -1 in *board by the
 * board of the process. 0, or -FI_EINVAL after a log line: there is no such
 * board, it is on another host, or it is another board and HAL_CAP_ANY_BOARD is
 * missing. */
int hal_board_check(const struct hal *hal, int *board);

#endif /* HAL_BOARD_H */
