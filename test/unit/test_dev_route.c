/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_route.c - the device backend and routes to the memory of peers:
 * imports that are set up, imports that are requested and never fetched, too
 * many imports. Memory of the same board, which is mapped. Also transfers over
 * a route: which are refused, and how they end.
 */
#include "hal/dev/hal_dev_mem.h"
#include "lib/dev_shim.h"
#include "hal/sim/hal_sim.h"

/* Routes that were requested and are not wanted any more are released. */
static void unused_routes_are_released(void **state)
{
	struct pair p;
	struct hal_rmem *rmem;
	struct hal_event ev[4];
	struct hal_mem *mem;
	struct hal_key key;
	unsigned before;
	void *addr;

	/* the route is never ready */
	lie.sim = "world=92,tick=1,route=1000000000";
	p = pair_open();
	assert_int_equal(hal_mem_alloc(hal, 1, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	before = holds(p.a);
	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EAGAIN);
	assert_int_equal(hal_mem_import(p.ab, &key, &rmem), -FI_EAGAIN);
	assert_int_equal(holds(p.a), before + 3);
	/* b connects, and is released before its page is imported */
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
	struct pair p;

	lie.sim = sim;
	p = pair_open();
	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	return p;
}

/* Two simultaneous imports of one region by one interface, for two peers. Each
 * has a hold of its own, also when the first one is ready. */
static void imports_at_a_time(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=100000"), q = { 0 };
	unsigned before = holds(p.a);
	struct hal_rmem *rmem;
	struct hal_kdev_hold h;
	struct hal_mem *mem;
	struct hal_key key;

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

/* An import that fails for lack of routes, after an unused one before it in the
 * list was dropped. */
static void import_makes_room_and_fails(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=1000");
	unsigned before = holds(p.a);
	struct hal_rmem *rmem, *idle;
	struct hal_mem *mem[2];
	struct hal_key key[2];
	int ret;

	mem[0] = region_on(1, &key[0]);
	mem[1] = region_on(1, &key[1]);
	assert_int_equal(hal_mem_import(p.ab, &key[0], &rmem), -FI_EAGAIN);
	while ((ret = hal_mem_import(p.ab, &key[1], &idle)) == -FI_EAGAIN)
		;
	assert_int_equal(ret, 0);
	hal_mem_release(p.ab, idle);
	assert_int_equal(holds(p.a), before + 2);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 2, -ENOSPC);
	assert_int_equal(hal_mem_import(p.ab, &key[0], &rmem), -FI_ENOMEM);
	assert_null(dev_peer(p.ab)->rmems);
	assert_int_equal(holds(p.a), before);
	assert_int_equal(bad_drops, 0);
	be_honest();
	hal_mem_free(hal, mem[0]);
	hal_mem_free(hal, mem[1]);
	unpair(&p);
}

#define ASKED_FEW	64		/* hal_dev_mem.c: PENDING_MAX */
#define ASKED_US	110000		/* longer than PENDING_NS */

/* Imports that were requested and are never fetched are bounded. Later they are
 * dropped to make room for another import, and for the page of a new peer. */
static void imports_never_fetched(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=1000000000");
	unsigned before = holds(p.a);
	struct hal_rmem *rmem;
	struct hal_event ev[4];
	struct hal_mem *mem;
	struct hal_key key;

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
	lie.skip = 1;			/* import of the link page */
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

/* More imports than may be under way at a time: all succeed. */
static void many_imports_at_a_time(void **state)
{
	struct pair p = pair_in("world=92,tick=1,route=10000");
	struct hal_rmem *rmem[MANY] = { NULL };
	struct hal_mem *mem[MANY];
	struct hal_key key[MANY];
	int ready = 0;

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

static uint64_t loads(const struct pair *p)
{
	return sim_mm(dev_if(p->a)->mm)->loads;
}

/* An import checks by one load, of the nonce, whether the peer still holds its
 * interface: a new import, a repeated one, and one that finds a kept route. */
static void import_loads_once(void **state)
{
	struct pair p = pair_in("world=93,tick=1,route=10000");
	struct hal_rmem *rmem[3];
	uint64_t before, asked = 0;
	struct hal_key key;
	int ret;
	struct hal_mem *mem = region_on(1, &key);

	for (int i = 0; i < 3; i++) {
		before = loads(&p);
		asked = 0;
		do {
			ret = hal_mem_import(p.ab, &key, &rmem[i]);
			asked++;
		} while (ret == -FI_EAGAIN);
		assert_int_equal(ret, 0);
		assert_in_range(asked, i == 0 ? 2 : 1, i == 0 ? 100000 : 1);
		assert_int_equal(loads(&p) - before, asked);
		if (i == 1) {		/* the third finds a kept route */
			hal_mem_release(p.ab, rmem[0]);
			hal_mem_release(p.ab, rmem[1]);
		}
	}
	hal_mem_release(p.ab, rmem[2]);
	hal_mem_free(hal, mem);
	unpair(&p);
}

/* ---- Memory of the same board ------------------------------------------ */

/* How the driver's answers to an import are reported. */
static const struct {
	int driver, ret;
} answers[] = {
	{ -ESTALE, -FI_EKEYREJECTED }, { -EACCES, -FI_EKEYREJECTED },
	{ -ENOMEM, -FI_ENOMEM }, { -EAGAIN, -FI_EAGAIN },
};

#define ANSWERS	(sizeof(answers) / sizeof(answers[0]))

/* A failed import leaves nothing, whatever the driver's answer is, and the next
 * one succeeds. A key with another secret is another key, also while memory is
 * imported by the right one. */
static void imports_that_fail(void **state)
{
	struct pair p = pair_in("world=94");
	struct hal_rmem *rmem = NULL, *none = NULL;
	unsigned before = holds(p.a);
	struct hal_mem *mem;
	struct hal_key key;

	mem = region_on(0, &key);
	for (unsigned i = 0; i < ANSWERS; i++) {
		fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 1, answers[i].driver);
		assert_int_equal(hal_mem_import(p.ab, &key, &none),
				 answers[i].ret);
		assert_null(none);
		be_honest();
		assert_true(until(&p, hal_mem_import(p.ab, &key, &rmem) == 0));
		key.word[1] ^= 1;
		assert_int_equal(hal_mem_import(p.ab, &key, &none),
				 -FI_EKEYREJECTED);
		key.word[1] ^= 1;
		hal_mem_release(p.ab, rmem);
		assert_null(dev_peer(p.ab)->rmems);
		assert_int_equal(holds(p.a), before);
	}
	hal_mem_free(hal, mem);
	unpair(&p);
	assert_int_equal(bad_drops, 0);
}

/* The same for memory of another process that is opened for use as memory of
 * this one. The driver prepares nothing for it, so that -EAGAIN is an error;
 * memory of another board cannot be opened. */
static void opened_memory_that_fails(void **state)
{
	struct hal_mem *mem, *far, *opened = NULL;
	struct hal_key key, far_key;
	void *addr = NULL;

	assert_int_equal(open_hal(), 0);
	mem = region_on(0, &key);
	far = region_on(1, &far_key);
	for (unsigned i = 0; i < ANSWERS; i++) {
		fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 1, answers[i].driver);
		assert_int_equal(hal_mem_open(hal, &key, &opened, &addr),
				 answers[i].driver == -EAGAIN ? -FI_EIO :
				 answers[i].ret);
		be_honest();
	}
	lie.map_after = 0;
	assert_int_equal(hal_mem_open(hal, &key, &opened, &addr), -FI_ENOMEM);
	be_honest();
	assert_int_equal(hal_mem_open(hal, &far_key, &opened, &addr),
			 -FI_EINVAL);
	assert_null(opened);
	assert_null(addr);
	assert_int_equal(hal_mem_open(hal, &key, &opened, &addr), 0);
	hal_mem_free(hal, mem);
	hal_mem_free(hal, far);
	assert_true(hal->ops->mem_covers(hal, addr, 1));
	hal_mem_free(hal, opened);
	assert_false(hal->ops->mem_covers(hal, addr, 1));
	assert_int_equal(bad_drops, 0);
}

/* Memory of the same board is mapped once for all windows. If that fails there
 * is no window and one line, and the next call tries again. */
static void windows_are_mapped_once(void **state)
{
	struct pair p = pair_in("world=95");
	struct hal_window win, same;
	struct hal_rmem *rmem;
	struct hal_mem *mem;
	struct hal_key key;

	mem = region_on(0, &key);
	assert_true(until(&p, hal_mem_import(p.ab, &key, &rmem) == 0));
	lie.map_after = 0;
	lines = 0;
	hal_mem_window(p.ab, rmem, &win);
	assert_null(win.addr);
	assert_true(win.bytes == 0);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "transfers are used instead"));
	lie.map_after = 1;
	hal_mem_window(p.ab, rmem, &win);
	assert_non_null(win.addr);
	assert_true(win.bytes == 4096);
	hal_mem_window(p.ab, rmem, &same);
	assert_ptr_equal(same.addr, win.addr);
	assert_int_equal(lines, 1);
	be_honest();
	hal_mem_release(p.ab, rmem);
	hal_mem_free(hal, mem);
	/* a window to memory of another board would be Device memory */
	mem = region_on(1, &key);
	assert_true(until(&p, hal_mem_import(p.ab, &key, &rmem) == 0));
	hal_mem_window(p.ab, rmem, &win);
	assert_null(win.addr);
	hal_mem_release(p.ab, rmem);
	hal_mem_free(hal, mem);
	unpair(&p);
}

