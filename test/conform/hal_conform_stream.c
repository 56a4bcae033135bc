/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_stream.c - conformance tests with long packet streams and random
 * stalls: no packet is lost, doubled, changed, or reordered for a source
 */
#include "conform/hal_conform.h"

#define MAX_NODES	4
#define BURST		24

/* An interface with a stream to and a stream from each other node. */
struct node {
	struct ct_if *ci;
	unsigned npeers;
	struct hal_peer *peer[MAX_NODES];
	uint64_t base[MAX_NODES];	/* hal_tx_sent() at the start */
	struct ct_stream out[MAX_NODES], in[MAX_NODES];
	uint64_t total, rng;
	bool failed;
	char error[200];
};

static atomic_bool stop;
static atomic_uint unfinished;		/* nodes with a thread */

static void node_fail(struct node *n, const char *why)
{
	n->failed = true;
	snprintf(n->error, sizeof(n->error), "%s", why);
	atomic_store(&stop, true);
}

static void stall(struct node *n)
{
	uint64_t r = ct_random(&n->rng);

	if (r % 512 == 0)
		sched_yield();
	else if (r % 30011 == 0)
		ct_nap((r >> 32) % 500);
}

/* Send and receive a burst with one node. Returns whether there was
 * progress. */
static bool lane_round(struct node *n, unsigned i)
{
	uint32_t payload = ct_caps->pkt_payload;
	unsigned burst = 1 + ct_random(&n->rng) % BURST;
	bool moved = false;
	int ret;

	for (unsigned k = 0; k < burst && n->out[i].next < n->total; k++) {
		ret = ct_stream_send(n->peer[i], &n->out[i], payload);
		if (ret != 0 && ret != -FI_EAGAIN)
			node_fail(n, "hal_pkt_send failed");
		if (ret != 0)
			break;
		moved = true;
	}
	stall(n);
	burst = 1 + ct_random(&n->rng) % BURST;
	for (unsigned k = 0; k < burst; k++) {
		ret = ct_stream_take(n->peer[i], &n->in[i], payload);
		if (ret < 0)
			node_fail(n, n->in[i].error);
		if (ret <= 0)
			break;
		moved = true;
		if (n->in[i].next > n->total)
			node_fail(n, "more packets than were sent");
	}
	hal_rx_flush(n->peer[i]);
	return moved;
}

static bool node_done(struct node *n)
{
	for (unsigned i = 0; i < n->npeers; i++) {
		if (n->out[i].next < n->total || n->in[i].next < n->total ||
		    hal_tx_done(n->peer[i]) != n->base[i] + n->total)
			return false;
	}
	return true;
}

static bool node_round(struct node *n)
{
	bool moved = false;

	for (unsigned i = 0; i < n->npeers && !n->failed; i++)
		moved |= lane_round(n, i);
	if (!moved || ct_random(&n->rng) % 256 == 0)
		ct_step(n->ci);
	return moved;
}

/* A node that is done steps on until all are: the release of its last packets
 * may be sent by a later step only (docs/hal.md, 1.3). */
static void wait_for_all(struct node *n)
{
	uint64_t end = ct_deadline();

	atomic_fetch_sub(&unfinished, 1);
	while (atomic_load(&unfinished) != 0 && !atomic_load(&stop) &&
	       ct_now() < end) {
		ct_step(n->ci);
		sched_yield();
	}
}

static void *node_thread(void *arg)
{
	struct node *n = arg;
	uint64_t end = ct_deadline();

	while (!node_done(n) && !n->failed) {
		if (atomic_load(&stop))
			break;
		if (node_round(n)) {
			end = ct_deadline();
			continue;
		}
		sched_yield();
		if (ct_now() > end)
			node_fail(n, "no progress: a packet or the news of "
				  "its release was lost");
	}
	wait_for_all(n);
	return NULL;
}

const char *ct_stream_both(struct ct_if *ci, struct hal_peer *peer,
			   uint64_t total, uint64_t out, uint64_t in)
{
	static struct node n;		/* the result points to its error
					 * text */

	memset(&n, 0, sizeof(n));
	atomic_store(&stop, false);
	atomic_store(&unfinished, 1);
	n.ci = ci;
	n.npeers = 1;
	n.peer[0] = peer;
	n.base[0] = hal_tx_sent(peer);
	n.out[0].seed = out;
	n.in[0].seed = in;
	n.total = total;
	n.rng = out;
	node_thread(&n);
	return n.failed ? n.error : NULL;
}

