/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_backlog.c - sends to a peer that takes nothing for a while.
 *
 * Every call accepts sends until half of the endpoint's operations are in use.
 * They wait in order, the data of inject calls are copied, and each send ends
 * in exactly one completion, also if the peer closes or dies.
 */
#include <poll.h>

#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/ep_xfer.h"
#include "progress/unm_progress.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_offer.h"

#define SENDS	600		/* more than any ring or credit allows */
#define TRIES	20000		/* polls without success, after which it is
				 * refused for good */

static struct xfer *xs;

/* Messages of every call, tagged and untagged, and every protocol. */
static void make_all(unsigned n)
{
	static const size_t lens[] = { 0, 8, 24, 200, 1000, 4000, 20000 };

	xs = calloc(n, sizeof(*xs));
	assert_non_null(xs);
	for (unsigned i = 0; i < n; i++) {
		struct xfer *x = &xs[i];

		x->tagged = i / XFER_TX_CALLS & 1;
		x->tx = i % XFER_TX_CALLS;
		x->rx = i % XFER_RX_CALLS;
		x->len = lens[i % (sizeof(lens) / sizeof(lens[0]))];
		if (xfer_inject(x) && x->len > UNM_INJECT_MAX)
			x->len = 100;
		x->tx_iov = x->tx == XFER_SENDV ? 3 : 1;
		x->tag = i;
		x->data = ~(uint64_t)i;
		x->seed = i + 1;
		if (x->tx == XFER_SENDMSG && i & 64)
			x->tx_flags = FI_DELIVERY_COMPLETE;
		xfer_make(x);
	}
}

/* Short untagged messages. */
static void make_small(unsigned n)
{
	xs = calloc(n, sizeof(*xs));
	assert_non_null(xs);
	for (unsigned i = 0; i < n; i++) {
		xs[i] = (struct xfer){ .tx = XFER_INJECT, .len = 8,
				       .seed = i + 1 };
		xfer_make(&xs[i]);
	}
}

static void free_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		xfer_free(&xs[i]);
	free(xs);
}

/* Send while the peer does nothing. Returns the number of sends that were
 * accepted before they were refused for good. */
static unsigned send_all(struct ep *e, fi_addr_t to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ssize_t ret = -FI_EAGAIN;

		for (int try = 0; try < TRIES && ret == -FI_EAGAIN; try++) {
			ret = xfer_send(e, to, &xs[i]);
			ep_poll(e);
		}
		if (ret == -FI_EAGAIN)
			return i;
		assert_int_equal(ret, 0);
	}
	return n;
}

static void receive_all(struct ep_pair *p, unsigned from, unsigned n)
{
	for (unsigned i = from; i < n; i++)
		EP_OK(xfer_recv(p->b, p->ba, &xs[i]));
	for (unsigned i = from; i < n; i++)
		xfer_check(p->b, p->ba, &xs[i]);
	for (unsigned i = from; i < n; i++)
		if (xfer_tx_completes(&xs[i]))
			ep_sent(p->a, &xs[i].txc);
}

static uint64_t waited(struct ep *e)
{
	return ((struct unm_ep *)e->ep)->stats->tx_backlog;
}

static void test_all_calls_are_taken_and_kept(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_peer *peer;
	int open = 0;

	make_all(SENDS);
	assert_int_equal(send_all(p.a, p.ab, SENDS), SENDS);
	assert_true(waited(p.a) > 0);
	receive_all(&p, 0, SENDS);
	ep_pair_quiet(&p);
	free_all(SENDS);
	/* and later sends are not queued */
	make_all(XFER_TX_CALLS);
	for (int i = 0; i < 100; i++) {
		uint64_t before = waited(p.a);

		xs[0].tx = XFER_INJECT;
		xfer_fill(xs[0].out_iov[0].iov_base, xs[0].len, xs[0].seed, 0);
		EP_OK(xfer_send(p.a, p.ab, &xs[0]));
		peer = ((struct unm_ep *)p.a->ep)->peer_of[p.ab];
		open += peer->msg_limit > peer->msgs_sent;
		EP_OK(xfer_recv(p.b, p.ba, &xs[0]));
		xfer_check(p.b, p.ba, &xs[0]);
		assert_int_equal(waited(p.a), before);
	}
	assert_true(open > 90);		/* else the credits were used up */
	free_all(XFER_TX_CALLS);
	ep_pair_close(&p);
}

/* At most half of the operations are queued: later sends are refused, and
 * succeed when they are repeated. */