/* ---- Transfers --------------------------------------------------------- */

static struct hal_dma put(struct pair *p, struct hal_rmem *rmem, void *local)
{
	return (struct hal_dma){ .op = HAL_DMA_PUT, .peer = p->ab,
				 .rmem = rmem, .local = local, .len = 64 };
}

/* Each post is refused for one reason: nothing is started and nothing
 * completes. A post to a peer that has ended completes with -FI_ECANCELED. */
static void posts_are_checked(void **state)
{
	struct pair p = pair_in(NULL), q = { 0 };
	struct hal_dma_comp comp = { 0 };
	struct hal_rmem *rmem, *other;
	struct hal_mem *mem;
	struct hal_key key;
	struct hal_dma d;
	void *addr;

	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	assert_int_equal(hal_if_open(hal, 0, &q.a), 0);
	q.b = p.b;
	assert_true(until(&q, hal_connect(q.a, &p.b->addr, &q.ab) == 0));
	assert_true(until(&p, hal_mem_import(p.ab, &key, &rmem) == 0));
	assert_true(until(&q, hal_mem_import(q.ab, &key, &other) == 0));
	for (int i = 0; i < 4; i++) {
		d = put(&p, rmem, addr);
		if (i == 0)
			d.peer = NULL;
		else if (i == 1)	/* of another interface */
			d = put(&q, other, addr);
		else if (i == 2)
			d.local = NULL;
		else
			d.rmem = NULL;
		assert_int_equal(hal_dma_post(p.a, &d, 1), i < 3 ? -FI_EINVAL :
				 -FI_EACCES);
	}
	d = put(&q, rmem, addr);	/* imported by another */
	assert_int_equal(hal_dma_post(q.a, &d, 1), -FI_EINVAL);
	assert_int_equal(hal_dma_poll(p.a, &comp, 1), 0);
	d = put(&p, rmem, addr);
	hal_if_close(p.b);
	p.b = NULL;
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(hal_dma_post(p.a, &d, 5), 0);
	assert_int_equal(hal_dma_poll(p.a, &comp, 1), 1);
	assert_int_equal(comp.token, 5);
	assert_int_equal(comp.status, -FI_ECANCELED);
	hal_mem_release(p.ab, rmem);
	hal_mem_release(q.ab, other);
	hal_mem_free(hal, mem);
	hal_if_close(q.a);
	unpair(&p);
}

