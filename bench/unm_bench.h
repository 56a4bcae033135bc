/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_bench.h - functions that the MPI bench programs share: options, start and
 * end of a program, counted sends, loops, checks of received data.
 *
 * The method is that of the OSU micro-benchmarks: warm-up rounds, iteration
 * counts that depend on the size, one line per size.
 */
#ifndef UNM_BENCH_H
#define UNM_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unm_stat.h"

#define UNM_LARGE	(8 * UNM_KIB)	/* above: the "large" counts */
#define UNM_TAG		1
#define UNM_TAG_ACK	2

#define UNM_SIZES	16		/* sizes that one -m can list */

struct unm_opts {
	size_t min, max;		/* message sizes, bytes */
	size_t size[UNM_SIZES];		/* these only, if there are any */
	int sizes;
	int iters[2];			/* timed rounds: small, large */
	int skip[2];			/* warm-up rounds: small, large */
	int window;			/* messages in flight */
	int pairs;			/* unm_mbw_mr */
	double budget;			/* seconds per size, 0: no limit */
	bool validate;			/* check every message */
	bool both;			/* windows in both directions */
	bool alloc;			/* buffers from MPI_Alloc_mem */
};

struct unm_run {
	struct unm_opts o;
	int rank, ranks;
	uint64_t sent;			/* payload bytes handed to MPI */
};

/*
 * Start MPI, read the options over the program's defaults in run->o; exits
 * with a usage text on a bad option or another number of ranks than allowed.
 */
void unm_start(struct unm_run *run, int *argc, char ***argv, int min_ranks,
	       int max_ranks);

/* Rank 0 prints the two header lines of a table. */
void unm_header(const struct unm_run *run, const char *title,
		const char *columns);

/* Print "# sent_bytes_rank0 N" and "# sent_bytes_rank1 N". */
void unm_print_sent(struct unm_run *run);

/* The size after this one: the next of the list, or of 0, 1, 2, 4 ...; behind
 * the last one a size above run->o.max. */
size_t unm_next(const struct unm_run *run, size_t size);

/*
 * Rounds for this size. With -t the counts shrink to what fits in the
 * budget when one round takes round_s seconds; all ranks get rank 0's answer.
 */
void unm_rounds(struct unm_run *run, size_t size, double round_s, int *iters,
		int *skip);

/* Memory for messages or a window: of unm_alloc(), with -d of MPI_Alloc_mem. */
void *unm_buffer(const struct unm_run *run, size_t bytes);
void unm_buffer_free(const struct unm_run *run, void *buf);

/* Check a received message; a wrong byte ends the whole job. */
void unm_expect(const struct unm_run *run, const void *buf, size_t size,
		uint64_t seed);

static inline void unm_send(struct unm_run *run, const void *buf, size_t size,
			    int peer, int tag)
{
	run->sent += size;
	MPI_Send(buf, (int)size, MPI_CHAR, peer, tag, MPI_COMM_WORLD);
}

static inline void unm_recv(void *buf, size_t size, int peer, int tag)
{
	MPI_Recv(buf, (int)size, MPI_CHAR, peer, tag, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

/* Seconds that n rounds take; inlined, so that a round costs no call. */
static inline double unm_loop(int n, void (*round)(void *), void *arg)
{
	double t0 = MPI_Wtime();

	for (int i = 0; i < n; i++)
		round(arg);
	return MPI_Wtime() - t0;
}

#endif
