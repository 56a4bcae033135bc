// SPDX-License-Identifier: BSD-2-Clause
/*
 * model_ring.c - a long message through a ring of cells, as the ZeroMQ engine
 * over RapidIO sends it: how many cells, and of which size?
 *
 * The sender writes one cell after the other by cDMA into a ring in the
 * receiver's dmable memory, and sends a packet for each; the receiver copies
 * the cell to its own memory and returns a packet, after which the cell is
 * free. Two threads, the HAL alone, under the timing model that FI_UNIMEM_MODEL
 * names.
 *
 *   model_ring [-t BYTES] [-n CELLS] [-m MAXCELL] [-p CORE,CORE]
 *
 * 1, 2, 4 ... CELLS (32) cells of 4 KiB, 8 KiB ... MAXCELL (32M) each, and a
 * message of BYTES (256M) or of PIECES_MAX cells, whichever is less, but of two
 * cells at least. A line "ring_N CELL ..." is the bandwidth through N cells.
 * The bytes of each piece differ from those of the pieces before it, and are
 * compared: the first and the last ones of each, all of the last piece. So a
 * packet that overtakes its data is noticed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal.h"
#include "unm_stat.h"

#define TYPE		0x21		/* any packet type but the empty one */
#define CELLS_MAX	32
#define CELL_MIN	(4 * UNM_KIB)
#define PIECES_MAX	4096		/* most cells of a message */
#define SHIFTS		(2 * CELLS_MAX)	/* pieces with different bytes */
#define STEP		64		/* bytes between the starts of two */
#define ENDS		64		/* bytes of an end that are compared */
#define PATIENCE	30.0		/* seconds for a message */

static struct hal *hal;
static struct hal_if *tx, *rx;
static struct hal_peer *to, *from;	/* rx as tx sees it, and reverse */
static struct hal_peer *back;		/* tx as rx reaches it */
static struct hal_mem *mem[2];		/* a cell of the sender and SHIFTS steps
					 * more; the ring */
static void *source, *ring;
static struct hal_rmem *rmem;		/* the ring as tx reaches it */
static size_t total = 256 * UNM_MIB, max_cell = 32 * UNM_MIB;
static int max_cells = CELLS_MAX;
static int core[2] = { -1, -1 };

/* The message under way: constant while the threads run. */
static size_t cell, pieces;
static int cells;
static char *sink;			/* the receiver's copy of a cell */

static void fail(const char *what, int err)
{
	fprintf(stderr, "model_ring: %s%s%s\n", what, err ? ": " : "",
		err ? strerror(-err) : "");
	exit(2);
}

static void in_time(double since, const char *what)
{
	if (unm_now() - since > PATIENCE)
		fail(what, -FI_ETIMEDOUT);
}

/* ---- Opening ----------------------------------------------------------- */

static void service(void)
{
	struct hal_event ev[4];
	int n;

	hal_if_service(tx, ev, 4);
	n = hal_if_service(rx, ev, 4);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_INBOUND)
			from = ev[i].peer;
}

static void connect_to(struct hal_if *hif, struct hal_if *other,
		       struct hal_peer **peer)
{
	double t0 = unm_now();
	int ret;

	while ((ret = hal_connect(hif, &other->addr, peer)) == -FI_EAGAIN) {
		service();
		in_time(t0, "hal_connect");
	}
	if (ret)
		fail("hal_connect", ret);
}

static void open_all(void)
{
	struct hal_key key;
	double t0 = unm_now();
	int ret;

	ret = hal_get(NULL, &hal);
	if (ret)
		fail("hal_get", ret);
	if (hal_if_open(hal, -1, &tx) || hal_if_open(hal, -1, &rx))
		fail("no interface is free", 0);
	connect_to(tx, rx, &to);
	connect_to(rx, tx, &back);
	while (!from || !to->rx.cells) {
		service();
		in_time(t0, "the connection does not come up");
	}
	if (hal_mem_alloc(hal, -1, max_cell + SHIFTS * STEP, &mem[0],
			  &source) ||
	    hal_mem_alloc(hal, -1, max_cell * max_cells, &mem[1], &ring))
		fail("no memory", 0);
	/* the first touch of the memory is not measured */
	memset(ring, 1, max_cell * max_cells);
	sink = unm_alloc(max_cell);
	hal_mem_key(hal, mem[1], &key);
	while ((ret = hal_mem_import(to, &key, &rmem)) == -FI_EAGAIN) {
		service();
		in_time(t0, "hal_mem_import");
	}
	if (ret)
		fail("hal_mem_import", ret);
}

static void close_all(void)
{
	hal_mem_release(to, rmem);
	hal_mem_free(hal, mem[0]);
	hal_mem_free(hal, mem[1]);
	hal_if_close(tx);
	hal_if_close(rx);
	hal_put(hal);
	free(sink);
}

/* ---- A message --------------------------------------------------------- */

/* The bytes of a piece. No other piece that may be in the cell has them. */
static char *piece_at(size_t piece)
{
	return (char *)source + piece % SHIFTS * STEP;
}

