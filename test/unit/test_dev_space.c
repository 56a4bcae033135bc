/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_space.c - the device backend and receive space that cannot be mapped
 * at once: packets that name data in it wait, and are not lost.
 */
#include <sys/timerfd.h>

#include "hal/dev/hal_dev_table.h"
#include "lib/dev_shim.h"

/* A pair whose packets name data in receive space that b cannot map, with this
 * error so many times. */
static struct pair pair_without_space(int err, int times)
{
	struct pair p = pair();

	assert_int_equal(send_word(p.ab, 0), 0);
	assert_true(until(&p, next_is(p.ba, 0)));
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	hal_space_write(p.ab, 8, "data", 5);
	hal_space_barrier(p.ab);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 0, times, err);
	lines = 0;
	for (uint64_t i = 1; i < 4; i++)
		assert_int_equal(send_word(p.ab, i), 0);
	return p;
}

/* Packets wait while the driver is short of memory for the receive space. */
static void space_waits(void **state)
{
	static const int errs[] = { -EAGAIN, -ENOSPC, -ENOMEM, -EMFILE };

	for (unsigned i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		struct pair p = pair_without_space(errs[i], i == 0 ? 3000 : 4);
		double end = now() + 5;

		while (lie.times > 0) {
			assert_true(now() < end);
			assert_null(p.ba->rx.space);
			assert_false(next_is(p.ba, 1));
			step(&p);
		}
		for (uint64_t w = 1; w < 4; w++)
			assert_true(until(&p, next_is(p.ba, w)));
		assert_string_equal((char *)p.ba->rx.space + 8, "data");
		assert_int_equal(lines, 1);
		assert_non_null(strstr(said, "waiting to map"));
		assert_int_equal(p.dead_b, 0);
		/* the next packets do not wait */
		assert_int_equal(send_word(p.ab, 4), 0);
		assert_true(until(&p, next_is(p.ba, 4)));
		unpair(&p);
		be_honest();
		close_hal();
	}
}

/* An import succeeds and its mapping fails, or the driver prepares it for long,
 * while the sender ends. Its hold is the one that ALLOC gave: the memory and
 * the packets are lost without it. */
static void space_keeps_its_hold(void **state)
{
	for (int prepares = 0; prepares < 2; prepares++) {
		struct pair p = pair_without_space(0, 0);

		if (prepares)
			lie.prepares = 2000;
		else
			lie.map_after = 0;
		assert_true(until(&p, lines == 1));
		assert_non_null(strstr(said, "waiting to map"));
		hal_if_close(p.a);
		p.a = NULL;
		for (int i = 0; i < 100; i++)
			step(&p);
		be_honest();
		assert_true(until(&p, p.dead_b != 0));
		for (uint64_t w = 1; w < 4; w++)
			assert_true(next_is(p.ba, w));
		assert_string_equal((char *)p.ba->rx.space + 8, "data");
		assert_int_equal(p.dead_b, -FI_ESHUTDOWN);
		unpair(&p);
		close_hal();
	}
	assert_int_equal(bad_drops, 0);
}

/* A peer is freed whose receive space is not mapped, before and after the first
 * try: nothing of it stays, and no line says that it waits. */
static void space_hold_is_dropped(void **state)
{
	for (unsigned tried = 0; tried < 2; tried++) {
		struct pair p = pair_without_space(0, 0);

		lie.map_after = 0;
		assert_true(until(&p, lines == tried));
		hal_peer_free(p.ba);
		p.ba = NULL;
		assert_int_equal(lines, tried);
		assert_int_equal(holds(p.b), 0);
		assert_int_equal(bad_drops, 0);
		be_honest();
		unpair(&p);
		close_hal();
	}
}

/* A process that sleeps tries again to map the space at the short interval. */
static void space_is_tried_asleep(void **state)
{
	struct pair p = pair_without_space(-ENOMEM, 1 << 30);
	struct itimerspec tick;

	assert_true(until(&p, lines == 1));
	assert_true(until(&p, hal_if_arm(p.b) == 0));
	assert_int_equal(timerfd_gettime(dev_if(p.b)->timer_fd, &tick), 0);
	assert_in_range(tick.it_value.tv_nsec, 1, 1000000);
	hal_if_disarm(p.b);
	be_honest();
	unpair(&p);
}

