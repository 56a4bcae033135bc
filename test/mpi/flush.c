// SPDX-License-Identifier: BSD-2-Clause
/*
 * flush.c - MPI_Win_flush() completes a put at its target before anything that
 * follows it: two ranks each put the number of a round to the other, flush, and
 * get what the other has put to them. One of them finds the number of the
 * round at least, as in Dekker's algorithm for mutual exclusion. The first
 * argument is the number of rounds (20000). Any MPI, two ranks; it finds most
 * with a processor for each.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long rounds, seen, other, *word;
	int rank, peer;
	MPI_Win win;

	MPI_Init(&argc, &argv);
	rounds = argc > 1 ? atol(argv[1]) : 20000;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	peer = 1 - rank;
	MPI_Win_allocate(sizeof(*word), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
			 &word, &win);
	*word = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (long round = 1; round <= rounds; round++) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Put(&round, 1, MPI_LONG, peer, 0, 1, MPI_LONG, win);
		MPI_Win_flush(peer, win);
		MPI_Get(&seen, 1, MPI_LONG, rank, 0, 1, MPI_LONG, win);
		MPI_Win_flush(rank, win);
		MPI_Sendrecv(&seen, 1, MPI_LONG, peer, 0, &other, 1, MPI_LONG,
			     peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (seen < round && other < round) {
			fprintf(stderr, "round %ld: neither rank found the "
				"other's put after a flush\n", round);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	if (rank == 0)
		printf("flush: right\n");
	MPI_Finalize();
	return 0;
}
