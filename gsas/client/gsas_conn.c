/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_conn.c - the connection to the service of a board: sends messages by
 * tag, completes them by their answers, shares out the receive spaces.
 */
#include <errno.h>
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_log.h"

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
		return conn->closed_error;
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
		return conn->closed_error;
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

/* ---- Beginning and end --------------------------------------------------- */

void gsas_conn_attach(struct gsas_conn *conn, struct hal_peer *peer)
{
	conn->peer = peer;
	conn->epoch++;
	conn->groups = 0;
	conn->posted = false;
	conn->closed_error = -FI_ECONNRESET;
	conn->waited = 0;
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

void gsas_conn_detach(struct gsas_conn *conn)
{
	conn->peer = NULL;
	conn->lost |= conn->posted;
	for (int tag = 1; tag <= GSAS_TAGS; tag++)
		if (conn->tag[tag].request != NULL)
			tag_answer(conn, (uint8_t)tag, conn->closed_error, 0,
				   0);
}
