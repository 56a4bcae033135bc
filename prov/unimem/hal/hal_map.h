/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_map.h - sealed segments of shared memory, and mappings of them; private
 * to the HAL.
 *
 * All functions may be called from any thread.
 */
#ifndef HAL_MAP_H
#define HAL_MAP_H

#include <stddef.h>
#include <stdint.h>

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

#endif /* HAL_MAP_H */
