/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_route.c - the device backend and routes to the memory of peers:
 * those that are set up, those that nobody fetches, and too many of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "dev_shim.h"

/* Routes that were asked for and are not wanted any more go back. */
static void routes_go_back(void **state)
{
	struct pair p = { 0 };
	struct hal_rmem *rmem;
	struct hal_event ev[4];
	struct hal_mem *mem;
	struct hal_key key;
	unsigned before;
	void *addr;

	(void)state;
	/* by the model's clock: it is never ready */
	lie.sim = "world=92,tick=1,route=1000000000";
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	assert_int_equal(hal_mem_alloc(hal, 1, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	before = holds(p.a);
	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EAGAIN);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EAGAIN);
	assert_int_equal(holds(p.a), before + 3);
	/* b answers it, and is let go of before its page is reached */
	assert_int_equal(hal_connect(p.b, &p.a->addr, &p.ba), 0);
	hal_if_service(p.a, ev, 4);
	assert_int_equal(holds(p.a), before + 5);
	hal_peer_free(p.ab);
	assert_int_equal(holds(p.a), before);
	hal_mem_free(hal, mem);
	unpair(&p);
}

static struct hal_mem *region_on(int board, struct hal_key *key)
{
	struct hal_mem *mem;
	void *addr;

	assert_int_equal(hal_mem_alloc(hal, board, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, key), 0);
	return mem;
}

static struct pair pair_in(const char *sim)
{
	struct pair p = { 0 };

	lie.sim = sim;
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	return p;
}

/* Two imports of one region that go on at a time: by one interface, of two
 * peers. Each has its own hold, as the first has when it is ready. */
static void imports_at_a_time(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=100000"), q = { 0 };
	unsigned before = holds(p.a);
	struct hal_rmem *rmem;
	struct hal_kdev_hold h;
	struct hal_mem *mem;
	struct hal_key key;

	(void)state;
	q.a = p.a;
	assert_int_equal(hal_if_open(hal, 1, &q.b), 0);
	assert_true(until(&p, hal_connect(q.a, &q.b->addr, &q.ab) == 0));
	mem = region_on(1, &key);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EAGAIN);
	assert_int_equal(hal_mem_import(q.ab, &key, &rmem), -FI_EAGAIN);
	/* a peer has two pages */
	assert_int_equal(holds(p.a), before + 4);
	assert_true(until(&p, hal_mem_import(p.ab, &key, &rmem) == 0));
	h.hold = dev_peer(p.ab)->rmems->hold;
	hal_peer_free(q.ab);
	assert_int_equal(io.ioctl(dev_if(p.a)->mm, HAL_KDEV_IO_CHECK, &h), 0);
	hal_mem_release(p.ab, rmem);
	hal_peer_free(p.ab);
	assert_int_equal(bad_drops, 0);
	hal_mem_free(hal, mem);
	hal_if_close(q.b);
	unpair(&p);
}

/* An import that fails for want of routes, after one was let go of that is
 * before it in the list. */
static void import_makes_room_and_fails(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=100000");
	unsigned before = holds(p.a);
	struct hal_rmem *rmem, *idle;
	struct hal_mem *mem[2];
	struct hal_key key[2];

	(void)state;
	mem[0] = region_on(1, &key[0]);
	mem[1] = region_on(0, &key[1]);
	assert_int_equal(hal_mem_import(p.ab, &key[0], &rmem), -FI_EAGAIN);
	assert_int_equal(hal_mem_import(p.ab, &key[1], &idle), 0);
	hal_mem_release(p.ab, idle);
	assert_int_equal(holds(p.a), before + 2);
	lie.cmd = HAL_KDEV_IO_IMPORT;
	lie.times = 2;
	lie.ret = -ENOSPC;
	assert_int_equal(hal_mem_import(p.ab, &key[0], &rmem), -FI_ENOMEM);
	assert_null(dev_peer(p.ab)->rmems);
	assert_int_equal(holds(p.a), before);
	assert_int_equal(bad_drops, 0);
	be_honest();
	hal_mem_free(hal, mem[0]);
	hal_mem_free(hal, mem[1]);
	unpair(&p);
}

#define ASKED_FEW	64		/* hal_dev_mem.c: ASKED_MAX */
#define ASKED_US	110000		/* and more than ASKED_NS */

/* What is asked for and never fetched is bounded, and makes room later: for
 * one more, and for the page of a new peer. */
static void imports_never_fetched(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=1000000000");
	unsigned before = holds(p.a);
	struct hal_rmem *rmem;
	struct hal_event ev[4];
	struct hal_mem *mem;
	struct hal_key key;

	(void)state;
	for (int i = 0; i < 5 * ASKED_FEW; i++) {
		mem = region_on(1, &key);
		assert_int_equal(hal_mem_import(p.ab, &key, &rmem),
				 -FI_EAGAIN);
		hal_mem_free(hal, mem);
		assert_in_range(holds(p.a), before, before + ASKED_FEW);
	}
	mem = region_on(1, &key);
	usleep(ASKED_US);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EAGAIN);
	assert_memory_equal(&dev_peer(p.ab)->rmems->key, &key, sizeof(key));
	usleep(ASKED_US);
	assert_int_equal(hal_connect(p.b, &p.a->addr, &p.ba), 0);
	lie.cmd = HAL_KDEV_IO_IMPORT;
	lie.skip = 1;			/* the link page */
	lie.times = 1;
	lie.ret = -ENOSPC;
	hal_if_service(p.a, ev, 4);
	assert_int_equal(holds(p.a), before + 2);
	assert_int_equal(bad_drops, 0);
	be_honest();
	hal_mem_free(hal, mem);
	unpair(&p);
}

#define MANY	(3 * ASKED_FEW)

/* More than are set up at a time: all get theirs. */
static void many_imports_at_a_time(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=10000");
	struct hal_rmem *rmem[MANY] = { NULL };
	struct hal_mem *mem[MANY];
	struct hal_key key[MANY];
	int ready = 0;

	(void)state;
	for (int i = 0; i < MANY; i++)
		mem[i] = region_on(1, &key[i]);
	for (double end = now() + 5; ready != MANY && now() < end;)
		for (int i = 0; i < MANY; i++)
			ready += rmem[i] == NULL &&
				 hal_mem_import(p.ab, &key[i], &rmem[i]) == 0;
	assert_int_equal(ready, MANY);
	for (int i = 0; i < MANY; i++) {
		hal_mem_release(p.ab, rmem[i]);
		hal_mem_free(hal, mem[i]);
	}
	unpair(&p);
	assert_int_equal(bad_drops, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEV_TEST(routes_go_back),
		DEV_TEST(imports_at_a_time),
		DEV_TEST(import_makes_room_and_fails),
		DEV_TEST(imports_never_fetched),
		DEV_TEST(many_imports_at_a_time),
	};

	return unit_run(tests);
}
