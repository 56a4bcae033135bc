// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_init.c - the time that MPI_Init takes: average over the ranks, least and
 * greatest rank. Takes no options; the first column is the number of ranks.
 */
#include <mpi.h>
#include <stdio.h>

#include "unm_stat.h"

int main(int argc, char **argv)
{
	double start = unm_now(), mine, sum, least, most;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	mine = unm_now() - start;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("# MPI_Init\n# Ranks             Avg Time(ms)"
		       "        Min Time(ms)        Max Time(ms)\n");
		printf("%-10d%20.3f%20.3f%20.3f\n", ranks,
		       sum / ranks * 1e3, least * 1e3, most * 1e3);
	}
	MPI_Finalize();
	return 0;
}
