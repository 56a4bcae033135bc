/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_link.c - links between mailbox daemons: the window of each
 * opcode, order, ends, and peers that break the protocol
 *
 * Two daemons, without their local processes, are in this process. Their boards
 * are used by no other test on the machine.
 */
#include "lib/unit.h"
#include "daemon/mbox_link.h"

#define LOST	10			/* dead links beyond those kept */
#define KEPT	64			/* DEAD_MAX of mbox_link.c */

static struct hal *g_hal;
static struct mbox_hal g_a, g_b;
static int g_board;			/* of g_a; g_b has the next one */
static char g_line[200];		/* last log line */

static void log_line(const char *line)
{
	snprintf(g_line, sizeof(g_line), "%s", line);
}

/* The end of the last holder is noticed when its peers poll. */
static void open_one(struct mbox_hal *mh, int board, struct mbox_hal *peer)
{
	int ret;

	while ((ret = mbox_hal_open(mh, g_hal, board, log_line)) ==
	       -FI_EADDRINUSE && peer != NULL)
		mbox_hal_poll(peer);
	assert_int_equal(ret, 0);
}

static int setup(void **state)
{
	assert_int_equal(hal_get(NULL, &g_hal), 0);
	open_one(&g_a, g_board, NULL);
	open_one(&g_b, g_board + 1, NULL);
	*g_line = '\0';
	return 0;
}

static int teardown(void **state)
{
	mbox_hal_close(&g_a);
	mbox_hal_close(&g_b);
	hal_put(g_hal);
	return 0;
}

static uint64_t message(unsigned opcode, uint64_t n)
{
	return (uint64_t)opcode << 60 | n;
}

static void poll_both(void)
{
	for (int i = 0; i < 4; i++) {
		if (g_a.hif != NULL)
			mbox_hal_poll(&g_a);
		mbox_hal_poll(&g_b);
	}
}

/* A link from g_a to g_b, of which g_b knows. */
static struct mbox_link *link_open(void)
{
	struct mbox_link *link;
	int ret;

	while ((ret = mbox_link_get(&g_a, g_board + 1, &link)) == -FI_EAGAIN)
		poll_both();
	assert_int_equal(ret, 0);
	while ((ret = mbox_link_opened(link)) == -FI_EAGAIN)
		poll_both();
	assert_int_equal(ret, 0);
	return link;
}

static void link_shut(struct mbox_link *link)
{
	mbox_link_close(link);
	mbox_link_put(link);
}

static void send_one(struct mbox_link *link, uint64_t msg)
{
	int ret;

	while ((ret = mbox_link_send(link, msg)) == -FI_EAGAIN)
		poll_both();
	assert_int_equal(ret, 0);
}

/* The next message of an opcode at g_b. */
static void expect(unsigned opcode, uint64_t n)
{
	struct mbox_entry *entry;

	while ((entry = mbox_hal_first(&g_b, opcode)) == NULL)
		poll_both();
	assert_int_equal(entry->message, message(opcode, n));
	mbox_hal_take(entry);
}

static void expect_none(unsigned opcode)
{
	poll_both();
	assert_null(mbox_hal_first(&g_b, opcode));
}

/* ---- Tests -------------------------------------------------------------- */

static void test_window(void **state)
{
	struct mbox_link *link = link_open();

	assert_int_equal(mbox_link_send(link, message(15, 0)), 0);
	for (uint64_t i = 0; i < MBOX_WINDOW; i++)
		send_one(link, message(3, i));
	for (int i = 0; i < 10; i++) {	/* full; opcode 4 is not */
		assert_int_equal(mbox_link_send(link, message(3, 99)),
				 -FI_EAGAIN);
		poll_both();
		assert_true(mbox_hal_wants(&g_a));
		send_one(link, message(4, (uint64_t)i));
		expect(4, (uint64_t)i);
	}
	expect(3, 0);
	send_one(link, message(3, MBOX_WINDOW));
	assert_int_equal(mbox_link_send(link, message(3, 99)), -FI_EAGAIN);
	for (uint64_t i = 1; i <= MBOX_WINDOW; i++)
		expect(3, i);
	expect(15, 0);
	expect_none(3);
	link_shut(link);
}

