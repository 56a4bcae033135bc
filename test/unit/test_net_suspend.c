/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_suspend.c - peers on other hosts whose connections are closed while
 * they are idle: callers of the HAL notice nothing, and no packet is lost,
 * doubled or out of order.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_recv.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "hal/net/hal_net_suspend.h"
#include "lib/net_pair.h"
#include "util/unm_clock.h"

#define SIDES	7

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

static void limit(uint32_t links)
{
	a->nif->net->links_max = links;
}

static uint32_t links(void)
{
	return atomic_load(&a->nif->net->nlinks);
}

static enum net_peer_state state_of(const struct net_side *s)
{
	return net_peer(s->peer)->state;
}

static bool both(enum net_peer_state state)
{
	return state_of(a) == state && state_of(b) == state;
}

/* Connect both ways, and let the limit suspend both peers. */
static void suspend(void)
{
	if (a->peer == NULL)
		net_pair_talk();
	limit(0);
	NET_PAIR_UNTIL(both(NET_SUSPENDED));
	limit(UINT32_MAX);
	assert_true(unm_list_empty(&a->nif->conns));
	assert_true(unm_list_empty(&b->nif->conns));
	assert_null(net_peer(a->peer)->out);
	assert_int_equal(links(), 0);
	assert_int_equal(a->dead + b->dead, 0);
}

static void send_word(struct net_side *from, uint64_t word)
{
	assert_int_equal(hal_pkt_send(from->peer, hal_head(1, 0), &word, 1,
				      NULL, 0), 0);
}

/* Take the next packet of a side, if one has come. */
static bool take_word(struct net_side *to, uint64_t *word)
{
	const struct hal_cell *cell;
	uint64_t head;

	cell = hal_rx_peek(to->peer, &head);
	if (cell == NULL)
		return false;
	*word = hal_cell_word(cell, 0);
	hal_rx_release(to->peer);
	hal_rx_flush(to->peer);
	return true;
}

static void expect_word(struct net_side *to, uint64_t want)
{
	uint64_t word = ~want;

	NET_PAIR_UNTIL(take_word(to, &word));
	assert_true(word == want);
}

/* ---- Suspended and connected again -------------------------------------- */

static void test_again(void **state)
{
	int fds;

	for (uint64_t i = 0; i < 40; i++) {
		suspend();
		fds = net_pair_fds();
		switch (i % 3) {
		case 0:
			send_word(a, i);
			expect_word(b, i);
			break;
		case 1:
			send_word(b, i);
			expect_word(a, i);
			break;
		default:		/* both dial */
			send_word(a, i);
			send_word(b, ~i);
			expect_word(b, i);
			expect_word(a, ~i);
		}
		assert_int_equal(net_pair_fds(), fds + 2);
	}
	assert_int_equal(a->connected, 1);
	assert_int_equal(b->connected, 1);
	assert_int_equal(a->inbound + b->inbound, 2);
}

/* A side that knows its peer only by the peer's own connection. */
static void test_without_address(void **state)
{
	struct hal_peer *peer = NULL;

	net_pair_dial(a, b);
	NET_PAIR_UNTIL(b->inbound == 1);
	suspend();
	assert_int_equal(hal_connect(b->hif, &a->hif->addr, &peer), 0);
	assert_ptr_equal(peer, b->peer);
	NET_PAIR_UNTIL(a->inbound == 1);
	send_word(b, 5);
	expect_word(a, 5);
	assert_int_equal(b->connected, 1);
}

