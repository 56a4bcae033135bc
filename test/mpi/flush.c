// SPDX-License-Identifier: BSD-2-Clause
/*
 * flush.c - MPI_Win_flush(), MPI_Win_unlock(), MPI_Win_unlock_all() and
 * MPI_Win_sync() complete stores to a window before anything that follows them.
 * In each round two ranks each store the number of the round to one of two
 * words, complete the store, and get the other word. At least one of them finds
 * the number of the round, as in Dekker's algorithm for mutual exclusion. A
 * rank stores by a put to the other rank or to itself, or as to any variable.
 * Some flushes follow gets only. The first argument is the number of rounds
 * (4000) of each way to store. Any MPI that has these fences, two ranks; it
 * finds most with a processor for each.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, peer;
static long *word;		/* this rank's word */
static MPI_Win win;

static long get(int from)
{
	long seen;

	MPI_Get(&seen, 1, MPI_LONG, from, 0, 1, MPI_LONG, win);
	MPI_Win_flush(from, win);
	return seen;
}

static void put(long round, int to)
{
	MPI_Put(&round, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
	MPI_Win_flush(to, win);
}

/* A store by a put and a flush, in an epoch of the caller. */
static long put_to_peer(long round)
{
	put(round, peer);
	return get(rank);
}

static long put_to_self(long round)
{
	put(round, rank);
	return get(peer);
}

static long sync_own(long round)
{
	*word = round;
	MPI_Win_sync(win);
	return get(peer);
}

/* The same with epochs of their own. MPI_MODE_NOCHECK: no message orders the
 * store. */
static long unlock_own(long round)
{
	long seen;

	MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, win);
	*word = round;
	MPI_Win_unlock(rank, win);
	MPI_Win_lock(MPI_LOCK_SHARED, peer, MPI_MODE_NOCHECK, win);
	seen = get(peer);
	MPI_Win_unlock(peer, win);
	return seen;
}

static long unlock_all_own(long round)
{
	long seen;

	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	*word = round;
	MPI_Win_unlock_all(win);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	seen = get(peer);
	MPI_Win_unlock_all(win);
	return seen;
}

static const struct way {
	const char *name;
	long (*store)(long round);	/* returns the other word */
	int in_epoch;			/* the caller begins and ends one */
} ways[] = {
	{ "put to the other rank", put_to_peer, 1 },
	{ "put to the own rank", put_to_self, 1 },
	{ "store and sync", sync_own, 1 },
	{ "store and unlock", unlock_own, 0 },
	{ "store and unlock_all", unlock_all_own, 0 },
};

static void round_of(const struct way *way, long round)
{
	long seen, other;

	MPI_Barrier(MPI_COMM_WORLD);
	seen = way->store(round);
	MPI_Sendrecv(&seen, 1, MPI_LONG, peer, 0, &other, 1, MPI_LONG, peer, 0,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (seen < round && other < round) {
		fprintf(stderr, "%s, round %ld: neither rank found the store "
			"of the other\n", way->name, round);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	long rounds, n = sizeof(ways) / sizeof(ways[0]);

	MPI_Init(&argc, &argv);
	rounds = argc > 1 ? atol(argv[1]) : 4000;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	peer = 1 - rank;
	MPI_Win_allocate(sizeof(*word), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
			 &word, &win);
	*word = 0;
	for (long i = 0; i < n; i++) {
		const struct way *way = &ways[i];

		if (way->in_epoch)
			MPI_Win_lock_all(0, win);
		for (long round = 1; round <= rounds; round++) {
			if (way->in_epoch)
				get(peer);
			round_of(way, i * rounds + round);
		}
		if (way->in_epoch)
			MPI_Win_unlock_all(win);
	}
	MPI_Win_free(&win);
	if (rank == 0)
		printf("flush: right\n");
	MPI_Finalize();
	return 0;
}
