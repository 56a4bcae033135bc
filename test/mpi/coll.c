// SPDX-License-Identifier: BSD-2-Clause
/*
 * coll.c - collectives in a random order, with every result checked: each root,
 * in place too, data with holes, an operation that is not commutative, lengths
 * on both sides of each limit of mpich-patches/coll-shared.patch, on the world,
 * its duplicates and parts of it, which come and go. Between calls some ranks
 * wait at random, so that others run ahead. For any MPI.
 *
 *	coll [CALLS [SEED]]
 *
 * The operation multiplies the functions x -> a x + b modulo a prime, one after
 * the other, so a product in another order of the ranks is another function.
 */
#include <mpi.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRIME	2147483647u
#define WORDS	140000		/* more than a MiB */
#define COMMS	4
#define GUARD	UINT64_C(0x5a5a5a5a5a5a5a5a)

static int g_world, g_rank, g_ranks, g_call, g_root;
static MPI_Comm g_comm;
static MPI_Op g_op;
static MPI_Datatype g_holes;	/* one word, and one that is not of it */
static MPI_Datatype g_padded;	/* struct padded */
static uint64_t *g_in, *g_out;

/* Random numbers; those of g_all are the same for all ranks. */
static uint64_t g_all, g_own;

static uint64_t draw(uint64_t *state, uint64_t below)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (z ^ (z >> 31)) % below;
}

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

/* The word of a rank in this call */
static uint64_t of_rank(int rank, int i)
{
	return function(rank + 2 + (g_call & 1023), 3 * rank + i + g_call);
}

static uint64_t product(int i)
{
	uint64_t all = of_rank(0, i);

	for (int rank = 1; rank < g_ranks; rank++)
		all = then(all, of_rank(rank, i));
	return all;
}

