/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_xfer.c - transfers that the kernel device executes: write(), read()
 * and CANCEL of hal_kdev.h.
 *
 * Transfers start in order, advance when their process accesses the device, and
 * end in any order. They are private to their process and end with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "hal/sim/hal_sim_check.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_mem.h"
#include "hal/sim/hal_sim_xfer.h"

#define STEP		65536u		/* bytes moved by an access */

/* ---- Moving ------------------------------------------------------------ */

static void move(struct sim_world *w, struct sim_xfer *x, uint64_t n)
{
	sim_mem_move(w, x->x.dst + x->moved, x->x.src + x->moved, n);
	x->moved += n;
}

static void end(struct sim_mm *mm, struct sim_xfer *x, uint32_t state,
		uint64_t now)
{
	if (mm->w->par.timed)
		hal_time_over(&mm->queue, &x->run, now);
	x->state = state;
	x->ended = ++mm->ends;
}

/* Is it a transfer from or to a dead board? *known: the driver knows of the
 * death, so that the transfer fails: at once if the network answers for the
 * board, else after HAL_KDEV_DEAD_MS. */
static bool lost(const struct sim_mm *mm, const struct sim_xfer *x, bool *known)
{
	const uint32_t boards[] = { hal_gaddr_board(x->x.src),
				    hal_gaddr_board(x->x.dst) };

	for (int i = 0; i < 2; i++) {
		enum sim_death death = sim_death(mm->w, boards[i]);

		if (boards[i] == mm->m.board || death == SIM_LIVES)
			continue;
		*known = death == SIM_DEAD_ABORTS ||
			 sim_known_dead(mm->w, boards[i]);
		return true;
	}
	return false;
}

/* May it end? */
static bool is_due(const struct sim_mm *mm, const struct sim_xfer *x,
		   uint64_t now)
{
	const struct sim_params *par = &mm->w->par;

	return (par->dma == 0 && !par->timed) ||
	       now >= (par->timed ? x->run.due : x->due);
}

static void step(struct sim_mm *mm, struct sim_xfer *x, uint64_t now)
{
	struct sim_world *w = mm->w;
	uint64_t n = x->x.size - x->moved;
	bool known;

	if (n > STEP)
		n = STEP;
	x->state = HAL_KDEV_STARTED;
	if (lost(mm, x, &known)) {
		if (known) {
			x->error = HAL_CDMA_SR_DECERR;
			end(mm, x, HAL_KDEV_FAILED, now);
		}
		return;
	}
	if (x->error != 0) {
		if (is_due(mm, x, now))
			end(mm, x, HAL_KDEV_FAILED, now);
		return;
	}
	if (w->par.mutant == SIM_MUTANT_EARLY && x->moved + n == x->x.size) {
		x->late = n;
		end(mm, x, HAL_KDEV_COMPLETED, now);
		return;
	}
	move(w, x, n);
	if (x->moved != x->x.size)
		return;
	if (is_due(mm, x, now))
		end(mm, x, HAL_KDEV_COMPLETED, now);
}

static void forget(struct sim_mm *mm, struct sim_xfer *x)
{
	x->x.id = 0;
	atomic_store(&mm->f->xfers, --mm->nxfers);
}

static bool under_way(const struct sim_xfer *x)
{
	return x->x.id != 0 && x->state < HAL_KDEV_COMPLETED;
}

/* SIM_MUTANT_EARLY: move the bytes of a transfer that was reported as
 * complete. */
static void move_late(struct sim_mm *mm, struct sim_xfer *x)
{
	if (x->x.id == 0 || x->late == 0 || x->ended != 0 ||
	    sim_below(mm, 256) != 0)
		return;
	move(mm->w, x, x->late);
	forget(mm, x);
}

/* Timing model: the transfer to continue next. A transfer whose bytes are there
 * ends when it is due, and else does not delay the bytes of those behind it.
 * Nor does one that waits until the driver knows of a death. */
static struct sim_xfer *next_timed(struct sim_mm *mm, uint64_t now)
{
	struct sim_xfer *next = NULL;

	unm_list_for_each(pos, &mm->queue.runs) {
		struct sim_xfer *x = unm_container(pos, struct sim_xfer,
						   run.list);
		bool due = is_due(mm, x, now), known;

		if (!due && (next != NULL || x->moved == x->x.size))
			continue;
		if (lost(mm, x, &known) && !known)
			continue;
		if (due)
			return x;
		next = x;
	}
	return next;
}

void sim_xfer_run(struct sim_mm *mm)
{
	uint64_t n = 0, which, now;
	struct sim_xfer *x;

	for (uint32_t i = 0; i < mm->w->par.xfers; i++) {
		n += under_way(&mm->xfers[i]);
		move_late(mm, &mm->xfers[i]);
	}
	if (n == 0)
		return;
	/* one reading: the model's own time is to be short */
	now = sim_now(mm->w);
	if (mm->w->par.timed) {
		x = next_timed(mm, now);
		if (x != NULL)
			step(mm, x, now);
		return;
	}
	which = sim_below(mm, (long)n);
	for (uint32_t i = 0; i < mm->w->par.xfers; i++) {
		if (under_way(&mm->xfers[i]) && which-- == 0) {
			step(mm, &mm->xfers[i], now);
			return;
		}
	}
}

