// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_rma.c - one-sided operations: rank 0 works on a window of rank 1, which
 * waits in a barrier. MPI_Put and MPI_Get of all sizes; MPI_Accumulate,
 * MPI_Fetch_and_op and MPI_Compare_and_swap of 8 bytes. Of each the latency
 * (put: a flush after each) and the rate (put_rate: a flush after 64, each at
 * a place of its own while these fit in ROOM). UNM_RMA_WIN=create: a window of
 * ordinary memory, else a window from MPI_Win_allocate.
 *
 * A figure is printed once its data have been checked. Wrong bytes end the job;
 * if an atomic had a wrong result, the next one is measured. Both are exit code
 * WRONG.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unm_bench.h"

#define CHECK_ROUNDS	10
#define WINDOW		64		/* operations before a flush */
#define PARTS		11		/* of the rounds: 10,000 stores to a
					 * window of shared memory take less
					 * time than an interruption of the
					 * process */
#define ROOM		(4 * UNM_MIB)
#define WRONG		3

struct rma {
	struct unm_run *run;
	size_t size;
	void (*op)(struct rma *r, int i);
	char *buf;			/* of rank 0 */
	char *mem;			/* the window's */
	size_t room;			/* bytes of each of the two */
	int slots;			/* places of this size */
	MPI_Win win;
	uint64_t value;			/* of rank 1's word, when all is done */
	bool wrong;			/* an atomic had a wrong result */
	int last;			/* index of the last atomic */
	uint64_t operand[WINDOW], compare[WINDOW], old[WINDOW];
};

/* ---- Operation i of a window of them --------------------------------- */

static void put(struct rma *r, int i)
{
	size_t at = (size_t)(i % r->slots) * r->size;

	MPI_Put(r->buf + at, (int)r->size, MPI_CHAR, 1, (MPI_Aint)at,
		(int)r->size, MPI_CHAR, r->win);
	r->run->sent += r->size;
}

static void get(struct rma *r, int i)
{
	size_t at = (size_t)(i % r->slots) * r->size;

	MPI_Get(r->buf + at, (int)r->size, MPI_CHAR, 1, (MPI_Aint)at,
		(int)r->size, MPI_CHAR, r->win);
}

static void acc(struct rma *r, int i)
{
	r->operand[i] = 1;
	r->value++;
	MPI_Accumulate(&r->operand[i], 1, MPI_UINT64_T, 1, 0, 1, MPI_UINT64_T,
		       MPI_SUM, r->win);
}

static void fop(struct rma *r, int i)
{
	r->operand[i] = 1;
	r->value++;
	r->last = i;
	MPI_Fetch_and_op(&r->operand[i], &r->old[i], MPI_UINT64_T, 1, 0,
			 MPI_SUM, r->win);
}

/* Each swap finds what the one before it left. */
static void cas(struct rma *r, int i)
{
	r->compare[i] = r->value++;
	r->operand[i] = r->value;
	r->last = i;
	MPI_Compare_and_swap(&r->operand[i], &r->compare[i], &r->old[i],
			     MPI_UINT64_T, 1, 0, r->win);
}

/* ---- Measuring ------------------------------------------------------- */

static void single(void *arg)
{
	struct rma *r = arg;

	r->op(r, 0);
	MPI_Win_flush(1, r->win);
}

static void window(void *arg)
{
	struct rma *r = arg;

	for (int i = 0; i < WINDOW; i++)
		r->op(r, i);
	MPI_Win_flush(1, r->win);
}

