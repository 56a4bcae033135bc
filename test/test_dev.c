/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev.c - what can go wrong between the device backend and its hardware,
 * driver and peers. A shim over the register model makes single calls fail and
 * single registers lie; peers lie by what they send and store.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hal_dev.h"
#include "unit.h"

/* ---- The shim ---------------------------------------------------------- */

static struct hal_mmio_ops io;		/* the model's, some replaced */
static struct hal_ops ops;
static struct hal *hal;
static char said[512];

static struct {
	unsigned long cmd;		/* ioctl that fails, 0: none */
	int skip, times, ret;		/* how often it does not, does, with */
	int map_after;			/* maps that work; -1: all */
	int open_ret, probe_ret;
	int event_ret;
	int write_ret;			/* 0: as the model */
	uint32_t state;			/* of transfers, 0: as the model */
	uint64_t pif_status;		/* of a packet that is over, 0: model */
	uint32_t sr_or, sr_and_not;	/* of the engine */
	uint32_t cr_or;
	uint32_t engine;		/* enum hal_platform_engine */
	struct hal_kdev_info info;	/* fields not 0: lies */
	uint32_t platform_board;	/* UINT32_MAX: the model's */
} lie;

static int shim_probe(const struct hal_params *params, struct hal_platform *pf)
{
	int ret = hal_sim_mmio_ops.probe(params, pf);

	pf->engine = (enum hal_platform_engine)lie.engine;
	return lie.probe_ret != 0 ? lie.probe_ret : ret;
}

static int shim_open(const struct hal_platform *pf, uint32_t board,
		     struct hal_mmio **mm)
{
	int ret = lie.open_ret;

	if (ret == 0)
		ret = hal_sim_mmio_ops.open(pf, board, mm);
	if (ret == 0)
		(*mm)->ops = &io;
	return ret;
}

static int shim_ioctl(struct hal_mmio *mm, unsigned long cmd, void *arg)
{
	int ret;

	if (cmd == lie.cmd && lie.skip-- <= 0 && lie.times-- > 0)
		return lie.ret;
	ret = hal_sim_mmio_ops.ioctl(mm, cmd, arg);
	if (cmd == HAL_KDEV_IO_INFO && ret == 0) {
		struct hal_kdev_info *info = arg;

		if (lie.info.version != 0)
			info->version = lie.info.version;
		if (lie.info.magic != 0)
			info->magic = lie.info.magic;
		if (lie.info.boards != 0)
			info->boards = lie.info.boards;
		if (lie.info.fifo_words != 0)
			info->fifo_words = lie.info.fifo_words;
	}
	return ret;
}

static int shim_map(struct hal_mmio *mm, uint64_t off, size_t len,
		    struct hal_mmio_map *map)
{
	int ret;

	if (lie.map_after == 0)
		return -ENOMEM;
	if (lie.map_after > 0)
		lie.map_after--;
	ret = hal_sim_mmio_ops.map(mm, off, len, map);
	map->ops = &io;
	return ret;
}

static int shim_event_fd(struct hal_mmio *mm)
{
	return lie.event_ret != 0 ? lie.event_ret :
	       hal_sim_mmio_ops.event_fd(mm);
}

static ssize_t shim_write(struct hal_mmio *mm, const void *buf, size_t len)
{
	return lie.write_ret != 0 ? lie.write_ret :
	       hal_sim_mmio_ops.write(mm, buf, len);
}

static ssize_t shim_read(struct hal_mmio *mm, void *buf, size_t len)
{
	ssize_t n = hal_sim_mmio_ops.read(mm, buf, len);
	struct hal_kdev_status *st = buf;

	for (ssize_t i = 0; lie.state != 0 &&
	     i < n / (ssize_t)sizeof(*st); i++)
		st[i].state = lie.state;
	return n;
}

static void shim_read128(const struct hal_mmio_map *map, uint32_t off,
			 uint64_t w[2])
{
	hal_sim_mmio_ops.read128(map, off, w);
	if (off == HAL_PIF_STATUS && lie.pif_status != 0 &&
	    !(w[0] & HAL_PIF_PEND))
		w[0] = lie.pif_status & HAL_PIF_STATUS_MASK;
}

