/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stats.c - the statistics of an endpoint: queues, credits and ages of
 * each kind of operation, in the endpoint's shared page and in the table that
 * unimem_info prints of this process.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_stats.h"
#include "lib/ep_pair.h"
#include "unm_env.h"

#define BIG	1000000		/* bytes: more than receive space holds */
#define AGE_US	20000

static char big[BIG], in[BIG];

static const struct unm_stats *stats(struct ep *e)
{
	return ((struct unm_ep *)e->ep)->stats;
}

/* Polls one endpoint until a gauge of it is in this range. */
static void until(struct ep *e, const uint64_t *level, uint64_t min,
		  uint64_t max, const char *what)
{
	uint64_t end = ep_deadline();

	while (*level < min || *level > max) {
		ep_poll(e);
		ep_in_time(end, what);
	}
}

/* An operation of e began at `since`: its age is shown, and is not too high. */
static void grows(struct ep *e, const uint64_t *age, uint64_t since,
		  const char *what)
{
	until(e, age, AGE_US, UINT64_MAX, what);
	if (*age > ep_now() - since)
		unit_fail("%s: %llu us old after %llu us", what,
			  (unsigned long long)*age,
			  (unsigned long long)(ep_now() - since));
}

/* Other operations began at `since`, a while later: the age is still that of
 * the first. (They were seen by now; the age was up to date at some moment.) */
static void stays(struct ep *e, const uint64_t *age, uint64_t since,
		  const char *what)
{
	uint64_t end = ep_deadline();

	EP_FOR_US(5 * AGE_US)
		ep_poll(e);
	while (*age <= ep_now() - since) {
		ep_poll(e);
		ep_in_time(end, what);
	}
}

static struct ep_pair pair(void)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_context2 tx, rx;

	/* connect both sides */
	EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, &rx));
	EP_OK(fi_send(p.a->ep, big, 8, NULL, p.ab, &tx));
	ep_sent(p.a, &tx);
	ep_received(p.b, &rx);
	until(p.a, &stats(p.a)->oldest_us, 0, 0, "nothing is under way");
	return p;
}

static void test_age_of_a_rendezvous(void **state)
{
	struct fi_context2 tx, tx2, rx;
	struct ep_pair p = pair();
	uint64_t since = ep_now();

	EP_OK(fi_tsend(p.a->ep, big, BIG, NULL, p.ab, 1, &tx));
	grows(p.a, &stats(p.a)->oldest_us, since, "rendezvous");
	/* a later one comes and ends: the first is still the oldest */
	since = ep_now();
	EP_OK(fi_tsend(p.a->ep, big, BIG, NULL, p.ab, 2, &tx2));
	stays(p.a, &stats(p.a)->oldest_us, since, "beside a younger one");
	EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, 2, 0, &rx));
	ep_sent(p.a, &tx2);
	ep_received(p.b, &rx);
	stays(p.a, &stats(p.a)->oldest_us, since, "the younger one is gone");
	until(p.a, &stats(p.a)->inflight, 1, 1, "one is left");
	/* none is left */
	EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, 1, 0, &rx));
	ep_sent(p.a, &tx);
	ep_received(p.b, &rx);
	until(p.a, &stats(p.a)->oldest_us, 0, 0, "nothing is under way");
	ep_pair_close(&p);
}

static void test_age_of_a_stream_at_both_ends(void **state)
{
	int kept = g_unm_env.attach;
	struct fi_context2 tx, rx;
	struct ep_pair p;
	uint64_t posted, since;

	g_unm_env.attach = 0;
	p = pair();
	posted = ep_now();
	EP_OK(fi_trecv(p.b->ep, in, BIG, NULL, p.ba, 1, 0, &rx));
	grows(p.b, &stats(p.b)->oldest_recv_us, posted, "receive");
	assert_int_equal(stats(p.b)->oldest_us, 0);
	/* the receiver asks for pieces and then does not poll */
	since = ep_now();
	EP_OK(fi_tsend(p.a->ep, big, BIG, NULL, p.ab, 1, &tx));
	until(p.b, &stats(p.b)->transfers, 1, 1, "the receive is in transfer");
	until(p.a, &stats(p.a)->tx_stream, 1, UINT64_MAX, "it is streamed");
	grows(p.a, &stats(p.a)->oldest_us, since, "stream");
	/* in transfer its age starts again */
	grows(p.b, &stats(p.b)->oldest_us, since, "transfer");
	assert_int_equal(stats(p.b)->oldest_recv_us, 0);
	ep_sent(p.a, &tx);
	ep_received(p.b, &rx);
	until(p.b, &stats(p.b)->oldest_us, 0, 0, "nothing is in transfer");
	ep_pair_close(&p);
	g_unm_env.attach = kept;
}

