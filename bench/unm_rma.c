// SPDX-License-Identifier: BSD-2-Clause
/*
 * One-sided latency: rank 0 works on a window of rank 1 and flushes after each
 * operation; rank 1 waits in a barrier. MPI_Put and MPI_Get of all sizes, puts
 * with a flush after 64 of them (put_window: time of one put), then
 * MPI_Fetch_and_op and MPI_Compare_and_swap of 8 bytes. UNM_RMA_WIN=create: a
 * window of ordinary memory, else one from MPI_Win_allocate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unm_bench.h"

#define CHECK_ROUNDS	10
#define WINDOW		64	/* puts before a flush */

struct rma {
	struct unm_run *run;
	size_t size;
	char *buf;			/* of rank 0 */
	char *mem;			/* the window's */
	MPI_Win win;
	uint64_t one, old, next;
};

static void put(void *arg)
{
	struct rma *r = arg;

	MPI_Put(r->buf, (int)r->size, MPI_CHAR, 1, 0, (int)r->size, MPI_CHAR,
		r->win);
	MPI_Win_flush(1, r->win);
	r->run->sent += r->size;
}

static void get(void *arg)
{
	struct rma *r = arg;

	MPI_Get(r->buf, (int)r->size, MPI_CHAR, 1, 0, (int)r->size, MPI_CHAR,
		r->win);
	MPI_Win_flush(1, r->win);
}

/* A window of puts, and one flush. */
static void put_window(void *arg)
{
	struct rma *r = arg;

	for (int i = 0; i < WINDOW; i++)
		MPI_Put(r->buf, (int)r->size, MPI_CHAR, 1, 0, (int)r->size,
			MPI_CHAR, r->win);
	MPI_Win_flush(1, r->win);
	r->run->sent += WINDOW * r->size;
}

static void fetch_and_op(void *arg)
{
	struct rma *r = arg;

	MPI_Fetch_and_op(&r->one, &r->old, MPI_UINT64_T, 1, 0, MPI_SUM,
			 r->win);
	MPI_Win_flush(1, r->win);
}

/* Each swap finds what the last one left. */
static void compare_and_swap(void *arg)
{
	struct rma *r = arg;
	uint64_t now = r->next++;

	MPI_Compare_and_swap(&r->next, &now, &r->old, MPI_UINT64_T, 1, 0,
			     r->win);
	MPI_Win_flush(1, r->win);
}

static void fail(struct rma *r, const char *what)
{
	fprintf(stderr, "%s of %zu bytes: wrong result\n", what, r->size);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Seconds of one; rank 1 only waits. */
static double measure(struct rma *r, void (*round)(void *))
{
	int iters = 0, skip = 0;
	double s = 0;

	if (r->run->rank == 0)
		s = unm_loop(CHECK_ROUNDS, round, r) / CHECK_ROUNDS;
	unm_rounds(r->run, r->size, s, &iters, &skip);
	if (r->run->rank == 0) {
		unm_loop(skip, round, r);
		s = unm_loop(iters, round, r) / iters;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return s;
}

static void report(struct rma *r, const char *what, double s)
{
	if (r->run->rank != 0)
		return;
	printf("%-20s%-10zu%20.3f\n", what, r->size, s * 1e6);
	fflush(stdout);
}

/* What rank 0 has put is in rank 1's memory, and what it gets comes from
 * there. */
static void transfers(struct rma *r)
{
	uint64_t seed = r->size * 3 + 1;

	if (r->run->rank == 1)
		unm_clear(r->mem, r->size);
	unm_fill(r->buf, r->size, seed);
	MPI_Win_sync(r->win);
	MPI_Barrier(MPI_COMM_WORLD);
	report(r, "put", measure(r, put));
	report(r, "put_window", measure(r, put_window) / WINDOW);
	if (r->run->rank == 1) {
		MPI_Win_sync(r->win);
		unm_expect(r->run, r->mem, r->size, seed);
	}
	unm_clear(r->buf, r->size);
	report(r, "get", measure(r, get));
	if (r->run->rank == 0)
		unm_expect(r->run, r->buf, r->size, seed);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void atomics(struct rma *r)
{
	uint64_t *word = (uint64_t *)(void *)r->mem;

	r->size = sizeof(*word);
	r->one = 1;
	if (r->run->rank == 1)
		*word = 0;
	MPI_Win_sync(r->win);
	MPI_Barrier(MPI_COMM_WORLD);
	report(r, "fetch_and_op", measure(r, fetch_and_op));
	r->next = r->old + 1;
	report(r, "compare_and_swap", measure(r, compare_and_swap));
	if (r->run->rank == 0 && r->old + 1 != r->next)
		fail(r, "compare_and_swap");
}

int main(int argc, char **argv)
{
	struct unm_run run = { .o = {
		.max = 4 * UNM_MIB,
		.iters = { 10000, 1000 },
		.skip = { 1000, 100 },
	} };
	const char *kind = getenv("UNM_RMA_WIN");
	struct rma r = { .run = &run };
	MPI_Aint bytes;

	unm_start(&run, &argc, &argv, 2, 2);
	unm_header(&run, "One-sided Latency",
		   "Bytes               Latency (us)");
	bytes = (MPI_Aint)run.o.max + UNM_GUARD;
	r.buf = unm_alloc((size_t)bytes);
	if (kind != NULL && strcmp(kind, "create") == 0) {
		r.mem = unm_alloc((size_t)bytes);
		MPI_Win_create(r.mem, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
			       &r.win);
	} else {
		MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
				 &r.mem, &r.win);
	}
	MPI_Win_lock_all(0, r.win);
	for (r.size = run.o.min; r.size <= run.o.max;
	     r.size = unm_next(&run, r.size))
		transfers(&r);
	atomics(&r);
	MPI_Win_unlock_all(r.win);
	MPI_Win_free(&r.win);
	unm_print_sent(&run);
	MPI_Finalize();
	return 0;
}
