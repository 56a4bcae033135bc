/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_idle.c - idle peers on other hosts whose connections a process wants
 * to close while one of them does not answer, or while the process ends.
 * test_net_suspend.c has the other tests of idle peers.
 */
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/net/hal_net_send.h"
#include "lib/net_pair.h"
#include "util/unm_clock.h"

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

static struct net_side *g_meanwhile;	/* runs while another side waits for
					 * events of the kernel */

int epoll_wait(int fd, struct epoll_event *evs, int max, int ms)
{
	struct net_side *side = g_meanwhile;

	g_meanwhile = NULL;
	if (side != NULL)
		net_side_pump(side);
	g_meanwhile = side;
	return (int)syscall(SYS_epoll_pwait, fd, evs, max, ms, NULL,
			    sizeof(uint64_t));
}

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

static bool acknowledged(struct hal_peer *peer)
{
	return net_peer(peer)->s.acked == net_peer(peer)->s.sent;
}

/* Connect a new side to another one; all frames are acknowledged. */
static void open_idle(struct net_side *c, struct net_side *to)
{
	unsigned inbound = to->inbound, connected = c->connected;

	net_pair_dial(c, to);
	NET_PAIR_DO_UNTIL({ net_side_pump(c); net_side_pump(to); },
			  c->connected == connected + 1 &&
			  to->inbound == inbound + 1);
	net_flush(net_peer(c->peer), NET_F_ASK);
	NET_PAIR_DO_UNTIL({ net_side_pump(c); net_side_pump(to); },
			  acknowledged(c->peer));
}

static bool is_of_b(struct hal_peer *peer)
{
	return peer->addr.nonce == b->hif->addr.nonce;
}

/* A process that is stopped does not acknowledge a frame. It does not delay
 * others that are awaited. */
static void test_no_answer_delays_nobody(void **state)
{
	struct net_side c;
	uint64_t since;

	net_side_open(&c);
	open_idle(&c, a);
	hal_rx_back(c.peer, 1, 1);
	open_idle(&c, b);
	c.hif->peer_awaited = is_of_b;
	limit(3);
	since = unm_now_ns();
	NET_PAIR_DO_UNTIL(net_side_pump(&c), links() == 3);
	assert_true(unm_now_ns() - since >= 99000000);
	assert_int_equal(state_of(&c), NET_SUSPENDING);
	limit(UINT32_MAX);
	c.nif->net->dead_ns = 1;
	hal_if_close(c.hif);
}

/* One side has proposed to suspend the peer, and then closes its interface, or
 * frees the object of the peer. The peer reads both at once, and notices the
 * end. */
static void test_ends_behind_proposal(void **state)
{
	struct net_side c;

	for (int k = 0; k < 2; k++) {
		net_side_open(&c);
		open_idle(&c, b);
		limit(0);
		NET_PAIR_DO_UNTIL(net_side_pump(&c),
				  state_of(&c) == NET_SUSPENDING);
		limit(UINT32_MAX);
		if (k == 0)
			hal_if_close(c.hif);
		else
			hal_peer_free(c.peer);
		NET_PAIR_DO_UNTIL(net_side_pump(b), b->dead == k + 1u);
		assert_int_equal(b->dead_status, k == 0 ? -FI_ESHUTDOWN :
				 -FI_ECONNRESET);
	}
	hal_if_close(c.hif);
}

/* A side that waits for one peer before it closes its interface neither
 * proposes to suspend another, nor agrees to that. */
static void test_ends_instead(void **state)
{
	struct net_side c;

	net_side_open(&c);
	open_idle(&c, a);
	hal_rx_back(c.peer, 1, 1);	/* a does not acknowledge it */
	net_flush(net_peer(c.peer), 0);
	open_idle(&c, b);
	limit(0);
	c.nif->net->dead_ns = 300000000;
	g_meanwhile = b;
	hal_if_close(c.hif);
	g_meanwhile = NULL;
	limit(UINT32_MAX);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->dead == 1);
	assert_int_equal(b->dead_status, -FI_ESHUTDOWN);
}

static bool both_up(void)
{
	return state_of(a) == NET_UP && state_of(b) == NET_UP;
}

/* Propose to suspend b, and await it before it answers. */
static void await_while_suspending(void)
{
	limit(0);
	NET_PAIR_DO_UNTIL(net_side_pump(a), state_of(a) == NET_SUSPENDING);
	limit(UINT32_MAX);
	hal_peer_resume(a->peer);
}

/* A peer that is awaited since it was proposed to suspend it is connected again
 * as soon as it has agreed. Nothing is left to be done if it does not agree. */
static void test_awaited_while_suspending(void **state)
{
	struct net_peer *peer;

	open_idle(a, b);
	peer = net_peer(a->peer);
	await_while_suspending();
	NET_PAIR_UNTIL(peer->resumes == 1 && both_up());
	net_flush(peer, NET_F_ASK);
	NET_PAIR_UNTIL(acknowledged(a->peer) && both_up());
	await_while_suspending();
	hal_rx_back(b->peer, 1, 1);
	net_flush(net_peer(b->peer), NET_F_ASK);
	NET_PAIR_UNTIL(both_up());
	assert_false(peer->resume_asked);
	assert_int_equal(a->dead + b->dead, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_no_answer_delays_nobody),
		NET_PAIR_TEST(test_ends_behind_proposal),
		NET_PAIR_TEST(test_ends_instead),
		NET_PAIR_TEST(test_awaited_while_suspending),
	};

	return unit_run(tests);
}