/* A key and an import outlive the connection. */
static void test_transfer(void **state)
{
	struct hal_dma_comp comp;
	struct hal_rmem *rmem;
	struct hal_mem *mem;
	struct hal_dma d;
	struct hal_key key;
	uint8_t *addr;

	net_pair_talk();
	assert_int_equal(hal_mem_alloc(net_pair.hal, -1, 65536, &mem,
				       (void **)&addr), 0);
	assert_int_equal(hal_mem_key(net_pair.hal, mem, &key), 0);
	NET_PAIR_UNTIL(hal_mem_import(a->peer, &key, &rmem) == 0);
	memset(addr, 7, 65536);
	for (int i = 0; i < 3; i++) {
		suspend();
		d = (struct hal_dma){
			.op = HAL_DMA_GET, .peer = a->peer, .rmem = rmem,
			.local = addr, .raddr = 32768, .len = 32768,
		};
		addr[40000] = (uint8_t)i;
		limit(0);	/* transfers keep their connection */
		assert_int_equal(hal_dma_post(a->hif, &d, 1), 0);
		NET_PAIR_UNTIL(hal_dma_poll(a->hif, &comp, 1) == 1);
		assert_int_equal(comp.status, 0);
		assert_int_equal(addr[40000 - 32768], i);
	}
	hal_mem_release(a->peer, rmem);
	hal_mem_free(net_pair.hal, mem);
}

static bool acknowledged(struct hal_peer *peer)
{
	return net_peer(peer)->s.acked == net_peer(peer)->s.sent;
}

/* a proposes to suspend b, which does not answer yet. */
static void propose(void)
{
	net_flush(net_peer(a->peer), NET_F_ASK);
	NET_PAIR_UNTIL(acknowledged(a->peer));
	limit(0);
	NET_PAIR_DO_UNTIL(net_side_pump(a), state_of(a) == NET_SUSPENDING);
	limit(UINT32_MAX);
}

/* A word that the peer has when it is suspended is confirmed afterwards. */
static void test_back_sync(void **state)
{
	for (uint64_t i = 1; i < 5; i++) {
		suspend();
		assert_int_equal(hal_rx_back_sync(a->peer, 0, i), -FI_EAGAIN);
		NET_PAIR_UNTIL(hal_tx_back_sync(b->peer, 0) == i);
		suspend();
		assert_int_equal(hal_rx_back_sync(a->peer, 0, i), 0);
	}
}

/* ---- Not idle ------------------------------------------------------------ */

/* A packet that the receiver has not released: its sender may wait for that,
 * and has to notice the end of the receiver. */
static void test_unreleased(void **state)
{
	uint64_t word = 0;

	net_pair_talk();
	send_word(a, 3);
	limit(0);
	for (int i = 0; i < 2000; i++) {
		net_pair_pump();
		assert_int_not_equal(state_of(a), NET_SUSPENDED);
		assert_int_not_equal(state_of(b), NET_SUSPENDED);
	}
	NET_PAIR_UNTIL(take_word(b, &word));
	NET_PAIR_UNTIL(both(NET_SUSPENDED));
}

static bool waits(struct hal_peer *peer)
{
	return peer == a->peer;
}

/* The user of an interface waits for a peer, and that of the other one does not
 * know. */
static void test_user_waits(void **state)
{
	bool (*nothing)(struct hal_peer *) = a->hif->peer_waits;

	net_pair_talk();
	for (int k = 0; k < 2; k++) {
		a->hif->peer_waits = k == 0 ? waits : NULL;
		limit(0);
		for (int i = 0; i < 2000; i++) {
			net_pair_pump();
			assert_true(state_of(b) == NET_UP ||
				    state_of(b) == NET_SUSPENDING);
			assert_int_equal(state_of(a), NET_UP);
		}
	}
	a->hif->peer_waits = nothing;
	NET_PAIR_UNTIL(both(NET_SUSPENDED));
}

/* The user of an interface awaits a packet of one of two peers: the other peer
 * is suspended first, although it was used later. */
