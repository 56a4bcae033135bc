/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_get.c - gsas_get() and gsas_put() of any number of bytes, and
 * gsas_read4k(). Bytes that are mapped are copied directly; gsas_bulk.c moves
 * other bytes through the receive spaces.
 */
#include <errno.h>

#include "client/gsas_bulk.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "client/gsas_window.h"
#include "common/gsas_copy.h"

enum direction { GET, PUT };

static int bulk_start(enum direction dir, uint64_t address, void *at,
		      size_t len, struct gsas_request *request)
{
	struct gsas_conn *conn;
	int ret = gsas_conn_of(address, &conn);

	if (ret != 0)
		return ret;
	request->put = dir == PUT;
	request->address = address;
	request->at = at;
	request->whole = len;
	gsas_bulk_begin(conn, request);
	return 0;
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
		ret = gsas_window_span(t, address, len, &at);
	if (ret == 0 && len != 0 && at == NULL)
		ret = bulk_start(dir, address, memory, len, request);
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
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = start(dir, address, memory, len, &request);
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
	struct gsas_request request;
	struct gsas_conn *conn;
	int ret = gsas_conn_of(addr, &conn);

	if (ret == 0)
		ret = gsas_space_wait(conn, 0, GSAS_PAGE, &msg, NULL);
	msg.arg1 = msg.off;
	return ret != 0 ? ret : gsas_request_do(conn, &msg, &request);
}
