/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_segments.h - the table of the segments that a thread knows, by global
 * address: find, add, evict. Private to libgsas. gsas_window.c requests and
 * maps the segments.
 *
 * Only the thread uses its table, so no function takes a lock.
 */
#ifndef GSAS_SEGMENTS_H
#define GSAS_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct gsas_conn;
struct gsas_hot;
struct gsas_watch;
struct hal_rmem;

enum gsas_segment_kind { GSAS_KIND_MEMORY, GSAS_KIND_QUEUE };

/* A segment that the thread knows. The entry is valid until the connection is
 * closed or a function below evicts it. */
struct gsas_segment_map {
	uint64_t base, bytes;	/* global address and size */
	uint8_t *memory;	/* where it is mapped; NULL: it cannot be */
	struct gsas_conn *conn;
	struct hal_rmem *rmem;	/* if memory is not NULL */
	uint64_t key[2];	/* struct hal_key */
	struct gsas_watch *watch;	/* NULL: not watched */
	enum gsas_segment_kind kind;
};

/* The table, in struct gsas_thread. All zero: empty. */
struct gsas_segments {
	struct gsas_segment_map *map;	/* in the order of addresses */
	uint32_t count, size;
	struct gsas_hot *hot;	/* of the thread: entries are evicted from both
				 * tables */
};

/* The segment of an address; NULL: not known. */
struct gsas_segment_map *gsas_segments_find(const struct gsas_segments *s,
					    uint64_t address);

/* Where an address of memory is mapped, which is entered into the table of the
 * short path. NULL: not known, not mapped, not allocated, or of a queue. */
void *gsas_segments_place(const struct gsas_segments *s, uint64_t address);

/* Bytes from a mapped address to the end of its allocation, max at most; 0: the
 * address is not mapped, or was freed. */
uint64_t gsas_segments_left(const struct gsas_segments *s, uint64_t address,
			    uint64_t max);

/* Make room for one more entry, which may evict others. 0, -FI_ENOMEM. */
int gsas_segments_reserve(struct gsas_segments *s);

/* Add an entry, for which there is room and whose addresses no other entry has.
 * Returns its copy in the table. */
struct gsas_segment_map *gsas_segments_insert(struct gsas_segments *s,
					      const struct gsas_segment_map *m);

/* Evict the entries whose addresses a new segment has. -EPROTO: the segment of
 * one of them still exists. */
int gsas_segments_replace(struct gsas_segments *s, uint64_t base,
			  uint64_t bytes);

/* Evict the entry of an address if the service may have removed the segment.
 * false: there is no entry, or it is valid. */
bool gsas_segments_evict(struct gsas_segments *s, uint64_t address);

/* Evict each mapped segment without an allocated page, which unmaps it. */
void gsas_segments_evict_unused(struct gsas_segments *s);

/* Call when an address was freed. If its segment has no allocated page left,
 * evicts all such segments. */
void gsas_segments_freed(struct gsas_segments *s, uint64_t address);

/* Evict all segments of a connection, which is about to be closed. */
void gsas_segments_release(struct gsas_segments *s,
			   const struct gsas_conn *conn);

/* The thread ends: stop watching its segments, and free the table. The caller
 * closes the interface next, which unmaps them. */
void gsas_segments_end(struct gsas_segments *s);

#endif /* GSAS_SEGMENTS_H */
