/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim.h - the register model: hal_mmio.h in software. Private to hal_sim*.c
 * and its tests.
 *
 *   hal_sim.c        parameters, open files; passes an access to its register
 *   hal_sim_join.c   how processes find each other's segments; which are alive
 *   hal_sim_box.c    packetizer and mailboxes
 *   hal_sim_cdma.c   the AXI CDMA engine's registers
 *   hal_sim_kdev.c   kernel device: interfaces, events, ends of processes
 *   hal_sim_mem.c    kernel device: memory and its holders
 *   hal_sim_xfer.c   kernel device: transfers
 *   hal_sim_store.c  remote stores and loads
 *
 * The processes of a model share a memory segment per board (hal_sim_state.h).
 * There is no thread: the process that accesses a register next carries out
 * what the hardware would do by itself, for whichever process it was started.
 * An access that the hardware would not survive ends the process with a log
 * line (sim_misuse()).
 */
#ifndef HAL_SIM_H
#define HAL_SIM_H

#include <sys/socket.h>

#include "hal/hal_lock.h"
#include "hal/hal_map.h"
#include "hal/dev/hal_mmio.h"
#include "hal/hal_fault_point.h"
#include "hal/sim/hal_sim_state.h"

/*
 * A model, as this process sees it: one per process, from the first open file
 * to the last. The fields do not change after sim_join(), but for refs and mms.
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
	struct sim_mm *mms;		/* open files of this process */
	struct hal_lock mms_lock;	/* protects mms */
	int fd[HAL_REG_BOARDS_MAX];	/* segments of the boards, */
	struct hal_map *map[HAL_REG_BOARDS_MAX];	/* their maps, */
	struct sim_board *board[HAL_REG_BOARDS_MAX];	/* and their state */
};

