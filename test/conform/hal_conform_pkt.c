/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_pkt.c - conformance tests of packets: contents, depth, release
 * and identity
 */
#include "conform/hal_conform.h"

/* ---- Content --------------------------------------------------------- */

static void send_shape(struct ct_pair *p, uint8_t type, uint8_t flags,
		       unsigned nw, size_t len, uint64_t seed)
{
	uint64_t w[HAL_PKT_MAX / 8], end = ct_deadline();
	uint8_t data[HAL_PKT_MAX];
	int ret;

	ct_fill(w, 8 * nw, seed);
	ct_fill(data, len, ~seed);
	while ((ret = hal_pkt_send(p->ab, hal_head(type, flags), w, nw, data,
				   len)) == -FI_EAGAIN) {
		assert_true(ct_now() < end);
		ct_step(p->a);
	}
	assert_int_equal(ret, 0);
}

static void expect_shape(struct ct_pair *p, uint8_t type, uint8_t flags,
			 unsigned nw, size_t len, uint64_t seed)
{
	uint64_t head;
	const struct hal_cell *cell = ct_await(p->ba, &head);

	assert_int_equal(hal_head_type(head), type);
	assert_int_equal(hal_head_flags(head), flags);
	assert_true(ct_filled(cell->payload, 8 * nw, seed));
	assert_true(ct_filled(cell->payload + 8 * nw, len, ~seed));
	hal_rx_release(p->ba);
	hal_rx_flush(p->ba);
}

/* Packets with each number of words and each data length arrive unchanged. */
static void pkt_every_width(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t seed = 1;

	assert_true(ct_caps->pkt_payload >= 24);
	assert_true(ct_caps->pkt_payload <= HAL_PKT_MAX);
	for (int round = 0; round < 20; round++) {
		for (unsigned nw = 0; 8 * nw <= ct_caps->pkt_payload; nw++) {
			size_t max = ct_caps->pkt_payload - 8 * nw;

			for (size_t len = 0; len <= max; len++) {
				send_shape(&p, 1, 2, nw, len, ++seed);
				expect_shape(&p, 1, 2, nw, len, seed);
			}
		}
	}
}

/* Each type that the HAL does not use itself, and each flag byte, arrives
 * unchanged. */
static void pkt_every_head(void **state)
{
	struct ct_pair p = ct_pair(0, 0);

	for (int type = 0; type < 256; type++) {
		if (type >= HAL_PKT_RESERVED && type <= HAL_PKT_EMPTY)
			continue;
		for (int flags = 0; flags < 256; flags += 5) {
			send_shape(&p, type, flags, 1, 3, type + flags);
			expect_shape(&p, type, flags, 1, 3, type + flags);
		}
	}
}

/* A payload that looks like an empty mailbox is data. */
static void pkt_empty_pattern_is_data(void **state)
{
	const uint64_t pattern = UINT64_C(0xCAFEBEBEDEADBEAF);
	struct ct_pair p = ct_pair(0, 0);

	for (int i = 0; i < 300; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, pattern), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == pattern);
		assert_int_equal(ct_send(p.a, p.ab, 0, 0), 0);
		assert_true(ct_recv(p.ba, 0) == 0);
	}
}

/* ---- Depth and refusal ----------------------------------------------- */

/* Send packets with the words first, first + 1, ... until there is no credit.
 * Returns their number. */
static unsigned fill_up(struct ct_if *ci, struct hal_peer *peer, uint64_t first)
{
	unsigned n = 0;
	int ret;

	while ((ret = ct_send_once(ci, peer, CT_TYPE_PING, first + n)) == 0) {
		n++;
		if (n > ct_caps->pkt_depth)
			break;
	}
	assert_true(ret == 0 || ret == -FI_EAGAIN);
	return n;
}

/* Release n packets whose words start at first. */
static void take(struct hal_peer *peer, uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_true(ct_recv(peer, CT_TYPE_PING) == first + i);
}

