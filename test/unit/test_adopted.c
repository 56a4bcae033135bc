/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_adopted.c - the provider makes the arena of libunimem-malloc.so dmable.
 * The arena is here one of this test, which defines the function of
 * util/unm_arena.h: messages from any part of it are read in place.
 */
#include <fcntl.h>

#include "core/unm_ep_state.h"
#include "lib/ep_mem.h"
#include "lib/ep_xfer.h"
#include "util/unm_arena.h"

#define BYTES		((size_t)64 << 20)
#define LEN		((size_t)300 * 1000)
#define STATS(e) (((struct unm_ep *)(e)->ep)->stats)

static uint8_t *g_at;
static int g_fd = -1;
static bool g_unsealed;

int unimem_malloc_arena(struct unm_arena *arena)
{
	if (g_at != NULL)
		goto made;
	g_fd = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(g_fd >= 0);
	assert_int_equal(ftruncate(g_fd, BYTES), 0);
	if (!g_unsealed)
		assert_int_equal(fcntl(g_fd, F_ADD_SEALS, F_SEAL_SHRINK |
				       F_SEAL_GROW), 0);
	g_at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, g_fd, 0);
	assert_true(g_at != MAP_FAILED);
made:
	*arena = (struct unm_arena){ g_at, BYTES, g_fd };
	return 0;
}

static void message(struct ep_pair *p, uint8_t *out, uint8_t *in, uint64_t seed)
{
	struct ep_comp c;

	xfer_fill(out, LEN, seed, 0);
	memset(in, 0xEE, LEN);
	EP_OK(fi_trecv(p->b->ep, in, LEN, NULL, p->ba, 7, 0, in));
	EP_OK(fi_tsend(p->a->ep, out, LEN, NULL, p->ab, 7, out));
	c = ep_received(p->b, in);
	assert_int_equal(c.len, LEN);
	assert_memory_equal(in, out, LEN);
	ep_sent(p->a, out);
}

/* The first message asks for the memory, and later messages are read. Pages are
 * given back between, as the preload does. */
static void test_read_from_the_arena(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint8_t *in = ep_alloc(LEN), *out;
	uint64_t end = ep_deadline(), n;

	while (STATS(p.b)->rx_dmable == 0) {
		message(&p, g_at, in, 1);
		ep_in_time(end, "the import of the arena");
	}
	for (uint64_t i = 0; i < 20; i++) {
		n = STATS(p.b)->rx_dmable;
		out = g_at + i * (BYTES - LEN) / 19;
		message(&p, out, in, i);
		assert_int_equal(STATS(p.b)->rx_dmable, n + 1);
		madvise((void *)((uintptr_t)out & ~(uintptr_t)4095), LEN,
			MADV_REMOVE);
	}
	assert_int_equal(STATS(p.b)->rkey_misses, 1);
}

/* The heap of fi_unimem_mem(3) has no block in the arena. */
static void test_no_block_of_the_heap(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_unimem_mem_ops *ops;
	struct fi_unimem_mem_attr attr;
	void *at;

	assert_int_equal(fi_open_ops(&p.a->domain->fid, FI_UNIMEM_MEM, 0,
				     (void **)&ops, NULL), 0);
	assert_int_equal(ops->query(p.a->domain, g_at, &attr), -FI_ENOENT);
	assert_int_equal(ops->free(p.a->domain, g_at), -FI_EINVAL);
	assert_int_equal(ops->alloc(p.a->domain, 1000, 0, 0, &at), 0);
	assert_false((uintptr_t)at - (uintptr_t)g_at < BYTES);
	assert_int_equal(ops->query(p.a->domain, at, &attr), 0);
	assert_true(attr.segment_bytes < BYTES);
	assert_int_equal(ops->free(p.a->domain, at), 0);
}

/* Memory that peers would refuse is none; messages are sent otherwise. */
static void test_refused(void **state)
{
	struct ep_pair p;
	uint8_t *in = ep_alloc(LEN);

	g_unsealed = true;
	p = ep_pair(NULL);
	for (int i = 0; i < 5; i++)
		message(&p, g_at, in, (uint64_t)i);
	assert_int_equal(STATS(p.b)->rx_dmable, 0);
	g_unsealed = false;
}

/* The arena of a test ends with it. */
static int end(void **state)
{
	int ret = ep_teardown(state);

	if (g_at != NULL) {
		munmap(g_at, BYTES);
		close(g_fd);
		g_at = NULL;
	}
	return ret;
}

#define TEST(f)	{ #f, ep_test_inside, NULL, end, (void *)f }

UNIT_MAIN(
	TEST(test_read_from_the_arena),
	TEST(test_no_block_of_the_heap),
	TEST(test_refused),
)
