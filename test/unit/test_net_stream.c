/* SPDX-License-Identifier: BSD-2-Clause */
/* test_net_stream.c - frames between hosts: numbers, acknowledgements, order,
 * and records. */
#include "lib/unit.h"

#include "hal/net/hal_net_stream.h"

/* ---- Numbers ---------------------------------------------------------- */

static void test_in_order(void **state)
{
	struct net_stream s = { .taken = 0 };
	size_t len;

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++) {
		assert_int_equal(net_stream_take(&s, i, "x", 1), 1);
		assert_int_equal(s.taken, i);
		assert_null(net_stream_early(&s, &len));
	}
}

/* Frames of a window come in any order and leave in theirs. */
static void test_any_order(void **state)
{
	struct net_stream s = { .taken = 0 };
	uint64_t seed = 7, want = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		uint64_t order[NET_WINDOW];

		for (uint32_t i = 0; i < NET_WINDOW; i++)
			order[i] = s.taken + i + 1;
		for (uint32_t i = NET_WINDOW - 1; i > 0; i--) {
			uint64_t was = order[i];
			uint32_t k;

			seed = seed * UINT64_C(6364136223846793005) + 1;
			k = (uint32_t)(seed >> 33) % (i + 1);
			order[i] = order[k];
			order[k] = was;
		}
		for (uint32_t i = 0; i < NET_WINDOW; i++) {
			uint64_t *early;
			size_t len;
			int ret = net_stream_take(&s, order[i], &order[i], 8);

			assert_int_equal(ret, order[i] == want);
			if (ret == 0)
				continue;
			want++;
			while ((early = net_stream_early(&s, &len)) != NULL) {
				assert_int_equal(len, 8);
				assert_int_equal(*early, want);
				want++;
				free(early);
			}
		}
		assert_int_equal(s.taken, want - 1);
	}
	assert_int_equal(want, 200 * NET_WINDOW + 1);
}

static void test_refused(void **state)
{
	struct net_stream s = { .taken = 100 };

	(void)state;
	/* twice, processed or kept; beyond the window */
	assert_int_equal(net_stream_take(&s, 100, "x", 1), -EPROTO);
	assert_int_equal(net_stream_take(&s, 1, "x", 1), -EPROTO);
	assert_int_equal(net_stream_take(&s, 103, "x", 1), 0);
	assert_int_equal(net_stream_take(&s, 103, "x", 1), -EPROTO);
	assert_int_equal(net_stream_take(&s, 100 + NET_WINDOW, "x", 1), 0);
	assert_int_equal(net_stream_take(&s, 101 + NET_WINDOW, "x", 1),
			 -EPROTO);
	net_stream_clear(&s);
}

static void test_acks(void **state)
{
	struct net_stream s = { .sent = 10 };

	(void)state;
	assert_int_equal(net_stream_ack(&s, 4), 0);
	assert_int_equal(net_stream_ack(&s, 3), 0);	/* was overtaken */
	assert_int_equal(s.acked, 4);
	assert_int_equal(net_stream_ack(&s, 10), 0);
	assert_int_equal(s.acked, 10);
	assert_int_equal(net_stream_ack(&s, 11), -EPROTO);
}

/* ---- Records ---------------------------------------------------------- */

static size_t put(uint8_t *frame, size_t at, struct net_rec rec,
		  const void *data)
{
	memcpy(frame + at, &rec, sizeof(rec));
	if (rec.len != 0)
		memcpy(frame + at + sizeof(rec), data, rec.len);
	return at + net_rec_bytes(rec.len);
}

static void test_records(void **state)
{
	uint8_t frame[256] = { 0 };
	struct net_rec rec;
	const uint8_t *data;
	size_t len, off = 0;

	(void)state;
	len = put(frame, 0, (struct net_rec){ .type = NET_SPACE, .len = 13,
					      .arg = 77 }, "thirteen byte");
	len = put(frame, len, (struct net_rec){ .type = NET_WAKE }, "");
	assert_int_equal(len, 16 + 16 + 16);
	assert_int_equal(net_rec_next(frame, len, &off, &rec, &data), 1);
	assert_int_equal(rec.type, NET_SPACE);
	assert_int_equal(rec.arg, 77);
	assert_memory_equal(data, "thirteen byte", 13);
	assert_int_equal(net_rec_next(frame, len, &off, &rec, &data), 1);
	assert_int_equal(rec.type, NET_WAKE);
	assert_int_equal(net_rec_next(frame, len, &off, &rec, &data), 0);
}

static void test_malformed(void **state)
{
	static const struct net_rec bad[] = {
		{ .type = 0 },
		{ .type = NET_REC_END },
		{ .type = NET_WAKE, .zero = 1 },
		{ .type = NET_PACKET, .len = 33 },	/* beyond the end */
		{ .type = NET_PACKET, .len = UINT32_MAX },
		{ .type = NET_PACKET, .len = UINT32_MAX - 6 },
	};
	uint8_t frame[48] = { 0 };
	struct net_rec rec;
	const uint8_t *data;
	size_t off;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(frame, &bad[i], sizeof(bad[i]));
		off = 0;
		assert_int_equal(net_rec_next(frame, 48, &off, &rec, &data),
				 -EPROTO);
	}
	off = 40;			/* half a head */
	assert_int_equal(net_rec_next(frame, 48, &off, &rec, &data), -EPROTO);
}

/* These bytes travel between hosts and versions. */
static void test_golden(void **state)
{
	static const uint8_t golden[] = {
		8, 7, 6, 5, 4, 3, 2, 1, 0x44, 0x33, 0x22, 0x11, 1, 0, 0, 0,
		9, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
		4, 5, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
		0x22, 0x11,
	};
	struct net_head head = {
		.token = UINT64_C(0x0102030405060708), .slot = 0x11223344,
		.flags = NET_F_ASK, .seq = 9, .ack = 6,
	};
	struct net_rec rec = {
		.type = NET_BACK, .word = 5,
		.arg = UINT64_C(0x1122334455667788),
	};

	(void)state;
	assert_int_equal(sizeof(golden), sizeof(head) + sizeof(rec));
	assert_memory_equal(golden, &head, sizeof(head));
	assert_memory_equal(golden + sizeof(head), &rec, sizeof(rec));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_acks),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_golden),
	};

	return unit_run(tests);
}
