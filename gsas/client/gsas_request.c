/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_request.c - pending requests: begin them, complete them by an answer,
 * wait for them; gsas_test(), gsas_wait() and gsas_fence().
 *
 * gsas_conn.c sends the messages, gsas_bulk.c completes requests that take
 * several of them.
 */
#include <errno.h>
#include <string.h>

#include "client/gsas_request.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_progress.h"
#include "client/gsas_wait.h"
#include "util/unm_clock.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a result of 1 or 4 bytes has to be the first bytes of its word"
#endif

int gsas_errno(uint64_t error)
{
	static const int of[GSAS_ERRORS] = {
		[GSAS_OK] = 0,
		[GSAS_E_OPCODE] = -FI_ENOSYS,
		[GSAS_E_ADDRESS] = -FI_EFAULT,
		[GSAS_E_FREED] = -ESTALE,
		[GSAS_E_ACCESS] = -FI_EACCES,
		[GSAS_E_ARGUMENT] = -FI_EINVAL,
		[GSAS_E_MEMORY] = -FI_ENOMEM,
		[GSAS_E_QUOTA] = -EDQUOT,
		[GSAS_E_MAPPED] = -FI_EPERM,
		[GSAS_E_PATH] = -FI_ENOENT,
		[GSAS_E_EXEC] = -FI_EPERM,
		[GSAS_E_JOIN] = -EPROTO,
		[GSAS_E_AGAIN] = -FI_EAGAIN,
		[GSAS_E_STATE] = -FI_EINVAL,
	};

	return error < GSAS_ERRORS ? of[error] : -EPROTO;
}

/* ---- Answers ------------------------------------------------------------- */

void gsas_request_begin(struct gsas_request *request, uint64_t owner)
{
	memset(request, 0, sizeof(*request));
	request->status = -FI_EINPROGRESS;
	request->owner = owner;
}

/* Note an error of a bulk request, and complete the request if all messages are
 * sent and answered. */
static void bulk_check(struct gsas_request *request, int error)
{
	if (request->error == 0)
		request->error = error;
	if (request->parts == 0 && request->left == 0)
		request->status = request->error;
}

void gsas_request_stop(struct gsas_request *request, int error)
{
	request->left = 0;
	bulk_check(request, error);
}

void gsas_request_answer(struct gsas_request *request, int error,
			 uint64_t result, uint64_t more)
{
	if (request->bulk) {
		request->parts--;
		bulk_check(request, error);
		return;
	}
	request->result = result;
	request->more = more;
	if (error == 0 && request->out != NULL)
		memcpy(request->out, request->done != NULL ? &more : &result,
		       request->bytes);
	if (error == 0 && request->done != NULL)
		*request->done = result != 0;
	request->status = error;
}

/* ---- Calls of gsas.h ----------------------------------------------------- */

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
	if (!gsas_thread_progress(t) && unm_now_ns() >= t->next_service)
		gsas_thread_service(t);
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