static void test_user_awaits(void **state)
{
	struct hal_peer *to_c;
	struct net_side c;

	net_side_open(&c);
	net_pair_dial(a, &c);
	to_c = a->peer;
	net_pair_dial(a, b);
	a->hif->peer_awaited = waits;
	NET_PAIR_DO_UNTIL({ net_pair_pump(); net_side_pump(&c); },
			  b->inbound == 1 && c.inbound == 1);
	hal_rx_back(to_c, 1, 1);
	net_flush(net_peer(a->peer), NET_F_ASK);
	net_flush(net_peer(to_c), NET_F_ASK);
	NET_PAIR_DO_UNTIL({ net_pair_pump(); net_side_pump(&c); },
			  acknowledged(a->peer) && acknowledged(to_c));
	assert_int_equal(links(), 4);
	limit(3);
	NET_PAIR_DO_UNTIL(net_side_pump(a), links() == 3);
	assert_int_equal(state_of(a), NET_UP);
	limit(2);
	NET_PAIR_DO_UNTIL(net_side_pump(a), links() == 2);
	assert_int_equal(state_of(a), NET_SUSPENDING);
	limit(UINT32_MAX);
	a->nif->net->dead_ns = 1;
	hal_if_close(c.hif);
}

/* A peer that refuses is asked more and more seldom, until data comes. */
static void test_refused_often(void **state)
{
	struct net_peer *peer;

	net_pair_talk();
	peer = net_peer(a->peer);
	b->hif->peer_waits = NULL;
	limit(0);
	NET_PAIR_UNTIL(peer->keeps == 4 && peer->state == NET_UP);
	limit(UINT32_MAX);
	send_word(b, 1);
	expect_word(a, 1);
	assert_int_equal(peer->keeps, 0);
}

/* The peer does not answer the proposal: what is sent meanwhile waits for it,
 * and comes once. */
static void test_stopped(void **state)
{
	net_pair_talk();
	propose();
	for (uint64_t i = 0; i < 20; i++) {
		send_word(a, i);
		net_side_pump(a);
	}
	assert_int_equal(net_peer(a->peer)->nqueue, 20);
	for (uint64_t i = 0; i < 20; i++)
		expect_word(b, i);
	assert_int_equal(a->dead + b->dead, 0);
}

/* The peer has sent when it reads the proposal, and refuses. */
static void test_refused(void **state)
{
	net_pair_talk();
	propose();
	send_word(b, 9);
	send_word(a, 10);
	NET_PAIR_UNTIL(state_of(a) == NET_UP);
	assert_int_equal(state_of(b), NET_UP);
	assert_int_equal(links(), 2);
	expect_word(a, 9);
	expect_word(b, 10);
}

/* A frame is under way when the peer proposes, which has not seen it. */
static void test_frame_under_way(void **state)
{
	net_pair_talk();
	for (uint64_t i = 1; i < 50; i += 2) {
		hal_rx_back(b->peer, 1, i);	/* no slot shows it */
		NET_PAIR_UNTIL(hal_tx_back(a->peer, 1) == i);
		NET_PAIR_UNTIL(both(NET_UP));
		propose();
		hal_rx_back(b->peer, 1, i + 1);
		assert_true(hal_tx_back(a->peer, 1) == i);
		net_conns_input(b->nif, 0);
		assert_int_equal(state_of(b), NET_UP);
		NET_PAIR_UNTIL(hal_tx_back(a->peer, 1) == i + 1);
		limit(0);
		NET_PAIR_UNTIL(both(NET_SUSPENDED));
		limit(UINT32_MAX);
		assert_int_equal(a->dead + b->dead, 0);
	}
}

/* A frame is under way when both sides want to propose at once: its sender asks
 * for an acknowledgement first. */
static void test_crossed_under_way(void **state)
{
	for (uint64_t i = 1; i < 20; i++) {
		struct net_side *from = i % 2 ? b : a, *to = i % 2 ? a : b;

		if (a->peer == NULL)
			net_pair_talk();
		send_word(from, i);
		expect_word(to, i);
		net_flush(net_peer(from->peer), NET_F_ASK);
		NET_PAIR_UNTIL(acknowledged(from->peer) && both(NET_UP));
		hal_rx_back(from->peer, 1, i);	/* no slot shows it */
		limit(0);
		net_suspend_tick(to->nif, unm_now_ns());
		net_suspend_tick(from->nif, unm_now_ns());
		assert_int_equal(state_of(from), NET_UP);
		NET_PAIR_UNTIL(both(NET_SUSPENDED));
		limit(UINT32_MAX);
		assert_true(hal_tx_back(to->peer, 1) == i);
		assert_int_equal(a->dead + b->dead, 0);
	}
}

