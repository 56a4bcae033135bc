/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_shared.c - conformance tests of memory that two processes use at
 * the same time: sequentially consistent back words, and windows
 */
#include <inttypes.h>

#include "conform/hal_conform.h"

#define WORD_GAME	0		/* back word that ct_sync_game() and the
					 * windows use */
#define WORD_SCORE	1		/* this word and the next, in turn */
#define SPINS		64		/* iterations of a wait between two
					 * steps */
#define ADD64		72		/* offsets of the words of
					 * ct_window_add() */
#define ADD32		132

static uint64_t rounds_of(void)
{
	/* a round over the network is several wake-ups of a busy machine */
	return (uint64_t)ct_opt.packets / (ct_net() ? 100 : 10);
}

/* x */

/* For a loop that waits, in any thread: step the interface in one iteration of
 * SPINS. spins counts the iterations from 1. Returns false after the time
 * end. */
static bool look_on(struct ct_if *ci, unsigned spins, uint64_t end)
{
	if (spins % SPINS != 0)
		return true;
	ct_step(ci);
	sched_yield();
	return ct_now() < end;
}

/* Wait until a back word of the peer, which only increases, is val or more. */
static bool wait_word(struct ct_if *ci, struct hal_peer *peer, int word,
		      uint64_t val)
{
	uint64_t end = ct_deadline();

	for (unsigned spins = 1; hal_tx_back(peer, word) < val; spins++) {
		if (!look_on(ci, spins, end))
			return false;
	}
	return true;
}

static bool wait_packet(struct ct_if *ci, struct hal_peer *peer, uint64_t want)
{
	uint64_t end = ct_deadline(), head, got;
	const struct hal_cell *cell;

	for (unsigned spins = 1; (cell = ct_peek(peer, &head)) == NULL;
	     spins++) {
		if (!look_on(ci, spins, end))
			return false;
	}
	got = hal_cell_word(cell, 0);
	hal_rx_release(peer);
	hal_rx_flush(peer);
	return got == want;
}

/* One end of a test in a thread of its own. */
struct side {
	struct ct_if *ci;
	struct hal_peer *peer;
	const uint8_t *mem;		/* memory for ct_window_take() */
	uint64_t rounds;
	const char *error;
};

/* ---- Back words in one order ----------------------------------------- */

/* Store a back word; repeat the call until the store is known to have
 * arrived. */
static int store_sync(struct ct_if *ci, struct hal_peer *peer, int word,
		      uint64_t val)
{
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_rx_back_sync(peer, word, val)) == -FI_EAGAIN) {
		if (ct_now() > end)
			return -FI_ETIMEDOUT;
		ct_step_both(ci);
	}
	return ret;
}

/*
 * In each round both ends store the number of the round, load the peer's word,
 * and report the value they loaded by another word. The next round begins at
 * both ends at about the same time, when the peer's report has arrived. An end
 * may report a round before the peer has read its former report, so two words
 * alternate.
 */
const char *ct_sync_game(struct ct_if *ci, struct hal_peer *peer,
			 uint64_t rounds)
{
	for (uint64_t i = 1; i <= rounds; i++) {
		int score = WORD_SCORE + (int)(i & 1);
		bool saw;

		if (store_sync(ci, peer, WORD_GAME, i) != 0)
			return "hal_rx_back_sync failed";
		saw = hal_tx_back_sync(peer, WORD_GAME) >= i;
		hal_rx_back(peer, score, 2 * i + saw);
		if (!wait_word(ci, peer, score, 2 * i))
			return "a word stored back did not come";
		if (!saw && !(hal_tx_back(peer, score) & 1))
			return "both stored and looked, and neither saw";
	}
	return NULL;
}

