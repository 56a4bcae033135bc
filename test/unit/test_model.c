/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_model.c - the timing model of the profile exanode: nothing is seen
 * before its time, and nothing that is under way is missed by a sleeper.
 *
 * Only lower limits of time are checked: how much later something is seen
 * depends on the machine. bench/model compares the times with the figures.
 */
#include <poll.h>

#include "hal/emu/hal_emu_types.h"
#include "lib/model_fixture.h"

/* The number of the next packet; -1: there is none. */
static int64_t peek(void)
{
	const struct hal_cell *cell;
	uint64_t head;

	cell = hal_rx_peek(in, &head);
	return cell == NULL ? -1 : (int64_t)hal_cell_word(cell, 0);
}

/* Poll until the packet of this number has come, and release it. Returns when,
 * in ns. */
static uint64_t await_packet(int64_t number)
{
	uint64_t end = unm_now_ns() + PATIENCE, now;
	int64_t got;

	do {
		step(to);
		now = unm_now_ns();
		got = peek();
		assert_true(now < end);
	} while (got == -1);
	assert_int_equal(got, number);
	hal_rx_release(in);
	hal_rx_flush(in);
	/* after it was seen */
	return unm_now_ns();
}

/* Sleep once, if the interface can be armed. */
static void nap(struct hal_if *hif)
{
	struct pollfd pfd = { .fd = hal_if_fd(hif), .events = POLLIN };

	if (hal_if_arm(hif) == 0) {
		/* no other timer is set: without a wake-up this fails */
		assert_int_equal(poll(&pfd, 1, PATIENCE / MS), 1);
		hal_if_disarm(hif);
	}
	step(hif);
}

/* ---- Packets ------------------------------------------------------------ */

/* Each packet is seen after its latency, in order. */
static void packets_take_time(void **state)
{
	struct figures f = swift;
	uint64_t sent[6];
	bool early;

	f.packet = "50 ms";
	begin(&f);
	for (int i = 0; i < 6; i++) {
		sent[i] = unm_now_ns();
		send_number(i);
		step(to);
		early = peek() != -1;
		if (unm_now_ns() < sent[0] + 50 * MS)
			assert_false(early);
		if (i == 2)
			usleep(20000);
	}
	for (int i = 0; i < 6; i++)
		assert_true(await_packet(i) >= sent[i] + 50 * MS);
}

/* The packetizer sends one packet after the other. */
static void packets_follow_each_other(void **state)
{
	struct figures f = swift;
	uint64_t start;

	f.packet = "10 ms";
	f.gap = "100 us";
	begin(&f);
	start = unm_now_ns();
	for (int i = 0; i < 8; i++)
		send_number(i);
	for (int i = 0; i < 8; i++)
		assert_true(await_packet(i) >= start + 10 * MS + i * MS / 10);
}

/* A sender has so many unreleased packets; a release takes time to arrive. */
static void fifo_has_its_depth(void **state)
{
	struct figures f = swift;
	uint64_t released, end = unm_now_ns() + PATIENCE;
	int ret;

	f.depth = 4;
	f.store = "10 ms";
	f.load = "10 ms";
	begin(&f);
	assert_int_equal(to->caps->pkt_depth, 4);
	for (int i = 0; i < 4; i++)
		send_number(i);
	assert_int_equal(hal_pkt_send(out, hal_head(1, 0), NULL, 0, NULL, 0),
			 -FI_EAGAIN);
	released = unm_now_ns();
	await_packet(0);
	while ((ret = hal_pkt_send(out, hal_head(1, 0), NULL, 0, NULL, 0)) ==
	       -FI_EAGAIN)
		assert_true(unm_now_ns() < end);
	assert_int_equal(ret, 0);
	assert_true(unm_now_ns() >= released + 10 * MS);
}

/* The end of a peer is reported after its last packet has arrived, and the peer
 * is alive until then (hal_types.h). */
