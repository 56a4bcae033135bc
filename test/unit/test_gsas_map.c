/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_map.c - pointers of gsas_map(): they are valid for all threads,
 * also after the end of the thread that asked for them and of the service,
 * until gsas_unmap() was called as often. A thread knows a bounded number of
 * segments.
 */
#include "lib/gsas_services.h"

static struct {
	gsas_addr addr;
	uint64_t *ptr;
	size_t bytes;
	int ret;
} g;

static void *map_in_thread(void *arg)
{
	void *ptr = NULL;

	(void)arg;
	g.ret = gsas_map(g.addr, &ptr, &g.bytes);
	g.ptr = ptr;
	return NULL;
}

static void in_thread(void *(*fn)(void *))
{
	pthread_t thread = unit_thread(fn, NULL);

	pthread_join(thread, NULL);
}

static bool is_there(const void *ptr)
{
	unsigned char vec;
	uintptr_t page = (uintptr_t)ptr & ~(uintptr_t)(GSAS_PAGE - 1);

	return mincore((void *)page, 1, &vec) == 0;
}

/* The register model maps all memory at once; only its driver counts. In the
 * profile exanode the import of a thread is the same mapping. */
static void assert_gone(const void *ptr)
{
	struct gsas_thread *t;

	assert_int_equal(gsas_thread_get(&t), 0);
	if (t->hif->caps->flags & HAL_CAP_COHERENT)
		assert_false(is_there(ptr));
}

/* All threads use a pointer that another thread asked for, also after its
 * end. */
static void test_outlives_its_thread(void **state)
{
	uint64_t value;
	void *again;
	size_t bytes;

	g.addr = host_alloc(3, 0, GSAS_MAPPED);
	in_thread(map_in_thread);
	assert_int_equal(g.ret, 0);
	assert_int_equal(g.bytes, 3 * GSAS_PAGE);
	assert_true(is_there(g.ptr));
	assert_int_equal(gsas_write64(g.addr + 8, 5), 0);
	assert_int_equal(g.ptr[1], 5);
	atomic_store((_Atomic uint64_t *)&g.ptr[1], 6);
	assert_int_equal(host_read(g.addr + 8), 6);
	/* the same memory at the same address, each time */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gsas_map(g.addr + 16, &again, &bytes), 0);
		assert_ptr_equal(again, &g.ptr[2]);
		assert_int_equal(bytes, 3 * GSAS_PAGE - 16);
	}
	for (int i = 0; i < 4; i++) {
		assert_true(is_there(g.ptr));
		assert_int_equal(gsas_unmap((uint8_t *)g.ptr + i), 0);
	}
	assert_gone(g.ptr);
	assert_int_equal(gsas_unmap(g.ptr), -EINVAL);
	assert_int_equal(gsas_unmap(NULL), -EINVAL);
	assert_int_equal(gsas_unmap(&value), -EINVAL);
	/* operations have a mapping of their own */
	assert_int_equal(gsas_read64(g.addr + 8, &value), 0);
	assert_int_equal(gsas_free(g.addr), 0);
}

/* Pointers are valid after the end of the thread and of the service, and
 * nothing is left when they are unmapped. */
static void test_outlives_the_service(void **state)
{
	uint64_t *first, *second;
	gsas_addr a;

	g.addr = host_alloc(1, 0, GSAS_MAPPED);
	assert_int_equal(gsas_write64(g.addr, 7), 0);
	in_thread(map_in_thread);
	assert_int_equal(g.ret, 0);
	first = g.ptr;
	host_stop(0);
	assert_int_equal(*first, 7);
	host_start(0);
	/* the first call finds the end of the service */
	a = host_alloc(1, 1, 0);
	while (gsas_alloc(1, g_first, GSAS_MAPPED, NULL, &g.addr) != 0)
		;
	in_thread(map_in_thread);
	assert_int_equal(g.ret, 0);
	second = g.ptr;
	assert_ptr_not_equal(first, second);
	*second = 8;
	assert_int_equal(*first, 7);
	assert_int_equal(gsas_unmap(first), 0);
	assert_gone(first);
	assert_int_equal(*second, 8);
	assert_int_equal(gsas_unmap(second), 0);
	assert_int_equal(gsas_free(g.addr), 0);
	assert_int_equal(gsas_free(a), 0);
}

static void test_child_has_none(void **state)
{
	pid_t pid;

	g.addr = host_alloc(1, 0, GSAS_MAPPED);
	map_in_thread(NULL);
	assert_int_equal(g.ret, 0);
	pid = unit_fork();
	if (pid == 0)
		_exit(gsas_unmap(g.ptr) == -EINVAL && !is_there(g.ptr) ? 0 : 1);
	assert_int_equal(unit_exit_code(pid), 0);
	*g.ptr = 1;
	assert_int_equal(gsas_unmap(g.ptr), 0);
	assert_int_equal(gsas_free(g.addr), 0);
}

/* A thread asks once for each segment, however large, whether it can be mapped;
 * and it keeps the answers of a bounded number of segments. */
static void test_segments_known(void **state)
{
	enum { MANY = 8500, PAGES = 257 };
	static gsas_addr a[MANY];
	struct gsas_thread *t;
	uint64_t value, rng = 3;
	uint32_t before;

	assert_int_equal(gsas_thread_get(&t), 0);
	unit_needs(gsas_maps_board(t, 0));
	before = t->segments.count;
	for (unsigned flags = 0; flags <= GSAS_MAPPED; flags += GSAS_MAPPED) {
		a[0] = host_alloc(100000, 0, flags);
		for (int i = 0; i < 1000; i++)
			assert_int_equal(gsas_read64(a[0] + 4096 *
						     unit_below(&rng, 100000),
						     &value), 0);
		assert_int_equal(t->segments.count, ++before);
		assert_int_equal(gsas_free(a[0]), 0);
		before = t->segments.count;
	}
	for (int i = 0; i < MANY; i++) {
		a[i] = host_alloc(PAGES, 0, 0);
		assert_int_equal(gsas_write64(a[i], (uint64_t)i + 1), 0);
		if (i % 100 != 0)
			assert_int_equal(gsas_free(a[i]), 0);
	}
	assert_true(t->segments.count < MANY);
	for (int i = 0; i < MANY; i += 100) {
		assert_int_equal(host_read(a[i]), i + 1);
		assert_int_equal(gsas_free(a[i]), 0);
	}
}

HOST_MAIN(
	cmocka_unit_test(test_outlives_its_thread),
	cmocka_unit_test(test_outlives_the_service),
	cmocka_unit_test(test_child_has_none),
	cmocka_unit_test(test_segments_known),
)
