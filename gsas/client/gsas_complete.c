/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_complete.c - gsas_test(), gsas_wait() and their forms for arrays of
 * requests, and gsas_fence(): whether requests and posted messages are
 * complete.
 */
#include <errno.h>

#include "client/gsas_complete.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_progress.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"

static bool is_owner(const struct gsas_req *req, const struct gsas_thread *t)
{
	return ((const struct gsas_request *)req)->owner == t->number;
}

/* Get the thread of a request, which must be the calling one. 0; -FI_EINVAL: it
 * is another thread. */
static int call_thread(const struct gsas_req *req, struct gsas_thread **t)
{
	int ret = gsas_thread_get(t);

	return ret == 0 && !is_owner(req, *t) ? -FI_EINVAL : ret;
}

int gsas_test(struct gsas_req *req)
{
	struct gsas_request *request = (struct gsas_request *)req;
	struct gsas_thread *t;
	int ret = call_thread(req, &t);

	if (ret != 0 || request->status != -FI_EINPROGRESS)
		return ret != 0 ? ret : request->status;
	gsas_poll_step(t);
	return request->status;
}

int gsas_wait(struct gsas_req *req)
{
	struct gsas_request *request = (struct gsas_request *)req;
	struct gsas_thread *t;
	int ret = call_thread(req, &t);

	return ret != 0 ? ret : gsas_request_wait(t, request);
}

/* ---- Arrays of requests -------------------------------------------------- */

/* Get the calling thread, which must have started all requests. 0; -FI_EINVAL:
 * it has not. */
static int call_thread_all(const struct gsas_req *req, size_t count,
			   struct gsas_thread **t)
{
	int ret = gsas_thread_get(t);

	for (size_t i = 0; ret == 0 && i < count; i++)
		ret = is_owner(&req[i], *t) ? 0 : -FI_EINVAL;
	return ret;
}

int gsas_wait_all(struct gsas_req *req, size_t count)
{
	struct gsas_thread *t;
	int first = 0, ret = call_thread_all(req, count, &t);

	if (ret != 0)
		return ret;
	for (size_t i = 0; i < count; i++) {
		ret = gsas_request_wait(t, (struct gsas_request *)&req[i]);
		if (first == 0)
			first = ret;
	}
	return first;
}

/* The first request that is done and was not reported, which this call reports.
 * NULL: there is none; *left: whether one is in progress. */
static struct gsas_request *take_done(struct gsas_req *req, size_t count,
				      size_t *index, bool *left)
{
	*left = false;
	for (size_t i = 0; i < count; i++) {
		struct gsas_request *request = (struct gsas_request *)&req[i];

		if (request->status == -FI_EINPROGRESS) {
			*left = true;
		} else if (!request->reported) {
			request->reported = true;
			*index = i;
			return request;
		}
	}
	return NULL;
}

int gsas_wait_any(struct gsas_req *req, size_t count, size_t *index)
{
	struct gsas_request *request;
	struct gsas_thread *t;
	bool left;
	int ret = call_thread_all(req, count, &t);

	*index = count;
	if (ret != 0)
		return ret;
	gsas_wait_begin(t);
	while ((request = take_done(req, count, index, &left)) == NULL && left)
		gsas_wait_step(t);
	return request != NULL ? request->status : -ENOENT;
}

int gsas_test_any(struct gsas_req *req, size_t count, size_t *index)
{
	struct gsas_request *request;
	struct gsas_thread *t;
	bool left;
	int ret = call_thread_all(req, count, &t);

	*index = count;
	if (ret != 0)
		return ret;
	request = take_done(req, count, index, &left);
	if (request == NULL && left) {
		gsas_poll_step(t);
		request = take_done(req, count, index, &left);
	}
	if (request != NULL)
		return request->status;
	return left ? -FI_EINPROGRESS : -ENOENT;
}

/* ---- Fences -------------------------------------------------------------- */

/* Wait for all requests to a board. The first error since a call returned one
 * is at conn->kept. */
static void conn_fence(struct gsas_thread *t, struct gsas_conn *conn)
{
	struct gsas_msg msg = { .opcode = GSAS_FENCE };
	struct gsas_request request = { 0 };
	int ret = 0;

	if (conn->peer != NULL) {
		ret = gsas_conn_get(t, conn->board, &conn);
		if (ret == 0)
			ret = gsas_request_do(conn, &msg, &request);
		if (ret == 0)
			conn->posted = false;
	}
	if (ret == 0 && request.result != 0)
		ret = gsas_errno(request.more);
	if (conn->lost)
		ret = -FI_ECONNRESET;
	conn->lost = false;
	if (conn->kept == 0)
		conn->kept = ret;
}

static int take(struct gsas_conn *conn)
{
	int ret = conn->kept;

	conn->kept = 0;
	return ret;
}

int gsas_fence(int board)
{
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t), first = 0;

	if (ret != 0)
		return ret;
	if (board >= 0 && (uint32_t)board >= t->boards)
		return -ENXIO;
	if (board < -1)
		return -FI_EINVAL;
	for (uint32_t i = 0; i < t->nused; i++) {
		if (board >= 0 && t->used[i] != (uint32_t)board)
			continue;
		conn_fence(t, t->conn[t->used[i]]);
		ret = take(t->conn[t->used[i]]);
		if (first == 0)
			first = ret;
	}
	return first;
}

void gsas_fence_wait(struct gsas_thread *t)
{
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->posted || conn->lost || conn->bulk != NULL ||
		    conn->nfree != GSAS_TAGS)
			conn_fence(t, conn);
	}
}

int gsas_fence_take(struct gsas_thread *t)
{
	int first = 0;

	for (uint32_t i = 0; i < t->nused; i++) {
		int ret = take(t->conn[t->used[i]]);

		if (first == 0)
			first = ret;
	}
	return first;
}