/* A stored word is visible to the peer when the call returns. */
static void back_sync_by_turns(void **state)
{
	struct ct_pair p = ct_pair(0, (int)ct_caps->boards - 1);

	for (uint64_t i = 1; i <= 2000; i++) {
		int word = (int)(i % HAL_BACK_WORDS);

		assert_int_equal(store_sync(p.a, p.ab, word, i), 0);
		assert_true(hal_tx_back_sync(p.ba, word) == i);
		assert_int_equal(store_sync(p.b, p.ba, word, ~i), 0);
		assert_true(hal_tx_back_sync(p.ab, word) == ~i);
		/* also after an ordinary store, which must not arrive later */
		hal_rx_back(p.ab, word, i + 1);
		assert_int_equal(store_sync(p.a, p.ab, word, i + 2), 0);
		assert_true(hal_tx_back(p.ba, word) == i + 2);
	}
	assert_int_equal(ct_drain(p.ab) + ct_drain(p.ba), 0);
}

static atomic_uint playing;

/* One end; it steps on until both are done: its last word may be sent by a
 * later step only. */
static void *sync_thread(void *arg)
{
	struct side *s = arg;

	s->error = ct_sync_game(s->ci, s->peer, s->rounds);
	atomic_fetch_sub(&playing, 1);
	while (atomic_load(&playing) != 0)
		ct_step(s->ci);
	return NULL;
}

static void back_sync_threads(void **state)
{
	struct ct_pair p = ct_pair(0, (int)ct_caps->boards - 1);
	struct side a = { p.a, p.ab, NULL, rounds_of(), NULL };
	struct side b = { p.b, p.ba, NULL, rounds_of(), NULL };
	pthread_t thread;

	/* qemu-user has no barrier between STLR and LDAR, which may be
	 * reordered. */
	unit_needs(ct_opt.via == NULL);
	ct_part(&p);
	atomic_store(&playing, 2);
	thread = unit_thread(sync_thread, &b);
	sync_thread(&a);
	pthread_join(thread, NULL);
	if (a.error != NULL || b.error != NULL)
		ct_fail("%s", a.error != NULL ? a.error : b.error);
}

static void proc_back_sync(void **state)
{
	struct hal_peer *peer;
	struct ct_child *c;
	const char *error;
	struct ct_if *ci;

	/* qemu-user omits the barriers of a process with one thread. */
	unit_needs(ct_opt.via == NULL || ct_two_hosts());
	ci = ct_open(0);
	c = ct_spawn();
	peer = ct_join_child(ci, c);
	ct_tell(c, "sync %" PRIu64, rounds_of());
	error = ct_sync_game(ci, peer, rounds_of());
	ct_good(error);
	ct_hear_ok(c);
	ct_finish(c);
}

/* ---- Windows --------------------------------------------------------- */

/* An imported region and its window. */
struct view {
	struct hal_rmem *rmem;
	struct hal_window win;
};

static struct view view_of(struct hal_peer *peer, const struct hal_key *key,
			   size_t bytes)
{
	struct view v;

	assert_int_equal(ct_import(peer, key, &v.rmem), 0);
	hal_mem_window(peer, v.rmem, &v.win);
	assert_non_null(v.win.addr);
	assert_true(v.win.bytes >= bytes);
	return v;
}

/* Does the first interface of a pair have a window to memory of this board? */
static bool has_window(const struct ct_pair *p, uint32_t board)
{
	return !ct_net() && (ct_caps->flags & HAL_CAP_COHERENT ||
			     p->a->hif->addr.board == board);
}

/* Windows exist to the memory of every board, with HAL_CAP_COHERENT, or to that
 * of the own board only; to memory of other hosts there is none. */
static void window_where_coherent(void **state)
{
	int last = (int)ct_caps->boards - 1;
	struct ct_pair p[2] = { ct_pair(-1, last), ct_pair(last, -1) };

	for (size_t bytes = 1; bytes < 1 << 20; bytes = 3 * bytes + 1) {
		struct ct_region o = ct_region(bytes);

		for (int i = 0; i < 2; i++) {
			struct hal_window win = { NULL, 1 };
			bool has = has_window(&p[i], o.board);
			struct hal_rmem *rmem;

			assert_int_equal(ct_import(p[i].ab, &o.key, &rmem), 0);
			hal_mem_window(p[i].ab, rmem, &win);
			assert_int_equal(win.addr != NULL, has);
			assert_true(has ? win.bytes >= bytes : win.bytes == 0);
			assert_true(hal_mem_bytes(p[i].ab, rmem) >= bytes);
			hal_mem_release(p[i].ab, rmem);
		}
		hal_mem_free(ct_hal, o.mem);
	}
}

