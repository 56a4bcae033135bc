// SPDX-License-Identifier: BSD-2-Clause
/*
 * answer.c - a small parallel program whose answer does not depend on where its
 * ranks are: a cellular automaton with halos, a bucket sort, a histogram by
 * one-sided accumulates, a long message around the ring. All numbers are
 * integers, so the answer is the same to the last bit. Any MPI, any number of
 * ranks that divides CELLS and KEYS; the answer depends on that number in no
 * way either.
 *
 * With an argument it computes the answer again and again, until a file of that
 * name exists, and fails if an answer differs from the first.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CELLS	8192			/* of the automaton */
#define STEPS	100
#define KEYS	65536			/* that are sorted */
#define BINS	256			/* of the histogram */
#define LONG	(1 << 17)		/* words of the long message */

static int g_rank, g_ranks, g_next, g_prev;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

static void *need(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (p == NULL)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return p;
}

static uint64_t sum_of_all(uint64_t own)
{
	uint64_t all = 0;

	MPI_Allreduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

/* Rule 110 on a ring of cells, a block of them on each rank. */
static uint64_t automaton(void)
{
	int n = CELLS / g_ranks;
	uint8_t *now = need(n + 2), *then = need(n + 2), *swap;
	uint64_t hash = 0;

	for (int i = 1; i <= n; i++)
		now[i] = mix((uint64_t)g_rank * n + i) & 1;
	for (int step = 0; step < STEPS; step++) {
		MPI_Sendrecv(&now[n], 1, MPI_BYTE, g_next, 1, &now[0], 1,
			     MPI_BYTE, g_prev, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		MPI_Sendrecv(&now[1], 1, MPI_BYTE, g_prev, 2, &now[n + 1], 1,
			     MPI_BYTE, g_next, 2, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		for (int i = 1; i <= n; i++)
			then[i] = 110 >> (now[i - 1] << 2 | now[i] << 1 |
					  now[i + 1]) & 1;
		swap = now;
		now = then;
		then = swap;
	}
	for (int i = 1; i <= n; i++)
		hash += now[i] * mix((uint64_t)g_rank * n + i + CELLS);
	free(now);
	free(then);
	return sum_of_all(hash);
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* The keys in order: each rank gets those of its range. */
static uint64_t sorted(void)
{
	int n = KEYS / g_ranks, got = 0;
	int *count = need(4 * g_ranks * sizeof(int)), *at = count + g_ranks;
	int *in = at + g_ranks, *from = in + g_ranks;
	uint64_t *key = need(n * sizeof(*key)), *mine;
	uint64_t first = 0, many, hash = 0;

	for (int i = 0; i < n; i++)
		key[i] = mix(mix((uint64_t)g_rank * n + i)) >> 32;
	qsort(key, n, sizeof(*key), by_value);
	for (int i = 0; i < n; i++)
		count[key[i] * g_ranks >> 32]++;
	MPI_Alltoall(count, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < g_ranks; r++) {
		at[r] = r == 0 ? 0 : at[r - 1] + count[r - 1];
		from[r] = got;
		got += in[r];
	}
	mine = need((got + 1) * sizeof(*mine));
	MPI_Alltoallv(key, count, at, MPI_UINT64_T, mine, in, from,
		      MPI_UINT64_T, MPI_COMM_WORLD);
	qsort(mine, got, sizeof(*mine), by_value);
	many = got;
	MPI_Exscan(&many, &first, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (g_rank == 0)		/* left undefined by the call */
		first = 0;
	for (int i = 0; i < got; i++)
		hash += mine[i] * mix(first + i);
	free(count);
	free(key);
	free(mine);
	return sum_of_all(hash);
}

/* Each rank counts its numbers into the bins, which are spread over all. */
static uint64_t histogram(void)
{
	int n = CELLS / g_ranks, bins = (BINS + g_ranks - 1) / g_ranks;
	uint64_t *bin = need(bins * sizeof(*bin)), one = 1, hash = 0;
	MPI_Win win;

	MPI_Win_create(bin, bins * sizeof(*bin), sizeof(*bin), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < n; i += 8) {
		int b = mix((uint64_t)g_rank * n + i) % BINS;

		MPI_Accumulate(&one, 1, MPI_UINT64_T, b / bins, b % bins, 1,
			       MPI_UINT64_T, MPI_SUM, win);
	}
	MPI_Win_fence(0, win);
	for (int i = 0; i < bins; i++)
		hash += bin[i] * mix(i + (uint64_t)g_rank * bins);
	MPI_Win_free(&win);
	free(bin);
	return sum_of_all(hash);
}

/* A message of a MiB goes all around, and comes back to where it was. */
static uint64_t around(void)
{
	uint64_t *word = need(LONG * sizeof(*word)), hash = 0;

	for (int i = 0; i < LONG; i++)
		word[i] = mix(i + (uint64_t)g_rank * LONG);
	for (int hop = 0; hop < g_ranks; hop++)
		MPI_Sendrecv_replace(word, LONG, MPI_UINT64_T, g_next, 3,
				     g_prev, 3, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
	for (int i = 0; i < LONG; i++)
		hash += word[i] != mix(i + (uint64_t)g_rank * LONG);
	free(word);
	return sum_of_all(hash);
}

static void compute(uint64_t answer[4])
{
	answer[0] = automaton();
	answer[1] = sorted();
	answer[2] = histogram();
	answer[3] = around();
}

int main(int argc, char **argv)
{
	uint64_t first[4], again[4];
	int more = argc > 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
	g_next = (g_rank + 1) % g_ranks;
	g_prev = (g_rank + g_ranks - 1) % g_ranks;
	if (CELLS % (8 * g_ranks) != 0 || KEYS % g_ranks != 0)
		MPI_Abort(MPI_COMM_WORLD, 2);
	compute(first);
	while (more) {
		compute(again);
		if (memcmp(first, again, sizeof(first)) != 0) {
			fprintf(stderr, "rank %d: another answer\n", g_rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		more = access(argv[1], F_OK) != 0;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (g_rank == 0)
		printf("answer %016llx %016llx %016llx %llu\n",
		       (unsigned long long)first[0],
		       (unsigned long long)first[1],
		       (unsigned long long)first[2],
		       (unsigned long long)first[3]);
	MPI_Finalize();
	return 0;
}
