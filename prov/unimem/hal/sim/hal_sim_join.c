/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_join.c - how the processes of a model find its segments and each
 * other; which of them are alive; the driver's lock; the model's time.
 *
 * hal_meet.c says how a process finds another one, and the segments of it. A
 * process is alive while it has the file lock on its byte of the first segment,
 * which a forked child does not inherit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal_meet.h"
#include "hal/sim/hal_sim_join.h"
#include "util/unm_clock.h"

#define LOOK_SPINS	64		/* tries of the lock between checks that
					 * its holder is alive */

_Static_assert(sizeof(void *) == 8, "the model needs 64-bit addresses");

/* ---- Names ------------------------------------------------------------- */

socklen_t sim_name(void *name, const char *what, uint64_t hash, uint64_t n)
{
	return hal_meet_name(name, "sim", what, hash, n);
}

/* ---- Segments ---------------------------------------------------------- */

/* FNV-1a over all parameters: processes share a model if these are equal. */
static uint64_t hash_params(const struct sim_params *par)
{
	const uint8_t *p = (const uint8_t *)par;
	uint64_t hash = UINT64_C(0xcbf29ce484222325) + SIM_VERSION;

	for (size_t i = 0; i < sizeof(*par); i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static size_t segment_bytes(const struct sim_world *w)
{
	return SIM_STATE_BYTES + w->mem_bytes;
}

static void segment_name(const struct sim_world *w, char name[64])
{
	snprintf(name, 64, "unimem-board.%016llx.",
		 (unsigned long long)w->hash);
}

static void drop_segments(struct sim_world *w)
{
	for (uint32_t b = 0; b < w->boards; b++) {
		hal_map_put(w->map[b]);
		w->map[b] = NULL;
		if (w->fd[b] >= 0)
			close(w->fd[b]);
		w->fd[b] = -1;
	}
}

static int map_segments(struct sim_world *w)
{
	for (uint32_t b = 0; b < w->boards; b++) {
		int ret = hal_map_get(w->fd[b], segment_bytes(w), &w->map[b]);

		if (ret != 0)
			return ret;
		w->board[b] = w->map[b]->addr;
	}
	return 0;
}

/* Open a descriptor of another process, a memfd whose name ends with the number
 * of a board. */
static void take_segment(void *arg, int dir, const char *entry,
			 const char *board)
{
	struct sim_world *w = arg;
	char *end;
	unsigned long b = strtoul(board, &end, 10);

	if (*end != ' ' || b >= w->boards || w->fd[b] >= 0)
		return;
	w->fd[b] = openat(dir, entry, O_RDWR | O_CLOEXEC);
	if (w->fd[b] >= 0 && hal_seg_check(w->fd[b], segment_bytes(w)) != 0) {
		close(w->fd[b]);
		w->fd[b] = -1;
	}
}

/* Open and map the segments of a process. -ESRCH: it does not have all. */
static int take_segments(void *arg, pid_t pid)
{
	struct sim_world *w = arg;
	char prefix[64];
	int ret;

	segment_name(w, prefix);
	ret = hal_meet_memory(pid, prefix, take_segment, w);
	for (uint32_t b = 0; b < w->boards && ret == 0; b++)
		if (w->fd[b] < 0)
			ret = -ESRCH;
	if (ret == 0)
		ret = map_segments(w);
	/* Pairs with the release in make_segments(). */
	if (ret == 0 && atomic_load_explicit(&w->board[0]->magic,
					     memory_order_acquire) != SIM_MAGIC)
		ret = -ESRCH;
	if (ret != 0)
		drop_segments(w);
	return ret;
}

static int make_segments(struct sim_world *w)
{
	char prefix[64], name[96];

	segment_name(w, prefix);
	for (uint32_t b = 0; b < w->boards; b++) {
		int ret;

		snprintf(name, sizeof(name), "%s%u", prefix, b);
		ret = hal_seg_create(name, segment_bytes(w), 0, &w->fd[b]);
		if (ret != 0)
			return ret;
	}
	if (map_segments(w) != 0)
		return -ENOMEM;
	for (uint32_t b = 0; b < w->boards; b++) {
		struct sim_board *board = w->board[b];

		board->version = SIM_VERSION;
		board->params = w->par;
		atomic_store(&board->base_dest, SIM_VMBOX_BASE);
		/* No process reads it before this process listens. */
		atomic_store_explicit(&board->magic, SIM_MAGIC,
				      memory_order_release);
	}
	return 0;
}

/* ---- Joining ----------------------------------------------------------- */

static int lock_byte(struct sim_world *w, int cmd, short type, uint64_t n,
		     short *is)
{
	struct flock fl = {
		.l_type = type, .l_whence = SEEK_SET,
		.l_start = (off_t)n, .l_len = 1,
	};
	int ret;

	do
		ret = fcntl(w->fd[0], cmd, &fl);
	while (ret != 0 && errno == EINTR);
	if (is != NULL)
		*is = fl.l_type;
	return ret != 0 ? -errno : 0;
}

/* Become process n of the model: lock a free byte and bind the name of its
 * number. */
static int take_part(struct sim_world *w)
{
	struct sim_common *c = &w->board[0]->common;

	for (uint64_t n = 0; n < SIM_PARTS; n++) {
		uint64_t gen;
		int fd;

		if (lock_byte(w, F_SETLK, F_WRLCK, n, NULL) != 0)
			continue;
		/* From here on everything of the previous process n belongs to
		 * a dead process, and none has this odd generation. */
		gen = atomic_fetch_or(&c->part[n], 1) | 1;
		fd = hal_meet_bind("sim", "part", w->hash, n);
		if (fd == -EADDRINUSE) {	/* by a child of a dead one */
			lock_byte(w, F_SETLK, F_UNLCK, n, NULL);
			continue;
		}
		if (fd < 0)
			return fd;
		atomic_store(&c->part[n], ++gen);
		w->me = gen << 16 | (n + 1);
		w->listen_fd = fd;
		return hal_meet_listen(fd);
	}
	return -EBUSY;
}

static int enter(struct sim_world *w)
{
	int ret;

	w->send_fd = hal_meet_socket(SOCK_DGRAM);
	if (w->send_fd < 0)
		return w->send_fd;
	ret = hal_meet_find("sim", w->hash, SIM_PARTS, take_segments, w);
	if (ret == -ESRCH)
		ret = make_segments(w);
	return ret != 0 ? ret : take_part(w);
}

static void world_free(struct sim_world *w)
{
	drop_segments(w);
	if (w->listen_fd >= 0)
		close(w->listen_fd);
	if (w->send_fd >= 0)
		close(w->send_fd);
	free(w);
}

int sim_join(const struct sim_params *par, struct sim_world **out)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	int gate, ret;

	if (w == NULL)
		return -ENOMEM;
	w->par = *par;
	w->boards = (uint32_t)par->boards;
	w->mem_bytes = (uint64_t)par->mem << 20;
	w->pid = getpid();
	w->hash = hash_params(par);
	unm_list_init(&w->mms);
	w->listen_fd = -1;
	w->send_fd = -1;
	for (uint32_t b = 0; b < HAL_REG_BOARDS_MAX; b++)
		w->fd[b] = -1;
	gate = hal_meet_gate("sim", w->hash);
	if (gate < 0) {
		free(w);
		return gate;
	}
	ret = enter(w);
	close(gate);
	if (ret != 0) {
		world_free(w);
		return ret;
	}
	*out = w;
	return 0;
}

void sim_part_hang_up(struct sim_world *w)
{
	hal_meet_hang_up(w->listen_fd);
}

void sim_leave(struct sim_world *w)
{
	world_free(w);
}

/* A child's copy of what its parent joined. The descriptors stay: the child may
 * have joined the same model, and a close() of the first segment would release
 * its own lock there (fcntl(2)). */
void sim_forget(struct sim_world *w)
{
	for (uint32_t b = 0; b < w->boards; b++)
		hal_map_put(w->map[b]);
	free(w);
}

/* ---- Which processes are alive ----------------------------------------- */

bool sim_alive(struct sim_world *w, uint64_t owner)
{
	_Atomic uint64_t *part = w->board[0]->common.part;
	uint64_t n = (owner & 0xffff) - 1;
	short type;

	if (owner == w->me)
		return true;
	if (n >= SIM_PARTS || atomic_load(&part[n]) != owner >> 16)
		return false;
	return lock_byte(w, F_GETLK, F_WRLCK, n, &type) == 0 &&
	       type != F_UNLCK;
}

/* ---- Which boards are alive --------------------------------------------- */

bool sim_known_dead(struct sim_world *w, uint32_t board)
{
	return sim_death(w, board) != SIM_LIVES &&
	       unm_now_ns() - atomic_load(&w->board[board]->died) >
	       HAL_KDEV_DEAD_MS * UINT64_C(1000000);
}

/* ---- The driver's lock ------------------------------------------------- */

void sim_lock(struct sim_world *w)
{
	_Atomic uint64_t *lock = &w->board[0]->common.lock;

	hal_lock(&w->lock);
	for (int spins = 1; ; spins++) {
		uint64_t seen = 0;

		if (atomic_compare_exchange_strong(lock, &seen, w->me))
			return;
		if (spins % LOOK_SPINS != 0) {
			sched_yield();
			continue;
		}
		if (!sim_alive(w, seen) &&
		    atomic_compare_exchange_strong(lock, &seen, w->me)) {
			HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_TAKEN);
			w->rebuild(w);
			return;
		}
	}
}

void sim_unlock(struct sim_world *w)
{
	atomic_store(&w->board[0]->common.lock, 0);
	hal_unlock(&w->lock);
}

/* ---- Time -------------------------------------------------------------- */

uint64_t sim_now(struct sim_world *w)
{
	return w->par.tick == 0 ? unm_now_ns() :
	       atomic_load_explicit(&w->board[0]->common.clock,
				    memory_order_relaxed);
}

void sim_stall(struct sim_world *w, uint64_t until)
{
	_Atomic uint64_t *clock = &w->board[0]->common.clock;
	uint64_t now = sim_now(w);

	while (now < until && w->par.tick == 0)
		now = unm_now_ns();
	/* Nothing but accesses moves the other clock. Relaxed: it orders
	 * nothing. */
	while (now < until &&
	       !atomic_compare_exchange_weak_explicit(clock, &now, until,
						      memory_order_relaxed,
						      memory_order_relaxed))
		;
}