/* A random range of a region, of any length and alignment. */
static size_t some_range(uint64_t *rng, size_t bytes, size_t *off)
{
	uint64_t r = ct_random(rng);
	size_t len = r % 3 == 0 ? (r >> 8) % bytes : (r >> 8) % 130;

	*off = (r >> 32) % (bytes - len + 1);
	return len;
}

/* Stores change their range and no other byte. A peer that receives the packet
 * or back word after them reads the stored bytes. */
static void store_by_window(bool by_word)
{
	enum { BYTES = CT_WINDOW_BYTES };
	uint8_t want[BYTES] = { 0 }, buf[BYTES];
	uint64_t rng = 5, end;
	struct ct_region o;
	struct ct_pair p;
	struct view v;

	CT_NOT_NET();
	p = ct_pair(-1, (int)ct_caps->boards - 1);
	o = ct_region(BYTES);
	v = view_of(p.ab, &o.key, BYTES);
	for (uint64_t i = 1; i <= 1000; i++) {
		size_t off, len = some_range(&rng, BYTES, &off);

		ct_fill(buf, len, i);
		memcpy(want + off, buf, len);
		hal_win_store(&v.win, off, buf, len);
		if (by_word) {
			hal_rx_back(p.ab, WORD_GAME, i);
			end = ct_deadline();
			while (hal_tx_back(p.ba, WORD_GAME) != i) {
				assert_true(ct_now() < end);
				ct_step_all();
			}
		} else {
			assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i),
					 0);
			assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
		}
		assert_memory_equal(o.addr, want, BYTES);
	}
	hal_mem_release(p.ab, v.rmem);
	hal_mem_free(ct_hal, o.mem);
}

static void window_store_before_packet(void **state)
{
	store_by_window(false);
}

static void window_store_before_back_word(void **state)
{
	store_by_window(true);
}

