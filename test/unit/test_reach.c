/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reach.c - which peers on other hosts an endpoint connects to because
 * receives name them (progress/unm_reach.c). The HAL is one of the test, which
 * counts what it is asked for.
 */
#include "core/unm_av_table.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "hal/hal.h"
#include "lib/unit.h"
#include "progress/unm_peer_life.h"
#include "progress/unm_reach.h"

#define N	40			/* addresses */
#define SLOTS	16			/* connections that may be made */

static struct unm_ep g_ep;
static struct unm_av g_av;
static struct unm_av_entry g_entry[N];
static struct hal_host g_host[N], g_self;
static struct hal_if g_hif;
static struct hal_ops g_ops;
static struct hal_peer g_peer[N];
static unsigned g_dials[N], g_resumes[N], g_left;

static int dial(struct hal_if *hif, const struct hal_addr *to,
		const struct hal_host *host, struct hal_peer **out)
{
	struct hal_peer *peer = &g_peer[to->iface];

	assert_true(hif->ops->may_resume(hif));
	g_dials[to->iface]++;
	peer->hif = hif;
	peer->ops = &g_ops;
	peer->addr = *to;
	peer->host = host;
	*out = peer;
	return 0;
}

static bool resume(struct hal_peer *peer)
{
	if (g_left == 0)
		return false;
	g_left--;
	g_resumes[peer->addr.iface]++;
	return true;
}

static bool may_resume(struct hal_if *hif)
{
	return g_left != 0;
}

static int setup(void **state)
{
	memset(&g_ep, 0, sizeof(g_ep));
	memset(&g_av, 0, sizeof(g_av));
	memset(g_peer, 0, sizeof(g_peer));
	memset(g_dials, 0, sizeof(g_dials));
	memset(g_resumes, 0, sizeof(g_resumes));
	g_self.id[0] = 99;
	g_ops.connect_host = dial;
	g_ops.resume = resume;
	g_ops.may_resume = may_resume;
	g_hif.ops = &g_ops;
	g_hif.host = &g_self;
	for (uint32_t i = 0; i < N; i++) {
		g_entry[i] = (struct unm_av_entry){
			.addr = { .version = HAL_ADDR_VERSION, .iface = i,
				  .nonce = 1 + i },
			.first = i, .valid = true,
		};
		g_host[i] = (struct hal_host){ .port = 1, .id = { 1 } };
	}
	g_av.entry = g_entry;
	g_av.host = g_host;
	g_av.count = N;
	g_ep.av = &g_av;
	g_ep.hif = &g_hif;
	g_ep.stats = &g_ep.no_page;
	unm_list_init(&g_ep.peers);
	unm_list_init(&g_ep.unresolved);
	g_left = SLOTS;
	return 0;
}

static int teardown(void **state)
{
	while (!unm_list_empty(&g_ep.peers))
		unm_peer_delete(unm_container(g_ep.peers.next, struct unm_peer,
					      all));
	unm_named_clear(&g_ep.named);
	return 0;
}

static unsigned reached(const unsigned *times)
{
	unsigned n = 0;

	for (int i = 0; i < N; i++)
		n += times[i] != 0;
	return n;
}

static void name_all(void)
{
	for (uint32_t i = 0; i < N; i++)
		unm_named_more(&g_ep.named, i);
}

/* No more connections are begun than the HAL allows, and all peers have their
 * turn: to be connected for the first time, and again. */
static void test_bounded(void **state)
{
	name_all();
	for (unsigned pass = 1; pass <= 3; pass++) {
		g_left = SLOTS;
		unm_reach_all(&g_ep);
		assert_int_equal(reached(g_dials), pass < 3 ? pass * SLOTS : N);
	}
	memset(g_resumes, 0, sizeof(g_resumes));
	for (int pass = 0; pass < 3; pass++) {
		g_left = SLOTS;
		unm_reach_all(&g_ep);
		assert_int_equal(g_left, 0);
	}
	assert_int_equal(reached(g_resumes), N);
	for (int i = 0; i < N; i++)
		assert_int_equal(g_dials[i], 1);
}

/* The first operation with such a peer has to send HELLO. */
static void test_without_hello(void **state)
{
	unm_named_more(&g_ep.named, 5);
	unm_reach_all(&g_ep);
	assert_int_equal(g_dials[5], 1);
	assert_int_equal(reached(g_dials), 1);
	assert_int_not_equal(g_resumes[5], 0);
	assert_int_equal(g_ep.peer_slots, 0);
	assert_false(((struct unm_peer *)g_peer[5].user)->hello_sent);
}

/* Not connected to: a peer of this host, any holder of an interface, an index
 * that was removed, a peer that is dead, one that no receive names. */
static void test_others(void **state)
{
	struct unm_peer *dead;

	g_host[0] = g_self;
	g_host[0].port = 1;
	g_host[1] = (struct hal_host){ 0 };
	g_entry[2].addr.nonce = HAL_ADDR_ANY;
	g_entry[3].valid = false;
	assert_int_equal(unm_peer_find(&g_ep, 4, &dead), 0);
	dead->hp = NULL;
	for (uint32_t i = 0; i < 7; i++)
		unm_named_more(&g_ep.named, i);
	unm_named_less(&g_ep.named, 5);
	unm_reach_all(&g_ep);
	assert_int_equal(g_dials[4], 1);	/* by this test */
	assert_int_equal(g_dials[6], 1);
	assert_int_equal(reached(g_dials), 2);
	assert_int_equal(reached(g_resumes), 1);
}

