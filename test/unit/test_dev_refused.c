/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_refused.c - packets that a mailbox refuses for any length of time [D
 * 5.1.1, 5.2.3: NACK]: when they are sent again, and the log lines.
 *
 * The mailbox holds four packets. The clock is the test's: it advances only
 * where a test advances it.
 */
#include <sys/syscall.h>

#include "lib/dev_shim.h"

#define FIFO		4u		/* packets */
#define US		UINT64_C(1000)
#define MS		UINT64_C(1000000)
#define SECOND		UINT64_C(1000000000)
#define PAUSE_MIN	(2 * US)	/* docs/hal.md, section 12 */
#define PAUSE_MAX	MS

static uint64_t clock_ns;		/* 0: the system's clock */
static int level;			/* of the last log line */

/* Replaces the C library's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (clock_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, ts);
	ts->tv_sec = (time_t)(clock_ns / SECOND);
	ts->tv_nsec = (long)(clock_ns % SECOND);
	return 0;
}

static void listen_to(int lev, const char *line)
{
	level = lev;
	snprintf(said, sizeof(said), "%s", line);
	lines++;
}

static int thaw_and_teardown(void **state)
{
	clock_ns = 0;
	return dev_teardown(state);
}

static struct pair stopped_pair(const char *sim)
{
	struct pair p;

	lie.sim = sim;
	p = pair();
	assert_true(until(&p, dev_peer(p.ab)->connected_reported));
	clock_ns = (uint64_t)(now() * 1e9);
	hal_log_set(listen_to);
	lines = 0;
	return p;
}

static uint64_t tries(struct hal_if *hif)
{
	return dev_if(hif)->stats.nacks;
}

/* Calls everything that may send a refused packet again, several times. */
static void turn(struct hal_if *hif)
{
	struct hal_event ev[4];

	for (int i = 0; i < 5; i++) {
		hal_if_pump(hif);
		assert_int_equal(hal_if_service(hif, ev, 4), 0);
	}
}

/* The next try is made after this pause, and not earlier. */
static void next_try_after(struct hal_if *hif, uint64_t pause)
{
	uint64_t before = tries(hif);

	turn(hif);
	clock_ns += pause - 1;
	turn(hif);
	assert_int_equal(tries(hif), before);
	clock_ns++;
	turn(hif);
	assert_int_equal(tries(hif), before + 1);
}

/* One packet more than the mailbox holds. */
static void fill(struct pair *p, uint64_t *sent)
{
	for (uint32_t i = 0; i <= FIFO; i++)
		assert_int_equal(send_word(p->ab, (*sent)++), 0);
	turn(p->a);
}

/* The receiver takes all packets, and sending continues. */
static void take_all(struct pair *p, uint64_t *got, uint64_t sent)
{
	struct hal_event ev[4];

	while (*got != sent) {
		hal_if_pump(p->b);
		hal_if_service(p->b, ev, 4);
		while (*got != sent && next_is(p->ba, *got))
			(*got)++;
		clock_ns += 10 * US;
		turn(p->a);
	}
}

/* Pauses double up to 1 ms, whatever the sender calls. The first packet that is
 * taken ends them. */
static void pauses_double(void **state)
{
	struct pair p = stopped_pair("world=95,fifo=8,depth=16");
	uint64_t sent = 0, got = 0;

	for (int round = 0; round < 2; round++) {
		uint64_t before = tries(p.a);

		fill(&p, &sent);
		assert_int_equal(tries(p.a), before + 1);
		/* sending another packet causes no try */
		assert_int_equal(send_word(p.ab, sent++), 0);
		assert_int_equal(tries(p.a), before + 1);
		for (uint64_t pause = PAUSE_MIN; pause < PAUSE_MAX; pause *= 2)
			next_try_after(p.a, pause);
		for (int i = 0; i < 3; i++)
			next_try_after(p.a, PAUSE_MAX);
		assert_int_equal(lines, 0);
		take_all(&p, &got, sent);
	}
	clock_ns = 0;
	unpair(&p);
}

