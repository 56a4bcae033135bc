/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_nodes.h - two boards with services in this process, for tests of
 * libunimem-rdma, which is on the first board
 */
#ifndef RDMA_NODES_H
#define RDMA_NODES_H

#include <errno.h>

#include "lib/gsas_services.h"
#include "unimem/unim_dma.h"

#define PAGE	4096
#define LONG_MS	60000			/* longer than any transfer takes */

static inline unim_node_id_t node_of(int i)
{
	return (unim_node_id_t)(g_first + i);
}

static inline int library_setup(void **state)
{
	(void)state;
	return unim_dma_init(node_of(0));
}

static inline int library_teardown(void **state)
{
	(void)state;
	unim_dma_cleanup();
	return 0;
}

/* A test that finds the library open, and closes it. */
#define RDMA_TEST(test)							\
	cmocka_unit_test_setup_teardown(test, library_setup,		\
					library_teardown)

static inline unim_dma_buffer_t *buffer_on(int i, uint64_t bytes)
{
	unim_dma_buffer_t *buf = NULL;

	assert_int_equal(unim_dma_alloc(bytes, UNIM_DMA_NODE, node_of(i),
					&buf), 0);
	return buf;
}

/* Does a transfer complete? */
static inline void completes(unim_dma_transfer_id_t id)
{
	assert_true(id != 0);
	assert_int_equal(unim_dma_wait(id, LONG_MS), 0);
	assert_int_equal(unim_dma_status(id), DMA_COMPLETED);
	assert_int_equal(unim_dma_error(), 0);
}

static inline uint8_t pattern(uint64_t seed, uint64_t i)
{
	return (uint8_t)((i + 1) * (2 * seed + 1) >> 3 ^ i >> 8 ^ seed);
}

static inline void fill(uint8_t *at, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		at[i] = pattern(seed, i);
}

static inline bool filled(const uint8_t *at, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (at[i] != pattern(seed, i))
			return false;
	return true;
}

#endif /* RDMA_NODES_H */
