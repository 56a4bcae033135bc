/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_again.c - boards with so few addresses that they are soon used
 * again: what a client knows of segments that are gone does no harm. How the
 * service chooses addresses: test_gsas_pages.c.
 */
#include <errno.h>
#include <string.h>

#include "gsas_host.h"

#define SPACE	(UINT64_C(16) << 20)	/* bytes of addresses, less 1 MiB */
#define ROUNDS	300
#define SIZES	7

/* Allocations of all kinds and of other sizes than before: each is read and
 * written, and refused when it is freed. */
static void test_addresses_come_again(void **state)
{
	static const unsigned kinds[] = { 0, GSAS_MAPPED, GSAS_MAPPED };
	uint64_t lowest = UINT64_MAX, value, last = 0;
	struct gsas_thread *t;
	int rounds = 0;

	(void)state;
	assert_int_equal(gsas_thread_get(&t), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t pages = 200 + 150 * (uint64_t)(i % SIZES);
		unsigned kind = kinds[i % 3];
		gsas_addr a = host_alloc(pages, 0, kind);
		gsas_addr end = a + (pages - 1) * GSAS_PAGE;
		size_t bytes;
		void *p;

		rounds += a < last;
		last = a;
		lowest = a < lowest ? a : lowest;
		assert_int_equal(gsas_read64(a, &value), 0);
		assert_int_equal(value, 0);
		assert_int_equal(gsas_write64(end, (uint64_t)i), 0);
		assert_int_equal(gsas_read64(end, &value), 0);
		assert_int_equal(value, i);
		if (kind == GSAS_MAPPED && t->windows && i % 2 == 0) {
			assert_int_equal(gsas_map(a, &p, &bytes), 0);
			assert_int_equal(bytes, pages * GSAS_PAGE);
		}
		assert_int_equal(gsas_free(a), 0);
		assert_int_equal(gsas_read64(a, &value), -ESTALE);
		assert_int_equal(gsas_write64(end, 1), -ESTALE);
	}
	assert_true(rounds > 10);
	assert_true(lowest < gsas_base((uint32_t)g_first) + 4 * GSAS_SEGMENT);
}

/* A pointer into a segment that is gone lasts, even if there is another one
 * at its addresses, until the thread ends. */
static void test_pointers_last(void **state)
{
	gsas_addr a, b;
	uint64_t value;
	struct gsas_thread *t;
	size_t bytes;
	void *p;

	(void)state;
	assert_int_equal(gsas_thread_get(&t), 0);
	if (!t->windows)
		skip();
	a = host_alloc(300, 0, GSAS_MAPPED);
	assert_int_equal(gsas_map(a, &p, &bytes), 0);
	*(uint64_t *)p = 77;
	assert_int_equal(gsas_free(a), 0);
	for (int i = 0; i < 40; i++) {
		b = host_alloc(600, 0, GSAS_MAPPED);
		assert_int_equal(gsas_write64(b, 1), 0);
		assert_int_equal(gsas_read64(b + 4096, &value), 0);
		assert_int_equal(value, 0);
		assert_int_equal(gsas_free(b), 0);
	}
	*(volatile uint64_t *)p += 1;
	host_stop(0);
	assert_int_equal(gsas_read64(b, &value), -ECONNRESET);
	*(volatile uint64_t *)p += 1;
	host_start(0);
	/* freed before the service ended: memory that nobody else has */
	assert_true(*(volatile uint64_t *)p == 2 ||
		    *(volatile uint64_t *)p == 79);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses_come_again),
		cmocka_unit_test(test_pointers_last),
	};

	g_host_end = SPACE;
	host_boards();
	cmocka_set_test_filter(getenv("UNIT_TEST"));
	return cmocka_run_group_tests(tests, host_setup, host_teardown);
}
