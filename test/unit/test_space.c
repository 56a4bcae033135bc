/* SPDX-License-Identifier: BSD-2-Clause */
/* test_space.c - the sender's view of the receive space at a peer: allocation
 * and release of a byte ring. */
#include "lib/unit.h"
#include "core/unm_space.h"

#define BYTES	4096u
#define DEPTH	64u

/* Find and take space, like the provider. */
static uint32_t take(struct unm_space *s, uint32_t len, uint64_t packet)
{
	uint32_t off = unm_space_find(s, len);

	if (off != UNM_SPACE_NONE)
		unm_space_take(s, off, len, packet);
	return off;
}

static void test_rounds_to_lines(void **state)
{
	assert_int_equal(unm_space_round(0), 0);
	assert_int_equal(unm_space_round(1), 64);
	assert_int_equal(unm_space_round(64), 64);
	assert_int_equal(unm_space_round(65), 128);
	assert_int_equal(unm_space_round(16384), 16384);
}

static void test_find_takes_nothing(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);

	assert_int_equal(unm_space_find(s, 100), 0);
	assert_int_equal(unm_space_find(s, 100), 0);
	assert_int_equal(take(s, 100, 0), 0);
	assert_int_equal(unm_space_find(s, 100), 128);
	free(s);
}

static void test_full_and_reclaim(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(take(s, 1024, i), i * 1024);
	/* nothing is free */
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	/* packet 0 is released when done exceeds 0 */
	unm_space_reclaim(s, 0);
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	unm_space_reclaim(s, 1);
	assert_int_equal(unm_space_find(s, 1025), UNM_SPACE_NONE);
	assert_int_equal(take(s, 1024, 4), 0);
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	/* several at once */
	unm_space_reclaim(s, 5);
	assert_int_equal(s->head, s->tail);
	free(s);
}

static void test_whole_ring_in_one_piece(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);

	assert_int_equal(unm_space_find(s, BYTES + 1), UNM_SPACE_NONE);
	assert_int_equal(take(s, BYTES, 0), 0);
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	unm_space_reclaim(s, 1);
	assert_int_equal(take(s, BYTES, 1), 0);
	free(s);
}

/* A block that does not fit before the end starts at 0. The gap at the end is
 * released together with it. */
static void test_wrap_skips_the_end(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);

	assert_int_equal(take(s, 3072, 0), 0);
	assert_int_equal(take(s, 512, 1), 3072);
	/* 512 left at the end, 0 at the start */
	assert_int_equal(unm_space_find(s, 513), UNM_SPACE_NONE);
	unm_space_reclaim(s, 1);
	/* 3072 free at the start, but the gap of 512 is taken as well */
	assert_int_equal(unm_space_find(s, 3073), UNM_SPACE_NONE);
	assert_int_equal(take(s, 3072, 2), 0);
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	unm_space_reclaim(s, 2);
	/* packet 1 has 512 at 3072; the gap behind it belongs to packet 2 */
	assert_int_equal(unm_space_find(s, 512), 3072);
	assert_int_equal(unm_space_find(s, 513), UNM_SPACE_NONE);
	unm_space_reclaim(s, 3);
	assert_int_equal(s->head, s->tail);
	assert_int_equal(take(s, 64, 3), 3072);
	free(s);
}

/* A block that exactly fits at the end is placed there. */
static void test_exact_fit_at_the_end(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);

	assert_int_equal(take(s, 4032, 0), 0);
	assert_int_equal(take(s, 64, 1), 4032);
	unm_space_reclaim(s, 1);
	assert_int_equal(take(s, 64, 2), 0);
	assert_int_equal(s->tail - s->head, 128);
	free(s);
}

/* Packets without space lie in between; release is by packet number. */
static void test_reclaim_goes_by_packet(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);

	take(s, 1024, 10);
	take(s, 1024, 20);
	take(s, 1024, 21);
	unm_space_reclaim(s, 10);
	assert_int_equal(s->head, 0);
	unm_space_reclaim(s, 20);
	assert_int_equal(s->head, 1024);
	unm_space_reclaim(s, 21);
	assert_int_equal(s->head, 2048);
	unm_space_reclaim(s, 21);
	assert_int_equal(s->head, 2048);
	unm_space_reclaim(s, 22);
	assert_int_equal(s->head, 3072);
	free(s);
}

/* A ring that was often full is replaced by a larger one, but only while it is
 * empty. */