static uint32_t shim_read32(const struct hal_mmio_map *map, uint32_t off)
{
	uint32_t val = hal_sim_mmio_ops.read32(map, off);

	if (off == HAL_CDMA_SR)
		val = (val | lie.sr_or) & ~lie.sr_and_not;
	if (off == HAL_CDMA_CR)
		val |= lie.cr_or;
	return val;
}

static int shim_hal_open(const struct hal_params *params, struct hal **out)
{
	return dev_open_with(&ops, &io, params, out);
}

/* ---- Fixture ----------------------------------------------------------- */

static int fds_before;

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void listen_to(int level, const char *line)
{
	(void)level;
	snprintf(said, sizeof(said), "%s", line);
}

static int hal_open(void)
{
	struct hal_params params;
	int ret;

	ret = hal_params_load(&params);
	if (ret != 0)
		return ret;
	snprintf(params.hal, sizeof(params.hal), "sim");
	params.boards = 2;
	said[0] = '\0';
	return ops.open(&params, &hal);
}

static void be_honest(void)
{
	memset(&lie, 0, sizeof(lie));
	lie.map_after = -1;
}

static int setup(void **state)
{
	(void)state;
	io = hal_sim_mmio_ops;
	io.probe = shim_probe;
	io.open = shim_open;
	io.ioctl = shim_ioctl;
	io.map = shim_map;
	io.event_fd = shim_event_fd;
	io.write = shim_write;
	io.read = shim_read;
	io.read128 = shim_read128;
	io.read32 = shim_read32;
	ops = hal_sim_ops;
	ops.open = shim_hal_open;
	be_honest();
	hal = NULL;
	hal_log_set(listen_to);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	be_honest();
	if (hal != NULL)
		hal->ops->close(hal);
	hal_log_set(NULL);
	return 0;
}

/* ---- Two interfaces ---------------------------------------------------- */

struct pair {
	struct hal_if *a, *b;
	struct hal_peer *ab, *ba;
	int dead_a, dead_b;		/* status, 0: no news of an end */
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void step(struct pair *p)
{
	struct hal_if *const hifs[] = { p->a, p->b };
	struct hal_event ev[8];

	for (int i = 0; i < 2; i++) {
		int n;

		if (hifs[i] == NULL)
			continue;
		hal_if_pump(hifs[i]);
		n = hal_if_service(hifs[i], ev, 8);
		for (int k = 0; k < n; k++) {
			if (i == 1 && ev[k].type == HAL_EV_INBOUND)
				p->ba = ev[k].peer;
			if (ev[k].type == HAL_EV_DEAD)
				*(i == 0 ? &p->dead_a : &p->dead_b) =
					ev[k].status;
		}
	}
}

/* Until a condition holds; false: it does not within a few seconds. */
#define until(p, what)							\
	({								\
		double end_ = now() + 5;				\
		bool is_;						\
									\
		while (!(is_ = (what)) && now() < end_)			\
			step(p);					\
		is_;							\
	})

static struct pair pair(void)
{
	struct pair p = { 0 };
	int ret = -FI_EAGAIN;

