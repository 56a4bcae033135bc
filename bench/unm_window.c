// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_window.c - a window of messages one way, one short answer back; or a
 * window each way.
 *
 * Timed rounds use one buffer for the whole window, as the OSU programs do.
 * Checked rounds give each message its own buffer while these fit in
 * CHECK_BYTES; beyond, messages that share a buffer carry the same bytes.
 */
#include <stdlib.h>

#include "unm_window.h"

#define CHECK_BYTES	(16 * UNM_MIB)
#define CHECK_ROUNDS	2

enum { OUT, IN };

static size_t stride(size_t size)
{
	return (size + UNM_GUARD + 63) & ~(size_t)63;
}

static char *slot(struct unm_window *w, int way, int i)
{
	return w->buf[way] + (size_t)(i % w->slots) * stride(w->size);
}

static void post_sends(struct unm_window *w, MPI_Request *req)
{
	for (int i = 0; i < w->run->o.window; i++)
		MPI_Isend(slot(w, OUT, i), (int)w->size, MPI_CHAR, w->peer,
			  UNM_TAG, MPI_COMM_WORLD, &req[i]);
	w->run->sent += w->run->o.window * w->size;
}

static void post_recvs(struct unm_window *w, MPI_Request *req)
{
	for (int i = 0; i < w->run->o.window; i++)
		MPI_Irecv(slot(w, IN, i), (int)w->size, MPI_CHAR, w->peer,
			  UNM_TAG, MPI_COMM_WORLD, &req[i]);
}

static void send_round(void *arg)
{
	struct unm_window *w = arg;
	char ack[4];

	post_sends(w, w->req);
	MPI_Waitall(w->run->o.window, w->req, w->status);
	unm_recv(ack, sizeof(ack), w->peer, UNM_TAG_ACK);
}

static void recv_round(void *arg)
{
	struct unm_window *w = arg;
	char ack[4] = "ack";

	post_recvs(w, w->req);
	MPI_Waitall(w->run->o.window, w->req, w->status);
	unm_send(w->run, ack, sizeof(ack), w->peer, UNM_TAG_ACK);
}

static void both_round(void *arg)
{
	struct unm_window *w = arg;
	int n = w->run->o.window;

	post_recvs(w, w->req);
	post_sends(w, w->req + n);
	MPI_Waitall(2 * n, w->req, w->status);
}

static double plain(struct unm_window *w, int n)
{
	if (w->run->o.both)
		return unm_loop(n, both_round, w);
	if (w->sender)
		return unm_loop(n, send_round, w);
	return unm_loop(n, recv_round, w);
}

static int check_slots(const struct unm_window *w)
{
	size_t n = CHECK_BYTES / stride(w->size);

	if (n > (size_t)w->run->o.window)
		return w->run->o.window;
	return n ? (int)n : 1;
}

/* Every message checked; the time is that of the transfers alone. */
static double checked(struct unm_window *w, int n)
{
	bool sends = w->sender || w->run->o.both;
	bool receives = !w->sender || w->run->o.both;
	uint64_t seed;
	double total = 0;

	w->slots = check_slots(w);
	for (int i = 0; i < n; i++) {
		seed = ((uint64_t)i + w->size) * w->slots;
		for (int j = 0; w->peer >= 0 && j < w->slots; j++) {
			if (sends)
				unm_fill(slot(w, OUT, j), w->size,
					 seed + j + !w->sender);
			if (receives)
				unm_clear(slot(w, IN, j), w->size);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (w->peer < 0)
			continue;
		total += plain(w, 1);
		for (int j = 0; receives && j < w->slots; j++)
			unm_expect(w->run, slot(w, IN, j), w->size,
				   seed + j + w->sender);
	}
	w->slots = 1;
	return total;
}

void unm_window_open(struct unm_window *w, struct unm_run *run, int peer,
		     bool sender)
{
	size_t most = stride(run->o.max);
	size_t bytes = most > CHECK_BYTES ? most : CHECK_BYTES;

	w->run = run;
	w->peer = peer;
	w->sender = sender;
	w->slots = 1;
	w->buf[OUT] = sender || run->o.both ? unm_buffer(run, bytes) : NULL;
	w->buf[IN] = !sender || run->o.both ? unm_buffer(run, bytes) : NULL;
	w->req = calloc(2 * (size_t)run->o.window, sizeof(*w->req));
	w->status = calloc(2 * (size_t)run->o.window, sizeof(*w->status));
	if (!w->req || !w->status)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

double unm_window_measure(struct unm_window *w)
{
	bool all = w->run->o.validate;
	bool idle = w->peer < 0;
	double round_s = 0;
	int iters, skip;

	checked(w, CHECK_ROUNDS);
	if (!idle)
		round_s = plain(w, CHECK_ROUNDS) / CHECK_ROUNDS;
	unm_rounds(w->run, w->size, round_s, &iters, &skip);
	if (!idle)
		plain(w, skip);
	MPI_Barrier(MPI_COMM_WORLD);
	if (all)
		return checked(w, iters) / iters;
	return idle ? 0 : plain(w, iters) / iters;
}

void unm_window_close(struct unm_window *w)
{
	free(w->status);
	free(w->req);
	unm_buffer_free(w->run, w->buf[IN]);
	unm_buffer_free(w->run, w->buf[OUT]);
}
