// SPDX-License-Identifier: BSD-2-Clause
/*
 * accumulate.c - accumulates of several ranks to the same numbers lose none,
 * whatever their datatypes and lengths: MPI makes each atomic per number. Ranks
 * 1, 3... add contiguous numbers to those of rank 0; ranks 2, 4... add with a
 * vector that has gaps, at the target or at the origin, and more numbers than
 * one call of the provider takes (17 MiB). Rank 0 makes progress meanwhile.
 * Arguments: rounds of each case (5000), and "d" for MPI_DOUBLE instead of
 * MPI_INT. Then a rank alone checks what operations with gaps store and fetch.
 * Any MPI, at least three ranks; with a processor for two of them it finds
 * most.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS	1000			/* numbers of an operation with gaps */
#define NUMBERS	(2 * PAIRS)		/* with those in the gaps */
#define LONG	(17 * 1024 * 1024 / 4)	/* numbers of a long accumulate */
#define GUARD	77

static int g_rank, g_ranks;
static long g_rounds = 5000;
static MPI_Datatype g_type = MPI_INT, g_gaps;	/* g_gaps: PAIRS of g_type */
static size_t g_size;
static char *g_mem;
static MPI_Win g_win;

static double number(const void *at, long i)
{
	const char *p = (const char *)at + i * g_size;

	return g_type == MPI_INT ? *(const int *)p : *(const double *)p;
}

static void set(void *at, long i, int value)
{
	if (g_type == MPI_INT)
		((int *)at)[i] = value;
	else
		((double *)at)[i] = value;
}

static void expect(const char *what, double is, double want)
{
	if (is == want)
		return;
	fprintf(stderr, "rank %d, %s: %.0f, not %.0f\n", g_rank, what, is,
		want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- What a rank does in a round: it adds 1 to numbers ------------------- */

static void plain(void *ones)
{
	MPI_Accumulate(ones, NUMBERS, g_type, 0, 0, NUMBERS, g_type, MPI_SUM,
		       g_win);
	MPI_Win_flush(0, g_win);
}

static void gaps(void *ones)
{
	MPI_Accumulate(ones, PAIRS, g_type, 0, 0, 1, g_gaps, MPI_SUM, g_win);
	MPI_Win_flush(0, g_win);
}

static void gaps_of_origin(void *ones)
{
	MPI_Request req;

	MPI_Raccumulate(ones, 1, g_gaps, 0, 0, PAIRS, g_type, MPI_SUM, g_win,
			&req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Win_flush(0, g_win);
}

static void gaps_fetched(void *ones)
{
	static double before[PAIRS], last = -1;

	MPI_Get_accumulate(ones, PAIRS, g_type, before, PAIRS, g_type, 0, 0, 1,
			   g_gaps, MPI_SUM, g_win);
	MPI_Win_flush(0, g_win);
	if (number(before, PAIRS - 1) <= last)
		expect("a value fetched later", number(before, PAIRS - 1),
		       last + 1);
	last = number(before, PAIRS - 1);
}

static void lengthy(void *ones)
{
	MPI_Accumulate(ones, LONG, g_type, 0, 0, LONG, g_type, MPI_SUM, g_win);
	MPI_Win_flush(0, g_win);
}

static const struct way {
	const char *name;
	void (*other)(void *ones);	/* of ranks 2, 4... */
	int step;			/* it adds to each step'th number */
	int end;			/* before this one */
	int share;			/* of the rounds: one in so many */
} ways[] = {
	{ "gaps at the target", gaps, 2, NUMBERS, 1 },
	{ "gaps at the origin", gaps_of_origin, 1, PAIRS, 1 },
	{ "gaps at the target, fetched", gaps_fetched, 2, NUMBERS, 1 },
	{ "long ones", lengthy, 1, LONG, 200 },
};

static void race(const struct way *way, void *ones)
{
	bool other = g_rank % 2 == 0;
	long few = g_rounds / way->share + 1, n = other ? few : g_rounds;

	for (long i = 0; i < NUMBERS && g_rank == 0; i++)
		set(g_mem, i, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < n && g_rank > 0; i++)
		(other ? way->other : plain)(ones);
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < NUMBERS && g_rank == 0; i++) {
		double want = g_ranks / 2 * g_rounds;

		if (i % way->step == 0 && i < way->end)
			want += (g_ranks - 1) / 2 * few;
		expect(way->name, number(g_mem, i), want);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- Results: rank 1 alone ----------------------------------------------- */

/* Replace numbers with gaps by others with gaps, and fetch what was there into
 * a buffer with gaps; the gaps are left as they are. */
static void results(MPI_Op op, int base)
{
	static double from[NUMBERS], before[NUMBERS], now[NUMBERS];

	for (int i = 0; i < NUMBERS; i++) {
		set(from, i, 1000 + i);
		set(before, i, GUARD);
		set(now, i, base + i);
	}
	MPI_Put(now, NUMBERS, g_type, 0, 0, NUMBERS, g_type, g_win);
	MPI_Win_flush(0, g_win);
	MPI_Get_accumulate(from, 1, g_gaps, before, 1, g_gaps, 0, 0, 1, g_gaps,
			   op, g_win);
	MPI_Win_flush(0, g_win);
	MPI_Get(now, NUMBERS, g_type, 0, 0, NUMBERS, g_type, g_win);
	MPI_Win_flush(0, g_win);
	for (int i = 0; i < NUMBERS; i++) {
		double want = base + i;

		if (i % 2 == 0 && op == MPI_REPLACE)
			want = 1000 + i;
		else if (i % 2 == 0 && op == MPI_SUM)
			want = base + 1000 + 2 * i;
		expect("a number", number(now, i), want);
		expect("a fetched number", number(before, i),
		       i % 2 == 0 ? base + i : GUARD);
	}
}

static void run(void)
{
	char *ones = malloc(LONG * g_size);

	for (long i = 0; i < LONG; i++)
		set(ones, i, 1);
	MPI_Win_lock_all(0, g_win);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		race(&ways[i], ones);
	if (g_rank == 1) {
		results(MPI_SUM, 10);
		results(MPI_REPLACE, 20);
		results(MPI_NO_OP, 30);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(g_win);
	free(ones);
}

int main(int argc, char **argv)
{
	int size;

	MPI_Init(&argc, &argv);
	if (argc > 1)
		g_rounds = atol(argv[1]);
	if (argc > 2 && strcmp(argv[2], "d") == 0)
		g_type = MPI_DOUBLE;
	MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
	MPI_Type_size(g_type, &size);
	g_size = (size_t)size;
	MPI_Type_vector(PAIRS, 1, 2, g_type, &g_gaps);
	MPI_Type_commit(&g_gaps);
	MPI_Win_allocate(g_rank == 0 ? LONG * size : 0, size, MPI_INFO_NULL,
			 MPI_COMM_WORLD, &g_mem, &g_win);
	run();
	MPI_Win_free(&g_win);
	MPI_Type_free(&g_gaps);
	if (g_rank == 0)
		printf("accumulate: right\n");
	MPI_Finalize();
	return 0;
}