/* A send that waits for a wake-up still does when CLOSE has been sent. */
static void test_wanted(void **state)
{
	struct mbox_link *link = link_open();

	for (uint64_t i = 0; i < MBOX_WINDOW; i++)
		send_one(link, message(3, i));
	assert_int_equal(mbox_link_send(link, message(3, 99)), -FI_EAGAIN);
	mbox_link_close(link);
	while (link->announced)		/* CLOSE may wait for the ring */
		poll_both();
	assert_true(mbox_hal_wants(&g_a));
	mbox_hal_sleep(&g_a, true);
	assert_false(mbox_hal_wants(&g_a));
	assert_true(link->asked);
	mbox_hal_sleep(&g_a, false);
	mbox_link_put(link);
}

/* The counters of 16 bits wrap. */
static void test_order(void **state)
{
	struct mbox_link *link = link_open();
	uint64_t sent[2] = { 0 }, got[2] = { 0 }, rng = 1;
	const uint64_t all = 70000;

	while (got[0] < all || got[1] < all) {
		unsigned i = unit_below(&rng, 2), op = i == 0 ? 0 : 7;
		struct mbox_entry *entry = mbox_hal_first(&g_b, op);

		if (unit_below(&rng, 2) == 0 && sent[i] < all) {
			if (mbox_link_send(link, message(op, sent[i])) == 0)
				sent[i]++;
		} else if (entry != NULL) {
			assert_int_equal(entry->message, message(op, got[i]));
			mbox_hal_take(entry);
			got[i]++;
		}
		assert_true(sent[i] - got[i] <= MBOX_WINDOW);
		mbox_hal_poll(&g_a);
		mbox_hal_poll(&g_b);
	}
	link_shut(link);
}

static void test_used(void **state)
{
	struct mbox_link *link, *again;

	assert_int_equal(mbox_link_get(&g_a, g_board + 1, &link), 0);
	assert_int_equal(mbox_link_opened(link), -FI_EAGAIN);
	assert_false(mbox_hal_used(&g_b));
	again = link_open();
	assert_ptr_equal(again, link);
	assert_true(mbox_hal_used(&g_b));
	assert_false(mbox_hal_used(&g_a));
	link_shut(link);
	poll_both();
	assert_true(mbox_hal_used(&g_b));
	link_shut(again);
	poll_both();
	assert_false(mbox_hal_used(&g_b));
	link_shut(link_open());		/* once more, by the same link */
	poll_both();
	assert_false(mbox_hal_used(&g_b));
}

static void test_no_daemon(void **state)
{
	struct unit_capture cap = unit_capture_begin();
	struct mbox_link *link;
	char text[600];

	mbox_hal_close(&g_b);
	assert_int_equal(mbox_link_get(&g_a, g_board + 1, &link),
			 -FI_ECONNREFUSED);
	unit_capture_end(&cap, text, sizeof(text));
	assert_true(unm_list_empty(&g_a.links));
	open_one(&g_b, g_board + 1, &g_a);
}

/* A daemon that ends: its messages stay, and its peer's sends fail. */
static void test_end(void **state)
{
	struct mbox_link *link = link_open();

	for (uint64_t i = 0; i < 3; i++)
		send_one(link, message(9, i));
	mbox_hal_close(&g_a);
	expect(9, 0);
	while (g_b.ends == 0)
		mbox_hal_poll(&g_b);
	assert_false(mbox_hal_used(&g_b));
	open_one(&g_a, g_board, &g_b);
	link = link_open();		/* another link to the next one */
	send_one(link, message(9, 100));
	expect(9, 1);
	expect(9, 2);
	expect(9, 100);
	mbox_hal_close(&g_b);
	while (g_a.ends == 0)
		mbox_hal_poll(&g_a);
	assert_int_equal(mbox_link_send(link, 0), -FI_ECONNRESET);
	assert_int_equal(mbox_link_opened(link), -FI_ECONNREFUSED);
	link_shut(link);
	mbox_hal_poll(&g_a);
	assert_true(unm_list_empty(&g_a.links));
	open_one(&g_b, g_board + 1, &g_a);
}

