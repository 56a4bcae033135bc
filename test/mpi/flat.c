// SPDX-License-Identifier: BSD-2-Clause
/*
 * flat.c - bcast, reduce, allreduce and barrier of short data, with every
 * result checked: each root, in place too, an operation that is not
 * commutative, and data of up to 8192 bytes. For
 * mpich-patches/coll-flat.patch; any MPI.
 *
 * The operation multiplies the functions x -> a x + b modulo a prime, one after
 * the other, so a product in another order of the ranks is another function.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PRIME	2147483647u
#define COUNT	1024		/* of 8 bytes: beyond what is done flat */

static int g_rank, g_ranks;

static uint32_t mul(uint32_t x, uint32_t y)
{
	return (uint64_t)x * y % PRIME;
}

/* A function in 64 bits: a in the upper half, b in the lower one. */
static uint64_t function(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* First f, then g. */
static uint64_t then(uint64_t f, uint64_t g)
{
	uint32_t a = g >> 32;

	return function(mul(f >> 32, a),
			(mul((uint32_t)f, a) + (uint64_t)(uint32_t)g) % PRIME);
}

static void op(void *in, void *inout, int *len, MPI_Datatype *type)
{
	const uint64_t *f = in;
	uint64_t *g = inout;

	(void)type;
	for (int i = 0; i < *len; i++)
		g[i] = then(f[i], g[i]);
}

static uint64_t of_rank(int rank, int i)
{
	return function(rank + 2, 3 * rank + i + 1);
}

static uint64_t product(int i)
{
	uint64_t all = of_rank(0, i);

	for (int rank = 1; rank < g_ranks; rank++)
		all = then(all, of_rank(rank, i));
	return all;
}

static void expect(const char *what, const uint64_t *got, int count, int root,
		   uint64_t (*want)(int i))
{
	for (int i = 0; i < count; i++) {
		if (got[i] == want(i))
			continue;
		fprintf(stderr, "rank %d: %s of %d, root %d: word %d is %llx, "
			"not %llx\n", g_rank, what, count, root, i,
			(unsigned long long)got[i],
			(unsigned long long)want(i));
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static int g_root;

static uint64_t of_root(int i)
{
	return of_rank(g_root, i);
}

static void own(uint64_t *buf, int count)
{
	for (int i = 0; i < count; i++)
		buf[i] = of_rank(g_rank, i);
}

static void all_of(int count, MPI_Op f)
{
	static uint64_t in[COUNT], out[COUNT];
	const MPI_Datatype type = MPI_UINT64_T;
	const MPI_Comm comm = MPI_COMM_WORLD;

	for (g_root = 0; g_root < g_ranks; g_root++) {
		own(in, count);
		MPI_Bcast(in, count, type, g_root, comm);
		expect("bcast", in, count, g_root, of_root);
		own(in, count);
		memset(out, 0, sizeof(out));
		MPI_Reduce(in, out, count, type, f, g_root, comm);
		if (g_rank == g_root) {
			expect("reduce", out, count, g_root, product);
			MPI_Reduce(MPI_IN_PLACE, in, count, type, f, g_root,
				   comm);
			expect("reduce in place", in, count, g_root, product);
		} else {
			MPI_Reduce(in, NULL, count, type, f, g_root, comm);
		}
	}
	own(in, count);
	MPI_Allreduce(in, out, count, type, f, comm);
	expect("allreduce", out, count, -1, product);
	MPI_Allreduce(MPI_IN_PLACE, in, count, type, f, comm);
	expect("allreduce in place", in, count, -1, product);
}

/* No rank leaves a barrier before the last one has entered it: each says so by
 * a counter that all increment before. */
static void barriers(void)
{
	MPI_Win win;
	int *count, seen = 0, one = 1;

	MPI_Win_allocate(g_rank == 0 ? sizeof(*count) : 0, 1, MPI_INFO_NULL,
			 MPI_COMM_WORLD, &count, &win);
	if (g_rank == 0)
		*count = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int round = 1; round <= 100; round++) {
		MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM,
			       win);
		MPI_Win_flush(0, win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 0, MPI_NO_OP, win);
		MPI_Win_flush(0, win);
		if (seen != round * g_ranks) {
			fprintf(stderr, "rank %d: %d ranks entered %d barriers "
				"%d times\n", g_rank, g_ranks, round, seen);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	const int counts[] = { 1, 2, 511, 512, 513, COUNT };
	MPI_Op f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
	MPI_Op_create(op, 0, &f);
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		all_of(counts[i], f);
	barriers();
	MPI_Op_free(&f);
	if (g_rank == 0)
		printf("flat: right\n");
	MPI_Finalize();
	return 0;
}