static void test_backlog_is_bounded(void **state)
{
	static char big[20000] = "big", in[20000];
	int kept = g_unm_env.tx_size, idle = 0;
	struct ep *other;
	fi_addr_t to, from;
	struct ep_comp c;
	struct ep_pair p;
	unsigned first;

	g_unm_env.tx_size = 64;
	p = ep_pair(NULL);
	make_all(SENDS);
	first = send_all(p.a, p.ab, SENDS);
	assert_true(first < SENDS);
	assert_true(waited(p.a) > 0 && waited(p.a) <= 32);
	/* sends to other peers are not refused because of it */
	other = ep_open(NULL);
	to = ep_insert(other, p.a);
	from = ep_insert(p.a, other);
	for (int i = 0; i < 20; i++)
		EP_OK(fi_tsend(p.a->ep, big, sizeof(big), NULL, from, 7, big));
	for (int i = 0; i < 20; i++) {
		EP_OK(fi_trecv(other->ep, in, sizeof(in), NULL, to, 7, 0, in));
		while (!ep_take(other, in, &c)) {
			ep_poll(other);
			ep_poll(p.a);
		}
		assert_memory_equal(in, big, sizeof(big));
	}
	for (int i = 0; i < 20; )
		i += ep_take(p.a, big, &c) || ep_poll(p.a) < 0;
	/* a refused sender may sleep or yield */
	assert_int_equal(xfer_send(p.a, p.ab, &xs[first]), -FI_EAGAIN);
	for (int i = 0; i < 200; i++)
		idle += unm_progress((struct unm_ep *)p.a->ep) == 0;
	assert_true(idle > 150);
	for (unsigned at = 0; at < SENDS; ) {
		receive_all(&p, at, first);
		at = first;
		for (; first < SENDS; first++) {
			ssize_t ret = xfer_send(p.a, p.ab, &xs[first]);

			if (ret == -FI_EAGAIN)
				break;
			assert_int_equal(ret, 0);
		}
		ep_step();
	}
	free_all(SENDS);
	g_unm_env.tx_size = kept;
}

/* The peer has released packets, which the sender does not know yet: its next
 * send is queued behind the earlier ones. */
static void test_nothing_overtakes(void **state)
{
	struct ep_pair p = ep_pair(NULL);

	make_small(SENDS);
	assert_int_equal(send_all(p.a, p.ab, SENDS - 100), SENDS - 100);
	assert_true(waited(p.a) > 0);
	for (unsigned i = SENDS - 100; i < SENDS; i++) {
		for (int k = 0; k < 50; k++)
			ep_poll(p.b);
		assert_int_equal(xfer_send(p.a, p.ab, &xs[i]), 0);
		if (i % 10 == 0)
			ep_poll(p.a);
	}
	for (unsigned i = 0; i < SENDS; i++) {
		uint8_t buf[64];

		EP_OK(fi_recv(p.b->ep, buf, sizeof(buf), NULL, p.ba, buf));
		assert_int_equal(ep_received(p.b, buf).len, 8);
		assert_true(xfer_filled(buf, 8, xs[i].seed, 0));
	}
	free_all(SENDS);
	ep_pair_close(&p);
}

/* The peer ends or is disconnected: each accepted send ends once, later ones
 * with an error. */
static void peer_goes(bool dropped)
{
	int err = dropped ? FI_ECONNABORTED : FI_ECONNRESET;
	struct ep_pair p = ep_pair(NULL);
	unsigned good = 0, bad = 0, due = 0;

	make_all(SENDS);
	assert_int_equal(send_all(p.a, p.ab, SENDS), SENDS);
	if (dropped)
		unm_peer_disconnect(((struct unm_ep *)p.a->ep)->peer_of[p.ab]);
	else
		ep_close(p.b);
	for (unsigned i = 0; i < SENDS; i++) {
		struct ep_comp c;

		if (!xfer_tx_completes(&xs[i]))
			continue;
		due++;
		c = ep_wait(p.a, &xs[i].txc);
		assert_true(c.err == 0 || c.err == err);
		good += c.err == 0;
		bad += c.err != 0;
	}
	assert_int_equal(good + bad, due);
	assert_true(good > 0 && bad > 0);
	assert_int_equal(fi_send(p.a->ep, "x", 1, NULL, p.ab, NULL),
			 -FI_ECONNRESET);
	ep_quiet(p.a);		/* fi_inject() reports nothing */
	ep_close(p.a);
	if (dropped)
		ep_close(p.b);
	free_all(SENDS);
}

static void test_peer_goes_before_it_takes_them(void **state)
{
	peer_goes(false);
	peer_goes(true);
}

/* A sleeper with queued sends: packets that the peer releases wake it, and all
 * sends complete. */