static void test_worn_ring_grows(void **state)
{
	struct unm_space *s = unm_space_new(BYTES, DEPTH);
	uint64_t packet = 0;

	assert_false(unm_space_should_grow(s));
	while (s->tail < (uint64_t)UNM_SPACE_LAPS * BYTES) {
		assert_false(unm_space_should_grow(s));
		assert_true(take(s, 1024, packet) != UNM_SPACE_NONE);
		assert_false(unm_space_should_grow(s));	/* not empty */
		unm_space_reclaim(s, ++packet);
	}
	assert_true(unm_space_should_grow(s));
	assert_true(take(s, 64, packet++) != UNM_SPACE_NONE);
	assert_false(unm_space_should_grow(s));
	unm_space_reclaim(s, packet);
	unm_space_resize(s, 4 * BYTES);
	assert_false(unm_space_should_grow(s));
	assert_int_equal(take(s, 4 * BYTES, packet++), 0);
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	unm_space_reclaim(s, packet);
	assert_int_equal(unm_space_find(s, 4 * BYTES), 0);
	free(s);
}

/* How much of the space was used so far. The end of the ring is not used if an
 * extent does not fit there. */
static void test_first_use_is_noticed(void **state)
{
	enum { PAGE = UNM_SPACE_PAGE, RING = 4 * PAGE };
	struct unm_space *s = unm_space_new(RING, DEPTH);

	assert_int_equal(s->touched, 0);
	assert_int_equal(take(s, 64, 1), 0);
	assert_int_equal(s->touched, PAGE);
	assert_int_equal(take(s, PAGE - 64, 2), 64);
	assert_int_equal(s->touched, PAGE);
	assert_int_equal(take(s, PAGE + 1, 3), PAGE);
	assert_int_equal(s->touched, 3 * PAGE);
	unm_space_reclaim(s, 4);
	assert_int_equal(take(s, 2 * PAGE, 4), 0);
	assert_int_equal(s->touched, 3 * PAGE);
	unm_space_reclaim(s, 5);
	/* another size alone is no loss of memory */
	unm_space_resize(s, 4 * RING);
	assert_int_equal(s->touched, 3 * PAGE);
	assert_int_equal(take(s, 3 * RING, 5), 0);
	unm_space_reclaim(s, 6);
	unm_space_resize(s, RING);
	assert_int_equal(s->touched, 3 * RING);
	unm_space_trim(s, 2 * RING);
	assert_int_equal(s->bytes, 2 * RING);
	assert_int_equal(s->touched, 2 * RING);
	unm_space_trim(s, 2 * RING);
	assert_int_equal(take(s, 2 * RING, 6), 0);
	assert_int_equal(s->touched, 2 * RING);
	free(s);
}

/* Once the ring is empty, a block of its full size fits, wherever the last
 * block ended. */
static void test_empty_ring_starts_over(void **state)
{
	for (uint32_t first = 64; first < BYTES; first += 64) {
		struct unm_space *s = unm_space_new(BYTES, DEPTH);

		assert_int_equal(take(s, first, 0), 0);
		unm_space_restart(s);		/* not empty */
		assert_int_equal(unm_space_find(s, 64), first);
		assert_int_equal(unm_space_find(s, BYTES), UNM_SPACE_NONE);
		unm_space_reclaim(s, 1);
		assert_int_equal(unm_space_find(s, BYTES), UNM_SPACE_NONE);
		unm_space_restart(s);
		assert_int_equal(take(s, BYTES, 1), 0);
		assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
		unm_space_reclaim(s, 2);
		unm_space_restart(s);		/* at the first byte already */
		assert_int_equal(s->tail, 2 * BYTES);
		free(s);
	}
}

struct extent {
	uint32_t off, len;
	uint64_t packet;
};

/*
 * Random traffic compared with a map of each byte's owner: no block overlaps
 * another one or leaves the ring, and an empty ring always has space.
 */