static void test_age_of_a_delivery(void **state)
{
	struct ep_want want = { .tx_op_flags = FI_DELIVERY_COMPLETE };
	struct fi_context2 tx, rx;
	struct ep_pair p = ep_pair(&want);
	uint64_t since = ep_now();

	EP_OK(fi_send(p.a->ep, big, 8, NULL, p.ab, &tx));
	grows(p.a, &stats(p.a)->oldest_us, since, "delivery");
	EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, &rx));
	ep_sent(p.a, &tx);
	ep_received(p.b, &rx);
	until(p.a, &stats(p.a)->oldest_us, 0, 0, "it is delivered");
	ep_pair_close(&p);
}

static void test_age_of_a_backlog(void **state)
{
	uint64_t since, end = ep_deadline();
	struct fi_context2 tx, rx;
	unsigned sent = 0;
	struct ep_pair p = ep_pair(NULL);

	since = ep_now();
	while (stats(p.a)->tx_backlog == 0) {
		sent += fi_send(p.a->ep, big, 8, NULL, p.ab, &tx) == 0;
		ep_poll(p.a);
		ep_in_time(end, "a backlog");
	}
	grows(p.a, &stats(p.a)->oldest_us, since, "backlog");
	for (unsigned i = 0; i < sent; i++) {
		EP_OK(fi_recv(p.b->ep, in, 8, NULL, p.ba, &rx));
		ep_received(p.b, &rx);
		ep_sent(p.a, &tx);
	}
	until(p.a, &stats(p.a)->oldest_us, 0, 0, "none waits");
	ep_pair_close(&p);
}

/* The oldest receive is found among more receives than one refresh checks. A
 * buffer for many messages (FI_MULTI_RECV) is posted for long, so it does not
 * count. */
static void test_age_of_a_posted_receive(void **state)
{
	static struct fi_context2 rx[700];
	struct fi_context2 multi;
	struct iovec iov = { in, sizeof(in) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = &multi };
	uint64_t since, end;
	struct ep *e = ep_open(NULL);

	EP_OK(fi_recvmsg(e->ep, &msg, FI_MULTI_RECV));
	EP_FOR_US(3 * AGE_US)
		ep_poll(e);
	assert_int_equal(stats(e)->posted, 1);
	assert_int_equal(stats(e)->oldest_recv_us, 0);
	since = ep_now();
	EP_OK(fi_trecv(e->ep, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, &rx[0]));
	grows(e, &stats(e)->oldest_recv_us, since, "receive");
	since = ep_now();
	for (int i = 1; i < 700; i++)
		EP_OK(fi_trecv(e->ep, in, 8, NULL, FI_ADDR_UNSPEC, i, 0,
			       &rx[i]));
	stays(e, &stats(e)->oldest_recv_us, since, "beside younger ones");
	assert_int_equal(stats(e)->oldest_us, 0);
	/* without that receive the oldest one is younger */
	since = ep_now();
	assert_int_equal(fi_cancel(&e->ep->fid, &rx[0]), 0);
	EP_OK(fi_trecv(e->ep, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, &rx[0]));
	for (int i = 1; i < 700; i++)
		assert_int_equal(fi_cancel(&e->ep->fid, &rx[i]), 0);
	end = ep_deadline();
	while (stats(e)->oldest_recv_us > ep_now() - since) {
		ep_poll(e);
		ep_in_time(end, "the youngest is left");
	}
	ep_close(e);
}

/* ---- The table ------------------------------------------------------- */

#define COLUMNS	14
#define HEADER	"BOARD:IF PID S COMMAND PEERS POSTED UNEXP SENDING RDV_IN " \
		"CREDIT OLDEST WAITED SENT RECEIVED"

/* Copies the words of a line with one blank between; returns their number. */
static int words(char *line, char *text, size_t size)
{
	size_t len = 0;
	char *save;
	int n = 0;

	text[0] = '\0';
	for (char *w = strtok_r(line, " \n", &save); w != NULL && len < size;
	     w = strtok_r(NULL, " \n", &save), n++)
		len += (size_t)snprintf(text + len, size - len, "%s%s",
					n != 0 ? " " : "", w);
	return n;
}

/* The row that unimem_info prints of this endpoint, from PEERS on; or "". */
static void row(struct ep *e, char *text, size_t size)
{
	const char *via = getenv("UNM_EXEC");	/* an emulator */
	const char *dir = getenv("UNM_BUILDDIR");
	const struct hal_addr *addr = &((struct unm_ep *)e->ep)->hif->addr;
	char line[1024], all[1024], start[64];
	bool header = false;
	FILE *out;

	snprintf(line, sizeof(line), "%s '%s/unimem_info'",
		 via != NULL ? via : "", dir != NULL ? dir : ".");
	snprintf(start, sizeof(start), "%u:%u %ld ", addr->board, addr->iface,
		 (long)getpid());
	out = popen(line, "re");
	assert_non_null(out);
	text[0] = '\0';
	while (fgets(line, sizeof(line), out) != NULL) {
		const char *at = all;
		int n = words(line, all, sizeof(all));

		header |= strcmp(all, HEADER) == 0;
		if (n != COLUMNS ||
		    strncmp(all, start, strlen(start)) != 0)
			continue;
		for (int i = 0; i < 4; i++)
			at = strchr(at, ' ') + 1;
		snprintf(text, size, "%s", at);
	}
	assert_int_equal(pclose(out), 0);
	assert_true(header);
}

