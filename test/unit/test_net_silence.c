/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_silence.c - when a host that does not answer counts as dead.
 *
 * A model in place of kernel and host: the clock is a number, the kernel asks a
 * second after each answer and each question, and the host answers at once
 * unless it is away. The last tests use connections of TCP.
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_silence.h"
#include "lib/net_pair.h"
#include "util/unm_clock.h"

#define MS		UINT64_C(1000000)
#define PROBE		1032		/* a second, rounded up by a timer of
					 * the kernel */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS	44		/* since Linux 6.15 */
#endif
#define START		1000000		/* ms: a time at which it answered */

/* All times in ms. */
struct host {
	struct net_silence silence;
	struct net_heard heard;
	uint32_t dead_ms;
	uint64_t now, answered, probe;	/* the kernel's next question */
	uint64_t from, to;		/* the host is away */
	uint64_t frozen, thawed;	/* the kernel asks nothing */
	uint64_t next;			/* check */
	unsigned asked;
};

static bool away(const struct host *h, uint64_t at)
{
	return at >= h->from && at < h->to;
}

static void host_init(struct host *h, uint32_t dead_ms)
{
	memset(h, 0, sizeof(*h));
	h->dead_ms = dead_ms;
	h->now = h->answered = START;
	h->probe = START + PROBE;
	h->next = START + dead_ms;
}

static void question(struct host *h, uint64_t at)
{
	if (!away(h, at))
		h->answered = at;
	h->probe = at + PROBE;
}

/* Let time pass, then judge the host. */
static enum net_verdict check(struct host *h, uint64_t at)
{
	uint64_t next = 0;
	enum net_verdict v;

	while (h->probe <= at)
		if (h->probe >= h->frozen && h->probe < h->thawed)
			h->probe = h->thawed + 1;
		else
			question(h, h->probe);
	h->now = at;
	h->heard.ms = (uint32_t)(at - h->answered);
	v = net_silence_judge(&h->silence, &h->heard, h->dead_ms, at * MS,
			      &next);
	if (v == NET_ASK) {
		question(h, at);
		h->asked++;
	}
	if (v != NET_SILENT) {
		assert_true(next > at * MS);
		h->next = (next + MS - 1) / MS;
	}
	return v;
}

/* Check when it is due, until the host is dead or the time has come. */
static bool dies_by(struct host *h, uint64_t end)
{
	while (h->next <= end)
		if (check(h, h->next) == NET_SILENT)
			return true;
	return false;
}

static const uint32_t limits[] = { 3000, 3500, 3900, 8000, 120000 };
#define FOR_LIMITS(ms)							\
	for (uint32_t l_ = 0, ms; l_ < 5 && (ms = limits[l_], true); l_++)

/* The end is noticed DEAD_MS and 0.2 s after the last answer, not before, at
 * whatever moment between two questions the host has vanished. */
static void test_vanished(void **state)
{
	struct host h;

	FOR_LIMITS(ms)
		for (uint32_t cut = 1; cut < 2 * PROBE; cut += 7) {
			host_init(&h, ms);
			h.from = START + cut;
			h.to = UINT64_MAX;
			assert_true(dies_by(&h, UINT64_MAX));
			assert_int_equal(h.now - h.answered,
					 ms + NET_GRACE_MS);
			assert_in_range(h.now - h.from, ms - 900,
					ms + NET_GRACE_MS);
			assert_int_equal(h.asked, 1);
		}
}

/* An outage that is 1.1 s shorter ends nothing. */
static void test_outage(void **state)
{
	struct host h;

	FOR_LIMITS(ms)
		for (uint32_t cut = 1; cut < 2 * PROBE; cut += 7) {
			host_init(&h, ms);
			h.from = START + cut;
			h.to = h.from + ms - 1100;
			assert_false(dies_by(&h, h.to + 3 * (uint64_t)ms));
			assert_int_equal(h.silence.asks, 0);
			/* the next silence is judged anew */
			h.from = h.now;
			h.to = UINT64_MAX;
			assert_true(dies_by(&h, UINT64_MAX));
			assert_int_equal(h.now - h.answered,
					 ms + NET_GRACE_MS);
		}
}

