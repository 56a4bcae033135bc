/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_bulk.c - gsas_get() and gsas_put() of any number of bytes, and
 * gsas_read4k().
 *
 * Bytes that are mapped are copied directly. Other bytes pass through the
 * receive spaces, in parts, of which several are under way. At most one GET or
 * PUT of a connection (conn->bulk) is sent in part only: later requests wait
 * until all its parts are sent, so that requests stay in the order of calls.
 */
#include <errno.h>

#include "client/gsas_bulk.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_wait.h"
#include "client/gsas_window.h"
#include "common/gsas_copy.h"

#define PART_UNITS	8		/* of the GSAS_UNITS of a space */
#define PART_MAX	(64u << 10)	/* GSAS_BULK_MAX of the service */

enum direction { GET, PUT };

static uint32_t part_max(const struct gsas_conn *conn)
{
	uint32_t max = conn->unit * PART_UNITS;

	return max < PART_MAX ? max : PART_MAX;
}

/* ---- Requests in parts --------------------------------------------------- */

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

static int bulk_start(struct gsas_thread *t, enum direction dir,
		      uint64_t address, void *at, size_t len,
		      struct gsas_request *request)
{
	struct gsas_conn *conn;
	int ret = gsas_conn_of(t, address, &conn);

	if (ret != 0)
		return ret;
	request->bulk = true;
	request->put = dir == PUT;
	request->address = address;
	request->at = at;
	request->whole = request->left = len;
	conn->bulk = request;
	gsas_bulk_progress(conn);
	return 0;
}

/* ---- The calls ----------------------------------------------------------- */

/* *at: where all bytes are mapped; NULL: they have to be requested, and the
 * answer has the error of the address, if there is one. */
static int find_all(struct gsas_thread *t, uint64_t address, size_t len,
		    void **at)
{
	int ret = gsas_window_find(t, address, at);

	if (ret == 0 && *at != NULL &&
	    gsas_segments_left(&t->segments, address, len) < len)
		*at = NULL;
	return ret;
}

/* memory: the program's buffer; only GET writes to it */
static int start(enum direction dir, uint64_t address, void *memory,
		 size_t len, struct gsas_request *request)
{
	struct gsas_thread *t;
	void *at = NULL;
	int ret = gsas_thread_get(&t);

	if (ret != 0)
		return ret;
	gsas_request_begin(request, t->number);
	if (len > GSAS_WHOLE_MAX)
		ret = -FI_EINVAL;
	else if (len != 0)
		ret = find_all(t, address, len, &at);
	if (ret == 0 && len != 0 && at == NULL)
		ret = bulk_start(t, dir, address, memory, len, request);
	else if (ret == 0 && dir == PUT)
		gsas_copy_to_shared(at, memory, len);
	else if (ret == 0)
		gsas_copy_from_shared(memory, at, len);
	if (ret != 0 || at != NULL || len == 0)
		request->status = ret;
	return ret;
}

static int run(enum direction dir, uint64_t address, void *memory, size_t len)
{
	struct gsas_request request;
	struct gsas_thread *t;
	int ret = start(dir, address, memory, len, &request);

	if (ret == 0)
		ret = gsas_thread_get(&t);
	if (ret == 0)
		ret = gsas_request_wait(t, &request);
	if (ret == -ESTALE)
		gsas_segments_freed(&t->segments, address);
	return ret;
}

int gsas_get(void *dst, gsas_addr src, size_t len)
{
	return run(GET, src, dst, len);
}

int gsas_put(gsas_addr dst, const void *src, size_t len)
{
	return run(PUT, dst, (void *)src, len);
}

int gsas_get_start(void *dst, gsas_addr src, size_t len, struct gsas_req *req)
{
	return start(GET, src, dst, len, (struct gsas_request *)req);
}

int gsas_put_start(gsas_addr dst, const void *src, size_t len,
		   struct gsas_req *req)
{
	return start(PUT, dst, (void *)src, len, (struct gsas_request *)req);
}

int gsas_read4k(gsas_addr addr, void *page)
{
	struct gsas_msg msg = {
		.opcode = GSAS_READ4K, .address = addr,
		.into = page, .len = GSAS_PAGE,
	};
	struct gsas_thread *t;
	struct gsas_request request;
	struct gsas_conn *conn;
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = gsas_conn_of(t, addr, &conn);
	if (ret == 0)
		ret = gsas_space_wait(conn, 0, GSAS_PAGE, &msg, NULL);
	msg.arg1 = msg.off;
	return ret != 0 ? ret : gsas_request_do(conn, &msg, &request);
}
