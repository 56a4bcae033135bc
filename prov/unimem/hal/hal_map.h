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

/* A mapping of a segment, in the table of hal_map.c from the first
 * hal_map_get() to the last hal_map_put(). addr and len are constant. */
struct hal_map {
	void *addr;
	size_t len;			/* of the mapping and of the segment */
	uint64_t dev, ino;		/* of the segment's file */
	struct hal_map *next;		/* in the hash table */
	int refs;			/* calls of hal_map_get() and
					 * hal_map_hold() not undone */
};

/* Map a segment shared and writable, or take a reference to the mapping that
 * this process has of it already; len must be the segment's size. A forked
 * child does not inherit the mapping. 0; -FI_EINVAL: another size; -FI_ENOMEM;
 * a negative errno. fd stays the caller's. */
int hal_map_get(int fd, size_t len, struct hal_map **map);

/* Take one more reference to a mapping. Returns it. */
struct hal_map *hal_map_hold(struct hal_map *map);

/* Release a reference; the last one unmaps. NULL: does nothing. */
void hal_map_put(struct hal_map *map);

/* Make a segment: a memfd of that name and of len bytes, sealed against growing
 * and shrinking, with its first ready bytes allocated. 0: the caller closes
 * *fd; a negative errno (-FI_ENOMEM, -FI_EMFILE, -EFBIG) after a log line. */
int hal_seg_create(const char *name, size_t len, size_t ready, int *fd);

/* Is fd, which came from a peer, a sealed segment of exactly len bytes? 0, or
 * -FI_EINVAL. */
int hal_seg_check(int fd, size_t len);

/* Allocate bytes from .. to - 1 of a segment. 0; -FI_ENOMEM; a negative
 * errno. */
int hal_seg_reserve(int fd, size_t from, size_t to);

#endif /* HAL_MAP_H */
