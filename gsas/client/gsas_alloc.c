/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_alloc.c - the number of boards; allocation and release of their memory.
 */
#include <errno.h>
#include <limits.h>

#include "client/gsas_alloc.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_job.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"

/* ---- Boards -------------------------------------------------------------- */

static _Atomic int boards, own_board;	/* plus 1; 0: not known yet */

/* Read both numbers from the HAL, which needs no interface for it. */
static int read_boards(void)
{
	struct hal *hal;
	int ret = hal_get(NULL, &hal);

	if (ret != 0)
		return ret;
	atomic_store_explicit(&own_board, hal->own_board + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&boards, (int)hal->caps.boards + 1,
			      memory_order_relaxed);
	hal_put(hal);
	return 0;
}

static int cached(_Atomic int *what)
{
	int seen = atomic_load_explicit(what, memory_order_relaxed);
	int ret = seen == 0 ? read_boards() : 0;

	return ret != 0 ? ret :
		atomic_load_explicit(what, memory_order_relaxed) - 1;
}

int gsas_boards(void)
{
	return cached(&boards);
}

int gsas_board(void)
{
	return cached(&own_board);
}

int gsas_board_of_address(gsas_addr addr)
{
	int board = gsas_board_of(addr), n = gsas_boards();

	if (n < 0)
		return n;
	return board >= 0 && board < n ? board : -FI_EFAULT;
}

/* ---- Allocation ---------------------------------------------------------- */

/* The board of the next GSAS_SPREAD. All threads of the process share a turn,
 * which begins at the board of the process. */
static int spread(const struct gsas_thread *t)
{
	static _Atomic uint32_t turn;

	return (int)(((uint32_t)t->hal->own_board +
		      atomic_fetch_add_explicit(&turn, 1,
						memory_order_relaxed)) %
		     t->boards);
}

/* Check the arguments, connect to the board, and store the attributes of the
 * request at *attr. */
static int alloc_conn(int board, unsigned flags, const char *group,
		      struct gsas_conn **conn, uint64_t *attr)
{
	unsigned mode = GSAS_ATTR_MODE(flags);
	struct gsas_thread *t;
	uint32_t index = 0;
	int ret;

	_Static_assert(GSAS_JOB == (int)GSAS_MODE_JOB &&
		       GSAS_GROUP_ONLY == (int)GSAS_MODE_GROUP &&
		       GSAS_WORLD == (int)GSAS_MODE_WORLD &&
		       GSAS_MAPPED == GSAS_ATTR_MAPPED,
		       "flags are sent as they are");
	if ((flags & ~(0xffu | GSAS_MAPPED)) != 0 || mode > GSAS_WORLD ||
	    (group != NULL) != (mode == GSAS_GROUP_ONLY))
		return -FI_EINVAL;
	ret = gsas_thread_get(&t);
	if (ret != 0)
		return ret;
	if (board == GSAS_HERE)
		board = t->hal->own_board;
	else if (board == GSAS_SPREAD)
		board = spread(t);
	if (group != NULL)
		ret = gsas_group_index(group, &index);
	if (ret == 0)
		ret = gsas_conn_get(t, board, conn);
	if (ret != 0)
		return ret;
	*attr = flags;
	if (group == NULL)
		return 0;
	*attr |= (uint64_t)(*conn)->group[index] << 32;
	return (*conn)->group[index] != 0 ? 0 : -EDQUOT;
}

int gsas_alloc_request(struct gsas_msg *msg, int board, unsigned flags,
		       const char *group, uint64_t *addr)
{
	struct gsas_conn *conn;
	struct gsas_request request;
	int ret = alloc_conn(board, flags, group, &conn, &msg->arg2);

	if (ret == 0)
		ret = gsas_request_do(conn, msg, &request);
	if (ret == 0)
		*addr = request.result;
	return ret;
}

int gsas_alloc(uint64_t pages, int board, unsigned flags, const char *group,
	       gsas_addr *addr)
{
	struct gsas_msg msg = { .opcode = GSAS_ALLOC, .arg1 = pages };

	if (pages == 0 || addr == NULL)
		return -FI_EINVAL;
	return gsas_alloc_request(&msg, board, flags, group, addr);
}

int gsas_free(gsas_addr addr)
{
	struct gsas_msg msg = { .opcode = GSAS_FREE, .arg1 = addr };
	struct gsas_conn *conn;
	struct gsas_request request;
	int ret = gsas_conn_of(addr, &conn);

	if (ret == 0)
		ret = gsas_request_do(conn, &msg, &request);
	if (ret == 0)
		gsas_segments_freed(&conn->thread->segments, addr);
	return ret;
}