/* A transfer that the driver executes; private to its open file. */
struct sim_xfer {
	struct hal_kdev_xfer x;		/* as written by the process */
	uint64_t moved;			/* bytes done */
	uint64_t due;			/* ns: not over before */
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
	struct sim_mm *next, **pprev;	/* in w->mms */
	struct sim_board *b;		/* its board */
	struct sim_file *f;		/* its entry in the shared state */
	uint32_t file;			/* index of f */
	uint32_t idle;			/* reads of an empty mailbox so far */
	uint64_t loads;			/* 8-byte loads from tables and from
					 * memory of other boards, for tests */
	uint64_t rng;			/* state of sim_random() */
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

/* A pseudo-random number (splitmix64), so that a seed repeats a run. */
static inline uint64_t sim_random(struct sim_mm *mm)
{
	uint64_t z = mm->rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A pseudo-random number from 0 to n - 1; 0 if n is not positive. */
static inline uint64_t sim_below(struct sim_mm *mm, long n)
{
	return n > 0 ? sim_random(mm) % (uint64_t)n : 0;
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

/* ---- hal_sim.c: parameters, open files, accesses ----------------------- */

/* End the process with a log line: it did something that the hardware would not
 * survive, or that its documentation forbids. */
void sim_misuse(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/* Carry out what is due by the clock, at most every 500 us. Called where a
 * process waits and nothing happens. */
void sim_sweep(struct sim_mm *mm);

/* Called by each access: ends the process if status_before_memory() is missing
 * since a packet or the end of a transfer was read. */
void sim_access(const struct sim_mm *mm);

/* Called before a packet or a transfer (named by what) is started: ends the
 * process if memory_before_start() is missing since the last start. */
void sim_start(struct sim_mm *mm, const char *what);

/* For tests: let a board die in the given way, or live again (SIM_LIVES). */
void hal_sim_death(struct hal_mmio *mm, uint32_t board, enum sim_death death);

static inline enum sim_death sim_death(struct sim_world *w, uint32_t board)
{
	return (enum sim_death)atomic_load(&w->board[board]->death);
}

/* Have the drivers of the other boards noticed the death of a board? They do
 * after HAL_KDEV_DEAD_MS. */
bool sim_known_dead(struct sim_world *w, uint32_t board);

/* For tests: map the trusted page, which the driver maps for no process. */
void hal_sim_trusted(struct hal_mmio *mm, struct hal_mmio_map *map);

/* ---- hal_sim_join.c: processes of a model ------------------------------ */

/*
 * Join the model with these parameters; make it if no process has it. Returns 0
 * and *w, or a negative errno value: -EADDRINUSE if another process needs more
 * than ten seconds to join, -EBUSY if the model has SIM_PARTS processes.
 */
int sim_join(const struct sim_params *par, struct sim_world **w);

/* Close connections of processes that joined meanwhile: they have learnt from
 * the kernel what they need. */
void sim_part_hang_up(struct sim_world *w);

/* Detach from a model. All files must be closed. Frees w. */
void sim_leave(struct sim_world *w);

/* Free a forked child's copy of w; the parent stays in the model. */
void sim_forget(struct sim_world *w);

/* Does the process with this owner word live? */
bool sim_alive(struct sim_world *w, uint64_t owner);

/*
 * Take and release the lock of the driver, which protects the driver's tables
 * of all boards. A lock whose holder is dead is taken over, and the derived
 * tables are rebuilt first.
 */
void sim_lock(struct sim_world *w);
void sim_unlock(struct sim_world *w);

/* Time of the model in ns: unm_now_ns(), or params.tick per access. */
uint64_t sim_now(struct sim_world *w);

/* Fill in a struct sockaddr_un with an abstract name of this model. Returns the
 * length of the address. */
socklen_t sim_name(void *sun, const char *what, uint64_t hash, uint64_t n);

/* ---- hal_sim_box.c: packetizer and mailboxes --------------------------- */

/* Accesses of 16 bytes to page n of the board of mm; off is in bytes. */
void sim_mif_read(struct sim_mm *mm, uint32_t n, uint64_t w[2]);
void sim_mif_write(struct sim_mm *mm, uint32_t n, const uint64_t w[2]);
void sim_pif_read(struct sim_mm *mm, uint32_t n, uint32_t off, uint64_t w[2]);
void sim_pif_write(struct sim_mm *mm, uint32_t n, uint32_t off,
		   const uint64_t w[2]);

/* Accesses of 8 bytes to the trusted page. */
uint64_t sim_tif_read(struct sim_mm *mm, uint32_t off);
void sim_tif_write(struct sim_mm *mm, uint32_t off, uint64_t val);

/* Finish the packet that is pending in PIF n, whatever the clock says. */
void sim_pif_settle(struct sim_world *w, uint32_t board, uint32_t n);

/* Discard a half-written packet and the content of the mailbox. */
void sim_if_reset(struct sim_world *w, uint32_t board, uint32_t n);

/* Is the FIFO empty, with nothing on the way to it? */
bool sim_fifo_quiet(struct sim_world *w, uint32_t board, uint32_t n);

/* Signal the event fd of a FIFO that is armed, and disarm it. */
void sim_signal(struct sim_world *w, struct sim_fifo *fifo);

/* ---- hal_sim_cdma.c: registers of the engine --------------------------- */

/* Accesses of 4 bytes; each also lets a transfer advance. */
uint32_t sim_cdma_read(struct sim_mm *mm, uint32_t off);
void sim_cdma_write(struct sim_mm *mm, uint32_t off, uint32_t val);

/* Put all registers into their state after a reset. */
void sim_cdma_reset(struct sim_world *w, struct sim_board *b);

/* ---- hal_sim_kdev.c: open files, interfaces, ends of processes --------- */

/* Get a free entry of the board's open files for mm. 0 or -ENFILE. */
int sim_file_open(struct sim_mm *mm);

/* Take back all that belongs to the open file, and free its entry. */
void sim_file_close(struct sim_mm *mm);

/* The calls of hal_kdev.h. Returns 0 or -errno. */
int sim_kdev_ioctl(struct sim_mm *mm, unsigned long cmd, void *arg);

/* The event fd of the mailbox of mm, made at the first call, or -errno. */
int sim_event_fd(struct sim_mm *mm);

/* Take back all that belongs to a dead process. The driver's lock is held. */
void sim_reap(struct sim_world *w, uint64_t owner);

/* Take back interface n if the process that holds it is dead. Called before its
 * entry in the table is loaded. The driver's lock is not held. */
void sim_table_check(struct sim_world *w, uint32_t board, uint32_t n);

/* ---- hal_sim_mem.c: memory and its holders ----------------------------- */

/* ALLOC, IMPORT, CHECK and DROP of hal_kdev.h; they return 0 or -errno. The
 * driver's lock is not held. */
int sim_mem_alloc(struct sim_mm *mm, struct hal_kdev_alloc *a);
int sim_mem_import(struct sim_mm *mm, struct hal_kdev_import *imp);
int sim_mem_check(struct sim_mm *mm, uint32_t hold);
int sim_mem_drop(struct sim_mm *mm, uint32_t hold);

/* Map memory that the file holds, and unmap it. The driver's lock is not
 * held. */
int sim_mem_map(struct sim_mm *mm, uint64_t gaddr, size_t len,
		struct hal_mmio_map *map);
void sim_mem_unmap(struct sim_mm *mm, uint64_t gaddr);

/* Does an open file of this process hold the range? */
bool sim_mem_held(struct sim_world *w, uint64_t gaddr, uint64_t len);

/* Is the range inside allocated memory of a board? */
bool sim_mem_decodes(struct sim_world *w, uint64_t gaddr, uint64_t len);

/* Drop all holds of an open file. The driver's lock is held. */
void sim_mem_file_over(struct sim_world *w, uint32_t board, uint32_t file);

/* Derive counts and maps of memory anew from the holds, after a holder of the
 * driver's lock has died. The lock is held. */
void sim_mem_rebuild(struct sim_world *w);

/* ---- hal_sim_store.c: remote stores and loads -------------------------- */

/* store() and load() of hal_mmio_ops. */
void sim_store(struct hal_mmio_map *map, uint64_t off, const void *src,
	       size_t len);
void sim_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
	      size_t len);

/* Carry out the stores of mm to a board that are held back. */
void sim_store_flush(struct sim_mm *mm, uint32_t board);

/* Does a load from the memory of a board get an answer? */
bool sim_load_answered(struct sim_mm *mm, uint32_t board);

/* Carry out one store of mm that is held back, or none. At least one must be
 * held back. */
void sim_store_some(struct sim_mm *mm);

/* Carry out stores that other files have held back for too long. */
void sim_store_sweep(struct sim_mm *mm, uint64_t now);

/* Carry out all stores that a file has held back, for its owner. */
void sim_store_file_over(struct sim_world *w, uint32_t board, uint32_t file);

/* ---- hal_sim_xfer.c: transfers of the driver --------------------------- */

/* write(), read() and CANCEL of hal_kdev.h. */
ssize_t sim_xfer_write(struct sim_mm *mm, const void *buf, size_t len);
ssize_t sim_xfer_read(struct sim_mm *mm, void *buf, size_t len);
int sim_xfer_cancel(struct sim_mm *mm, uint64_t id);

/* Let the transfers of mm advance. */
void sim_xfer_run(struct sim_mm *mm);

#endif /* HAL_SIM_H */