/* The same before both sleep. */
static void test_crossed_arm(void **state)
{
	net_pair_talk();
	NET_PAIR_UNTIL(acknowledged(a->peer));
	hal_rx_back(b->peer, 1, 77);
	limit(0);
	for (int i = 0; i < 2; i++) {
		struct net_side *side = i ? b : a;

		if (hal_if_arm(side->hif) == 0)
			hal_if_disarm(side->hif);
	}
	NET_PAIR_UNTIL(both(NET_SUSPENDED));
	assert_true(hal_tx_back(a->peer, 1) == 77);
	assert_int_equal(a->dead + b->dead, 0);
}

/* ---- Ends ---------------------------------------------------------------- */

/* The process of a suspended peer ends: the next operation notices. */
static void test_ended(void **state)
{
	struct net_side c;

	net_side_open(&c);
	a->nif->net->dial_ns = 50000000;
	net_pair_dial(a, &c);
	NET_PAIR_DO_UNTIL({ net_side_pump(a); net_side_pump(&c); },
			  c.inbound == 1);
	limit(0);
	NET_PAIR_DO_UNTIL({ net_side_pump(a); net_side_pump(&c); },
			  state_of(a) == NET_SUSPENDED &&
			  state_of(&c) == NET_SUSPENDED);
	limit(UINT32_MAX);
	a->nif->net->dead_ns = 1;
	hal_if_close(c.hif);
	a->nif->net->dead_ns = 3000000000;
	for (int i = 0; i < 100; i++)
		net_side_pump(a);
	assert_int_equal(a->dead, 0);
	send_word(a, 1);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
}

/* The same without an operation. */
static void test_resume(void **state)
{
	const uint64_t ms = 1000000;
	struct net_peer *peer;

	suspend();
	peer = net_peer(a->peer);
	for (int i = 1; i < 10; i++) {
		int pause = i < 7 ? i : 7;	/* 1 s, up to 64 s */
		uint64_t now;

		hal_peer_resume(a->peer);
		NET_PAIR_UNTIL(both(NET_UP));
		now = unm_now_ns();
		suspend();
		assert_int_equal(peer->resumes, pause);
		assert_true(peer->resume_at >= now + (500 * ms << pause));
		assert_true(peer->resume_at <=
			    unm_now_ns() + (500 * ms << pause));
		/* not again at once: b needs its links for others. However
		 * slow the machine is, the time has not come. */
		peer->resume_at = UINT64_MAX;
		hal_peer_resume(a->peer);
		assert_int_equal(peer->state, NET_SUSPENDED);
		peer->resume_at = 0;
	}
	send_word(b, 3);
	expect_word(a, 3);
	assert_int_equal(peer->resumes, 0);
	suspend();
	hal_peer_free(b->peer);
	b->peer = NULL;
	hal_peer_resume(a->peer);
	NET_PAIR_UNTIL(a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
}

/* The peer has freed its object, which the next operation notices, too. */
static void test_freed(void **state)
{
	suspend();
	hal_peer_free(b->peer);
	b->peer = NULL;
	send_word(a, 1);
	NET_PAIR_UNTIL(a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
	assert_int_equal(b->dead + b->inbound, 1);
}

/* ... or its next connection, which is that of another object. */
static void test_begun_anew(void **state)
{
	suspend();
	hal_peer_free(b->peer);
	net_pair_dial(b, a);
	NET_PAIR_UNTIL(a->dead == 1 && a->inbound == 2);
	assert_int_equal(a->dead_status, -FI_ECONNRESET);
	send_word(b, 4);
	expect_word(a, 4);
	assert_int_equal(b->dead, 0);
}

static int g_closed, g_reset;		/* lines about ends without BYE */

static void take_log(int level, const char *line)
{
	const char *how = strstr(line, " counts as ended: its control "
				 "connection ");

	(void)level;
	if (how == NULL)
		return;
	g_closed += strstr(how, " was closed") != NULL;
	g_reset += strstr(how, " failed: Connection reset") != NULL;
}

/* The connection ends before the proposal is answered. The log has a line. */
static void test_killed_while_suspending(void **state)
{
	net_pair_talk();
	propose();
	g_closed = g_reset = 0;
	net_conn_close(net_peer(b->peer)->conn);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNRESET);
	assert_int_equal(g_closed, 1);
	assert_int_equal(g_reset, 0);
}

/* The connection is reset, which the line says. */
static void test_reset(void **state)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct net_conn *conn;

	net_pair_talk();
	conn = net_peer(b->peer)->conn;
	g_closed = g_reset = 0;
	assert_int_equal(connect(conn->src.fd, &none, sizeof(none)), 0);
	net_conn_close(conn);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNRESET);
	assert_int_equal(g_closed, 0);
	assert_int_equal(g_reset, 1);
}