/* The identifiers that the driver reports: no transfer, a transfer that was not
 * started, none in that slot, another one in that slot, and the right one. */
static const uint64_t reported[] = { 0, 0x10002, 0x10003, 0x20001, 0x10001 };
static unsigned turn;

static ssize_t read_lies(struct hal_mmio *mm, void *buf, size_t len)
{
	static struct hal_kdev_status is;
	ssize_t n = sizeof(is);

	if (turn == sizeof(reported) / sizeof(reported[0]))
		return hal_sim_mmio_ops.read(mm, buf, len);
	if (turn == 0) {
		n = hal_sim_mmio_ops.read(mm, &is, sizeof(is));
		if (n != sizeof(is))
			return n;
		assert_true(is.id == 0x10001);
	}
	is.id = reported[turn++];
	memcpy(buf, &is, sizeof(is));
	return n;
}

static void statuses_of_nothing(void **state)
{
	struct pair p = pair_in(NULL);
	struct hal_dma_comp comp[2];
	struct hal_rmem *rmem;
	struct hal_mem *mem;
	struct hal_key key;
	struct hal_dma d;
	void *addr;

	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(hal, mem, &key), 0);
	assert_true(until(&p, hal_mem_import(p.ab, &key, &rmem) == 0));
	d = put(&p, rmem, addr);
	assert_int_equal(hal_dma_post(p.a, &d, 1), 0);
	lie.write_ret = 4;		/* a short write is not accepted */
	assert_int_equal(hal_dma_post(p.a, &d, 2), 0);
	turn = 0;
	io.read = read_lies;
	assert_true(until(&p, hal_dma_poll(p.a, comp, 2) != 0));
	assert_int_equal(turn, sizeof(reported) / sizeof(reported[0]));
	assert_int_equal(comp[0].token, 1);
	assert_int_equal(comp[0].status, 0);
	be_honest();
	assert_true(until(&p, hal_dma_poll(p.a, comp, 2) != 0));
	assert_int_equal(comp[0].token, 2);
	assert_int_equal(comp[0].status, 0);
	hal_mem_release(p.ab, rmem);
	hal_mem_free(hal, mem);
	unpair(&p);
}

UNIT_MAIN(
	DEV_TEST(import_loads_once),
	DEV_TEST(unused_routes_are_released),
	DEV_TEST(imports_at_a_time),
	DEV_TEST(import_makes_room_and_fails),
	DEV_TEST(imports_never_fetched),
	DEV_TEST(many_imports_at_a_time),
	DEV_TEST(imports_that_fail),
	DEV_TEST(opened_memory_that_fails),
	DEV_TEST(windows_are_mapped_once),
	DEV_TEST(posts_are_checked),
	DEV_TEST(statuses_of_nothing),
)
