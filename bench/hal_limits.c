// SPDX-License-Identifier: BSD-2-Clause
/*
 * hal_limits.c - the figures of the HAL, without libfabric and MPI above it.
 *
 * Packets both ways and one way, transfers (cDMA) between dmable regions, and
 * between ordinary memory where the backend offers that.
 *
 * Two processes have an interface each. The parent measures; the child does
 * what the shared word `mode` says.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/hal.h"
#include "unm_proc.h"
#include "unm_stat.h"

#define BIG		(16 * UNM_MIB)
#define SEED		7		/* pattern of the child's memory */
#define TYPE		0x21		/* any packet type but the empty one */
#define BURST		16		/* packets released at a time */
#define DEPTH		4		/* transfers in flight */
#define EMPTY_POLLS	4096		/* between two readings of the clock */
#define PATIENCE	10.0		/* seconds for setting up, and a pass */

enum mode { MODE_SETUP, MODE_PONG, MODE_SINK, MODE_IDLE, MODE_EXIT };

/* Memory by which the two processes agree on each step, beside the HAL. */
struct shared {
	_Atomic int mode;		/* what the child shall do */
	_Atomic int doing;		/* what it does */
	_Atomic int stage[2];		/* how far each is, parent first */
	struct hal_addr addr[2];
	struct hal_key key;		/* the child's dmable region */
	void *plain;			/* the child's ordinary memory */
};

enum stage { STAGE_NONE, STAGE_OPEN, STAGE_READY };

struct end {
	int me;				/* 0 parent, 1 child */
	struct hal *hal;
	struct hal_if *hif;
	struct hal_peer *peer;
	struct hal_mem *mem;
	void *dmable;
	void *plain;
};

static struct unm_pair pair = { .core = { 0, 1 }, .pass_s = 0.05 };
static struct shared *sh;
static pid_t child;

static void fail(const char *what, int err)
{
	fprintf(stderr, "hal_limits: %s%s%s\n", what, err ? ": " : "",
		err ? strerror(-err) : "");
	if (child > 0)
		unm_child_end(child);
	exit(1);
}

/* House-keeping; the pair lives and dies together. */
static void service(struct end *e)
{
	struct hal_event ev[4];
	int n = hal_if_service(e->hif, ev, 4);

	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			fail("the other process died", ev[i].status);
}

/* Does one round of house-keeping; fails when it has lasted too long. */
static void patience(struct end *e, double since, const char *what)
{
	service(e);
	hal_if_pump(e->hif);
	if (unm_now() - since > PATIENCE)
		fail(what, -FI_ETIMEDOUT);
}

static void reach(struct end *e, enum stage stage)
{
	double t0 = unm_now();

	atomic_store_explicit(&sh->stage[e->me], stage, memory_order_release);
	/* acquires the release above, in the other process */
	while (atomic_load_explicit(&sh->stage[!e->me],
				    memory_order_acquire) < (int)stage)
		patience(e, t0, "the other process does not come up");
}

static void end_open(struct end *e)
{
	double t0;
	int ret;

	ret = hal_get(NULL, &e->hal);
	if (ret)
		fail("hal_get", ret);
	ret = hal_if_open(e->hal, -1, &e->hif);
	if (ret)
		fail("hal_if_open", ret);
	ret = hal_mem_alloc(e->hal, e->hif->addr.board, BIG + UNM_GUARD,
			    &e->mem, &e->dmable);
	if (ret)
		fail("hal_mem_alloc", ret);
	e->plain = unm_alloc(BIG);
	unm_fill(e->dmable, BIG, SEED + !e->me);
	unm_fill(e->plain, BIG, SEED + !e->me);
	sh->addr[e->me] = e->hif->addr;
	if (e->me) {
		ret = hal_mem_key(e->hal, e->mem, &sh->key);
		if (ret)
			fail("hal_mem_key", ret);
		sh->plain = e->plain;
	}
	reach(e, STAGE_OPEN);
	t0 = unm_now();
	while ((ret = hal_connect(e->hif, &sh->addr[!e->me], &e->peer)) ==
	       -FI_EAGAIN)
		patience(e, t0, "hal_connect");
	if (ret)
		fail("hal_connect", ret);
	reach(e, STAGE_READY);
}

static void end_close(struct end *e)
{
	hal_mem_free(e->hal, e->mem);
	hal_if_close(e->hif);
	hal_put(e->hal);
}

static enum mode mode(void)
{
	return atomic_load_explicit(&sh->mode, memory_order_relaxed);
}

