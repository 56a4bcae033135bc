/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim.c - the register model behind hal_mmio.h: parameters, open files, and
 * the table of its calls, which pass each access to the block that it belongs
 * to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_board.h"
#include "hal/hal_launcher.h"
#include "hal/hal_param.h"
#include "hal/hal_pid.h"
#include "hal/sim/hal_sim.h"
#include "hal/sim/hal_sim_box.h"
#include "hal/sim/hal_sim_cdma.h"
#include "hal/sim/hal_sim_check.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_kdev.h"
#include "hal/sim/hal_sim_mem.h"
#include "hal/sim/hal_sim_store.h"
#include "hal/sim/hal_sim_xfer.h"
#include "util/unm_clock.h"

/* ---- Parameters -------------------------------------------------------- */

#define ROW(row_name, row_type, field, ...)				\
	{ .name = row_name, .type = row_type,				\
	  .offset = offsetof(struct sim_params, field), __VA_ARGS__ }
#define SIM_SPACE_MIN	4096	/* as of a platform file */

#define MODEL_LATENCY	5000000u	/* ns: an interface that gets no packet
					 * from itself within 10 ms takes its
					 * packetizer for dead
					 * (hal_dev_echo.c) */
#define MODEL_DEPTH	4u		/* a mailbox has 8 words or more */

#define MIF_REMOTE	UINT64_C(0x10000)	/* sim_what() of a map of the
						 * mailbox of any interface:
						 * this | board << 8 |
						 * interface */

#define NUMBER(field, low, high, text)					\
	ROW(#field, HAL_PARAM_LONG, field, .min = low, .max = high,	\
	    .def = text)

/* Parameters of FI_UNIMEM_SIM; fi_unimem(7) explains them. */
static const struct hal_param rows[] = {
	NUMBER(world, 0, INT32_MAX, "0"),
	NUMBER(ifs, 1, HAL_REG_IFS - 1, "63"),
	NUMBER(fifo, 8, SIM_FIFO_MAX, "128"),
	NUMBER(pairs, 0, 1, "1"),
	NUMBER(mem, 1, SIM_MEM_MAX >> 20, "1024"),
	NUMBER(xfers, 1, 1024, "64"),
	NUMBER(btt, HAL_CDMA_BTT_BITS_MIN, HAL_CDMA_BTT_BITS_MAX, "23"),
	NUMBER(sg, 0, 1, "1"),
	NUMBER(seed, 0, INT32_MAX, "1"),
	NUMBER(tick, 0, 1000000000, "0"),
	NUMBER(delay, 0, 1000000000, "0"),
	NUMBER(ack, 0, 1000000000, "0"),
	NUMBER(prep, 0, 1, "0"),
	NUMBER(press, 0, 1, "0"),
	NUMBER(illegal, 0, 1, "1"),
	NUMBER(reorder, 0, 1000, "250"),
	NUMBER(route, 0, 1000000000, "10000"),
	NUMBER(dma, 0, 1000000000, "0"),
	NUMBER(slverr, 0, 1000, "0"),
	NUMBER(any, 0, 1, "1"),
	NUMBER(depth, 0, 64, "0"),
	NUMBER(space, 0, 1 << 24, "0"),
	ROW("engine", HAL_PARAM_WORD, engine, .words = "kernel|simple|sg",
	    .def = "kernel"),
	ROW("empty", HAL_PARAM_WORD, empty, .words = "beaf|beef",
	    .def = "beaf"),
	ROW("mutant", HAL_PARAM_WORD, mutant, .def = "none",
	    .words = "none|nonack|twice|early|forged"),
};

/* The model of this process. */
static struct {
	struct hal_lock lock;		/* protects this and world->refs */
	struct sim_params par;		/* of the last probe */
	struct sim_world *world;	/* NULL: no file is open */
} g_sim;

/* Let the timing model apply, if the parameters name one: its figures replace
 * times of FI_UNIMEM_SIM. */
static int load_model(const struct hal_params *params, struct sim_params *par)
{
	struct hal_model *m = &par->figures;
	int ret;

	if (params->model[0] == '\0')
		return 0;
	ret = hal_model_load(params->model, m);
	if (ret != 0)
		return ret;
	if (m->packet_latency > MODEL_LATENCY || m->fifo_depth < MODEL_DEPTH ||
	    par->delay != 0 || par->ack != 0 || par->dma != 0) {
		hal_log(0, "FI_UNIMEM_MODEL=%s: for the register model "
			"packet_latency is at most 5 ms and fifo_depth at "
			"least 4 packets, and FI_UNIMEM_SIM has no delay, ack "
			"or dma", params->model);
		return -FI_EINVAL;
	}
	hal_log(1, "timing model: the figures of %s", m->path);
	memset(m->path, 0, sizeof(m->path));
	par->timed = 1;
	par->fifo = (long)m->fifo_depth * HAL_MIF_PKT_WORDS;
	par->route = (long)m->route_registration;
	return 0;
}

