/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_connect.c - connects a thread to the service of a board, which is
 * started where boards are emulated; sends JOIN and the groups of the process.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_job.h"
#include "client/gsas_log.h"
#include "client/gsas_progress.h"
#include "client/gsas_start.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "util/unm_clock.h"

#define CONNECT_NS	UINT64_C(10000000000)	/* time limit of a connect */

/* Connect and send JOIN. -FI_EAGAIN: there was no service, so one was started,
 * or the service was just ending: try again. */
static int conn_try_connect(struct gsas_conn *conn)
{
	struct gsas_thread *t = conn->thread;
	struct hal_addr to = {
		.version = HAL_ADDR_VERSION, .board = conn->board,
		.iface = HAL_IF_SERVICE, .uid = t->hif->addr.uid,
		.nonce = HAL_ADDR_ANY,
	};
	struct gsas_msg join = { .opcode = GSAS_JOIN };
	struct gsas_request request;
	struct hal_peer *peer;
	uint64_t key[2];
	int ret = hal_connect(t->hif, &to, &peer);

	if (ret == -FI_ECONNREFUSED && t->starts) {
		ret = gsas_start_service(conn->board);
		return ret != 0 ? ret : -FI_EAGAIN;
	}
	if (ret == -FI_EACCES)
		gsas_log("board %u: another user holds its service, or all "
			 "names of it", conn->board);
	if (ret != 0)
		return ret;
	gsas_conn_attach(conn, peer);
	ret = gsas_job_key(key);
	join.address = key[0];
	join.arg1 = key[1];
	if (ret == 0)
		ret = gsas_request_do(conn, &join, &request);
	if (ret == 0 && conn->peer == NULL)
		return -FI_EAGAIN;
	if (ret != 0 && conn->peer != NULL)
		gsas_conn_close(conn);
	return ret != -FI_ECONNRESET || conn->status == -FI_EACCES ? ret :
		-FI_EAGAIN;
}

static int conn_connect(struct gsas_conn *conn)
{
	uint64_t end = unm_now_ns() + CONNECT_NS;
	int ret;

	while ((ret = conn_try_connect(conn)) == -FI_EAGAIN) {
		if (unm_now_ns() > end) {
			gsas_log("board %u: its service accepts no connection",
				 conn->board);
			return -FI_ECONNREFUSED;
		}
		poll(NULL, 0, 1);
		gsas_thread_events(conn->thread);
	}
	return ret;
}

/* Send the groups that this process joined since. If the service refuses a
 * group because its table is full, the group has number 0, and an allocation
 * for it fails with -EDQUOT (gsas_alloc()). */
static int conn_join_groups(struct gsas_conn *conn)
{
	while (conn->groups < gsas_group_count()) {
		struct gsas_msg msg = { .opcode = GSAS_GROUP };
		struct gsas_request request;
		uint64_t name[2];
		int ret;

		gsas_group_name(conn->groups, name);
		msg.address = name[0];
		msg.arg1 = name[1];
		ret = gsas_request_do(conn, &msg, &request);
		if (conn->peer == NULL)
			return conn->closed_error;
		conn->group[conn->groups++] =
			ret == 0 ? (uint32_t)request.result : 0;
	}
	return 0;
}

static struct gsas_conn *conn_new(struct gsas_thread *t, uint32_t board)
{
	struct gsas_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return NULL;
	conn->thread = t;
	conn->board = (uint16_t)board;
	conn->closed_error = -FI_ECONNRESET;
	conn->unit = t->hif->caps->space_bytes / GSAS_UNITS;
	t->conn[board] = conn;
	t->used[t->nused++] = board;
	return conn;
}

int gsas_conn_get(struct gsas_thread *t, int board, struct gsas_conn **out)
{
	struct gsas_conn *conn;
	int ret = 0;

	if (board < 0 || (uint32_t)board >= t->boards)
		return -ENXIO;
	conn = t->conn[board];
	if (conn == NULL)
		conn = conn_new(t, (uint32_t)board);
	if (conn == NULL)
		return -FI_ENOMEM;
	if (__builtin_expect(conn->bulk != NULL, 0)) {
		gsas_wait_begin(t);
		while (conn->bulk != NULL)
			gsas_wait_step(t);
	}
	if (__builtin_expect(conn->peer == NULL, 0))
		ret = conn_connect(conn);
	if (ret == 0 && conn->groups != gsas_group_count())
		ret = conn_join_groups(conn);
	if (ret == 0 && conn->peer == NULL)
		ret = conn->closed_error;
	if (ret == 0)
		*out = conn;
	return ret;
}

int gsas_conn_of(uint64_t address, struct gsas_conn **conn)
{
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = gsas_conn_get(t, gsas_board_of(address), conn);
	return ret == -ENXIO ? -FI_EFAULT : ret;
}
