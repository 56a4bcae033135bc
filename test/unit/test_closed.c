/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_closed.c - a process frees a peer that has read its memory, and writes
 * there again: all reads are before that.
 *
 * Reader and owner are threads that do not synchronize in this file, so that
 * ThreadSanitizer reports a race unless the emulation orders the accesses. In
 * another build this test shows only that the status of the transfer is right.
 * test/model/closed.pml has every interleaving.
 */
#include "lib/connect_attempts.h"

#define LEN	4096

static struct hal_rmem *g_rmem;		/* the owner's region, for the reader */
static uint8_t g_got[LEN];		/* what the reader has read */

#define UNDER_WAY	1		/* no status is positive */
static _Atomic int g_status;		/* of the transfer */

/* Read the region; relaxed, so that the status orders nothing. */
static void *reader(void *arg)
{
	const struct hal_dma d = {
		.op = HAL_DMA_GET, .peer = attempts.vt, .rmem = g_rmem,
		.local = g_got, .len = LEN,
	};
	struct hal_dma_comp comp = { .status = hal_dma_post(attempts.v, &d, 7)};

	while (comp.status == 0 && hal_dma_poll(attempts.v, &comp, 1) == 0)
		;
	atomic_store_explicit(&g_status, comp.status, memory_order_relaxed);
	return arg;
}

static void test_reads_are_before_the_next_writes(void **state)
{
	struct hal_key key;
	struct hal_mem *mem;
	void *at;
	pthread_t thread;
	int ret = -FI_EAGAIN;

	assert_int_equal(hal_mem_alloc(attempts.hal, -1, LEN, &mem, &at), 0);
	assert_int_equal(hal_mem_key(attempts.hal, mem, &key), 0);
	memset(at, 1, LEN);
	ATTEMPTS_UNTIL((ret = hal_mem_import(attempts.vt, &key, &g_rmem)) !=
		       -FI_EAGAIN);
	assert_int_equal(ret, 0);
	atomic_store(&g_status, UNDER_WAY);
	thread = unit_thread(reader, NULL);
	while (atomic_load_explicit(&g_status, memory_order_relaxed) ==
	       UNDER_WAY)
		sched_yield();
	hal_peer_free(attempts.tv);
	for (int i = 0; i < LEN; i++)	/* a memset() that is inlined is not
					 * checked */
		((volatile uint8_t *)at)[i] = 2;
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&g_status), 0);
	for (int i = 0; i < LEN; i++)
		assert_int_equal(g_got[i], 1);
	hal_mem_release(attempts.vt, g_rmem);
	hal_mem_free(attempts.hal, mem);
}

UNIT_MAIN(
	ATTEMPTS_TEST(test_reads_are_before_the_next_writes),
)
