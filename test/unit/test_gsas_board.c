/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_board.c - the atomic service on the HAL, used by bare interfaces
 * (lib/gsas_bare_client.h): every kind of request and answer, many clients,
 * clients that end in the middle, and a service without memory, also for what
 * clients did not allocate.
 *
 * Clients that take no answers are in test_gsas_stall.c.
 */
#include "service/gsas_call.h"
#include "lib/gsas_bare_client.h"

/* Requests that use the words of packets only. */
static void test_words(void **state)
{
	struct bare *r = &g_bare[0];
	struct answer a;
	uint64_t at;

	bare_open(r);
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
	a = bare_ask(r, GSAS_CAS64, at + 24, 1, 9);
	assert_true(a.error == GSAS_OK && a.result == 1 && a.more == 1);
	a = bare_ask(r, GSAS_CAS64, at + 24, 1, 5);
	assert_true(a.error == GSAS_OK && a.result == 0 && a.more == 9);
	assert_int_equal(ask(r, GSAS_UPDATE, at + 24, GSAS_OP_SUM |
			     GSAS_TYPE_UINT64 << 8, 1), 9);
	/* tag 0 asks for no answer; the fence reports the error */
	UNTIL(r, bare_send(r, GSAS_WRITE64, 0, at, 77, 0));
	UNTIL(r, bare_send(r, GSAS_WRITE64, 0, 1, 77, 0));
	a = bare_ask(r, GSAS_FENCE, 0, 0, 0);
	assert_int_equal(a.result, 1);
	assert_int_equal(a.more, GSAS_E_ADDRESS);
	assert_int_equal(ask(r, GSAS_READ64, at, 0, 0), 77);
	assert_false(gsas_board_empty(g_board));
	ask(r, GSAS_FREE, 0, at, 0);
	REFUSED(FREED, r, GSAS_READ64, at, 0, 0);
	assert_false(gsas_board_empty(g_board));
	bare_close(r);
	UNTIL(NULL, gsas_board_empty(g_board));
}

