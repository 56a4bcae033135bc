// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_lat.c - latency of messages: rank 0 sends, rank 1 answers with a message
 * of the same size, both by blocking calls. The figure is half the average time
 * of a round trip.
 */
#include <stdio.h>

#include "unm_bench.h"

#define CHECK_ROUNDS	2

struct lat {
	struct unm_run *run;
	size_t size;
	char *out, *in;
};

static void ping(void *arg)
{
	struct lat *l = arg;

	unm_send(l->run, l->out, l->size, 1, UNM_TAG);
	unm_recv(l->in, l->size, 1, UNM_TAG);
}

static void pong(void *arg)
{
	struct lat *l = arg;

	unm_recv(l->in, l->size, 0, UNM_TAG);
	unm_send(l->run, l->out, l->size, 0, UNM_TAG);
}

static double plain(struct lat *l, int n)
{
	if (l->run->rank == 0)
		return unm_loop(n, ping, l);
	return unm_loop(n, pong, l);
}

/* Every message checked; the time is that of the transfers alone. */
static double checked(struct lat *l, int n)
{
	uint64_t me = l->run->rank, seed;
	double total = 0;

	for (int i = 0; i < n; i++) {
		seed = 2 * ((uint64_t)i + l->size);
		unm_fill(l->out, l->size, seed + me);
		unm_clear(l->in, l->size);
		MPI_Barrier(MPI_COMM_WORLD);
		total += plain(l, 1);
		unm_expect(l->run, l->in, l->size, seed + !me);
	}
	return total;
}

static double measure(struct lat *l)
{
	bool all = l->run->o.validate;
	double round_s;
	int iters, skip;

	checked(l, CHECK_ROUNDS);
	round_s = plain(l, CHECK_ROUNDS) / CHECK_ROUNDS;
	unm_rounds(l->run, l->size, round_s, &iters, &skip);
	MPI_Barrier(MPI_COMM_WORLD);
	plain(l, skip);
	return (all ? checked(l, iters) : plain(l, iters)) / iters;
}

int main(int argc, char **argv)
{
	struct unm_run run = { .o = {
		.max = 4 * UNM_MIB,
		.iters = { 10000, 1000 },
		.skip = { 1000, 100 },
	} };
	struct lat l = { .run = &run };
	double round_s;

	unm_start(&run, &argc, &argv, 2, 2);
	unm_header(&run, "Latency", "        Latency (us)");
	l.out = unm_buffer(&run, run.o.max);
	l.in = unm_buffer(&run, run.o.max);
	for (l.size = run.o.min; l.size <= run.o.max;
	     l.size = unm_next(&run, l.size)) {
		round_s = measure(&l);
		if (run.rank == 0) {
			printf("%-10zu%20.3f\n", l.size, round_s * 1e6 / 2);
			fflush(stdout);
		}
	}
	unm_print_sent(&run);
	unm_buffer_free(&run, l.in);
	unm_buffer_free(&run, l.out);
	MPI_Finalize();
	return 0;
}