static int load_params(const struct hal_params *params,
		       struct sim_params *par)
{
	int ret;

	memset(par, 0, sizeof(*par));
	ret = hal_param_parse("FI_UNIMEM_SIM", params->sim, rows,
			      sizeof(rows) / sizeof(rows[0]), par);
	if (ret != 0)
		return ret;
	par->boards = params->boards != 0 ? params->boards : 4;
	if (par->boards > HAL_REG_BOARDS_MAX) {
		hal_log(0, "FI_UNIMEM_BOARDS=%ld: the register model has at "
			"most %u", par->boards, HAL_REG_BOARDS_MAX);
		return -FI_EINVAL;
	}
	if (par->fifo % 2 != 0) {
		hal_log(0, "FI_UNIMEM_SIM: fifo=%ld: use an even number",
			par->fifo);
		return -FI_EINVAL;
	}
	if (par->space != 0 && (par->space < SIM_SPACE_MIN ||
				(par->space & (par->space - 1)) != 0)) {
		hal_log(0, "FI_UNIMEM_SIM: space=%ld: use a power of 2 from "
			"%d on", par->space, SIM_SPACE_MIN);
		return -FI_EINVAL;
	}
	return load_model(params, par);
}

static int sim_probe(const struct hal_params *params,
		     struct hal_platform *platform)
{
	struct sim_params par;
	long rank, nranks;
	int board, ret;

	ret = load_params(params, &par);
	if (ret != 0)
		return ret;
	hal_launcher_ranks(&rank, &nranks);
	board = hal_board_own(params->board, (int)par.boards, rank, nranks);
	if (board < 0)
		return board;
	memset(platform, 0, sizeof(*platform));
	snprintf(platform->node, sizeof(platform->node), "the register model");
	platform->boards = (uint32_t)par.boards;
	platform->board = (uint32_t)board;
	platform->pkt_depth = (uint32_t)par.depth;
	platform->space_bytes = (uint32_t)par.space;
	platform->engine = (enum hal_platform_engine)par.engine;
	platform->timed = par.timed != 0;
	hal_lock(&g_sim.lock);
	g_sim.par = par;
	hal_unlock(&g_sim.lock);
	return 0;
}

/* ---- Open files -------------------------------------------------------- */

static int join(struct sim_world **w)
{
	int ret = sim_join(&g_sim.par, w);

	if (ret == 0) {
		(*w)->rebuild = sim_mem_rebuild;
		(*w)->reap = sim_reap;
	}
	return ret;
}

/* Get the model, and join it first if needed. The lock is held. A forked child
 * does not use its copy of its parent's. */
static int get_world(struct sim_world **w)
{
	int ret = 0;

	if (g_sim.world != NULL && g_sim.world->pid != getpid())
		g_sim.world = NULL;
	if (g_sim.world == NULL)
		ret = join(&g_sim.world);
	else if (memcmp(&g_sim.world->par, &g_sim.par,
			sizeof(g_sim.par)) != 0)
		ret = -EBUSY;
	if (ret == 0)
		*w = g_sim.world;
	return ret;
}

static void put_world(struct sim_world *w)
{
	if (w->refs != 0)
		return;
	g_sim.world = NULL;
	sim_leave(w);
}

static struct sim_mm *mm_new(struct sim_world *w, uint32_t board)
{
	struct sim_mm *mm = calloc(1, sizeof(*mm));

	if (mm == NULL)
		return NULL;
	mm->xfers = calloc((size_t)w->par.xfers, sizeof(*mm->xfers));
	if (mm->xfers == NULL) {
		free(mm);
		return NULL;
	}
	mm->m.ops = &hal_sim_mmio_ops;
	mm->m.board = board;
	mm->w = w;
	mm->b = w->board[board];
	mm->event_fd = -1;
	hal_time_queue_init(&mm->queue, &mm->b->times);
	if (hal_task_self(&mm->task) != 0)
		memset(&mm->task, 0, sizeof(mm->task));
	return mm;
}

static void mm_free(struct sim_mm *mm)
{
	if (mm->event_fd >= 0)
		close(mm->event_fd);
	free(mm->xfers);
	free(mm);
}