static void ends_come_last(void **state)
{
	struct figures f = swift;
	uint64_t sent, end = unm_now_ns() + PATIENCE;

	f.packet = "60 ms";
	begin(&f);
	sent = unm_now_ns();
	send_number(7);
	hal_if_close(from);
	from = NULL;
	while (!dead) {
		assert_true(unm_now_ns() < end);
		/* whatever polls: a peer that is dead was reported */
		assert_false(in->dead);
		nap(to);
		if (dead)
			assert_int_equal(peek(), 7);
	}
	assert_true(in->dead);
	assert_true(unm_now_ns() >= sent + 60 * MS);
}

/* ... and after its last back word has. */
static void ends_follow_words(void **state)
{
	struct figures f = swift;
	uint64_t stored, end = unm_now_ns() + PATIENCE;

	f.store = "60 ms";
	f.load = "60 ms";
	begin(&f);
	stored = unm_now_ns();
	hal_rx_back(in, 2, 5);
	hal_if_close(to);
	to = NULL;
	while (!dead) {
		assert_true(unm_now_ns() < end);
		assert_false(out->dead);
		step(from);
		/* no sleep in between, which nothing might end */
		if (emu_peer(out)->dying != 0 && !dead)
			assert_int_equal(hal_if_arm(from), -FI_EAGAIN);
	}
	assert_true(hal_tx_back(out, 2) == 5);
	assert_true(unm_now_ns() >= stored + 60 * MS);
}

/* ---- Stores ------------------------------------------------------------- */

/* Words stored back arrive after the latency of a store, and never go back. */
static void words_take_time(void **state)
{
	enum { ROUNDS = 400 };
	static uint64_t stored[ROUNDS + 1];
	struct figures f = swift;
	uint64_t seen = 0, end = unm_now_ns() + PATIENCE;

	f.store = "5 ms";
	f.load = "5 ms";
	begin(&f);
	for (uint64_t i = 1; seen < ROUNDS; i++) {
		uint64_t word;

		if (i <= ROUNDS) {
			stored[i] = unm_now_ns();
			hal_rx_back(in, 1, i);
			if (i % 100 == 0)
				usleep(2000);
		}
		hal_if_pump(from);
		word = hal_tx_back(out, 1);
		assert_true(word >= seen && word <= ROUNDS);
		if (word != seen)
			assert_true(unm_now_ns() >= stored[word] + 5 * MS);
		seen = word;
		assert_true(unm_now_ns() < end);
	}
}

/* The words still arrive if they change faster than they arrive. (A process
 * that the kernel lets wait for the whole latency would see them anyway.) */
static void words_do_not_starve(void **state)
{
	struct figures f = swift;
	uint64_t end;

	f.store = "100 ms";
	f.load = "100 ms";
	begin(&f);
	end = unm_now_ns() + PATIENCE / 4;
	for (uint64_t i = 1; hal_tx_back(out, 0) == 0; i++) {
		hal_rx_back(in, 0, i);
		hal_if_pump(from);
		assert_true(unm_now_ns() < end);
	}
}

/* A word of hal_rx_back_sync() costs a load, and is there when it returns. */
static void words_in_one_order(void **state)
{
	struct figures f = swift;
	uint64_t start;

	f.store = "3 ms";
	f.load = "8 ms";
	begin(&f);
	for (uint64_t i = 1; i < 10; i++) {
		start = unm_now_ns();
		assert_int_equal(hal_rx_back_sync(in, 2, i), 0);
		assert_true(unm_now_ns() >= start + 8 * MS);
		assert_true(hal_tx_back_sync(out, 2) == i);
		hal_rx_back(in, 2, i);	/* the same: nothing may go back */
		hal_if_pump(from);
		assert_true(hal_tx_back_sync(out, 2) == i);
	}
}

