/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_kdev.c - the kernel device of hal_kdev.h: open files, interfaces,
 * events, and the ends of processes.
 *
 * No kernel notifies the model that a process has ended. A process that reads a
 * table, or needs something that a dead process holds, finds out and takes back
 * what the dead process has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/sim/hal_sim_box.h"
#include "hal/sim/hal_sim_cdma.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_kdev.h"
#include "hal/sim/hal_sim_mem.h"
#include "hal/sim/hal_sim_store.h"
#include "hal/sim/hal_sim_xfer.h"
#include "util/unm_random.h"

/* Atomic accesses: other processes read the table while it is written. */
static void put64(uint64_t *to, uint64_t val)
{
	__atomic_store_n(to, val, __ATOMIC_SEQ_CST);
}

/* ---- Interfaces -------------------------------------------------------- */

/* Enter the process that holds an interface; all fields 0: none, or it could
 * not be found out when the file was opened. */
static void put_process(struct hal_kdev_entry *e, const struct hal_task *task)
{
	put64(&e->pid_ns, task->ns);
	put64(&e->pid_start, task->start);
	__atomic_store_n(&e->pid, (uint32_t)task->pid, __ATOMIC_SEQ_CST);
}

/*
 * Take back an interface. The driver's lock is held. Pending packets are
 * finished first: once the nonce is cleared, no packet of the holder arrives
 * any more. A half-written packet is cleared, because its PEND (params.prep)
 * would never end.
 */
static void if_release(struct sim_world *w, uint32_t board, uint32_t n)
{
	struct sim_board *b = w->board[board];
	struct hal_kdev_entry *e = &b->table[n];

	sim_pif_settle(w, board, n);
	atomic_fetch_and(&b->pid_conf, ~(UINT64_C(1) << n));
	atomic_store(&b->pif[n].written, 0);
	atomic_store(&b->fifo[n].armed, 0);
	put64(&e->nonce, 0);
	put64(&e->identity, 0);
	put_process(e, &(struct hal_task){ 0 });
	atomic_store(&b->pid[n], 0);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_RELEASED);
	b->iface[n].file = 0;
}

/* Give an interface to a file. The driver's lock is held. */
static void if_take(struct sim_mm *mm, uint32_t n, struct hal_kdev_claim *c)
{
	struct sim_world *w = mm->w;
	struct sim_board *b = mm->b;
	struct hal_kdev_entry *e = &b->table[n];

	b->iface[n].file = mm->file + 1;
	/* From 1 to the mask: identity 0 means none. */
	b->iface[n].incarnation = b->iface[n].incarnation %
				  HAL_ID_INCARNATION_MASK + 1;
	sim_if_reset(w, mm->m.board, n);
	c->iface = n;
	c->identity = hal_id(mm->m.board, n, b->iface[n].incarnation);
	c->nonce = unm_random();
	atomic_store(&b->pid[n], c->identity);
	atomic_fetch_or(&b->pid_conf, UINT64_C(1) << n);
	mm->f->claimed = n + 1;
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_CLAIMED);
	put64(&e->identity, c->identity);
	__atomic_store_n(&e->uid, geteuid(), __ATOMIC_SEQ_CST);
	put_process(e, &mm->task);
	put64(&e->nonce, c->nonce);
}

/* Is an interface free? Take it back first if its holder is dead. */
static bool if_free(struct sim_mm *mm, uint32_t n)
{
	uint32_t file = mm->b->iface[n].file;

	if (file != 0) {
		uint64_t owner = atomic_load(&mm->b->file[file - 1].owner);

		if (owner != 0 && !sim_alive(mm->w, owner))
			sim_reap(mm->w, owner);
	}
	return mm->b->iface[n].file == 0;
}

static int claim(struct sim_mm *mm, struct hal_kdev_claim *c)
{
	uint32_t ifs = (uint32_t)mm->w->par.ifs;

	if (c->hint < 1 || c->hint > ifs)
		return -EINVAL;
	if (mm->f->claimed != 0)
		return -EBUSY;
	for (uint32_t i = 0; i < ifs; i++) {
		uint32_t n = (c->hint - 1 + i) % ifs + 1;

		if (if_free(mm, n)) {
			if_take(mm, n, c);
			return 0;
		}
	}
	return -EBUSY;
}