static int mm_open(struct sim_world *w, uint32_t board, struct hal_mmio **out)
{
	struct sim_mm *mm;
	int ret;

	if (board >= w->boards)
		return -ENODEV;
	mm = mm_new(w, board);
	if (mm == NULL)
		return -ENOMEM;
	ret = sim_file_open(mm);
	if (ret != 0) {
		mm_free(mm);
		return ret;
	}
	mm->rng = (uint64_t)w->par.seed << 32 ^ w->me << 16 ^
		  (uint64_t)board << 10 ^ mm->file;
	hal_lock(&w->mms_lock);
	unm_list_append(&w->mms, &mm->list);
	hal_unlock(&w->mms_lock);
	w->refs++;
	*out = &mm->m;
	return 0;
}

static int sim_open(const struct hal_platform *platform, uint32_t board,
		    struct hal_mmio **mm)
{
	struct sim_world *w;
	int ret;

	if (board == UINT32_MAX)
		board = platform->board;
	hal_lock(&g_sim.lock);
	ret = get_world(&w);
	if (ret == 0) {
		ret = mm_open(w, board, mm);
		put_world(w);
	}
	hal_unlock(&g_sim.lock);
	return ret;
}

static bool inherited(const struct sim_mm *mm)
{
	return mm->w->pid != hal_pid();
}

/* Close in a forked child: free what is private only. */
static void forget(struct sim_world *w)
{
	if (--w->refs != 0)
		return;
	if (g_sim.world == w)
		g_sim.world = NULL;
	sim_forget(w);
}

static void sim_close(struct hal_mmio *hm)
{
	struct sim_mm *mm = sim_mm(hm);
	struct sim_world *w = mm->w;

	hal_lock(&g_sim.lock);
	if (inherited(mm)) {
		forget(w);
		hal_unlock(&g_sim.lock);
		mm_free(mm);
		return;
	}
	hal_lock(&w->mms_lock);
	unm_list_remove(&mm->list);
	hal_unlock(&w->mms_lock);
	sim_file_close(mm);
	w->refs--;
	put_world(w);
	hal_unlock(&g_sim.lock);
	mm_free(mm);
}

/* ---- Accesses ---------------------------------------------------------- */

/* Called by every access: checks barriers, and lets time pass for stores and
 * transfers that are under way. */
static struct sim_mm *touch(struct hal_mmio *hm)
{
	struct sim_mm *mm = sim_mm(hm);

	sim_access(mm);
	if (mm->w->par.tick != 0)
		/* Relaxed: a clock, which orders nothing. */
		atomic_fetch_add_explicit(&mm->w->board[0]->common.clock,
					  (uint64_t)mm->w->par.tick,
					  memory_order_relaxed);
	if (mm->held != 0)
		sim_store_some(mm);
	if (mm->nxfers != 0)
		sim_xfer_run(mm);
	return mm;
}

/* End the process: the block has no such access. */
static void wrong(const struct hal_mmio_map *map, const char *what,
		  uint32_t off, unsigned bytes)
{
	static const char *const blocks[] = {
		"memory", "a mailbox page", "a packetizer page",
		"the trusted page", "the cDMA engine", "a table",
	};

	sim_misuse("%s of %u bytes at offset 0x%x of %s, which takes no such "
		   "access", what, bytes, off, blocks[sim_block(map) % 6]);
}

/* The mailbox that a map of HAL_KDEV_MIF shows. */
static struct sim_box box_of(const struct hal_mmio_map *map)
{
	uint64_t what = sim_what(map);
	struct sim_box box = {
		.board = what & MIF_REMOTE ? what >> 8 & 0xff :
					     map->mm->board,
		.n = what & 0xff,
	};

	return box;
}

/* A store of less than 16 bytes into the mailbox of another interface: one
 * word, whose other bytes are 0. */
static bool narrow_store(const struct hal_mmio_map *map, uint32_t off,
			 uint64_t val)
{
	const uint64_t w[2] = { val, 0 };

	if (sim_block(map) != HAL_KDEV_MIF ||
	    !(sim_what(map) & MIF_REMOTE) || off != HAL_MIF_DATA)
		return false;
	sim_mif_write(sim_mm(map->mm), box_of(map), w, 1);
	return true;
}

static uint32_t sim_read32(const struct hal_mmio_map *map, uint32_t off)
{
	struct sim_mm *mm = touch(map->mm);

	if (sim_block(map) != HAL_KDEV_CDMA)
		wrong(map, "a read", off, 4);
	return sim_cdma_read(mm, off);
}

