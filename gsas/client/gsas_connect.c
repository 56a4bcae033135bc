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

/* ---- Beginning ----------------------------------------------------------- */

/* Open the HAL's connection, start the service of a board of this host if there
 * is none (-FI_EAGAIN: try again), and send JOIN without waiting. */
static int conn_begin(struct gsas_conn *conn)
{
	struct gsas_thread *t = conn->thread;
	struct hal_addr to = {
		.version = HAL_ADDR_VERSION, .board = conn->board,
		.iface = HAL_IF_SERVICE, .uid = t->hif->addr.uid,
		.nonce = HAL_ADDR_ANY,
	};
	struct gsas_msg join = { .opcode = GSAS_JOIN };
	struct hal_peer *peer;
	uint64_t key[2];
	int ret;

	if (!gsas_board_here(t, conn->board))
		gsas_job_leaves_host();
	ret = hal_connect(t->hif, &to, &peer);
	conn->status = ret;
	if (ret == -FI_ECONNREFUSED && t->starts &&
	    gsas_board_here(t, conn->board)) {
		ret = gsas_start_service(conn->board);
		return ret != 0 ? ret : -FI_EAGAIN;
	}
	if (ret != 0)
		return ret;
	gsas_conn_attach(conn, peer);
	ret = gsas_job_key(key);
	join.address = key[0];
	join.arg1 = key[1];
	gsas_request_begin(&conn->join, t->number);
	if (ret == 0)
		ret = gsas_conn_try_send(conn, &join, &conn->join);
	conn->joining = ret == 0;
	if (ret != 0 && conn->peer != NULL)
		gsas_conn_close(conn);
	return ret;
}

/* ---- End ----------------------------------------------------------------- */

/* Why there is no connection to the service of a board on another host: a line
 * for each new reason, as a program may try again and again. Returns the error
 * of the call. */
static int remote_error(struct gsas_conn *conn, int ret)
{
	struct gsas_thread *t = conn->thread;
	const char *host = hal_board_host(t->hal, conn->board);
	const char *why = NULL;

	switch (conn->status) {
	case -FI_ECONNREFUSED:
		ret = -FI_ECONNREFUSED;
		why = "no service answers: start gsasd there";
		break;
	case -FI_ETIMEDOUT:
	case -FI_EHOSTUNREACH:
	case -FI_ENETUNREACH:
		ret = -FI_EHOSTUNREACH;
		why = "the host does not answer";
		break;
	case -FI_EACCES:
		ret = -FI_EACCES;
		why = "this host and that one need the same key file";
		break;
	default:
		break;
	}
	if (why != NULL && t->starts && conn->reported != conn->status)
		gsas_log("board %u on host %s: %s", conn->board,
			 host != NULL ? host : "?", why);
	conn->reported = conn->status;
	return ret;
}

/* Wait for the answer to JOIN. -FI_EAGAIN: the service was just ending: try
 * again. */
static int conn_end(struct gsas_conn *conn)
{
	int ret = gsas_request_wait(conn->thread, &conn->join);

	conn->joining = false;
	if (ret == 0)
		return conn->peer != NULL ? 0 : -FI_EAGAIN;
	if (conn->peer != NULL)
		gsas_conn_close(conn);
	if (ret != -FI_ECONNRESET)
		return ret;
	if (conn->status == -FI_ECONNRESET || conn->status == -FI_ESHUTDOWN)
		return -FI_EAGAIN;
	return gsas_board_here(conn->thread, conn->board) &&
	       conn->status != -FI_EACCES ? -FI_EAGAIN : ret;
}

static int conn_try_connect(struct gsas_conn *conn)
{
	int ret = conn->joining ? 0 : conn_begin(conn);

	if (ret == 0)
		ret = conn_end(conn);
	if (ret == 0)
		conn->reported = 0;
	if (ret == 0 || ret == -FI_EAGAIN)
		return ret;
	if (!gsas_board_here(conn->thread, conn->board))
		return remote_error(conn, ret);
	if (ret == -FI_EACCES)
		gsas_log("board %u: another user holds its service, or all "
			 "names of it", conn->board);
	return ret;
}

static int conn_connect(struct gsas_conn *conn)
{
	uint64_t end = unm_now_ns() + CONNECT_NS;
	int ret;

	/* the HAL gives up a host that does not answer */
	if (!gsas_board_here(conn->thread, conn->board))
		end += (uint64_t)conn->thread->hal->params.net_dial_ms *
			1000000;
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

/* ---- Groups -------------------------------------------------------------- */

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

/* The connection to a board, connected or not, made if there is none. */
static int conn_find(struct gsas_thread *t, int board, struct gsas_conn **out)
{
	if (board < 0 || (uint32_t)board >= t->boards)
		return -ENXIO;
	*out = t->conn[board];
	if (*out == NULL)
		*out = conn_new(t, (uint32_t)board);
	return *out != NULL ? 0 : -FI_ENOMEM;
}

int gsas_conn_begin(struct gsas_thread *t, int board)
{
	struct gsas_conn *conn;
	int ret = conn_find(t, board, &conn);

	if (ret == 0 && conn->peer == NULL && !conn->joining)
		ret = conn_begin(conn);
	return ret;
}

int gsas_conn_get(struct gsas_thread *t, int board, struct gsas_conn **out)
{
	struct gsas_conn *conn;
	int ret = conn_find(t, board, &conn);

	if (ret != 0)
		return ret;
	if (__builtin_expect(conn->bulk != NULL, 0)) {
		gsas_wait_begin(t);
		while (conn->bulk != NULL)
			gsas_wait_step(t);
	}
	if (__builtin_expect(conn->peer == NULL || conn->joining, 0))
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
