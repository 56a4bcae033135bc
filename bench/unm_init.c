// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_init.c - what a rank costs: the time that MPI_Init takes (init: average
 * over the ranks), the memory of a rank after it (memory), and the memory that
 * each peer adds once all ranks have exchanged ROUNDS x MESSAGES messages with
 * all others (peer_memory).
 *
 * Memory is the sum over the ranks of their proportional set size without
 * shared memory, and the shared memory of the whole machine (Shmem), because
 * no rank has mapped all pages of its segments. UNM_SHMEM is Shmem in KiB
 * before the job began. Memory of the kernel is not counted: page tables,
 * buffers of sockets.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unm_stat.h"

#define ROUNDS		10		/* few: ranks that spin take turns */
#define MESSAGES	2		/* to each peer in a round */
#define BYTES		1024

static int rank, ranks;

/* ---- Memory, in KiB ---------------------------------------------------- */

/* The number behind a name at the begin of a line of a file of /proc. */
static double number(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[256];
	double found = -1;

	while (f && found < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			found = atof(line + strlen(name));
	if (f)
		fclose(f);
	if (found >= 0)
		return found;
	fprintf(stderr, "unm_init: no %s in %s\n", name, path);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return found;
}

static double own_memory(void)
{
	return number("/proc/self/smaps_rollup", "Pss:") -
		number("/proc/self/smaps_rollup", "Pss_Shmem:");
}

/* ---- All ranks and rank 0 ---------------------------------------------- */

/*
 * Rank 0 gets the sum over all ranks, all other ranks wait for release(). Only
 * rank 0 exchanges messages with every other rank here, so that hardly any pair
 * of ranks becomes active.
 */
static double gather(double mine)
{
	double sum = mine, other;

	if (rank)
		MPI_Send(&mine, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
	for (int i = 1; rank == 0 && i < ranks; i++) {
		MPI_Recv(&other, 1, MPI_DOUBLE, i, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		sum += other;
	}
	return sum;
}

static void release(void)
{
	char go = 0;

	if (rank)
		MPI_Recv(&go, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	for (int i = 1; rank == 0 && i < ranks; i++)
		MPI_Send(&go, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD);
}

/* At rank 0: the memory of all ranks, minus the shared memory from before the
 * job. */
static double memory(double before)
{
	double sum = gather(own_memory());

	sum += number("/proc/meminfo", "Shmem:") - before;
	release();
	return sum;
}

/* ---- All to all -------------------------------------------------------- */

/* All messages share two buffers, so that these do not count per peer. */
static void exchange(void)
{
	static char in[BYTES], out[BYTES];
	int all = MESSAGES * (ranks - 1), n;
	MPI_Request *req = calloc(2 * (size_t)all, sizeof(*req));
	MPI_Status *status = calloc(2 * (size_t)all, sizeof(*status));

	if (!req || !status)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int round = 0; round < ROUNDS; round++) {
		n = 0;
		for (int i = 0; i < all; i++)
			MPI_Irecv(in, BYTES, MPI_CHAR,
				  (rank + 1 + i / MESSAGES) % ranks, 1,
				  MPI_COMM_WORLD, &req[n++]);
		for (int i = 0; i < all; i++)
			MPI_Isend(out, BYTES, MPI_CHAR,
				  (rank + 1 + i / MESSAGES) % ranks, 1,
				  MPI_COMM_WORLD, &req[n++]);
		MPI_Waitall(n, req, status);
	}
	free(status);
	free(req);
}

/* before: shared memory of the machine before the job, in KiB. */
static void measure_memory(double before)
{
	double idle, active;

	idle = memory(before);
	exchange();
	active = memory(before);
	if (rank)
		return;
	unm_row("memory", 0, idle / ranks, "KiB");
	/* all ordered pairs: rank 0 has had few messages with other ranks */
	unm_row("peer_memory", 0, (active - idle) / (ranks * (ranks - 1.0)),
		"KiB");
}

int main(int argc, char **argv)
{
	double start = unm_now(), sum;
	const char *shmem = getenv("UNM_SHMEM");

	MPI_Init(&argc, &argv);
	sum = unm_now() - start;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	sum = gather(sum);
	if (rank == 0) {
		unm_row_header();
		unm_row("init", 0, sum / ranks * 1e3, "ms");
	}
	release();
	if (shmem && ranks > 2)
		measure_memory(atof(shmem));
	MPI_Finalize();
	return 0;
}
