/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim.h - the register model; private to hal_sim*.c and its tests.
 *
 *   hal_sim.c        parameters, open files, which register an access is of
 *   hal_sim_join.c   how processes find each other's segments; who lives
 *   hal_sim_box.c    packetizer and mailboxes
 *   hal_sim_cdma.c   the AXI CDMA engine's registers
 *   hal_sim_kdev.c   kernel device: interfaces, events, ends
 *   hal_sim_mem.c    kernel device: memory and who holds it
 *   hal_sim_xfer.c   kernel device: transfers
 *   hal_sim_store.c  remote stores and loads
 *
 * There is no thread: what the hardware does by itself is done by whoever
 * accesses a register next, of which process he may be. An access that no
 * hardware would survive ends the process with a line (sim_misuse()).
 */
#ifndef HAL_SIM_H
#define HAL_SIM_H

#include <sys/socket.h>

#include "hal/hal_lock.h"
#include "hal/hal_map.h"
#include "hal/dev/hal_mmio.h"
#include "hal/hal_fault_point.h"
#include "hal/sim/hal_sim_state.h"

/* One model, as this process sees it. */
struct sim_world {
	struct sim_params par;
	uint32_t boards;
	int refs;			/* open files */
	pid_t pid;
	uint64_t hash;			/* in the names of all that belongs */
	uint64_t me;			/* owner word of this process */
	uint64_t mem_bytes;		/* of a board */
	int listen_fd;			/* says that we are here */
	int send_fd;			/* to signal others */
	struct hal_lock lock;		/* before common.lock */
	struct sim_mm *mms;
	struct hal_lock mms_lock;
	int fd[HAL_REG_BOARDS_MAX];
	struct hal_map *map[HAL_REG_BOARDS_MAX];
	struct sim_board *board[HAL_REG_BOARDS_MAX];
};

/* A transfer of the kernel path. */
struct sim_xfer {
	struct hal_kdev_xfer x;
	uint64_t moved, due;
	uint32_t state;			/* enum hal_kdev_state */
	uint32_t error;
	uint64_t late;			/* SIM_MUTANT_EARLY: bytes to come */
	uint64_t ended;			/* number in the order of ends */
	bool told_twice;
};

/* An open file. */
struct sim_mm {
	struct hal_mmio m;		/* first */
	struct sim_world *w;
	struct sim_mm *next, **pprev;
	struct sim_board *b;
	struct sim_file *f;
	uint32_t file;			/* its index */
	uint32_t idle;			/* reads of an empty mailbox */
	uint64_t loads;			/* 8-byte loads from tables, and from
					 * memory that is not mapped as own */
	uint64_t rng;
	uint64_t swept;			/* ns */
	uint64_t lines;			/* of held stores, hashed */
	uint32_t held;			/* bit per entry that may be full */
	bool ready;			/* memory_before_start() since the last
					 * start */
	uint32_t half;			/* words of a packet that were read */
	bool unseen;			/* a packet or a transfer's end was
					 * read, and no barrier since */
	int event_fd;
	uint32_t nxfers;
	uint64_t ends;
	struct sim_xfer *xfers;		/* params.xfers of them */
};

static inline struct sim_mm *sim_mm(struct hal_mmio *mm)
{
	return (struct sim_mm *)mm;
}

/* What a map is of: struct hal_mmio_map.impl. */
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

/* splitmix64 */
static inline uint64_t sim_random(struct sim_mm *mm)
{
	uint64_t z = mm->rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint64_t sim_below(struct sim_mm *mm, long n)
{
	return n > 0 ? sim_random(mm) % (uint64_t)n : 0;
}

/* Memory of a range of global addresses, or NULL. */
static inline void *sim_memory(struct sim_world *w, uint64_t gaddr,
			       uint64_t len)
{
	uint32_t b = hal_gaddr_board(gaddr);
	uint64_t at = (gaddr & HAL_GADDR_LOCAL_MASK) - SIM_MEM_BASE;

	if (b >= w->boards || at > w->mem_bytes || len > w->mem_bytes - at)
		return NULL;
	return (char *)w->board[b] + SIM_STATE_BYTES + at;
}

/* hal_sim.c */
void sim_misuse(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));
void sim_sweep(struct sim_mm *mm);
/* An access of the file, whatever it is of. */
void sim_access(const struct sim_mm *mm);
/* Something starts that may read ordinary memory, or tells of it. */
void sim_start(struct sim_mm *mm, const char *what);
/* For tests: from now on a board is as dead as that, or lives again. */
void hal_sim_death(struct hal_mmio *mm, uint32_t board, enum sim_death death);
static inline enum sim_death sim_death(struct sim_world *w, uint32_t board)
{
	return (enum sim_death)atomic_load(&w->board[board]->death);
}
/* Have the other boards' drivers found out that it is dead? */
bool sim_known_dead(struct sim_world *w, uint32_t board);
/* For tests: the trusted page, which the driver maps for nobody. */
void hal_sim_trusted(struct hal_mmio *mm, struct hal_mmio_map *map);