static void sim_write32(const struct hal_mmio_map *map, uint32_t off,
			uint32_t val)
{
	struct sim_mm *mm = touch(map->mm);

	if (narrow_store(map, off, val))
		return;
	if (sim_block(map) != HAL_KDEV_CDMA)
		wrong(map, "a write", off, 4);
	sim_cdma_write(mm, off, val);
}

static uint64_t sim_read64(const struct hal_mmio_map *map, uint32_t off)
{
	struct sim_mm *mm = touch(map->mm);

	if (sim_block(map) != HAL_KDEV_TIF)
		wrong(map, "a read", off, 8);
	return sim_tif_read(mm, off);
}

static void sim_write64(const struct hal_mmio_map *map, uint32_t off,
			uint64_t val)
{
	struct sim_mm *mm = touch(map->mm);

	if (narrow_store(map, off, val))
		return;
	if (sim_block(map) != HAL_KDEV_TIF)
		wrong(map, "a write", off, 8);
	sim_tif_write(mm, off, val);
}

/* A processor, or another master of its board, reads a word of a mailbox. */
static void load_word(struct sim_mm *mm, struct sim_box box, uint64_t w[2])
{
	if (!sim_load_answered(mm, box.board))
		sim_misuse("a read of a mailbox of a dead board: a bus error");
	sim_mif_read(mm, box, w);
}

static void sim_read128(const struct hal_mmio_map *map, uint32_t off,
			uint64_t w[2])
{
	struct sim_mm *mm = touch(map->mm);
	uint32_t n = (uint32_t)sim_what(map);

	if (sim_block(map) == HAL_KDEV_MIF && off == HAL_MIF_DATA)
		load_word(mm, box_of(map), w);
	else if (sim_block(map) == HAL_KDEV_PIF)
		sim_pif_read(mm, n, off, w);
	else
		wrong(map, "a read", off, 16);
}

static void sim_write128(const struct hal_mmio_map *map, uint32_t off,
			 const uint64_t w[2])
{
	struct sim_mm *mm = touch(map->mm);
	uint32_t n = (uint32_t)sim_what(map);

	if (sim_block(map) == HAL_KDEV_MIF && off == HAL_MIF_DATA)
		sim_mif_write(mm, box_of(map), w, 1);
	else if (sim_block(map) == HAL_KDEV_PIF)
		sim_pif_write(mm, n, off, w);
	else
		wrong(map, "a write", off, 16);
}

static int sim_stores_before_notify(const struct hal_mmio_map *map)
{
	struct sim_mm *mm = sim_mm(map->mm);
	uint32_t board = hal_gaddr_board(sim_what(map));

	sim_store_wait(mm);
	if (mm->held != 0)
		sim_store_flush(mm, board);
	return sim_load_answered(mm, board) ? 0 : -EIO;
}

/* Acquires and releases of the model itself order its accesses. The barriers
 * only record that they were called, as the silicon needs. */
static void sim_memory_before_start(struct hal_mmio *mm)
{
	sim_mm(mm)->ready = true;
}

static void sim_status_before_memory(struct hal_mmio *mm)
{
	sim_mm(mm)->unseen = false;
}

static void sim_loads_before_store(struct hal_mmio *mm)
{
	(void)mm;
}

/* ---- Kernel device ----------------------------------------------------- */

static int sim_ioctl(struct hal_mmio *hm, unsigned long cmd, void *arg)
{
	if (inherited(sim_mm(hm)))
		return -EPERM;
	return sim_kdev_ioctl(touch(hm), cmd, arg);
}

static ssize_t sim_write(struct hal_mmio *hm, const void *buf, size_t len)
{
	if (inherited(sim_mm(hm)))
		return -EPERM;
	return sim_xfer_write(touch(hm), buf, len);
}

static ssize_t sim_read(struct hal_mmio *hm, void *buf, size_t len)
{
	if (inherited(sim_mm(hm)))
		return -EPERM;
	return sim_xfer_read(touch(hm), buf, len);
}

static int map_block(struct sim_mm *mm, enum hal_kdev_block block,
		     uint64_t off, struct hal_mmio_map *map)
{
	uint32_t n = (uint32_t)(off / HAL_REG_PAGE);

	switch (block) {
	case HAL_KDEV_MIF:
	case HAL_KDEV_PIF:
		if (mm->f->claimed != n + 1)
			return -EACCES;
		break;
	case HAL_KDEV_CDMA:
		if (off != 0 || atomic_load(&mm->b->engine) != mm->file + 1)
			return -EACCES;
		break;
	case HAL_KDEV_TABLE:
		if (n >= mm->w->boards)
			return -EINVAL;
		break;
	default:
		return -EPERM;		/* the trusted page is not mapped */
	}
	map->impl = sim_impl(block, n);
	return 0;
}