static void test_asleep_with_a_backlog(void **state)
{
	struct ep_pair p = ep_pair(&(struct ep_want){ .wait = FI_WAIT_FD });
	struct fid *fid = &p.a->cq->fid;
	struct pollfd pfd = { .events = POLLIN };
	uint64_t end = ep_deadline();
	unsigned got = 0, rounds = 0;
	char buf[8];

	make_small(SENDS);
	assert_int_equal(send_all(p.a, p.ab, SENDS), SENDS);
	assert_int_equal(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	while (!unm_list_empty(&((struct unm_ep *)p.a->ep)->pending_peers)) {
		ep_in_time(end, "backlog");
		if (fi_trywait(p.a->fabric, &fid, 1) != 0) {
			ep_poll(p.a);
			continue;
		}
		rounds += poll(&pfd, 1, 0) == 0;
		for (int i = 0; i < 100000 && poll(&pfd, 1, 0) == 0; i++)
			ep_poll(p.b);
		assert_int_equal(poll(&pfd, 1, 0), 1);
		ep_poll(p.a);
	}
	assert_true(rounds > 0);
	for (; got < SENDS; got++) {
		EP_OK(fi_recv(p.b->ep, buf, sizeof(buf), NULL, p.ba, buf));
		assert_int_equal(ep_received(p.b, buf).len, 8);
	}
	free_all(SENDS);
	ep_pair_close(&p);
}

static unsigned backlog(struct ep *e, fi_addr_t to)
{
	unsigned n = 0;

	unm_list_for_each(pos, &((struct unm_ep *)e->ep)->peer_of[to]->backlog)
		n++;
	return n;
}

/* Queued sends are sent as announcements, which still hold their operations. As
 * a send may have been refused for lack of operations, fi_trywait() returns
 * -FI_EAGAIN once so that the application retries before it sleeps. */
static void test_no_sleep_when_the_backlog_is_announced(void **state)
{
	static char big[100000];
	int kept = g_unm_env.tx_size;
	struct ep_pair p;
	struct fid *fid;
	ssize_t ret = 0;
	unsigned n = 0;

	g_unm_env.tx_size = 256;
	p = ep_pair(&(struct ep_want){ .wait = FI_WAIT_FD });
	fid = &p.a->cq->fid;
	while (fi_inject(p.a->ep, big, 8, p.ab) == 0)
		ep_poll(p.a);
	for (int try = 0; try < TRIES && n < 128; try++)
		n += fi_send(p.a->ep, big, sizeof(big), NULL, p.ab, big) == 0;
	assert_int_equal(n, 128);
	assert_int_equal(backlog(p.a, p.ab), 128);
	while (backlog(p.a, p.ab) == 128) {
		ep_poll(p.b);
		ep_poll(p.a);
	}
	assert_true(backlog(p.a, p.ab) > 0);
	while (fi_trywait(p.a->fabric, &fid, 1) != 0)
		ep_poll(p.a);
	for (int try = 0; try < TRIES; try++)
		ret |= fi_inject(p.a->ep, big, 8, p.ab);
	assert_int_equal(ret, -FI_EAGAIN);
	EP_OK(fi_trywait(p.a->fabric, &fid, 1));
	while (backlog(p.a, p.ab) != 0) {
		ep_poll(p.b);
		ep_poll(p.a);
	}
	assert_int_equal(fi_trywait(p.a->fabric, &fid, 1), -FI_EAGAIN);
	EP_OK(fi_inject(p.a->ep, big, 8, p.ab));
	g_unm_env.tx_size = kept;
	ep_pair_close(&p);
}

static atomic_bool stop;

static void *take(void *arg)
{
	while (!atomic_load(&stop)) {
		ep_poll(arg);
		sched_yield();
	}
	return NULL;
}

/* Injected messages that are queued are sent before the endpoint is closed. */
static void test_close_sends_the_backlog(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	pthread_t thread;
	char buf[8];

	make_small(SENDS);
	assert_int_equal(send_all(p.a, p.ab, SENDS), SENDS);
	assert_true(waited(p.a) > 0);
	atomic_store(&stop, false);
	thread = unit_thread(take, p.b);
	ep_close(p.a);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < SENDS; i++) {
		EP_OK(fi_recv(p.b->ep, buf, sizeof(buf), NULL, p.ba, buf));
		assert_int_equal(ep_received(p.b, buf).len, 8);
	}
	ep_quiet(p.b);
	free_all(SENDS);
	ep_close(p.b);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_all_calls_are_taken_and_kept),
	EP_TEST_INSIDE(test_backlog_is_bounded),
	EP_TEST_INSIDE(test_nothing_overtakes),
	EP_TEST_INSIDE(test_peer_goes_before_it_takes_them),
	EP_TEST_INSIDE(test_asleep_with_a_backlog),
	EP_TEST_INSIDE(test_no_sleep_when_the_backlog_is_announced),
	EP_TEST_INSIDE(test_close_sends_the_backlog),
)
