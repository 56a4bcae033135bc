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
