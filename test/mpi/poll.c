// SPDX-License-Identifier: BSD-2-Clause
/*
 * poll.c - a rank that polls by one-sided calls makes progress for others.
 * Rank 1 sends to rank 0 by MPI_Ssend, which ends when rank 0 takes the
 * message, and then puts a word to rank 2. Rank 0 polls that word until it is
 * there, by one-sided calls only. Without progress it polls for ever. Any MPI,
 * three ranks.
 */
#include <mpi.h>
#include <stdio.h>

static MPI_Win win;

/* Three ways to get the word of rank 2 */

static int by_rget(void)
{
	MPI_Request req;
	int seen = 0;

	MPI_Rget(&seen, 1, MPI_INT, 2, 0, 1, MPI_INT, win, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	return seen;
}

static int by_rget_accumulate(void)
{
	MPI_Request req;
	int seen = 0, none = 0;

	MPI_Rget_accumulate(&none, 1, MPI_INT, &seen, 1, MPI_INT, 2, 0, 1,
			    MPI_INT, MPI_NO_OP, win, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	return seen;
}

static int by_get_and_flush(void)
{
	int seen = 0;

	MPI_Get(&seen, 1, MPI_INT, 2, 0, 1, MPI_INT, win);
	MPI_Win_flush(2, win);
	return seen;
}

static const struct way {
	int (*get)(void);
} ways[] = {
	{ by_get_and_flush }, { by_rget }, { by_rget_accumulate },
};

static void poll(int rank, const struct way *way, int word)
{
	MPI_Request req;
	int got = 0;

	if (rank == 0) {
		MPI_Irecv(&got, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &req);
		while (way->get() != word)
			;
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Ssend(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
		MPI_Accumulate(&word, 1, MPI_INT, 2, 0, 1, MPI_INT, MPI_REPLACE,
			       win);
		MPI_Win_flush(2, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, *word;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_allocate(sizeof(*word), sizeof(*word), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &word, &win);
	*word = 0;
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < (int)(sizeof(ways) / sizeof(ways[0])); i++)
		poll(rank, &ways[i], i + 1);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	if (rank == 0)
		printf("poll: right\n");
	MPI_Finalize();
	return 0;
}
