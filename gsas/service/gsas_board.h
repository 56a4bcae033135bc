/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_board.h - runs the atomic service of a board: receives requests on
 * interface 0, passes them to gsas_service.h, sends the answers, sleeps. Used
 * by gsasd, and by a thread of a test.
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
	int board;			/* number; -1: the board of this host */
	uint64_t max_pages, max_user_pages;	/* pages of 4 KiB of the board,
						 * of a user; 0: any number */
	uint64_t budget;		/* bytes for all boards of this host
					 * together, 0: any */
	/* as in gsas_service_attr; NULL: FORK is refused */
	enum gsas_error (*spawn)(void *ctx, const struct gsas_spawn *spawn,
				 uint64_t *pid);
	void *spawn_ctx;
	void (*log)(const char *line);	/* log a line; NULL: no log */
	uint64_t end;			/* for tests: offset at which addresses
					 * end, 0: end of the partition */
};

/* Open interface 0 and start to serve. 0; -FI_EBUSY: the board has a service;
 * -FI_ENOMEM; errors of hal_get() and hal_if_open_service(). */
int gsas_board_open(const struct gsas_board_attr *attr,
		    struct gsas_board **board);
/* End all connections and free all memory. */
void gsas_board_close(struct gsas_board *board);

/* Serve a bounded number of requests. Returns whether there was any work. */
bool gsas_board_poll(struct gsas_board *board);

/* Sleep for ms milliseconds at most (-1: no limit), until a request or an event
 * arrives or gsas_board_wake() is called. Returns at once if there is work. */
void gsas_board_sleep(struct gsas_board *board, int ms);

/* End the current or the next gsas_board_sleep(). Any thread or signal handler
 * may call it. */
void gsas_board_wake(struct gsas_board *board);

/* Is no client connected and no page allocated? */
bool gsas_board_empty(const struct gsas_board *board);

/* The service of the board, for its counters; freed with the board. */
struct gsas_service *gsas_board_service(struct gsas_board *board);

#endif /* GSAS_BOARD_H */