/* A peer that was never met does not count as ended. */
static void test_never_met(void **state)
{
	struct net_side c;

	net_side_open(&c);
	net_pair_dial(a, &c);
	g_closed = g_reset = 0;
	net_peer_lost(net_peer(a->peer), "control connection", 0);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNRESET);
	assert_int_equal(g_closed + g_reset, 0);
	a->nif->net->dead_ns = 1;
	hal_if_close(c.hif);
}

/* The end of the engine's link is that of the peer, unless it has agreed. */
static void test_link_fails(void **state)
{
	net_pair_talk();
	propose();
	net_upcalls.failed(net_peer(a->peer));
	NET_PAIR_UNTIL(both(NET_SUSPENDED));
	assert_int_equal(a->dead + b->dead, 0);
	limit(UINT32_MAX);
	send_word(a, 1);
	expect_word(b, 1);
	NET_PAIR_UNTIL(hal_tx_done(a->peer) == hal_tx_sent(a->peer));
	propose();
	send_word(b, 1);
	net_upcalls.failed(net_peer(a->peer));
	NET_PAIR_UNTIL(a->dead == 1);
}

/* A process that knows the address and its secret, but not the session. */
static void test_other_session(void **state)
{
	uint8_t answer[sizeof(struct net_answer)], name[NET_NAME];
	struct net_rogue r;
	size_t used;

	suspend();
	for (int i = 0; i < 2; i++) {
		net_rogue_dial(&r, b);
		net_host_name(&b->hif->addr, &b->nif->host, name);
		if (i == 0)
			net_host_name(&a->hif->addr, &a->nif->host, r.name);
		net_rogue_hello(&r, b);
		net_auth_dial(&r.auth, r.name, name, NET_KIND_SESSION,
			      b->nif->host.secret);
		net_rogue_flush(&r);
		assert_true(net_rogue_recv(&r, b, answer, sizeof(answer)));
		assert_int_equal(net_auth_input(&r.auth, answer,
						sizeof(answer), &used),
				 i == 0 ? -FI_EACCES : -FI_ECONNREFUSED);
		net_rogue_close(&r);
	}
	send_word(a, 6);
	expect_word(b, 6);
}

/* ---- Storms -------------------------------------------------------------- */

/* Two sides send, receive and compute in any order, and the limit comes and
 * goes. */
