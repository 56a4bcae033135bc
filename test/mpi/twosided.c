// SPDX-License-Identifier: BSD-2-Clause
/*
 * twosided.c - two-sided MPI that the bench programs do not use: receives from
 * any rank, truncated messages, MPI_Probe and MPI_Mprobe, synchronous sends,
 * cancelled receives, many unexpected messages at once. Any MPI, at least two
 * ranks; each rank sends to the next.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY	2000			/* more than any queue is long */
#define MAX	300000			/* bytes, far above any eager limit */

static int g_rank, g_ranks, g_next, g_prev;
static long g_checks;
static unsigned char *g_out, *g_in;

static void expect(const char *what, long long is, long long want)
{
	g_checks++;
	if (is == want)
		return;
	fprintf(stderr, "rank %d: %s is %lld, not %lld\n", g_rank, what, is,
		want);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void fill(int len)
{
	for (int i = 0; i < len; i++)
		g_out[i] = (unsigned char)(g_rank + i * 5 + (i >> 8) + len);
}

/* Check a message of the previous rank. */
static void expect_message(int len, int tag, const MPI_Status *st)
{
	int count;

	MPI_Get_count(st, MPI_BYTE, &count);
	expect("the length", count, len);
	expect("the source", st->MPI_SOURCE, g_prev);
	expect("the tag", st->MPI_TAG, tag);
	for (int i = 0; i < len; i++)
		if (g_in[i] != (unsigned char)(g_prev + i * 5 + (i >> 8) + len))
			expect("the byte's number", i, -1);
}

/* Found by a probe: seen first, then received */
static void probed(int len)
{
	MPI_Request req;
	MPI_Status st;
	int there = 0;

	fill(len);
	MPI_Isend(g_out, len, MPI_BYTE, g_next, 7, MPI_COMM_WORLD, &req);
	MPI_Iprobe(g_prev, 8, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
	expect("a message nobody sent", there, 0);
	MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
	expect("the probed tag", st.MPI_TAG, 7);
	MPI_Recv(g_in, MAX, MPI_BYTE, st.MPI_SOURCE, 7, MPI_COMM_WORLD, &st);
	expect_message(len, 7, &st);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* Claimed by a probe: a receive posted later for the same does not get it */
static void claimed(int len)
{
	unsigned char other = 0;
	MPI_Request req[2], late;
	MPI_Message msg;
	MPI_Status st;

	fill(len);
	MPI_Isend(g_out, len, MPI_BYTE, g_next, 9, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(g_out, 1, MPI_BYTE, g_next, 9, MPI_COMM_WORLD, &req[1]);
	MPI_Mprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &msg, &st);
	MPI_Irecv(&other, 1, MPI_BYTE, g_prev, 9, MPI_COMM_WORLD, &late);
	MPI_Wait(&late, MPI_STATUS_IGNORE);
	MPI_Mrecv(g_in, len, MPI_BYTE, &msg, &st);
	expect_message(len, 9, &st);
	expect("the second message", other, (unsigned char)(g_prev + len));
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
}

/* A synchronous send ends when, and not before, its message is received. */
static void synchronous(int len)
{
	MPI_Request req;
	MPI_Status st;
	int done = 0;

	fill(len);
	MPI_Issend(g_out, len, MPI_BYTE, g_next, 3, MPI_COMM_WORLD, &req);
	for (int i = 0; i < 20; i++)
		MPI_Test(&req, &done, MPI_STATUS_IGNORE);
	expect("an end before the receive", done, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Recv(g_in, MAX, MPI_BYTE, g_prev, 3, MPI_COMM_WORLD, &st);
	expect_message(len, 3, &st);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* Cancelled receives take nothing; one of two for the same is left. */
static void cancelled(int len)
{
	MPI_Request req[3];
	MPI_Status st;
	int gone = 0;

	for (int i = 0; i < 2; i++)
		MPI_Irecv(g_in, MAX, MPI_BYTE, i ? g_prev : MPI_ANY_SOURCE, 5,
			  MPI_COMM_WORLD, &req[i]);
	MPI_Cancel(&req[0]);
	MPI_Wait(&req[0], &st);
	MPI_Test_cancelled(&st, &gone);
	expect("cancelled", !!gone, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	fill(len);
	MPI_Isend(g_out, len, MPI_BYTE, g_next, 5, MPI_COMM_WORLD, &req[2]);
	MPI_Wait(&req[1], &st);
	expect_message(len, 5, &st);
	MPI_Wait(&req[2], MPI_STATUS_IGNORE);
}

/* A buffer too small for the message: an error, and nothing behind it */
static void truncated(int len)
{
	MPI_Request req;
	MPI_Status st;
	int rc, class, max = len / 2;

	fill(len);
	g_in[max] = 0xee;
	MPI_Isend(g_out, len, MPI_BYTE, g_next, 4, MPI_COMM_WORLD, &req);
	rc = MPI_Recv(g_in, max, MPI_BYTE, g_prev, 4, MPI_COMM_WORLD, &st);
	MPI_Error_class(rc, &class);
	expect("truncated", class, MPI_ERR_TRUNCATE);
	expect("the byte behind the buffer", g_in[max], 0xee);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* MANY from each to each before anybody receives, then in reverse by tag */
static void many(void)
{
	MPI_Request *req = malloc(MANY * sizeof(*req));
	int *out = malloc(MANY * sizeof(*out)), in;
	MPI_Status st;

	for (int i = 0; i < MANY; i++) {
		out[i] = g_rank * MANY + i;
		MPI_Isend(&out[i], 1, MPI_INT, g_next, i, MPI_COMM_WORLD,
			  &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = MANY - 1; i >= 0; i--) {
		MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
			 &st);
		expect("one of many", in, g_prev * MANY + i);
	}
	MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
	free(req);
	free(out);
}

int main(int argc, char **argv)
{
	static void (*const test[])(int len) = {
		probed, claimed, synchronous, cancelled, truncated,
	};
	static const int len[] = { 2, 100, 3000, 20000, MAX };
	long sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
	g_next = (g_rank + 1) % g_ranks;
	g_prev = (g_rank + g_ranks - 1) % g_ranks;
	g_out = malloc(MAX);
	g_in = malloc(MAX);
	for (size_t t = 0; t < sizeof(test) / sizeof(test[0]); t++)
		for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			test[t](len[i]);
			MPI_Barrier(MPI_COMM_WORLD);
		}
	many();
	free(g_out);
	free(g_in);
	MPI_Reduce(&g_checks, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (g_rank == 0)
		printf("twosided: %d ranks, %ld checks passed\n", g_ranks, sum);
	MPI_Finalize();
	return 0;
}