/* A host that answers is checked now and then only, and not asked. */
static void test_alive(void **state)
{
	unsigned checks = 0;
	struct host h;

	host_init(&h, 3000);
	for (; h.next < START + 3600000; checks++)
		assert_int_equal(check(&h, h.next), NET_HEARD);
	assert_in_range(checks, 3600 / 3, 3600 / 1.9);
	assert_int_equal(h.asked, 0);
}

/* The machine of this process stood still, and its kernel with it: the host
 * has the time of a whole question for its answer, each time. */
static void test_late(void **state)
{
	struct host h;

	for (uint32_t ms = 3301; ms < 60000; ms += 501) {
		host_init(&h, 3000);
		h.from = START + 1;
		h.to = START + ms + 900;	/* answers later */
		h.frozen = START;
		h.thawed = START + ms;
		assert_int_equal(check(&h, START + ms), NET_ASK);
		assert_int_equal(h.next, START + ms + NET_PROBE_MS);
		h.probe = h.to;			/* a repetition is answered */
		assert_int_equal(check(&h, h.next), NET_HEARD);
		assert_int_equal(h.silence.due, 0);

		/* it stood still again, after the question */
		h.from = h.answered + 1;
		h.to = UINT64_MAX;
		assert_int_equal(check(&h, h.answered + 3000), NET_ASK);
		assert_int_equal(check(&h, h.next + ms), NET_ASK);
		assert_int_equal(h.next, h.now + NET_PROBE_MS);
		assert_int_equal(check(&h, h.next - 1), NET_HEARD);
		assert_int_equal(check(&h, h.next), NET_SILENT);
	}
}

/* A process that is always late finds out at its fourth check. */
static void test_always_late(void **state)
{
	struct host h;

	host_init(&h, 3000);
	h.from = START + 1;
	h.to = UINT64_MAX;
	for (uint64_t i = 1; i <= NET_LATE_ASKS; i++)
		assert_int_equal(check(&h, START + 4000 * i), NET_ASK);
	assert_int_equal(check(&h, START + 20000), NET_SILENT);

	host_init(&h, 3000);		/* or hears of the host meanwhile */
	h.from = START + 1;
	h.to = START + 11000;
	for (uint64_t i = 1; i <= 2; i++)
		assert_int_equal(check(&h, START + 4000 * i), NET_ASK);
	assert_int_equal(check(&h, START + 12000), NET_HEARD);
	h.from = START + 13000;
	h.to = UINT64_MAX;
	for (uint64_t i = 5; i < 5 + NET_LATE_ASKS; i++)
		assert_int_equal(check(&h, START + 4000 * i), NET_ASK);
}

/*
 * Data without an acknowledgement: TCP asks nothing. It repeats them after 0.2,
 * 0.6, 1.4 and 3 s, and so on. A repetition later than the limit has to be
 * without an answer, or a second and the time of an answer have to be over.
 */
static void test_unacked(void **state)
{
	struct host h;

	host_init(&h, 3000);
	h.from = START + 1;
	h.to = UINT64_MAX;
	h.heard.unacked = true;
	h.heard.sent_ms = 1500;		/* repeated at 1500, next at 3100 */
	check(&h, START + 3000);
	h.heard.sent_ms = 100;
	assert_int_equal(check(&h, START + 3200), NET_HEARD);
	h.heard.sent_ms = 299;
	assert_int_equal(check(&h, START + 3399), NET_HEARD);
	h.heard.sent_ms = 300;
	assert_int_equal(check(&h, START + 3400), NET_SILENT);

	host_init(&h, 3000);		/* repeated at 2900, next at 6100 */
	h.from = START + 1;
	h.to = UINT64_MAX;
	h.heard.unacked = true;
	for (uint32_t ms = 3000; ms < 4200; ms += 200) {
		h.heard.sent_ms = ms - 2900;
		assert_int_not_equal(check(&h, START + ms), NET_SILENT);
	}
	h.heard.sent_ms = 1300;
	assert_int_equal(check(&h, START + 4200), NET_SILENT);

	host_init(&h, 3000);		/* sent before the last answer */
	h.from = START + 1;
	h.to = UINT64_MAX;
	h.heard.unacked = true;
	h.heard.sent_ms = 3100;
	check(&h, START + 3000);
	h.heard.sent_ms = 3300;
	assert_int_equal(check(&h, START + 3200), NET_HEARD);

	host_init(&h, 3000);		/* the last answer acknowledged them */
	h.from = START + 1;
	h.to = UINT64_MAX;
	h.heard.sent_ms = 3000;
	check(&h, START + 3000);
	assert_int_equal(check(&h, START + 3200), NET_SILENT);
}