static void test_storm(void **state)
{
	uint64_t sent[2] = { 0 }, got[2] = { 0 }, word, suspended = 0;
	struct net_side *side[2] = { a, b };

	net_pair_talk();
	for (int i = 0; i < 60000; i++) {
		uint32_t act = unit_below(&net_pair.rng, 100), s = act & 1;

		if (act < 90)
			net_side_pump(side[s]);
		else if (act < 94 && sent[s] - got[!s] < 16)
			send_word(side[s], sent[s]++);
		else if (act == 94)
			limit(unit_below(&net_pair.rng, 3));
		if (act >= 50 && take_word(side[s], &word))
			assert_true(word == got[s]++);
		assert_int_equal(a->dead + b->dead, 0);
		suspended += both(NET_SUSPENDED);
	}
	NET_PAIR_UNTIL((!take_word(a, &word) || word == got[0]++) &&
		       (!take_word(b, &word) || word == got[1]++) &&
		       got[0] == sent[1] && got[1] == sent[0]);
	assert_true(suspended != 0);
}

/* All interfaces of a crowd send to each other in any order, with links for two
 * pairs of them. */
struct crowd {
	struct net_side side[SIDES];
	struct hal_peer *to[SIDES][SIDES];
	uint64_t sent[SIDES][SIDES], got[SIDES][SIDES], left;
};

static void crowd_open(struct crowd *c)
{
	c->side[0] = *a;
	c->side[1] = *b;
	for (int i = 2; i < SIDES; i++)
		net_side_open(&c->side[i]);
	for (int i = 0; i < SIDES; i++)
		for (int k = 0; k < SIDES; k++)
			if (i != k)
				assert_int_equal(hal_connect_host(
					c->side[i].hif, &c->side[k].hif->addr,
					c->side[k].hif->host, &c->to[i][k]), 0);
}

static void crowd_receive(struct crowd *c, int i)
{
	struct hal_if *hif = c->side[i].hif;
	const struct hal_cell *cell;
	uint64_t head, word, from;

	for (uint32_t n = 0; n < hif->ninbound; n++) {
		struct hal_peer *peer = hif->inbound[n];

		while ((cell = hal_rx_peek(peer, &head)) != NULL) {
			word = hal_cell_word(cell, 0);
			from = word >> 32;
			assert_true(from < SIDES);
			assert_ptr_equal(peer, c->to[i][from]);
			assert_true((uint32_t)word == c->got[i][from]++);
			hal_rx_release(peer);
			c->left--;
		}
		hal_rx_flush(peer);
	}
}

static void test_crowd(void **state)
{
	static struct crowd c;
	uint32_t i, k, most = 0;
	uint64_t word;

	memset(&c, 0, sizeof(c));
	limit(4);
	crowd_open(&c);
	for (int n = 0; n < 3000; n++) {
		i = unit_below(&net_pair.rng, SIDES);
		k = (i + 1 + unit_below(&net_pair.rng, SIDES - 1)) % SIDES;
		word = (uint64_t)i << 32 | c.sent[i][k];
		if (hal_pkt_send(c.to[i][k], hal_head(1, 0), &word, 1, NULL,
				 0) == 0) {
			c.sent[i][k]++;
			c.left++;
		}
		for (i = 0; i < SIDES; i++) {
			net_side_pump(&c.side[i]);
			crowd_receive(&c, (int)i);
			assert_int_equal(c.side[i].dead, 0);
		}
		if (n > 500 && links() > most)
			most = links();
	}
	NET_PAIR_DO_UNTIL(for (i = 0; i < SIDES; i++) {
		net_side_pump(&c.side[i]);
		crowd_receive(&c, (int)i);
	}, c.left == 0 && links() <= 4);
	assert_in_range(most, 4, 2 * SIDES * (SIDES - 1) / 2);
	a->nif->net->dead_ns = 1;
	for (i = 2; i < SIDES; i++)
		hal_if_close(c.side[i].hif);
}

