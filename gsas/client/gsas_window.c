/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_window.c - the segments that a thread knows: requests them from the
 * service by MAP, maps them, finds them by address, unmaps them.
 *
 * The thread sends one MAP for a segment. Whether a page is allocated is read
 * from the page's word in the mapped segment, before each access.
 *
 * The service may use addresses again, long after they were freed. An entry may
 * then describe a segment that was removed, whose words stay 0. So if no page
 * of a segment is allocated, the entry is removed and MAP is sent again. A
 * segment that cannot be mapped has no words here: its addresses are accessed
 * by requests even if they belong to another segment by then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_window.h"
#include "client/gsas_conn.h"
#include "client/gsas_direct.h"
#include "client/gsas_thread.h"
#include "client/gsas_watch.h"

#define SEGMENTS_MIN	16		/* entries allocated at first */
#define SEGMENTS_ENOUGH	8192		/* from so many entries on, also evict
					 * segments that cannot be mapped */

enum segment_kind { KIND_MEMORY, KIND_QUEUE };

/* A segment that the thread knows, an entry of gsas_thread.segment. Only the
 * thread uses it. It is valid until the connection is closed. */
struct gsas_segment_map {
	uint64_t base, bytes;	/* global address and size */
	uint8_t *memory;	/* NULL: cannot be mapped */
	struct gsas_conn *conn;
	struct hal_rmem *rmem;	/* if memory is not NULL */
	uint64_t key[2];	/* struct hal_key */
	struct gsas_watch *watch;	/* NULL: not watched */
	enum segment_kind kind;
};

/* ---- The table, by address ----------------------------------------------- */

