/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_types.h - the register model, hal_mmio.h in software: what a process
 * knows of it. Private to hal/sim and its tests.
 *
 * Each file calls files further down only:
 *
 *   hal_sim.c        parameters, open files; passes an access to its register
 *   hal_sim_kdev.c   kernel device: interfaces, events, ends of processes
 *   hal_sim_xfer.c   kernel device: transfers
 *   hal_sim_cdma.c   the AXI CDMA engine's registers
 *   hal_sim_box.c    packetizer and mailboxes
 *   hal_sim_mem.c    kernel device: memory and its holders
 *   hal_sim_store.c  remote stores and loads
 *   hal_sim_join.c   how processes find each other's segments; which are alive
 *   hal_sim_check.c  barriers that are missing, accesses that no block has
 *
 * The processes of a model share a memory segment per board (hal_sim_state.h,
 * which also says how they survive each other's ends). There is no thread: the
 * process that accesses a register next carries out what the hardware would do
 * by itself, for whichever process it was started. An access that the hardware
 * would not survive ends the process with a log line (sim_misuse()).
 */
#ifndef HAL_SIM_TYPES_H
#define HAL_SIM_TYPES_H

#include "hal/hal_fault_point.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/hal_map.h"
#include "hal/hal_task.h"
#include "hal/dev/hal_mmio.h"
#include "hal/sim/hal_sim_state.h"
#include "util/unm_list.h"
#include "util/unm_random.h"

/*
 * A model, as this process sees it: one per process, from the first open file
 * to the last. The fields do not change while files are open, but for refs and
 * mms.
 */
struct sim_world {
	struct sim_params par;
	uint32_t boards;
	int refs;			/* open files; lock of hal_sim.c */
	pid_t pid;			/* process that joined */
	uint64_t hash;			/* of par; a part of the names of all
					 * segments and sockets */
	uint64_t me;			/* owner word of this process */
	uint64_t mem_bytes;		/* memory of a board */
	int listen_fd;			/* by which newcomers find this
					 * process */
	int send_fd;			/* signals event fds */
	struct hal_lock lock;		/* between the threads of this process;
					 * taken before common.lock */
	/* functions of files further up, set by hal_sim.c */
	void (*rebuild)(struct sim_world *w);	/* sim_mem_rebuild() */
	void (*reap)(struct sim_world *w, uint64_t owner);	/* sim_reap() */
	struct unm_list mms;		/* open files of this process,
					 * sim_mm.list */
	struct hal_lock mms_lock;	/* protects mms */
	int fd[HAL_REG_BOARDS_MAX];	/* segments of the boards, */
	struct hal_map *map[HAL_REG_BOARDS_MAX];	/* their maps, */
	struct sim_board *board[HAL_REG_BOARDS_MAX];	/* and their state */
};

/* A transfer that the driver executes; private to its open file. */
struct sim_xfer {
	struct hal_kdev_xfer x;		/* as written by the process */
	uint64_t moved;			/* bytes done */
	uint64_t due;			/* ns: not over before, by params.dma */
	struct hal_time_run run;	/* timing model: when the engine
					 * executes it */
	uint32_t state;			/* enum hal_kdev_state */
	uint32_t error;			/* HAL_CDMA_SR_ERRORS */
	uint64_t late;			/* SIM_MUTANT_EARLY: bytes that move
					 * after the end was reported */
	uint64_t ended;			/* number in the order of ends */
	bool reported_twice;		/* SIM_MUTANT_TWICE was done to it */
};

/* An open kernel device, as its process sees it. One thread at a time uses
 * it. */
struct sim_mm {
	struct hal_mmio m;		/* first member: the caller's view */
	struct sim_world *w;
	struct unm_list list;		/* in w->mms */
	struct sim_board *b;		/* its board */
	struct sim_file *f;		/* its entry in the shared state */
	struct hal_task task;		/* this process; 0: not known */
	uint32_t file;			/* index of f */
	uint32_t idle;			/* reads of an empty mailbox so far */
	uint64_t loads;			/* 8-byte loads from tables and from
					 * memory of other boards, for tests */
	uint64_t rng;			/* state of unm_random_next() */
	uint64_t swept;			/* ns: last sim_sweep() */
	uint64_t lines;			/* bit per hash of a line that has a
					 * store held back */
	uint32_t held;			/* bit per entry of f->post that may be
					 * full */
	bool ready;			/* memory_before_start() since the last
					 * start */
	uint32_t half;			/* words read of a packet that is not
					 * read to its end */
	bool unseen;			/* a packet or a transfer's end was
					 * read, and no barrier since */
	int event_fd;			/* -1: none yet */
	uint32_t nxfers;		/* entries of xfers in use */
	uint64_t ends;			/* transfers that have ended so far */
	struct sim_xfer *xfers;		/* params.xfers of them */
	/* under the timing model */
	struct hal_time_path path;	/* packets and stores of this file */
	uint64_t begun;			/* ns: when the first register of a
					 * packet was written */
	uint64_t seen;			/* ns: the clock, as a read of a mailbox
					 * found it last */
	struct hal_time_queue queue;	/* its transfers, */
	struct hal_time_run run;	/* and the one of its engine's
					 * registers */
};

static inline struct sim_mm *sim_mm(struct hal_mmio *mm)
{
	return (struct sim_mm *)mm;
}

/* hal_mmio_map.impl: the block of a map, and the number of its page or the
 * global address of its memory. */
static inline void *sim_impl(enum hal_kdev_block block, uint64_t what)
{
	return (void *)(uintptr_t)((uint64_t)block << 56 | what);
}

static inline enum hal_kdev_block sim_block(const struct hal_mmio_map *map)
{
	return (uintptr_t)map->impl >> 56;
}

static inline uint64_t sim_what(const struct hal_mmio_map *map)
{
	return (uintptr_t)map->impl & ((UINT64_C(1) << 56) - 1);
}

/* A pseudo-random number from 0 to n - 1, so that a seed repeats a run; 0 if n
 * is not positive. */
static inline uint64_t sim_below(struct sim_mm *mm, long n)
{
	return n > 0 ? unm_random_next(&mm->rng) % (uint64_t)n : 0;
}

/* The memory of a range of global addresses in this process; NULL: no board has
 * it. */
static inline void *sim_memory(struct sim_world *w, uint64_t gaddr,
			       uint64_t len)
{
	uint32_t b = hal_gaddr_board(gaddr);
	uint64_t at = (gaddr & HAL_GADDR_LOCAL_MASK) - SIM_MEM_BASE;

	if (b >= w->boards || at > w->mem_bytes || len > w->mem_bytes - at)
		return NULL;
	return (char *)w->board[b] + SIM_STATE_BYTES + at;
}

/* How a board has died; SIM_LIVES: it has not. */
static inline enum sim_death sim_death(struct sim_world *w, uint32_t board)
{
	return (enum sim_death)atomic_load(&w->board[board]->death);
}

#endif /* HAL_SIM_TYPES_H */
