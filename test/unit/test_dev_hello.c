/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_hello.c - the device backend while it connects to a peer: the
 * contents and the owner of the pages that a HELLO names, and peers that end
 * meanwhile.
 */
#include "hal/dev/hal_dev_region.h"
#include "hal/dev/hal_dev_table.h"
#include "lib/dev_shim.h"

/* a has sent a HELLO that b has not received. */
static struct pair half(void)
{
	struct pair p = pair_open();

	assert_true(until(&(struct pair){ .a = p.a },
			  hal_connect(p.a, &p.b->addr, &p.ab) == 0));
	return p;
}

static void over(struct pair *p)
{
	unpair(p);
	assert_int_equal(bad_drops, 0);
	be_honest();
	close_hal();
}

static void another_magic(struct dev_link *link)
{
	link->magic ^= 1;
}

static void another_space(struct dev_link *link)
{
	link->space_bytes *= 2;
}

/* Each word of the link page on which both sides must agree. */
static void link_page_differs(void **state)
{
	static void (*const change[])(struct dev_link *) = {
		another_magic, another_space,
	};

	for (unsigned i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		struct pair p = half();

		change[i](dev_peer(p.ab)->link.map.base);
		assert_true(until(&p, p.dead_a != 0));
		assert_int_equal(p.dead_a, -FI_ECONNREFUSED);
		assert_null(p.ba);
		over(&p);
	}
}

/* If the link page can never be imported, the backend does not wait for ever.
 * The peer gets no answer, because the page for the answer cannot be imported
 * either. */
static void link_page_never_comes(void **state)
{
	struct pair p = half();
	struct hal_event ev[4];

	fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 1 << 30, -EAGAIN);
	for (int i = 0; i < 4; i++)
		assert_int_equal(hal_if_service(p.b, ev, 4), 0);
	assert_true(lie.times < 1 << 30);
	be_honest();
	for (int i = 0; i < 100; i++)
		step(&p);
	assert_null(p.ba);
	assert_int_equal(p.dead_b, 0);
	over(&p);
}

/* Mappings fail at first. A peer is accepted only once the table of its board
 * is mapped, so that each store of the end is read back. */
static void accept_waits_for_the_table(void **state)
{
	struct pair p = half();

	dev_if(p.b)->lookup_at = UINT64_MAX;	/* nobody else maps the table */
	for (int i = 0; p.ba == NULL && i < 4; i++) {
		lie.map_after = 1;
		assert_true(until(&p, lie.map_after == 0));
	}
	assert_non_null(p.ba);
	lie.map_after = 0;
	lie.note = true;
	hal_if_close(p.b);
	p.b = NULL;
	lie.note = false;
	assert_string_equal(order, "slnsln");
	be_honest();
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(p.dead_a, -FI_ESHUTDOWN);
	over(&p);
}

/* Receive space that is too small, or that lies on the sender's board instead
 * of the receiver's. */
static void space_is_not_where_it_should_be(void **state)
{
	for (uint32_t board = 0; board < 2; board++) {
		struct pair p = pair();
		struct dev_peer *ab = dev_peer(p.ab);
		struct dev_link *link = ab->link.map.base;
		struct dev_region r = { 0 };

		assert_int_equal(dev_region_alloc(dev_if(p.a)->mm, board,
				 board == 0 ? hal->caps.space_bytes : DEV_PAGE,
				 77, ab->identity, &r), 0);
		link->space_secret = 77;
		atomic_store(&link->space_ref, r.ref);
		assert_int_equal(send_word(p.ab, 1), 0);
		assert_true(until(&p, p.dead_b != 0));
		assert_int_equal(p.dead_b, -FI_EIO);
		assert_non_null(strstr(said, "cannot map the receive space"));
		dev_region_drop(&r);
		over(&p);
	}
}

/* Stores and barriers to a peer that has ended are not executed. */
static void space_of_the_dead(void **state)
{
	struct pair p = pair();

	assert_int_equal(hal_space_ready(p.ab, 0), 0);
	assert_null(dev_peer(p.ab)->space.mm);
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	hal_space_write(p.ab, 0, "x", 1);
	hal_space_barrier(p.ab);
	hal_if_close(p.b);
	p.b = NULL;
	assert_true(until(&p, p.dead_a != 0));
	lie.note = true;
	hal_space_write(p.ab, 0, "x", 1);
	hal_space_barrier(p.ab);
	lie.note = false;
	assert_string_equal(order, "");
	over(&p);
}

static uint32_t own_uid;

static void foreign_entry(const struct hal_mmio_map *map, uint64_t off,
			  void *dst, size_t len)
{
	hal_sim_mmio_ops.load(map, off, dst, len);
	if (len == sizeof(struct hal_kdev_entry))
		((struct hal_kdev_entry *)dst)->uid = own_uid + 1;
}

/* A table entry of an interface that belongs to another user. */
static void peer_of_another_user(void **state)
{
	struct hal_peer *peer = NULL;
	struct pair p = pair_open();
	struct hal_addr addr = p.b->addr;

	own_uid = addr.uid++;
	io.load = foreign_entry;
	assert_int_equal(hal_connect(p.a, &addr, &peer), -FI_EACCES);
	assert_null(peer);
	io.load = hal_sim_mmio_ops.load;
	over(&p);
}

/* The peer ended and is not freed yet, or was just disconnected, when its
 * interface sends another HELLO: the new connection has a second object. */
static void hello_after_an_end(void **state)
{
	for (int cut = 0; cut < 2; cut++) {
		struct pair p = pair(), only_a = { .a = p.a };
		struct hal_peer *old = p.ba;

		if (cut)
			dev_disconnect(dev_peer(old));
		hal_peer_free(p.ab);
		if (!cut)
			assert_true(until(&p, p.dead_b != 0));
		p.ba = NULL;
		assert_true(until(&only_a, hal_connect(p.a, &p.b->addr,
						       &p.ab) == 0));
		assert_int_equal(send_word(p.ab, 9), 0);
		assert_true(until(&p, p.dead_b != 0));
		assert_int_equal(p.dead_b, cut ? -FI_EIO : -FI_ECONNRESET);
		hal_peer_free(old);
		assert_true(until(&p, p.ba != NULL));
		assert_true(until(&p, next_is(p.ba, 9)));
		over(&p);
	}
}

/* A peer that has connected first was connected, whatever notices its end. */
static void connect_back_finds_the_end(void **state)
{
	struct pair p = pair_open();
	struct hal_addr addr = p.a->addr;
	struct hal_peer *peer = NULL;

	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	assert_true(until(&p, p.ba != NULL));
	hal_if_close(p.a);
	p.a = NULL;
	assert_int_equal(hal_connect(p.b, &addr, &peer), -FI_EAGAIN);
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(p.dead_b, -FI_ESHUTDOWN);
	assert_int_equal(hal_connect(p.b, &addr, &peer), -FI_ECONNREFUSED);
	assert_null(peer);
	unpair(&p);
}

UNIT_MAIN(
	DEV_TEST(link_page_differs),
	DEV_TEST(link_page_never_comes),
	DEV_TEST(accept_waits_for_the_table),
	DEV_TEST(space_is_not_where_it_should_be),
	DEV_TEST(space_of_the_dead),
	DEV_TEST(peer_of_another_user),
	DEV_TEST(hello_after_an_end),
	DEV_TEST(connect_back_finds_the_end),
)