/* The processor stalls at the rate of posted stores, and for a barrier. */
static void stores_take_time(void **state)
{
	struct figures f = swift;
	uint64_t start, sent;
	char line[32] = "eager";

	f.rate = "1 k/s";
	f.load = "10 ms";
	begin(&f);
	assert_int_equal(hal_space_ready(out, 4096), 0);
	start = unm_now_ns();
	for (int i = 0; i < 10; i++)
		hal_space_write(out, 32 * i, line, sizeof(line));
	/* one store is under way when the last call returns */
	assert_true(unm_now_ns() >= start + 9 * MS);
	sent = unm_now_ns();
	hal_space_barrier(out);
	assert_true(unm_now_ns() >= sent + 10 * MS);
	send_number(1);
	await_packet(1);
	assert_string_equal((const char *)hal_space(in, 288), "eager");
	/* nothing was stored: the barrier waits for nothing */
	hal_space_write(out, 0, line, 0);
	hal_space_barrier(out);
}

/* ---- Transfers ---------------------------------------------------------- */

static struct hal_rmem *import_of(struct hal_peer *peer,
				  const struct hal_key *key)
{
	uint64_t end = unm_now_ns() + PATIENCE;
	struct hal_rmem *rmem = NULL;
	int ret;

	while ((ret = hal_mem_import(peer, key, &rmem)) == -FI_EAGAIN) {
		assert_true(unm_now_ns() < end);
		step(to);
		step(from);
	}
	assert_int_equal(ret, 0);
	return rmem;
}

static struct hal_rmem *import(const struct hal_key *key, uint64_t at_least)
{
	uint64_t start = unm_now_ns();
	struct hal_rmem *rmem = import_of(out, key);

	assert_true(unm_now_ns() >= start + at_least);
	return rmem;
}

