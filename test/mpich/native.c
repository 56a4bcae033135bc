// SPDX-License-Identifier: BSD-2-Clause
/*
 * native.c - one-sided operations of MPI, to be counted by the provider
 *
 *	native OPERATION COUNT BYTES WINDOW
 *
 * Rank 0 makes COUNT operations of BYTES each on the memory of rank 1, which
 * waits in a barrier; both ranks check the result. scripts/native.sh compares
 * the provider's counters of two runs: with COUNT 0 they count the operations
 * of windows and barriers only.
 *
 *   OPERATION	put, get, acc, gacc, fop or cas (the last two: 8 bytes)
 *   WINDOW	create, allocate or dynamic
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *op;
	int count, words;
	int rank;
	MPI_Win win;
	MPI_Aint disp;			/* of rank 1's memory in the window */
	int64_t *memory;		/* ours in the window */
	int64_t *in, *out;
} t;

static void bad(const char *what, int i, int64_t value, int64_t due)
{
	fprintf(stderr, "rank %d: %s: word %d is %lld, not %lld\n", t.rank,
		what, i, (long long)value, (long long)due);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int op_is(const char *name)
{
	return strcmp(t.op, name) == 0;
}

static void open_window(const char *kind)
{
	MPI_Aint bytes = t.words * (MPI_Aint)sizeof(int64_t);

	if (strcmp(kind, "allocate") == 0) {
		MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
				 &t.memory, &t.win);
		return;
	}
	t.memory = malloc((size_t)bytes);
	if (strcmp(kind, "create") == 0) {
		MPI_Win_create(t.memory, bytes, 1, MPI_INFO_NULL,
			       MPI_COMM_WORLD, &t.win);
		return;
	}
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &t.win);
	MPI_Win_attach(t.win, t.memory, bytes);
	MPI_Get_address(t.memory, &t.disp);
	MPI_Bcast(&t.disp, 1, MPI_AINT, 1, MPI_COMM_WORLD);
}

static void close_window(const char *kind)
{
	if (strcmp(kind, "dynamic") == 0)
		MPI_Win_detach(t.win, t.memory);
	MPI_Win_free(&t.win);
	if (strcmp(kind, "allocate") != 0)
		free(t.memory);
}

/* Make one operation of rank 0 and wait until it is complete. */
static void issue(int round)
{
	int64_t cmp = 1 + round;

	for (int i = 0; i < t.words; i++)
		t.out[i] = op_is("cas") ? cmp + 1 :
			   op_is("put") ? round + i : 1;
	if (op_is("put"))
		MPI_Put(t.out, t.words, MPI_INT64_T, 1, t.disp, t.words,
			MPI_INT64_T, t.win);
	else if (op_is("get"))
		MPI_Get(t.in, t.words, MPI_INT64_T, 1, t.disp, t.words,
			MPI_INT64_T, t.win);
	else if (op_is("acc"))
		MPI_Accumulate(t.out, t.words, MPI_INT64_T, 1, t.disp, t.words,
			       MPI_INT64_T, MPI_SUM, t.win);
	else if (op_is("gacc"))
		MPI_Get_accumulate(t.out, t.words, MPI_INT64_T, t.in, t.words,
				   MPI_INT64_T, 1, t.disp, t.words,
				   MPI_INT64_T, MPI_SUM, t.win);
	else if (op_is("fop"))
		MPI_Fetch_and_op(t.out, t.in, MPI_INT64_T, 1, t.disp, MPI_SUM,
				 t.win);
	else
		MPI_Compare_and_swap(t.out, &cmp, t.in, MPI_INT64_T, 1, t.disp,
				     t.win);
	MPI_Win_flush(1, t.win);
}

/* Rank 1's memory begins as 1, 2, 3 ... */
static void origin(void)
{
	int changes = op_is("gacc") || op_is("fop") || op_is("cas");

	for (int n = 0; n < t.count; n++) {
		issue(n);
		if (!changes && !op_is("get"))
			continue;
		for (int i = 0; i < t.words; i++)
			if (t.in[i] != 1 + i + (changes ? n : 0))
				bad(t.op, i, t.in[i],
				    1 + i + (changes ? n : 0));
	}
}

static void target_check(void)
{
	for (int i = 0; i < t.words; i++) {
		int64_t due = 1 + i;

		if (t.count && op_is("put"))
			due = t.count - 1 + i;
		else if (!op_is("get"))
			due += t.count;
		if (t.memory[i] != due)
			bad("memory", i, t.memory[i], due);
	}
}

int main(int argc, char **argv)
{
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 5 || ranks != 2) {
		fprintf(stderr, "2 ranks: OPERATION COUNT BYTES WINDOW\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	t.op = argv[1];
	t.count = (int)strtol(argv[2], NULL, 10);
	t.words = (int)strtol(argv[3], NULL, 10) / (int)sizeof(int64_t);
	t.in = calloc((size_t)t.words, sizeof(*t.in));
	t.out = calloc((size_t)t.words, sizeof(*t.out));
	open_window(argv[4]);
	MPI_Win_lock_all(0, t.win);
	for (int i = 0; i < t.words; i++)
		t.memory[i] = 1 + i;
	MPI_Win_sync(t.win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t.rank == 0)
		origin();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(t.win);
	if (t.rank == 1)
		target_check();
	MPI_Win_unlock_all(t.win);
	close_window(argv[4]);
	free(t.in);
	free(t.out);
	MPI_Finalize();
	return 0;
}
