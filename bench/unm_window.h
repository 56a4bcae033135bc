/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_window.h - one round of the bandwidth and the message rate program: a
 * window of messages one way and one short answer back, or a window each way
 * (-b).
 */
#ifndef UNM_WINDOW_H
#define UNM_WINDOW_H

#include "unm_bench.h"

struct unm_window {
	struct unm_run *run;
	bool sender;			/* one of the two; with -b both send */
	int peer;			/* < 0: takes no part */
	size_t size;
	char *buf[2];			/* to send, to receive */
	MPI_Request *req;		/* of both windows */
	MPI_Status *status;
	int slots;			/* buffers used in turn by a round */
};

void unm_window_open(struct unm_window *w, struct unm_run *run, int peer,
		     bool sender);

/* Seconds of one timed round of w->size bytes, all checks done before. */
double unm_window_measure(struct unm_window *w);

void unm_window_close(struct unm_window *w);

#endif
