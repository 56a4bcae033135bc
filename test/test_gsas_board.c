/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_board.c - the atomic service on the HAL, met by bare interfaces:
 * every way a request and its answer can take, clients that take no answers,
 * that end in the middle, that are many; sleeping; no memory.
 *
 * Most of it runs service and clients by turns, in one thread, so that what
 * comes first is known.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "unit.h"
#include "gsas_board.h"
#include "gsas_op.h"

#define CLIENTS		64
#define SECONDS		120		/* until a test hangs */
#define ROUNDS		(UNIT_SLOW ? 200 : 2000)
#define JOB		UINT64_C(0x123456789abcdef)

static struct gsas_board *g_board;
static struct hal *g_hal;
static int g_number;
static pthread_t g_thread;
static _Atomic bool g_stop;
static bool g_threaded;			/* it serves by itself */
static _Atomic int g_lines;		/* it logged */

static void count_line(const char *line)
{
	(void)line;
	atomic_fetch_add(&g_lines, 1);
}

static enum gsas_error spawn(void *ctx, const struct gsas_spawn *s,
			     uint64_t *pid)
{
	assert_ptr_equal(ctx, &g_stop);
	if (strcmp(s->path, "/bin/none") == 0)
		return GSAS_E_PATH;
	*pid = s->argument + s->job[0];
	return GSAS_OK;
}

static int board_open(int number, struct gsas_board **board)
{
	struct gsas_board_attr attr = {
		.board = number, .max_pages = 100000, .spawn = spawn,
		.spawn_ctx = &g_stop, .log = count_line,
	};

	return gsas_board_open(&attr, board);
}

static int setup(void **state)
{
	int ret;

	(void)state;
	atomic_store(&g_lines, 0);
	/* the end of the one before may not be known to all yet */
	while ((ret = board_open(g_number, &g_board)) == -FI_EBUSY)
		usleep(1000);
	return ret;
}

static void *serve(void *arg)
{
	(void)arg;
	/* without end: who does not wake it hangs the test */
	while (!atomic_load(&g_stop))
		if (!gsas_board_poll(g_board))
			gsas_board_sleep(g_board, -1);
	return NULL;
}

static void serve_apart(void)
{
	atomic_store(&g_stop, false);
	g_threaded = true;
	assert_int_equal(pthread_create(&g_thread, NULL, serve, NULL), 0);
}

static void serve_here(void)
{
	atomic_store(&g_stop, true);
	gsas_board_wake(g_board);
	pthread_join(g_thread, NULL);
	g_threaded = false;
}

/* ---- Clients ------------------------------------------------------------- */

struct raw {
	struct hal_if *hif;
	struct hal_peer *peer;
	bool dead;
};

struct answer {
	uint8_t opcode, tag;
	uint64_t error, result, more;
};

static struct raw g_raw[CLIENTS];

static void raw_look(struct raw *r)
{
	struct hal_event ev[4];
	int n = hal_if_service(r->hif, ev, 4);

	hal_if_pump(r->hif);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			r->dead = true;
}

static uint64_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

static void step(struct raw *r)
{
	if (r != NULL)
		raw_look(r);
	if (g_threaded)
		sched_yield();
	else
		gsas_board_poll(g_board);
}

#define UNTIL(r, cond)	do {						\
		uint64_t until_ = now_s() + SECONDS;			\
		while (!(cond)) {					\
			step(r);					\
			if (now_s() > until_)				\
				unit_fail("%s:%d: never: %s", __FILE__,	\
					  __LINE__, #cond);		\
		}							\
	} while (0)

static struct gsas_stat *stat(void)
{
	return gsas_service_stat(gsas_board_service(g_board));
}

static int raw_connect(struct raw *r)
{
	const struct hal_addr to = {
		.version = HAL_ADDR_VERSION, .board = (uint16_t)g_number,
		.iface = HAL_IF_SERVICE, .uid = r->hif->addr.uid,
	};

	return hal_connect(r->hif, &to, &r->peer);
}

static void raw_open(struct raw *r)
{
	int ret;

	*r = (struct raw){ 0 };
	assert_int_equal(hal_if_open(g_hal, g_number, &r->hif), 0);
	UNTIL(r, (ret = raw_connect(r)) != -FI_EAGAIN);
	assert_int_equal(ret, 0);
}

static void raw_close(struct raw *r)
{
	if (r->hif != NULL)
		hal_if_close(r->hif);
	*r = (struct raw){ 0 };
}

