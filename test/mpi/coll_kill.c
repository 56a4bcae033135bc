// SPDX-License-Identifier: BSD-2-Clause
/*
 * coll_kill.c - rank 1 is killed among collectives through shared memory
 * (mpich-patches/coll-shared.patch): all other ranks end with an error instead
 * of waiting for ever, and say so. For mpirun -disable-auto-cleanup, behind a
 * shell that stays, without which mpirun would end the other ranks.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, sum, error = MPI_SUCCESS, class = MPI_SUCCESS;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; error == MPI_SUCCESS; i++) {
		if (rank == 1 && i == 1000)
			raise(SIGKILL);
		if (i % 3 == 0)
			error = MPI_Barrier(MPI_COMM_WORLD);
		else if (i % 3 == 1)
			error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM,
					      MPI_COMM_WORLD);
		else
			error = MPI_Bcast(&sum, 1, MPI_INT, i % 2,
					  MPI_COMM_WORLD);
	}
	MPI_Error_class(error, &class);
	printf("rank %d: %s\n", rank, class == MPIX_ERR_PROC_FAILED ?
	       "a process failed" : "another error");
	fflush(stdout);
	_exit(0);
}
