/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_thread.h - the state of a thread that uses GSAS. Private to libgsas;
 * docs/gsas.md, section 1, lists all files.
 *
 * A thread has an interface of the HAL from its first call to its end. No other
 * thread uses the interface or the structures below, so they need no lock.
 *
 *   gsas_conn.h	connections of the thread to the services of boards
 *   gsas_request.h	pending requests, in memory of the program
 *   gsas_segments.h	segments that the thread knows, mapped or not
 */
#ifndef GSAS_THREAD_H
#define GSAS_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "client/gsas_segments.h"
#include "common/gsas_yield.h"
#include "gsas.h"
#include "hal/hal.h"

struct gsas_conn;
struct gsas_hot;

enum gsas_maps {
	GSAS_MAPS_NONE,		/* tests only */
	GSAS_MAPS_OWN,		/* that of the own board */
	GSAS_MAPS_ALL,		/* that of every board of this host */
};

/* The state of a thread. Made by its first call, freed at its end; no other
 * thread uses it. */
struct gsas_thread {
	struct hal *hal;
	struct hal_if *hif;
	struct gsas_hot *hot;	/* table of the short path */
	bool wiped;		/* the kernel zeroes hot in a forked child */
	int pid;		/* process of the thread, for !wiped */
	enum gsas_maps maps;	/* whose memory it maps */
	bool starts;		/* start a service on a board of this host that
				 * has none */
	uint64_t number;	/* of this thread, from 1, never used again */
	uint32_t boards;	/* boards of all hosts */
	struct gsas_conn **conn;	/* by board; NULL: never used */
	uint32_t *used;		/* boards with a connection, in any state */
	uint32_t nused;		/* entries of used */
	struct gsas_segments segments;	/* that it knows */
	uint32_t polls;		/* polls in vain since gsas_wait_begin() */
	struct gsas_yield yield;	/* polls before a yield */
	bool waits_to_send;	/* for a tag or for a credit; no event
				 * reports either */
	uint64_t next_events;	/* ns: when to read events of hif next */
	uint64_t deadline;	/* ns: sleep no longer than this; 0: none */
	uint64_t timeout;	/* ns that a service may take to answer; 0: no
				 * limit */
	uint64_t timeout_checked;	/* ns: last check for silent services */
	bool begins;		/* no such check since gsas_wait_begin() */
};

/* The state of the calling thread, made at its first call. 0; or an error that
 * was logged: -FI_EBUSY, -FI_ENOMEM, -FI_EMFILE, -FI_EINVAL, -FI_ENODEV. */
int gsas_thread_get(struct gsas_thread **thread);

/* Make a state that belongs to no thread, with an interface of a board (-1: the
 * own one); gsas_port.h. Errors as gsas_thread_get(). */
int gsas_thread_new(int board, struct gsas_thread **thread);
/* Close the interface and free the state. Pending requests are not completed,
 * and their memory, which belongs to the program, is not accessed. */
void gsas_thread_free(struct gsas_thread *thread);

/* Is this board of this host? board: from 0, or -1 for none. */
static inline bool gsas_board_here(const struct gsas_thread *t, int board)
{
	return hal_board_here(t->hal, (uint32_t)board);
}

/* Can memory of this board be mapped? board: from 0, or -1 for none. */
static inline bool gsas_maps_board(const struct gsas_thread *t, int board)
{
	return (t->maps == GSAS_MAPS_ALL && gsas_board_here(t, board)) ||
	       (t->maps == GSAS_MAPS_OWN && board == (int)t->hif->addr.board);
}

#endif /* GSAS_THREAD_H */