static bool raw_send(struct raw *r, uint8_t opcode, uint8_t tag,
		     uint64_t address, uint64_t arg1, uint64_t arg2)
{
	uint64_t w[GSAS_WORDS] = { address, arg1, arg2 };

	return hal_pkt_send(r->peer, hal_head(opcode, tag), w, GSAS_WORDS,
			    NULL, 0) == 0;
}

static bool raw_take(struct raw *r, struct answer *a)
{
	const struct hal_cell *cell;
	uint64_t head;

	if (r->peer->rx.cells == NULL ||
	    (cell = hal_rx_peek(r->peer, &head)) == NULL)
		return false;
	*a = (struct answer){
		.opcode = hal_head_type(head), .tag = hal_head_flags(head),
		.error = hal_cell_word(cell, 0),
		.result = hal_cell_word(cell, 1),
		.more = hal_cell_word(cell, 2),
	};
	hal_rx_release(r->peer);
	hal_rx_flush(r->peer);
	return true;
}

static struct answer raw_ask(struct raw *r, uint8_t opcode, uint64_t address,
			     uint64_t arg1, uint64_t arg2)
{
	static uint8_t tag;
	struct answer a;

	tag = tag % GSAS_TAGS + 1;
	UNTIL(r, raw_send(r, opcode, tag, address, arg1, arg2));
	UNTIL(r, raw_take(r, &a));
	assert_int_equal(a.opcode, opcode);
	assert_int_equal(a.tag, tag);
	return a;
}

static uint64_t ask(struct raw *r, uint8_t opcode, uint64_t address,
		    uint64_t arg1, uint64_t arg2)
{
	struct answer a = raw_ask(r, opcode, address, arg1, arg2);

	assert_int_equal(a.error, GSAS_OK);
	return a.result;
}