/* Wait until the sender knows of the release of all packets before number. */
static void await_released(struct hal_peer *peer, uint64_t number)
{
	uint64_t end = ct_deadline();

	while (hal_tx_done(peer) != number) {
		assert_true(ct_now() < end);
		ct_step_all();
	}
}

/*
 * A ring holds exactly pkt_depth packets that are not released, whether the
 * receiver is stepped or not; each release returns one credit.
 */
static void pkt_depth_exact(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t depth = ct_caps->pkt_depth, step;
	uint64_t sent = 0, taken = 0, base = hal_tx_sent(p.ab);

	assert_true(depth >= 2 && (depth & (depth - 1)) == 0);
	sent += fill_up(p.a, p.ab, sent);
	assert_int_equal(sent, depth);
	for (int round = 0; round < 100; round++) {
		step = 1 + round * 7 % depth;
		take(p.ba, taken, step);
		taken += step;
		await_released(p.ab, base + taken);
		assert_int_equal(fill_up(p.a, p.ab, sent), step);
		sent += step;
	}
	take(p.ba, taken, depth);
	assert_int_equal(ct_drain(p.ba), 0);
}

/* A refused packet leaves nothing behind, and each accepted packet arrives. */
static void pkt_refused_leaves_nothing(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t first = 0, sent;
	unsigned n;

	for (int round = 0; round < 20; round++) {
		/* a release that becomes known between the refusals would let
		 * one of them in */
		await_released(p.ab, hal_tx_sent(p.ab));
		assert_true(hal_tx_free(p.ab));
		n = fill_up(p.a, p.ab, first);
		assert_int_equal(n, ct_caps->pkt_depth);
		assert_false(hal_tx_free(p.ab));
		sent = hal_tx_sent(p.ab);
		for (int i = 0; i < 1000; i++)
			assert_int_equal(hal_pkt_send(p.ab, hal_head(1, 1),
						      &first, 1, "x", 1),
					 -FI_EAGAIN);
		assert_true(hal_tx_sent(p.ab) == sent);
		take(p.ba, first, n);
		assert_int_equal(ct_drain(p.ba), 0);
		first += n;
	}
}

/*
 * As many packets are accepted, each at the first attempt, as hal_tx_room()
 * says: no more than are free, and 0 where a packet may be refused in spite of
 * that. A sender that has begun a message in several packets relies on it.
 */
static void pkt_room_is_accepted(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t sent = 0, taken = 0, base = hal_tx_sent(p.ab), room;

	for (unsigned round = 0; round < 200; round++) {
		room = hal_tx_room(p.ab);
		assert_true(room <= ct_caps->pkt_depth - (sent - taken));
		if (ct_faulty())
			assert_int_equal(room, 0);
		else if (p.ab->tx.cells != NULL || ct_net())
			assert_true(room != 0);
		for (uint64_t i = 0; i < room; i++, sent++)
			assert_int_equal(hal_pkt_send(p.ab,
						      hal_head(CT_TYPE_PING, 0),
						      &sent, 1, NULL, 0), 0);
		sent += fill_up(p.a, p.ab, sent);
		take(p.ba, taken, 1 + round % ct_caps->pkt_depth);
		taken += 1 + round % ct_caps->pkt_depth;
		await_released(p.ab, base + taken);
	}
}

/* A packet does not change until it is released, however much the peer
 * sends. */
static void pkt_unreleased_stays(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t depth = ct_caps->pkt_depth;
	const struct hal_cell *cell;
	uint64_t head, sent = 0, end;

	for (unsigned round = 0; round < 3 * depth; round++) {
		sent += fill_up(p.a, p.ab, sent);
		/* a release takes time: if none was known, nothing was sent */
		for (end = ct_deadline();
		     (cell = ct_peek(p.ba, &head)) == NULL; ct_step_all()) {
			sent += fill_up(p.a, p.ab, sent);
			assert_true(ct_now() < end);
		}
		assert_true(hal_cell_word(cell, 0) == round);
		/* an earlier release may become known only now */
		sent += fill_up(p.a, p.ab, sent);
		assert_true(sent <= round + depth);
		assert_true(hal_cell_word(cell, 0) == round);
		take(p.ba, round, 1);
	}
}

