/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_complete.c - gsas_test(), gsas_wait() and gsas_fence(): whether requests
 * and posted messages are complete.
 */
#include <errno.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_progress.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "util/unm_clock.h"

/* Get the thread of a request, which must be the calling one. 0; -FI_EINVAL: it
 * is another thread. */
static int call_thread(struct gsas_request *request, struct gsas_thread **t)
{
	int ret = gsas_thread_get(t);

	if (ret == 0 && request->owner != (*t)->number)
		ret = -FI_EINVAL;
	return ret;
}

int gsas_test(struct gsas_req *req)
{
	struct gsas_request *request = (struct gsas_request *)req;
	struct gsas_thread *t;
	int ret = call_thread(request, &t);

	if (ret != 0 || request->status != -FI_EINPROGRESS)
		return ret != 0 ? ret : request->status;
	if (!gsas_thread_progress(t) && unm_now_ns() >= t->next_events)
		gsas_thread_events(t);
	return request->status;
}

int gsas_wait(struct gsas_req *req)
{
	struct gsas_request *request = (struct gsas_request *)req;
	struct gsas_thread *t;
	int ret = call_thread(request, &t);

	return ret != 0 ? ret : gsas_request_wait(t, request);
}

static int conn_fence(struct gsas_thread *t, struct gsas_conn *conn)
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
	if (conn->lost) {
		conn->lost = false;
		return -FI_ECONNRESET;
	}
	return ret == 0 && request.result != 0 ? gsas_errno(request.more) : ret;
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
		ret = conn_fence(t, t->conn[t->used[i]]);
		if (first == 0)
			first = ret;
	}
	return first;
}
