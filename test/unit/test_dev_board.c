/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_board.c - boards that die: loads from a dead board end in a bus
 * error or never, packets to it are refused or never answered.
 *
 * The register model ends a process that loads from a board which the driver
 * knows to be dead. No other peer may be delayed, and every peer on the dead
 * board ends with an error.
 */
#include "lib/dev_shim.h"
#include "hal/sim/hal_sim.h"

#define DEAD_S	(HAL_KDEV_DEAD_MS / 1000.0)

/* a on board 0 is connected to b on board 1, which will die, and to c on board
 * 2, which lives. */
struct trio {
	struct pair b, c;
};

static void steps(struct trio *t)
{
	/* b's processor does not run once its board is dead */
	struct hal_if *b = t->b.b;

	if (sim_death(sim_mm(dev_if(t->b.a)->mm)->w, 1) != SIM_LIVES)
		t->b.b = NULL;
	step(&t->b);
	t->b.b = b;
	t->c.a = NULL;			/* step(&t->b) has served it */
	step(&t->c);
	t->c.a = t->b.a;
}

#define soon(t, what)							\
	({								\
		double end_ = now() + 5;				\
		bool is_;						\
									\
		while (!(is_ = (what)) && now() < end_)			\
			steps(t);					\
		is_;							\
	})

static struct trio trio(const char *sim)
{
	struct trio t = { { 0 }, { 0 } };

	lie.sim = sim;
	lie.boards = 3;
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &t.b.a), 0);
	t.c.a = t.b.a;
	assert_int_equal(hal_if_open(hal, 1, &t.b.b), 0);
	assert_int_equal(hal_if_open(hal, 2, &t.c.b), 0);
	assert_true(soon(&t, hal_connect(t.b.a, &t.b.b->addr, &t.b.ab) == 0));
	assert_true(soon(&t, hal_connect(t.b.a, &t.c.b->addr, &t.c.ab) == 0));
	assert_true(soon(&t, t.b.ba != NULL && t.c.ba != NULL &&
			     dev_peer(t.b.ab)->connected_reported &&
			     dev_peer(t.c.ab)->connected_reported));
	assert_int_equal(hal_space_ready(t.b.ab, 4096), 0);
	assert_int_equal(hal_space_ready(t.c.ab, 4096), 0);
	lines = 0;
	return t;
}

static void kill_board(struct trio *t, enum sim_death death)
{
	hal_sim_death(dev_if(t->b.a)->mm, 1, death);
}

static void trio_close(struct trio *t)
{
	kill_board(t, SIM_LIVES);
	hal_if_close(t->b.a);
	hal_if_close(t->b.b);
	hal_if_close(t->c.b);
	close_hal();
}

/* How interface a uses the peer on the dead board meanwhile. */
enum use { NOTHING, PACKETS, STORES, ALL };

static void use(struct hal_peer *peer, enum use how, uint64_t i)
{
	if (how == STORES || how == ALL) {
		hal_space_write(peer, 64, &i, sizeof(i));
		hal_space_barrier(peer);
	}
	if (how == PACKETS || how == ALL)
		send_word(peer, i);
}

/* Packets to c are taken and arrive in order; the dead board delays none. */
static void others_go_on(struct trio *t, enum use how, double seconds)
{
	double end = now() + seconds;
	uint64_t sent = 0, got = 0;

	while (now() < end || got != sent) {
		if (now() < end) {
			use(t->b.ab, how, sent);
			if (send_word(t->c.ab, sent) == 0)
				sent++;
		}
		steps(t);
		while (got != sent && next_is(t->c.ba, got))
			got++;
		assert_true(now() < end + 5);
	}
	assert_in_range(sent, 100, UINT64_MAX);
}

/* The end of b is reported, with this status; no other peer ends. */
static void board_dies(enum sim_death death, enum use how, int status,
		       const char *line)
{
	struct trio t = trio("world=120");

	use(t.b.ab, ALL, 1);
	assert_true(soon(&t, next_is(t.b.ba, 1)));
	kill_board(&t, death);
	others_go_on(&t, how, 3 * DEAD_S);
	assert_true(t.b.ab->dead);
	assert_int_equal(t.b.dead_a, status);
	assert_false(t.c.ab->dead || t.c.ba->dead);
	assert_int_equal(lines, line != NULL);
	if (line != NULL)
		assert_non_null(strstr(said, line));
	/* stored nowhere, and no other line is logged */
	others_go_on(&t, ALL, DEAD_S / 4);
	assert_int_equal(lines, line != NULL);
	hal_peer_free(t.b.ab);
	assert_int_equal(hal_connect(t.b.a, &t.b.b->addr, &t.b.ab),
			 -FI_ECONNREFUSED);
	trio_close(&t);
}

static void nobody_asks(void **state)
{
	board_dies(SIM_DEAD_ABORTS, NOTHING, -FI_ECONNRESET, NULL);
	board_dies(SIM_DEAD_SILENT, NOTHING, -FI_ECONNRESET, NULL);
}

static void packets_to_the_dead(void **state)
{
	board_dies(SIM_DEAD_ABORTS, PACKETS, -FI_ECONNRESET, NULL);
	board_dies(SIM_DEAD_SILENT, PACKETS, -FI_EIO, "no answer to a packet");
}

static void stores_to_the_dead(void **state)
{
	board_dies(SIM_DEAD_ABORTS, STORES, -FI_ECONNRESET, "bus error");
	board_dies(SIM_DEAD_SILENT, STORES, -FI_ECONNRESET, "bus error");
	board_dies(SIM_DEAD_ABORTS, ALL, -FI_ECONNRESET, "bus error");
	board_dies(SIM_DEAD_SILENT, ALL, -FI_ECONNRESET, "bus error");
}

