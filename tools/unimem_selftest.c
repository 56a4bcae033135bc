/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_selftest.c - a walk to every board, by hal.h alone: what a packet, a
 * remote store and a transfer need, and whether what arrives is what was sent.
 *
 * The other side is a second interface of this process where it may have one on
 * that board; else another process there that runs with --selftest=wait.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hal/hal.h"
#include "unimem_selftest.h"

#define ROUNDS		10000		/* packets there and back */
#define STORES		200		/* stretches of receive space */
#define STRETCH		4096u		/* the longest of them, bytes */
#define BYTES		(UINT64_C(4) << 20)	/* of a transfer */
#define PATIENCE	2.0		/* seconds for an answer */

enum st_type {
	ST_PING = 0x50,			/* word: to be echoed */
	ST_SPACE,			/* offset and length, seed */
	ST_MEM,				/* wanted: a region's key */
	ST_CHECK,			/* seed: what the region must hold */
	ST_ANSWER,			/* word or key; flags 1: it was wrong */
};

/* One side; the partner is the other side if it is in this process too. */
struct side {
	struct hal_if *hif;
	struct side *partner;
	struct hal_mem *mem;		/* for others to reach */
	uint8_t *bytes;
};

static struct hal *hal;

/* ---- Small things ---------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint8_t pattern(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed + i) * UINT64_C(0x9E3779B97F4A7C15);

	return (uint8_t)(z >> 56 ^ z >> 24);
}

static void fill(uint8_t *at, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		at[i] = pattern(seed, i);
}

static bool filled(const uint8_t *at, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		if (at[i] != pattern(seed, i))
			return false;
	return true;
}

/* ---- The side that answers ------------------------------------------- */

static bool answer(struct side *s, struct hal_peer *peer, uint8_t flags,
		   const uint64_t w[2])
{
	struct hal_peer *same;
	double end = now() + PATIENCE;
	int ret = 0;

	while (!peer->tx.open && now() < end) {
		ret = hal_connect(s->hif, &peer->addr, &same);
		if (ret != 0 && ret != -FI_EAGAIN)
			return false;
		hal_if_pump(s->hif);
	}
	if (!peer->tx.open)		/* it is ending: the next service */
		return false;		/* reports that */
	do {
		ret = hal_pkt_send(peer, hal_head(ST_ANSWER, flags), w, 2,
				   NULL, 0);
		hal_if_pump(s->hif);
	} while (ret == -FI_EAGAIN && now() < end);
	return ret == 0;
}

static void give_region(struct side *s, struct hal_peer *peer)
{
	struct hal_key key = { { 0, 0 } };
	void *addr;
	int ret = 0;

	if (s->mem == NULL) {
		ret = hal_mem_alloc(hal, s->hif->addr.board, BYTES, &s->mem,
				    &addr);
		if (ret == 0)
			s->bytes = addr;
	}
	if (ret == 0)
		ret = hal_mem_key(hal, s->mem, &key);
	answer(s, peer, ret != 0, key.word);
}

static void serve(struct side *s, struct hal_peer *peer,
		  const struct hal_cell *cell, uint64_t head)
{
	uint64_t w[2] = { hal_cell_word(cell, 0), hal_cell_word(cell, 1) };
	uint32_t space = s->hif->caps->space_bytes;
	uint32_t off = (uint32_t)w[0], len = (uint32_t)(w[0] >> 32);
	bool wrong = false;

	switch (hal_head_type(head)) {
	case ST_PING:
		break;
	case ST_SPACE:
		wrong = off > space || len > space - off ||
			!filled((const uint8_t *)hal_space(peer, off), len,
				w[1]);
		break;
	case ST_MEM:
		give_region(s, peer);
		return;
	case ST_CHECK:
		wrong = s->bytes == NULL || !filled(s->bytes, BYTES, w[0]);
		break;
	default:
		return;
	}
	answer(s, peer, wrong, w);
}

/* Events and packets of the side that answers; false: nothing came. */
static bool partner_step(struct side *s)
{
	const struct hal_cell *cell;
	struct hal_event ev[4];
	bool came = false;
	uint64_t head;
	int n;

	hal_if_pump(s->hif);
	n = hal_if_service(s->hif, ev, 4);
	for (uint32_t i = 0; i < s->hif->ninbound; i++) {
		struct hal_peer *peer = s->hif->inbound[i];

		while (peer->rx.cells != NULL &&
		       (cell = hal_rx_peek(peer, &head)) != NULL) {
			serve(s, peer, cell, head);
			hal_rx_release(peer);
			hal_rx_flush(peer);
			came = true;
		}
	}
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			hal_peer_free(ev[i].peer);
	return came;
}