static void fail(const char *what, int i, uint64_t got, uint64_t want)
{
	fprintf(stderr, "rank %d of %d, call %d, %s, root %d: word %d is %"
		PRIx64 ", not %" PRIx64 "\n", g_rank, g_ranks, g_call, what,
		g_root, i, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect(const char *what, const uint64_t *got, int i, uint64_t want)
{
	if (got[i] != want)
		fail(what, i, got[i], want);
}

/* Words of this rank; step 2: with holes, which keep GUARD. */
static void own(uint64_t *buf, int count, int step)
{
	for (int i = 0; i < count * step; i++)
		buf[i] = i % step ? GUARD : of_rank(g_rank, i / step);
	buf[count * step] = GUARD;
}

static void blank(uint64_t *buf, int words)
{
	for (int i = 0; i <= words; i++)
		buf[i] = GUARD;
}

/* Holes and what is behind the buffer are as before. */
static void untouched(const char *what, const uint64_t *buf, int count,
		      int step)
{
	for (int i = 0; i <= count * step; i++)
		if (i == count * step || i % step != 0)
			expect(what, buf, i, GUARD);
}

static void bcast(int count, bool holes)
{
	int step = holes ? 2 : 1;

	own(g_in, count, step);
	MPI_Bcast(g_in, count, holes ? g_holes : MPI_UINT64_T, g_root, g_comm);
	for (int i = 0; i < count; i++)
		expect("bcast", g_in, i * step, of_rank(g_root, i));
	untouched("bcast", g_in, count, step);
}

static void reduce(int count, bool in_place, bool all)
{
	const void *in = in_place && (all || g_rank == g_root) ? MPI_IN_PLACE :
			 g_in;
	uint64_t *out = in_place ? g_in : g_out;

	own(g_in, count, 1);
	blank(g_out, count);
	if (all)
		MPI_Allreduce(in, out, count, MPI_UINT64_T, g_op, g_comm);
	else
		MPI_Reduce(in, out, count, MPI_UINT64_T, g_op, g_root, g_comm);
	if (!all && g_rank != g_root)
		return;
	for (int i = 0; i < count; i++)
		expect(all ? "allreduce" : "reduce", out, i, product(i));
	expect("behind reduce", out, count, GUARD);
}

static void allgather(int count, bool in_place, bool holes)
{
	int step = holes ? 2 : 1;
	MPI_Datatype type = holes ? g_holes : MPI_UINT64_T;

	blank(g_out, count * g_ranks * step);
	own(g_in, count, 1);
	if (in_place)
		for (int i = 0; i < count; i++)
			g_out[(g_rank * count + i) * step] = g_in[i];
	MPI_Allgather(in_place ? MPI_IN_PLACE : g_in, count, MPI_UINT64_T,
		      g_out, count, type, g_comm);
	for (int i = 0; i < count * g_ranks; i++)
		expect("allgather", g_out, i * step,
		       of_rank(i / count, i % count));
	untouched("allgather", g_out, count * g_ranks, step);
}

static void alltoall(int count, bool in_place, bool holes)
{
	int step = holes ? 2 : 1;
	MPI_Datatype type = holes ? g_holes : MPI_UINT64_T;

	blank(g_out, count * g_ranks * step);
	own(g_in, count * g_ranks, 1);
	if (in_place)
		for (int i = 0; i < count * g_ranks; i++)
			g_out[i * step] = g_in[i];
	MPI_Alltoall(in_place ? MPI_IN_PLACE : g_in, count, MPI_UINT64_T, g_out,
		     count, type, g_comm);
	for (int i = 0; i < count * g_ranks; i++)
		expect("alltoall", g_out, i * step,
		       of_rank(i / count, g_rank * count + i % count));
	untouched("alltoall", g_out, count * g_ranks, step);
}

struct padded {
	char a;
	int b;
	double c;
};

/* Elements of several types and a hole, which no limit of bytes divides */
static void bcast_padded(int count)
{
	struct padded *at = (struct padded *)g_in;
	bool root = g_rank == g_root;

	for (int i = 0; i < count; i++)
		at[i] = (struct padded){ root ? (char)i : 0, root ? i : -1,
					 root ? g_call + i : 0 };
	MPI_Bcast(at, count, g_padded, g_root, g_comm);
	for (int i = 0; i < count; i++)
		if (at[i].a != (char)i || at[i].b != i ||
		    at[i].c != g_call + i)
			fail("bcast of structures", i, (uint64_t)at[i].b,
			     (uint64_t)i);
}

/* No rank leaves a barrier before the last one has entered it: what all have
 * counted by then is complete. */
static void barrier(MPI_Win win)
{
	int one = 1, seen;

	MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_flush(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 0, MPI_NO_OP, win);
	MPI_Win_flush(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (seen % g_ranks != 0)
		fail("barrier", 0, seen, 0);
}

/* Words of a call: mostly few, else around a limit, or anything */
static int draw_count(void)
{
	static const int limits[] = { 5, 512, 1024, 8192, 131072 };

	switch (draw(&g_all, 8)) {
	case 0:
		return limits[draw(&g_all, 5)] + (int)draw(&g_all, 3) - 1;
	case 1:
		return (int)draw(&g_all, 20000);
	case 2:
		return (int)draw(&g_all, 1500);
	default:
		return (int)draw(&g_all, 12);
	}
}

/* Words that one rank gives in an exchange: around a limit, or so many that
 * those of all ranks fit the buffers */
static int draw_given(void)
{
	static const int limits[] = { 5, 1024 };

	if (draw(&g_all, 4) == 0)
		return limits[draw(&g_all, 2)] + (int)draw(&g_all, 3) - 1;
	return draw_count() / g_ranks + 1;
}

static void call(MPI_Win win)
{
	int count = draw_count(), given = draw_given();
	bool in_place = draw(&g_all, 2), holes = draw(&g_all, 4) == 0;

	g_root = (int)draw(&g_all, g_ranks);
	if (holes && count > WORDS / 2 - 2)
		count = WORDS / 2 - 2;
	switch (draw(&g_all, 6)) {
	case 0:
		if (holes && in_place)
			bcast_padded(count);
		else
			bcast(count, holes);
		break;
	case 1:
		reduce(count, in_place, false);
		break;
	case 2:
		reduce(count, in_place, true);
		break;
	case 3:
		allgather(given, in_place, holes);
		break;
	case 4:
		/* a part for each rank: rounded up to as many words in all */
		alltoall((given + g_ranks - 1) / g_ranks, in_place, holes);
		break;
	default:
		if (g_comm == MPI_COMM_WORLD)
			barrier(win);
		else
			MPI_Barrier(g_comm);
	}
}

/* Let this rank be late. */
static void wait(void)
{
	if (draw(&g_own, 40) == 0)
		usleep((useconds_t)draw(&g_own, 300));
	else if (draw(&g_own, 10) == 0)
		sched_yield();
}

/* Another communicator: a duplicate, all ranks in reverse, or one of two
 * parts */
static MPI_Comm make_comm(void)
{
	MPI_Comm comm;

	switch (draw(&g_all, 3)) {
	case 0:
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		break;
	case 1:
		MPI_Comm_split(MPI_COMM_WORLD, 0, -g_world, &comm);
		break;
	default:
		MPI_Comm_split(MPI_COMM_WORLD,
			       g_world < (int)draw(&g_all, 5) + 1, 0, &comm);
	}
	return comm;
}

static void make_types(void)
{
	MPI_Datatype word;

	MPI_Type_vector(1, 1, 1, MPI_UINT64_T, &word);
	MPI_Type_create_resized(word, 0, 16, &g_holes);
	MPI_Type_commit(&g_holes);
	MPI_Type_free(&word);
	MPI_Type_create_struct(3, (const int[]){ 1, 1, 1 },
			       (const MPI_Aint[]){
				       offsetof(struct padded, a),
				       offsetof(struct padded, b),
				       offsetof(struct padded, c) },
			       (const MPI_Datatype[]){ MPI_CHAR, MPI_INT,
						       MPI_DOUBLE },
			       &g_padded);
	MPI_Type_commit(&g_padded);
}

static void all_calls(int calls, MPI_Win win)
{
	MPI_Comm comms[COMMS] = { MPI_COMM_WORLD };

	for (int i = 1; i < COMMS; i++)
		comms[i] = make_comm();
	for (g_call = 0; g_call < calls; g_call++) {
		int which = (int)draw(&g_all, 2 * COMMS);
		uint64_t all;

		if (g_call % 100 == 99) {
			MPI_Comm_free(&comms[COMMS - 1]);
			comms[COMMS - 1] = make_comm();
		}
		g_comm = which < COMMS ? comms[which] : MPI_COMM_WORLD;
		MPI_Comm_rank(g_comm, &g_rank);
		MPI_Comm_size(g_comm, &g_ranks);
		/* ranks of different parts draw alike before and after */
		all = draw(&g_all, UINT64_MAX);
		wait();
		call(win);
		g_all = all;
	}
	for (int i = 1; i < COMMS; i++)
		MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
	int calls = argc > 1 ? atoi(argv[1]) : 2000, *counter;
	MPI_Win win;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &g_world);
	g_all = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	g_own = g_all ^ (uint64_t)(g_world + 1) << 32;
	MPI_Op_create(op, 0, &g_op);
	make_types();
	g_in = malloc((2 * WORDS + 1) * sizeof(*g_in));
	g_out = malloc((2 * WORDS + 1) * sizeof(*g_out));
	if (g_in == NULL || g_out == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Win_allocate(g_world == 0 ? sizeof(*counter) : 0, 1, MPI_INFO_NULL,
			 MPI_COMM_WORLD, &counter, &win);
	if (g_world == 0)
		*counter = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	all_calls(calls, win);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Type_free(&g_padded);
	MPI_Type_free(&g_holes);
	MPI_Op_free(&g_op);
	if (g_world == 0)
		printf("coll: %d calls right\n", calls);
	MPI_Finalize();
	free(g_in);
	free(g_out);
	return 0;
}
