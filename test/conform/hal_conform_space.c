/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_space.c - conformance tests of the receive space: bytes that a
 * packet names arrive before the packet, stay until it is released, and only
 * its sender can write them
 */
#include "conform/hal_conform.h"

#define SLOTS		8
#define SLOT_MAX	8192u

/* One direction of a stream of messages through the receive space. */
struct space_lane {
	struct ct_if *ci;
	struct hal_peer *peer;
	uint64_t total, next, base;
	uint32_t slot;			/* bytes */
	const char *error;
};

static uint32_t slot_bytes(void)
{
	uint32_t bytes = ct_caps->space_bytes / SLOTS;

	return bytes < SLOT_MAX ? bytes : SLOT_MAX;
}

/* The offset and the length of message number n. */
static void message(const struct space_lane *l, uint64_t n, uint32_t *off,
		    uint32_t *len)
{
	uint64_t rng = n;
	uint64_t r = ct_random(&rng);
	uint32_t shift = r % 16;

	*len = 1 + (r >> 16) % (r & 256 ? 64 : l->slot - 16);
	*off = n % SLOTS * l->slot + shift;
}

/* Returns 1: sent a message, 0: no credit or space, -1: hal_pkt_send() failed.
 */
static int space_send(struct space_lane *l)
{
	uint8_t buf[SLOT_MAX];
	uint64_t w[2];
	uint32_t off, len;
	int ret;

	/* The former message of this slot must have been released. */
	if (hal_tx_done(l->peer) - l->base + SLOTS <= l->next)
		return 0;
	message(l, l->next, &off, &len);
	ct_fill(buf, len, l->next);
	hal_space_write(l->peer, off, buf, len);
	hal_space_barrier(l->peer);
	w[0] = l->next;
	w[1] = (uint64_t)off << 32 | len;
	ret = hal_pkt_send(l->peer, hal_head(CT_TYPE_SPACE, 0), w, 2, NULL, 0);
	if (ret == -FI_EAGAIN)
		return 0;
	l->next++;
	return ret == 0 ? 1 : -1;
}

/* Returns 1: took a message, 0: none has come, -1: error in l->error. */
static int space_take(struct space_lane *l)
{
	uint64_t head;
	uint32_t off, len;
	const struct hal_cell *cell = ct_peek(l->peer, &head);

	if (cell == NULL)
		return 0;
	message(l, l->next, &off, &len);
	if (hal_cell_word(cell, 0) != l->next ||
	    hal_cell_word(cell, 1) != ((uint64_t)off << 32 | len)) {
		l->error = "a packet was lost, reordered or changed";
		return -1;
	}
	if (!ct_filled(hal_space(l->peer, off), len, l->next)) {
		l->error = "stores were not visible before their packet";
		return -1;
	}
	hal_rx_release(l->peer);
	hal_rx_flush(l->peer);
	l->next++;
	return 1;
}

static void lane_run(struct space_lane *l, int (*fn)(struct space_lane *l))
{
	uint64_t end = ct_deadline();

	while (l->next < l->total && l->error == NULL) {
		int ret = fn(l);

		if (ret > 0) {
			end = ct_deadline();
			continue;
		}
		if (ret < 0 && l->error == NULL)
			l->error = "hal_pkt_send failed";
		if (ct_now() > end)
			l->error = "no progress";
		ct_step(l->ci);
		sched_yield();
	}
}

static struct space_lane lane(struct ct_if *ci, struct hal_peer *peer,
			      uint64_t total)
{
	return (struct space_lane){ .ci = ci, .peer = peer, .total = total,
				    .slot = slot_bytes() };
}

const char *ct_space_send(struct ct_if *ci, struct hal_peer *peer,
			  uint64_t total)
{
	struct space_lane l = lane(ci, peer, total);
	uint64_t end;

	l.base = hal_tx_sent(peer);
	if (hal_space_ready(peer, UINT32_MAX) != 0)
		return "hal_space_ready failed";
	lane_run(&l, space_send);
	/* A decorator may delay packets until it is stepped. */
	end = ct_deadline();
	while (l.error == NULL && hal_tx_done(peer) != l.base + total) {
		if (ct_now() > end)
			l.error = "no news of the last releases";
		ct_step(ci);
		sched_yield();
	}
	return l.error;
}

const char *ct_space_take(struct ct_if *ci, struct hal_peer *peer,
			  uint64_t total)
{
	struct space_lane l = lane(ci, peer, total);

	lane_run(&l, space_take);
	return l.error;
}

static atomic_bool sender_done;

/* Steps on until the sender knows of all releases (docs/hal.md, 1.3). */
static void *taker_thread(void *arg)
{
	struct space_lane *l = arg;

	lane_run(l, space_take);
	while (!atomic_load(&sender_done)) {
		ct_step(l->ci);
		sched_yield();
	}
	return NULL;
}