	assert_int_equal(hal_open(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	until(&p, (ret = hal_connect(p.a, &p.b->addr, &p.ab)) != -FI_EAGAIN);
	assert_int_equal(ret, 0);
	assert_true(until(&p, p.ba != NULL));
	return p;
}

static void unpair(struct pair *p)
{
	if (p->a != NULL)
		hal_if_close(p->a);
	if (p->b != NULL)
		hal_if_close(p->b);
}

static int send_word(struct hal_peer *peer, uint64_t word)
{
	return hal_pkt_send(peer, hal_head(1, 0), &word, 1, NULL, 0);
}

static bool next_is(struct hal_peer *peer, uint64_t word)
{
	const struct hal_cell *cell;
	uint64_t head;

	cell = hal_rx_peek(peer, &head);
	if (cell == NULL || hal_cell_word(cell, 0) != word)
		return false;
	hal_rx_release(peer);
	hal_rx_flush(peer);
	return true;
}

/* ---- Opening ----------------------------------------------------------- */

static void open_says_what_is_missing(void **state)
{
	static const struct { int err; const char *says; } bad[] = {
		{ -ENOENT, "modprobe" }, { -ENODEV, "modprobe" },
		{ -EACCES, "usermod" }, { -EPERM, "usermod" },
		{ -EMFILE, "ulimit -n" }, { -ENOMEM, "cannot open" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lie.open_ret = bad[i].err;
		assert_true(hal_open() < 0);
		assert_null(hal);
		assert_non_null(strstr(said, bad[i].says));
	}
	be_honest();
	lie.probe_ret = -FI_EINVAL;
	assert_int_equal(hal_open(), -FI_EINVAL);
}

static void open_checks_the_driver(void **state)
{
	(void)state;
	lie.info.version = HAL_KDEV_VERSION + 1;
	assert_int_equal(hal_open(), -FI_ENODEV);
	assert_non_null(strstr(said, "speaks version"));
	be_honest();
	lie.info.magic = 1;
	assert_int_equal(hal_open(), -FI_ENODEV);
	assert_non_null(strstr(said, "no unimem device"));
	be_honest();
	lie.info.boards = HAL_REG_BOARDS_MAX + 1;
	assert_int_equal(hal_open(), -FI_ENODEV);
	assert_non_null(strstr(said, "nonsense"));
	be_honest();
	lie.info.fifo_words = 7;
	assert_int_equal(hal_open(), -FI_ENODEV);
	be_honest();
	lie.cmd = HAL_KDEV_IO_INFO;
	lie.times = 1;
	lie.ret = -ENOTTY;
	assert_int_equal(hal_open(), -FI_ENODEV);
	assert_null(hal);
}

/* Whatever fails when an interface is opened leaves nothing of it. */
static void if_open_fails_cleanly(void **state)
{
	static const unsigned long cmds[] = { HAL_KDEV_IO_INFO,
					      HAL_KDEV_IO_CLAIM };
	struct hal_if *hif = NULL;

	(void)state;
	assert_int_equal(hal_open(), 0);
	assert_int_equal(hal_if_open(hal, 0, &hif), 0);
	hal_if_close(hif);
	hif = NULL;
	fds_before = descriptors();
	for (int i = 0; i < 2; i++) {
		lie.map_after = i;
		assert_true(hal_if_open(hal, 0, &hif) < 0);
		be_honest();
	}
	for (int i = 0; i < 2; i++) {
		lie.cmd = cmds[i];
		lie.times = 1;
		lie.ret = -EIO;
		assert_true(hal_if_open(hal, 0, &hif) < 0);
		be_honest();
	}
	lie.cmd = HAL_KDEV_IO_CLAIM;
	lie.times = 1;
	lie.ret = -EBUSY;
	assert_int_equal(hal_if_open(hal, 0, &hif), -FI_EBUSY);
	assert_non_null(strstr(said, "no free interface"));
	be_honest();
	lie.event_ret = -EMFILE;
	assert_true(hal_if_open(hal, 0, &hif) < 0);
	be_honest();
	lie.open_ret = -EMFILE;
	assert_true(hal_if_open(hal, 0, &hif) < 0);
	be_honest();
	assert_null(hif);
	assert_int_equal(descriptors(), fds_before);
	assert_int_equal(hal_if_open(hal, 0, &hif), 0);
	hal_if_close(hif);
}

/* ---- Packetizer [D 5.2.3] ---------------------------------------------- */

/* An end of a packet that is no answer ends the peer, and no other. */
static void packet_without_an_answer(void **state)
{
	static const uint64_t ends[] = { HAL_PIF_ILLEGAL, HAL_PIF_OVERWR,
					 UINT64_C(1) << 32 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct pair p = pair();

		assert_int_equal(send_word(p.ab, 1), 0);
		lie.pif_status = ends[i];
		assert_true(until(&p, p.dead_a != 0));
		be_honest();
		assert_int_equal(p.dead_a, -FI_EIO);
		assert_non_null(strstr(said, "ended with status"));
		assert_int_equal(i == 0, strstr(said, "BASE_DEST") != NULL);
		assert_int_equal(send_word(p.ab, 2), 0);
		hal_peer_free(p.ab);
		assert_true(until(&p, p.dead_b != 0));
		unpair(&p);
		hal->ops->close(hal);
		hal = NULL;
	}
}

/* ---- Peers that lie ---------------------------------------------------- */

/* Who sends more than was released to it is cut off. */
static void peer_sends_too_much(void **state)
{
	struct pair p = pair();
	uint32_t depth = hal->caps.pkt_depth;

	(void)state;
	for (uint32_t i = 0; i <= 2 * depth && p.dead_b == 0; i++) {
		atomic_store(&p.ab->tx.back->done, hal_tx_sent(p.ab));
		send_word(p.ab, i);
		step(&p);
	}
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(p.dead_b, -FI_EIO);
	assert_non_null(strstr(said, "more than was released"));
	for (uint32_t i = 0; i < depth; i++)
		assert_true(next_is(p.ba, i));
	unpair(&p);
}

/* A HELLO as a sender may write it; nothing comes of those that lie. */
static void hello(struct pair *p, uint8_t flags, uint64_t nonce, uint64_t back,
		  uint64_t link)
{
	uint64_t w[3] = { nonce, back, link };

	assert_true(until(p, hal_pkt_send(p->ab, hal_head(DEV_PKT_HELLO, flags),
					  w, 3, NULL, 0) == 0));
	for (int i = 0; i < 200; i++)
		step(p);
}

static void peer_hello_lies(void **state)
{
	struct pair p = pair();
	struct dev_peer *ab = dev_peer(p.ab);
	uint64_t nonce = p.b->addr.nonce;
	uint8_t flags = DEV_WIRE << 4 | 4;

	(void)state;
	hello(&p, flags, nonce ^ 1, ab->back.ref, ab->link.ref);
	hello(&p, flags, nonce, ab->back.ref, ab->link.ref);
	hello(&p, flags, nonce, 1, 2);
	assert_int_equal(p.dead_b, 0);
	assert_int_equal(p.b->ninbound, 1);
	/* where it may say one, the pages must be its own, and there */
	hal_peer_free(p.ba);
	p.ba = NULL;
	hello(&p, flags, nonce, 1, 2);
	hello(&p, flags, nonce, ab->link.ref, ab->back.ref);
	hello(&p, flags | 0xF0, nonce, ab->back.ref, ab->back.ref);
	assert_null(p.ba);
	assert_int_equal(p.b->ninbound, 0);
	unpair(&p);
}

/* A version that is not ours is answered, and both say so. */
static void peer_of_another_version(void **state)
{
	struct pair p = { 0 };
	struct dev_link *link;
	struct dev_peer *peer;

	(void)state;
	assert_int_equal(hal_open(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	assert_true(until(&(struct pair){ .a = p.a },
			  hal_connect(p.a, &p.b->addr, &p.ab) == 0));
	peer = dev_peer(p.ab);
	link = (struct dev_link *)peer->link.map.base;
	link->wire = DEV_WIRE + 1;
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(p.dead_a, -FI_ECONNREFUSED);
	assert_null(p.ba);
	unpair(&p);
}

/* An end that cannot be ends the peer and brings no packet. */
static void peer_ends_in_a_lie(void **state)
{
	static const struct { uint64_t last, end; } lies[] = {
		{ 0, 1 + 65 }, { 7, 3 }, { UINT64_MAX, 1 }, { 0, UINT64_MAX },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct pair p = pair();
		struct dev_link *link = dev_peer(p.ab)->link.map.base;

		link->last = lies[i].last;
		atomic_store(&link->end, lies[i].end);
		assert_true(until(&p, p.dead_b != 0));
		assert_false(next_is(p.ba, 0));
		unpair(&p);
		hal->ops->close(hal);
		hal = NULL;
	}
}

static void peer_space_lies(void **state)
{
	struct pair p = pair();
	struct dev_link *link = dev_peer(p.ab)->link.map.base;

	(void)state;
	atomic_store(&link->space_ref, 12345);
	assert_int_equal(send_word(p.ab, 1), 0);
	assert_true(until(&p, p.dead_b != 0));
	assert_non_null(strstr(said, "receive space"));
	unpair(&p);
}

/* ---- Driver ------------------------------------------------------------ */

/* What it has no room for now is asked for again, or refused in words. */
static void driver_is_short(void **state)
{
	struct pair p = { 0 };
	int ret;

	(void)state;
	assert_int_equal(hal_open(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	for (int i = 0; i < 2; i++) {
		lie.cmd = HAL_KDEV_IO_ALLOC;
		lie.skip = i;
		lie.times = 1;
		lie.ret = i == 0 ? -ENOMEM : -ESRCH;
		ret = hal_connect(p.a, &p.b->addr, &p.ab);
		assert_int_equal(ret, i == 0 ? -FI_ENOMEM : -FI_ECONNREFUSED);
		be_honest();
	}
	lie.cmd = HAL_KDEV_IO_IMPORT;
	lie.skip = 1;
	lie.times = 20;
	lie.ret = -ENOSPC;
	assert_true(until(&p, hal_connect(p.a, &p.b->addr, &p.ab) == 0));
	assert_true(until(&p, p.ba != NULL));
	be_honest();
	lie.cmd = HAL_KDEV_IO_ALLOC;
	lie.times = 1;
	lie.ret = -ENOMEM;
	assert_int_equal(hal_space_ready(p.ab, 64), -FI_ENOMEM);
	assert_non_null(strstr(said, "receive space"));
	lie.times = 1;
	lie.ret = -ESRCH;
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	hal_space_write(p.ab, 0, "x", 1);	/* into a void */
	hal_space_barrier(p.ab);
	be_honest();
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	assert_int_equal(send_word(p.ab, 5), 0);
	assert_true(until(&p, next_is(p.ba, 5)));
	unpair(&p);
}

struct region {
	struct hal_mem *mem;
	struct hal_key key;
	void *addr;
};

static struct region region(void)
{
	struct region r;

	assert_int_equal(hal_mem_alloc(hal, -1, 65536, &r.mem, &r.addr), 0);
	assert_int_equal(hal_mem_key(hal, r.mem, &r.key), 0);
	return r;
}

static int import(struct pair *p, const struct hal_key *key,
		  struct hal_rmem **rmem)
{
	int ret = -FI_EAGAIN;

	until(p, (ret = hal_mem_import(p->ab, key, rmem)) != -FI_EAGAIN);
	return ret;
}

static int transfer(struct pair *p, struct region *r, struct hal_rmem *rmem)
{
	struct hal_dma d = { .op = HAL_DMA_PUT, .peer = p->ab, .rmem = rmem,
			     .local = r->addr, .len = 40000 };
	struct hal_dma_comp comp = { 0 };
	int ret;

	ret = hal_dma_post(p->a, &d, 7);
	if (ret != 0)
		return ret;
	ret = 0;
	until(p, (ret = hal_dma_poll(p->a, &comp, 1)) != 0);
	assert_int_equal(ret, 1);
	assert_int_equal(comp.token, 7);
	assert_int_equal(hal_dma_poll(p->a, &comp, 1), 0);
	return comp.status;
}

static void driver_refuses_memory(void **state)
{
	struct pair p = pair();
	struct region r = region();
	struct hal_rmem *rmem = NULL;
	struct hal_mem *none = NULL;
	void *addr;

	(void)state;
	lie.cmd = HAL_KDEV_IO_ALLOC;
	lie.times = 1;
	lie.ret = -ENOMEM;
	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &none, &addr),
			 -FI_ENOMEM);
	assert_non_null(strstr(said, "dmable memory"));
	be_honest();
	lie.map_after = 0;
	assert_true(hal_mem_alloc(hal, 0, 4096, &none, &addr) < 0);
	be_honest();
	/* routes are given up to have another, then there is none */
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	hal_mem_release(p.ab, rmem);
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	hal_mem_release(p.ab, rmem);
	lie.cmd = HAL_KDEV_IO_IMPORT;
	lie.times = 1;
	lie.ret = -ENOSPC;
	r.key.word[1] ^= 1;
	assert_int_equal(import(&p, &r.key, &rmem), -FI_EKEYREJECTED);
	r.key.word[1] ^= 1;
	lie.times = 2;
	assert_int_equal(import(&p, &r.key, &rmem), -FI_ENOMEM);
	be_honest();
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	hal_mem_free(hal, r.mem);
	/* in use, and its owner has freed it */
	assert_int_equal(hal_mem_import(p.ab, &r.key, &rmem),
			 -FI_EKEYREJECTED);
	unpair(&p);
}

/* ---- Transfers --------------------------------------------------------- */

static void transfers_fail_by_the_driver(void **state)
{
	struct pair p = pair();
	struct region r = region();
	struct hal_rmem *rmem = NULL;

	(void)state;
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	assert_int_equal(transfer(&p, &r, rmem), 0);
	lie.state = HAL_KDEV_FAILED;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
	assert_non_null(strstr(said, "transfer failed"));
	lie.state = HAL_KDEV_CANCELLED;
	assert_int_equal(transfer(&p, &r, rmem), -FI_ECANCELED);
	be_honest();
	lie.write_ret = -EFAULT;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EACCES);
	lie.write_ret = -EIO;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
	be_honest();
	assert_int_equal(transfer(&p, &r, rmem), 0);
	hal_mem_release(p.ab, rmem);
	hal_mem_free(hal, r.mem);
	unpair(&p);
}

/* Errors of the engine [PG034, CDMASR]: the transfer fails, the next works. */
static void engine_errors(void **state)
{
	static const uint32_t bits[] = { HAL_CDMA_SR_INTERR,
		HAL_CDMA_SR_SLVERR, HAL_CDMA_SR_DECERR, HAL_CDMA_SR_SGINTERR,
		HAL_CDMA_SR_SGSLVERR, HAL_CDMA_SR_SGDECERR };

	(void)state;
	for (uint32_t mode = HAL_ENGINE_SIMPLE; mode <= HAL_ENGINE_SG;
	     mode++) {
		struct hal_rmem *rmem = NULL;
		struct region r;
		struct pair p;

		lie.engine = mode;
		p = pair();
		r = region();
		assert_int_equal(import(&p, &r.key, &rmem), 0);
		for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
			assert_int_equal(transfer(&p, &r, rmem), 0);
			lie.sr_or = bits[i];
			assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
			lie.sr_or = 0;
			assert_non_null(strstr(said, "cDMA status"));
		}
		/* it never comes back */
		lie.sr_or = HAL_CDMA_SR_DECERR;
		lie.cr_or = HAL_CDMA_CR_RESET;
		assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
		assert_non_null(strstr(said, "reset"));
		assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
		hal_mem_release(p.ab, rmem);
		hal_mem_free(hal, r.mem);
		unpair(&p);
		be_honest();
		hal->ops->close(hal);
		hal = NULL;
	}
}

static void engine_is_not_to_be_had(void **state)
{
	(void)state;
	lie.engine = HAL_ENGINE_SG;
	lie.sr_and_not = HAL_CDMA_SR_SGINCLD;
	assert_int_equal(hal_open(), -FI_ENODEV);
	assert_non_null(strstr(said, "without scatter-gather"));
	be_honest();
	lie.engine = HAL_ENGINE_SIMPLE;
	lie.cr_or = HAL_CDMA_CR_RESET;
	assert_int_equal(hal_open(), -FI_ENODEV);
	be_honest();
	lie.engine = HAL_ENGINE_SIMPLE;
	lie.cmd = HAL_KDEV_IO_ENGINE;
	for (int i = 0; i < 3; i++) {
		static const int errs[] = { -EBUSY, -ENODEV, -EIO };

		lie.times = 1;
		lie.ret = errs[i];
		assert_int_equal(hal_open(), -FI_ENODEV);
		assert_non_null(strstr(said, "engine = kernel"));
	}
	assert_null(hal);
}

#define DEV_TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEV_TEST(open_says_what_is_missing),
		DEV_TEST(open_checks_the_driver),
		DEV_TEST(if_open_fails_cleanly),
		DEV_TEST(packet_without_an_answer),
		DEV_TEST(peer_sends_too_much),
		DEV_TEST(peer_hello_lies),
		DEV_TEST(peer_of_another_version),
		DEV_TEST(peer_ends_in_a_lie),
		DEV_TEST(peer_space_lies),
		DEV_TEST(driver_is_short),
		DEV_TEST(driver_refuses_memory),
		DEV_TEST(transfers_fail_by_the_driver),
		DEV_TEST(engine_errors),
		DEV_TEST(engine_is_not_to_be_had),
	};

	return unit_run(tests);
}
