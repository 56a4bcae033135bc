/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_conn.c - conformance tests of interfaces, addresses and
 * connections
 */
#include <fcntl.h>
#include <poll.h>

#include "conform/hal_conform.h"
#include "hal/hal_process.h"

/* ---- The process's HAL and its interfaces ---------------------------- */

static void hal_is_one_per_process(void **state)
{
	struct hal *again = NULL;

	assert_int_equal(hal_get(NULL, &again), 0);
	assert_ptr_equal(again, ct_hal);
	hal_put(again);
	ct_pair(0, 0);			/* the first reference still works */
}

static void if_boards_and_addresses(void **state)
{
	bool any = ct_caps->flags & HAL_CAP_ANY_BOARD;
	struct hal_if *none = NULL;
	struct ct_if *ci[12];

	assert_true(ct_caps->boards >= 1 && ct_caps->ifs_per_board >= 1);
	for (int i = 0; i < 12; i++) {
		int board = i % (int)ct_caps->boards;
		struct hal_addr *a;

		ci[i] = ct_open(i == 0 ? -1 : board);
		a = &ci[i]->hif->addr;
		assert_int_equal(a->version, HAL_ADDR_VERSION);
		assert_int_equal(a->board, i == 0 || !any ?
				 ct_hal->own_board : board);
		assert_true((a->iface != HAL_IF_SERVICE || ct_opt.service) &&
			    a->iface <= ct_caps->ifs_per_board);
		assert_true(a->nonce != HAL_ADDR_ANY && a->reserved == 0);
		for (int k = 0; k < i; k++) {
			struct hal_addr *b = &ci[k]->hif->addr;

			assert_true(a->board != b->board ||
				    a->iface != b->iface);
			assert_true(a->nonce != b->nonce);
		}
	}
	assert_int_equal(hal_if_open(ct_hal, (int)ct_caps->boards, &none),
			 -FI_EINVAL);
	assert_null(none);
}

/* A board opens all its interfaces, then fails, and reuses a closed
 * interface. */
static void if_exhausted(void **state)
{
	struct hal_if *none = NULL;
	int board = ct_caps->flags & HAL_CAP_ANY_BOARD ?
		    (int)ct_caps->boards - 1 : -1;
	int n = 0, ret;

	unit_needs(ct_caps->ifs_per_board < CT_IFS);
	while ((ret = hal_if_open(ct_hal, board, &ct_ifs[n].hif)) == 0) {
		n++;
		assert_true(n <= (int)ct_caps->ifs_per_board);
	}
	assert_int_equal(ret, -FI_EBUSY);
	/* Other processes may hold some interfaces, but less than half. */
	assert_true(n > (int)ct_caps->ifs_per_board / 2);
	ct_close(&ct_ifs[n / 2]);
	assert_int_equal(hal_if_open(ct_hal, board, &ct_ifs[n / 2].hif), 0);
	assert_int_equal(hal_if_open(ct_hal, board, &none), -FI_EBUSY);
	assert_null(none);
}

/* Open an interface by number, waiting until it is free: in the emulation the
 * peers of its last holder must have been stepped first. */
static struct hal_if *open_number(int board, int number)
{
	struct hal_if *hif = NULL;
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_if_open_number(ct_hal, board, number, &hif)) ==
	       -FI_EADDRINUSE && ct_now() < end) {
		ct_step_all();
		ct_nap(1000);
	}
	assert_int_equal(ret, 0);
	return hif;
}

/* An interface number has one holder at a time. Opening by number opens this
 * interface or fails. */
static void if_of_a_number(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct hal_if *none = NULL;
	struct hal_addr was;
	int board, number;

	if (ct_opt.service)		/* the first interface is number 0 */
		ci = ct_open(0);
	was = ci->hif->addr;
	board = was.board;
	number = (int)was.iface;
	for (int i = 0; i < 3; i++) {
		struct hal_addr *now;

		assert_int_equal(hal_if_open_number(ct_hal, board, number,
						    &none), -FI_EADDRINUSE);
		assert_null(none);
		ct_close(ci);
		ci->hif = open_number(board, number);
		now = &ci->hif->addr;
		assert_int_equal(now->board, board);
		assert_int_equal(now->iface, number);
		assert_true(now->nonce != was.nonce);
		was = *now;
	}
	assert_int_equal(hal_if_open_number(ct_hal, board, 0, &none),
			 -FI_EINVAL);
	assert_int_equal(hal_if_open_number(ct_hal, board,
					    (int)ct_caps->ifs_per_board + 1,
					    &none), -FI_EINVAL);
	assert_null(none);
}

