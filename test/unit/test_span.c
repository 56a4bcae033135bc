/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_span.c - allocation of blocks from a range of addresses, compared with a
 * model: an array that says for each unit which block it belongs to.
 */
#include "lib/unit.h"
#include "util/unm_span.h"

#define UNIT	UNM_SPAN_UNIT
#define BASE	((uintptr_t)0x7000001000)	/* aligned to a page, and no
						 * more */

static size_t units(size_t bytes)
{
	return (bytes + UNIT - 1) / UNIT;
}

static void test_one_block_is_all(void **state)
{
	struct unm_span s;
	size_t bytes;

	assert_true(unm_span_construct(&s, BASE, 16 * UNIT));
	assert_true(unm_span_empty(&s));
	assert_true(unm_span_find(&s, BASE, &bytes) == 0);
	assert_true(unm_span_alloc(&s, 16 * UNIT + 1, UNIT) == 0);
	assert_true(unm_span_alloc(&s, 15 * UNIT + 1, UNIT) == BASE);
	assert_false(unm_span_empty(&s));
	assert_true(unm_span_alloc(&s, 1, UNIT) == 0);
	assert_true(unm_span_find(&s, BASE + 16 * UNIT - 1, &bytes) == BASE);
	assert_int_equal(bytes, 16 * UNIT);
	assert_true(unm_span_find(&s, BASE + 16 * UNIT, &bytes) == 0);
	assert_true(unm_span_find(&s, BASE - 1, &bytes) == 0);
	assert_int_equal(unm_span_free(&s, BASE), 16 * UNIT);
	assert_true(unm_span_empty(&s));
	unm_span_destruct(&s);
}

/* Freeing an address at which no block begins does nothing. */
static void test_free_of_nonsense(void **state)
{
	struct unm_span s;
	uintptr_t a, b, c;

	assert_true(unm_span_construct(&s, BASE, 64 * UNIT));
	a = unm_span_alloc(&s, 5 * UNIT, UNIT);
	b = unm_span_alloc(&s, 1, UNIT);
	c = unm_span_alloc(&s, 7 * UNIT, UNIT);
	assert_int_equal(unm_span_free(&s, a), 5 * UNIT);
	for (uintptr_t at = BASE - 2 * UNIT; at < BASE + 66 * UNIT; at++)
		if (at != b && at != c)
			assert_int_equal(unm_span_free(&s, at), 0);
	assert_int_equal(unm_span_free(&s, b), UNIT);
	assert_int_equal(unm_span_free(&s, b), 0);
	assert_int_equal(unm_span_free(&s, c), 7 * UNIT);
	assert_int_equal(unm_span_free(&s, c), 0);
	assert_true(unm_span_alloc(&s, 64 * UNIT, UNIT) == BASE);
	unm_span_destruct(&s);
}

/* The range begins at an odd address: alignment is that of addresses. */
static void test_alignment(void **state)
{
	struct unm_span s;

	assert_true(unm_span_construct(&s, BASE, (size_t)4 << 20));
	for (size_t align = UNIT; align <= (size_t)2 << 20; align *= 2) {
		uintptr_t small = unm_span_alloc(&s, 1, UNIT);
		uintptr_t at = unm_span_alloc(&s, 3 * UNIT, align);

		assert_true(small != 0);
		assert_true(at != 0 && at % align == 0);
		assert_int_equal(unm_span_free(&s, at), 3 * UNIT);
		assert_int_equal(unm_span_free(&s, small), UNIT);
		assert_true(unm_span_empty(&s));
	}
	/* enough bytes are free, but none so aligned */
	assert_true(unm_span_alloc(&s, ((size_t)4 << 20) - UNIT,
				   (size_t)1 << 20) == 0);
	assert_true(unm_span_alloc(&s, (size_t)4 << 20, UNIT) == BASE);
	unm_span_destruct(&s);
}

/* Blocks are freed in any order, with free neighbours on each side or none: in
 * the end the range is one free block again. */
