// SPDX-License-Identifier: BSD-2-Clause
/*
 * probe.c - MPI_Iprobe() while many sends have completed that no call has
 * reported yet. Rank 0 sends SENDS messages to each other rank, and calls no
 * MPI function while the other ranks receive the messages. A completion queue
 * for fewer entries (FI_UNIMEM_CQ_SIZE) is then full in MPI_Iprobe(). Four
 * ranks of one node, of any MPI in which messages of LEN bytes are received
 * without a call by the sender.
 */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define ROUNDS	20
#define RANKS	4
#define SENDS	40			/* to each rank */
#define LEN	5000			/* bytes: a send completes when its
					 * receiver has read the message */

static char out[LEN], in[LEN];
static _Atomic int *received;		/* shared: rounds whose messages have
					 * come, summed over the receivers */

static MPI_Win share(void)
{
	MPI_Aint bytes;
	MPI_Win win;
	int rank, unit;
	void *at;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_allocate_shared(rank == 0 ? sizeof(*received) : 0, 1,
				MPI_INFO_NULL, MPI_COMM_WORLD, &at, &win);
	MPI_Win_shared_query(win, 0, &bytes, &unit, &at);
	received = at;
	if (rank == 0)
		atomic_init(received, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	return win;
}

static void sender(int round)
{
	MPI_Request req[(RANKS - 1) * SENDS];
	int n = 0, flag, word;

	for (int i = 0; i < SENDS; i++)
		for (int to = 1; to < RANKS; to++)
			MPI_Isend(out, LEN, MPI_CHAR, to, 1, MPI_COMM_WORLD,
				  &req[n++]);
	while (atomic_load(received) < (round + 1) * (RANKS - 1))
		sched_yield();
	MPI_Test(&req[n - 1], &flag, MPI_STATUS_IGNORE);
	for (int from = 1; from < RANKS; from++) {
		do {
			MPI_Iprobe(from, 2, MPI_COMM_WORLD, &flag,
				   MPI_STATUS_IGNORE);
		} while (!flag);
		MPI_Recv(&word, 1, MPI_INT, from, 2, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < n; i++)
		MPI_Wait(&req[i], MPI_STATUS_IGNORE);
}

static void receiver(void)
{
	int word = 0;

	for (int i = 0; i < SENDS; i++)
		MPI_Recv(in, LEN, MPI_CHAR, 0, 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	atomic_fetch_add(received, 1);
	MPI_Send(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Win win;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != RANKS)
		MPI_Abort(MPI_COMM_WORLD, 1);
	win = share();
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			sender(i);
		else
			receiver();
	}
	if (rank == 0)
		printf("probe: right\n");
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
