// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_coll.c - collective operations of all ranks: bcast, reduce, allreduce,
 * alltoall, allgather, barrier. A barrier follows each call, outside the timed
 * part. Each line: the name, the size of one rank's block (0: a barrier), the
 * average over the ranks with its unit, the least and the greatest rank. The
 * environment's UNM_COLL selects names, by commas. The root is rank 0. Results
 * are compared before the timing.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unm_bench.h"

#define CHECK_ROUNDS	2

struct coll {
	struct unm_run *run;
	size_t size;			/* bytes of one block */
	double *in, *out;		/* room for a block of each rank */
};

struct kind {
	const char *name;
	void (*call)(struct coll *c);
	/* what out[i] of this rank holds; out has so many blocks */
	double (*want)(const struct coll *c, size_t i);
	int (*blocks)(const struct coll *c);
	int in_blocks;			/* 0: one for each rank */
};

static int count_of(const struct coll *c)
{
	return (int)(c->size / sizeof(double));
}

/* ---- The calls ------------------------------------------------------- */

static void call_bcast(struct coll *c)
{
	MPI_Bcast(c->run->rank ? c->out : c->in, count_of(c), MPI_DOUBLE, 0,
		  MPI_COMM_WORLD);
}

static void call_reduce(struct coll *c)
{
	MPI_Reduce(c->in, c->out, count_of(c), MPI_DOUBLE, MPI_SUM, 0,
		   MPI_COMM_WORLD);
}

static void call_allreduce(struct coll *c)
{
	MPI_Allreduce(c->in, c->out, count_of(c), MPI_DOUBLE, MPI_SUM,
		      MPI_COMM_WORLD);
}

static void call_alltoall(struct coll *c)
{
	MPI_Alltoall(c->in, count_of(c), MPI_DOUBLE, c->out, count_of(c),
		     MPI_DOUBLE, MPI_COMM_WORLD);
}

static void call_allgather(struct coll *c)
{
	MPI_Allgather(c->in, count_of(c), MPI_DOUBLE, c->out, count_of(c),
		      MPI_DOUBLE, MPI_COMM_WORLD);
}

static void call_barrier(struct coll *c)
{
	(void)c;
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- What they give; in[i] of rank r is 1000 r + i % 1000 ------------- */

static double input(int rank, size_t i)
{
	return 1000.0 * rank + (double)(i % 1000);
}

static double want_root(const struct coll *c, size_t i)
{
	(void)c;
	return input(0, i);
}

static double want_sum(const struct coll *c, size_t i)
{
	double n = c->run->ranks;

	return 1000 * n * (n - 1) / 2 + n * (double)(i % 1000);
}

static double want_exchanged(const struct coll *c, size_t i)
{
	size_t n = (size_t)count_of(c);

	return input((int)(i / n), (size_t)c->run->rank * n + i % n);
}

static double want_gathered(const struct coll *c, size_t i)
{
	size_t n = (size_t)count_of(c);

	return input((int)(i / n), i % n);
}

static int blocks_none(const struct coll *c) { (void)c; return 0; }
static int blocks_one(const struct coll *c) { (void)c; return 1; }
static int blocks_all(const struct coll *c) { return c->run->ranks; }
static int blocks_root(const struct coll *c) { return c->run->rank == 0; }
static int blocks_others(const struct coll *c) { return c->run->rank != 0; }

static const struct kind kinds[] = {
	{ "bcast", call_bcast, want_root, blocks_others, 1 },
	{ "reduce", call_reduce, want_sum, blocks_root, 1 },
	{ "allreduce", call_allreduce, want_sum, blocks_one, 1 },
	{ "alltoall", call_alltoall, want_exchanged, blocks_all, 0 },
	{ "allgather", call_allgather, want_gathered, blocks_all, 1 },
	{ "barrier", call_barrier, want_root, blocks_none, 1 },
};

/* ---- Measuring ------------------------------------------------------- */

static double timed(const struct kind *k, struct coll *c, int n)
{
	double t0, total = 0;

	for (int i = 0; i < n; i++) {
		t0 = MPI_Wtime();
		k->call(c);
		total += MPI_Wtime() - t0;
		if (k->call != call_barrier)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	return total;
}

static double checked(const struct kind *k, struct coll *c, int n)
{
	size_t given, got, count = (size_t)count_of(c);
	double total = 0;

	given = count * (size_t)(k->in_blocks ? k->in_blocks : c->run->ranks);
	got = count * (size_t)k->blocks(c);
	for (int r = 0; r < n; r++) {
		for (size_t i = 0; i < given; i++)
			c->in[i] = input(c->run->rank, i);
		memset(c->out, 0xff, got * sizeof(double));
		MPI_Barrier(MPI_COMM_WORLD);
		total += timed(k, c, 1);
		for (size_t i = 0; i < got; i++) {
			if (c->out[i] == k->want(c, i))
				continue;
			fprintf(stderr, "rank %d: %s: wrong number at %zu\n",
				c->run->rank, k->name, i);
			MPI_Abort(MPI_COMM_WORLD, 3);
		}
	}
	return total;
}

static double measure(const struct kind *k, struct coll *c)
{
	double t0, round_s;
	int iters, skip;

	checked(k, c, CHECK_ROUNDS);
	t0 = MPI_Wtime();
	timed(k, c, CHECK_ROUNDS);
	round_s = (MPI_Wtime() - t0) / CHECK_ROUNDS;
	unm_rounds(c->run, c->size, round_s, &iters, &skip);
	timed(k, c, skip);
	MPI_Barrier(MPI_COMM_WORLD);
	return (c->run->o.validate ? checked(k, c, iters) :
		timed(k, c, iters)) / iters;
}

static void print_line(const struct kind *k, const struct coll *c, double mine)
{
	double sum, least, most;

	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (c->run->rank)
		return;
	printf("%-19s %-10zu%14.3f us%14.3f%14.3f\n", k->name,
	       k->call == call_barrier ? 0 : c->size,
	       sum / c->run->ranks * 1e6, least * 1e6, most * 1e6);
	fflush(stdout);
}

/* Is the name among those of the environment? */
static bool wanted(const char *name)
{
	const char *list = getenv("UNM_COLL"), *at = list;
	size_t len = strlen(name);

	if (list == NULL || *list == '\0')
		return true;
	while ((at = strstr(at, name)) != NULL) {
		if ((at == list || at[-1] == ',') &&
		    (at[len] == ',' || at[len] == '\0'))
			return true;
		at += len;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct unm_run run = { .o = {
		.min = sizeof(double),
		.max = 64 * UNM_KIB,
		.iters = { 1000, 100 },
		.skip = { 200, 10 },
	} };
	struct coll c = { .run = &run };
	size_t room;

	unm_start(&run, &argc, &argv, 1, INT_MAX);
	unm_header(&run, "Collectives",
		   "Bytes        Avg Latency       Min (us)      Max (us)");
	room = run.o.max * (size_t)run.ranks;
	c.in = unm_alloc(room);
	c.out = unm_alloc(room);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (!wanted(kinds[k].name))
			continue;
		for (c.size = run.o.min; c.size <= run.o.max;
		     c.size = unm_next(&run, c.size)) {
			if (c.size % sizeof(double))
				continue;
			print_line(&kinds[k], &c, measure(&kinds[k], &c));
			if (kinds[k].call == call_barrier)
				break;		/* it has no size */
		}
	}
	free(c.out);
	free(c.in);
	MPI_Finalize();
	return 0;
}
