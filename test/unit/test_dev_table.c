/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_table.c - the device backend and the tables of holders
 * (hal_dev_table.c): entries that change while they are read, tables that
 * cannot be mapped, the process of a peer, and boards that are lost.
 */
#include "hal/dev/hal_dev_table.h"
#include "hal/hal_process.h"
#include "lib/dev_shim.h"

/* ---- Entries ----------------------------------------------------------- */

/* Changes an entry that was read; NULL: entries are not changed. */
static void (*change)(struct hal_kdev_entry *e);
static bool nonce_stays;		/* ... where only the nonce is read */

static void false_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
		       size_t len)
{
	struct hal_kdev_entry e;

	hal_sim_mmio_ops.load(map, off, dst, len);
	if (change == NULL || (len != sizeof(e) &&
			       (len != sizeof(e.nonce) || nonce_stays)))
		return;
	hal_sim_mmio_ops.load(map, off, &e, sizeof(e));
	change(&e);
	memcpy(dst, &e, len);
}

static void next_holder(struct hal_kdev_entry *e)
{
	e->nonce ^= 1;
}

/* The entry is another one whenever it is read between two reads of the
 * nonce. */
static void flicker(bool on)
{
	nonce_stays = on;
	change = on ? next_holder : NULL;
	io.load = on ? false_load : hal_sim_mmio_ops.load;
}

/* A pair on one board, so that both see each other's process. */
static struct pair pair_on_a_board(void)
{
	struct pair p = { 0 };

	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.b), 0);
	assert_true(until(&p, hal_connect(p.a, &p.b->addr, &p.ab) == 0));
	assert_true(until(&p, p.ba != NULL));
	return p;
}

/* An entry that changes all the time, or cannot be read, is not taken for an
 * end. */
static void table_is_not_read(void **state)
{
	struct pair p = pair();
	struct hal_key key = { { 0 } };
	struct hal_rmem *rmem;
	struct dev_if *dif = dev_if(p.a);
	struct hal_kdev_entry e;

	flicker(true);
	assert_int_equal(dev_holder(dif, 1, p.b->addr.iface, &e), -FI_EAGAIN);
	flicker(false);
	dif->io->unmap(&dif->tables[1]);
	lie.map_after = 0;
	assert_int_equal(dev_holder(dif, 1, p.b->addr.iface, &e), -FI_ENOMEM);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_ENOMEM);
	be_honest();
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EKEYREJECTED);
	unpair(&p);
}

static struct hal_if *releasing;

static void release(void)
{
	assert_int_equal(hal_sim_mmio_ops.ioctl(dev_if(releasing)->mm,
			 HAL_KDEV_IO_RELEASE, NULL), 0);
}

static void release_at_the_next(void)
{
	lie.meanwhile = release;
}

/* The holder ends after the nonce was read the first time: the entry is read
 * again, as a whole. */
static void entry_is_cleared_meanwhile(void **state)
{
	struct pair p = pair();
	struct hal_kdev_entry e;

	releasing = p.b;
	lie.meanwhile = release_at_the_next;
	lie.note = true;
	assert_int_equal(dev_holder(dev_if(p.a), 1, p.b->addr.iface, &e),
			 -FI_ECONNREFUSED);
	lie.note = false;
	assert_string_equal(order, "lmlmllmlml");
	assert_true(until(&p, p.dead_a == -FI_ECONNRESET));
	unpair(&p);
}

/* ---- The process of a peer --------------------------------------------- */

static void nobody(struct hal_kdev_entry *e)
{
	e->nonce = 0;
}

static void of_no_process(struct hal_kdev_entry *e)
{
	e->pid = 0;
}

static void started_before(struct hal_kdev_entry *e)
{
	e->pid_start--;
}

static void of_another_namespace(struct hal_kdev_entry *e)
{
	e->pid_ns++;
}

/* The entry of the peer's interface names the peer's process, unless another
 * process holds the interface now, or has the process's number. */