/* The done counter reaches the number of packets released and flushed, and
 * never exceeds it. */
static void pkt_done_counts_released(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t base = hal_tx_sent(p.ab), end, head;
	uint32_t depth = ct_caps->pkt_depth;

	assert_true(hal_tx_done(p.ab) == base);
	for (unsigned i = 0; i < 5 * depth; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		assert_true(hal_tx_sent(p.ab) == base + i + 1);
		ct_await(p.ba, &head);
		/* received but not released */
		ct_step_all();
		assert_true(hal_tx_done(p.ab) == base + i);
		hal_rx_release(p.ba);
		hal_rx_flush(p.ba);
		for (end = ct_deadline(); hal_tx_done(p.ab) != base + i + 1;) {
			assert_true(hal_tx_done(p.ab) == base + i);
			assert_true(ct_now() < end);
			ct_step_all();
		}
	}
}

/* A full peer does not delay packets to other peers. */
static void pkt_full_peer_delays_nobody(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_if *c = ct_open(0);
	struct hal_peer *ac = ct_connect(p.a, &c->hif->addr), *ca;

	ca = ct_inbound_from(c, &p.a->hif->addr);
	assert_int_equal(fill_up(p.a, p.ab, 0), ct_caps->pkt_depth);
	for (uint64_t i = 0; i < 20000; i++) {
		if (i % 16 == 0)
			assert_int_equal(ct_send_once(p.a, p.ab, CT_TYPE_PING,
						      i), -FI_EAGAIN);
		assert_int_equal(ct_send(p.a, ac, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(ca, CT_TYPE_PING) == i);
	}
	take(p.ba, 0, ct_caps->pkt_depth);
	assert_int_equal(ct_drain(p.ba), 0);
}

/*
 * A receiver may store any value as its done counter: the sender ignores
 * impossible values, and never overwrites unreleased packets.
 */
static void pkt_hostile_release(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t depth = ct_caps->pkt_depth;
	uint64_t rng = 4;

	for (int i = 0; i < 3000; i++) {
		uint64_t next = hal_tx_sent(p.ab), r = ct_random(&rng);
		const uint64_t claims[] = { next, next + 1, next - depth,
			next + depth, next - depth - 1, 0, UINT64_MAX,
			UINT64_MAX - depth, r, next - r % depth };
		unsigned n = 0;

		if (p.ba->rx.back == NULL)	/* nothing to scribble on */
			break;
		atomic_store(&p.ba->rx.back->done, claims[i % 10]);
		while (n <= depth &&
		       ct_send_once(p.a, p.ab, CT_TYPE_PING, 0) == 0)
			n++;
		assert_in_range(n, 0, depth);
	}
}

/* ---- Identity -------------------------------------------------------- */

/* Send one packet from a to b. Returns the identity in the packet at b. */
static uint64_t identity_seen(struct ct_if *a, struct hal_peer *ab,
			      struct hal_peer *ba)
{
	uint64_t head;

	assert_int_equal(ct_send(a, ab, CT_TYPE_PING, ~UINT64_C(0)), 0);
	ct_await(ba, &head);
	hal_rx_release(ba);
	hal_rx_flush(ba);
	return head & HAL_HEAD_ID_MASK;
}

/* A sender has the same identity at all receivers, and no other sender has
 * it. (With --hal net a receiver on its own host has another: docs/hal.md,
 * 16.3.) */
static void pkt_identity_is_the_senders(void **state)
{
	enum { N = 5 };
	struct ct_if *ci[N];
	uint64_t id[N] = { 0 };

	for (int i = 0; i < N; i++)
		ci[i] = ct_open(i % (int)ct_caps->boards);
	for (int from = 0; from < N; from++) {
		for (int to = 0; to < N; to++) {
			struct hal_peer *out, *in;
			uint64_t seen;

			if (ct_net() && to == from)
				continue;
			out = ct_connect(ci[from], &ci[to]->hif->addr);
			in = ct_inbound_from(ci[to], &ci[from]->hif->addr);
			seen = identity_seen(ci[from], out, in);
			assert_true(seen == in->rx.identity);
			if (id[from] == 0)
				id[from] = seen;
			assert_true(seen == id[from]);
		}
		for (int other = 0; other < from; other++)
			assert_true(id[other] != id[from]);
	}
}

/*
 * A packet into whose slot the sender has written another identity is not
 * received, or is received with the sender's own identity.
 */
static void pkt_identity_cannot_be_forged(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct hal_tx *tx = &p.ab->tx;
	uint64_t own, victim, head, rng = 7;

	own = identity_seen(p.a, p.ab, p.ba);
	victim = identity_seen(p.b, p.ba, p.ab);
	assert_true(own != victim);
	for (uint64_t i = 0; i < 1000; i++) {
		const uint64_t forged[] = { victim, 0, HAL_HEAD_ID_MASK,
			tx->next, tx->next + 1, ct_random(&rng) };
		struct hal_cell *cell;

		if (tx->cells == NULL)		/* nothing to scribble on */
			break;
		cell = &tx->cells[tx->next & tx->mask];
		atomic_store(&cell->head, hal_head(CT_TYPE_PING, 0) |
			     (forged[i % 6] & HAL_HEAD_ID_MASK));
		ct_step_all();
		if (ct_peek(p.ba, &head) != NULL)
			assert_true((head & HAL_HEAD_ID_MASK) == own);
		/* the regular packet of this slot */
		assert_true(identity_seen(p.a, p.ab, p.ba) == own);
	}
	/* An identity in the payload has no effect. */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, victim), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == victim);
		assert_true(identity_seen(p.a, p.ab, p.ba) == own);
	}
}

