// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_bw.c - bandwidth: rank 0 sends a window of messages, rank 1 answers each
 * window with 4 bytes. With -b both send windows at once, without an answer,
 * and the bytes of both directions count. 1 MB is 1,000,000 bytes.
 */
#include <limits.h>
#include <stdio.h>

#include "unm_window.h"

int main(int argc, char **argv)
{
	struct unm_run run = { .o = {
		.min = 1,
		.max = 4 * UNM_MIB,
		.iters = { 100, 20 },
		.skip = { 10, 2 },
		.window = 64,
	} };
	struct unm_window w;
	double round_s;

	unm_start(&run, &argc, &argv, 2, INT_MAX);
	unm_header(&run, run.o.both ? "Bi-Directional Bandwidth" : "Bandwidth",
		   "    Bandwidth (MB/s)");
	unm_window_open(&w, &run, run.rank > 1 ? -1 : !run.rank,
			run.rank == 0);
	for (w.size = run.o.min; w.size <= run.o.max;
	     w.size = unm_next(&run, w.size)) {
		round_s = unm_window_measure(&w);
		if (run.rank == 0) {
			printf("%-10zu%20.2f\n", w.size,
			       w.size * run.o.window * (run.o.both ? 2 : 1) /
			       round_s / 1e6);
			fflush(stdout);
		}
	}
	unm_print_sent(&run);
	unm_window_close(&w);
	MPI_Finalize();
	return 0;
}