/* ---- write() ----------------------------------------------------------- */

static int check(struct sim_mm *mm, const struct hal_kdev_xfer *k)
{
	if (k->size == 0 || k->size >> mm->w->par.btt != 0 || k->id == 0)
		return -EINVAL;
	if (!sim_mem_held(mm->w, k->src, k->size) ||
	    !sim_mem_held(mm->w, k->dst, k->size))
		return -EFAULT;
	return 0;
}

static void start(struct sim_mm *mm, const struct hal_kdev_xfer *k)
{
	struct sim_world *w = mm->w;
	struct sim_xfer *x = mm->xfers;

	while (x->x.id != 0)
		x++;
	memset(x, 0, sizeof(*x));
	x->x = *k;
	if (w->par.timed)
		hal_time_begin(&w->par.figures, &mm->queue, &x->run,
				sim_now(w), k->size);
	else if (w->par.dma != 0)
		x->due = sim_now(w) + (uint64_t)w->par.dma *
			 ((k->size + SIM_PAGE - 1) / SIM_PAGE);
	if (sim_below(mm, 1000) < (uint64_t)w->par.slverr)
		x->error = HAL_CDMA_SR_SLVERR;
	mm->nxfers++;
}

ssize_t sim_xfer_write(struct sim_mm *mm, const void *buf, size_t len)
{
	size_t n = len / sizeof(struct hal_kdev_xfer), i;
	int ret = 0;

	if (n == 0 || len % sizeof(struct hal_kdev_xfer) != 0)
		return -EINVAL;
	sim_start(mm, "a write() of transfers");
	for (i = 0; i < n; i++) {
		struct hal_kdev_xfer k;

		memcpy(&k, (const char *)buf + i * sizeof(k), sizeof(k));
		ret = check(mm, &k);
		if (ret == 0 && mm->nxfers == (uint32_t)mm->w->par.xfers)
			ret = -EAGAIN;
		if (ret != 0)
			break;
		/*
		 * Count first, read engine then; engine() of hal_sim_kdev.c
		 * does it in the opposite order, so that one of the two
		 * notices.
		 */
		atomic_store(&mm->f->xfers, mm->nxfers + 1);
		if (atomic_load(&mm->b->engine) != 0) {
			atomic_store(&mm->f->xfers, mm->nxfers);
			ret = -EBUSY;
			break;
		}
		start(mm, &k);
	}
	return i != 0 ? (ssize_t)(i * sizeof(struct hal_kdev_xfer)) : ret;
}

/* ---- read() ------------------------------------------------------------ */

/* The one that ended first, or NULL. */
static struct sim_xfer *oldest(struct sim_mm *mm)
{
	struct sim_xfer *first = NULL;

	for (uint32_t i = 0; i < mm->w->par.xfers && mm->nxfers != 0; i++) {
		struct sim_xfer *x = &mm->xfers[i];

		if (x->x.id != 0 && x->ended != 0 &&
		    (first == NULL || x->ended < first->ended))
			first = x;
	}
	return first;
}

ssize_t sim_xfer_read(struct sim_mm *mm, void *buf, size_t len)
{
	size_t n = len / sizeof(struct hal_kdev_status), i;
	struct sim_xfer *x;

	for (i = 0; i < n && (x = oldest(mm)) != NULL; i++) {
		struct hal_kdev_status st = {
			.id = x->x.id, .state = x->state, .error = x->error,
		};

		memcpy((char *)buf + i * sizeof(st), &st, sizeof(st));
		mm->unseen |= st.state == HAL_KDEV_COMPLETED;
		if (mm->w->par.mutant == SIM_MUTANT_TWICE &&
		    !x->reported_twice) {
			x->reported_twice = true;
			x->ended = ++mm->ends;
			continue;
		}
		if (x->late != 0)
			x->ended = 0;	/* the rest comes after its status */
		else
			forget(mm, x);
	}
	return i != 0 ? (ssize_t)(i * sizeof(struct hal_kdev_status)) :
			-EAGAIN;
}

/* ---- CANCEL ------------------------------------------------------------ */

int sim_xfer_cancel(struct sim_mm *mm, uint64_t id)
{
	for (uint32_t i = 0; i < mm->w->par.xfers; i++) {
		struct sim_xfer *x = &mm->xfers[i];

		if (under_way(x) && (id == 0 || x->x.id == id))
			end(mm, x, HAL_KDEV_CANCELLED, sim_now(mm->w));
	}
	return 0;
}
