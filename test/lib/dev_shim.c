/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev_shim.c - the device backend over a register model with injected errors,
 * see dev_shim.h
 *
 * Owns the shim's operations (shim_*()), which consult struct lie, and the pair
 * of interfaces that most tests use.
 */
#include "lib/dev_shim.h"
#include "hal/hal_backend.h"
#include "hal/sim/hal_sim.h"

/* ---- The shim ---------------------------------------------------------- */

struct hal_mmio_ops io;
static struct hal_ops ops;
struct hal *hal;
char said[512];
unsigned lines;
unsigned errors;
struct lie lie;
char order[256];
unsigned bad_drops;

static int shim_probe(const struct hal_params *params, struct hal_platform *pf)
{
	int ret = hal_sim_mmio_ops.probe(params, pf);

	pf->engine = (enum hal_platform_engine)lie.engine;
	if (lie.platform.boards != 0)
		pf->boards = lie.platform.boards;
	if (lie.platform.space_bytes != 0)
		pf->space_bytes = lie.platform.space_bytes;
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

static void false_info(struct hal_kdev_info *info)
{
	if (lie.info.version != 0)
		info->version = lie.info.version;
	if (lie.info.magic != 0)
		info->magic = lie.info.magic;
	if (lie.info.board != 0)
		info->board = lie.info.board;
	if (lie.info.boards != 0)
		info->boards = lie.info.boards;
	if (lie.info.fifo_words != 0)
		info->fifo_words = lie.info.fifo_words;
	info->flags &= ~lie.info.flags;
	if (lie.spoil != NULL)
		lie.spoil(info);
}

static void false_import(struct hal_kdev_import *imp)
{
	if (lie.false_id != 0 && imp->owner == lie.id)
		imp->owner = lie.false_id;
	if (lie.import != NULL)
		lie.import(imp);
}

/* IMPORT. While lie.prepares is set, the import that the model has finished is
 * not finished for the caller. */
static int shim_import(struct hal_mmio *mm, struct hal_kdev_import *imp)
{
	static struct hal_kdev_import finished;	/* hold 0: none */
	int ret = 0;

	if (finished.hold == 0 || imp->hold != finished.hold) {
		ret = hal_sim_mmio_ops.ioctl(mm, HAL_KDEV_IO_IMPORT, imp);
		if (ret != 0 || lie.prepares == 0)
			return ret;
		finished = *imp;
	}
	if (lie.prepares != 0) {
		lie.prepares--;
		return -EAGAIN;
	}
	*imp = finished;
	finished.hold = 0;
	return 0;
}

static int shim_ioctl(struct hal_mmio *mm, unsigned long cmd, void *arg)
{
	int ret;

	if (cmd == lie.cmd && lie.skip-- <= 0 && lie.times-- > 0)
		return lie.ret;
	ret = cmd == HAL_KDEV_IO_IMPORT ? shim_import(mm, arg) :
	      hal_sim_mmio_ops.ioctl(mm, cmd, arg);
	if (cmd == HAL_KDEV_IO_INFO && ret == 0)
		false_info(arg);
	if (cmd == HAL_KDEV_IO_IMPORT && ret == 0)
		false_import(arg);
	if (cmd == HAL_KDEV_IO_ENGINE && ret == 0 && lie.btt_bits != 0)
		((struct hal_kdev_engine *)arg)->btt_bits = lie.btt_bits;
	if (cmd == HAL_KDEV_IO_DROP && ret != 0)
		bad_drops++;
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

static void note(char what)
{
	size_t n = strlen(order);

	if (lie.note && n + 1 < sizeof(order)) {
		order[n] = what;
		order[n + 1] = '\0';
	}
}

/* Replace what an empty mailbox reads as by lie.empty[]. */
static void false_empty(uint64_t w[2])
{
	static unsigned turn;

	if (w[0] != HAL_MIF_EMPTY || lie.empty[0] == 0)
		return;
	w[0] = lie.empty[turn++ % 2];
	w[1] = lie.empty_second != 0 ? lie.empty_second : w[0];
	if (lie.empty_for != 0 && --lie.empty_for == 0)
		lie.empty[0] = 0;
}

static void false_status(uint64_t w[2])
{
	void (**once)(void), (*call)(void);

	if (lie.pif_status != 0 && !(w[0] & HAL_PIF_PEND))
		w[0] = lie.pif_status & HAL_PIF_STATUS_MASK;
	w[0] |= lie.pif_or;
	if (lie.pending)
		w[0] |= HAL_PIF_PEND;
	once = w[0] & HAL_PIF_PEND ? &lie.pended : &lie.answered;
	call = *once;
	*once = NULL;
	if (call != NULL)
		call();
}

static void shim_read128(const struct hal_mmio_map *map, uint32_t off,
			 uint64_t w[2])
{
	void (*first)(void) = lie.first_read;

	if (map == lie.mif)
		note('r');
	if (first != NULL && sim_block(map) == HAL_KDEV_MIF) {
		lie.first_read = NULL;
		first();
	}
	hal_sim_mmio_ops.read128(map, off, w);
	if (off == HAL_PIF_STATUS)
		false_status(w);
	if (off == HAL_MIF_DATA && sim_block(map) == HAL_KDEV_MIF)
		false_empty(w);
	if (off == HAL_MIF_DATA && lie.false_id != 0 &&
	    (w[0] & HAL_ID_MASK) == lie.id)
		w[0] = (w[0] & ~HAL_ID_MASK) | lie.false_id;
}

static void shim_store(struct hal_mmio_map *map, uint64_t off, const void *src,
		       size_t len)
{
	note('s');
	hal_sim_mmio_ops.store(map, off, src, len);
}

static void shim_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
		      size_t len)
{
	void (*meanwhile)(void) = lie.meanwhile;

	note('l');
	if (meanwhile != NULL) {
		lie.meanwhile = NULL;
		meanwhile();
	}
	hal_sim_mmio_ops.load(map, off, dst, len);
}

static void shim_loads_before_store(struct hal_mmio *mm)
{
	note('b');
	hal_sim_mmio_ops.loads_before_store(mm);
}

static int shim_stores_before_notify(const struct hal_mmio_map *map)
{
	note('n');
	return lie.unread ? 0 : hal_sim_mmio_ops.stores_before_notify(map);
}

static void shim_status_before_memory(struct hal_mmio *mm)
{
	note('m');
	hal_sim_mmio_ops.status_before_memory(mm);
}

static uint32_t shim_read32(const struct hal_mmio_map *map, uint32_t off)
{
	uint32_t val = hal_sim_mmio_ops.read32(map, off);

	if (off == HAL_CDMA_SR && lie.sr_and_not != 0)
		/* The caller does not see that the transfer has ended, and so
		 * omits the barrier that the model demands. */
		hal_sim_mmio_ops.status_before_memory(map->mm);
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

static void listen_to(int level, const char *line)
{
	snprintf(said, sizeof(said), "%s", line);
	lines++;
	errors += level == 0;
}

int open_hal(void)
{
	struct hal_params params;
	int ret;

	ret = hal_params_load(&params);
	if (ret != 0)
		return ret;
	snprintf(params.hal, sizeof(params.hal), "sim");
	if (lie.sim != NULL)
		snprintf(params.sim, sizeof(params.sim), "%s", lie.sim);
	params.boards = lie.boards != 0 ? lie.boards : 2;
	said[0] = '\0';
	lines = 0;
	return ops.open(&params, &hal);
}

void be_honest(void)
{
	memset(&lie, 0, sizeof(lie));
	lie.map_after = -1;
}

void fail_ioctl(unsigned long cmd, int skip, int times, int ret)
{
	lie.cmd = cmd;
	lie.skip = skip;
	lie.times = times;
	lie.ret = ret;
}

void close_hal(void)
{
	hal->ops->close(hal);
	hal = NULL;
}

int dev_setup(void **state)
{
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
	io.store = shim_store;
	io.load = shim_load;
	io.loads_before_store = shim_loads_before_store;
	io.stores_before_notify = shim_stores_before_notify;
	io.status_before_memory = shim_status_before_memory;
	ops = hal_sim_ops;
	ops.open = shim_hal_open;
	be_honest();
	order[0] = '\0';
	bad_drops = 0;
	hal = NULL;
	hal_log_set(listen_to);
	return 0;
}

int dev_teardown(void **state)
{
	be_honest();
	if (hal != NULL)
		hal->ops->close(hal);
	hal_log_set(NULL);
	return 0;
}

/* ---- Two interfaces ---------------------------------------------------- */

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void step(struct pair *p)
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

struct pair pair_open(void)
{
	struct pair p = { 0 };

	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	return p;
}

struct pair pair(void)
{
	struct pair p = pair_open();
	int ret = -FI_EAGAIN;

	until(&p, (ret = hal_connect(p.a, &p.b->addr, &p.ab)) != -FI_EAGAIN);
	assert_int_equal(ret, 0);
	assert_true(until(&p, p.ba != NULL));
	return p;
}

void unpair(struct pair *p)
{
	if (p->a != NULL)
		hal_if_close(p->a);
	if (p->b != NULL)
		hal_if_close(p->b);
}

int send_word(struct hal_peer *peer, uint64_t word)
{
	return hal_pkt_send(peer, hal_head(1, 0), &word, 1, NULL, 0);
}

bool next_is(struct hal_peer *peer, uint64_t word)
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

unsigned holds(struct hal_if *hif)
{
	struct sim_file *f = sim_mm(dev_if(hif)->mm)->f;
	unsigned n = 0;

	for (uint32_t i = 0; i < atomic_load(&f->nholds); i++)
		n += atomic_load(&f->hold[i].ref) != 0;
	return n;
}