static void if_page_names_its_owner(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct hal_page_head *head = ci->hif->page;

	assert_non_null(head);
	assert_true(atomic_load(&head->magic) == HAL_PAGE_MAGIC);
	assert_int_equal(head->board, ci->hif->addr.board);
	assert_int_equal(head->iface, ci->hif->addr.iface);
	assert_true(head->nonce == ci->hif->addr.nonce);
	assert_string_equal(head->profile, ct_caps->profile);
	/* The rest of the page is free for the caller, and writable. */
	memset(head + 1, 0xff, HAL_PAGE_BYTES - sizeof(*head));
}

/* ---- Connections ----------------------------------------------------- */

/* Send the words 0 to n - 1, stepping the sender only. */
static void send_blind(struct ct_if *ci, struct hal_peer *peer, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ct_send(ci, peer, CT_TYPE_PING, i), 0);
}

/* As ct_connect(), stepping the connecting interface only. */
static struct hal_peer *connect_blind(struct ct_if *ci,
				      const struct hal_addr *to)
{
	struct hal_peer *peer = NULL;
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = ct_hal_connect(ci->hif, to, &peer)) == -FI_EAGAIN) {
		if (ct_now() > end)
			ct_fail("no connection without the other side");
		ct_step(ci);
	}
	assert_int_equal(ret, 0);
	return peer;
}

/* Packets and stores may be sent before the receiver was stepped once. */
static void conn_first_contact(void **state)
{
	struct ct_if *a = ct_open(0), *b = ct_open(0);
	struct hal_peer *ab = connect_blind(a, &b->hif->addr), *ba;
	uint8_t buf[100];

	assert_int_equal(hal_space_ready(ab, UINT32_MAX), 0);
	ct_fill(buf, sizeof(buf), 5);
	hal_space_write(ab, 1000, buf, sizeof(buf));
	hal_space_barrier(ab);
	send_blind(a, ab, ct_caps->pkt_depth);
	assert_int_equal(ct_send_once(a, ab, CT_TYPE_PING, 0), -FI_EAGAIN);
	assert_int_equal(b->nev + b->hif->ninbound, 0);
	ba = ct_inbound_from(b, &a->hif->addr);
	for (unsigned i = 0; i < ct_caps->pkt_depth; i++)
		assert_true(ct_recv(ba, CT_TYPE_PING) == i);
	assert_true(ct_filled(hal_space(ba, 1000), sizeof(buf), 5));
	ct_wait_event(a, HAL_EV_CONNECTED, ab);
}

/* There is one peer object for a remote interface, whichever side connects
 * first and however often. */
static void conn_one_object(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_if *c = ct_open(0);
	struct hal_peer *ac = ct_connect(p.a, &c->hif->addr);

	assert_ptr_equal(ct_connect(p.a, &p.b->hif->addr), p.ab);
	assert_ptr_equal(ct_connect(p.b, &p.a->hif->addr), p.ba);
	assert_ptr_equal(ct_connect(p.a, &c->hif->addr), ac);
	assert_ptr_not_equal(ac, p.ab);
	ct_wait_event(p.a, HAL_EV_CONNECTED, ac);
	ct_inbound_from(c, &p.a->hif->addr);
	for (int i = 0; i < 50; i++)
		ct_step_all();
	/* No event is reported twice. */
	assert_int_equal(p.a->nev + p.b->nev + c->nev, 0);
	assert_ptr_equal(p.ab->hif, p.a->hif);
	assert_true(ct_same_addr(&p.ab->addr, &p.b->hif->addr));
}

/* Both ends belong to this process, which is alive. Of another host no process
 * is known. */
static void conn_process(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct hal_peer *end[] = { p.ab, p.ba };
	uint64_t id[2] = { 0, 1 };

	for (int i = 0; i < 2; i++) {
		int fd = hal_peer_process(end[i], &id[i]);
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		if (ct_net()) {
			assert_int_equal(fd, -FI_ENOSYS);
			continue;
		}
		assert_true(fd >= 0);
		assert_int_equal(poll(&pfd, 1, 0), 0);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
	}
	assert_true(ct_net() || id[0] == id[1]);
}

