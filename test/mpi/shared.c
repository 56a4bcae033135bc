/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.c - ranks of MPI share memory of GSAS that only processes of one job
 * may access, on the board of each rank. Each rank adds its number + 1 to the
 * word of each rank. Prints how many ranks there were, how many boards had the
 * words, and how many sums were wrong.
 */
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <unimem/gsas.h>

#define RANKS_MAX	64

static int rank, ranks;

static void must(int ret, const char *call)
{
	if (ret == 0)
		return;
	fprintf(stderr, "shared: rank %d: %s: %s\n", rank, call,
		gsas_strerror(ret));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	gsas_addr own = 0, all[RANKS_MAX];
	int wrong = 0, sum = 0, boards = 0, seen[RANKS_MAX] = { 0 };
	uint64_t word = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	must(ranks > RANKS_MAX ? -E2BIG : 0, "number of ranks");
	must(gsas_alloc(1, GSAS_HERE, GSAS_JOB, NULL, &own), "gsas_alloc");
	MPI_Allgather(&own, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T,
		      MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		must(gsas_fad64(all[i], rank + 1, NULL), "gsas_fad64");
		seen[gsas_board_of_address(all[i]) % RANKS_MAX] = 1;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	must(gsas_read64(own, &word), "gsas_read64");
	wrong = word != (uint64_t)ranks * (uint64_t)(ranks + 1) / 2;
	MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	must(gsas_free(own), "gsas_free");
	for (int i = 0; i < RANKS_MAX; i++)
		boards += seen[i];
	if (rank == 0)
		printf("%d ranks, %d boards: %d wrong\n", ranks, boards, sum);
	MPI_Finalize();
	return sum != 0;
}