/* Compare the ends of a piece that the receiver has copied. */
static void check_ends(size_t piece)
{
	const char *want = piece_at(piece);

	if (memcmp(sink, want, ENDS) ||
	    memcmp(sink + cell - ENDS, want + cell - ENDS, ENDS))
		fail("wrong data", 0);
}

static void notify(struct hal_if *hif, struct hal_peer *peer)
{
	uint64_t word = 0;

	while (hal_pkt_send(peer, hal_head(TYPE, 0), &word, 1, NULL, 0))
		hal_if_pump(hif);
}

/* Take the packets of a peer that are there; returns their number. */
static size_t notified(struct hal_if *hif, struct hal_peer *peer)
{
	uint64_t head;
	size_t n = 0;

	hal_if_pump(hif);
	while (hal_rx_peek(peer, &head)) {
		hal_rx_release(peer);
		n++;
	}
	if (n)
		hal_rx_flush(peer);
	return n;
}

static void *receive(void *arg)
{
	size_t taken = 0, there = 0;

	(void)arg;
	if (core[1] >= 0)
		unm_pin(core[1]);
	while (taken < pieces) {
		there += notified(rx, from);
		for (; taken < there; taken++) {
			memcpy(sink, (char *)ring + taken % cells * cell, cell);
			check_ends(taken);
			notify(rx, back);
		}
	}
	return NULL;
}

/* Post the transfer of a piece. False: the engine takes no more now. */
static bool write_cell(size_t piece)
{
	struct hal_dma dma = {
		.op = HAL_DMA_PUT, .peer = to, .rmem = rmem,
		.local = piece_at(piece), .raddr = piece % cells * cell,
		.len = cell,
	};
	int ret = hal_dma_post(tx, &dma, piece);

	if (ret && ret != -FI_EAGAIN)
		fail("hal_dma_post", ret);
	return !ret;
}

static double send_all(void)
{
	size_t written = 0, free_cells = cells, ready = 0;
	bool ended[CELLS_MAX] = { false };	/* by cell, to be notified */
	struct hal_dma_comp comp[CELLS_MAX];
	double t0 = unm_now();

	for (size_t done = 0; done < pieces;) {
		size_t n = notified(tx, to);
		int ends;

		done += n;
		free_cells += n;
		while (free_cells && written < pieces && write_cell(written)) {
			free_cells--;
			written++;
		}
		ends = hal_dma_poll(tx, comp, CELLS_MAX);
		for (int i = 0; i < ends; i++) {
			if (comp[i].status)
				fail("a transfer failed", comp[i].status);
			ended[comp[i].token % cells] = true;
		}
		/* a poll returns completions in any order */
		for (; ended[ready % cells]; ready++) {
			ended[ready % cells] = false;
			notify(tx, to);
		}
		if (unm_now() - t0 > PATIENCE)
			fail("the message takes too long", -FI_ETIMEDOUT);
	}
	return unm_now() - t0;
}

static void message(int n, size_t bytes)
{
	char name[16];
	pthread_t thread;
	double s;

	cells = n;
	cell = bytes;
	pieces = total / bytes;
	if (pieces > PIECES_MAX)
		pieces = PIECES_MAX;
	if (pieces < 2)
		pieces = 2;
	unm_fill(source, cell + SHIFTS * STEP - UNM_GUARD, bytes + n);
	memset(sink, 0, cell);
	if (pthread_create(&thread, NULL, receive, NULL))
		fail("no thread", 0);
	s = send_all();
	pthread_join(thread, NULL);
	if (memcmp(sink, piece_at(pieces - 1), cell))
		fail("wrong data", 0);
	snprintf(name, sizeof(name), "ring_%d", n);
	unm_row(name, bytes, pieces * cell / s / 1e6, "MB/s");
}

/* False: a wrong option. */
static bool parse_opt(int c)
{
	size_t *size = c == 't' ? &total : &max_cell;
	char *end;

	switch (c) {
	case 'p':
		return sscanf(optarg, "%d,%d", &core[0], &core[1]) == 2;
	case 'n':
		max_cells = (int)strtol(optarg, NULL, 10);
		return max_cells >= 1 && max_cells <= CELLS_MAX;
	case 't':
	case 'm':
		return unm_parse_size(optarg, &end, size) == 0 && *end == 0 &&
			*size >= CELL_MIN;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:n:m:p:")) != -1) {
		if (parse_opt(c))
			continue;
		fprintf(stderr, "usage: model_ring [-t BYTES] [-n CELLS] "
			"[-m MAXCELL] [-p CORE,CORE]\n");
		return 2;
	}
	if (core[0] >= 0)
		unm_pin(core[0]);
	open_all();
	unm_row_header();
	for (size_t bytes = CELL_MIN; bytes <= max_cell; bytes *= 2)
		for (int n = 1; n <= max_cells; n *= 2)
			message(n, bytes);
	close_all();
	return 0;
}