/* Each interface connects to all interfaces before any is stepped. */
static void conn_simultaneous(void **state)
{
	enum { N = 6 };
	struct ct_if *ci[N];
	struct hal_peer *peer[N][N];

	for (int i = 0; i < N; i++)
		ci[i] = ct_open(i % (int)ct_caps->boards);
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < N; k++) {
			peer[i][k] = ct_connect(ci[i], &ci[k]->hif->addr);
			send_blind(ci[i], peer[i][k], 3);
		}
	}
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < N; k++) {
			ct_wait_event(ci[i], HAL_EV_INBOUND, peer[i][k]);
			ct_wait_event(ci[i], HAL_EV_CONNECTED, peer[i][k]);
			for (unsigned w = 0; w < 3; w++)
				assert_true(ct_recv(peer[i][k], CT_TYPE_PING)
					    == w);
		}
	}
	for (int i = 0; i < 50; i++)
		ct_step_all();
	for (int i = 0; i < N; i++)
		assert_int_equal(ci[i]->nev, 0);
}

struct meeting {
	struct ct_if *ci;
	const struct hal_addr *to;
	bool heard;
	const char *error;
	_Atomic int *done;		/* threads of this meeting that are
					 * done */
};

/* Returns whether both halves are open, with one event each, a packet was
 * received and a packet was released. */
static bool met(struct meeting *m, struct hal_peer *peer)
{
	uint64_t head;

	if (!m->heard && ct_peek(peer, &head) != NULL) {
		hal_rx_release(peer);
		hal_rx_flush(peer);
		m->heard = true;
	}
	return m->heard && hal_tx_done(peer) == hal_tx_sent(peer) &&
	       ct_count_events(m->ci, HAL_EV_INBOUND, peer) == 1 &&
	       ct_count_events(m->ci, HAL_EV_CONNECTED, peer) == 1;
}

static const char *meet_once(struct meeting *m, uint64_t end)
{
	struct hal_peer *peer = NULL;
	int ret = -FI_EAGAIN;

	while (ret == -FI_EAGAIN && ct_now() < end) {
		ret = ct_hal_connect(m->ci->hif, m->to, &peer);
		if (ret == -FI_EAGAIN)
			ct_step(m->ci);
	}
	if (ret != 0 || ct_send(m->ci, peer, CT_TYPE_PING, 1) != 0)
		return "cannot connect or send";
	while (!met(m, peer)) {
		if (ct_now() > end)
			return "a half was not opened, or not told once";
		ct_step(m->ci);
		sched_yield();
	}
	return NULL;
}

/*
 * A thread that is done continues to step until the other thread is done: an
 * answer that could not be sent is sent by a later service call.
 */
static void *meet(void *arg)
{
	struct meeting *m = arg;
	uint64_t end = ct_deadline();

	m->error = meet_once(m, end);
	atomic_fetch_add(m->done, 1);
	while (atomic_load(m->done) < 2 && ct_now() < end) {
		ct_step(m->ci);
		sched_yield();
	}
	return NULL;
}

static void conn_simultaneous_threads(void **state)
{
	int rounds = ct_net() ? 40 : 200;	/* an engine starts slowly */

	for (int round = 0; round < rounds; round++) {
		struct ct_if *a = ct_open(0), *b = ct_open(0);
		_Atomic int done = 0;
		struct meeting m[2] = {
			{ .ci = a, .to = &b->hif->addr, .done = &done },
			{ .ci = b, .to = &a->hif->addr, .done = &done },
		};
		pthread_t thread;

		thread = unit_thread(meet, &m[1]);
		meet(&m[0]);
		pthread_join(thread, NULL);
		if (m[0].error != NULL || m[1].error != NULL)
			ct_fail("round %d: %s", round, m[0].error != NULL ?
				m[0].error : m[1].error);
		ct_close(a);
		ct_close(b);
	}
}