static void space_before_packet(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct space_lane t = lane(p.b, p.ba, (uint64_t)ct_opt.packets / 8);
	const char *error;
	pthread_t thread;

	assert_true(t.slot >= 64);
	atomic_store(&sender_done, false);
	thread = unit_thread(taker_thread, &t);
	error = ct_space_send(p.a, p.ab, t.total);
	atomic_store(&sender_done, true);
	pthread_join(thread, NULL);
	if (t.error != NULL)
		ct_fail("message %llu: %s", (unsigned long long)t.next,
			t.error);
	if (error != NULL)
		ct_fail("sender: %s", error);
}

/* Each offset and length, also at the ends of the space; no byte beside
 * changes. */
static void space_every_range(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t bytes = ct_caps->space_bytes;
	uint8_t buf[300];

	assert_int_equal(hal_space_ready(p.ab, UINT32_MAX), 0);
	for (uint64_t i = 0; i < 4000; i++) {
		uint64_t rng = i, r = ct_random(&rng);
		uint32_t len = 1 + r % 200;
		uint32_t off = i % 3 == 0 ? 0 : i % 3 == 1 ? bytes - len - 2 :
			       (uint32_t)((r >> 20) % (bytes - len - 1));
		const uint8_t *seen;

		/* A known byte before and after. */
		memset(buf, 0x5a, sizeof(buf));
		hal_space_write(p.ab, off, buf, len + 2);
		ct_fill(buf, len, i);
		hal_space_write(p.ab, off + 1, buf, len);
		hal_space_barrier(p.ab);
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_SPACE, i), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_SPACE) == i);
		seen = hal_space(p.ba, off);
		assert_int_equal(seen[0], 0x5a);
		assert_true(ct_filled(seen + 1, len, i));
		assert_int_equal(seen[len + 1], 0x5a);
	}
}

/* hal_space_ready() in steps: bytes written before do not change. */
static void space_by_need(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t all = ct_caps->space_bytes, done = 0;
	uint8_t buf[64];

	for (uint32_t n = 64; done < all; n = n < all / 3 ? n * 3 : all) {
		assert_int_equal(hal_space_ready(p.ab, n), 0);
		for (; done + 64 <= n; done += 64) {
			ct_fill(buf, sizeof(buf), done);
			hal_space_write(p.ab, done, buf, sizeof(buf));
		}
		hal_space_barrier(p.ab);
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_SPACE, n), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_SPACE) == n);
		for (uint32_t at = 0; at < done; at += 64)
			assert_true(ct_filled(hal_space(p.ba, at), 64, at));
		if (n == all)
			break;
	}
	assert_int_equal(done / 64, all / 64);
}

/* Memory that was given back: the bytes before it stay, and it can be used
 * again. */
static void space_trimmed(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint32_t last = ct_caps->space_bytes - 64;
	uint8_t buf[64];

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(hal_space_ready(p.ab, UINT32_MAX), 0);
		ct_fill(buf, sizeof(buf), i);
		if (i == 0)
			hal_space_write(p.ab, 0, buf, sizeof(buf));
		hal_space_write(p.ab, last, buf, sizeof(buf));
		hal_space_barrier(p.ab);
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_SPACE, i), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_SPACE) == i);
		assert_true(ct_filled(hal_space(p.ba, 0), 64, 0));
		assert_true(ct_filled(hal_space(p.ba, last), 64, i));
		hal_space_trim(p.ab, i == 1 ? 5000 : 64);
	}
}

/* Each sender has its own space, and so has each direction. */
static void space_private_per_sender(void **state)
{
	enum { N = 3 };
	struct ct_if *ci[N], *to = ct_open(0);
	struct hal_peer *out[N], *in[N], *back;
	uint8_t buf[64];

	for (int i = 0; i < N; i++) {
		ci[i] = ct_open(0);
		out[i] = ct_connect(ci[i], &to->hif->addr);
		in[i] = ct_inbound_from(to, &ci[i]->hif->addr);
		assert_int_equal(hal_space_ready(out[i], UINT32_MAX), 0);
	}
	back = ct_connect(to, &ci[0]->hif->addr);
	assert_ptr_equal(back, in[0]);
	assert_int_equal(hal_space_ready(back, UINT32_MAX), 0);
	for (int i = 0; i <= N; i++) {
		struct hal_peer *peer = i < N ? out[i] : back;

		ct_fill(buf, sizeof(buf), i);
		hal_space_write(peer, 8, buf, sizeof(buf));
		hal_space_barrier(peer);
		assert_int_equal(ct_send(i < N ? ci[i] : to, peer,
					 CT_TYPE_SPACE, i), 0);
	}
	for (int i = 0; i <= N; i++) {
		struct hal_peer *peer = i < N ? in[i] : out[0];

		assert_true(ct_recv(peer, CT_TYPE_SPACE) == (uint64_t)i);
		assert_true(ct_filled(hal_space(peer, 8), sizeof(buf), i));
	}
}

const struct CMUnitTest ct_space_tests[] = {
	CT_TEST(space_before_packet),
	CT_TEST(space_every_range),
	CT_TEST(space_by_need),
	CT_TEST(space_trimmed),
	CT_TEST(space_private_per_sender),
};
const size_t ct_space_count = CT_COUNT(ct_space_tests);