/* The same for a HELLO. */
static void pauses_of_a_first_contact(void **state)
{
	struct pair p = stopped_pair("world=96,fifo=8,depth=16");
	struct hal_peer *peer = NULL;
	struct hal_if *c;
	uint64_t sent = 0, got = 0;

	fill(&p, &sent);
	assert_int_equal(hal_if_open(hal, 0, &c), 0);
	for (uint64_t pause = PAUSE_MIN, n = 1; n < 20; n++) {
		for (int i = 0; i < 20; i++) {
			int ret = hal_connect(c, &p.b->addr, &peer);

			assert_true(ret == -FI_EAGAIN || ret == 0);
		}
		turn(c);
		assert_int_equal(tries(c), n);
		clock_ns += pause;
		pause = pause * 2 > PAUSE_MAX ? PAUSE_MAX : pause * 2;
	}
	take_all(&p, &got, sent);
	clock_ns = 0;
	assert_true(until(&p, hal_connect(c, &p.b->addr, &peer) == 0));
	hal_if_close(c);
	unpair(&p);
}

/* A mailbox that is never read is not an error, because its process may be
 * stopped. One line is logged, at level info, and no packet is lost when the
 * process continues. */
static void refused_for_ever(void **state)
{
	struct pair p = stopped_pair("world=97,fifo=8,depth=16");
	uint64_t sent = 0, got = 0, start;

	for (int round = 1; round <= 2; round++) {
		fill(&p, &sent);
		start = clock_ns;
		while (clock_ns < start + 5 * SECOND - MS) {
			clock_ns += MS;
			turn(p.a);
		}
		assert_int_equal(lines, round - 1);
		while (clock_ns < start + 60 * SECOND) {
			clock_ns += 10 * MS;
			turn(p.a);
		}
		assert_int_equal(lines, round);
		assert_int_equal(level, 1);
		assert_non_null(strstr(said, "has taken no packet for 5 s"));
		assert_int_equal(p.dead_a, 0);
		take_all(&p, &got, sent);
	}
	assert_int_equal(lines, 2);
	clock_ns = 0;
	unpair(&p);
}

/* Time in which the sender makes no call is not time in which the peer refuses
 * packets. */
static void own_silence_is_no_refusal(void **state)
{
	struct pair p = stopped_pair("world=99,fifo=8,depth=16");
	uint64_t sent = 0, got = 0, start;

	fill(&p, &sent);
	clock_ns += 60 * SECOND;
	turn(p.a);
	start = clock_ns;
	while (clock_ns < start + 5 * SECOND - MS) {
		clock_ns += MS;
		turn(p.a);
	}
	assert_int_equal(lines, 0);
	clock_ns += 2 * MS;
	turn(p.a);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "has taken no packet for 5 s"));
	take_all(&p, &got, sent);
	clock_ns = 0;
	unpair(&p);
}

/* OVERWR_BUF [D 5.2.3] is a debug bit: ACK and NACK say whether the packet was
 * delivered. The bit means that somebody else uses the page, which is logged
 * once. */
static void overwritten(void **state)
{
	struct pair p = stopped_pair("world=98,fifo=8,depth=16");
	struct dev_if *dif = dev_if(p.a);
	uint64_t sent = 0, got = 0;

	lie.pif_or = HAL_PIF_OVERWR;
	fill(&p, &sent);		/* four are taken, one refused */
	assert_int_equal(dif->stats.overwritten, FIFO + 1);
	assert_int_equal(lines, 1);
	assert_int_equal(level, 0);
	assert_non_null(strstr(said, "OVERWR_BUF"));
	assert_non_null(strstr(said, "docs/porting.md, section 5"));
	take_all(&p, &got, sent);
	assert_int_equal(lines, 1);
	assert_int_equal(p.dead_a, 0);
	/* if the platform file gave the page away, that is the remedy */
	snprintf(dif->dev->platform.pif.node,
		 sizeof(dif->dev->platform.pif.node), "/dev/uio0");
	dif->stats.overwritten = 0;
	fill(&p, &sent);
	assert_int_equal(lines, 2);
	assert_non_null(strstr(said, "pif = in /etc/unimem.conf"));
	take_all(&p, &got, sent);
	clock_ns = 0;
	unpair(&p);
}

#define REFUSED_TEST(f)	cmocka_unit_test_setup_teardown(f, dev_setup, \
							thaw_and_teardown)

UNIT_MAIN(
	REFUSED_TEST(pauses_double),
	REFUSED_TEST(pauses_of_a_first_contact),
	REFUSED_TEST(refused_for_ever),
	REFUSED_TEST(own_silence_is_no_refusal),
	REFUSED_TEST(overwritten),
)