/* ---- The side that asks ---------------------------------------------- */

static void step(struct side *s)
{
	struct hal_event ev[4];

	if (s->partner != NULL)
		partner_step(s->partner);
	hal_if_pump(s->hif);
	hal_if_service(s->hif, ev, 4);	/* ends show as silence */
}

static const char *ask(struct side *s, struct hal_peer *peer, uint8_t type,
		       const uint64_t w[2], uint64_t got[2])
{
	const struct hal_cell *cell = NULL;
	double end = now() + PATIENCE;
	uint64_t head = 0;
	int ret;

	while ((ret = hal_pkt_send(peer, hal_head(type, 0), w, 2, NULL, 0)) ==
	       -FI_EAGAIN && now() < end)
		step(s);
	if (ret != 0)
		return "cannot send";
	for (unsigned i = 1; cell == NULL; i++) {
		if (peer->rx.cells != NULL)
			cell = hal_rx_peek(peer, &head);
		if (cell == NULL && i % 64 == 0 && now() > end)
			return "no answer";
		if (cell == NULL)
			step(s);
	}
	got[0] = hal_cell_word(cell, 0);
	got[1] = hal_cell_word(cell, 1);
	hal_rx_release(peer);
	hal_rx_flush(peer);
	return hal_head_type(head) != ST_ANSWER ? "another's answer" :
	       hal_head_flags(head) != 0 ? "data arrived changed" : NULL;
}

static const char *try_packets(struct side *s, struct hal_peer *peer,
			       double *us)
{
	double start = now();

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t w[2] = { i, ~i }, got[2];
		const char *error = ask(s, peer, ST_PING, w, got);

		if (error != NULL)
			return error;
		if (got[0] != w[0] || got[1] != w[1])
			return "a packet arrived changed";
	}
	*us = (now() - start) * 1e6 / ROUNDS / 2;
	return NULL;
}

static const char *try_space(struct side *s, struct hal_peer *peer)
{
	uint32_t space = s->hif->caps->space_bytes;
	uint8_t buf[STRETCH];

	if (hal_space_ready(peer, space) != 0)
		return "no receive space";
	for (uint64_t i = 0; i < STORES; i++) {
		uint32_t len = 1 + (uint32_t)(i * 677 % STRETCH);
		uint32_t off = (uint32_t)(i * 7919 % (space - len));
		uint64_t w[2] = { (uint64_t)len << 32 | off, i }, got[2];
		const char *error;

		fill(buf, len, i);
		hal_space_write(peer, off, buf, len);
		hal_space_barrier(peer);
		error = ask(s, peer, ST_SPACE, w, got);
		if (error != NULL)
			return error;
	}
	return NULL;
}

static const char *move(struct side *s, const struct hal_dma *dma)
{
	struct hal_dma_comp comp;
	double end = now() + 10 * PATIENCE;

	if (hal_dma_post(s->hif, dma, 1) != 0)
		return "transfer not accepted";
	while (hal_dma_poll(s->hif, &comp, 1) == 0) {
		if (now() > end)
			return "transfer does not end";
		step(s);
	}
	return comp.status != 0 ? "transfer failed" : NULL;
}

static const char *put_and_get(struct side *s, struct hal_peer *peer,
			       struct hal_rmem *rmem, uint8_t *local,
			       double *gbs)
{
	struct hal_dma dma = { .op = HAL_DMA_PUT, .peer = peer, .rmem = rmem,
			       .local = local, .len = BYTES };
	uint64_t w[2] = { 42, 0 }, got[2];
	const char *error;
	double start;

	fill(local, BYTES, 42);
	start = now();
	error = move(s, &dma);
	*gbs = (double)BYTES / (now() - start) / 1e9;
	if (error == NULL)
		error = ask(s, peer, ST_CHECK, w, got);
	if (error != NULL)
		return error;
	memset(local, 0, BYTES);
	dma.op = HAL_DMA_GET;
	error = move(s, &dma);
	if (error == NULL && !filled(local, BYTES, 42))
		error = "a transfer brought other data";
	return error;
}