/* The messages of ended daemons that nobody takes are bounded. */
static void test_many_ends(void **state)
{
	for (uint64_t i = 0; i < KEPT + LOST; i++) {
		send_one(link_open(), message(2, i));
		mbox_hal_close(&g_a);
		while (g_b.ends == i)
			mbox_hal_poll(&g_b);
		open_one(&g_a, g_board, &g_b);
	}
	assert_int_equal(g_b.discarded, LOST);
	assert_non_null(strstr(g_line, "discarded"));
	for (uint64_t i = LOST; i < KEPT + LOST; i++)
		expect(2, i);
	expect_none(2);
	assert_true(unm_list_empty(&g_b.links));
}

/* ---- Hostile peers ------------------------------------------------------- */

/* Connect to g_b by hand, from the mailbox's number or from another one. */
static struct hal_peer *bare(struct hal_if **hif, bool as_daemon)
{
	struct hal_addr to = g_b.hif->addr;
	int number = (int)g_hal->caps.ifs_per_board - (as_daemon ? 0 : 1);
	struct hal_peer *peer;
	int ret;

	mbox_hal_close(&g_a);
	while ((ret = hal_if_open_number(g_hal, g_board, number, hif)) ==
	       -FI_EADDRINUSE)
		mbox_hal_poll(&g_b);
	assert_int_equal(ret, 0);
	while ((ret = hal_connect(*hif, &to, &peer)) == -FI_EAGAIN)
		mbox_hal_poll(&g_b);
	assert_int_equal(ret, 0);
	return peer;
}

static void bare_send(struct hal_peer *peer, uint8_t type, uint64_t word)
{
	struct hal_event ev;

	while (!peer->dead && hal_pkt_send(peer, hal_head(type, 0), &word, 1,
					   NULL, 0) != 0) {
		hal_if_service(peer->hif, &ev, 1);
		mbox_hal_poll(&g_b);
	}
}

/* g_b ends the connection. */
static void bare_end(struct hal_if *hif, const char *line)
{
	struct hal_event ev = { .type = 0 };

	while (ev.type != HAL_EV_DEAD) {
		mbox_hal_poll(&g_b);
		hal_if_pump(hif);
		if (hal_if_service(hif, &ev, 1) == 0)
			ev.type = 0;
	}
	assert_non_null(strstr(g_line, line));
	hal_if_close(hif);
	mbox_hal_poll(&g_b);
	open_one(&g_a, g_board, &g_b);
	link_shut(link_open());		/* g_b serves others */
}

static void test_wrong_packets(void **state)
{
	struct hal_if *hif;

	bare_send(bare(&hif, true), 0x55, 0);
	bare_end(hif, "unknown type");
	bare_send(bare(&hif, true), MBOX_PKT_OPEN, MBOX_VERSION + 1);
	bare_end(hif, "version");
}

static void test_overrun(void **state)
{
	struct hal_if *hif;
	struct hal_peer *peer = bare(&hif, true);

	for (uint64_t i = 0; i <= MBOX_WINDOW; i++)
		bare_send(peer, MBOX_PKT_MESSAGE, message(6, i));
	bare_end(hif, "window");
	for (uint64_t i = 0; i < MBOX_WINDOW; i++)
		expect(6, i);
	expect_none(6);
}

static void test_not_a_daemon(void **state)
{
	struct hal_if *hif;
	struct hal_peer *peer = bare(&hif, false);

	bare_send(peer, MBOX_PKT_MESSAGE, message(6, 1));
	bare_end(hif, "");
	expect_none(6);
}

int main(void)
{
#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_window), TEST(test_wanted), TEST(test_order),
		TEST(test_used),
		TEST(test_no_daemon), TEST(test_end), TEST(test_many_ends),
		TEST(test_wrong_packets), TEST(test_overrun),
		TEST(test_not_a_daemon),
	};
	const char *hal = getenv("FI_UNIMEM_HAL");

	if (hal != NULL && strcmp(hal, "sim") == 0) {
		setenv("FI_UNIMEM_BOARDS", "2", 1);
	} else {
		g_board = (int)(getpid() % 30000) * 2;
		setenv("FI_UNIMEM_BOARDS", "60010", 1);
	}
	unsetenv("FI_UNIMEM_BOARD");
	return unit_run(tests);
}
