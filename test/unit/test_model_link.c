/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_model_link.c - what is in a link under the timing model: back words that
 * are stored while the other side looks, and what a hostile peer writes there.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/emu/hal_emu_stamp.h"
#include "lib/model_fixture.h"

/* ---- A clock that returns late ------------------------------------------ */

#define READINGS_MAX	(4 * EMU_STAMPS)	/* in one call of the HAL */

/* The reading of the clock, counted from 1, during which the other side looks;
 * 0: none. */
static int look_at;

/* Readings of the clock so far, plus 1, each of which makes the peer write a
 * snapshot; 0: none does. */
static int readings;

/* Let time pass until all that is under way has arrived, and look. */
static void look(void)
{
	usleep(20000);
	hal_if_pump(from);
}

/* Write a snapshot that is later than all before it, and due. */
static void write_later(void)
{
	struct emu_stamps *stamps = emu_peer(in)->timed->rx_stamps;
	uint64_t n = atomic_load(&stamps->count);

	atomic_store(&stamps->at[n % EMU_STAMPS].due, n + 1);
	atomic_store(&stamps->count, n + 1);
}

/* All readings of the clock in this program, also those of the HAL. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int ret = (int)syscall(SYS_clock_gettime, id, ts);

	if (look_at != 0 && --look_at == 0)
		look();
	if (readings != 0) {
		write_later();
		if (readings++ == READINGS_MAX) {
			readings = 0;
			unit_fail("a call reads the clock %d times",
				  READINGS_MAX);
		}
	}
	return ret;
}

/* Pump until a word of out has this value. */
static void await_word(int word, uint64_t val)
{
	uint64_t end = unm_now_ns() + PATIENCE / 4;

	while (hal_tx_back(out, word) != val) {
		assert_true(unm_now_ns() < end);
		hal_if_pump(from);
	}
}

/*
 * A thread that stores a word is interrupted after any of its readings of the
 * clock, until all that it stored before has been seen. The word is not lost,
 * also if it replaces the newest snapshot, because by that reading none of them
 * had arrived.
 */
static void interrupted_store_arrives(void **state)
{
	struct figures f = swift;
	bool interrupted = true;

	f.store = "5 ms";
	f.load = "5 ms";
	for (int reading = 1; interrupted; reading++) {
		begin(&f);
		for (uint64_t i = 1; i <= EMU_STAMPS; i++)
			hal_rx_back(in, 1, i);
		look_at = reading;
		hal_rx_back(in, 1, 1000);
		interrupted = look_at == 0;
		look_at = 0;
		assert_true(interrupted || reading > 1);
		await_word(1, 1000);
		end_all();
	}
}

/* ---- Hostile peers ------------------------------------------------------ */

/* Times that no model computes. */
static const uint64_t wrong[] = {
	0, 1, UINT64_MAX - 1, UINT64_MAX, UINT64_C(1) << 63,
};
#define NWRONG	(sizeof(wrong) / sizeof(wrong[0]))

/* Write the time of arrival of the packet that was sent last. */
static void stamp_packet(struct hal_peer *peer, uint64_t due)
{
	struct hal_cell *cells = emu_peer(peer)->timed->tx_cells;
	struct hal_tx *tx = &peer->tx;

	memcpy(cells[(tx->next - 1) & tx->mask].payload + HAL_PKT_MAX - 8,
	       &due, sizeof(due));
}

/* Write the times of all snapshots of back words, and their number. */
static void stamp_words(struct hal_peer *peer, uint64_t due, uint64_t count)
{
	struct emu_stamps *stamps = emu_peer(peer)->timed->rx_stamps;

	for (int i = 0; i < EMU_STAMPS; i++)
		atomic_store(&stamps->at[i].due, due);
	atomic_store(&stamps->count, count);
}

/* Packets and words between from and itself still take their time. */
static void others_are_well(struct hal_peer *self, uint64_t round)
{
	uint64_t end = unm_now_ns() + PATIENCE, head;

	assert_int_equal(hal_pkt_send(self, hal_head(1, 0), &round, 1, NULL,
				      0), 0);
	hal_rx_back(self_in, 0, round + 1);
	while (hal_rx_peek(self_in, &head) == NULL ||
	       hal_tx_back(self, 0) != round + 1) {
		assert_true(unm_now_ns() < end);
		step(from);
	}
	hal_rx_release(self_in);
	hal_rx_flush(self_in);
}

/* Whatever times a peer writes, calls return, other peers lose nothing, an
 * armed interface can be disarmed, and the end of the peer is reported: half a
 * second after it was noticed, but a busy machine gets ten. */
static void hostile_times_harm_one_peer(void **state)
{
	for (unsigned i = 0; i < NWRONG * NWRONG; i++) {
		struct hal_if **ends = i % 2 == 0 ? &from : &to, *stays;
		struct hal_peer *self;
		uint64_t closed;

		begin(&swift);
		stays = i % 2 == 0 ? to : from;
		self = connect_itself();
		send_number(i);
		stamp_packet(out, wrong[i % NWRONG]);
		stamp_words(in, wrong[i / NWRONG], wrong[i % NWRONG]);
		hal_tx_sleep(out, true);
		for (uint64_t k = 0; k < 20; k++) {
			step(to);
			others_are_well(self, k);
			if (hal_if_arm(from) == 0)
				hal_if_disarm(from);
			if (hal_if_arm(to) == 0)
				hal_if_disarm(to);
		}
		hal_if_close(*ends);
		*ends = NULL;
		closed = unm_now_ns();
		while (!dead) {
			step(stays);
			if (!UNIT_SLOW)
				assert_true(unm_now_ns() < closed + 10000 * MS);
		}
		end_all();
	}
}

/* A peer that stores a new word whenever one was read keeps no call from
 * returning. */
static void changing_words_keep_no_call(void **state)
{
	begin(&swift);
	write_later();
	for (int i = 0; i < 10; i++) {
		readings = 1;
		hal_if_pump(from);
		assert_in_range(readings, 2, READINGS_MAX);
	}
	readings = 0;
}

UNIT_MAIN(CASE(interrupted_store_arrives), CASE(hostile_times_harm_one_peer),
	  CASE(changing_words_keep_no_call))