static void window_load(void **state)
{
	enum { BYTES = CT_WINDOW_BYTES };
	uint8_t buf[BYTES], kept[BYTES];
	uint64_t rng = 6;
	struct ct_pair p;
	struct ct_region o;
	struct view v;

	CT_NOT_NET();
	p = ct_pair(-1, (int)ct_caps->boards - 1);
	o = ct_region(BYTES);
	v = view_of(p.ab, &o.key, BYTES);
	for (uint64_t i = 1; i <= 300; i++) {
		size_t off, len = some_range(&rng, BYTES, &off);

		ct_fill(o.addr, BYTES, i);
		assert_int_equal(ct_send(p.b, p.ba, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(p.ab, CT_TYPE_PING) == i);
		ct_fill(buf, BYTES, ~i);
		memcpy(kept, buf, BYTES);
		memcpy(kept, o.addr + off, len);
		hal_win_load(&v.win, off, buf, len);
		assert_memory_equal(buf, kept, BYTES);
		assert_ptr_equal(hal_win_word(&v.win, off), v.win.addr + off);
	}
	hal_mem_release(p.ab, v.rmem);
	hal_mem_free(ct_hal, o.mem);
}

/* A region that its owner has freed can be accessed until the import is
 * released, and its memory is not reused before. */
static void window_after_free(void **state)
{
	enum { BYTES = 5000 };
	struct ct_pair p;
	uint8_t buf[BYTES], got[BYTES];

	CT_NOT_NET();
	p = ct_pair(-1, (int)ct_caps->boards - 1);
	for (uint64_t i = 0; i < 50; i++) {
		struct ct_region o = ct_region(BYTES), other[4];
		struct view v = view_of(p.ab, &o.key, BYTES);

		hal_mem_free(ct_hal, o.mem);
		for (int k = 0; k < 4; k++) {
			other[k] = ct_region(BYTES);
			memset(other[k].addr, 0x77, BYTES);
		}
		ct_step_all();
		ct_fill(buf, BYTES, i);
		hal_win_store(&v.win, 0, buf, BYTES);
		ct_step_all();
		hal_win_load(&v.win, 0, got, BYTES);
		assert_memory_equal(got, buf, BYTES);
		memset(buf, 0x77, BYTES);
		for (int k = 0; k < 4; k++) {
			assert_memory_equal(other[k].addr, buf, BYTES);
			hal_mem_free(ct_hal, other[k].mem);
		}
		hal_mem_release(p.ab, v.rmem);
	}
}

/* A window is gone with its import: the memory of a board is enough for more
 * regions, one after the other, than fit into it. */
static void window_gives_back(void **state)
{
	enum { BYTES = 8 << 20 };
	struct ct_pair p;

	CT_NOT_NET();
	p = ct_pair(-1, (int)ct_caps->boards - 1);
	for (int i = 0; i < 140; i++) {
		struct ct_region o = ct_region(BYTES);
		struct view v = view_of(p.ab, &o.key, BYTES);

		hal_win_store(&v.win, BYTES - 1, "x", 1);
		hal_mem_free(ct_hal, o.mem);
		hal_mem_release(p.ab, v.rmem);
	}
}

/* ---- Windows, two at a time ------------------------------------------ */

/* The range of the stores of round i. */
static size_t range_of(uint64_t i, size_t *off)
{
	return some_range(&i, CT_WINDOW_BYTES, off);
}

/* A packet or a back word, in turn, notifies the peer; it answers by a back
 * word. */
const char *ct_window_send(struct ct_if *ci, struct hal_peer *peer,
			   const struct hal_window *win, uint64_t rounds)
{
	static _Thread_local uint8_t buf[CT_WINDOW_BYTES];

	for (uint64_t i = 1; i <= rounds; i++) {
		size_t off, len = range_of(i, &off);

		ct_fill(buf, len, i);
		hal_win_store(win, off, buf, len);
		if (i & 1)
			hal_rx_back(peer, WORD_GAME, i);
		else if (ct_send(ci, peer, CT_TYPE_SPACE, i) != 0)
			return "hal_pkt_send failed";
		if (!wait_word(ci, peer, WORD_SCORE, i))
			return "no answer came";
	}
	return NULL;
}

const char *ct_window_take(struct ct_if *ci, struct hal_peer *peer,
			   const uint8_t *mem, uint64_t rounds)
{
	for (uint64_t i = 1; i <= rounds; i++) {
		size_t off, len = range_of(i, &off);
		bool told = i & 1 ? wait_word(ci, peer, WORD_GAME, i) :
			wait_packet(ci, peer, i);

		if (!told)
			return "neither packet nor word came";
		if (!ct_filled(mem + off, len, i))
			return "stores came after what tells of them";
		hal_rx_back(peer, WORD_SCORE, i);
	}
	return NULL;
}

static void *take_thread(void *arg)
{
	struct side *s = arg;

	s->error = ct_window_take(s->ci, s->peer, s->mem, s->rounds);
	return NULL;
}

static void window_store_threads(void **state)
{
	struct side b = { .rounds = rounds_of() };
	const char *error;
	pthread_t thread;
	struct ct_pair p;
	struct ct_region o;
	struct view v;

	CT_NOT_NET();
	p = ct_pair(-1, (int)ct_caps->boards - 1);
	o = ct_region(CT_WINDOW_BYTES);
	v = view_of(p.ab, &o.key, CT_WINDOW_BYTES);
	b.ci = p.b;
	b.peer = p.ba;
	b.mem = o.addr;
	thread = unit_thread(take_thread, &b);
	error = ct_window_send(p.a, p.ab, &v.win, b.rounds);
	pthread_join(thread, NULL);
	if (error != NULL || b.error != NULL)
		ct_fail("%s", b.error != NULL ? b.error : error);
	hal_mem_release(p.ab, v.rmem);
	hal_mem_free(ct_hal, o.mem);
}

/* The key of memory of this size, which the child allocates. */
static struct hal_key far_key(struct ct_child *c, size_t bytes)
{
	struct hal_key key = { { 0 } };
	char rest[128];

	ct_ask(c, rest, sizeof(rest), "alloc %zu", bytes);
	assert_int_equal(sscanf(rest, "%" SCNx64 " %" SCNx64, &key.word[0],
				&key.word[1]), 2);
	return key;
}

static void proc_window_store(void **state)
{
	struct hal_peer *peer;
	struct ct_child *c;
	struct hal_key key;
	struct ct_if *ci;
	const char *error;
	struct view v;

	CT_NOT_NET();
	ci = ct_open(-1);
	c = ct_spawn();
	peer = ct_join_child(ci, c);
	key = far_key(c, CT_WINDOW_BYTES);
	v = view_of(peer, &key, CT_WINDOW_BYTES);
	ct_tell(c, "window %" PRIu64, rounds_of());
	error = ct_window_send(ci, peer, &v.win, rounds_of());
	ct_good(error);
	ct_hear_ok(c);
	hal_mem_release(peer, v.rmem);
	ct_finish(c);
}

/* ---- Atomics --------------------------------------------------------- */

static void add_one(void *word64, void *word32)
{
	__atomic_fetch_add((uint64_t *)word64, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add((uint32_t *)word32, 1, __ATOMIC_SEQ_CST);
}

const char *ct_window_add(struct hal_peer *peer, const struct hal_key *key,
			  uint64_t rounds)
{
	struct hal_window win;
	struct hal_rmem *rmem;

	if (ct_import(peer, key, &rmem) != 0)
		return "import";
	hal_mem_window(peer, rmem, &win);
	for (uint64_t i = 0; win.addr != NULL && i < rounds; i++)
		add_one(hal_win_word(&win, ADD64), hal_win_word(&win, ADD32));
	hal_mem_release(peer, rmem);
	return win.addr == NULL ? "no window" : NULL;
}

/* The owner and two processes with windows add to the same words. */
static void proc_window_atomics(void **state)
{
	uint64_t rounds = rounds_of(), sum;
	struct ct_child *c[2];
	struct ct_if *ci;
	uint32_t sum32;
	struct ct_region o;

	CT_NOT_NET();
	ci = ct_open(-1);
	o = ct_region(4096);
	for (int i = 0; i < 2; i++) {
		c[i] = ct_spawn();
		ct_join_child(ci, c[i]);
	}
	for (int i = 0; i < 2; i++)
		ct_tell(c[i], "add %" PRIx64 " %" PRIx64 " %" PRIu64,
			o.key.word[0], o.key.word[1], rounds);
	for (uint64_t i = 0; i < rounds; i++) {
		/* The children may be importing the region. */
		if (i % SPINS == 0)
			ct_step_all();
		add_one(o.addr + ADD64, o.addr + ADD32);
	}
	for (int i = 0; i < 2; i++)
		ct_hear_ok(c[i]);
	memcpy(&sum, o.addr + ADD64, sizeof(sum));
	memcpy(&sum32, o.addr + ADD32, sizeof(sum32));
	assert_true(sum == 3 * rounds);
	assert_true(sum32 == (uint32_t)(3 * rounds));
	for (int i = 0; i < 2; i++)
		ct_finish(c[i]);
	hal_mem_free(ct_hal, o.mem);
}

/* Imported memory of a killed process exists until the import is released. */
static void proc_window_of_the_dead(void **state)
{
	uint8_t buf[CT_WINDOW_BYTES], got[CT_WINDOW_BYTES];
	struct hal_peer *peer;
	struct ct_child *c;
	struct hal_key key;
	struct ct_if *ci;
	struct view v;

	CT_NOT_NET();
	ci = ct_open(-1);
	c = ct_spawn();
	peer = ct_join_child(ci, c);
	key = far_key(c, sizeof(buf));
	ct_ask(c, NULL, 0, "fill 9");
	v = view_of(peer, &key, sizeof(buf));
	ct_kill(c);
	hal_win_load(&v.win, 0, got, sizeof(got));
	assert_true(ct_filled(got, sizeof(got), 9));
	ct_wait_event(ci, HAL_EV_DEAD, peer);
	ct_fill(buf, sizeof(buf), 10);
	hal_win_store(&v.win, 0, buf, sizeof(buf));
	hal_win_load(&v.win, 0, got, sizeof(got));
	assert_memory_equal(got, buf, sizeof(buf));
	hal_mem_release(peer, v.rmem);
	hal_peer_free(peer);
}

/* Memory of a process on the own board, opened by its key while it is imported,
 * is local memory of transfers; it lasts longer than the import and its
 * owner. */
static void proc_memory_opened(void **state)
{
	struct hal_dma put = { .op = HAL_DMA_PUT, .len = CT_WINDOW_BYTES };
	struct ct_region to;
	struct hal_mem *mem;
	struct ct_child *c;
	struct hal_key key;
	struct ct_pair p;
	struct view v;
	void *at = NULL;

	CT_NOT_NET();
	p = ct_pair(-1, -1);
	to = ct_region(CT_WINDOW_BYTES);
	c = ct_spawn();
	put.peer = ct_join_child(p.a, c);
	key = far_key(c, CT_WINDOW_BYTES);
	ct_ask(c, NULL, 0, "fill 9");
	v = view_of(put.peer, &key, CT_WINDOW_BYTES);
	if (ct_caps->flags & HAL_CAP_COHERENT) {
		assert_int_equal(hal_mem_open(ct_hal, &key, &mem, &at),
				 -FI_ENOSYS);
	} else {
		assert_int_equal(hal_mem_open(ct_hal, &key, &mem, &at), 0);
		hal_mem_release(put.peer, v.rmem);
		ct_kill(c);
		ct_wait_event(p.a, HAL_EV_DEAD, put.peer);
		hal_peer_free(put.peer);
		assert_true(ct_filled(at, CT_WINDOW_BYTES, 9));
		put.peer = p.ab;
		put.local = at;
		assert_int_equal(ct_import(p.ab, &to.key, &put.rmem), 0);
		assert_int_equal(ct_dma_run(p.a, &put), 0);
		assert_true(ct_filled(to.addr, CT_WINDOW_BYTES, 9));
		hal_mem_free(ct_hal, mem);
		assert_int_equal(ct_dma_run(p.a, &put), -FI_EINVAL);
		assert_int_equal(hal_mem_open(ct_hal, &key, &mem, &at),
				 -FI_EKEYREJECTED);
	}
	hal_mem_free(ct_hal, to.mem);
}

const struct CMUnitTest ct_shared_tests[] = {
	CT_TEST(back_sync_by_turns),
	CT_TEST(back_sync_threads),
	CT_TEST(window_where_coherent),
	CT_TEST(window_store_before_packet),
	CT_TEST(window_store_before_back_word),
	CT_TEST(window_load),
	CT_TEST(window_after_free),
	CT_TEST(window_gives_back),
	CT_TEST(window_store_threads),
};
const size_t ct_shared_count = CT_COUNT(ct_shared_tests);

const struct CMUnitTest ct_shared_proc_tests[] = {
	CT_TEST(proc_back_sync),
	CT_TEST(proc_window_store),
	CT_TEST(proc_window_atomics),
	CT_TEST(proc_window_of_the_dead),
	CT_TEST(proc_memory_opened),
};
const size_t ct_shared_proc_count = CT_COUNT(ct_shared_proc_tests);