#define REFUSED(why, ...)						\
	assert_int_equal(raw_ask(__VA_ARGS__).error, GSAS_E_##why)

static void raw_join(struct raw *r)
{
	raw_open(r);
	ask(r, GSAS_JOIN, JOB, JOB, 0);
}

/* Store into the space the service keeps for us. */
static void raw_store(struct raw *r, uint32_t off, const void *src, size_t len)
{
	assert_int_equal(hal_space_ready(r->peer, off + (uint32_t)len), 0);
	hal_space_write(r->peer, off, src, len);
	hal_space_barrier(r->peer);
}

static int teardown(void **state)
{
	(void)state;
	if (g_threaded)
		serve_here();
	for (int i = 0; i < CLIENTS; i++)
		raw_close(&g_raw[i]);
	if (g_board != NULL)
		gsas_board_close(g_board);
	g_board = NULL;
	return 0;
}

/* By words of the packets alone. */
static void test_words(void **state)
{
	struct raw *r = &g_raw[0];
	struct answer a;
	uint64_t at;

	(void)state;
	raw_open(r);
	REFUSED(JOIN, r, GSAS_READ64, 0, 0, 0);
	ask(r, GSAS_JOIN, JOB, JOB, 0);
	at = ask(r, GSAS_ALLOC, 0, 3, 0);
	assert_int_equal(gsas_board_of(at), g_number);
	ask(r, GSAS_WRITE64, at, UINT64_C(0xCAFEBEBEDEADBEEF), 0);
	assert_true(ask(r, GSAS_READ64, at, 0, 0) ==
		    UINT64_C(0xCAFEBEBEDEADBEEF));
	assert_int_equal(ask(r, GSAS_READ8, at + 1, 0, 0), 0xBE);
	ask(r, GSAS_WRITE8, at + 8, 200, 0);
	ask(r, GSAS_WRITE32, at + 12, 7, 0);
	assert_int_equal(ask(r, GSAS_READ32, at + 12, 0, 0), 7);
	ask(r, GSAS_WRITE128, at + 16, 3, 4);
	assert_int_equal(ask(r, GSAS_READ64, at + 24, 0, 0), 4);
	assert_int_equal(ask(r, GSAS_FAD64, at + 24, 6, 0), 4);
	assert_int_equal(ask(r, GSAS_SWAP64, at + 24, 1, 0), 10);
	a = raw_ask(r, GSAS_CAS64, at + 24, 1, 9);
	assert_true(a.error == GSAS_OK && a.result == 1 && a.more == 1);
	a = raw_ask(r, GSAS_CAS64, at + 24, 1, 5);
	assert_true(a.error == GSAS_OK && a.result == 0 && a.more == 9);
	assert_int_equal(ask(r, GSAS_UPDATE, at + 24, GSAS_OP_SUM |
			     GSAS_TYPE_UINT64 << 8, 1), 9);
	/* nobody answers those, and the fence tells */
	UNTIL(r, raw_send(r, GSAS_WRITE64, 0, at, 77, 0));
	UNTIL(r, raw_send(r, GSAS_WRITE64, 0, 1, 77, 0));
	a = raw_ask(r, GSAS_FENCE, 0, 0, 0);
	assert_int_equal(a.result, 1);
	assert_int_equal(a.more, GSAS_E_ADDRESS);
	assert_int_equal(ask(r, GSAS_READ64, at, 0, 0), 77);
	assert_false(gsas_board_empty(g_board));
	ask(r, GSAS_FREE, 0, at, 0);
	REFUSED(FREED, r, GSAS_READ64, at, 0, 0);
	assert_false(gsas_board_empty(g_board));
	raw_close(r);
	UNTIL(NULL, gsas_board_empty(g_board));
}

/* ... and by the spaces of either side. */
static void test_spaces(void **state)
{
	const uint64_t max = g_hal->caps.space_bytes;
	const uint64_t bad[] = { max, max - 8, UINT64_MAX, UINT64_MAX - 15,
				 UINT64_C(1) << 32 };
	struct raw *r = &g_raw[0];
	struct gsas_list_entry entry;
	struct gsas_stat st;
	uint64_t at, text[2] = { 11, 12 };

	(void)state;
	raw_join(r);
	at = ask(r, GSAS_ALLOC, 0, 2, 0);
	/* nothing was ever stored there: a space, or none, but no crash */
	raw_ask(r, GSAS_PUT, at, 16, 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		REFUSED(ARGUMENT, r, GSAS_PUT, at, 16, bad[i]);
		REFUSED(ARGUMENT, r, GSAS_GET, at, 16, bad[i]);
		REFUSED(ARGUMENT, r, GSAS_READ4K, at, bad[i], 0);
		REFUSED(ARGUMENT, r, GSAS_STAT, 0, 0, bad[i]);
	}
	raw_store(r, 8, text, 16);
	assert_int_equal(ask(r, GSAS_PUT, at + 4, 16, 8), 16);
	assert_int_equal(ask(r, GSAS_READ64, at + 8, 0, 0) >> 32, 12);
	assert_int_equal(ask(r, GSAS_GET, at + 4, 16, max - 16), 16);
	assert_memory_equal(hal_space(r->peer, (uint32_t)max - 16), text, 16);
	assert_int_equal(ask(r, GSAS_READ4K, at, 0, 0), 4096);
	assert_memory_equal(hal_space(r->peer, 4), text, 16);
	ask(r, GSAS_STAT, 0, 0, 64);
	memcpy(&st, hal_space(r->peer, 64), sizeof(st));
	assert_int_equal(st.pages, 2);
	assert_int_equal(st.clients, 1);
	assert_int_equal(st.op[GSAS_READ4K], 1 + sizeof(bad) / sizeof(bad[0]));
	assert_int_equal(ask(r, GSAS_LIST, 0, 1, 0), 1);
	memcpy(&entry, hal_space(r->peer, 0), sizeof(entry));
	assert_true(entry.address == at && entry.pages == 2);
	ask(r, GSAS_FREE, 0, at, 0);
}

/* What takes long is answered later, and memory that may be mapped can be. */
static void test_works(void **state)
{
	const bool coherent = g_hal->caps.flags & HAL_CAP_COHERENT;
	struct raw *r = &g_raw[0];
	struct gsas_map_info info;
	struct hal_window win;
	struct hal_rmem *rmem;
	struct hal_key key;
	uint64_t at, word = 0;
	int ret;

	(void)state;
	raw_join(r);
	at = ask(r, GSAS_ALLOC, 0, 1, GSAS_ATTR_MAPPED);
	ask(r, GSAS_WRITE64, at, 4711, 0);
	ask(r, GSAS_MAP, at, 0, 0);
	memcpy(&info, hal_space(r->peer, 0), sizeof(info));
	assert_true(at - info.base < info.bytes);
	memcpy(key.word, info.key, sizeof(key.word));
	UNTIL(r, (ret = hal_mem_import(r->peer, &key, &rmem)) != -FI_EAGAIN);
	assert_int_equal(ret, 0);
	hal_mem_window(r->peer, rmem, &win);
	assert_true(coherent == (win.addr != NULL));
	if (win.addr != NULL) {
		assert_true(win.bytes >= info.bytes);
		hal_win_load(&win, at - info.base, &word, sizeof(word));
		assert_int_equal(word, 4711);
		word = 4712;
		hal_win_store(&win, at - info.base, &word, sizeof(word));
		assert_int_equal(ask(r, GSAS_READ64, at, 0, 0), 4712);
	}
	hal_mem_release(r->peer, rmem);
	ask(r, GSAS_FREE, 0, at, 0);
	at = ask(r, GSAS_ALLOC, 0, 1, 0);
	assert_int_equal(ask(r, GSAS_MAP, at, 0, 0), 0);
	memcpy(&info, hal_space(r->peer, 0), sizeof(info));
	assert_true(at - info.base < info.bytes);
	assert_true((info.key[0] | info.key[1]) == 0);
	raw_store(r, 0, "/bin/none", 10);
	ask(r, GSAS_PUT, at, 10, 0);
	REFUSED(PATH, r, GSAS_FORK, 0, at, 0);
	ask(r, GSAS_WRITE8, at + 5, 0, 0);
	assert_true(ask(r, GSAS_FORK, 0, at, 5) == JOB + 5);
	ask(r, GSAS_FREE, 0, at, 0);
}

static void test_one_service(void **state)
{
	struct gsas_board *other;

	(void)state;
	assert_int_equal(board_open(g_number, &other), -FI_EBUSY);
	assert_int_equal(board_open((int)g_hal->caps.boards, &other),
			 -FI_EINVAL);
}

/* ---- Who takes no answers ------------------------------------------------ */

/* Send until neither requests nor answers go anywhere. How many. */
static uint64_t stall(struct raw *r, uint64_t at)
{
	uint64_t sent = 0;

	for (int quiet = 0; quiet < 1000; quiet++) {
		for (; raw_send(r, GSAS_FAD64, (uint8_t)(sent % 255 + 1), at,
				1, 0); sent++)
			quiet = 0;
		step(r);
	}
	return sent;
}

/* Others are served, it is napped meanwhile, and nothing is lost. */
static void test_no_answers_taken(void **state)
{
	struct raw *deaf = &g_raw[0], *other = &g_raw[1];
	uint64_t at, sent, sleeps;
	struct answer a;

	(void)state;
	raw_join(deaf);
	raw_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	sent = stall(deaf, at);
	assert_true(sent >= g_hal->caps.pkt_depth);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(ask(other, GSAS_FAD64, at + 8, 1, 0), i);
	/* there are requests, and nothing can be done about them */
	sleeps = stat()->sleeps;
	for (int i = 0; i < 10; i++)
		gsas_board_sleep(g_board, -1);
	assert_true(stat()->sleeps >= sleeps + 9);
	assert_true(ask(other, GSAS_READ64, at, 0, 0) < sent);
	for (uint64_t i = 0; i < sent; i++) {
		UNTIL(deaf, raw_take(deaf, &a));
		assert_int_equal(a.error, GSAS_OK);
		assert_int_equal(a.tag, i % 255 + 1);
		assert_int_equal(a.result, i);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

static void drain(struct raw *r, uint64_t sent)
{
	struct answer a;

	for (uint64_t i = 0; i < sent; i++) {
		UNTIL(r, raw_take(r, &a));
		assert_int_equal(a.result, i);
	}
}

/* The service sleeps beside requests that have to wait, and not as long as it
 * has set its clock: others wake it, and so does room for answers. */
static void test_no_nap_delays_others(void **state)
{
	struct raw *deaf = &g_raw[0], *other = &g_raw[1];
	uint64_t at, sent, wakes;

	(void)state;
	if (getenv("FI_UNIMEM_FAULT") != NULL ||
	    !(g_hal->caps.flags & HAL_CAP_EVENT))
		skip();
	raw_join(deaf);
	raw_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	sent = stall(deaf, at);
	wakes = stat()->wakes;
	serve_apart();
	for (uint64_t i = 0; i < 50; i++) {
		usleep(1000);
		assert_int_equal(ask(other, GSAS_FAD64, at + 8, 1, 0), i);
	}
	serve_here();
	/* (one was ours) */
	assert_true(stat()->wakes > wakes + 10);
	wakes = stat()->wakes;
	serve_apart();
	usleep(20000);
	drain(deaf, sent);
	serve_here();
	assert_true(stat()->wakes > wakes + 1);
	ask(other, GSAS_FREE, 0, at, 0);
}

/* The same, but it ends instead: what it asked for is done. */
static void test_last_words(void **state)
{
	struct raw *deaf = &g_raw[0], *other = &g_raw[1];
	uint64_t at, sent;

	(void)state;
	raw_join(deaf);
	raw_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	sent = stall(deaf, at);
	raw_close(deaf);
	UNTIL(other, stat()->clients == 1);
	assert_int_equal(ask(other, GSAS_READ64, at, 0, 0), sent);
	ask(other, GSAS_FREE, 0, at, 0);
}

/* An answer that never arrives tells of nothing: what was allocated is not. */
static void test_allocation_not_told(void **state)
{
	struct raw *deaf = &g_raw[0], *other = &g_raw[1];
	const uint64_t depth = g_hal->caps.pkt_depth;
	uint64_t at;

	(void)state;
	raw_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, 0);
	for (int i = 0; i < 2; i++) {
		/* the first is memory to be had at once, the second a work */
		const uint64_t pages = i == 0 ? 1 : 5000;
		const uint64_t allocs = stat()->op[GSAS_ALLOC];

		raw_join(deaf);
		for (uint64_t k = 0; k < depth; k++)
			UNTIL(deaf, raw_send(deaf, GSAS_READ64, 1, at, 0, 0));
		UNTIL(deaf, raw_send(deaf, GSAS_ALLOC, 2, 0, pages, 0));
		UNTIL(deaf, stat()->op[GSAS_ALLOC] == allocs + 1);
		assert_int_equal(stat()->pages, 1 + pages);
		/* it has something to say still, when it ends */
		UNTIL(deaf, raw_send(deaf, GSAS_FENCE, 3, 0, 0, 0));
		raw_close(deaf);
		UNTIL(other, stat()->clients == 1 && stat()->pages == 1);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

/* It came, spoke and went before anybody looked; a work and a fence are among
 * what it said. */
static void test_gone_before_seen(void **state)
{
	struct raw *r = &g_raw[0], *other = &g_raw[1];
	uint64_t at;

	(void)state;
	raw_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, GSAS_MODE_WORLD);
	for (int round = 0; round < 20; round++) {
		*r = (struct raw){ 0 };
		assert_int_equal(hal_if_open(g_hal, g_number, &r->hif), 0);
		UNTIL(NULL, raw_connect(r) == 0);
		if (round % 2 == 0)
			UNTIL(r, stat()->clients == 2);
		UNTIL(NULL, raw_send(r, GSAS_JOIN, 1, JOB, JOB + 1, 0));
		UNTIL(NULL, raw_send(r, GSAS_ALLOC, 2, 0, 3000, 0));
		UNTIL(NULL, raw_send(r, GSAS_FENCE, 3, 0, 0, 0));
		UNTIL(NULL, raw_send(r, GSAS_FAD64, 0, at, 1, 0));
		raw_close(r);
		/* (does the board know of the end before the memory is there?
		 * else the pages are its job's now) */
		UNTIL(other, stat()->clients == 1 &&
		      stat()->op[GSAS_FAD64] == round + 1u);
		assert_int_equal(ask(other, GSAS_READ64, at, 0, 0), round + 1);
		ask(other, GSAS_RECLAIM, 0, 0, 0);
		assert_int_equal(stat()->pages, 1);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

/* A flood delays nobody: a burst of it, and everybody else is looked at within
 * a few polls. */
static void test_many(void **state)
{
	const int ifs = (int)g_hal->caps.ifs_per_board;
	const int n = ifs < CLIENTS ? ifs : CLIENTS;
	struct answer a;
	uint64_t at;
	int left;

	(void)state;
	for (int i = 0; i < n; i++)
		raw_join(&g_raw[i]);
	at = ask(&g_raw[0], GSAS_ALLOC, 0, 1, 0);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i + 1; k++)
			ask(&g_raw[i], GSAS_FAD64, at + 8 * (unsigned)i, 1, 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(ask(&g_raw[0], GSAS_READ64,
				     at + 8 * (unsigned)i, 0, 0), i + 1);
	if (getenv("FI_UNIMEM_FAULT") == NULL) {
		for (int i = 0; i < n; i++)
			assert_true(raw_send(&g_raw[i], GSAS_READ64, 1, at, 0,
					     0));
		for (left = n; raw_send(&g_raw[0], GSAS_WRITE64, 0, at, 1, 0);)
			;
		gsas_board_poll(g_board);
		assert_true(stat()->op[GSAS_WRITE64] < 32);
		for (int poll = 0; poll < 1 + n / 16; poll++) {
			gsas_board_poll(g_board);
			for (int i = 0; i < n; i++) {
				raw_look(&g_raw[i]);
				left -= raw_take(&g_raw[i], &a);
			}
		}
		assert_int_equal(left, 0);
	}
	assert_int_equal(atomic_load(&g_lines), 0);
}

static void *hammer(void *arg)
{
	struct raw *r = arg;
	uint64_t at = (uint64_t)(uintptr_t)r->hif->user;

	for (int i = 0; i < ROUNDS; i++) {
		uint8_t tag = (uint8_t)(i % 200 + 1);
		struct answer a = { 0 };

		while (!raw_send(r, GSAS_FAD64, tag, at, 1, 0))
			sched_yield();
		while (!raw_take(r, &a)) {
			raw_look(r);
			sched_yield();
		}
		if (a.tag != tag || a.error != GSAS_OK)
			abort();
	}
	return NULL;
}

/* Each in its thread, the service too. */
static void test_threads(void **state)
{
	pthread_t thread[4];
	uint64_t at;

	(void)state;
	serve_apart();
	raw_join(&g_raw[4]);
	at = ask(&g_raw[4], GSAS_ALLOC, 0, 1, 0);
	for (int i = 0; i < 4; i++) {
		raw_join(&g_raw[i]);
		g_raw[i].hif->user = (void *)(uintptr_t)at;
		assert_int_equal(pthread_create(&thread[i], NULL, hammer,
						&g_raw[i]), 0);
	}
	/* others come and go meanwhile */
	for (int i = 0; i < 20; i++) {
		raw_join(&g_raw[5]);
		raw_send(&g_raw[5], GSAS_FAD64, 0, at + 8, 1, 0);
		raw_close(&g_raw[5]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(ask(&g_raw[4], GSAS_READ64, at, 0, 0), 4 * ROUNDS);
	ask(&g_raw[4], GSAS_FREE, 0, at, 0);
}

/* ---- Sleeping ------------------------------------------------------------ */

/* Whatever comes ends a sleep that has no end of its own. */
static void test_sleeps_and_wakes(void **state)
{
	struct raw *r = &g_raw[0];
	uint64_t rng = 1, at;

	(void)state;
	serve_apart();
	raw_join(r);
	at = ask(r, GSAS_ALLOC, 0, 1, 0);
	for (uint32_t i = 0; i < ROUNDS / 4; i++) {
		usleep(unit_below(&rng, 300));
		assert_int_equal(ask(r, GSAS_FAD64, at, 1, 0), i);
		if (i % 16 == 0)	/* a new peer, and its end */
			raw_join(&g_raw[1]);
		if (i % 16 == 8)
			raw_close(&g_raw[1]);
		if (i % 32 == 4)	/* a work */
			ask(r, GSAS_FREE, 0, ask(r, GSAS_ALLOC, 0, 256, 0), 0);
		if (i % 32 == 20)
			gsas_board_wake(g_board);
	}
	ask(r, GSAS_FREE, 0, at, 0);
	serve_here();
	assert_true(stat()->sleeps > 0);
	assert_true(stat()->wakes > 0 && stat()->wakes <= stat()->sleeps);
}

/* By turns: it does not sleep over what is there. */
static void test_no_sleep_with_work(void **state)
{
	struct raw *r = &g_raw[0];
	uint64_t at, wakes;
	struct answer a;

	(void)state;
	if (getenv("FI_UNIMEM_FAULT") != NULL)
		skip();			/* what we sent may be held here */
	raw_join(r);
	at = ask(r, GSAS_ALLOC, 0, 1, 0);
	for (uint64_t i = 0; i < 100; i++) {
		UNTIL(r, raw_send(r, GSAS_FAD64, 1, at, 1, 0));
		/* each would be for ever */
		do {
			gsas_board_sleep(g_board, -1);
			gsas_board_poll(g_board);
			raw_look(r);
		} while (!raw_take(r, &a));
		assert_int_equal(a.result, i);
	}
	/* one sleep each */
	gsas_board_wake(g_board);
	gsas_board_sleep(g_board, -1);
	wakes = stat()->wakes;
	for (int i = 0; i < 10; i++)
		gsas_board_sleep(g_board, 1);
	assert_true(stat()->wakes < wakes + 10);
	ask(r, GSAS_FREE, 0, at, 0);
}

/* ---- Ends ---------------------------------------------------------------- */

/* Clients see it end, after the answers to what was served. */
static void test_service_ends(void **state)
{
	const unsigned n = g_hal->caps.pkt_depth / 2;
	struct answer a;
	uint64_t at;

	(void)state;
	for (int i = 0; i < 3; i++)
		raw_join(&g_raw[i]);
	at = ask(&g_raw[0], GSAS_ALLOC, 0, 1, 0);
	for (unsigned i = 0; i < n; i++)
		UNTIL(&g_raw[0], raw_send(&g_raw[0], GSAS_FAD64, 1, at, 1, 0));
	UNTIL(&g_raw[0], stat()->op[GSAS_FAD64] == n);
	UNTIL(NULL, raw_send(&g_raw[1], GSAS_ALLOC, 1, 0, 5000, 0));
	gsas_board_poll(g_board);
	gsas_board_close(g_board);
	g_board = NULL;
	for (int i = 0; i < 3; i++)
		while (!g_raw[i].dead)
			raw_look(&g_raw[i]);
	for (unsigned i = 0; i < n; i++) {
		assert_true(raw_take(&g_raw[0], &a));
		assert_int_equal(a.result, i);
	}
	assert_false(raw_take(&g_raw[0], &a));
	assert_int_equal(setup(NULL), 0);
	assert_true(gsas_board_empty(g_board));
}

/* ---- No memory ----------------------------------------------------------- */

static long g_callocs, g_fail_at;	/* 0: none fails */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (g_fail_at != 0 && ++g_callocs == g_fail_at)
		return NULL;
	return __real_calloc(n, size);
}

/* Any one piece of memory is not there: a client is served, or told that it is
 * not. Every other one ends before anybody looked. */
static void test_no_memory(void **state)
{
	struct raw *r = &g_raw[0];
	struct answer a;
	int refused = 0;
	long at, most = 2;

	(void)state;
	for (at = 1; at <= most; at++) {
		for (int round = 0; round < 2; round++) {
			bool heard = false;

			*r = (struct raw){ 0 };
			assert_int_equal(hal_if_open(g_hal, g_number, &r->hif),
					 0);
			g_callocs = 0;
			g_fail_at = at;
			while (raw_connect(r) != 0)
				step(r);
			while (!raw_send(r, GSAS_JOIN, 1, JOB, JOB, 0))
				step(r);
			if (round == 1)
				raw_close(r);
			UNTIL(r->hif != NULL ? r : NULL, round == 1 ?
			      gsas_board_empty(g_board) : r->dead ||
			      (heard = raw_take(r, &a)));
			g_fail_at = 0;
			refused += round == 0 && !heard;
			raw_close(r);
			if (g_callocs > most)
				most = g_callocs;
			UNTIL(NULL, gsas_board_empty(g_board));
		}
	}
	assert_true(refused > 0);
	raw_join(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_words),
		TEST(test_spaces),
		TEST(test_works),
		TEST(test_one_service),
		TEST(test_no_answers_taken),
		TEST(test_no_nap_delays_others),
		TEST(test_last_words),
		TEST(test_allocation_not_told),
		TEST(test_gone_before_seen),
		TEST(test_many),
		TEST(test_threads),
		TEST(test_sleeps_and_wakes),
		TEST(test_no_sleep_with_work),
		TEST(test_service_ends),
		TEST(test_no_memory),
	};
	int ret;

	/* boards that no other test on the machine uses */
	if (getenv("FI_UNIMEM_BOARDS") == NULL &&
	    getenv("FI_UNIMEM_HAL") == NULL) {
		g_number = 1000 + (int)(getpid() % 30000);
		setenv("FI_UNIMEM_BOARDS", "60010", 1);
	}
	if (hal_get(NULL, &g_hal) != 0)
		return 99;
	ret = unit_run(tests);
	hal_put(g_hal);
	return ret;
}
