/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_service.c - conformance tests of interface 0, that of the GSAS
 * service: each board has one, also if all other interfaces are in use, and its
 * address is known to every process. "hal_conform --service" tests that it
 * works as any other interface does.
 */
#include <inttypes.h>

#include "conform/hal_conform.h"

/* The address of a board's service, without a nonce. */
static struct hal_addr service_of(const struct hal_addr *own, unsigned board)
{
	struct hal_addr addr = *own;

	addr.board = (uint16_t)board;
	addr.iface = HAL_IF_SERVICE;
	addr.nonce = HAL_ADDR_ANY;
	return addr;
}

static bool alone(void)
{
	return getenv("UNM_ALONE") != NULL;	/* see test/check/alone.sh */
}

static void expect_busy(int board)
{
	struct hal_if *none = NULL;

	assert_int_equal(hal_if_open_service(ct_hal, board, &none), -FI_EBUSY);
	assert_null(none);
}

/* ---- The holder ------------------------------------------------------ */

/* There is one for a board, no other call opens it, and it can be opened again
 * after it was closed. */
static void service_is_one_per_board(void **state)
{
	struct ct_if *s = ct_open_service(0), *other;
	struct hal_page_head *head = s->hif->page;
	struct hal_addr a = s->hif->addr;
	struct hal_if *none = NULL;
	uint32_t boards = ct_caps->boards;

	assert_int_equal(a.version, HAL_ADDR_VERSION);
	assert_int_equal(a.iface, HAL_IF_SERVICE);
	assert_true(a.nonce != HAL_ADDR_ANY && a.reserved == 0);
	assert_true(head->iface == HAL_IF_SERVICE && head->board == a.board &&
		    head->nonce == a.nonce);
	expect_busy(a.board);
	for (unsigned i = 0; i < 12; i++)
		assert_in_range(ct_open((int)(i % boards))->hif->addr.iface, 1,
				ct_caps->ifs_per_board);
	expect_busy(a.board);
	if (ct_caps->flags & HAL_CAP_ANY_BOARD && boards > 1) {
		other = ct_open_service((int)boards - 1);
		assert_int_equal(other->hif->addr.board, boards - 1);
		assert_int_equal(other->hif->addr.iface, HAL_IF_SERVICE);
		expect_busy((int)boards - 1);
	}
	assert_int_equal(hal_if_open_service(ct_hal, (int)boards, &none),
			 -FI_EINVAL);
	for (int i = 0; i < 20; i++) {
		ct_close(s);
		s = ct_open_service(a.board);
		assert_int_equal(s->hif->addr.iface, HAL_IF_SERVICE);
		assert_true(s->hif->addr.nonce != a.nonce);
		a = s->hif->addr;
	}
}

/* Open every free interface of a board. Returns their number. */
static unsigned take_all(int board, struct ct_if **all)
{
	unsigned n = 0;
	int ret;

	for (struct ct_if *ci = ct_ifs; ci < ct_ifs + CT_IFS; ci++) {
		if (ci->hif != NULL)
			continue;
		ret = hal_if_open(ct_hal, board, &ci->hif);
		if (ret != 0) {
			assert_int_equal(ret, -FI_EBUSY);
			return n;
		}
		assert_true(ci->hif->addr.iface != HAL_IF_SERVICE);
		all[n++] = ci;
	}
	ct_fail("a board has more interfaces than it says");
	return 0;
}

/* Each interface sends to the service before the service is stepped. */
static void all_ask(struct ct_if *s, struct ct_if **all, unsigned n)
{
	struct hal_addr to = service_of(&s->hif->addr, s->hif->addr.board);
	struct hal_peer *ask[CT_IFS], *from;

	for (unsigned i = 0; i < n; i++) {
		ask[i] = ct_connect(all[i], &to);
		assert_int_equal(ct_send(all[i], ask[i], CT_TYPE_PING, i), 0);
	}
	for (unsigned i = 0; i < n; i++) {
		from = ct_inbound_from(s, &all[i]->hif->addr);
		assert_true(ct_recv(from, CT_TYPE_PING) == i);
		assert_ptr_equal(ct_connect(s, &all[i]->hif->addr), from);
		assert_int_equal(ct_send(s, from, CT_TYPE_PONG, ~i), 0);
	}
	for (unsigned i = 0; i < n; i++)
		assert_true(ct_recv(ask[i], CT_TYPE_PONG) == ~i);
}

