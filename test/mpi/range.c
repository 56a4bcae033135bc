// SPDX-License-Identifier: BSD-2-Clause
/*
 * range.c - an operation that is not all within the target's window is an
 * error, and changes no memory. Rank 0 accesses the window of rank 1 with
 * several displacements and datatypes; each wrong one fails and leaves the
 * windows of the other ranks as they are, and the right ones still work. Only
 * MPICH with mpich-patches/rma-mapped.patch promises that; two ranks or more.
 */
#include <mpi.h>
#include <stdio.h>

#define WORDS	64

static int rank;
static int *word;
static MPI_Win win;
static MPI_Datatype gaps, back;	/* two words: 0 and 2; 0 and -1 */

static int put_at(MPI_Aint disp, int count, MPI_Datatype type)
{
	int from[2 * WORDS];

	for (int i = 0; i < 2 * WORDS; i++)
		from[i] = 99;
	return MPI_Put(from, count * (type == MPI_INT ? 1 : 2), MPI_INT, 1,
		       disp, count, type, win);
}

static int put_behind(void) { return put_at(WORDS, 1, MPI_INT); }
static int put_far(void) { return put_at(1L << 40, 1, MPI_INT); }
static int put_before(void) { return put_at(-1, 1, MPI_INT); }
static int put_across(void) { return put_at(WORDS - 1, 2, MPI_INT); }
static int put_gaps(void) { return put_at(WORDS - 2, 1, gaps); }
static int put_many_gaps(void) { return put_at(0, WORDS / 3 + 1, gaps); }
static int put_back(void) { return put_at(0, 1, back); }

static int get_behind(void)
{
	int to;

	return MPI_Get(&to, 1, MPI_INT, 1, WORDS, 1, MPI_INT, win);
}

static int accumulate_behind(void)
{
	int one = 1;

	return MPI_Accumulate(&one, 1, MPI_INT, 1, WORDS, 1, MPI_INT, MPI_SUM,
			      win);
}

static int fetch_behind(void)
{
	int one = 1, before;

	return MPI_Fetch_and_op(&one, &before, MPI_INT, 1, WORDS, MPI_SUM, win);
}

static int accumulate_gaps(void)
{
	int ones[] = { 1, 1 };

	return MPI_Accumulate(ones, 2, MPI_INT, 1, WORDS - 2, 1, gaps, MPI_SUM,
			      win);
}

static const struct wrong {
	const char *name;
	int (*call)(void);
} wrong[] = {
	{ "put behind the window", put_behind },
	{ "put far behind it", put_far },
	{ "put before it", put_before },
	{ "put across its end", put_across },
	{ "put with gaps across its end", put_gaps },
	{ "put of many gaps across its end", put_many_gaps },
	{ "put backwards across its beginning", put_back },
	{ "get behind it", get_behind },
	{ "accumulate behind it", accumulate_behind },
	{ "accumulate with gaps across its end", accumulate_gaps },
	{ "fetch_and_op behind it", fetch_behind },
};

/* The last words that are allowed */
static int right(void)
{
	int failed = 0;

	failed |= put_at(WORDS - 1, 1, MPI_INT);
	failed |= put_at(0, WORDS, MPI_INT);
	failed |= put_at(WORDS - 3, 1, gaps);
	failed |= put_at(0, WORDS / 3, gaps);
	failed |= put_at(1, 1, back);
	failed |= MPI_Win_flush(1, win);
	return failed;
}

static void fail(const char *what, const char *how)
{
	fprintf(stderr, "rank %d, %s: %s\n", rank, what, how);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 0 calls it; then all words of the ranks but 1 are as they were. */
static void check(const char *name, int (*call)(void), int allowed)
{
	int failed = rank == 0 && call() != MPI_SUCCESS;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < WORDS && rank != 1; i++)
		if (word[i] != rank)
			fail(name, "it changed another window");
	if (rank == 0 && failed == allowed)
		fail(name, allowed ? "an error" : "no error");
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
	MPI_Type_commit(&gaps);
	MPI_Type_indexed(2, (int[]){ 1, 1 }, (int[]){ 0, -1 }, MPI_INT, &back);
	MPI_Type_commit(&back);
	MPI_Win_allocate(WORDS * sizeof(*word), sizeof(*word), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &word, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	for (int i = 0; i < WORDS; i++)
		word[i] = rank;
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	check("before errors", right, 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check(wrong[i].name, wrong[i].call, 0);
	check("after errors", right, 1);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Type_free(&gaps);
	MPI_Type_free(&back);
	if (rank == 0)
		printf("range: right\n");
	MPI_Finalize();
	return 0;
}