static void test_neighbours_become_one(void **state)
{
	static const int order[6][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct unm_span s;

	assert_true(unm_span_construct(&s, BASE, 6 * UNIT));
	for (int i = 0; i < 6; i++) {
		uintptr_t at[3];

		for (int k = 0; k < 3; k++) {
			at[k] = unm_span_alloc(&s, (size_t)(k + 1) * UNIT,
					       UNIT);
			assert_true(at[k] != 0);
		}
		for (int k = 0; k < 3; k++)
			assert_int_equal(unm_span_free(&s, at[order[i][k]]),
					 (size_t)(order[i][k] + 1) * UNIT);
		assert_true(unm_span_alloc(&s, 6 * UNIT, UNIT) == BASE);
		assert_int_equal(unm_span_free(&s, BASE), 6 * UNIT);
	}
	unm_span_destruct(&s);
}

/* ---- Against a model ------------------------------------------------- */

#define NUNITS	2048
#define NBLOCKS	256
#define STEPS	40000

struct model {
	struct unm_span span;
	uint16_t owner[NUNITS];		/* number of the block plus 1; 0:
					 * free */
	uintptr_t at[NBLOCKS];
	size_t bytes[NBLOCKS];
};

/* Does the model have space? It searches the array. */
static bool model_has_room(const struct model *m, size_t n, size_t align)
{
	size_t run = 0;

	for (size_t i = NUNITS; i-- > 0;) {
		run = m->owner[i] == 0 ? run + 1 : 0;
		if (run >= n && (BASE + i * UNIT) % align == 0)
			return true;
	}
	return false;
}

static void model_alloc(struct model *m, int b, uint64_t *rng)
{
	size_t most = (size_t)1 << unit_below(rng, 16);
	size_t bytes = 1 + unit_below(rng, (uint32_t)most);
	size_t align = UNIT << (unit_below(rng, 4) ? 0 : unit_below(rng, 11));
	uintptr_t at = unm_span_alloc(&m->span, bytes, align);
	size_t first = (at - BASE) / UNIT;

	if (at == 0) {
		assert_false(model_has_room(m, units(bytes), align));
		return;
	}
	assert_int_equal(at % align, 0);
	assert_true(at >= BASE && first + units(bytes) <= NUNITS);
	for (size_t i = 0; i < units(bytes); i++) {
		assert_int_equal(m->owner[first + i], 0);
		m->owner[first + i] = (uint16_t)(b + 1);
	}
	m->at[b] = at;
	m->bytes[b] = bytes;
}

static void model_free(struct model *m, int b)
{
	size_t first = (m->at[b] - BASE) / UNIT;

	assert_int_equal(unm_span_free(&m->span, m->at[b]),
			 units(m->bytes[b]) * UNIT);
	memset(&m->owner[first], 0, units(m->bytes[b]) * sizeof(m->owner[0]));
	m->at[b] = 0;
}

static void model_find(struct model *m, uint64_t *rng)
{
	uint32_t off = unit_below(rng, NUNITS * (uint32_t)UNIT);
	int b = m->owner[off / UNIT] - 1;
	size_t bytes = 0;
	uintptr_t at = unm_span_find(&m->span, BASE + off, &bytes);

	if (b < 0) {
		assert_true(at == 0);
	} else {
		assert_true(at == m->at[b]);
		assert_int_equal(bytes, units(m->bytes[b]) * UNIT);
	}
}

static void test_random_against_a_model(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	uint64_t rng = 5;

	assert_true(unm_span_construct(&m->span, BASE, NUNITS * UNIT));
	for (int i = 0; i < STEPS; i++) {
		int b = (int)unit_below(&rng, NBLOCKS);

		if (m->at[b] != 0)
			model_free(m, b);
		else
			model_alloc(m, b, &rng);
		model_find(m, &rng);
	}
	for (int b = 0; b < NBLOCKS; b++)
		if (m->at[b] != 0)
			model_free(m, b);
	assert_true(unm_span_empty(&m->span));
	assert_true(unm_span_alloc(&m->span, NUNITS * UNIT, UNIT) == BASE);
	unm_span_destruct(&m->span);
	free(m);
}

/* Blocks are found in their order, whatever was freed between them. */
static void test_next(void **state)
{
	struct unm_span s;
	uintptr_t at[6], found = 0;
	size_t bytes = 0;

	assert_true(unm_span_construct(&s, BASE, 16 * UNIT));
	assert_true(unm_span_next(&s, 0, &bytes) == 0);
	for (int i = 0; i < 6; i++)
		at[i] = unm_span_alloc(&s, (i % 2 + 1) * UNIT, UNIT);
	for (int i = 0; i < 6; i += 3)
		unm_span_free(&s, at[i]);
	for (int i = 0; i < 6; i++) {
		if (i % 3 == 0)
			continue;
		found = unm_span_next(&s, found, &bytes);
		assert_true(found == at[i]);
		assert_int_equal(bytes, (i % 2 + 1) * UNIT);
		found += bytes;
	}
	assert_true(unm_span_next(&s, found, &bytes) == 0);
	assert_true(unm_span_next(&s, BASE + 16 * UNIT, &bytes) == 0);
	unm_span_destruct(&s);
}

UNIT_MAIN(
	cmocka_unit_test(test_next),
	cmocka_unit_test(test_one_block_is_all),
	cmocka_unit_test(test_free_of_nonsense),
	cmocka_unit_test(test_alignment),
	cmocka_unit_test(test_neighbours_become_one),
	cmocka_unit_test(test_random_against_a_model),
)