/* Requests that use the spaces of both sides. */
static void test_spaces(void **state)
{
	const uint64_t max = g_hal->caps.space_bytes;
	const uint64_t bad[] = { max, max - 8, UINT64_MAX, UINT64_MAX - 15,
				 UINT64_C(1) << 32 };
	struct bare *r = &g_bare[0];
	struct gsas_list_entry entry;
	struct gsas_stat st;
	uint64_t at, text[2] = { 11, 12 };

	bare_join(r);
	at = ask(r, GSAS_ALLOC, 0, 2, 0);
	/* the space is empty or does not exist yet: an error, no crash */
	bare_ask(r, GSAS_PUT, at, 16, 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		REFUSED(ARGUMENT, r, GSAS_PUT, at, 16, bad[i]);
		REFUSED(ARGUMENT, r, GSAS_GET, at, 16, bad[i]);
		REFUSED(ARGUMENT, r, GSAS_READ4K, at, bad[i], 0);
		REFUSED(ARGUMENT, r, GSAS_STAT, 0, 0, bad[i]);
	}
	bare_store(r, 8, text, 16);
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

/* Allocations that take long are answered later, and memory allocated with
 * GSAS_ATTR_MAPPED can be mapped. */
static void test_deferred_requests(void **state)
{
	struct bare *r = &g_bare[0];
	struct gsas_map_info info;
	struct hal_window win;
	struct hal_rmem *rmem;
	struct hal_key key;
	uint64_t at, word = 0;
	int ret;

	bare_join(r);
	at = ask(r, GSAS_ALLOC, 0, 1, GSAS_ATTR_MAPPED);
	ask(r, GSAS_WRITE64, at, 4711, 0);
	ask(r, GSAS_MAP, at, 0, 0);
	memcpy(&info, hal_space(r->peer, 0), sizeof(info));
	assert_true(at - info.base < info.bytes);
	memcpy(key.word, info.key, sizeof(key.word));
	UNTIL(r, (ret = hal_mem_import(r->peer, &key, &rmem)) != -FI_EAGAIN);
	assert_int_equal(ret, 0);
	hal_mem_window(r->peer, rmem, &win);
	/* memory of the own board, whatever the backend */
	assert_non_null(win.addr);
	assert_true(win.bytes >= info.bytes);
	hal_win_load(&win, at - info.base, &word, sizeof(word));
	assert_int_equal(word, 4711);
	word = 4712;
	hal_win_store(&win, at - info.base, &word, sizeof(word));
	assert_int_equal(ask(r, GSAS_READ64, at, 0, 0), 4712);
	hal_mem_release(r->peer, rmem);
	ask(r, GSAS_FREE, 0, at, 0);
	at = ask(r, GSAS_ALLOC, 0, 1, 0);
	assert_int_equal(ask(r, GSAS_MAP, at, 0, 0), 0);
	memcpy(&info, hal_space(r->peer, 0), sizeof(info));
	assert_true(at - info.base < info.bytes);
	assert_true((info.key[0] | info.key[1]) == 0);
	bare_store(r, 0, "/bin/none", 10);
	ask(r, GSAS_PUT, at, 10, 0);
	REFUSED(PATH, r, GSAS_FORK, 0, at, 0);
	ask(r, GSAS_WRITE8, at + 5, 0, 0);
	assert_true(ask(r, GSAS_FORK, 0, at, 5) == JOB + 5);
	ask(r, GSAS_FREE, 0, at, 0);
}

static void test_one_service(void **state)
{
	struct gsas_board *other;

	assert_int_equal(board_open(g_number, &other), -FI_EBUSY);
	assert_int_equal(board_open((int)g_hal->caps.boards, &other),
			 -FI_EINVAL);
}

/* A client connects, sends requests and ends before the service polls. The
 * requests include a deferred one and a fence. */
static void test_gone_before_seen(void **state)
{
	struct bare *r = &g_bare[0], *other = &g_bare[1];
	uint64_t at;

	/* the clients' process (this one) lives: as if it were unknown */
	gsas_board_service(g_board)->attr.io.process = NULL;
	bare_join(other);
	at = ask(other, GSAS_ALLOC, 0, 1, GSAS_MODE_WORLD);
	for (int round = 0; round < 20; round++) {
		*r = (struct bare){ 0 };
		assert_int_equal(hal_if_open(g_hal, g_number, &r->hif), 0);
		UNTIL(NULL, bare_connect(r) == 0);
		if (round % 2 == 0)
			UNTIL(r, stat()->clients == 2);
		UNTIL(NULL, bare_send(r, GSAS_JOIN, 1, JOB, JOB + 1, 0));
		UNTIL(NULL, bare_send(r, GSAS_ALLOC, 2, 0, 3000, 0));
		UNTIL(NULL, bare_send(r, GSAS_FENCE, 3, 0, 0, 0));
		UNTIL(NULL, bare_send(r, GSAS_FAD64, 0, at, 1, 0));
		bare_close(r);
		/* (the pages are freed if the end is seen first, else they are
		 * the job's orphans now) */
		UNTIL(other, stat()->clients == 1 &&
		      stat()->op[GSAS_FAD64] == round + 1u);
		assert_int_equal(ask(other, GSAS_READ64, at, 0, 0), round + 1);
		ask(other, GSAS_RECLAIM, 0, 0, 0);
		assert_int_equal(stat()->pages, 1);
	}
	ask(other, GSAS_FREE, 0, at, 0);
}

/* As many clients as there is room for, or CLIENTS; returns their number. */
static int join_many(void)
{
	const int ifs = (int)g_hal->caps.ifs_per_board;
	const int n = ifs < CLIENTS ? ifs : CLIENTS;

	for (int i = 0; i < n; i++)
		bare_join(&g_bare[i]);
	return n;
}

static void test_many(void **state)
{
	const int n = join_many();
	uint64_t at = ask(&g_bare[0], GSAS_ALLOC, 0, 1, 0);

	for (int i = 0; i < n; i++)
		for (int k = 0; k < i + 1; k++)
			ask(&g_bare[i], GSAS_FAD64, at + 8 * (unsigned)i, 1, 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(ask(&g_bare[0], GSAS_READ64,
				     at + 8 * (unsigned)i, 0, 0), i + 1);
	assert_int_equal(atomic_load(&g_lines), 0);
}

/* A client that sends as fast as it can does not delay the other clients: they
 * are served within a few polls. */
static void test_many_at_once(void **state)
{
	struct answer a;
	int n, left;
	uint64_t at;

	unit_needs(getenv("FI_UNIMEM_FAULT") == NULL);
	n = join_many();
	left = n;
	at = ask(&g_bare[0], GSAS_ALLOC, 0, 1, 0);
	for (int i = 0; i < n; i++)
		assert_true(bare_send(&g_bare[i], GSAS_READ64, 1, at, 0, 0));
	while (bare_send(&g_bare[0], GSAS_WRITE64, 0, at, 1, 0))
		;
	gsas_board_poll(g_board);
	assert_true(stat()->op[GSAS_WRITE64] < 32);
	for (int poll = 0; poll < 1 + n / 16; poll++) {
		gsas_board_poll(g_board);
		for (int i = 0; i < n; i++) {
			bare_service(&g_bare[i]);
			left -= bare_take(&g_bare[i], &a);
		}
	}
	assert_int_equal(left, 0);
	assert_int_equal(atomic_load(&g_lines), 0);
}

static void *hammer(void *arg)
{
	struct bare *r = arg;
	uint64_t at = (uint64_t)(uintptr_t)r->hif->user;

	for (int i = 0; i < ROUNDS; i++) {
		uint8_t tag = (uint8_t)(i % 200 + 1);
		struct answer a = { 0 };

		while (!bare_send(r, GSAS_FAD64, tag, at, 1, 0))
			sched_yield();
		while (!bare_take(r, &a)) {
			bare_service(r);
			sched_yield();
		}
		if (a.tag != tag || a.error != GSAS_OK)
			abort();
	}
	return NULL;
}

/* Each client in a thread, the service in another. */
static void test_threads(void **state)
{
	pthread_t thread[4];
	uint64_t at;

	serve_apart();
	bare_join(&g_bare[4]);
	at = ask(&g_bare[4], GSAS_ALLOC, 0, 1, 0);
	for (int i = 0; i < 4; i++) {
		bare_join(&g_bare[i]);
		g_bare[i].hif->user = (void *)(uintptr_t)at;
		thread[i] = unit_thread(hammer, &g_bare[i]);
	}
	/* other clients come and go meanwhile */
	for (int i = 0; i < 20; i++) {
		bare_join(&g_bare[5]);
		bare_send(&g_bare[5], GSAS_FAD64, 0, at + 8, 1, 0);
		bare_close(&g_bare[5]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(ask(&g_bare[4], GSAS_READ64, at, 0, 0), 4 * ROUNDS);
	ask(&g_bare[4], GSAS_FREE, 0, at, 0);
}

/* ---- Ends ---------------------------------------------------------------- */

/* Clients get the answers to requests that were served, then the end. */
static void test_service_ends(void **state)
{
	const unsigned n = g_hal->caps.pkt_depth / 2;
	struct answer a = { 0 };
	uint64_t at;

	for (int i = 0; i < 3; i++)
		bare_join(&g_bare[i]);
	at = ask(&g_bare[0], GSAS_ALLOC, 0, 1, 0);
	for (unsigned i = 0; i < n; i++)
		UNTIL(&g_bare[0],
		      bare_send(&g_bare[0], GSAS_FAD64, 1, at, 1, 0));
	UNTIL(&g_bare[0], stat()->op[GSAS_FAD64] == n);
	UNTIL(NULL, bare_send(&g_bare[1], GSAS_ALLOC, 1, 0, 5000, 0));
	gsas_board_poll(g_board);
	gsas_board_close(g_board);
	g_board = NULL;
	for (int i = 0; i < 3; i++)
		while (!g_bare[i].dead)
			bare_service(&g_bare[i]);
	for (unsigned i = 0; i < n; i++) {
		assert_true(bare_take(&g_bare[0], &a));
		assert_int_equal(a.result, i);
	}
	assert_false(bare_take(&g_bare[0], &a));
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

/* One allocation fails: the client is served, or learns that it is not. In
 * every second round the client ends before the service polls. */
static void test_no_memory(void **state)
{
	struct bare *r = &g_bare[0];
	struct answer a;
	int refused = 0;
	long at, most = 2;

	for (at = 1; at <= most; at++) {
		for (int round = 0; round < 2; round++) {
			bool answered = false;

			*r = (struct bare){ 0 };
			assert_int_equal(hal_if_open(g_hal, g_number, &r->hif),
					 0);
			g_callocs = 0;
			g_fail_at = at;
			while (bare_connect(r) != 0)
				step(r);
			while (!bare_send(r, GSAS_JOIN, 1, JOB, JOB, 0))
				step(r);
			if (round == 1)
				bare_close(r);
			UNTIL(r->hif != NULL ? r : NULL, round == 1 ?
			      gsas_board_empty(g_board) : r->dead ||
			      (answered = bare_take(r, &a)));
			g_fail_at = 0;
			refused += round == 0 && !answered;
			bare_close(r);
			if (g_callocs > most)
				most = g_callocs;
			UNTIL(NULL, gsas_board_empty(g_board));
		}
	}
	assert_true(refused > 0);
	bare_join(r);
}

static uint64_t g_left = UINT64_MAX;	/* most bytes of memory that are left */
static uint64_t g_checks;		/* how often the service has asked */

uint64_t __real_hal_memory_left(uint64_t enough);
uint64_t __wrap_hal_memory_left(uint64_t enough);

uint64_t __wrap_hal_memory_left(uint64_t enough)
{
	uint64_t left = __real_hal_memory_left(enough);

	g_checks++;
	return left < g_left ? left : g_left;
}

/* The offset of the first page of memory that begins in the client's space, not
 * before it: only that of the link shares a page with the space. */
static uint64_t first_page(const struct bare *r)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return page - (uintptr_t)r->peer->tx.space % page;
}

/* The number of checks of memory in so many reads of a word of the space. */
static uint64_t checks_in(struct bare *r, uint64_t reads, uint64_t address,
			  uint64_t off)
{
	uint64_t before = g_checks;

	while (reads-- > 0)
		ask(r, GSAS_PUT, address, 8, off);
	return g_checks - before;
}

/* A client names bytes of the space that it did not allocate. The service,
 * which allocates them when it reads them, does so only while it has memory. A
 * client that allocates its space is served nevertheless. Each check of memory
 * is for 8 MiB of pages; without memory, for 64 reads. */
static void test_unallocated_space(void **state)
{
	static const uint8_t bytes[1024];
	struct bare *good = &g_bare[0], *bad = &g_bare[1];
	uint64_t at, next, some, end = g_hal->caps.space_bytes - 8;
	uint64_t reads = (8 << 20) / (uint64_t)sysconf(_SC_PAGESIZE);

	/* other HALs allocate the whole space, or receive into it */
	unit_needs(getenv("FI_UNIMEM_HAL") == NULL);
	bare_join(good);
	bare_join(bad);
	at = ask(good, GSAS_ALLOC, 0, 1, GSAS_MODE_WORLD);
	next = first_page(good);
	some = next - sizeof(bytes);
	bare_store(good, (uint32_t)some, bytes, sizeof(bytes));
	assert_in_range(checks_in(good, 2 * reads, at, some), 1, 2);
	g_left = 0;
	assert_true(checks_in(good, reads + 1, at, some) > 0);
	assert_int_equal(checks_in(good, 640, at, some), 10);
	REFUSED(MEMORY, bad, GSAS_PUT, at, 8, end);
	REFUSED(MEMORY, bad, GSAS_PUT, at, 8, first_page(bad));
	REFUSED(MEMORY, good, GSAS_PUT, at, 8, next - 4);
	ask(good, GSAS_PUT, at, 8, next - 8);
	ask(good, GSAS_PUT, at, sizeof(bytes), some);
	g_left = UINT64_MAX;
	checks_in(good, 64, at, some);
	ask(bad, GSAS_PUT, at, 8, end);
	ask(good, GSAS_FREE, 0, at, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_words),
		TEST(test_spaces),
		TEST(test_deferred_requests),
		TEST(test_one_service),
		TEST(test_gone_before_seen),
		TEST(test_many),
		TEST(test_many_at_once),
		TEST(test_threads),
		TEST(test_service_ends),
		TEST(test_no_memory),
		TEST(test_unallocated_space),
	};

	return bare_begin() != 0 ? 99 : bare_end(unit_run(tests));
}