/* Interface 0 can be opened when all other interfaces are in use, and these
 * when interface 0 is. */
static void service_beside_a_full_board(void **state)
{
	int board = ct_caps->flags & HAL_CAP_ANY_BOARD ?
		    (int)ct_caps->boards - 1 : -1;
	struct ct_if *all[CT_IFS], *s;
	struct hal_if *none = NULL;
	unsigned n;

	unit_needs(ct_caps->ifs_per_board < CT_IFS);
	n = take_all(board, all);
	s = ct_open_service(board);
	all_ask(s, all, n);
	ct_close(s);
	/* None of them was interface 0, and its close frees no number for
	 * them. */
	assert_int_equal(hal_if_open(ct_hal, board, &none), -FI_EBUSY);
	assert_null(none);
	for (unsigned i = 0; i < n; i++)
		ct_close(all[i]);
	s = ct_open_service(board);
	n = take_all(board, all);
	/* Other jobs may hold some interfaces, but less than half. */
	assert_in_range(n, alone() ? ct_caps->ifs_per_board :
			ct_caps->ifs_per_board / 2, ct_caps->ifs_per_board);
	expect_busy(board);
}

/* ---- Addresses ------------------------------------------------------- */

/* A client connects by the number alone or by a full address, but not by the
 * address of a former service. */
static void service_is_reached(void **state)
{
	struct hal_addr any, old, stale;
	struct hal_peer *as, *again;
	struct ct_if *s, *a, *b;

	CT_NOT_NET();
	s = ct_open_service(0);
	a = ct_open(0);
	b = ct_open(0);
	any = service_of(&a->hif->addr, s->hif->addr.board);
	old = s->hif->addr;
	stale = old;
	stale.nonce ^= 1;
	as = ct_connect(a, &any);
	assert_int_equal(ct_send(a, as, CT_TYPE_PING, 7), 0);
	assert_true(ct_recv(ct_inbound_from(s, &a->hif->addr), CT_TYPE_PING)
		    == 7);
	ct_wait_event(a, HAL_EV_CONNECTED, as);
	assert_true(ct_same_addr(&as->addr, &s->hif->addr));
	assert_ptr_equal(ct_connect(a, &old), as);
	ct_expect_refused(b, &stale);
	for (int i = 0; i < 20; i++)
		ct_step_all();
	assert_int_equal(s->hif->ninbound, 1);
	assert_int_equal(s->nev, 0);
	ct_close(s);
	ct_wait_event(a, HAL_EV_DEAD, as);
	ct_expect_refused(b, &old);
	if (alone())
		ct_expect_refused(b, &any);
	/* A client that knows the old service connects to the next by
	 * number. */
	s = ct_open_service(0);
	ct_expect_refused(b, &old);
	again = ct_connect(a, &any);
	assert_ptr_not_equal(again, as);
	assert_int_equal(ct_send(a, again, CT_TYPE_PING, 8), 0);
	assert_true(ct_recv(ct_inbound_from(s, &a->hif->addr), CT_TYPE_PING)
		    == 8);
	ct_wait_event(a, HAL_EV_CONNECTED, again);
	assert_true(ct_same_addr(&again->addr, &s->hif->addr));
	hal_peer_free(as);
}

/* Its packets carry the identity of interface 0 of its board. */
static void service_has_an_identity(void **state)
{
	enum { N = 3 };
	struct ct_if *s = ct_open_service(0), *ci[N];
	uint64_t id = 0, head;

	for (int i = 0; i < N; i++) {
		struct hal_peer *out, *in;

		ci[i] = ct_open(i == 0 ? 0 : (int)ct_caps->boards - 1);
		out = ct_connect(s, &ci[i]->hif->addr);
		assert_int_equal(ct_send(s, out, CT_TYPE_PING, 1), 0);
		in = ct_inbound_from(ci[i], &s->hif->addr);
		assert_int_equal(in->addr.board, s->hif->addr.board);
		assert_int_equal(in->addr.iface, HAL_IF_SERVICE);
		ct_await(in, &head);
		head &= HAL_HEAD_ID_MASK;
		assert_true(head == in->rx.identity);
		assert_true(i == 0 || head == id);
		id = head;
		/* No other interface has this identity. */
		out = ct_connect(ci[i], &s->hif->addr);
		assert_int_equal(ct_send(ci[i], out, CT_TYPE_PING, 1), 0);
		in = ct_inbound_from(s, &ci[i]->hif->addr);
		ct_await(in, &head);
		assert_true((head & HAL_HEAD_ID_MASK) != id);
	}
}

