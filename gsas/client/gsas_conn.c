/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_conn.c - the connection to the service of a board: connect (and start
 * the service, where boards are emulated), send requests by tag, complete them
 * by their answers.
 *
 * Handling an answer never waits, so there is no recursion. A connection may be
 * closed whenever answers are polled for: after each gsas_wait_step() the
 * caller checks whether peer is NULL.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_job.h"
#include "client/gsas_log.h"
#include "client/gsas_progress.h"
#include "client/gsas_start.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "util/unm_clock.h"

#define CONNECT_NS	UINT64_C(10000000000)	/* time limit of a connect */

/* ---- Receive spaces ------------------------------------------------------ */

uint64_t gsas_space_take(uint64_t *free, uint32_t unit, uint32_t bytes,
			 uint32_t *off)
{
	uint32_t n = (bytes + unit - 1) / unit;
	uint64_t at = *free, mask;

	for (uint32_t i = 1; i < n && at != 0; i++)
		at &= *free >> i;
	if (at == 0)
		return 0;
	mask = n == GSAS_UNITS ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	mask <<= __builtin_ctzll(at);
	*free &= ~mask;
	*off = unit * (uint32_t)__builtin_ctzll(at);
	return mask;
}

void gsas_space_undo(struct gsas_conn *conn, const struct gsas_msg *msg)
{
	conn->local |= msg->local;
	conn->remote |= msg->remote;
}

bool gsas_space_try(struct gsas_conn *conn, uint32_t in, uint32_t out,
		    struct gsas_msg *msg, uint32_t *at)
{
	if (out != 0 && msg->local == 0)
		msg->local = gsas_space_take(&conn->local, conn->unit, out,
					     &msg->off);
	if (in != 0 && msg->remote == 0)
		msg->remote = gsas_space_take(&conn->remote, conn->unit, in,
					      at);
	return (out == 0 || msg->local != 0) && (in == 0 || msg->remote != 0);
}

int gsas_space_put(struct gsas_conn *conn, uint32_t off, const void *src,
		   uint32_t len)
{
	if (conn->peer == NULL)
		return conn->gone;
	if (off + len > conn->ready) {
		int ret = hal_space_ready(conn->peer, off + len);

		if (ret != 0)
			return ret;
		conn->ready = off + len;
	}
	hal_space_write(conn->peer, off, src, len);
	hal_space_barrier(conn->peer);
	return 0;
}

/* ---- Requests ------------------------------------------------------------ */

int gsas_conn_try_send(struct gsas_conn *conn, const struct gsas_msg *msg,
		       struct gsas_request *request)
{
	uint64_t w[GSAS_WORDS] = { msg->address, msg->arg1, msg->arg2 };
	uint8_t tag = GSAS_TAG_POSTED;
	int ret;

	/* the connection was closed since the caller checked */
	if (__builtin_expect(conn->peer == NULL, 0))
		return conn->gone;
	if (request != NULL) {
		if (conn->nfree == 0)
			return -FI_EAGAIN;
		tag = conn->free[conn->nfree - 1];
	}
	ret = hal_pkt_send(conn->peer, hal_head(msg->opcode, tag), w,
			   GSAS_WORDS, NULL, 0);
	if (ret != 0)
		return ret;
	if (request == NULL) {
		conn->posted = true;
		return 0;
	}
	conn->nfree--;
	conn->tag[tag] = (struct gsas_tag){
		.request = request, .into = msg->into, .len = msg->len,
		.off = msg->off, .local = msg->local, .remote = msg->remote,
		.opcode = msg->opcode,
	};
	return 0;
}

/* ---- Answers ------------------------------------------------------------- */

/* Copy the data that an answer left in the local receive space. */
static int take_data(struct gsas_conn *conn, const struct gsas_tag *tag)
{
	if (tag->len == 0)
		return 0;
	if (conn->peer->rx.space == NULL)
		return -EPROTO;
	memcpy(tag->into, hal_space(conn->peer, tag->off), tag->len);
	return 0;
}

/* The message of a tag is answered; arguments as for gsas_request_answer(). */
static void tag_answer(struct gsas_conn *conn, uint8_t number, int error,
		       uint64_t result, uint64_t more)
{
	struct gsas_tag *tag = &conn->tag[number];

	if (error == 0)
		error = take_data(conn, tag);
	gsas_request_answer(tag->request, error, result, more);
	conn->local |= tag->local;
	conn->remote |= tag->remote;
	tag->request = NULL;
	conn->free[conn->nfree++] = number;
}

bool gsas_conn_answer(struct gsas_conn *conn, const struct hal_cell *cell,
		      uint64_t head)
{
	uint8_t tag = hal_head_flags(head), opcode = hal_head_type(head);
	uint64_t error = hal_cell_word(cell, 0);
	uint64_t result = hal_cell_word(cell, 1);
	uint64_t more = hal_cell_word(cell, 2);

	/* opcode 0: the service does not know the opcode of the request */
	if (conn->tag[tag].request == NULL ||
	    (conn->tag[tag].opcode != opcode &&
	     (opcode != 0 || error != GSAS_E_OPCODE))) {
		gsas_log("board %u: its service sent a malformed answer "
			 "(opcode %u, tag %u)", conn->board, opcode, tag);
		return false;
	}
	tag_answer(conn, tag, gsas_errno(error), result, more);
	return true;
}

void gsas_conn_cancel(struct gsas_conn *conn)
{
	conn->peer = NULL;
	conn->lost |= conn->posted;
	for (int tag = 1; tag <= GSAS_TAGS; tag++)
		if (conn->tag[tag].request != NULL)
			tag_answer(conn, (uint8_t)tag, conn->gone, 0, 0);
}

/* ---- Connecting ---------------------------------------------------------- */

static void conn_reset(struct gsas_conn *conn, struct hal_peer *peer)
{
	conn->peer = peer;
	conn->life++;
	conn->groups = 0;
	conn->posted = false;
	conn->gone = -FI_ECONNRESET;
	conn->quiet = 0;
	conn->probed = false;
	conn->local = conn->remote = UINT64_MAX;
	conn->ready = 0;
	conn->nfree = 0;
	for (int tag = GSAS_TAGS; tag >= 1; tag--) {
		conn->tag[tag].request = NULL;
		conn->free[conn->nfree++] = (uint8_t)tag;
	}
	peer->user = conn;
}

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
		ret = gsas_start(conn->board);
		return ret != 0 ? ret : -FI_EAGAIN;
	}
	if (ret == -FI_EACCES)
		gsas_log("board %u: another user holds its service, or all "
			 "names of it", conn->board);
	if (ret != 0)
		return ret;
	conn_reset(conn, peer);
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
		gsas_thread_service(conn->thread);
	}
	return ret;
}

/* Send the groups that this process joined since. If the service refuses a
 * group because its table is full, the group has number 0, and an allocation
 * for it fails with -EDQUOT (gsas_alloc_conn()). */
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
			return conn->gone;
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
	conn->gone = -FI_ECONNRESET;
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
		ret = conn->gone;
	if (ret == 0)
		*out = conn;
	return ret;
}

int gsas_conn_of(struct gsas_thread *t, uint64_t address,
		 struct gsas_conn **conn)
{
	int ret = gsas_conn_get(t, gsas_board_of(address), conn);

	return ret == -ENXIO ? -FI_EFAULT : ret;
}
