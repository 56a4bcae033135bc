/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_map.h - the backends, and what they share: locks, mappings, segments.
 * Private to hal*.c.
 */
#ifndef HAL_MAP_H
#define HAL_MAP_H

#include "hal/hal.h"
#include "hal/hal_limit.h"

extern const struct hal_ops hal_emu_ops;	/* hal_emu.c */
extern const struct hal_ops hal_dev_ops;	/* hal_dev.c: boards */
extern const struct hal_ops hal_sim_ops;	/* hal_dev.c: their model */

/* Are there boards, as far as one look tells? */
bool hal_dev_present(const struct hal_params *params);

struct hal_lock {
	_Atomic int holder;		/* pid of the process, 0: free */
};

void hal_lock(struct hal_lock *lock);
void hal_unlock(struct hal_lock *lock);

struct hal_map {
	void *addr;
	size_t len;
	uint64_t dev, ino;
	struct hal_map *next;
	int refs;
};

/* Map a segment shared and writable, once per process; not inherited by fork.
 * len must be the segment's size. Release: hal_map_put(). */
int hal_map_get(int fd, size_t len, struct hal_map **map);
void hal_map_put(struct hal_map *map);

/* A new sealed segment of len bytes, the first ready of them allocated. */
int hal_seg_create(const char *name, size_t len, size_t ready, int *fd);
/* 0 if fd is a sealed segment of exactly len bytes, else -FI_EINVAL. */
int hal_seg_check(int fd, size_t len);
int hal_seg_reserve(int fd, size_t from, size_t to);

/* This process's rank on the host and the number of ranks there, as the
 * launcher tells; -1: it does not. */
void hal_launcher_ranks(long *rank, long *nranks);

#endif /* HAL_MAP_H */
