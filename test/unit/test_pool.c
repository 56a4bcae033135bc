/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool.c - pooled objects and the tokens by which a peer refers to
 * them. */
#include "lib/unit.h"
#include "util/unm_pool.h"

struct thing {
	struct unm_pool_node node;
	uint64_t mark[5];		/* bytes: an odd multiple of 8 */
};

static void test_construct_allocates_nothing(void **state)
{
	struct unm_pool pool;

	unm_pool_construct(&pool, sizeof(struct thing), 100);
	assert_null(pool.chunk);
	assert_null(pool.node);
	assert_int_equal(pool.count, 0);
	assert_int_equal(pool.used, 0);
	assert_null(unm_pool_find(&pool, UINT64_C(1) << 32));
	unm_pool_destruct(&pool);
}

static void test_token_names_its_object(void **state)
{
	struct unm_pool pool;
	struct thing *t[10];

	unm_pool_construct(&pool, sizeof(struct thing), 100);
	for (int i = 0; i < 10; i++) {
		t[i] = unm_pool_alloc(&pool);
		assert_non_null(t[i]);
	}
	assert_int_equal(pool.used, 10);
	for (int i = 0; i < 10; i++) {
		assert_ptr_equal(unm_pool_find(&pool, unm_pool_token(t[i])),
				 t[i]);
		for (int j = 0; j < i; j++)
			assert_true(unm_pool_token(t[i]) !=
				    unm_pool_token(t[j]));
	}
	unm_pool_destruct(&pool);
}

static void test_stale_token_is_refused(void **state)
{
	struct unm_pool pool;
	struct thing *t, *again;
	uint64_t token;

	unm_pool_construct(&pool, sizeof(struct thing), 100);
	t = unm_pool_alloc(&pool);
	token = unm_pool_token(t);
	unm_pool_release(&pool, t);
	assert_int_equal(pool.used, 0);
	assert_null(unm_pool_find(&pool, token));
	/* the same memory again, with another token */
	again = unm_pool_alloc(&pool);
	assert_ptr_equal(again, t);
	assert_null(unm_pool_find(&pool, token));
	assert_true(unm_pool_token(again) != token);
	assert_ptr_equal(unm_pool_find(&pool, unm_pool_token(again)), again);
	unm_pool_destruct(&pool);
}

static void test_made_up_tokens_are_refused(void **state)
{
	struct unm_pool pool;
	struct thing *t;
	uint64_t token;

	unm_pool_construct(&pool, sizeof(struct thing), 1000);
	t = unm_pool_alloc(&pool);
	token = unm_pool_token(t);
	assert_null(unm_pool_find(&pool, 0));
	assert_null(unm_pool_find(&pool, UINT64_MAX));
	/* the object after it is free: no generation is valid */
	for (uint32_t gen = 0; gen < 4; gen++)
		assert_null(unm_pool_find(&pool, (uint64_t)gen << 32 | 1));
	/* index beyond the pool, right generation */
	assert_null(unm_pool_find(&pool, (token & ~UINT64_C(0xffffffff)) |
				  pool.count));
	/* wrong generation: by one, by two, by the top bit */
	assert_null(unm_pool_find(&pool, token + (UINT64_C(1) << 32)));
	assert_null(unm_pool_find(&pool, token + (UINT64_C(2) << 32)));
	assert_null(unm_pool_find(&pool, token ^ UINT64_C(1) << 63));
	unm_pool_destruct(&pool);
}

static void test_growth_moves_nothing(void **state)
{
	enum { N = 5000 };
	static struct thing *t[N];
	struct unm_pool pool;

	unm_pool_construct(&pool, sizeof(struct thing), UINT32_MAX);
	for (int i = 0; i < N; i++) {
		t[i] = unm_pool_alloc(&pool);
		assert_non_null(t[i]);
		assert_int_equal((uintptr_t)t[i] % 64, 0);
		for (int k = 0; k < 5; k++)
			t[i]->mark[k] = (uint64_t)i * 5 + k;
	}
	for (int i = 0; i < N; i++) {
		assert_ptr_equal(unm_pool_find(&pool, unm_pool_token(t[i])),
				 t[i]);
		for (int k = 0; k < 5; k++)
			assert_int_equal(t[i]->mark[k], (uint64_t)i * 5 + k);
	}
	assert_int_equal(pool.used, N);
	unm_pool_destruct(&pool);
}

/* The pool grows in chunks. The limit is compared with the objects made, not
 * with those in use, so it may be exceeded by less than one chunk. */
static void test_limit(void **state)
{
	struct unm_pool pool;
	struct thing *last = NULL, *t;
	uint32_t n = 0;

	/* not a multiple of a chunk */
	unm_pool_construct(&pool, sizeof(struct thing), 70);
	while ((t = unm_pool_alloc(&pool)) != NULL) {
		last = t;
		assert_in_range(++n, 1, 70);
	}
	assert_int_equal(n, 70);
	assert_int_equal(pool.count, 70);
	assert_null(unm_pool_alloc(&pool));
	assert_int_equal(pool.used, 70);
	unm_pool_release(&pool, last);
	assert_ptr_equal(unm_pool_alloc(&pool), last);
	assert_null(unm_pool_alloc(&pool));
	unm_pool_destruct(&pool);
}

/* Random allocations and frees, compared with a table. */
static void test_random_model(void **state)
{
	enum { N = 512, STEPS = 200000 };
	static struct { struct thing *t; uint64_t token, mark; } m[N];
	static uint64_t stale[64];
	uint64_t rng = 1, mark = 0;
	struct unm_pool pool;
	uint32_t used = 0;

	unm_pool_construct(&pool, sizeof(struct thing), N);
	for (int step = 0; step < STEPS; step++) {
		int i = unit_below(&rng, N);

		if (m[i].t == NULL) {
			m[i].t = unm_pool_alloc(&pool);
			assert_non_null(m[i].t);
			m[i].token = unm_pool_token(m[i].t);
			m[i].mark = m[i].t->mark[4] = ++mark;
			used++;
		} else {
			assert_ptr_equal(unm_pool_find(&pool, m[i].token),
					 m[i].t);
			assert_int_equal(m[i].t->mark[4], m[i].mark);
			stale[step % 64] = m[i].token;
			unm_pool_release(&pool, m[i].t);
			m[i].t = NULL;
			used--;
		}
		assert_int_equal(pool.used, used);
		assert_null(unm_pool_find(&pool, stale[unit_below(&rng, 64)]));
	}
	unm_pool_destruct(&pool);
}

UNIT_MAIN(
	cmocka_unit_test(test_construct_allocates_nothing),
	cmocka_unit_test(test_token_names_its_object),
	cmocka_unit_test(test_stale_token_is_refused),
	cmocka_unit_test(test_made_up_tokens_are_refused),
	cmocka_unit_test(test_growth_moves_nothing),
	cmocka_unit_test(test_limit),
	cmocka_unit_test(test_random_model),
)
