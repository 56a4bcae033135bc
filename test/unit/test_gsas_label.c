/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_label.c - names that a job gives to its regions: who sees them, and
 * when they end
 */
#include "lib/unit.h"
#include "lib/gsas_service_fixture.h"
#include "service/gsas_label.h"

#define NAME		0x6d616574		/* "team" */

static uint64_t name_of(struct fixture_client *c, uint64_t name)
{
	return fixture_result(c, GSAS_NAME, 0, name, 0);
}

static void test_a_job_sees_its_names(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *sibling = fixture_client(w, 1, 1);
	struct fixture_client *other = fixture_client(w, 1, 2);
	struct fixture_client *user = fixture_client(w, 2, 1);
	uint64_t at = fixture_alloc(a, 1, GSAS_MODE_WORLD);
	uint64_t next = fixture_alloc(sibling, 1, 0);

	assert_int_equal(name_of(a, NAME), 0);
	assert_int_equal(fixture_result(a, GSAS_NAME, at, NAME, 0), at);
	assert_int_equal(name_of(a, NAME), at);
	assert_int_equal(name_of(sibling, NAME), at);
	assert_int_equal(name_of(other, NAME), 0);
	assert_int_equal(name_of(user, NAME), 0);
	/* all 16 bytes count */
	assert_int_equal(fixture_result(a, GSAS_NAME, 0, NAME, 1), 0);
	/* another job's name is another name, and needs a region of that job */
	assert_int_equal(fixture_error(other, GSAS_NAME, at, NAME, 0),
			 GSAS_E_ACCESS);
	assert_int_equal(name_of(a, NAME), at);
	/* the name moves */
	assert_int_equal(fixture_result(sibling, GSAS_NAME, next, NAME, 0),
			 next);
	assert_int_equal(name_of(a, NAME), next);
	fixture_free(w);
}

static void test_errors(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t at = fixture_alloc(c, 2, 0);
	uint64_t queue = fixture_result(c, GSAS_QUEUE_NEW, 0,
					64 | UINT64_C(8) << 32, 0);

	assert_int_equal(fixture_error(c, GSAS_NAME, at, 0, 1),
			 GSAS_E_ARGUMENT);
	assert_int_equal(fixture_error(c, GSAS_NAME, at + 8, NAME, 0),
			 GSAS_E_ARGUMENT);
	assert_int_equal(fixture_error(c, GSAS_NAME, at + 4096, NAME, 0),
			 GSAS_E_ARGUMENT);
	assert_int_equal(fixture_error(c, GSAS_NAME, 1, NAME, 0),
			 GSAS_E_ADDRESS);
	assert_int_equal(name_of(c, NAME), 0);
	/* a queue may have a name */
	assert_int_equal(fixture_result(c, GSAS_NAME, queue, NAME, 0), queue);
	assert_int_equal(fixture_error(fixture_unjoined(w, 1), GSAS_NAME, 0,
				       NAME, 0), GSAS_E_JOIN);
	fixture_free(w);
}

static void test_a_name_ends_with_its_region(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t at[GSAS_LABELS_MAX + 1];

	for (uint64_t i = 0; i <= GSAS_LABELS_MAX; i++) {
		at[i] = fixture_alloc(c, 1, 0);
		assert_int_equal(fixture_error(c, GSAS_NAME, at[i], NAME + i,
					       0),
				 i < GSAS_LABELS_MAX ? GSAS_OK : GSAS_E_QUOTA);
	}
	fixture_result(c, GSAS_FREE, 0, at[3], 0);
	assert_int_equal(name_of(c, NAME + 3), 0);
	assert_int_equal(fixture_error(c, GSAS_NAME, at[3], NAME, 0),
			 GSAS_E_FREED);
	/* so there is a place for one more */
	assert_int_equal(fixture_error(c, GSAS_NAME, at[GSAS_LABELS_MAX], NAME,
				       1), GSAS_OK);
	/* names outlive their client, and end with the job's last region */
	fixture_end(c);
	c = fixture_client(w, 1, 1);
	assert_int_equal(name_of(c, NAME), at[0]);
	for (int i = 0; i <= GSAS_LABELS_MAX; i++)
		if (i != 3)
			fixture_result(c, GSAS_FREE, 0, at[i], 0);
	assert_int_equal(name_of(c, NAME), 0);
	fixture_free(w);
}

UNIT_MAIN(
	cmocka_unit_test(test_a_job_sees_its_names),
	cmocka_unit_test(test_errors),
	cmocka_unit_test(test_a_name_ends_with_its_region),
)