/* A pass is made once a second. But a sleep without an end would wait for ever
 * for a source that is named after the pass, and to which nothing connects. */
static void test_before_sleep(void **state)
{
	const uint64_t second = 1000000000, now = 5 * second;

	g_host[0] = g_self;
	g_host[0].port = 1;
	unm_named_more(&g_ep.named, 0);
	unm_reach(&g_ep, now);
	unm_named_more(&g_ep.named, 6);
	unm_reach(&g_ep, now + second - 1);
	assert_int_equal(g_dials[6], 0);
	unm_reach_before_sleep(&g_ep, now + second - 1);
	assert_int_equal(g_dials[6], 1);
	unm_named_more(&g_ep.named, 6);
	g_resumes[6] = 0;
	unm_reach_before_sleep(&g_ep, now + second);
	assert_int_equal(g_resumes[6], 0);
	unm_reach(&g_ep, now + 2 * second);
	assert_int_not_equal(g_resumes[6], 0);
}

/* A receive that names source 5, and a sleep. How many passes were made for
 * them? */
static unsigned round_of_5(uint64_t now)
{
	g_left = SLOTS;
	g_resumes[5] = 0;
	unm_named_more(&g_ep.named, 5);
	unm_reach_before_sleep(&g_ep, now);
	unm_named_less(&g_ep.named, 5);
	return g_resumes[5];
}

/* A loop of receives of one source and of sleeps makes a pass once a second,
 * unless the connection may have been closed meanwhile, or the number of the
 * source may be another one's. */
static void test_rounds(void **state)
{
	const uint64_t second = 1000000000;
	uint64_t now = 5 * second;

	assert_int_not_equal(round_of_5(now), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(round_of_5(++now), 0);
	assert_int_not_equal(round_of_5(now + second), 0);
	now += second;
	assert_int_equal(round_of_5(++now), 0);
	assert_false(unm_peer_waits(&g_peer[5]));
	assert_int_not_equal(round_of_5(++now), 0);
	assert_int_equal(round_of_5(++now), 0);
	unm_peer_removed(&g_ep, 5);
	assert_int_not_equal(round_of_5(++now), 0);
	assert_int_equal(round_of_5(++now), 0);
}

/* A source that had no turn in a pass is examined before the next sleep that
 * follows a receive. */
static void test_rounds_without_turn(void **state)
{
	uint64_t now = 5000000000;

	unm_named_more(&g_ep.named, 7);
	g_left = 0;
	unm_reach_before_sleep(&g_ep, now);
	assert_int_equal(g_dials[7], 0);
	for (int i = 0; i < 2; i++) {	/* not connected, suspended */
		unm_named_less(&g_ep.named, 7);
		unm_named_more(&g_ep.named, 7);
		g_left = SLOTS;
		g_resumes[7] = 0;
		unm_reach_before_sleep(&g_ep, ++now);
		assert_int_equal(g_dials[7], 1);
		assert_int_not_equal(g_resumes[7], 0);
		g_left = 0;
		unm_reach_all(&g_ep);
	}
}

/* Without memory for a source, other sources go on being counted. */
static void test_no_memory(void **state)
{
	struct unm_named *named = &g_ep.named;

	unm_named_more(named, 5);
	unm_named_more(named, UINT32_MAX - 1);	/* too many entries */
	assert_true(unm_named_find(named, UINT32_MAX - 1));
	unm_named_more(named, 7);
	unm_named_less(named, 5);
	unm_named_less(named, UINT32_MAX - 1);
	assert_false(unm_named_find(named, 5));
	assert_true(unm_named_find(named, 7));
	assert_true(unm_named_find(named, UINT32_MAX - 1));
	assert_int_equal(named->sources, 1);
	unm_reach_all(&g_ep);
	assert_int_equal(g_dials[7], 1);
	assert_int_equal(reached(g_dials), 1);
	unm_named_less(named, 7);
	assert_int_equal(named->sources, 0);
}

/* Sources without an entry, of which any may be named, are connected to, except
 * peers that have ended. */
static void test_no_memory_at_all(void **state)
{
	uint64_t now = 5000000000;
	struct unm_peer *dead;

	unm_named_more(&g_ep.named, UINT32_MAX - 1);
	unm_named_more(&g_ep.named, 7);		/* no entry either */
	assert_int_equal(g_ep.named.slots, 0);
	assert_int_equal(unm_peer_find(&g_ep, 4, &dead), 0);
	dead->hp = NULL;
	for (unsigned pass = 1; pass <= 3; pass++) {
		g_left = SLOTS;
		unm_reach(&g_ep, now);
		assert_int_equal(reached(g_dials), pass < 3 ?
				 pass * SLOTS + 1 : N);
		now += 1000000000;
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(g_dials[i], 1);
	/* before a sleep, too, after a further receive */
	unm_named_more(&g_ep.named, 8);
	g_left = SLOTS;
	g_resumes[8] = 0;
	unm_list_remove(&g_ep.peers);		/* it is the first one */
	unm_list_append(&((struct unm_peer *)g_peer[8].user)->all, &g_ep.peers);
	unm_reach_before_sleep(&g_ep, now - 1);
	assert_int_not_equal(g_resumes[8], 0);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

UNIT_MAIN(
	TEST(test_bounded),
	TEST(test_without_hello),
	TEST(test_others),
	TEST(test_before_sleep),
	TEST(test_rounds),
	TEST(test_rounds_without_turn),
	TEST(test_no_memory),
	TEST(test_no_memory_at_all),
)