/* An age in the format of the table. */
static const char *shown(char text[32], uint64_t us)
{
	if (us == 0)
		return "-";
	if (us < 10000)
		snprintf(text, 32, "%lluus", (unsigned long long)us);
	else if (us < 10000000)
		snprintf(text, 32, "%llums", (unsigned long long)us / 1000);
	else
		snprintf(text, 32, "%llus", (unsigned long long)us / 1000000);
	return text;
}

/* Ages that are not 0 */
enum {
	AGE_SEND = 1,			/* oldest_us */
	AGE_RECV = 2,			/* oldest_recv_us */
};

/*
 * Waits until the row of e shows: the columns PEERS to CREDIT (gauges), the
 * endpoint's ages, of which exactly those in ages are not 0, then SENT and
 * RECEIVED (msgs).
 */
static void shows(struct ep_pair *p, struct ep *e, const char *gauges,
		  unsigned ages, const char *msgs)
{
	uint64_t end = ep_deadline();
	char got[256], want[256], a[32], b[32];

	for (;;) {
		ep_poll(p->a);
		ep_poll(p->b);
		row(e, got, sizeof(got));
		snprintf(want, sizeof(want), "%s %s %s %s", gauges,
			 shown(a, stats(e)->oldest_us),
			 shown(b, stats(e)->oldest_recv_us), msgs);
		if (strcmp(got, want) == 0 &&
		    (stats(e)->oldest_us != 0) == !!(ages & AGE_SEND) &&
		    (stats(e)->oldest_recv_us != 0) == !!(ages & AGE_RECV))
			return;
		if (ep_now() > end)
			unit_fail("shown:  \"%s\"\nwanted: \"%s\"", got,
				  want);
	}
}

#define POSTED		7
#define UNEXPECTED	5
#define WAITING		3

/* a has a rendezvous to b, which posts no receive for it, and queued sends to
 * c, which never polls; b has posted receives that match nothing. */
static void test_the_table_shows_the_queues(void **state)
{
	static struct fi_context2 tx[600], rx[POSTED];
	struct ep_pair p = ep_pair(NULL);
	struct ep *c = ep_open(NULL);
	char gauges[64], msgs[64];
	unsigned sent = 0;
	fi_addr_t to = ep_insert(p.a, c);

	for (int i = 0; i < UNEXPECTED; i++)
		EP_OK(fi_tsend(p.a->ep, big, 8, NULL, p.ab, 1, &tx[0]));
	EP_OK(fi_tsend(p.a->ep, big, BIG, NULL, p.ab, 1, &tx[0]));
	for (int i = 0; i < POSTED; i++)
		EP_OK(fi_trecv(p.b->ep, in, 8, NULL, p.ba, 2, 0, &rx[i]));
	for (uint64_t end = ep_deadline(); stats(p.a)->tx_backlog < WAITING;) {
		sent += fi_send(p.a->ep, big, 8, NULL, to, &tx[0]) == 0;
		ep_poll(p.a);
		ep_in_time(end, "a backlog");
	}
	sent -= WAITING;
	/* PEERS POSTED UNEXP SENDING RDV_IN CREDIT */
	snprintf(gauges, sizeof(gauges), "2 0 0 %d 0 %u", 1 + WAITING,
		 UNM_PEER_CREDITS - sent);
	snprintf(msgs, sizeof(msgs), "%u 0", UNEXPECTED + 1 + sent);
	shows(&p, p.a, gauges, AGE_SEND, msgs);
	snprintf(gauges, sizeof(gauges), "1 %d %d 0 0 %d", POSTED,
		 UNEXPECTED + 1, UNM_PEER_CREDITS);
	shows(&p, p.b, gauges, AGE_RECV, "0 0");
	/* a receive for one of the unexpected messages */
	EP_OK(fi_trecv(p.b->ep, in, 8, NULL, p.ba, 1, 0, &rx[0]));
	snprintf(gauges, sizeof(gauges), "1 %d %d 0 0 %d", POSTED, UNEXPECTED,
		 UNM_PEER_CREDITS);
	shows(&p, p.b, gauges, AGE_RECV, "0 1");
	ep_close(c);
	ep_pair_close(&p);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_age_of_a_rendezvous),
	EP_TEST_INSIDE(test_age_of_a_stream_at_both_ends),
	EP_TEST_INSIDE(test_age_of_a_delivery),
	EP_TEST_INSIDE(test_age_of_a_backlog),
	EP_TEST_INSIDE(test_age_of_a_posted_receive),
	EP_TEST_INSIDE(test_the_table_shows_the_queues),
)