/* Of two idle peers, the one that was used longer ago is suspended. */
static void test_least_recent(void **state)
{
	struct hal_peer *to_b, *to_c;
	struct net_side c;

	net_side_open(&c);
	net_pair_dial(a, b);
	to_b = a->peer;
	net_pair_dial(a, &c);
	to_c = a->peer;
	NET_PAIR_DO_UNTIL({ net_pair_pump(); net_side_pump(&c); },
			  b->inbound == 1 && c.inbound == 1);
	for (int i = 0; i < 4; i++) {
		struct hal_peer *last = i % 2 ? to_c : to_b;

		NET_PAIR_DO_UNTIL({ net_pair_pump(); net_side_pump(&c); },
				  net_peer(to_b)->state == NET_UP &&
				  net_peer(to_c)->state == NET_UP &&
				  links() == 4);
		hal_rx_back(last, 1, (uint64_t)i + 1);
		net_flush(net_peer(to_b), NET_F_ASK);
		net_flush(net_peer(to_c), NET_F_ASK);
		NET_PAIR_DO_UNTIL({ net_pair_pump(); net_side_pump(&c); },
				  acknowledged(to_b) && acknowledged(to_c));
		limit(3);
		NET_PAIR_DO_UNTIL(net_side_pump(a), links() == 3);
		limit(UINT32_MAX);
		assert_int_equal(net_peer(last)->state, NET_UP);
		hal_rx_back(i % 2 ? to_b : to_c, 1, (uint64_t)i + 1);
	}
	a->nif->net->dead_ns = 1;
	hal_if_close(c.hif);
}

/* ---- Limits -------------------------------------------------------------- */

static void test_limits(void **state)
{
	uint32_t fds = net_suspend_limit(0);

	assert_int_equal(net_suspend_limit(17), 17);
	assert_true(fds >= 8);
}

/* ---- Hosts that do not answer -------------------------------------------- */

/* The kernel asks the host of an idle connection each second. It ends the
 * connection by itself when the host has been silent for longer than
 * FI_UNIMEM_NET_DEAD_MS (test_net_silence.c), not when an answer is missing. */
static void test_one_answer_may_be_missing(void **state)
{
	int ms = 0, dead_ms = (int)(a->nif->net->dead_ns / 1000000), idle = 0;
	socklen_t len = sizeof(int);
	int fd;

	net_pair_talk();
	fd = unm_container(a->nif->conns.next, struct net_conn, link)->src.fd;
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms,
				    &len), 0);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle,
				    &len), 0);
	assert_int_equal(idle, 1);
	assert_in_range(dead_ms, 2000, 60000);	/* of several questions */
	assert_in_range(ms, dead_ms + 1, dead_ms + 999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_again),
		NET_PAIR_TEST(test_without_address),
		NET_PAIR_TEST(test_transfer),
		NET_PAIR_TEST(test_back_sync),
		NET_PAIR_TEST(test_unreleased),
		NET_PAIR_TEST(test_user_waits),
		NET_PAIR_TEST(test_user_awaits),
		NET_PAIR_TEST(test_stopped),
		NET_PAIR_TEST(test_refused),
		NET_PAIR_TEST(test_refused_often),
		NET_PAIR_TEST(test_frame_under_way),
		NET_PAIR_TEST(test_crossed_under_way),
		NET_PAIR_TEST(test_crossed_arm),
		NET_PAIR_TEST(test_ended),
		NET_PAIR_TEST(test_resume),
		NET_PAIR_TEST(test_freed),
		NET_PAIR_TEST(test_begun_anew),
		NET_PAIR_TEST(test_killed_while_suspending),
		NET_PAIR_TEST(test_reset),
		NET_PAIR_TEST(test_never_met),
		NET_PAIR_TEST(test_link_fails),
		NET_PAIR_TEST(test_other_session),
		NET_PAIR_TEST(test_storm),
		NET_PAIR_TEST(test_crowd),
		NET_PAIR_TEST(test_least_recent),
		NET_PAIR_TEST(test_limits),
		NET_PAIR_TEST(test_one_answer_may_be_missing),
	};

	hal_log_set(take_log);
	return unit_run(tests);
}