/* All processes of a model belong to one user, so each may be the service. */
static int claim_service(struct sim_mm *mm, struct hal_kdev_claim *c)
{
	if (c->hint != 0)
		return -EINVAL;
	if (mm->f->claimed != 0 || !if_free(mm, HAL_REG_IF_SERVICE))
		return -EBUSY;
	if_take(mm, HAL_REG_IF_SERVICE, c);
	return 0;
}

static int release(struct sim_mm *mm)
{
	if (mm->f->claimed == 0)
		return -EINVAL;
	sim_store_file_over(mm->w, mm->m.board, mm->file);
	mm->held = 0;
	if_release(mm->w, mm->m.board, mm->f->claimed - 1);
	mm->f->claimed = 0;
	return 0;
}

static int clear(struct sim_mm *mm)
{
	if (mm->f->claimed == 0)
		return -EINVAL;
	sim_tif_write(mm, HAL_TIF_CLR_REQ,
		      UINT64_C(1) << (mm->f->claimed - 1));
	return 0;
}

/* ---- Events ------------------------------------------------------------ */

int sim_event_fd(struct sim_mm *mm)
{
	struct sockaddr_un sun;
	uint64_t name = unm_random();
	socklen_t len;
	int fd, ret;

	if (mm->f->claimed == 0)
		return -EINVAL;
	if (mm->event_fd >= 0)
		return mm->event_fd;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	len = sim_name(&sun, "event", mm->w->hash, name);
	if (bind(fd, (struct sockaddr *)&sun, len) != 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	atomic_store(&mm->b->fifo[mm->f->claimed - 1].event, name);
	mm->event_fd = fd;
	return fd;
}

static int arm(struct sim_mm *mm)
{
	uint32_t n = mm->f->claimed - 1, number;
	struct sim_fifo *fifo;
	char old[8];

	if (mm->event_fd < 0 || mm->f->claimed == 0)
		return -EINVAL;
	fifo = &mm->b->fifo[n];
	while (recv(mm->event_fd, old, sizeof(old), MSG_DONTWAIT) >= 0)
		;
	do
		number = atomic_fetch_add(&fifo->arms, 1) + 1;
	while (number == 0);
	atomic_store(&fifo->armed, number);
	/* A sender enqueues first and reads armed then; here the order is the
	 * opposite, so that one of the two notices the other. */
	if (!sim_fifo_quiet(mm->w, mm->m.board, n))
		sim_signal(mm->w, fifo);
	return 0;
}

/* ---- Ends -------------------------------------------------------------- */

/* Take back all that belongs to an open file. The driver's lock is held. */
static void file_over(struct sim_world *w, uint32_t board, uint32_t file)
{
	struct sim_board *b = w->board[board];
	uint32_t engine = file + 1;

	sim_store_file_over(w, board, file);
	for (uint32_t n = 0; n < HAL_REG_IFS; n++)
		if (b->iface[n].file == file + 1)
			if_release(w, board, n);
	atomic_compare_exchange_strong(&b->engine, &engine, 0);
	sim_mem_file_over(w, board, file);
	b->file[file].claimed = 0;
	atomic_store(&b->file[file].xfers, 0);
	/* Last: if this process dies before, another one starts again. */
	atomic_store(&b->file[file].owner, 0);
}

void sim_reap(struct sim_world *w, uint64_t owner)
{
	for (uint32_t b = 0; b < w->boards; b++)
		for (uint32_t i = 0; i < SIM_FILES; i++)
			if (atomic_load(&w->board[b]->file[i].owner) == owner)
				file_over(w, b, i);
}

static bool reap_some(struct sim_world *w, const struct sim_board *b)
{
	bool any = false;

	for (uint32_t i = 0; i < SIM_FILES; i++) {
		uint64_t owner = atomic_load(&b->file[i].owner);

		if (owner != 0 && !sim_alive(w, owner)) {
			sim_reap(w, owner);
			any = true;
		}
	}
	return any;
}

/* ---- Open and close ---------------------------------------------------- */

static int take_file(struct sim_mm *mm)
{
	for (uint32_t i = 0; i < SIM_FILES; i++) {
		struct sim_file *f = &mm->b->file[i];

		if (atomic_load(&f->owner) != 0)
			continue;
		mm->file = i;
		mm->f = f;
		atomic_store(&f->owner, mm->w->me);
		return 0;
	}
	return -ENFILE;
}

int sim_file_open(struct sim_mm *mm)
{
	int ret;

	sim_part_hang_up(mm->w);
	sim_lock(mm->w);
	ret = take_file(mm);
	if (ret != 0 && reap_some(mm->w, mm->b))
		ret = take_file(mm);
	sim_unlock(mm->w);
	return ret;
}

void sim_file_close(struct sim_mm *mm)
{
	sim_lock(mm->w);
	file_over(mm->w, mm->m.board, mm->file);
	sim_unlock(mm->w);
}

/* ---- ioctl ------------------------------------------------------------- */

static int info(struct sim_mm *mm, struct hal_kdev_info *i)
{
	const struct sim_params *par = &mm->w->par;
	bool match = i->magic == HAL_KDEV_MAGIC &&
		     i->version == HAL_KDEV_VERSION;

	memset(i, 0, sizeof(*i));
	i->magic = HAL_KDEV_MAGIC;
	i->version = HAL_KDEV_VERSION;
	if (!match)
		return -EPROTO;
	i->board = mm->m.board;
	i->boards = mm->w->boards;
	i->ifs = (uint32_t)par->ifs;
	i->fifo_words = (uint32_t)par->fifo;
	i->xfer_depth = (uint32_t)par->xfers;
	i->flags = HAL_KDEV_HAS_ENGINE | (par->any ? HAL_KDEV_ANY_BOARD : 0) |
		   (par->press ? HAL_KDEV_BACK_PRESSURE : 0);
	i->xfer_max = (UINT64_C(1) << par->btt) - 1;
	i->base_dest = SIM_VMBOX_BASE;
	return 0;
}

/* Give the engine to a file. The driver's lock is held. */
static int engine(struct sim_mm *mm, struct hal_kdev_engine *e)
{
	struct sim_board *b = mm->b;
	uint32_t holder = atomic_load(&b->engine);

	if (holder != 0) {
		uint64_t owner = atomic_load(&b->file[holder - 1].owner);

		if (owner == 0 || sim_alive(mm->w, owner))
			return -EBUSY;
		sim_reap(mm->w, owner);
	}
	atomic_store(&b->engine, mm->file + 1);
	/* A process that starts a transfer counts it first and reads engine
	 * then; here the order is the opposite. */
	for (uint32_t i = 0; i < SIM_FILES; i++) {
		struct sim_file *f = &b->file[i];
		uint64_t owner = atomic_load(&f->owner);

		if (owner != 0 && atomic_load(&f->xfers) != 0 &&
		    sim_alive(mm->w, owner)) {
			atomic_store(&b->engine, 0);
			return -EBUSY;
		}
	}
	sim_cdma_reset(mm->w, b);
	e->btt_bits = (uint32_t)mm->w->par.btt;
	e->flags = 0;
	return 0;
}

static int with_lock(struct sim_mm *mm, unsigned long cmd, void *arg)
{
	int ret = -ENOTTY;

	sim_lock(mm->w);
	switch (cmd) {
	case HAL_KDEV_IO_CLAIM:
		ret = claim(mm, arg);
		break;
	case HAL_KDEV_IO_SERVICE:
		ret = claim_service(mm, arg);
		break;
	case HAL_KDEV_IO_RELEASE:
		ret = release(mm);
		break;
	case HAL_KDEV_IO_ENGINE:
		ret = engine(mm, arg);
		break;
	}
	sim_unlock(mm->w);
	return ret;
}

int sim_kdev_ioctl(struct sim_mm *mm, unsigned long cmd, void *arg)
{
	switch (cmd) {
	case HAL_KDEV_IO_INFO:
		return info(mm, arg);
	case HAL_KDEV_IO_ARM:
		return arm(mm);
	case HAL_KDEV_IO_CLEAR:
		return clear(mm);
	case HAL_KDEV_IO_ALLOC:
		return sim_mem_alloc(mm, arg);
	case HAL_KDEV_IO_IMPORT:
		return sim_mem_import(mm, arg);
	case HAL_KDEV_IO_CHECK:
		return sim_mem_check(mm, ((struct hal_kdev_hold *)arg)->hold);
	case HAL_KDEV_IO_DROP:
		return sim_mem_drop(mm, ((struct hal_kdev_hold *)arg)->hold);
	case HAL_KDEV_IO_CANCEL:
		return sim_xfer_cancel(mm,
				       ((struct hal_kdev_cancel *)arg)->id);
	default:
		return with_lock(mm, cmd, arg);
	}
}