/* Unused routes are dropped for receive space. */
static void space_makes_room(void **state)
{
	struct hal_rmem *rmem = NULL;
	struct pair p = pair();
	struct hal_mem *mem;
	struct hal_key key;
	void *addr;

	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	assert_true(until(&p, hal_mem_import(p.ba, &key, &rmem) == 0));
	hal_mem_release(p.ba, rmem);
	assert_non_null(dev_peer(p.ba)->rmems);
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	assert_int_equal(send_word(p.ab, 1), 0);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 1, -ENOSPC);
	lines = 0;
	assert_true(until(&p, next_is(p.ba, 1)));
	assert_int_equal(lines, 0);
	assert_null(dev_peer(p.ba)->rmems);
	be_honest();
	hal_mem_free(hal, mem);
	unpair(&p);
}

/* The peer ends meanwhile: its packets wait for half a second more. If they are
 * lost then, the end is an error. */
static void space_waits_for_the_end(void **state)
{
	for (int enough = 0; enough < 2; enough++) {
		struct pair p = pair_without_space(-ENOMEM, 1 << 30);
		double start;

		assert_true(until(&p, lines == 1));
		hal_if_close(p.a);
		p.a = NULL;
		for (int i = 0; i < 100; i++)
			step(&p);
		start = now();
		if (enough)
			be_honest();
		assert_true(until(&p, p.dead_b != 0));
		assert_true(now() - start < 2);
		for (uint64_t w = 1; enough && w < 4; w++)
			assert_true(next_is(p.ba, w));
		assert_false(next_is(p.ba, 1));
		assert_int_equal(p.dead_b, enough ? -FI_ESHUTDOWN : -FI_EIO);
		be_honest();
		unpair(&p);
		close_hal();
	}
}

/* The peer withdraws the reference that its packets wait for, which breaks the
 * protocol: the packets are lost. */
static void space_is_withdrawn(void **state)
{
	struct pair p = pair_without_space(-ENOMEM, 1 << 30);

	assert_true(until(&p, lines == 1));
	atomic_store(&dev_rlink(dev_peer(p.ba))->space_ref, 0);
	assert_true(until(&p, lines == 2));
	assert_non_null(strstr(said, "cannot map the receive space"));
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(p.dead_b, -FI_EIO);
	assert_false(next_is(p.ba, 1));
	be_honest();
	unpair(&p);
}

/* The first packet that names data in receive space is refused, and its sender
 * closes: the space is mapped before the packets of the link page are shown. */
static void space_of_last_packets(void **state)
{
	for (int shortage = 0; shortage < 2; shortage++) {
		struct pair p, q = { 0 };

		lie.sim = "world=94,fifo=8,depth=16";
		p = pair();
		q.b = p.b;
		assert_int_equal(hal_if_open(hal, 0, &q.a), 0);
		assert_true(until(&q, hal_connect(q.a, &p.b->addr, &q.ab) ==
				  0));
		assert_true(until(&q, q.ba != NULL));
		/* fill the mailbox */
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(send_word(q.ab, i), 0);
		assert_int_equal(hal_space_ready(p.ab, 64), 0);
		hal_space_write(p.ab, 8, "data", 5);
		hal_space_barrier(p.ab);
		for (uint64_t w = 1; w < 4; w++)
			assert_int_equal(send_word(p.ab, w), 0);
		hal_if_close(p.a);
		p.a = NULL;
		fail_ioctl(HAL_KDEV_IO_IMPORT, 0, shortage * 4, -ENOMEM);
		assert_true(until(&p, p.dead_b != 0));
		assert_int_equal(p.dead_b, -FI_ESHUTDOWN);
		assert_non_null(p.ba->rx.space);
		assert_string_equal((char *)p.ba->rx.space + 8, "data");
		for (uint64_t w = 1; w < 4; w++)
			assert_true(next_is(p.ba, w));
		hal_if_close(q.a);
		unpair(&p);
		be_honest();
		close_hal();
	}
}

UNIT_MAIN(
	DEV_TEST(space_waits),
	DEV_TEST(space_keeps_its_hold),
	DEV_TEST(space_hold_is_dropped),
	DEV_TEST(space_is_tried_asleep),
	DEV_TEST(space_makes_room),
	DEV_TEST(space_waits_for_the_end),
	DEV_TEST(space_is_withdrawn),
	DEV_TEST(space_of_last_packets),
)