/* The first import of a region costs the registration of its route. */
static void routes_take_time(void **state)
{
	struct figures f = swift;
	struct hal_rmem *first, *second;
	struct hal_window win;
	struct hal_mem *mem;
	struct hal_key key;
	void *addr;

	f.route = "40 ms";
	begin(&f);
	assert_int_equal(hal_mem_alloc(hal, -1, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	first = import(&key, 40 * MS);
	assert_int_equal(hal_mem_import(out, &key, &second), 0);
	/* the memory is on the own board, docs/hal.md 7.10 */
	hal_mem_window(out, first, &win);
	assert_non_null(win.addr);
	assert_int_equal(win.bytes, 4096);
	hal_mem_release(out, second);
	hal_mem_release(out, first);
	hal_mem_release(out, import(&key, 40 * MS));
	hal_mem_free(hal, mem);
}

/* A completion is reported when the engine would have ended: after the set-up
 * and the bytes, and after the transfers before it. */
static void transfers_take_time(void **state)
{
	struct figures f = swift;
	struct hal_dma_comp comp[4];
	struct hal_dma dma = { .op = HAL_DMA_PUT };
	uint64_t start, end = unm_now_ns() + PATIENCE;
	struct hal_mem *mem[2];
	struct hal_key key;
	void *local, *remote;
	int n = 0;

	f.setup = "20 ms";
	begin(&f);
	assert_int_equal(hal_mem_alloc(hal, -1, 20000, &mem[0], &local), 0);
	assert_int_equal(hal_mem_alloc(hal, -1, 20000, &mem[1], &remote), 0);
	assert_int_equal(hal_mem_key(hal, mem[1], &key), 0);
	dma.peer = out;
	dma.rmem = import(&key, 0);
	dma.local = local;
	dma.len = 10000;		/* 10 ms at 1 MB/s */
	memset(local, 0x5c, dma.len);
	start = unm_now_ns();
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(hal_dma_post(from, &dma, i), 0);
	for (int done = 0; done < 3; done += n) {
		n = hal_dma_poll(from, comp, 1);
		assert_true(unm_now_ns() < end);
		if (n == 0)
			continue;
		assert_true(comp[0].token == (uint64_t)done);
		assert_int_equal(comp[0].status, 0);
		assert_true(unm_now_ns() >= start + (done + 1) * 30 * MS);
		assert_memory_equal(remote, local, dma.len);
	}
	hal_mem_release(out, dma.rmem);
	hal_mem_free(hal, mem[0]);
	hal_mem_free(hal, mem[1]);
}

/* The engine does not go on with transfers that were cancelled: 59 of them have
 * 4 seconds each. One to another peer ends soon, and one behind them too. */
static void cancelled_free_the_engine(void **state)
{
	enum { CANCELLED = 59, LENGTH = 4 << 20 };
	struct figures f = swift;
	struct hal_dma_comp comp[4];
	struct hal_dma dma = { .op = HAL_DMA_PUT };
	struct hal_peer *other;
	uint64_t start;
	struct hal_mem *mem;
	struct hal_key key;
	int cancelled = 0, ended = 0;
	void *local;

	begin(&f);
	assert_int_equal(hal_mem_alloc(hal, -1, LENGTH, &mem, &local), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	dma.peer = out;
	dma.rmem = import(&key, 0);
	dma.local = local;
	dma.len = LENGTH;
	for (uint64_t i = 0; i < CANCELLED; i++)
		assert_int_equal(hal_dma_post(from, &dma, i), 0);
	other = connect_itself();
	dma.peer = other;
	dma.rmem = import_of(other, &key);
	dma.len = 64;
	assert_int_equal(hal_dma_post(from, &dma, 100), 0);
	hal_peer_free(out);
	assert_int_equal(hal_dma_post(from, &dma, 101), 0);
	start = unm_now_ns();
	while (ended < 2 || cancelled < CANCELLED) {
		int n = hal_dma_poll(from, comp, 4);

		for (int i = 0; i < n; i++) {
			bool last = comp[i].token >= 100;

			assert_int_equal(comp[i].status,
					 last ? 0 : -FI_ECANCELED);
			ended += last;
			cancelled += !last;
		}
		assert_true(unm_now_ns() < start + PATIENCE);
	}
	hal_mem_release(other, dma.rmem);
	hal_mem_free(hal, mem);
}

/* ---- Sleeping ----------------------------------------------------------- */

/* A sleeper is woken when a packet arrives that was sent before the sleep. */
static void sleeper_sees_packet(void **state)
{
	struct figures f = swift;
	uint64_t sent;
	int naps = 0;

	f.packet = "30 ms";
	begin(&f);
	for (int i = 0; i < 5; i++) {
		step(to);
		sent = unm_now_ns();
		send_number(i);
		for (naps = 0; peek() == -1; naps++)
			nap(to);
		assert_true(unm_now_ns() >= sent + 30 * MS);
		/* it slept, and did not poll */
		assert_in_range(naps, 1, 20);
		assert_int_equal(peek(), i);
		hal_rx_release(in);
		hal_rx_flush(in);
	}
}

/* ... and when a packet arrives while the interface is armed: arming takes some
 * microseconds. */
static void sleeper_meets_arrival(void **state)
{
	enum { ROUNDS = 800, STEP_NS = 50 };
	struct figures f = swift;
	uint64_t start;

	f.packet = "40 us";
	begin(&f);
	for (int i = 0; i < ROUNDS; i++) {
		start = unm_now_ns();
		send_number(i);
		while (unm_now_ns() < start + (uint64_t)i * STEP_NS)
			;
		while (peek() == -1)
			nap(to);
		assert_int_equal(peek(), i);
		hal_rx_release(in);
		hal_rx_flush(in);
	}
}

static void *send_soon(void *arg)
{
	usleep(20000);
	send_number(11);
	return NULL;
}

/* ... and if the packet is sent during the sleep. */
static void sleeper_is_woken(void **state)
{
	struct figures f = swift;
	pthread_t thread;
	int naps;

	f.packet = "30 ms";
	begin(&f);
	thread = unit_thread(send_soon, NULL);
	for (naps = 0; peek() == -1; naps++)
		nap(to);
	pthread_join(thread, NULL);
	assert_in_range(naps, 1, 20);
	assert_int_equal(peek(), 11);
}

/* A sender sleeps until a word arrives. */
static void sleeper_sees_word(void **state)
{
	struct figures f = swift;
	uint64_t stored;
	int naps;

	f.store = "10 ms";
	f.load = "10 ms";
	begin(&f);
	step(from);
	hal_tx_sleep(out, true);
	stored = unm_now_ns();
	hal_rx_back(in, 3, 99);
	for (naps = 0; hal_tx_back(out, 3) != 99; naps++)
		nap(from);
	assert_true(unm_now_ns() >= stored + 10 * MS);
	assert_in_range(naps, 1, 20);
	hal_tx_sleep(out, false);
}

/* ---- What is offered ---------------------------------------------------- */

/* The profile keeps the rules of the hardware, and its name says that a model
 * is in use. */
static void rules_of_the_hardware(void **state)
{
	begin(&swift);
	assert_string_equal(from->caps->profile, "exanode+model");
	assert_int_equal(from->caps->flags & (HAL_CAP_COHERENT | HAL_CAP_ALIAS |
			 HAL_CAP_DMA_ANY | HAL_CAP_WIDE), 0);
	assert_int_equal(from->caps->ifs_per_board, 63);
	assert_int_equal(from->caps->pkt_payload, 24);
	assert_false(out->dma_any);
}

/* Without a model packets do not pass through it. */
static void no_model_no_cost(void **state)
{
	struct hal_params params = params_of("exanode", "");
	struct hal_peer *peer;

	assert_int_equal(hal_get(&params, &hal), 0);
	assert_int_equal(hal_if_open(hal, -1, &from), 0);
	assert_int_equal(hal_connect(from, &from->addr, &peer), 0);
	assert_string_equal(from->caps->profile, "exanode");
	assert_int_equal(from->caps->flags & HAL_CAP_COHERENT, 0);
	assert_non_null(peer->tx.cells);
	assert_null(from->ops->pump);
}

/* Opening fails, with one line that contains the text. */
static void refused(struct hal_params params, const char *text)
{
	struct unit_capture ear = unit_capture_begin();
	char said[1024];
	int ret = hal_get(&params, &hal);

	unit_capture_end(&ear, said, sizeof(said));
	assert_int_equal(ret, -FI_EINVAL);
	if (strstr(said, text) == NULL || unit_lines(said) != 1)
		unit_fail("not one line with \"%s\": %s", text, said);
}

static void refuses_other_hardware(void **state)
{
	struct hal_params params = params_of("host", path);

	write_file(&swift);
	refused(params, "is for FI_UNIMEM_PROFILE=exanode");
	params = params_of("exanode", path);
	snprintf(params.hal, sizeof(params.hal), "dev");
	refused(params, "is for FI_UNIMEM_HAL=emu or sim, not dev");
	refused(params_of("exanode", "./no-such-file"), "./no-such-file");
}

UNIT_MAIN(CASE(packets_take_time), CASE(packets_follow_each_other),
	  CASE(fifo_has_its_depth), CASE(ends_come_last),
	  CASE(ends_follow_words), CASE(words_take_time),
	  CASE(words_do_not_starve), CASE(words_in_one_order),
	  CASE(stores_take_time),
	  CASE(routes_take_time), CASE(transfers_take_time),
	  CASE(cancelled_free_the_engine), CASE(sleeper_sees_packet),
	  CASE(sleeper_meets_arrival), CASE(sleeper_is_woken),
	  CASE(sleeper_sees_word),
	  CASE(rules_of_the_hardware), CASE(no_model_no_cost),
	  CASE(refuses_other_hardware))
