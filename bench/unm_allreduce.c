// SPDX-License-Identifier: BSD-2-Clause
/*
 * Allreduce: sums of doubles over all ranks, a barrier after each call
 * outside the timed part. Average over the ranks, least and greatest rank.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unm_bench.h"

#define CHECK_ROUNDS	2

struct allred {
	struct unm_run *run;
	size_t size;
	double *in, *out;
};

static double plain(struct allred *a, int n)
{
	int count = (int)(a->size / sizeof(double));
	double t0, total = 0;

	for (int i = 0; i < n; i++) {
		t0 = MPI_Wtime();
		MPI_Allreduce(a->in, a->out, count, MPI_DOUBLE, MPI_SUM,
			      MPI_COMM_WORLD);
		total += MPI_Wtime() - t0;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return total;
}

static double expected(const struct allred *a, size_t i, int round)
{
	double n = a->run->ranks;

	return n * (n - 1) / 2 + n * (double)(i % 1000 + round);
}

static double checked(struct allred *a, int n)
{
	size_t count = a->size / sizeof(double);
	double total = 0;

	for (int r = 0; r < n; r++) {
		for (size_t i = 0; i < count; i++)
			a->in[i] = a->run->rank + (double)(i % 1000 + r);
		memset(a->out, 0xff, a->size);
		MPI_Barrier(MPI_COMM_WORLD);
		total += plain(a, 1);
		for (size_t i = 0; i < count; i++) {
			if (a->out[i] == expected(a, i, r))
				continue;
			fprintf(stderr, "rank %d: wrong sum at %zu of %zu\n",
				a->run->rank, i, count);
			MPI_Abort(MPI_COMM_WORLD, 3);
		}
	}
	return total;
}

static double measure(struct allred *a)
{
	bool all = a->run->o.validate;
	double t0, round_s;
	int iters, skip;

	checked(a, CHECK_ROUNDS);
	t0 = MPI_Wtime();
	plain(a, CHECK_ROUNDS);
	round_s = (MPI_Wtime() - t0) / CHECK_ROUNDS;
	unm_rounds(a->run, a->size, round_s, &iters, &skip);
	plain(a, skip);
	MPI_Barrier(MPI_COMM_WORLD);
	return (all ? checked(a, iters) : plain(a, iters)) / iters;
}

static void print_line(const struct allred *a, double mine)
{
	double sum, least, most;

	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (a->run->rank)
		return;
	printf("%-10zu%20.3f%20.3f%20.3f\n", a->size,
	       sum / a->run->ranks * 1e6, least * 1e6, most * 1e6);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct unm_run run = { .o = {
		.min = sizeof(double),
		.max = UNM_MIB,
		.iters = { 1000, 100 },
		.skip = { 200, 10 },
	} };
	struct allred a = { .run = &run };

	unm_start(&run, &argc, &argv, 1, INT_MAX);
	unm_header(&run, "Allreduce", "    Avg Latency(us)"
		   "     Min Latency(us)     Max Latency(us)");
	a.in = unm_alloc(run.o.max);
	a.out = unm_alloc(run.o.max);
	for (a.size = run.o.min; a.size <= run.o.max;
	     a.size = unm_next(a.size)) {
		if (a.size % sizeof(double))
			continue;
		print_line(&a, measure(&a));
	}
	free(a.out);
	free(a.in);
	MPI_Finalize();
	return 0;
}