/* ---- Processes ------------------------------------------------------- */

/* How a service ends, and what remains of it. */
enum end { END_CLOSE, END_KILL, END_KILL_STOPPED, END_EXIT, END_HEIR, ENDS };

static void end_service(struct ct_child *c, enum end how)
{
	struct ct_heir heir = { 0 };

	if (how == END_KILL_STOPPED)
		ct_stop(c);
	if (how == END_HEIR)
		heir = ct_heir_leave(c);
	if (how == END_CLOSE) {
		ct_ask(c, NULL, 0, "shut");
		ct_finish(c);
	} else if (how == END_EXIT) {
		ct_finish(c);
	} else {
		ct_kill(c);
	}
	/* The forked process has copies of all descriptors of the service. */
	if (how == END_HEIR)
		ct_heir_end(&heir);
}

/* One process holds it, until the process ends in any way. */
static void proc_service_is_one(void **state)
{
	struct ct_child *c, *late;
	struct hal_peer *peer;
	struct ct_if *ci, *s;
	char line[128], busy[32];

	unit_needs(!ct_two_hosts());	/* each host has services of its own */
	ci = ct_open(-1);
	late = ct_spawn();
	snprintf(busy, sizeof(busy), "error serve %d", -FI_EBUSY);
	for (int how = 0; how < ENDS; how++) {
		if (ct_net() && how == END_HEIR)
			continue;	/* docs/hal.md, 16.8 */
		c = ct_spawn();
		ct_serve(c);
		assert_int_equal(c->addr.iface, HAL_IF_SERVICE);
		assert_int_equal(c->addr.board, ct_hal->own_board);
		peer = ct_join_child(ci, c);
		expect_busy(-1);
		ct_tell(late, "serve");
		assert_true(ct_hear(late, line, sizeof(line)));
		assert_string_equal(line, busy);
		assert_true(ct_open(-1)->hif->addr.iface != HAL_IF_SERVICE);
		end_service(c, how);
		s = ct_open_service(-1);
		ct_wait_event(ci, HAL_EV_DEAD, peer);
		hal_peer_free(peer);
		ct_close(s);
	}
	ct_serve(late);
	ct_finish(late);
}

static void ping(struct ct_if *ci, struct hal_peer *peer, uint64_t word)
{
	assert_int_equal(ct_send(ci, peer, CT_TYPE_PING, word), 0);
	assert_true(ct_recv(peer, CT_TYPE_PONG) == word);
}

/* A client gets HAL_EV_DEAD of its service, and connects to the next one. */
static void proc_service_is_followed(void **state)
{
	struct ct_if *ci, *fresh;
	struct hal_addr any, was;
	struct ct_child *c, *next;
	struct hal_peer *peer, *old;
	uint64_t since;

	CT_NOT_NET();
	ci = ct_open(-1);
	fresh = ct_open(-1);
	any = service_of(&ci->hif->addr, ci->hif->addr.board);
	c = ct_spawn();
	ct_serve(c);
	peer = ct_connect(ci, &any);
	for (int how = 0; how < ENDS; how++) {
		ping(ci, peer, (uint64_t)how);
		ct_wait_event(ci, HAL_EV_CONNECTED, peer);
		assert_true(ct_same_addr(&peer->addr, &c->addr));
		was = c->addr;
		next = ct_spawn();
		end_service(c, how);
		since = ct_now();
		ct_expect_death(ci, peer, since);
		ct_expect_refused(fresh, &was);
		ct_serve(next);
		assert_true(next->addr.nonce != was.nonce);
		ct_expect_refused(fresh, &was);
		old = peer;
		peer = ct_connect(ci, &any);
		assert_ptr_not_equal(peer, old);
		hal_peer_free(old);
		c = next;
	}
	ping(ci, peer, ENDS);
	ct_finish(c);
}

const struct CMUnitTest ct_service_tests[] = {
	CT_TEST(service_is_one_per_board),
	CT_TEST(service_beside_a_full_board),
	CT_TEST(service_is_reached),
	CT_TEST(service_has_an_identity),
};
const size_t ct_service_count = CT_COUNT(ct_service_tests);

const struct CMUnitTest ct_service_proc_tests[] = {
	CT_TEST(proc_service_is_one),
	CT_TEST(proc_service_is_followed),
};
const size_t ct_service_proc_count = CT_COUNT(ct_service_proc_tests);