/* The child has left what it did before when this returns. */
static void set_mode(struct end *e, enum mode m)
{
	double t0 = unm_now();

	atomic_store_explicit(&sh->mode, m, memory_order_relaxed);
	/* acquires the release in child_main() */
	while (atomic_load_explicit(&sh->doing, memory_order_acquire) !=
	       (int)m)
		patience(e, t0, "the other process does not follow");
}

/* ---------------------------------------------------------------- packets */

static const struct hal_cell *peek(struct end *e)
{
	uint64_t head;

	hal_if_pump(e->hif);
	if (!e->peer->rx.cells)
		return NULL;
	return hal_rx_peek(e->peer, &head);
}

static void send_packet(struct end *e, size_t size, uint64_t number)
{
	static const char zeros[HAL_PKT_MAX];
	double t0 = 0;

	while (hal_pkt_send(e->peer, hal_head(TYPE, 0), &number, 1, zeros,
			    size - 8)) {
		if (t0 == 0)
			t0 = unm_now();
		patience(e, t0, "a packet is not taken");
	}
}

/* The next packet's first word: 0, or -1 when the mode changed meanwhile. */
static int receive(struct end *e, enum mode while_mode, uint64_t *number)
{
	const struct hal_cell *cell;
	unsigned int empty = 0;
	double t0 = 0;

	while (!(cell = peek(e))) {
		if (++empty % EMPTY_POLLS)
			continue;
		if (e->me && mode() != while_mode)
			return -1;
		if (t0 == 0)
			t0 = unm_now();
		if (e->me)
			service(e);
		else
			patience(e, t0, "no packet comes");
	}
	*number = hal_cell_word(cell, 0);
	hal_rx_release(e->peer);
	hal_rx_flush(e->peer);
	return 0;
}

static uint64_t ping(struct end *e, size_t size, uint64_t n, int rounds)
{
	uint64_t got;

	while (rounds--) {
		send_packet(e, size, ++n);
		receive(e, MODE_PONG, &got);
		if (got != n)
			fail("a packet brought a wrong number", 0);
	}
	return n;
}