/* hal_sim_join.c */
int sim_join(const struct sim_params *par, struct sim_world **w);
void sim_part_hang_up(struct sim_world *w);
void sim_leave(struct sim_world *w);
void sim_forget(struct sim_world *w);
bool sim_alive(struct sim_world *w, uint64_t owner);
void sim_lock(struct sim_world *w);
void sim_unlock(struct sim_world *w);
uint64_t sim_now(struct sim_world *w);
uint64_t sim_host_ns(void);
socklen_t sim_name(void *sun, const char *what, uint64_t hash, uint64_t n);

/* hal_sim_box.c */
void sim_mif_read(struct sim_mm *mm, uint32_t n, uint64_t w[2]);
void sim_mif_write(struct sim_mm *mm, uint32_t n, const uint64_t w[2]);
void sim_pif_read(struct sim_mm *mm, uint32_t n, uint32_t off, uint64_t w[2]);
void sim_pif_write(struct sim_mm *mm, uint32_t n, uint32_t off,
		   const uint64_t w[2]);
uint64_t sim_tif_read(struct sim_mm *mm, uint32_t off);
void sim_tif_write(struct sim_mm *mm, uint32_t off, uint64_t val);
/* What PIF n has pending is sent or refused now. */
void sim_pif_settle(struct sim_world *w, uint32_t board, uint32_t n);
/* A half-written packet and the mailbox's content are thrown away. */
void sim_if_reset(struct sim_world *w, uint32_t board, uint32_t n);
bool sim_fifo_quiet(struct sim_world *w, uint32_t board, uint32_t n);
void sim_signal(struct sim_world *w, struct sim_fifo *fifo);

/* hal_sim_cdma.c */
uint32_t sim_cdma_read(struct sim_mm *mm, uint32_t off);
void sim_cdma_write(struct sim_mm *mm, uint32_t off, uint32_t val);
void sim_cdma_reset(struct sim_world *w, struct sim_board *b);

/* hal_sim_kdev.c */
int sim_file_open(struct sim_mm *mm);
void sim_file_close(struct sim_mm *mm);
int sim_kdev_ioctl(struct sim_mm *mm, unsigned long cmd, void *arg);
int sim_event_fd(struct sim_mm *mm);
/* Everything of a dead process is given back. Lock held. */
void sim_reap(struct sim_world *w, uint64_t owner);
/* Is the holder of that interface dead? Then it is given back. */
void sim_table_look(struct sim_world *w, uint32_t board, uint32_t n);

/* hal_sim_mem.c: calls of the driver, sim_lock() not held unless said */
int sim_mem_alloc(struct sim_mm *mm, struct hal_kdev_alloc *a);
int sim_mem_import(struct sim_mm *mm, struct hal_kdev_import *imp);
int sim_mem_check(struct sim_mm *mm, uint32_t hold);
int sim_mem_drop(struct sim_mm *mm, uint32_t hold);
int sim_mem_map(struct sim_mm *mm, uint64_t gaddr, size_t len,
		struct hal_mmio_map *map);
void sim_mem_unmap(struct sim_mm *mm, uint64_t gaddr);
bool sim_mem_held(struct sim_world *w, uint64_t gaddr, uint64_t len);
bool sim_mem_decodes(struct sim_world *w, uint64_t gaddr, uint64_t len);
void sim_mem_file_over(struct sim_world *w, uint32_t board, uint32_t file);
void sim_mem_rebuild(struct sim_world *w);	/* lock held */

/* hal_sim_store.c */
void sim_store(struct hal_mmio_map *map, uint64_t off, const void *src,
	       size_t len);
void sim_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
	      size_t len);
void sim_store_flush(struct sim_mm *mm, uint32_t board);
/* Does a load from that board's memory end well? */
bool sim_load_answered(struct sim_mm *mm, uint32_t board);
void sim_store_some(struct sim_mm *mm);
/* Stores of others that are old, or of that file: all. */
void sim_store_sweep(struct sim_mm *mm, uint64_t now);
void sim_store_file_over(struct sim_world *w, uint32_t board, uint32_t file);

/* hal_sim_xfer.c */
ssize_t sim_xfer_write(struct sim_mm *mm, const void *buf, size_t len);
ssize_t sim_xfer_read(struct sim_mm *mm, void *buf, size_t len);
int sim_xfer_cancel(struct sim_mm *mm, uint64_t id);
void sim_xfer_run(struct sim_mm *mm);

#endif /* HAL_SIM_H */