/* No call loads from a board that the driver knows to be dead: the model would
 * end the test. No poll has noticed the death before. */
static void known_to_be_dead(void **state)
{
	struct trio t = trio("world=121");
	struct hal_rmem *rmem;
	struct hal_peer *peer;
	struct hal_if *other;
	struct hal_key key;
	struct hal_mem *mem;
	void *addr;
	int ret;

	assert_int_equal(hal_mem_alloc(hal, 1, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	assert_int_equal(hal_if_open(hal, 0, &other), 0);
	assert_true(soon(&t, hal_connect(t.b.b, &t.b.a->addr, &peer) == 0));
	assert_true(soon(&t, t.b.ab->rx.cells != NULL));
	kill_board(&t, SIM_DEAD_SILENT);
	usleep((HAL_KDEV_DEAD_MS + 50) * 1000);
	assert_int_equal(hal_rx_back_sync(t.b.ab, 0, 1), -FI_EAGAIN);
	use(t.b.ab, STORES, 1);
	assert_int_equal(hal_space_ready(t.b.ab, 4096), 0);
	assert_int_equal(hal_mem_import(t.b.ab, &key, &rmem), -FI_ECONNRESET);
	assert_int_equal(hal_connect(other, &t.b.b->addr, &peer),
			 -FI_ECONNREFUSED);
	assert_true(soon(&t, t.b.ab->dead));
	assert_int_equal(t.b.dead_a, -FI_ECONNRESET);
	assert_int_equal(lines, 0);
	/* memory of a board that is dead; a board that has just died */
	assert_int_equal(hal_mem_alloc(hal, 1, 4096, &mem, &addr),
			 -FI_EHOSTDOWN);
	kill_board(&t, SIM_DEAD_ABORTS);
	ret = hal_connect(other, &t.b.b->addr, &peer);
	assert_int_equal(ret, -FI_ECONNREFUSED);
	hal_if_close(other);
	trio_close(&t);
}

/* Transfers to the dead board end with an error; those to other boards
 * complete. */
static void transfers_of_the_dead(enum sim_death death)
{
	struct trio t = trio("world=122,route=0,dma=1000");
	struct hal_dma_comp comp[2];
	struct hal_rmem *rmem[2];
	struct hal_mem *mem[3];
	struct hal_key key[3];
	int status[2] = { 1, 1 }, n = 0;
	void *addr[3];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(hal_mem_alloc(hal, i, 65536, &mem[i],
					       &addr[i]), 0);
		assert_int_equal(hal_mem_key(hal, mem[i], &key[i]), 0);
	}
	assert_int_equal(hal_mem_import(t.b.ab, &key[1], &rmem[0]), 0);
	assert_int_equal(hal_mem_import(t.c.ab, &key[2], &rmem[1]), 0);
	kill_board(&t, death);
	for (int i = 0; i < 2; i++) {
		struct hal_dma d = { .op = HAL_DMA_PUT, .rmem = rmem[i],
				     .peer = i == 0 ? t.b.ab : t.c.ab,
				     .local = addr[0], .len = 65536 };

		assert_int_equal(hal_dma_post(t.b.a, &d, (uint64_t)i), 0);
	}
	for (double end = now() + 5; n != 2 && now() < end;) {
		int got = hal_dma_poll(t.b.a, comp, 2);

		for (int i = 0; i < got; i++)
			status[comp[i].token] = comp[i].status;
		n += got;
		steps(&t);
	}
	assert_int_equal(n, 2);
	assert_int_equal(status[1], 0);
	assert_true(status[0] == -FI_EIO || status[0] == -FI_ECANCELED);
	assert_true(soon(&t, t.b.ab->dead));
	hal_mem_release(t.b.ab, rmem[0]);
	hal_mem_release(t.c.ab, rmem[1]);
	for (int i = 0; i < 3; i++)
		hal_mem_free(hal, mem[i]);
	trio_close(&t);
}

static void transfers_end(void **state)
{
	transfers_of_the_dead(SIM_DEAD_ABORTS);
	transfers_of_the_dead(SIM_DEAD_SILENT);
}

/* If the driver cannot clear the packetizer, nothing can be sent any more:
 * every peer ends, and one line is logged. */
static void packetizer_is_not_cleared(void **state)
{
	struct trio t = trio("world=123");
	int left;

	fail_ioctl(HAL_KDEV_IO_CLEAR, 0, 1000, -ENOTTY);
	kill_board(&t, SIM_DEAD_SILENT);
	assert_int_equal(send_word(t.b.ab, 1), 0);
	assert_true(soon(&t, t.b.ab->dead && t.c.ab->dead));
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "HAL_KDEV_IO_CLEAR"));
	/* it is tried again, without a line each time */
	left = lie.times;
	assert_true(soon(&t, lie.times < left - 1));
	assert_int_equal(lines, 1);
	be_honest();
	trio_close(&t);
}

/* The board dies after it was last checked. hal_peer_free() stores the end of
 * the connection to that board, finds the board dead, and returns. */
static void closing_meets_the_dead(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct trio t = trio("world=124");

		send_word(t.b.ab, 1);
		kill_board(&t, i == 0 ? SIM_DEAD_ABORTS : SIM_DEAD_SILENT);
		hal_peer_free(t.b.ab);
		assert_false(t.c.ab->dead);
		t.b.ab = NULL;
		others_go_on(&t, NOTHING, 0.05);
		trio_close(&t);
	}
}

UNIT_MAIN(
	DEV_TEST(nobody_asks),
	DEV_TEST(packets_to_the_dead),
	DEV_TEST(stores_to_the_dead),
	DEV_TEST(known_to_be_dead),
	DEV_TEST(transfers_end),
	DEV_TEST(packetizer_is_not_cleared),
	DEV_TEST(closing_meets_the_dead),
)