/* Connect each node to each other node. */
static void mesh(struct node *nodes, unsigned count, uint64_t total)
{
	memset(nodes, 0, count * sizeof(*nodes));
	atomic_store(&stop, false);
	for (unsigned i = 0; i < count; i++) {
		nodes[i].ci = ct_open(i % ct_caps->boards);
		nodes[i].total = total;
		nodes[i].rng = 1000 + i;
	}
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < i; k++) {
			struct ct_pair p = { nodes[i].ci, nodes[k].ci, 0, 0 };
			unsigned at = nodes[i].npeers++;
			unsigned with = nodes[k].npeers++;

			ct_join(&p);
			nodes[i].peer[at] = p.ab;
			nodes[k].peer[with] = p.ba;
			nodes[i].out[at].seed = i * 64 + k;
			nodes[k].in[with].seed = i * 64 + k;
			nodes[i].in[at].seed = k * 64 + i;
			nodes[k].out[with].seed = k * 64 + i;
		}
	}
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < nodes[i].npeers; k++)
			nodes[i].base[k] = hal_tx_sent(nodes[i].peer[k]);
	}
}

/* Check that all packets have arrived, and no further packet. */
static void check(struct node *nodes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (nodes[i].failed)
			ct_fail("node %u: %s", i, nodes[i].error);
	}
	ct_nap(2000);
	ct_step_all();
	for (unsigned i = 0; i < count; i++) {
		assert_true(node_done(&nodes[i]));
		for (unsigned k = 0; k < nodes[i].npeers; k++)
			assert_int_equal(ct_drain(nodes[i].peer[k]), 0);
		assert_int_equal(nodes[i].ci->nev, 0);
	}
}

static void run_threads(unsigned count, uint64_t total)
{
	struct node nodes[MAX_NODES];
	pthread_t thread[MAX_NODES];

	mesh(nodes, count, total);
	atomic_store(&unfinished, count);
	for (unsigned i = 0; i < count; i++)
		thread[i] = unit_thread(node_thread, &nodes[i]);
	for (unsigned i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	check(nodes, count);
}

/* Run all nodes in turn in this thread. */
static void run_turns(unsigned count, uint64_t total)
{
	struct node nodes[MAX_NODES];
	uint64_t end = ct_deadline();
	bool busy;

	mesh(nodes, count, total);
	do {
		busy = false;
		for (unsigned i = 0; i < count; i++) {
			if (nodes[i].failed)
				ct_fail("node %u: %s", i, nodes[i].error);
			if (node_round(&nodes[i]))
				end = ct_deadline();
			busy |= !node_done(&nodes[i]);
		}
		if (ct_now() > end)
			ct_fail("no progress: a packet was lost");
	} while (busy);
	check(nodes, count);
}

static void stream_by_turns(void **state)
{
	run_turns(3, ct_opt.packets / 20);
}

static void stream_between_threads(void **state)
{
	run_threads(2, ct_opt.packets);
}

static void stream_all_to_all(void **state)
{
	run_threads(MAX_NODES, ct_opt.packets / 12);
}

/* Send one packet at a time; no packet arrives before it was sent. */
static void run_one_by_one(uint64_t total)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t head;

	for (uint64_t i = 0; i < total; i++) {
		assert_null(ct_peek(p.ba, &head));
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
	}
}

/* Packet numbers cross 2^16, 2^31, 2^32 and the end of their range. */
static void stream_over_number_wraps(void **state)
{
	static const uint64_t edges[] = { UINT64_C(1) << 16, UINT64_C(1) << 31,
		UINT64_C(1) << 32, HAL_HEAD_ID_MASK + 1 };
	uint32_t depth = ct_caps->pkt_depth;
	long kept = ct_opt.seq_start;

	for (unsigned i = 0; i < 2 * CT_COUNT(edges); i++) {
		ct_hal_close();
		/* some rounds of the ring before the limit, or in the first
		 * round */
		ct_opt.seq_start = edges[i / 2] -
			(i & 1 ? depth / 2 : 3 * (uint64_t)depth + 5);
		assert_int_equal(ct_hal_open(), 0);
		ct_opt.seq_start = kept;
		run_one_by_one(5 * ct_caps->pkt_depth);
		run_turns(2, 20 * ct_caps->pkt_depth);
		for (int k = 0; k < CT_IFS; k++) {
			if (ct_ifs[k].hif != NULL)
				ct_close(&ct_ifs[k]);
		}
	}
}

const struct CMUnitTest ct_stream_tests[] = {
	CT_TEST(stream_by_turns),
	CT_TEST(stream_between_threads),
	CT_TEST(stream_all_to_all),
	CT_TEST(stream_over_number_wraps),
};
const size_t ct_stream_count = CT_COUNT(ct_stream_tests);