static void process_of_a_peer(void **state)
{
	static const struct {
		void (*change)(struct hal_kdev_entry *e);
		int ret;
	} entries[] = {
		{ next_holder, -FI_ECONNRESET }, { nobody, -FI_ECONNRESET },
		{ of_no_process, -FI_ENOSYS },
		{ started_before, -FI_ECONNRESET },
		{ of_another_namespace, -FI_ENOSYS },
	};
	struct pair p = pair_on_a_board();
	uint64_t id = 0;
	int fd;

	fd = hal_peer_process(p.ab, &id);
	assert_true(fd >= 0 && id == (uint64_t)getpid());
	close(fd);
	io.load = false_load;
	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		change = entries[i].change;
		id = 77;
		assert_int_equal(hal_peer_process(p.ab, &id), entries[i].ret);
		assert_true(id == 77);
	}
	change = NULL;
	dev_mark_gone(dev_peer(p.ab));
	assert_int_equal(hal_peer_process(p.ab, &id), -FI_ECONNRESET);
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(hal_peer_process(p.ab, &id), -FI_ECONNRESET);
	unpair(&p);
}

/* The process is not known while the entry changes, nor if it is another
 * kernel's. */
static void process_is_not_known(void **state)
{
	struct pair p = pair_on_a_board();
	uint64_t id = 77;

	flicker(true);
	assert_int_equal(hal_peer_process(p.ab, &id), -FI_EAGAIN);
	flicker(false);
	unpair(&p);
	close_hal();
	p = pair();
	assert_int_equal(hal_peer_process(p.ab, &id), -FI_ENOSYS);
	assert_true(id == 77);
	unpair(&p);
}

/* ---- Boards that are lost ---------------------------------------------- */

static unsigned bus_errors;

static int bus_error(const struct hal_mmio_map *map)
{
	(void)map;
	bus_errors++;
	return -EIO;
}

/* A load from a board ends in a bus error: all its peers end. Those that had
 * ended before keep their status. Nothing is stored to the board any more, also
 * not the end of a connection. */
static void board_is_lost(void **state)
{
	enum { PEERS = 3 };
	struct pair p[PEERS] = { pair() };
	struct hal_if *a = p[0].a;
	struct hal_event ev[4];

	for (int i = 1; i < PEERS; i++) {
		p[i].a = a;
		assert_int_equal(hal_if_open(hal, 1, &p[i].b), 0);
		assert_true(until(&p[i], hal_connect(a, &p[i].b->addr,
						     &p[i].ab) == 0));
		assert_true(until(&p[i], p[i].ba != NULL));
	}
	assert_int_equal(hal_space_ready(p[0].ab, 64), 0);
	/* p[1] has ended; p[2] has been marked, and ends at the next service */
	dev_disconnect(dev_peer(p[1].ab));
	assert_true(until(&p[1], p[1].ab->dead));
	dev_mark_gone(dev_peer(p[2].ab));
	lines = 0;
	bus_errors = 0;
	io.stores_before_notify = bus_error;
	for (int i = 0; i < 2; i++) {
		hal_space_write(p[0].ab, 0, "x", 1);
		hal_space_barrier(p[0].ab);
	}
	assert_non_null(strstr(said, "board 1 does not answer"));
	for (double end = now() + 5; now() < end && !(p[0].ab->dead &&
						       p[2].ab->dead);)
		hal_if_service(a, ev, 4);
	assert_true(p[0].ab->dead && p[2].ab->dead);
	assert_int_equal(dev_peer(p[0].ab)->ev_status, -FI_ECONNRESET);
	assert_int_equal(dev_peer(p[1].ab)->ev_status, -FI_EIO);
	assert_int_equal(dev_peer(p[2].ab)->ev_status, -FI_ECONNRESET);
	for (int i = 0; i < PEERS; i++)
		hal_peer_free(p[i].ab);
	assert_int_equal(bus_errors, 1);
	assert_int_equal(lines, 1);
	io.stores_before_notify = hal_sim_mmio_ops.stores_before_notify;
	for (int i = 1; i < PEERS; i++)
		hal_if_close(p[i].b);
	unpair(&p[0]);
}

UNIT_MAIN(
	DEV_TEST(table_is_not_read),
	DEV_TEST(entry_is_cleared_meanwhile),
	DEV_TEST(process_of_a_peer),
	DEV_TEST(process_is_not_known),
	DEV_TEST(board_is_lost),
)
