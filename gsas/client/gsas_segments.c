/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_segments.c - the table of the segments that a thread knows: an array in
 * the order of addresses.
 *
 * Whether a page is allocated is read from the page's word in the mapped
 * segment. The service may use addresses again, long after they were freed. An
 * entry may then describe a segment that was removed, whose words stay 0. So an
 * entry without an allocated page is evicted, and gsas_window.c requests the
 * segment again. A segment that cannot be mapped has no words here: its
 * addresses are accessed by requests even if they belong to another segment by
 * then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_direct.h"
#include "client/gsas_segments.h"
#include "client/gsas_watch.h"

#define SEGMENTS_MIN	16		/* entries allocated at first */
#define SEGMENTS_ENOUGH	8192		/* from so many entries on, also evict
					 * segments that cannot be mapped */

/* ---- Finding ------------------------------------------------------------- */

/* The index of the first segment that ends after the address. */
static uint32_t rank(const struct gsas_segments *s, uint64_t address)
{
	uint32_t low = 0, high = s->count;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (s->map[mid].base + s->map[mid].bytes <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct gsas_segment_map *gsas_segments_find(const struct gsas_segments *s,
					    uint64_t address)
{
	uint32_t at = rank(s, address);

	return at < s->count && s->map[at].base <= address ? &s->map[at] : NULL;
}

void *gsas_segments_place(const struct gsas_segments *s, uint64_t address)
{
	const struct gsas_segment_map *map = gsas_segments_find(s, address);
	uint64_t off;

	if (map == NULL || map->memory == NULL ||
	    map->kind != GSAS_KIND_MEMORY)
		return NULL;
	off = address - map->base;
	if (gsas_direct_word(map->memory, off >> GSAS_PAGE_SHIFT) == 0)
		return NULL;
	gsas_hot_fill(s->hot, address, map->base, map->memory);
	return map->memory + off;
}

uint64_t gsas_segments_left(const struct gsas_segments *s, uint64_t address,
			    uint64_t max)
{
	const struct gsas_segment_map *map = gsas_segments_find(s, address);
	uint64_t left = GSAS_PAGE_BYTES - address % GSAS_PAGE_BYTES;
	uint64_t page;
	uint32_t region;

	if (map == NULL || map->memory == NULL)
		return 0;
	page = (address - map->base) >> GSAS_PAGE_SHIFT;
	region = gsas_direct_word(map->memory, page);
	if (region == 0)
		return 0;
	while (left < max && ++page < map->bytes >> GSAS_PAGE_SHIFT &&
	       gsas_direct_word(map->memory, page) == region)
		left += GSAS_PAGE_BYTES;
	return left < max ? left : max;
}

/* Is a page of a mapped segment allocated? */
static bool map_used(const struct gsas_segment_map *map)
{
	for (uint64_t i = 0; i < map->bytes / GSAS_PAGE_BYTES; i++)
		if (gsas_direct_word(map->memory, i) != 0)
			return true;
	return false;
}

/* May the service have removed the segment? */
static bool map_stale(const struct gsas_segment_map *map)
{
	return map->memory == NULL || !map_used(map);
}

/* ---- Evicting ------------------------------------------------------------ */

static void map_end(struct gsas_segment_map *map)
{
	if (map->memory == NULL)
		return;
	gsas_watch_remove(map->watch);
	hal_mem_release(map->conn->peer, map->rmem);
}

/* Evict each mapped segment without an allocated page. unmapped: also evict
 * each segment that cannot be mapped, because it may not exist any more. */
static void evict(struct gsas_segments *s, bool unmapped)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		struct gsas_segment_map *map = &s->map[i];

		if (map->memory == NULL ? !unmapped : map_used(map))
			s->map[kept++] = *map;
		else
			map_end(map);
	}
	if (kept != s->count)
		gsas_hot_clear(s->hot);
	s->count = kept;
}

void gsas_segments_evict_unused(struct gsas_segments *s)
{
	evict(s, false);
}

/* Evict the entries from index at to before end. */
static void evict_entries(struct gsas_segments *s, uint32_t at, uint32_t end)
{
	for (uint32_t i = at; i < end; i++)
		map_end(&s->map[i]);
	memmove(&s->map[at], &s->map[end],
		(s->count - end) * sizeof(s->map[0]));
	s->count -= end - at;
	gsas_hot_clear(s->hot);
}

int gsas_segments_replace(struct gsas_segments *s, uint64_t base,
			  uint64_t bytes)
{
	uint32_t at = rank(s, base), end;

	for (end = at; end < s->count && s->map[end].base < base + bytes; end++)
		if (!map_stale(&s->map[end]))
			return -EPROTO;
	if (end != at)
		evict_entries(s, at, end);
	return 0;
}

bool gsas_segments_evict(struct gsas_segments *s, uint64_t address)
{
	uint32_t at = rank(s, address);

	if (at == s->count || s->map[at].base > address ||
	    !map_stale(&s->map[at]))
		return false;
	evict_entries(s, at, at + 1);
	return true;
}

void gsas_segments_freed(struct gsas_segments *s, uint64_t address)
{
	const struct gsas_segment_map *map = gsas_segments_find(s, address);

	if (map != NULL && map->memory != NULL && !map_used(map))
		evict(s, false);
}

void gsas_segments_release(struct gsas_segments *s,
			   const struct gsas_conn *conn)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		if (s->map[i].conn != conn)
			s->map[kept++] = s->map[i];
		else
			map_end(&s->map[i]);
	}
	s->count = kept;
	gsas_hot_clear(s->hot);
}

void gsas_segments_end(struct gsas_segments *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		gsas_watch_remove(s->map[i].watch);
	s->count = 0;
	free(s->map);
}

/* ---- Adding -------------------------------------------------------------- */

int gsas_segments_reserve(struct gsas_segments *s)
{
	uint32_t size = s->size;
	void *more;

	if (s->count < size)
		return 0;
	evict(s, size >= SEGMENTS_ENOUGH);
	if (s->count < size / 2)
		return 0;
	size = size != 0 ? 2 * size : SEGMENTS_MIN;
	more = realloc(s->map, size * sizeof(s->map[0]));
	if (more == NULL)
		return -FI_ENOMEM;
	s->map = more;
	s->size = size;
	return 0;
}

struct gsas_segment_map *gsas_segments_insert(struct gsas_segments *s,
					      const struct gsas_segment_map *m)
{
	uint32_t at = rank(s, m->base);

	memmove(&s->map[at + 1], &s->map[at],
		(s->count - at) * sizeof(s->map[0]));
	s->map[at] = *m;
	s->count++;
	return &s->map[at];
}