/* An interface may connect to itself as to any other interface. */
static void conn_loopback(void **state)
{
	struct ct_if *a = ct_open(0);
	struct hal_peer *self = ct_connect(a, &a->hif->addr);
	uint8_t buf[64];

	ct_wait_event(a, HAL_EV_INBOUND, self);
	ct_wait_event(a, HAL_EV_CONNECTED, self);
	assert_int_equal(hal_space_ready(self, UINT32_MAX), 0);
	for (unsigned i = 0; i < 10 * ct_caps->pkt_depth; i++) {
		ct_fill(buf, sizeof(buf), i);
		hal_space_write(self, 64 * (i % 8), buf, sizeof(buf));
		hal_space_barrier(self);
		assert_int_equal(ct_send(a, self, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(self, CT_TYPE_PING) == i);
		assert_true(ct_filled(hal_space(self, 64 * (i % 8)),
				      sizeof(buf), i));
	}
	send_blind(a, self, ct_caps->pkt_depth);
	assert_int_equal(ct_send_once(a, self, CT_TYPE_PING, 0), -FI_EAGAIN);
	for (unsigned i = 0; i < ct_caps->pkt_depth; i++)
		assert_true(ct_recv(self, CT_TYPE_PING) == i);
	assert_int_equal(ct_drain(self), 0);
}

/* Each event is reported once, also if the caller takes one event at a time. */
static void conn_events_by_ones(void **state)
{
	enum { N = 12 };
	struct ct_if *b = ct_open(0), *ci[N];
	struct hal_event ev[2] = { { 0 } };
	uint64_t end = ct_deadline();
	int n = 0, ret;

	for (int i = 0; i < N; i++) {
		struct hal_peer *peer;

		/* without stepping b, as ct_connect() might */
		ci[i] = ct_open(0);
		do {
			ret = ct_hal_connect(ci[i]->hif, &b->hif->addr, &peer);
			assert_true(ct_now() < end);
		} while (ret == -FI_EAGAIN);
		assert_int_equal(ret, 0);
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(hal_if_service(b->hif, ev, 0), 0);
	while (n < N) {
		ret = hal_if_service(b->hif, ev, 1);
		assert_in_range(ret, 0, 1);
		assert_int_equal(ev[1].type, 0);
		if (ret == 1)
			assert_int_equal(ev[0].type, HAL_EV_INBOUND);
		n += ret;
		assert_int_equal(b->hif->ninbound, n);
		assert_true(ct_now() < end);
		for (int i = 0; i < N; i++)
			ct_step(ci[i]);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(hal_if_service(b->hif, ev, 1), 0);
}

/* ---- Addresses ------------------------------------------------------- */

/* The address of a former holder never connects to the interface's next
 * holder. */
static void conn_stale_nonce(void **state)
{
	struct ct_if *a = ct_open(0), *b, *ci[4];
	struct hal_addr old, wrong;

	b = ct_open(0);
	old = b->hif->addr;
	ct_close(b);
	/* The interface may get the same number again: the nonce differs. */
	for (int i = 0; i < 4; i++)
		ci[i] = ct_open(0);
	for (int i = 0; i < 4; i++) {
		wrong = ci[i]->hif->addr;
		wrong.nonce = old.nonce;
		ct_expect_refused(a, &wrong);
		wrong.nonce = ci[i]->hif->addr.nonce ^ 1;
		ct_expect_refused(a, &wrong);
		for (int k = 0; k < 20; k++)
			ct_step_all();
		assert_int_equal(ci[i]->nev + ci[i]->hif->ninbound, 0);
		/* The refused attempt does not disturb the present holder. */
		assert_non_null(ct_connect(a, &ci[i]->hif->addr));
	}
}

static void conn_any_nonce(void **state)
{
	struct ct_if *a, *b;
	struct hal_peer *ab;
	struct hal_addr any;

	CT_NOT_NET();
	a = ct_open(0);
	b = ct_open(0);
	any = b->hif->addr;
	any.nonce = HAL_ADDR_ANY;
	ab = ct_connect(a, &any);
	assert_int_equal(ct_send(a, ab, CT_TYPE_PING, 1), 0);
	ct_wait_event(a, HAL_EV_CONNECTED, ab);
	/* The address of the peer is complete now. */
	assert_true(ct_same_addr(&ab->addr, &b->hif->addr));
	assert_ptr_equal(ct_connect(a, &b->hif->addr), ab);
	assert_true(ct_recv(ct_inbound_from(b, &a->hif->addr), CT_TYPE_PING)
		    == 1);
}

/* Connecting to a closed interface is refused; another job may hold its number
 * meanwhile. */
static void conn_nobody(void **state)
{
	struct ct_if *a = ct_open(0), *b = ct_open((int)ct_caps->boards - 1);
	struct hal_addr gone = b->hif->addr;

	ct_close(b);
	ct_expect_refused(a, &gone);
}

/* If there is no other job, the refusal comes at once, for any nonce. */
static void conn_nobody_at_all(void **state)
{
	struct ct_if *a, *b;
	struct hal_peer *peer = NULL;
	struct hal_addr gone;

	CT_NOT_NET();
	if (getenv("UNM_ALONE") == NULL)
		skip();			/* see test/check/alone.sh */
	a = ct_open(0);
	b = ct_open((int)ct_caps->boards - 1);
	gone = b->hif->addr;
	ct_close(b);
	assert_int_equal(ct_try_connect(a, &gone, &peer), -FI_ECONNREFUSED);
	gone.nonce = HAL_ADDR_ANY;
	assert_int_equal(ct_try_connect(a, &gone, &peer), -FI_ECONNREFUSED);
	assert_null(peer);
}

/* Addresses that no interface can have, and those of another user, are
 * refused. Another host may have other boards and users: it refuses these. */
static void conn_bad_address(void **state)
{
	struct ct_if *a = ct_open(0), *b = ct_open(0);
	struct hal_addr bad[6];
	struct hal_peer *peer = NULL;
	int ret;

	for (int i = 0; i < 6; i++)
		bad[i] = b->hif->addr;
	bad[0].version++;
	bad[1].board = ct_caps->boards;
	bad[2].iface = UINT32_MAX;
	bad[3].iface = ct_caps->ifs_per_board + 1;
	bad[4].reserved = 1;
	bad[5].uid++;
	for (int i = 0; i < 6; i++) {
		if (ct_net() && (i == 1 || i == 5)) {
			ct_expect_refused(a, &bad[i]);
			continue;
		}
		ret = ct_try_connect(a, &bad[i], &peer);
		if (i < 5)
			assert_int_equal(ret, -FI_EINVAL);
		else
			assert_true(ret == -FI_EACCES ||
				    ret == -FI_ECONNREFUSED);
		assert_null(peer);
	}
	assert_int_equal(b->nev, 0);
}

/* A peer that was freed gets HAL_EV_DEAD; both sides may connect anew. */
static void conn_free_and_again(void **state)
{
	struct ct_pair p = ct_pair(0, 0);

	for (int i = 0; i < 50; i++) {
		struct hal_event ev;

		send_blind(p.a, p.ab, 5);
		ct_peer_free(p.ab);
		ev = ct_wait_event(p.b, HAL_EV_DEAD, p.ba);
		assert_true(ev.status < 0);
		assert_int_equal(ct_drain(p.ba), 5);
		hal_peer_free(p.ba);
		assert_int_equal(p.b->hif->ninbound + p.a->hif->ninbound, 0);
		ct_join(&p);
	}
}

/* Connect and free four times. The other side is stepped in round number look
 * only (0: in no round), and frees no peer. */
static void again(unsigned look)
{
	struct ct_pair p = ct_pair(0, 0);
	struct hal_event ev;

	for (unsigned i = 1; i < 5; i++) {
		ct_peer_free(p.ab);
		if (i == look)
			ct_step(p.b);
		p.ab = ct_connect(p.a, &p.b->hif->addr);
		send_blind(p.a, p.ab, i);
	}
	for (unsigned i = 0; i < 5; i++) {
		if (i != 0)
			p.ba = ct_inbound_from(p.b, &p.a->hif->addr);
		for (unsigned w = 0; w < i; w++)
			assert_true(ct_recv(p.ba, CT_TYPE_PING) == w);
		if (i == 4)
			break;
		ev = ct_wait_event(p.b, HAL_EV_DEAD, p.ba);
		assert_true(ev.status < 0);
		hal_peer_free(p.ba);
	}
	for (int i = 0; i < 30; i++)
		ct_step_all();
	assert_false(p.ab->dead || p.ba->dead);
	ct_close(p.a);
	ct_close(p.b);
}

/* The same without stepping the other side: it receives each connection. */
static void conn_again_unseen(void **state)
{
	again(0);
}

/* The same if it is stepped in between: events keep their order. */
static void conn_again_half_seen(void **state)
{
	for (unsigned look = 1; look < 5; look++)
		again(look);
}

const struct CMUnitTest ct_conn_tests[] = {
	CT_TEST(hal_is_one_per_process),
	CT_TEST(if_boards_and_addresses),
	CT_TEST(if_exhausted),
	CT_TEST(if_of_a_number),
	CT_TEST(if_page_names_its_owner),
	CT_TEST(conn_first_contact),
	CT_TEST(conn_one_object),
	CT_TEST(conn_simultaneous),
	CT_TEST(conn_simultaneous_threads),
	CT_TEST(conn_loopback),
	CT_TEST(conn_process),
	CT_TEST(conn_events_by_ones),
	CT_TEST(conn_stale_nonce),
	CT_TEST(conn_any_nonce),
	CT_TEST(conn_nobody),
	CT_TEST(conn_nobody_at_all),
	CT_TEST(conn_bad_address),
	CT_TEST(conn_free_and_again),
	CT_TEST(conn_again_unseen),
	CT_TEST(conn_again_half_seen),
};
const size_t ct_conn_count = CT_COUNT(ct_conn_tests);