static int sim_map(struct hal_mmio *hm, uint64_t off, size_t len,
		   struct hal_mmio_map *map)
{
	enum hal_kdev_block block = off >> HAL_KDEV_OFF_SHIFT;
	struct sim_mm *mm = sim_mm(hm);
	int ret;

	if (inherited(mm))
		return -EPERM;
	off &= (UINT64_C(1) << HAL_KDEV_OFF_SHIFT) - 1;
	if (off % SIM_PAGE != 0 || len % SIM_PAGE != 0 || len == 0)
		return -EINVAL;
	memset(map, 0, sizeof(*map));
	if (block == HAL_KDEV_MEM)
		ret = sim_mem_map(mm, off, len, map);
	else
		ret = len == HAL_REG_PAGE ? map_block(mm, block, off, map) :
					    -EINVAL;
	if (ret != 0)
		return ret;
	map->ops = &hal_sim_mmio_ops;
	map->mm = hm;
	map->len = len;
	return 0;
}

static void sim_unmap(struct hal_mmio_map *map)
{
	struct sim_mm *mm = sim_mm(map->mm);

	if (sim_block(map) == HAL_KDEV_MEM && !inherited(mm))
		sim_mem_unmap(mm, sim_what(map));
	memset(map, 0, sizeof(*map));
}

void hal_sim_death(struct hal_mmio *mm, uint32_t board, enum sim_death death)
{
	struct sim_board *b = sim_mm(mm)->w->board[board];

	atomic_store(&b->died, unm_now_ns());
	atomic_store(&b->death, (uint32_t)death);
}

void hal_sim_trusted(struct hal_mmio *mm, struct hal_mmio_map *map)
{
	memset(map, 0, sizeof(*map));
	map->ops = &hal_sim_mmio_ops;
	map->mm = mm;
	map->len = HAL_REG_PAGE;
	map->impl = sim_impl(HAL_KDEV_TIF, 0);
}

void hal_sim_mailbox(struct hal_mmio *mm, uint64_t dest,
		     struct hal_mmio_map *map)
{
	if (hal_gaddr_board(dest) >= sim_mm(mm)->w->boards)
		sim_misuse("a mailbox of board %u, which does not exist",
			   hal_gaddr_board(dest));
	memset(map, 0, sizeof(*map));
	map->ops = &hal_sim_mmio_ops;
	map->mm = mm;
	map->len = HAL_REG_PAGE;
	map->impl = sim_impl(HAL_KDEV_MIF, MIF_REMOTE |
			     hal_gaddr_board(dest) << 8 | hal_dest_if(dest));
}

bool hal_sim_burst_write(const struct hal_mmio_map *map, const uint64_t *w,
			 uint32_t words)
{
	return sim_mif_burst(touch(map->mm), box_of(map), w, words);
}

void hal_sim_burst_read(const struct hal_mmio_map *map, uint64_t *w,
			uint32_t words)
{
	struct sim_mm *mm = touch(map->mm);

	for (uint32_t i = 0; i < words; i++)
		load_word(mm, box_of(map), &w[2 * i]);
}

bool hal_sim_interrupt(struct hal_mmio *mm)
{
	return sim_cdma_interrupt(touch(mm));
}

static int sim_event(struct hal_mmio *hm)
{
	return inherited(sim_mm(hm)) ? -EPERM : sim_event_fd(sim_mm(hm));
}

const struct hal_mmio_ops hal_sim_mmio_ops = {
	.backend = "sim",
	.profile = "model",
	.probe = sim_probe,
	.open = sim_open,
	.close = sim_close,
	.ioctl = sim_ioctl,
	.write = sim_write,
	.read = sim_read,
	.map = sim_map,
	.unmap = sim_unmap,
	.event_fd = sim_event,
	.read32 = sim_read32,
	.write32 = sim_write32,
	.read64 = sim_read64,
	.write64 = sim_write64,
	.read128 = sim_read128,
	.write128 = sim_write128,
	.store = sim_store,
	.load = sim_load,
	.stores_before_notify = sim_stores_before_notify,
	.memory_before_start = sim_memory_before_start,
	.status_before_memory = sim_status_before_memory,
	.loads_before_store = sim_loads_before_store,
};