static void packet_one_way(struct end *e, size_t size)
{
	double t0, t, v[UNM_PASSES];
	uint64_t n, first;

	/* the payload's length rides in the upper half of the number */
	n = ping(e, size, (uint64_t)size << 48, 64);
	for (int i = 0; i < UNM_PASSES; i++) {
		first = n;
		t0 = unm_now();
		do {
			n = ping(e, size, n, 64);
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		v[i] = t / (double)(n - first) / 2 * 1e9;
	}
	unm_row("packet_one_way", size, unm_median(v, UNM_PASSES), "ns");
}

static void pong(struct end *e)
{
	uint64_t n;

	while (mode() == MODE_PONG)
		if (!receive(e, MODE_PONG, &n))
			send_packet(e, n >> 48, n);
}

static void packet_rate(struct end *e, size_t size)
{
	double t0, t, v[UNM_PASSES];
	uint64_t first;

	for (int i = 0; i < UNM_PASSES; i++) {
		first = hal_tx_sent(e->peer);
		t0 = unm_now();
		do {
			for (int j = 0; j < 64; j++)
				send_packet(e, size, j);
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		while (hal_tx_done(e->peer) != hal_tx_sent(e->peer))
			patience(e, t0, "packets are not released");
		t = unm_now() - t0;
		v[i] = (hal_tx_sent(e->peer) - first) / t / 1e6;
	}
	unm_row("packet_rate", size, unm_median(v, UNM_PASSES), "M/s");
}

static void sink(struct end *e)
{
	const struct hal_cell *cell;
	unsigned int empty = 0, burst = 0;

	while (mode() == MODE_SINK) {
		cell = peek(e);
		if (cell) {
			(void)hal_cell_word(cell, 0);
			hal_rx_release(e->peer);
			if (++burst % BURST == 0)
				hal_rx_flush(e->peer);
			continue;
		}
		hal_rx_flush(e->peer);
		if (++empty % EMPTY_POLLS == 0)
			service(e);
	}
}

/* ------------------------------------------------------------------- cDMA */

static void dma_round(struct end *e, const struct hal_dma *dma, int depth)
{
	struct hal_dma_comp comp[DEPTH];
	int posted = 0, ended = 0, n, ret;
	double t0 = unm_now();

	while (ended < depth) {
		while (posted < depth) {
			ret = hal_dma_post(e->hif, dma, posted);
			if (ret == -FI_EAGAIN)
				break;
			if (ret)
				fail("hal_dma_post", ret);
			posted++;
		}
		n = hal_dma_poll(e->hif, comp, DEPTH);
		for (int i = 0; i < n; i++)
			if (comp[i].status)
				fail("a transfer failed", comp[i].status);
		ended += n;
		if (n == 0 && unm_now() - t0 > PATIENCE)
			fail("a transfer does not end", -FI_ETIMEDOUT);
	}
}

/* Make one transfer and check its data; data that were put are fetched again
 * for the check. */
static void dma_check(struct end *e, const struct hal_dma *dma)
{
	struct hal_dma get = *dma;
	uint64_t seed = SEED;

	if (dma->op == HAL_DMA_PUT) {
		seed = SEED + 2 + dma->len;
		unm_fill(dma->local, dma->len, seed);
		dma_round(e, dma, 1);
	}
	get.op = HAL_DMA_GET;
	unm_clear(get.local, get.len);
	dma_round(e, &get, 1);
	if (unm_check(get.local, get.len, seed) >= 0)
		fail("a transfer brought wrong data", 0);
}

static void dma_size(struct end *e, const char *name, struct hal_dma *dma,
		     size_t size)
{
	double t0, t, v[UNM_PASSES];
	size_t n;

	dma->len = size;
	dma_check(e, dma);
	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			dma_round(e, dma, DEPTH);
			n += DEPTH;
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		v[i] = n * size / t / 1e9;
	}
	unm_row(name, size, unm_median(v, UNM_PASSES), "GB/s");
}

static void dma_sizes(struct end *e, const char *name, struct hal_dma *dma)
{
	static const size_t sizes[] = {
		4 * UNM_KIB, 64 * UNM_KIB, UNM_MIB, 4 * UNM_MIB, BIG,
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		dma_size(e, name, dma, sizes[i]);
}

static void dma_all(struct end *e)
{
	struct hal_dma dma = { .peer = e->peer, .local = e->dmable };
	double t0 = unm_now();
	int ret;

	while ((ret = hal_mem_import(e->peer, &sh->key, &dma.rmem)) ==
	       -FI_EAGAIN)
		patience(e, t0, "hal_mem_import");
	if (ret)
		fail("hal_mem_import", ret);
	dma.op = HAL_DMA_GET;
	dma_sizes(e, "dma_get", &dma);
	dma.op = HAL_DMA_PUT;
	dma_sizes(e, "dma_put", &dma);
	hal_mem_release(e->peer, dma.rmem);
	if (!e->peer->dma_any) {
		printf("# dma_get_ordinary: not offered\n");
		return;
	}
	dma.op = HAL_DMA_GET;
	dma.rmem = NULL;
	dma.raddr = (uintptr_t)sh->plain;
	dma.local = e->plain;
	dma_sizes(e, "dma_get_ordinary", &dma);
}

static void idle(struct end *e, enum mode m)
{
	while (m != MODE_EXIT && mode() == m) {
		service(e);
		hal_if_pump(e->hif);
	}
}

/* ------------------------------------------------------------------ frame */

static void child_main(void *arg)
{
	struct end e = { .me = 1 };
	enum mode m;

	(void)arg;
	end_open(&e);
	do {
		m = mode();
		atomic_store_explicit(&sh->doing, m, memory_order_release);
		if (m == MODE_PONG)
			pong(&e);
		else if (m == MODE_SINK)
			sink(&e);
		else
			idle(&e, m);
	} while (m != MODE_EXIT);
	end_close(&e);
}

static void parent_main(struct end *e)
{
	const struct hal_caps *caps;

	end_open(e);
	caps = e->hif->caps;
	printf("# HAL limits, backend %s, profile %s, cores %d and %d, "
	       "medians of %d passes\n", caps->backend, caps->profile,
	       pair.core[0], pair.core[1], UNM_PASSES);
	unm_row_header();
	set_mode(e, MODE_PONG);
	packet_one_way(e, 8);
	packet_one_way(e, caps->pkt_payload);
	set_mode(e, MODE_SINK);
	packet_rate(e, 8);
	packet_rate(e, caps->pkt_payload);
	set_mode(e, MODE_IDLE);
	dma_all(e);
}

int main(int argc, char **argv)
{
	struct end e = { .me = 0 };

	unm_pair_options(&pair, argc, argv);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED || unm_pin(pair.core[0])) {
		perror("hal_limits");
		return 1;
	}
	child = unm_child(child_main, NULL, pair.core[1]);
	parent_main(&e);
	set_mode(&e, MODE_EXIT);
	waitpid(child, NULL, 0);
	end_close(&e);
	return 0;
}
