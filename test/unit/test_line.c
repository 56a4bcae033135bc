/* SPDX-License-Identifier: BSD-2-Clause */
/* test_line.c - hints on cache lines access nothing; whether a packet has come
 * behind the present one. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/unit.h"
#include "hal/hal.h"

#define CELLS	4u

/* Memory of which the second of three pages may not be accessed */
static uint8_t *pages_new(size_t page)
{
	uint8_t *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0x5A, 3 * page);
	assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
	return p;
}

static void pages_check(uint8_t *p, size_t page)
{
	for (size_t i = 0; i < 3 * page; i++)
		if (i < page || i >= 2 * page)
			assert_int_equal(p[i], 0x5A);
	munmap(p, 3 * page);
}

static void test_hints_access_nothing(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = pages_new(page);

	if (hal_line_can_claim()) {
		hal_line_claim(p, 3 * page);
		hal_line_claim(p + page, 0);
	}
	if (hal_line_can_demote())
		hal_line_demote(p, 3 * page);
	pages_check(p, page);
}

/* Number n, from 0 on, arrives in its slot. */
static void arrive(struct hal_cell *cells, uint64_t n)
{
	atomic_store(&cells[n % CELLS].head, (n + 1) & HAL_HEAD_ID_MASK);
}

static void test_more_sees_the_packet_behind(void **state)
{
	struct hal_cell cells[CELLS] = { 0 };
	struct hal_peer peer = { .rx = { .cells = cells, .mask = CELLS - 1 } };
	uint64_t head;

	for (uint64_t n = 0; n < 3 * CELLS; n++) {
		arrive(cells, n);
		assert_non_null(hal_rx_peek(&peer, &head));
		assert_false(hal_rx_more(&peer));
		arrive(cells, n + 1);
		assert_true(hal_rx_more(&peer));
		hal_rx_release(&peer);
	}
	peer.rx.cells = NULL;
	assert_false(hal_rx_more(&peer));
}

UNIT_MAIN(
	cmocka_unit_test(test_hints_access_nothing),
	cmocka_unit_test(test_more_sees_the_packet_behind),
)
