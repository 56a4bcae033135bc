/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_board.h - the atomic service at work: interface 0 of a board and the
 * clients that come to it. gsasd runs it, and so does a thread of a test.
 *
 * One thread at a time, except gsas_board_wake().
 */
#ifndef GSAS_BOARD_H
#define GSAS_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/hal.h"
#include "service/gsas_service.h"

struct gsas_board;

struct gsas_board_attr {
	int board;			/* -1: the process's own */
	uint64_t max_pages, max_user_pages;	/* 0: no limit */
	uint64_t budget;		/* bytes of all boards of this host
					 * together, 0: no limit */
	enum gsas_error (*spawn)(void *ctx, const struct gsas_spawn *spawn,
				 uint64_t *pid);	/* NULL: no forks */
	void *spawn_ctx;
	void (*log)(const char *line);
	uint64_t end;			/* offset where addresses end, 0: with
					 * the partition; for tests */
};

/* 0; -FI_EBUSY: the board has a service; what hal_get() and
 * hal_if_open_service() say; -FI_ENOMEM. */
int gsas_board_open(const struct gsas_board_attr *attr,
		    struct gsas_board **board);
void gsas_board_close(struct gsas_board *board);

/* Serve what is there, a bounded amount. Whether there was something. */
bool gsas_board_poll(struct gsas_board *board);

/* Sleep until there is something or gsas_board_wake() is called, ms
 * milliseconds at most (-1: no limit); returns at once if there is. */
void gsas_board_sleep(struct gsas_board *board, int ms);

/* End a sleep. By any thread, or a signal handler. */
void gsas_board_wake(struct gsas_board *board);

/* Nobody is connected and no page is held. */
bool gsas_board_empty(const struct gsas_board *board);

struct gsas_service *gsas_board_service(struct gsas_board *board);

#endif /* GSAS_BOARD_H */