/* The index of the first segment that ends after the address. */
static uint32_t segment_rank(const struct gsas_thread *t, uint64_t address)
{
	uint32_t low = 0, high = t->nsegments;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (t->segment[mid].base + t->segment[mid].bytes <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct gsas_segment_map *segment_find(const struct gsas_thread *t,
					     uint64_t address)
{
	uint32_t at = segment_rank(t, address);

	return at < t->nsegments && t->segment[at].base <= address ?
		&t->segment[at] : NULL;
}

/* Is a page of the segment allocated? True also if it cannot be mapped, because
 * the thread cannot know. */
static bool segment_used(const struct gsas_segment_map *map)
{
	if (map->memory == NULL)
		return true;
	for (uint64_t i = 0; i < map->bytes / GSAS_PAGE_BYTES; i++)
		if (gsas_direct_word(map->memory, i) != 0)
			return true;
	return false;
}

static void hot_clear(struct gsas_thread *t)
{
	memset(t->hot->segment, 0, sizeof(t->hot->segment));
}

static void segment_unmap(struct gsas_segment_map *map)
{
	if (map->memory == NULL)
		return;
	gsas_watch_remove(map->watch);
	hal_mem_release(map->conn->peer, map->rmem);
}

/* Evict each mapped segment without an allocated page. all: also evict each
 * segment that cannot be mapped, because it may not exist any more. */
static void sweep(struct gsas_thread *t, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->nsegments; i++) {
		struct gsas_segment_map *map = &t->segment[i];

		if (map->memory == NULL ? !all :
		    segment_used(map))
			t->segment[kept++] = *map;
		else
			segment_unmap(map);
	}
	if (kept != t->nsegments)
		hot_clear(t);
	t->nsegments = kept;
}

/* Evict the entries from index at to before end. */
static void entries_drop(struct gsas_thread *t, uint32_t at, uint32_t end)
{
	for (uint32_t i = at; i < end; i++) {
		struct gsas_segment_map *map = &t->segment[i];

		segment_unmap(map);
	}
	memmove(&t->segment[at], &t->segment[end],
		(t->nsegments - end) * sizeof(t->segment[0]));
	t->nsegments -= end - at;
	hot_clear(t);
}

/* May the segment of an entry have been removed by the service? */
static bool entry_stale(const struct gsas_segment_map *map)
{
	return map->memory == NULL || !segment_used(map);
}

/* Evict the entries whose addresses a new segment has. -EPROTO: the segment of
 * one of them still exists. */
static int evict_stale(struct gsas_thread *t, const struct gsas_map_info *info)
{
	uint32_t at = segment_rank(t, info->base), end;

	for (end = at; end < t->nsegments &&
	     t->segment[end].base < info->base + info->bytes; end++)
		if (!entry_stale(&t->segment[end]))
			return -EPROTO;
	if (end != at)
		entries_drop(t, at, end);
	return 0;
}

/* Evict the entry of an address if it may be stale, so that MAP is sent again.
 * false: there is no entry, or it is valid. */
static bool evict_stale_at(struct gsas_thread *t, uint64_t address)
{
	uint32_t at = segment_rank(t, address);

	if (at == t->nsegments || t->segment[at].base > address ||
	    !entry_stale(&t->segment[at]))
		return false;
	entries_drop(t, at, at + 1);
	return true;
}

/* Make room for one more entry. */
static int segment_room(struct gsas_thread *t)
{
	uint32_t max = t->max_segments;
	void *more;

	if (t->nsegments < max)
		return 0;
	sweep(t, max >= SEGMENTS_ENOUGH);
	if (t->nsegments < max / 2)
		return 0;
	max = max != 0 ? 2 * max : SEGMENTS_MIN;
	more = realloc(t->segment, max * sizeof(t->segment[0]));
	if (more == NULL)
		return -FI_ENOMEM;
	t->segment = more;
	t->max_segments = max;
	return 0;
}

static void segment_insert(struct gsas_thread *t,
			   const struct gsas_segment_map *map)
{
	uint32_t at = segment_rank(t, map->base);

	memmove(&t->segment[at + 1], &t->segment[at],
		(t->nsegments - at) * sizeof(t->segment[0]));
	t->segment[at] = *map;
	t->nsegments++;
}

/* ---- Mapping ------------------------------------------------------------- */

static int import(struct gsas_conn *conn, const struct gsas_map_info *info,
		  struct hal_rmem **rmem)
{
	struct hal_key key = { { info->key[0], info->key[1] } };
	struct gsas_thread *t = conn->thread;
	int ret;

	if (conn->peer == NULL)
		return conn->gone;
	gsas_wait_begin(t);
	while ((ret = hal_mem_import(conn->peer, &key, rmem)) == -FI_EAGAIN) {
		gsas_wait_step(t);
		if (conn->peer == NULL)
			return conn->gone;
	}
	return ret;
}

/* Is the segment aligned, in the partition of the board, and around the
 * address? */
static bool info_valid(const struct gsas_map_info *info, uint64_t address)
{
	uint64_t board = gsas_base((uint32_t)gsas_board_of(address));

	return info->base % GSAS_SEGMENT == 0 &&
	       info->bytes % GSAS_SEGMENT == 0 &&
	       info->base >= board && info->base <= address &&
	       info->bytes > address - info->base &&
	       info->bytes <= GSAS_OFFSET_MASK + 1 - (info->base - board);
}

/* Do a MAP request. 0; the error of the address, which the service also returns
 * for any other request with this address; or the error of the connection. */
static int request_map(struct gsas_conn *conn, uint64_t address,
	       struct gsas_map_info *info, uint64_t *attr)
{
	struct gsas_msg msg = {
		.opcode = GSAS_MAP, .address = address,
		.into = info, .len = sizeof(*info),
	};
	struct gsas_request request;
	int ret = gsas_space_wait(conn, 0, sizeof(*info), &msg, NULL);

	if (ret != 0)
		return ret;
	msg.arg2 = msg.off;
	ret = gsas_request_do(conn, &msg, &request);
	if (ret == 0)
		*attr = request.result;
	return ret;
}

/* Map a segment. 0; map->memory stays NULL if the HAL cannot map it. */
static int map_segment(struct gsas_segment_map *map,
		       const struct gsas_map_info *info)
{
	struct gsas_conn *conn = map->conn;
	struct gsas_thread *t = conn->thread;
	struct hal_window win;
	int ret = import(conn, info, &map->rmem);

	if (ret == -FI_ENOMEM || ret == -FI_EMFILE) {
		/* unmap segments without allocated pages, and retry */
		sweep(t, false);
		ret = import(conn, info, &map->rmem);
	}
	if (ret != 0)
		return ret;
	hal_mem_window(conn->peer, map->rmem, &win);
	if (win.addr == NULL || win.bytes < info->bytes) {
		hal_mem_release(conn->peer, map->rmem);
		return win.addr == NULL ? 0 : -EPROTO;
	}
	ret = gsas_watch_add(conn->peer, win.addr, info->bytes, &map->watch);
	if (ret == 0)
		map->memory = win.addr;
	else
		hal_mem_release(conn->peer, map->rmem);
	return ret;
}

static int segment_new(struct gsas_conn *conn, uint64_t address,
		       struct gsas_segment_map **out)
{
	struct gsas_thread *t = conn->thread;
	struct gsas_segment_map map = { .conn = conn };
	struct gsas_map_info info;
	uint64_t attr = 0;
	int ret = request_map(conn, address, &info, &attr);

	if (ret == 0 && !info_valid(&info, address))
		ret = -EPROTO;
	if (ret == 0)
		ret = evict_stale(t, &info);
	if (ret == 0)
		ret = segment_room(t);
	if (ret == 0 && attr & GSAS_ATTR_MAPPED)
		ret = map_segment(&map, &info);
	/* the service ended meanwhile, and with it this segment */
	if (ret == 0 && conn->peer == NULL)
		ret = conn->gone;
	if (ret != 0)
		return ret;
	map.base = info.base;
	map.bytes = info.bytes;
	map.kind = attr & GSAS_ATTR_QUEUE ? KIND_QUEUE : KIND_MEMORY;
	memcpy(map.key, info.key, sizeof(map.key));
	segment_insert(t, &map);
	*out = segment_find(t, info.base);
	return 0;
}

/* The segment of an address, from the table or by MAP. 0; or an error, which is
 * that of the address if *answered, else that of the connection. */
static int segment_get(struct gsas_thread *t, uint64_t address,
		       struct gsas_segment_map **map, bool *answered)
{
	struct gsas_conn *conn;
	int ret;

	*answered = true;
	*map = segment_find(t, address);
	if (*map != NULL)
		return 0;
	*answered = false;
	ret = gsas_conn_of(t, address, &conn);
	if (ret != 0)
		return ret;
	ret = segment_new(conn, address, map);
	/* the next service of that board has other segments */
	if (conn->peer == NULL)
		return conn->gone;
	*answered = true;
	return ret;
}

/* Enter the granule of an address in the table of the short path. */
static void hot_fill(struct gsas_thread *t, uint64_t address,
		     const struct gsas_segment_map *map)
{
	uint64_t granule = address >> GSAS_SEGMENT_SHIFT;
	struct gsas_hot_segment *hot = gsas_hot_slot(t->hot, granule);

	hot->granule = granule + 1;
	hot->delta = (uintptr_t)map->memory - (uintptr_t)map->base;
	hot->words = (uintptr_t)map->memory -
		(uintptr_t)(map->base >> GSAS_PAGE_SHIFT) * sizeof(uint32_t);
}

/* Store at *at where an address is mapped. *answered: an error is that of the
 * address, so a request would have an error too. */
static int find_known(struct gsas_thread *t, uint64_t address,
		      enum segment_kind kind, void **at, bool *answered)
{
	struct gsas_segment_map *map;
	uint64_t off;
	int ret = segment_get(t, address, &map, answered);

	if (ret != 0)
		return ret;
	if (map->kind != kind)
		return -FI_EINVAL;
	if (map->memory == NULL)
		return -FI_EPERM;
	off = address - map->base;
	if (gsas_direct_word(map->memory, off >> GSAS_PAGE_SHIFT) == 0)
		return -ESTALE;
	if (kind == KIND_MEMORY)
		hot_fill(t, address, map);
	*at = map->memory + off;
	return 0;
}

/* As find_known(), but replaces a stale entry. */
static int find(struct gsas_thread *t, uint64_t address,
		enum segment_kind kind, void **at, bool *answered)
{
	int ret = find_known(t, address, kind, at, answered);

	return ret == -ESTALE && evict_stale_at(t, address) ?
		find_known(t, address, kind, at, answered) : ret;
}

static int find_or_none(struct gsas_thread *t, uint64_t address,
			enum segment_kind kind, void **at)
{
	bool answered;
	int ret;

	*at = NULL;
	if (!t->windows)
		return 0;
	ret = find(t, address, kind, at, &answered);
	return answered ? 0 : ret;
}

int gsas_window_find(struct gsas_thread *t, uint64_t address, void **at)
{
	*at = gsas_direct(address);
	if (*at != NULL)
		return 0;
	return find_or_none(t, address, KIND_MEMORY, at);
}

int gsas_window_queue(struct gsas_thread *t, uint64_t address, void **at)
{
	return find_or_none(t, address, KIND_QUEUE, at);
}

int gsas_window_map(struct gsas_thread *t, uint64_t address,
		    struct gsas_window *win)
{
	const struct gsas_segment_map *map;
	int board = gsas_board_of(address);
	bool answered;
	void *at;
	int ret;

	if (board < 0 || (uint32_t)board >= t->boards)
		return -FI_EFAULT;
	if (!t->windows)
		return -FI_EOPNOTSUPP;
	ret = find(t, address, KIND_MEMORY, &at, &answered);
	if ((ret == -FI_EPERM || ret == -FI_EINVAL) &&
	    evict_stale_at(t, address))
		ret = find(t, address, KIND_MEMORY, &at, &answered);
	if (ret != 0)
		return ret;
	map = segment_find(t, address);
	*win = (struct gsas_window){
		.base = map->base, .bytes = map->bytes,
		.key = { map->key[0], map->key[1] }, .memory = map->memory,
	};
	return 0;
}

uint64_t gsas_window_left(const struct gsas_thread *t, uint64_t address,
			  uint64_t max)
{
	const struct gsas_segment_map *map = segment_find(t, address);
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

/* ---- Eviction ------------------------------------------------------------ */

void gsas_window_freed(struct gsas_thread *t, uint64_t address)
{
	struct gsas_segment_map *map = segment_find(t, address);

	if (map != NULL && !segment_used(map))
		sweep(t, false);
}

void gsas_window_release(struct gsas_conn *conn)
{
	struct gsas_thread *t = conn->thread;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->nsegments; i++) {
		struct gsas_segment_map *map = &t->segment[i];

		if (map->conn != conn) {
			t->segment[kept++] = *map;
			continue;
		}
		segment_unmap(map);
	}
	t->nsegments = kept;
	hot_clear(t);
}

void gsas_window_end(struct gsas_thread *t)
{
	for (uint32_t i = 0; i < t->nsegments; i++)
		gsas_watch_remove(t->segment[i].watch);
	t->nsegments = 0;
}
