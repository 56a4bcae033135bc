/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_engine.c - the cDMA engine of an emulated board, under the timing
 * model: memory that all interfaces of the board share.
 *
 * Entry points: emu_engine_open(), emu_engine_close(). The memory is a sealed
 * memfd, which a new interface finds at any other interface of its board
 * (hal_meet.c). It holds one word, which hal_time.c changes by
 * compare-and-swap: a process that is killed leaves nothing to repair. Without
 * a timing model there is no such memory.
 *
 * The interfaces of a process share what it has found. So opening and closing
 * many of them asks other processes once only: a process that makes no progress
 * keeps each question in a queue of limited length.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/emu/hal_emu_engine.h"
#include "hal/hal_meet.h"

#define GROUP		"engine"
#define PREFIX		"unimem-engine."
#define BYTES		4096
#define PARTS		128u		/* interfaces that share an engine: 63,
					 * the service, and names that forked
					 * children keep */

/* The memory that emu_engine_open() searches for. */
struct wanted {
	uint32_t board;
	int fd;				/* -1: not found yet */
};

static void take_fd(void *arg, int dir, const char *entry, const char *rest)
{
	struct wanted *w = arg;
	char board[16];
	size_t len = (size_t)snprintf(board, sizeof(board), "%u", w->board);

	if (w->fd >= 0 || strncmp(rest, board, len) != 0 || rest[len] != ' ')
		return;
	w->fd = openat(dir, entry, O_RDWR | O_CLOEXEC);
	if (w->fd >= 0 && hal_seg_check(w->fd, BYTES) != 0) {
		close(w->fd);
		w->fd = -1;
	}
}

static int take_memory(void *arg, pid_t pid)
{
	struct wanted *w = arg;
	int ret = hal_meet_memory(pid, PREFIX, take_fd, w);

	return ret == 0 && w->fd < 0 ? -ESRCH : ret;
}

/* Listen at a free name of the board's. */
static int take_part(uint32_t board, int *listen_fd)
{
	for (uint64_t n = 0; n < PARTS; n++) {
		int fd = hal_meet_bind(GROUP, "part", board, n), ret;

		if (fd == -EADDRINUSE)
			continue;
		if (fd < 0)
			return fd;
		ret = hal_meet_listen(fd);
		if (ret == 0)
			*listen_fd = fd;
		else
			close(fd);
		return ret;
	}
	return -EBUSY;
}

/* Find the memory, or make it. This process is the only one that joins. */
static int get_memory(uint32_t board, struct emu_engine *e)
{
	struct wanted w = { .board = board, .fd = -1 };
	char name[32];
	int ret = hal_meet_find(GROUP, board, PARTS, take_memory, &w);

	snprintf(name, sizeof(name), PREFIX "%u", board);
	if (ret == -ESRCH)
		ret = hal_seg_create(name, BYTES, BYTES, &w.fd);
	if (ret != 0)
		return ret;
	ret = hal_map_get(w.fd, BYTES, &e->map);
	if (ret == 0) {
		ret = take_part(board, &e->listen_fd);
		if (ret == 0) {
			e->fd = w.fd;
			e->times = e->map->addr;
			return 0;
		}
		hal_map_put(e->map);
	}
	close(w.fd);
	return ret;
}

/* Find the engine, or make it, while no other process does. */
static int join(uint32_t board, struct emu_engine *e)
{
	int gate = hal_meet_gate(GROUP, board), ret = gate;

	if (gate >= 0) {
		ret = get_memory(board, e);
		close(gate);
	}
	if (ret != 0)
		hal_log(0, "timing model: cannot share the cDMA engine of "
			"board %u with other processes: %s%s", board,
			strerror(-ret), hal_log_advice(ret, ""));
	return ret;
}

/* That of a board which this process has already */
static struct emu_engine *engine_of(struct emu_model *model, uint32_t board)
{
	unm_list_for_each(node, &model->engines) {
		struct emu_engine *e = unm_container(node, struct emu_engine,
						     list);

		if (e->board == board && e->pid == getpid())
			return e;
	}
	return NULL;
}

int emu_engine_open(struct emu_model *model, uint32_t board,
		    struct emu_engine **engine)
{
	struct emu_engine *e;
	int ret = 0;

	hal_lock(&model->lock);
	e = engine_of(model, board);
	if (e == NULL) {
		e = calloc(1, sizeof(*e));
		ret = e == NULL ? -ENOMEM : join(board, e);
		if (ret == 0) {
			e->board = board;
			e->pid = getpid();
			unm_list_append(&model->engines, &e->list);
		}
	}
	if (ret == 0) {
		e->users++;
		*engine = e;
	} else {
		free(e);
	}
	hal_unlock(&model->lock);
	return ret;
}

void emu_engine_close(struct emu_model *model, struct emu_engine *e)
{
	hal_lock(&model->lock);
	if (--e->users == 0) {
		unm_list_remove(&e->list);
		close(e->listen_fd);
		close(e->fd);
		hal_map_put(e->map);
		free(e);
	}
	hal_unlock(&model->lock);
}

void emu_engine_hang_up(const struct emu_engine *e)
{
	hal_meet_hang_up(e->listen_fd);
}
