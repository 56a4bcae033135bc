// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_mbw_mr.c - message rate of one or more pairs of ranks: rank i < pairs
 * sends windows of messages (unm_window.c) to rank i + pairs. The figure is the
 * sum over all pairs, for the time of the slowest pair.
 */
#include <limits.h>
#include <stdio.h>

#include "unm_window.h"

static int partner(const struct unm_run *run)
{
	int pairs = run->o.pairs;

	if (run->rank >= 2 * pairs)
		return -1;
	return run->rank < pairs ? run->rank + pairs : run->rank - pairs;
}

static void print_line(const struct unm_run *run, size_t size, double round_s)
{
	double rate = (double)run->o.window * run->o.pairs / round_s;

	printf("%-10zu%20.2f%20.2f\n", size, rate * size / 1e6, rate);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct unm_run run = { .o = {
		.min = 1,
		.max = 4 * UNM_MIB,
		.iters = { 1000, 20 },
		.skip = { 100, 2 },
		.window = 64,
		.pairs = 1,
	} };
	struct unm_window w;
	double mine, slowest;

	unm_start(&run, &argc, &argv, 2, INT_MAX);
	unm_header(&run, "Multiple Bandwidth / Message Rate",
		   "                MB/s          Messages/s");
	if (run.rank == 0)
		printf("# [ pairs: %d ] [ window size: %d ]\n", run.o.pairs,
		       run.o.window);
	unm_window_open(&w, &run, partner(&run), run.rank < run.o.pairs);
	for (w.size = run.o.min; w.size <= run.o.max;
	     w.size = unm_next(&run, w.size)) {
		mine = unm_window_measure(&w);
		if (!w.sender)
			mine = 0;
		MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0,
			   MPI_COMM_WORLD);
		if (run.rank == 0)
			print_line(&run, w.size, slowest);
	}
	unm_window_close(&w);
	MPI_Finalize();
	return 0;
}
