/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait.c - ranks of which each waits for a message that never comes, from a
 * rank of the other half. Each writes its process number into FOLDER/RANK once
 * it waits, and its errors from then on into FOLDER/RANK.error: the launcher
 * may end before it has passed them on. The program ends if MPI does not take
 * the loss of the peer for a success.
 *
 * wait FOLDER
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, peer, word = 0, got = 0;
	char path[4096];
	FILE *f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	peer = (rank + size / 2) % size;
	MPI_Sendrecv(&word, 1, MPI_INT, peer, 1, &got, 1, MPI_INT, peer, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	snprintf(path, sizeof(path), "%s/%d", argv[1], rank);
	f = fopen(path, "w");
	if (f == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	fprintf(f, "%d\n", (int)getpid());
	fclose(f);
	snprintf(path, sizeof(path), "%s/%d.error", argv[1], rank);
	if (freopen(path, "w", stderr) == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	setvbuf(stderr, NULL, _IONBF, 0);
	MPI_Recv(&got, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("a message that nobody has sent\n");
	MPI_Finalize();
	return 0;
}
