/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_bulk.c - any number of bytes: copied where they are mapped here, else
 * through the receive spaces, in parts of which several are under way. And
 * whole pages, which need the spaces, too.
 *
 * One long call a connection can be sent in part: what comes after it waits
 * until all of it is on its way, so that requests stay in their order.
 */
#include <errno.h>

#include "common/gsas_copy.h"
#include "client/gsas_thread.h"

#define PART_UNITS	8		/* of the space's 64 */
#define PART_MAX	(64u << 10)	/* GSAS_BULK_MAX of the service */

static uint32_t part_max(const struct gsas_conn *conn)
{
	uint32_t max = conn->unit * PART_UNITS;

	return max < PART_MAX ? max : PART_MAX;
}

/* ---- By parts ------------------------------------------------------------ */

static void bulk_check(struct gsas_trip *trip)
{
	if (trip->parts == 0 && trip->left == 0)
		trip->status = trip->error;
}

void gsas_bulk_answer(struct gsas_trip *trip, int error)
{
	trip->parts--;
	if (trip->error == 0)
		trip->error = error;
	bulk_check(trip);
}

void gsas_bulk_end(struct gsas_conn *conn, int error)
{
	struct gsas_trip *trip = conn->bulk;

	conn->bulk = NULL;
	trip->left = 0;
	if (trip->error == 0)
		trip->error = error;
	bulk_check(trip);
}

/* The next part. 0; -FI_EAGAIN; or an error. */
static int bulk_part(struct gsas_conn *conn, struct gsas_trip *trip)
{
	struct gsas_part part = {
		.whole = trip->whole, .begin = trip->whole - trip->left,
	};
	uint32_t max = part_max(conn) -
		(trip->address + part.begin) % GSAS_PART_ALIGN;
	uint32_t len = trip->left < max ? (uint32_t)trip->left : max;
	struct gsas_ask ask = {
		.opcode = trip->put ? GSAS_PUT : GSAS_GET,
		.address = trip->address,
	};
	uint64_t arg[2];
	int ret = 0;

	if (trip->put) {
		ask.theirs = gsas_space_take(&conn->theirs, conn->unit, len,
					     &part.off);
	} else {
		ask.mine = gsas_space_take(&conn->mine, conn->unit, len,
					   &part.off);
		ask.into = trip->at;
		ask.len = len;
		ask.off = part.off;
	}
	if ((ask.mine | ask.theirs) == 0)
		return -FI_EAGAIN;
	part.bytes = len;
	gsas_part_encode(&part, trip->address, arg);
	ask.arg1 = arg[0];
	ask.arg2 = arg[1];
	if (trip->put)
		ret = gsas_space_put(conn, part.off, trip->at, len);
	if (ret == 0)
		ret = gsas_conn_try_send(conn, &ask, trip);
	if (ret != 0) {
		gsas_space_undo(conn, &ask);
		return ret;
	}
	trip->parts++;
	trip->at += len;
	trip->left -= len;
	return 0;
}

bool gsas_bulk_progress(struct gsas_conn *conn)
{
	struct gsas_trip *trip = conn->bulk;
	bool moved = false;
	int ret = 0;

	while (ret == 0 && trip->left != 0 && trip->error == 0) {
		if (conn->nfree == 0)
			return moved;
		ret = bulk_part(conn, trip);
		if (ret == -FI_EAGAIN)
			return moved;
		moved = true;
	}
	/* no more of it, whether that was all or the rest is in vain */
	gsas_bulk_end(conn, ret);
	return true;
}

static int bulk_start(struct gsas_thread *t, bool put, uint64_t address,
		      void *at, size_t len, struct gsas_trip *trip)
{
	struct gsas_conn *conn;
	int ret = gsas_conn_of(t, address, &conn);

	if (ret != 0)
		return ret;
	trip->kind = GSAS_KIND_BULK;
	trip->put = put;
	trip->address = address;
	trip->at = at;
	trip->whole = trip->left = len;
	conn->bulk = trip;
	gsas_bulk_progress(conn);
	return 0;
}

/* ---- The calls ----------------------------------------------------------- */

/* 0: all of it is mapped here, at *at; NULL: by packets, of which the answer
 * tells what is wrong. */
static int find_all(struct gsas_thread *t, uint64_t address, size_t len,
		    void **at)
{
	int ret = gsas_window_find(t, address, at);

	if (ret == 0 && *at != NULL &&
	    gsas_window_left(t, address, len) < len)
		*at = NULL;
	return ret;
}

/* memory: the program's, written to by a get only */
static int start(bool put, uint64_t address, void *memory, size_t len,
		 struct gsas_trip *trip)
{
	struct gsas_thread *t;
	void *at = NULL;
	int ret = gsas_thread_get(&t);

	if (ret != 0)
		return ret;
	gsas_trip_begin(trip, t, GSAS_KIND_ONE);
	if (len > GSAS_WHOLE_MAX)
		ret = -FI_EINVAL;
	else if (len != 0)
		ret = find_all(t, address, len, &at);
	if (ret == 0 && len != 0 && at == NULL)
		ret = bulk_start(t, put, address, memory, len, trip);
	else if (ret == 0 && put)
		gsas_copy_to_shared(at, memory, len);
	else if (ret == 0)
		gsas_copy_from_shared(memory, at, len);
	if (ret != 0 || at != NULL || len == 0)
		trip->status = ret;
	return ret;
}

static int run(bool put, uint64_t address, void *memory, size_t len)
{
	struct gsas_trip trip;
	struct gsas_thread *t;
	int ret = start(put, address, memory, len, &trip);

	if (ret == 0)
		ret = gsas_thread_get(&t);
	if (ret == 0)
		ret = gsas_trip_wait(t, &trip);
	if (ret == -ESTALE)
		gsas_window_freed(t, address);
	return ret;
}

int gsas_get(void *dst, gsas_addr src, size_t len)
{
	return run(false, src, dst, len);
}

int gsas_put(gsas_addr dst, const void *src, size_t len)
{
	return run(true, dst, (void *)src, len);
}

int gsas_get_start(void *dst, gsas_addr src, size_t len, struct gsas_req *req)
{
	return start(false, src, dst, len, (struct gsas_trip *)req);
}

int gsas_put_start(gsas_addr dst, const void *src, size_t len,
		   struct gsas_req *req)
{
	return start(true, dst, (void *)src, len, (struct gsas_trip *)req);
}

int gsas_read4k(gsas_addr addr, void *page)
{
	struct gsas_ask ask = {
		.opcode = GSAS_READ4K, .address = addr,
		.into = page, .len = GSAS_PAGE,
	};
	struct gsas_thread *t;
	struct gsas_trip trip;
	struct gsas_conn *conn;
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = gsas_conn_of(t, addr, &conn);
	if (ret == 0)
		ret = gsas_space_wait(conn, 0, GSAS_PAGE, &ask, NULL);
	ask.arg1 = ask.off;
	return ret != 0 ? ret : gsas_trip_do(conn, &ask, &trip);
}
