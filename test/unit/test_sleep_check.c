/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sleep_check.c - a sleeping interface of the emulation finds a packet for
 * which no wake-up was sent.
 *
 * The sender does not see the flag by which the receiver asks for a wake-up, as
 * after a kernel's barrier that left out its processor.
 */
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/syscall.h>

#include "hal/hal.h"
#include "lib/unit.h"
#include "util/unm_clock.h"

#define SECOND	UINT64_C(1000000000)
#define PATIENCE_MS	20000

static struct hal *g_hal;
static struct hal_if *g_from, *g_to;
static struct hal_peer *g_out, *g_in;
static struct hal_sleep *g_flags;	/* of the link from g_from to g_to */
static struct hal_sleep g_unseen;	/* what the sender reads instead */

static void service(struct hal_if *hif)
{
	struct hal_event ev[4];
	int n = hal_if_service(hif, ev, 4);

	for (int i = 0; i < n; i++)
		if (hif == g_to && ev[i].type == HAL_EV_INBOUND)
			g_in = ev[i].peer;
}

/* Returns 0 once the interface is armed. */
static int arm(void)
{
	uint64_t end = unm_now_ns() + 20 * SECOND;
	int ret;

	while ((ret = hal_if_arm(g_to)) == -FI_EAGAIN && unm_now_ns() < end)
		service(g_to);
	return ret;
}

/* Returns whether the descriptor of the receiver becomes readable. */
static bool wakes(int ms)
{
	struct pollfd pfd = { .fd = hal_if_fd(g_to), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

/* Open two interfaces of the emulation and connect them. */
static int begin(const char *sleep_ms)
{
	uint64_t end = unm_now_ns() + 20 * SECOND;
	struct hal_params params;
	int ret;

	setenv("FI_UNIMEM_SLEEP_MS", sleep_ms, 1);
	if (hal_params_load(&params) != 0)
		return -1;
	snprintf(params.hal, sizeof(params.hal), "emu");
	params.fault[0] = '\0';
	if (hal_get(&params, &g_hal) != 0 ||
	    hal_if_open(g_hal, -1, &g_from) != 0 ||
	    hal_if_open(g_hal, -1, &g_to) != 0)
		return -1;
	g_in = NULL;
	while ((ret = hal_connect(g_from, &g_to->addr, &g_out)) == -FI_EAGAIN &&
	       unm_now_ns() < end)
		service(g_to);
	while (ret == 0 && g_in == NULL && unm_now_ns() < end) {
		service(g_from);
		service(g_to);
	}
	if (ret != 0 || g_in == NULL)
		return -1;
	g_flags = g_out->tx.sleep;
	return 0;
}

static int begin_checking(void **state)
{
	return begin("1000");
}

static int begin_not_checking(void **state)
{
	return begin("0");
}

static int end(void **state)
{
	g_out->tx.sleep = g_flags;
	hal_if_close(g_from);
	hal_if_close(g_to);
	hal_put(g_hal);
	unsetenv("FI_UNIMEM_SLEEP_MS");
	return 0;
}

static void send_unseen(void)
{
	g_out->tx.sleep = &g_unseen;
	assert_int_equal(hal_pkt_send(g_out, hal_head(1, 0), NULL, 0, NULL, 0),
			 0);
	g_out->tx.sleep = g_flags;
}

static void take_packet(void)
{
	uint64_t head;

	hal_if_disarm(g_to);
	assert_non_null(hal_rx_peek(g_in, &head));
	hal_rx_release(g_in);
	hal_rx_flush(g_in);
	service(g_to);
}

/* Several times, each just after arming. */
static void test_found(void **state)
{
	for (int i = 0; i < 5; i++) {
		assert_int_equal(arm(), 0);
		send_unseen();
		assert_true(wakes(PATIENCE_MS));
		take_packet();
	}
}

/* Also if the interface was idle for a while and checks rarely. */
static void test_found_after_idle_time(void **state)
{
	for (int i = 0; i < 6; i++) {
		assert_int_equal(arm(), 0);
		assert_true(wakes(PATIENCE_MS));
		hal_if_disarm(g_to);
		service(g_to);
	}
	assert_int_equal(arm(), 0);
	send_unseen();
	assert_true(wakes(PATIENCE_MS));
	take_packet();
}

/* Without barriers a sleeper always checks each millisecond. */
static void needs_barriers(void)
{
	long all = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	unit_needs(all >= 0 && all & MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* An idle sleeper costs little: it checks after 1, 2, 4, ... ms. On a slow
 * machine it checks less often. */
static void test_seldom(void **state)
{
	uint64_t start = unm_now_ns();
	int checks = 0;

	needs_barriers();
	while (unm_now_ns() - start < SECOND / 8) {
		assert_int_equal(arm(), 0);
		assert_true(wakes(PATIENCE_MS));
		hal_if_disarm(g_to);
		service(g_to);
		checks++;
	}
	assert_in_range(checks, 1, 12);
}

/* FI_UNIMEM_SLEEP_MS=0: for tests that must see a lost wake-up. */
static void test_never(void **state)
{
	needs_barriers();
	assert_int_equal(arm(), 0);
	send_unseen();
	assert_false(wakes(100));
	take_packet();
}

#define CHECKS(f)	cmocka_unit_test_setup_teardown(f, begin_checking, end)

UNIT_MAIN(
	CHECKS(test_found),
	CHECKS(test_found_after_idle_time),
	CHECKS(test_seldom),
	cmocka_unit_test_setup_teardown(test_never, begin_not_checking,
					end),
)