static const char *try_dma(struct side *s, struct hal_peer *peer, double *gbs)
{
	uint64_t w[2] = { 0, 0 };
	struct hal_rmem *rmem = NULL;
	double end = now() + PATIENCE;
	const char *error;
	struct hal_mem *mem;
	struct hal_key key;
	void *local;
	int ret;

	error = ask(s, peer, ST_MEM, w, key.word);
	if (error != NULL)
		return "no dmable memory there";
	if (hal_mem_alloc(hal, -1, BYTES, &mem, &local) != 0)
		return "no dmable memory here";
	while ((ret = hal_mem_import(peer, &key, &rmem)) == -FI_EAGAIN &&
	       now() < end)
		step(s);
	if (ret == 0) {
		error = put_and_get(s, peer, rmem, local, gbs);
		hal_mem_release(peer, rmem);
	} else {
		error = "no route to its memory";
	}
	hal_mem_free(hal, mem);
	return error;
}

/* ---- Boards ---------------------------------------------------------- */

/* Connect to a board: to our interface there, or to any process that waits. */
static const char *reach(struct side *s, uint32_t board, struct hal_peer **peer)
{
	struct hal_addr to = s->hif->addr;
	double end = now() + PATIENCE;
	int ret = -FI_ECONNREFUSED;

	if (s->partner != NULL)
		to = s->partner->hif->addr;
	to.board = (uint16_t)board;
	for (uint32_t i = 1; i <= s->hif->caps->ifs_per_board; i++) {
		if (s->partner == NULL) {
			to.iface = i;
			to.nonce = HAL_ADDR_ANY;
		}
		while ((ret = hal_connect(s->hif, &to, peer)) == -FI_EAGAIN &&
		       now() < end)
			step(s);
		if (ret != -FI_ECONNREFUSED || s->partner != NULL)
			break;
	}
	return ret == -FI_ECONNREFUSED ? "nobody waits there" :
	       ret == -FI_EACCES ? "another user is there" :
	       ret != 0 ? "cannot connect" : NULL;
}

/* A row of the table; true: the board is well. */
static bool walk(struct side *s, uint32_t board)
{
	struct hal_peer *peer = NULL;
	double us = 0, gbs = 0;
	const char *error, *at = "packets";

	error = reach(s, board, &peer);
	if (error == NULL)
		error = try_packets(s, peer, &us);
	if (error == NULL) {
		at = "window";
		error = try_space(s, peer);
	}
	if (error == NULL) {
		at = "transfer";
		error = try_dma(s, peer, &gbs);
	}
	if (error != NULL)
		printf("%5u  %s: %s\n", board, at, error);
	else
		printf("%5u  %8.2f us  %6d  %8.2f GB/s  ok\n", board, us,
		       STORES, gbs);
	if (peer != NULL)
		hal_peer_free(peer);
	return error == NULL;
}

static void side_close(struct side *s)
{
	hal_if_close(s->hif);
	if (s->mem != NULL)
		hal_mem_free(hal, s->mem);
}

static bool walk_with_partner(struct side *s, uint32_t board)
{
	struct side partner = { 0 };
	bool well;

	if ((int)board != hal->own_board &&
	    !(hal->caps.flags & HAL_CAP_ANY_BOARD))
		return walk(s, board);
	if (hal_if_open(hal, (int)board, &partner.hif) != 0) {
		printf("%5u  no interface\n", board);
		return false;
	}
	s->partner = &partner;
	well = walk(s, board);
	s->partner = NULL;
	side_close(&partner);
	return well;
}

static int walk_all(struct side *s)
{
	int failed = 0;

	printf("%s %s, %u boards of %u interfaces, packets of %u bytes, this "
	       "is board %d\n", hal->caps.backend, hal->caps.profile,
	       hal->caps.boards, hal->caps.ifs_per_board,
	       hal->caps.pkt_payload, hal->own_board);
	printf("board   one way     stores      transfer\n");
	for (uint32_t b = 0; b < hal->caps.boards; b++)
		failed += !walk_with_partner(s, b);
	return failed != 0;
}

int selftest(bool wait)
{
	struct side s = { 0 };
	int ret = 2;

	if (hal_get(NULL, &hal) != 0)
		return 2;
	if (hal_if_open(hal, -1, &s.hif) != 0)
		goto put;
	if (!wait) {
		ret = walk_all(&s);
		side_close(&s);
		goto put;
	}
	printf("waiting on board %u, interface %u\n", s.hif->addr.board,
	       s.hif->addr.iface);
	fflush(stdout);
	for (;;) {
		struct timespec pause = { 0, 50000 };

		if (!partner_step(&s))
			nanosleep(&pause, NULL);
	}
put:
	hal_put(hal);
	return ret;
}