/* Data are a sign of life as well as acknowledgements are. */
static void test_heard_of(void **state)
{
	struct tcp_info info = {
		.tcpi_last_ack_recv = 5000, .tcpi_last_data_recv = 7000,
		.tcpi_last_data_sent = 40,
	};
	struct net_heard h;

	net_heard_of(&h, &info);
	assert_int_equal(h.ms, 5000);
	assert_int_equal(h.sent_ms, 40);
	assert_false(h.unacked || h.probing);
	info.tcpi_last_data_recv = 20;
	info.tcpi_unacked = 1;
	net_heard_of(&h, &info);
	assert_int_equal(h.ms, 20);
	assert_true(h.unacked);
	info.tcpi_probes = 1;
	net_heard_of(&h, &info);
	assert_true(h.probing);
}

/* ---- The kernel ---------------------------------------------------------- */

static void set(int fd, int name, int value)
{
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, name, &value,
				    sizeof(value)), 0);
}

static int get(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void connection(int fd[2])
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001),
	};
	socklen_t len = sizeof(sa);
	int at = socket(AF_INET, SOCK_STREAM, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(at, (struct sockaddr *)&sa, len) != 0 || listen(at, 1) != 0 ||
	    getsockname(at, (struct sockaddr *)&sa, &len) != 0 ||
	    connect(fd[0], (struct sockaddr *)&sa, len) != 0)
		skip();			/* no lo */
	fd[1] = accept(at, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(at);
}

static struct net_heard heard_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	struct net_heard h;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	net_heard_of(&h, &info);
	return h;
}

/* The longest time between repetitions of data, in ms; -1: an older kernel. */
static int rto_max(int fd)
{
	socklen_t len = sizeof(int);
	int ms = -1;

	return getsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &ms, &len) == 0 ?
	       ms : -1;
}

/* The kernel's own limit is a little longer, and it asks each second. */
static void test_watch(void **state)
{
	int fd[2];

	connection(fd);
	net_watch(fd[0], 8000);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_USER_TIMEOUT), 8500);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_KEEPIDLE), 1);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_KEEPINTVL), 1);
	assert_true(get(fd[0], SOL_SOCKET, SO_KEEPALIVE) != 0);
	assert_int_equal(rto_max(fd[0]), rto_max(fd[1]));
	net_watch_ready(fd[0]);
	assert_int_equal(rto_max(fd[0]), rto_max(fd[1]) == -1 ? -1 : 1000);
	close(fd[0]);
	close(fd[1]);
}

/* The kernel asks when it is to. If a question is under way that the kernel
 * would take for too old, it does not: the connection would end at once. */
static void test_ask(void **state)
{
	struct net_heard h, late = { .ms = 3450, .probing = true };
	int fd[2];

	connection(fd);
	net_watch(fd[0], 3000);
	set(fd[0], TCP_KEEPIDLE, 1000);	/* it asks nothing by itself */
	do
		usleep(10000);
	while (heard_of(fd[0]).ms <= NET_PROBE_MS);
	net_ask(fd[0], &late, 3000);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_KEEPIDLE), 1000);
	h = heard_of(fd[0]);
	net_ask(fd[0], &h, 3000);
	while (heard_of(fd[0]).ms > NET_PROBE_MS)
		usleep(1000);		/* for ever, without an answer */
	late.probing = false;
	set(fd[0], TCP_KEEPIDLE, 1000);
	net_ask(fd[0], &late, 3000);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_KEEPIDLE), 1);
	late.ms = 3050;
	late.probing = true;
	set(fd[0], TCP_KEEPIDLE, 1000);
	net_ask(fd[0], &late, 3000);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_KEEPIDLE), 1);
	close(fd[0]);
	close(fd[1]);
}