/* ---- Words stored back ----------------------------------------------- */

static void pkt_back_words(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t want[2][HAL_BACK_WORDS] = { { 0 } }, rng = 3, end;

	for (int i = 0; i < 5000; i++) {
		uint64_t r = ct_random(&rng);
		struct hal_peer *from = r & 1 ? p.ab : p.ba;
		struct hal_peer *at = r & 1 ? p.ba : p.ab;
		uint64_t *row = want[r & 1];
		int word = (r >> 8) % HAL_BACK_WORDS;

		hal_rx_back(from, word, row[word] = ct_random(&rng));
		for (end = ct_deadline(); hal_tx_back(at, word) != row[word];) {
			assert_true(ct_now() < end);
			ct_step_all();
		}
		for (int w = 0; w < HAL_BACK_WORDS; w++) {
			assert_true(hal_tx_back(p.ba, w) == want[1][w]);
			assert_true(hal_tx_back(p.ab, w) == want[0][w]);
		}
	}
	/* Back words do not count as packets. */
	assert_true(hal_tx_done(p.ab) == hal_tx_sent(p.ab));
	assert_int_equal(ct_drain(p.ab) + ct_drain(p.ba), 0);
}

const struct CMUnitTest ct_pkt_tests[] = {
	CT_TEST(pkt_every_width),
	CT_TEST(pkt_every_head),
	CT_TEST(pkt_empty_pattern_is_data),
	CT_TEST(pkt_depth_exact),
	CT_TEST(pkt_refused_leaves_nothing),
	CT_TEST(pkt_room_is_accepted),
	CT_TEST(pkt_unreleased_stays),
	CT_TEST(pkt_done_counts_released),
	CT_TEST(pkt_full_peer_delays_nobody),
	CT_TEST(pkt_hostile_release),
	CT_TEST(pkt_identity_is_the_senders),
	CT_TEST(pkt_identity_cannot_be_forged),
	CT_TEST(pkt_back_words),
};
const size_t ct_pkt_count = CT_COUNT(ct_pkt_tests);
