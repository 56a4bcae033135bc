/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_board.c - chooses the board of a process, and checks the boards that the
 * caller of the HAL names.
 *
 * Entry points: hal_board_count(), hal_board_own(), hal_board_check().
 */
#include <string.h>

#include "hal/hal_board.h"
#include "hal/hal_log.h"

uint32_t hal_board_count(const struct hal_params *params)
{
	if (params->boards != 0)
		return (uint32_t)params->boards;
	return strcmp(params->profile, "exanode") == 0 ? 4 : 1;
}

int hal_board_own(int wanted, int boards, long rank, long nranks)
{
	if (wanted >= boards) {
		hal_log(0, "FI_UNIMEM_BOARD=%d: there %s %d board%s, numbered "
			"from 0: choose one of them or raise FI_UNIMEM_BOARDS",
			wanted, boards == 1 ? "is" : "are", boards,
			boards == 1 ? "" : "s");
		return -FI_EINVAL;
	}
	if (wanted >= 0)
		return wanted;
	return rank >= 0 && nranks > 0 ? (int)(rank * boards / nranks) : 0;
}

int hal_board_check(const struct hal *hal, int *board)
{
	if (*board < 0)
		*board = hal->own_board;
	if (*board >= (int)hal->caps.boards) {
		hal_log(0, "there is no board %d: %u in all, numbered from 0",
			*board, hal->caps.boards);
		return -FI_EINVAL;
	}
	if (!hal_board_here(hal, (uint32_t)*board)) {
		hal_log(0, "interfaces of board %d are to be had on its host "
			"only, this host has boards %u to %u", *board,
			hal->first_board, hal->first_board + hal->caps.boards -
			hal->far_boards - 1);
		return -FI_EINVAL;
	}
	if (*board != hal->own_board &&
	    !(hal->caps.flags & HAL_CAP_ANY_BOARD)) {
		hal_log(0, "interfaces of board %d are to be had on that board "
			"only, this is board %d", *board, hal->own_board);
		return -FI_EINVAL;
	}
	return 0;
}
