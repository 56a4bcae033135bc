/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_bulk.c - sends GET and PUT requests of any number of bytes through the
 * receive spaces, in parts, of which several are under way.
 *
 * At most one request of a connection (conn->bulk) is sent in part only: later
 * requests wait until all its parts are sent, so that requests stay in the
 * order of the calls. gsas_get.c has the calls.
 */
#include "client/gsas_bulk.h"
#include "client/gsas_conn.h"

#define PART_UNITS	8		/* of the GSAS_UNITS of a space */
#define PART_MAX	(64u << 10)	/* GSAS_BULK_MAX of the service */

static uint32_t part_max(const struct gsas_conn *conn)
{
	uint32_t max = conn->unit * PART_UNITS;

	return max < PART_MAX ? max : PART_MAX;
}

void gsas_bulk_end(struct gsas_conn *conn, int error)
{
	struct gsas_request *request = conn->bulk;

	conn->bulk = NULL;
	gsas_request_stop(request, error);
}

/* Send the next part. 0; -FI_EAGAIN: no units of the space or no credit are
 * free; or an error. */
static int bulk_part(struct gsas_conn *conn, struct gsas_request *request)
{
	struct gsas_part part = {
		.whole = request->whole,
		.begin = request->whole - request->left,
	};
	uint32_t max = part_max(conn) -
		(request->address + part.begin) % GSAS_PART_ALIGN;
	uint32_t len = request->left < max ? (uint32_t)request->left : max;
	struct gsas_msg msg = {
		.opcode = request->put ? GSAS_PUT : GSAS_GET,
		.address = request->address,
	};
	uint64_t arg[2];
	int ret = 0;

	if (request->put) {
		msg.remote = gsas_space_take(&conn->remote, conn->unit, len,
					     &part.off);
	} else {
		msg.local = gsas_space_take(&conn->local, conn->unit, len,
					    &part.off);
		msg.into = request->at;
		msg.len = len;
		msg.off = part.off;
	}
	if ((msg.local | msg.remote) == 0)
		return -FI_EAGAIN;
	part.bytes = len;
	gsas_part_encode(&part, request->address, arg);
	msg.arg1 = arg[0];
	msg.arg2 = arg[1];
	if (request->put)
		ret = gsas_space_put(conn, part.off, request->at, len);
	if (ret == 0)
		ret = gsas_conn_try_send(conn, &msg, request);
	if (ret != 0) {
		gsas_space_undo(conn, &msg);
		return ret;
	}
	request->parts++;
	request->at += len;
	request->left -= len;
	return 0;
}

void gsas_bulk_begin(struct gsas_conn *conn, struct gsas_request *request)
{
	request->bulk = true;
	request->left = request->whole;
	conn->bulk = request;
	gsas_bulk_progress(conn);
}

bool gsas_bulk_progress(struct gsas_conn *conn)
{
	struct gsas_request *request = conn->bulk;
	bool moved = false;
	int ret = 0;

	while (ret == 0 && request->left != 0 && request->error == 0) {
		if (conn->nfree == 0)
			return moved;
		ret = bulk_part(conn, request);
		if (ret == -FI_EAGAIN)
			return moved;
		moved = true;
	}
	/* all parts are sent, or one failed and the rest is not sent */
	gsas_bulk_end(conn, ret);
	return true;
}