static void run_model(uint32_t bytes, uint32_t depth, uint64_t seed)
{
	struct unm_space *s = unm_space_new(bytes, depth);
	struct extent *live = calloc(depth, sizeof(*live));
	uint8_t *owned = calloc(bytes, 1);
	uint64_t packet = 0, done = 0, first = 0, last = 0;
	uint32_t refused = 0;

	for (int step = 0; step < 100000; step++) {
		uint32_t len = 1 + unit_below(&seed, step % 7 == 0 ? bytes :
					      step & 1 ? bytes / 2 : 200);
		uint32_t off;

		/* at most as many packets in flight as the ring of packets
		 * has */
		off = packet - done < depth ? unm_space_find(s, len) :
			UNM_SPACE_NONE;
		if (off != UNM_SPACE_NONE) {
			assert_int_equal(off % UNM_SPACE_ALIGN, 0);
			assert_true(off + len <= bytes);
			for (uint32_t i = off; i < off + len; i++)
				assert_int_equal(owned[i], 0);
			memset(owned + off, 1, len);
			live[last++ % depth] =
				(struct extent){ off, len, packet };
			unm_space_take(s, off, len, packet);
			packet += 1 + unit_below(&seed, 2);
			continue;
		}
		refused++;
		/* the peer releases some packets */
		done += 1 + unit_below(&seed, (uint32_t)(packet - done));
		for (; first != last && live[first % depth].packet < done;
		     first++)
			memset(owned + live[first % depth].off, 0,
			       live[first % depth].len);
		unm_space_reclaim(s, done);
		unm_space_restart(s);
		if (done == packet)
			assert_true(unm_space_find(s, bytes) !=
				    UNM_SPACE_NONE);
	}
	assert_true(refused > 100);
	free(owned);
	free(live);
	free(s);
}

static void test_random_model(void **state)
{
	run_model(BYTES, DEPTH, 1);
	run_model(16384, 64, 2);	/* exanode */
	run_model(65536, 128, 3);	/* host */
	run_model(65536, 4, 4);
}

/* A ring of which only the first part has memory is not used beyond that. An
 * empty one begins at 0 again, which wears it as a lap does. */
static void test_first_part(void **state)
{
	struct unm_space *s = unm_space_new(8 * BYTES, DEPTH);

	assert_int_equal(s->ready, s->bytes);
	s->ready = BYTES;
	for (uint32_t lap = 0; lap < UNM_SPACE_LAPS; lap++) {
		assert_false(unm_space_should_grow(s));
		assert_int_equal(unm_space_find(s, BYTES + 1), UNM_SPACE_NONE);
		assert_int_equal(take(s, 1024, lap), 0);
		assert_int_equal(unm_space_find(s, 3073), UNM_SPACE_NONE);
		assert_int_equal(unm_space_find(s, 3072), 1024);
		/* not while an extent is in use */
		unm_space_restart(s);
		assert_int_equal(unm_space_find(s, 3072), 1024);
		unm_space_reclaim(s, lap + 1);
		/* it does not begin at 0 again by itself */
		assert_int_equal(unm_space_find(s, 3136), UNM_SPACE_NONE);
		s->ready -= 1024;
		assert_int_equal(unm_space_find(s, 2112), UNM_SPACE_NONE);
		assert_int_equal(take(s, 2048, lap), 1024);
		unm_space_reclaim(s, lap + 1);
		assert_int_equal(unm_space_find(s, 1024), UNM_SPACE_NONE);
		s->ready += 1024;
		unm_space_restart(s);
	}
	assert_true(unm_space_should_grow(s));
	/* all has memory: extents in use stay where they are */
	assert_int_equal(take(s, 1024, UNM_SPACE_LAPS), 0);
	unm_space_complete(s);
	assert_int_equal(s->tail, 1024);
	assert_int_equal(take(s, 7 * BYTES, UNM_SPACE_LAPS + 1), 1024);
	assert_int_equal(take(s, 3072, UNM_SPACE_LAPS + 2), 7 * BYTES + 1024);
	assert_int_equal(unm_space_find(s, 1), UNM_SPACE_NONE);
	unm_space_reclaim(s, UNM_SPACE_LAPS + 1);
	assert_int_equal(take(s, 1024, UNM_SPACE_LAPS + 3), 0);
	/* so has all of a ring of another size */
	s->ready = BYTES;
	unm_space_reclaim(s, UNM_SPACE_LAPS + 4);
	unm_space_resize(s, 2 * BYTES);
	assert_int_equal(unm_space_find(s, 2 * BYTES), 0);
	free(s);
}

UNIT_MAIN(
	cmocka_unit_test(test_rounds_to_lines),
	cmocka_unit_test(test_find_takes_nothing),
	cmocka_unit_test(test_full_and_reclaim),
	cmocka_unit_test(test_whole_ring_in_one_piece),
	cmocka_unit_test(test_wrap_skips_the_end),
	cmocka_unit_test(test_exact_fit_at_the_end),
	cmocka_unit_test(test_reclaim_goes_by_packet),
	cmocka_unit_test(test_worn_ring_grows),
	cmocka_unit_test(test_first_use_is_noticed),
	cmocka_unit_test(test_empty_ring_starts_over),
	cmocka_unit_test(test_first_part),
	cmocka_unit_test(test_random_model),
)
