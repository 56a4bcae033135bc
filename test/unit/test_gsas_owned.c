/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_owned.c - memory that belongs to one client: it is freed when the
 * client ends, whatever is under way; and the numbers of NUMBERS, which are
 * unique.
 */
#include "lib/gsas_service_fixture.h"
#include "lib/unit.h"
#include "service/gsas_call.h"

#define OWNED	(GSAS_ATTR_OWNED | GSAS_ATTR_MAPPED | UINT64_C(77) << 32)
#define MANY	50			/* regions, more than are freed at
					 * once */

static const struct gsas_service_attr threaded = {
	.spawn = fixture_spawn, .threaded = true,
};

static uint64_t refused(struct fixture_client *client, uint8_t opcode,
			uint64_t address, uint64_t arg1)
{
	return fixture_ask(client, opcode, address, arg1, 0).response.error;
}

/* Number of regions of the user, as LIST gives them. */
static uint64_t listed(struct fixture_client *c)
{
	return fixture_result(c, GSAS_LIST, 0, 64, 0);
}

static void test_freed_with_its_client(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 1);
	uint64_t mine, theirs, plain;

	(void)state;
	mine = fixture_alloc(a, 3, OWNED);
	plain = fixture_alloc(a, 2, GSAS_ATTR_MAPPED);
	theirs = fixture_alloc(b, 1, OWNED);
	/* the whole job may access it */
	assert_int_equal(refused(b, GSAS_WRITE64, mine, 5),
			 GSAS_OK);
	fixture_end(a);
	fixture_settle(w);
	assert_int_equal(refused(b, GSAS_READ64, mine, 0),
			 GSAS_E_FREED);
	fixture_result(b, GSAS_READ64, plain, 0, 0);
	fixture_result(b, GSAS_READ64, theirs, 0, 0);
	assert_int_equal(listed(b), 2);
	fixture_free(w);
}

/* Another client of the job may free it; the end of the owner then frees
 * nothing. */
static void test_freed_by_another_client(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 1);
	uint64_t mine = fixture_alloc(a, 1, OWNED);

	(void)state;
	fixture_result(b, GSAS_FREE, 0, mine, 0);
	assert_int_equal(refused(b, GSAS_FREE, 0, mine),
			 GSAS_E_FREED);
	fixture_end(a);
	fixture_settle(w);
	assert_int_equal(listed(b), 0);
	fixture_free(w);
}

static void many(const struct gsas_service_attr *attr)
{
	struct fixture *w = fixture_new(attr);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 1);

	for (int i = 0; i < MANY; i++)
		fixture_alloc(a, i % 2 != 0 ? 1 : 300, OWNED);
	assert_int_equal(listed(b), MANY);
	fixture_end(a);
	fixture_settle(w);
	for (int i = 0; i < MANY && listed(b) != 0; i++)
		gsas_service_progress(w->service);
	assert_int_equal(listed(b), 0);
	fixture_free(w);
}

static void test_many_regions(void **state)
{
	(void)state;
	many(NULL);
	many(&threaded);
}

/* The client ends while its allocation is under way. */
static void test_end_while_allocating(void **state)
{
	struct fixture *w = fixture_new(&threaded);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 1);

	(void)state;
	for (uint8_t i = 1; i <= 10; i++)
		assert_true(fixture_send(a, GSAS_ALLOC, i, 0, 600, OWNED));
	fixture_end(a);
	fixture_settle(w);
	assert_int_equal(listed(b), 0);
	fixture_free(w);
}

/* Whoever asks, and whatever the service did before. */
static void test_numbers(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c[2] = {
		fixture_client(w, 1, 1), fixture_client(w, 2, 2),
	};
	uint64_t got[64];

	(void)state;
	for (int i = 0; i < 64; i++) {
		got[i] = fixture_result(c[i % 2], GSAS_NUMBERS, 0, 0, 0);
		assert_int_equal(got[i] % GSAS_NUMBERS_GIVEN, 0);
		assert_int_equal(gsas_board_of(got[i]), FIXTURE_BOARD);
		for (int k = 0; k < i; k++)
			assert_true(got[k] != got[i]);
	}
	/* when the count comes round, the next numbers were the first ones */
	w->service->numbers_given = GSAS_OFFSET_MASK + 1 - GSAS_NUMBERS_GIVEN;
	fixture_result(c[0], GSAS_NUMBERS, 0, 0, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fixture_error(c[i], GSAS_NUMBERS, 0, 0, 0),
				 GSAS_E_MEMORY);
	fixture_free(w);
}

UNIT_MAIN(
	cmocka_unit_test(test_freed_with_its_client),
	cmocka_unit_test(test_freed_by_another_client),
	cmocka_unit_test(test_many_regions),
	cmocka_unit_test(test_end_while_allocating),
	cmocka_unit_test(test_numbers),
)
