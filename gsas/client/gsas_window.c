/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_window.c - finds where an address is mapped. Requests segments from the
 * service by MAP, one MAP for each segment, maps them, and enters them in the
 * thread's tables (gsas_segments.h, gsas_direct.h). Whether a page is allocated
 * is read from the page's word in the mapped segment, before each access.
 */
#include <errno.h>
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_direct.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "client/gsas_watch.h"
#include "client/gsas_window.h"

/* ---- Mapping ------------------------------------------------------------- */

static int import(struct gsas_conn *conn, const struct gsas_map_info *info,
		  struct hal_rmem **rmem)
{
	struct hal_key key = { { info->key[0], info->key[1] } };
	int ret;

	if (conn->peer == NULL)
		return conn->closed_error;
	gsas_wait_begin(conn->thread);
	while ((ret = hal_mem_import(conn->peer, &key, rmem)) == -FI_EAGAIN) {
		gsas_conn_wait_step(conn);
		if (conn->peer == NULL)
			return conn->closed_error;
	}
	/* The service answered, or the import failed in this process: then what
	 * waits next has the whole limit, too. */
	conn->waited = 0;
	return ret;
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

/* Can a segment that was not mapped be used by requests? Not if the connection
 * or the segment ended. */
static bool by_requests(int error)
{
	return error == -FI_ENOSYS || error == -FI_ENOMEM ||
	       error == -FI_EMFILE || error == -FI_EAGAIN;
}

/*
 * Map a segment. 0; map->memory stays NULL if it cannot be mapped: the HAL
 * gives no window, memory or descriptors are short, or the end of the service's
 * process could not be noticed, as operations on mapped pages have to.
 */
static int map_segment(struct gsas_segment_map *map,
		       const struct gsas_map_info *info)
{
	struct gsas_conn *conn = map->conn;
	struct gsas_thread *t = conn->thread;
	struct hal_window win;
	int ret = import(conn, info, &map->rmem);

	if (ret == -FI_ENOMEM || ret == -FI_EMFILE) {
		/* this frees memory and descriptors, so retry */
		gsas_segments_evict_unused(&t->segments);
		ret = import(conn, info, &map->rmem);
	}
	if (ret != 0)
		return by_requests(ret) ? 0 : ret;
	hal_mem_window(conn->peer, map->rmem, &win);
	if (win.addr != NULL && win.bytes < info->bytes)
		ret = -EPROTO;
	else if (win.addr != NULL)
		ret = gsas_watch_add(conn->peer, win.addr, info->bytes,
				     &map->watch);
	if (ret == 0 && win.addr != NULL)
		map->memory = win.addr;
	else
		hal_mem_release(conn->peer, map->rmem);
	return by_requests(ret) ? 0 : ret;
}

static int segment_new(struct gsas_conn *conn, uint64_t address,
		       struct gsas_segment_map **out)
{
	struct gsas_thread *t = conn->thread;
	struct gsas_segment_map map = { .conn = conn };
	struct gsas_map_info info;
	uint64_t attr = 0;
	int ret = request_map(conn, address, &info, &attr);

	if (ret == 0 && !gsas_map_info_valid(&info, address))
		ret = -EPROTO;
	if (ret == 0)
		ret = gsas_segments_replace(&t->segments, info.base,
					    info.bytes);
	if (ret == 0)
		ret = gsas_segments_reserve(&t->segments);
	if (ret == 0 && attr & GSAS_ATTR_MAPPED)
		ret = map_segment(&map, &info);
	/* the service ended meanwhile, and with it this segment */
	if (ret == 0 && conn->peer == NULL)
		ret = conn->closed_error;
	if (ret != 0)
		return ret;
	map.base = info.base;
	map.bytes = info.bytes;
	map.kind = attr & GSAS_ATTR_QUEUE ? GSAS_KIND_QUEUE : GSAS_KIND_MEMORY;
	memcpy(map.key, info.key, sizeof(map.key));
	*out = gsas_segments_insert(&t->segments, &map);
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
	*map = gsas_segments_find(&t->segments, address);
	if (*map != NULL)
		return 0;
	*answered = false;
	ret = gsas_conn_of(address, &conn);
	if (ret != 0)
		return ret;
	ret = segment_new(conn, address, map);
	/* the next service of that board has other segments */
	if (conn->peer == NULL)
		return conn->closed_error;
	*answered = true;
	return ret;
}

/* Store at *at where an address is mapped. *answered: an error is that of the
 * address, so a request would have an error too. */
static int find_known(struct gsas_thread *t, uint64_t address,
		      enum gsas_segment_kind kind, void **at, bool *answered)
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
	if (kind == GSAS_KIND_MEMORY)
		gsas_hot_fill(t->hot, address, map->base, map->memory);
	*at = map->memory + off;
	return 0;
}

/* As find_known(), but replaces a stale entry. */
static int find(struct gsas_thread *t, uint64_t address,
		enum gsas_segment_kind kind, void **at, bool *answered)
{
	int ret = find_known(t, address, kind, at, answered);

	return ret == -ESTALE && gsas_segments_evict(&t->segments, address) ?
		find_known(t, address, kind, at, answered) : ret;
}

static int find_or_none(struct gsas_thread *t, uint64_t address,
			enum gsas_segment_kind kind, void **at)
{
	bool answered;
	int ret;

	*at = NULL;
	if (!gsas_maps_board(t, gsas_board_of(address)))
		return 0;
	ret = find(t, address, kind, at, &answered);
	return answered ? 0 : ret;
}

int gsas_window_find(struct gsas_thread *t, uint64_t address, void **at)
{
	*at = gsas_direct(address);
	if (*at != NULL)
		return 0;
	return find_or_none(t, address, GSAS_KIND_MEMORY, at);
}

int gsas_window_span(struct gsas_thread *t, uint64_t address, uint64_t bytes,
		     void **at)
{
	int ret = gsas_window_find(t, address, at);

	if (ret == 0 && *at != NULL &&
	    gsas_segments_left(&t->segments, address, bytes) < bytes)
		*at = NULL;
	return ret;
}

int gsas_window_queue(struct gsas_thread *t, uint64_t address, void **at)
{
	return find_or_none(t, address, GSAS_KIND_QUEUE, at);
}

int gsas_window_map(struct gsas_thread *t, uint64_t address,
		    const struct gsas_segment_map **map)
{
	int board = gsas_board_of(address);
	bool answered;
	void *at;
	int ret;

	if (board < 0 || (uint32_t)board >= t->boards)
		return -FI_EFAULT;
	if (!gsas_maps_board(t, board))
		return -FI_EOPNOTSUPP;
	ret = find(t, address, GSAS_KIND_MEMORY, &at, &answered);
	if ((ret == -FI_EPERM || ret == -FI_EINVAL) &&
	    gsas_segments_evict(&t->segments, address))
		ret = find(t, address, GSAS_KIND_MEMORY, &at, &answered);
	if (ret == 0)
		*map = gsas_segments_find(&t->segments, address);
	return ret;
}