/* A host whose silence has reached the limit is asked, by the same call. */
static void test_asked(void **state)
{
	struct net_silence silence = { 0 };
	uint64_t next = 0;
	int fd[2];

	connection(fd);
	net_watch(fd[0], 3000);
	set(fd[0], TCP_KEEPIDLE, 1000);
	do
		usleep(1000);
	while (heard_of(fd[0]).ms < 10);
	assert_false(net_silent(&silence, fd[0], 10, 1000 * MS, &next));
	assert_int_equal(silence.asks, 1);
	assert_true(next > 1000 * MS);
	assert_int_equal(get(fd[0], IPPROTO_TCP, TCP_KEEPIDLE), 1);
	close(fd[0]);
	close(fd[1]);
}

/* ---- Interfaces ---------------------------------------------------------- */

/* The kernel asks nothing on the connection of a side. Returns its socket. */
static int unasked(const struct net_side *s)
{
	int fd = net_peer(s->peer)->conn->src.fd, no = 0;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &no,
				    sizeof(no)), 0);
	return fd;
}

/* An interface checks its connections, and ends the one whose host is silent:
 * its kernel has asked for nothing since this test forbade that. */
static void test_interface(void **state)
{
	struct net_side *a = &net_pair.a;

	net_pair_talk();
	unasked(a);
	a->nif->net->dead_ns = NET_PROBE_MS * MS;
	a->nif->check = 0;
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNRESET);
}

/* It checks them in time: no later than the limit of each, which counts from
 * the last sign of life, by the timer that wakes a caller who sleeps. */
static void test_in_time(void **state)
{
	struct net_side *a = &net_pair.a;
	struct net_heard h;
	uint64_t now;
	int fd;

	net_pair_talk();
	unasked(&net_pair.b);
	fd = unasked(a);
	do {
		usleep(1000);
		h = heard_of(fd);
	} while (h.ms < 100 || h.unacked);
	now = unm_now_ns();
	a->nif->check = now;
	net_side_pump(a);
	assert_in_range(net_deadline(a->nif), now,
			unm_now_ns() + a->nif->net->dead_ns);
	assert_in_range(a->nif->check, now + 1,
			unm_now_ns() + a->nif->net->dead_ns - 100 * MS);
}

/* Data are repeated each second on connections that are made, on both sides.
 * A dial is repeated as always: it has a number of attempts. */
static void test_repeats(void **state)
{
	struct net_side *a = &net_pair.a, *b = &net_pair.b;
	int fd = socket(AF_INET, SOCK_STREAM, 0), usual = rto_max(fd);

	close(fd);
	if (usual == -1)
		skip();			/* an older kernel */
	net_pair_dial(a, b);
	assert_true(net_peer(a->peer)->conn->waiting);
	fd = net_peer(a->peer)->conn->src.fd;
	assert_int_equal(rto_max(fd), usual);
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  !net_peer(a->peer)->conn->waiting);
	assert_int_equal(rto_max(fd), 1000);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->nhalf != 0);
	assert_int_equal(rto_max(unm_container(b->nif->conns.next,
					       struct net_conn,
					       link)->src.fd), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vanished),
		cmocka_unit_test(test_outage),
		cmocka_unit_test(test_alive),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_always_late),
		cmocka_unit_test(test_unacked),
		cmocka_unit_test(test_heard_of),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_asked),
		NET_PAIR_TEST(test_interface),
		NET_PAIR_TEST(test_in_time),
		NET_PAIR_TEST(test_repeats),
	};

	return unit_run(tests);
}