/* Seconds of one round, the median of PARTS; rank 1 only waits. */
static double timed(struct rma *r, void (*round)(void *))
{
	double part[PARTS], s = 0;
	int iters = 0, skip = 0;

	if (r->run->rank == 0)
		s = unm_loop(CHECK_ROUNDS, round, r) / CHECK_ROUNDS;
	unm_rounds(r->run, r->size, s, &iters, &skip);
	if (r->run->rank == 0) {
		unm_loop(skip, round, r);
		iters = iters / PARTS + 1;
		for (int i = 0; i < PARTS; i++)
			part[i] = unm_loop(iters, round, r) / iters;
		s = unm_median(part, PARTS);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return s;
}

static void print_one(struct rma *r, const char *name, double round_s)
{
	if (r->run->rank == 0)
		unm_row(name, r->size, round_s * 1e9, "ns");
}

static void print_rate(struct rma *r, const char *name, double round_s)
{
	char rate[32];

	snprintf(rate, sizeof(rate), "%s_rate", name);
	if (r->run->rank == 0)
		unm_row(rate, r->size, WINDOW / round_s / 1e6, "M/s");
}

/* Bytes that rank 0 has put are in rank 1's memory, and bytes that rank 0 gets
 * come from there. */
static void transfers(struct rma *r)
{
	uint64_t seed = r->size * 3 + 1;
	double one, all;
	size_t bytes;

	r->slots = r->size && r->room / r->size < WINDOW ?
		(int)(r->room / r->size) : WINDOW;
	bytes = (size_t)r->slots * r->size;
	if (r->run->rank == 1)
		unm_clear(r->mem, bytes);
	unm_fill(r->buf, bytes, seed);
	MPI_Win_sync(r->win);
	MPI_Barrier(MPI_COMM_WORLD);
	r->op = put;
	one = timed(r, single);
	all = timed(r, window);
	if (r->run->rank == 1) {
		MPI_Win_sync(r->win);
		unm_expect(r->run, r->mem, bytes, seed);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	print_one(r, "put", one);
	print_rate(r, "put", all);
	unm_clear(r->buf, bytes);
	r->op = get;
	one = timed(r, single);
	all = timed(r, window);
	if (r->run->rank == 0)
		unm_expect(r->run, r->buf, bytes, seed);
	MPI_Barrier(MPI_COMM_WORLD);
	print_one(r, "get", one);
	print_rate(r, "get", all);
}

/* At rank 0: is the word what it has to be, and did the last atomic see the
 * value before? */
static bool right(struct rma *r, const char *name)
{
	uint64_t none = 0, word = 0, want = r->value;
	bool seen = r->op == acc || r->old[r->last] + 1 == want;

	if (r->run->rank != 0)
		return true;
	MPI_Fetch_and_op(&none, &word, MPI_UINT64_T, 1, 0, MPI_NO_OP, r->win);
	MPI_Win_flush(1, r->win);
	if (word == want && seen)
		return true;
	fprintf(stderr, "%s: the word is %llu, not %llu%s\n", name,
		(unsigned long long)word, (unsigned long long)want,
		seen ? "" : ", and the last call returned a wrong value");
	r->value = word;
	r->wrong = true;
	return false;
}

static void atomics(struct rma *r)
{
	static const struct {
		const char *name;
		void (*op)(struct rma *r, int i);
	} kinds[] = { { "acc", acc }, { "fop", fop }, { "cas", cas } };
	double round_s;

	r->size = sizeof(uint64_t);
	if (r->run->rank == 1)
		memset(r->mem, 0, r->size);
	MPI_Win_sync(r->win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		r->op = kinds[i].op;
		round_s = timed(r, single);
		if (right(r, kinds[i].name))
			print_one(r, kinds[i].name, round_s);
		round_s = timed(r, window);
		if (right(r, kinds[i].name))
			print_rate(r, kinds[i].name, round_s);
	}
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
	if (run.rank == 0)
		unm_row_header();
	r.room = run.o.max > ROOM ? run.o.max : ROOM;
	bytes = (MPI_Aint)r.room + UNM_GUARD;
	r.buf = unm_buffer(&run, r.room);
	if (kind != NULL && strcmp(kind, "create") == 0) {
		r.mem = unm_buffer(&run, r.room);
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
	return r.wrong ? WRONG : 0;
}
