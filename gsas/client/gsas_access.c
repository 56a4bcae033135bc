/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_access.c - operations of gsas.h on single words: executed directly if
 * the thread can map the page, else sent as a request. A call waits for its
 * result, starts a request, or posts it.
 *
 * The calls are one line each: run(), start() and apply() are inlined, and the
 * compiler keeps only the case of the opcode.
 */
#include <errno.h>
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_direct.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "client/gsas_window.h"
#include "op/gsas_op.h"

#define INLINE	static inline __attribute__((always_inline))

/* Where the result is stored. */
struct into {
	void *out;		/* value; NULL: not wanted */
	int *done;		/* CAS64: 1 if replaced, else 0; not NULL.
				 * Other opcodes: NULL */
};

/* Size in bytes of the value, and the alignment of its address */
INLINE unsigned op_bytes(uint8_t opcode)
{
	switch (opcode) {
	case GSAS_READ8:
	case GSAS_WRITE8:
		return 1;
	case GSAS_READ32:
	case GSAS_WRITE32:
		return 4;
	default:
		return 8;
	}
}

/* Execute an operation on mapped memory. Sequentially consistent, as
 * gsas_op_apply() of the service. */
INLINE void apply(uint8_t opcode, void *at, uint64_t arg1, uint64_t arg2,
		  struct into into)
{
	uint64_t was = arg1;

	switch (opcode) {
	case GSAS_READ8:
		was = atomic_load((_Atomic uint8_t *)at);
		break;
	case GSAS_READ32:
		was = atomic_load((_Atomic uint32_t *)at);
		break;
	case GSAS_READ64:
		was = atomic_load((_Atomic uint64_t *)at);
		break;
	case GSAS_WRITE8:
		atomic_store((_Atomic uint8_t *)at, (uint8_t)arg1);
		return;
	case GSAS_WRITE32:
		atomic_store((_Atomic uint32_t *)at, (uint32_t)arg1);
		return;
	case GSAS_WRITE64:
		atomic_store((_Atomic uint64_t *)at, arg1);
		return;
	case GSAS_CAS64:
		*into.done = atomic_compare_exchange_strong(
			(_Atomic uint64_t *)at, &was, arg2);
		break;
	case GSAS_FAD64:
		was = atomic_fetch_add((_Atomic uint64_t *)at, arg1);
		break;
	case GSAS_SWAP64:
		was = atomic_exchange((_Atomic uint64_t *)at, arg1);
		break;
	}
	if (into.out != NULL)
		memcpy(into.out, &was, op_bytes(opcode));
}

/* ---- Requests ------------------------------------------------------------ */

static __attribute__((noinline))
int send_request(uint8_t opcode, uint64_t address, uint64_t arg1, uint64_t arg2,
		 struct into into, struct gsas_request *request)
{
	struct gsas_msg msg = {
		.opcode = opcode, .address = address,
		.arg1 = arg1, .arg2 = arg2,
	};
	struct gsas_conn *conn;
	int ret = gsas_conn_of(address, &conn);

	if (ret != 0)
		return ret;
	gsas_request_begin(request, conn->thread->number);
	request->out = into.out;
	request->done = into.done;
	request->bytes = op_bytes(opcode);
	return gsas_conn_send(conn, &msg, request);
}

/* Send a request and wait for its answer. */
static __attribute__((noinline))
int do_request(uint8_t opcode, uint64_t address, uint64_t arg1, uint64_t arg2,
	       struct into into)
{
	struct gsas_request request;
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = send_request(opcode, address, arg1, arg2, into,
				   &request);
	if (ret == 0)
		ret = gsas_request_wait(t, &request);
	if (ret == -ESTALE)
		gsas_segments_freed(&t->segments, address);
	return ret;
}

/* Map the page if possible. *at NULL: the operation has to be a request. */
static __attribute__((noinline)) int map_page(uint64_t address, void **at)
{
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t);

	return ret != 0 ? ret : gsas_window_find(t, address, at);
}

/* ---- Three forms --------------------------------------------------------- */

INLINE int run(uint8_t opcode, uint64_t address, uint64_t arg1, uint64_t arg2,
	       struct into into)
{
	void *at;
	int ret;

	address &= -(uint64_t)op_bytes(opcode);
	at = gsas_direct(address);
	if (__builtin_expect(at == NULL, 0)) {
		ret = map_page(address, &at);
		if (ret != 0)
			return ret;
	}
	if (__builtin_expect(at != NULL, 1)) {
		apply(opcode, at, arg1, arg2, into);
		return 0;
	}
	return do_request(opcode, address, arg1, arg2, into);
}

/* Complete a request that was executed directly or could not be started, so
 * that gsas_test() and gsas_wait() return its status. */
static int complete_now(struct gsas_req *req, int status)
{
	struct gsas_request *request = (struct gsas_request *)req;
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t);

	if (ret != 0)
		return ret;
	gsas_request_begin(request, t->number);
	request->status = status;
	return status;
}

INLINE int start(uint8_t opcode, uint64_t address, uint64_t arg1,
		 uint64_t arg2, struct into into, struct gsas_req *req)
{
	void *at;
	int ret;

	address &= -(uint64_t)op_bytes(opcode);
	at = gsas_direct(address);
	if (at == NULL) {
		ret = map_page(address, &at);
		if (ret != 0)
			return complete_now(req, ret);
	}
	if (at != NULL) {
		apply(opcode, at, arg1, arg2, into);
		return complete_now(req, 0);
	}
	ret = send_request(opcode, address, arg1, arg2, into,
			   (struct gsas_request *)req);
	return ret != 0 ? complete_now(req, ret) : 0;
}

static int post(uint8_t opcode, uint64_t address, uint64_t arg1, uint64_t arg2)
{
	struct gsas_msg msg = {
		.opcode = opcode, .address = address,
		.arg1 = arg1, .arg2 = arg2,
	};
	struct gsas_conn *conn;
	int ret = gsas_conn_of(address, &conn);

	return ret != 0 ? ret : gsas_conn_send(conn, &msg, NULL);
}

/* ---- The calls ----------------------------------------------------------- */

#define TO(out)		((struct into){ (out), NULL })
#define TO_CAS(out, done) ((struct into){ (out), (done) })
#define NOWHERE		((struct into){ NULL, NULL })

int gsas_read8(gsas_addr addr, uint8_t *value)
{
	return run(GSAS_READ8, addr, 0, 0, TO(value));
}

int gsas_read32(gsas_addr addr, uint32_t *value)
{
	return run(GSAS_READ32, addr, 0, 0, TO(value));
}

int gsas_read64(gsas_addr addr, uint64_t *value)
{
	return run(GSAS_READ64, addr, 0, 0, TO(value));
}

int gsas_write8(gsas_addr addr, uint8_t value)
{
	return run(GSAS_WRITE8, addr, value, 0, NOWHERE);
}

int gsas_write32(gsas_addr addr, uint32_t value)
{
	return run(GSAS_WRITE32, addr, value, 0, NOWHERE);
}

int gsas_write64(gsas_addr addr, uint64_t value)
{
	return run(GSAS_WRITE64, addr, value, 0, NOWHERE);
}

/* If the page is mapped but this processor has no such operation of 16 bytes,
 * the service refuses the request. */
int gsas_write128(gsas_addr addr, const uint64_t value[2])
{
	void *at;
	int ret;

	addr &= -(uint64_t)8;
	ret = map_page(addr, &at);
	if (ret != 0)
		return ret;
	if (at != NULL && gsas_op_direct(GSAS_TYPE_UINT128, addr)) {
		gsas_op_apply(GSAS_OP_WRITE, GSAS_TYPE_UINT128, 1, at, value,
			      NULL, NULL);
		return 0;
	}
	return do_request(GSAS_WRITE128, addr, value[0], value[1], NOWHERE);
}

int gsas_cas64(gsas_addr addr, uint64_t expected, uint64_t value,
	       uint64_t *was)
{
	int done;
	int ret = run(GSAS_CAS64, addr, expected, value, TO_CAS(was, &done));

	return ret != 0 ? ret : done;
}

int gsas_fad64(gsas_addr addr, int64_t summand, int64_t *was)
{
	return run(GSAS_FAD64, addr, (uint64_t)summand, 0, TO(was));
}

int gsas_swap64(gsas_addr addr, uint64_t value, uint64_t *was)
{
	return run(GSAS_SWAP64, addr, value, 0, TO(was));
}

int gsas_read64_start(gsas_addr addr, uint64_t *value, struct gsas_req *req)
{
	return start(GSAS_READ64, addr, 0, 0, TO(value), req);
}

int gsas_write64_start(gsas_addr addr, uint64_t value, struct gsas_req *req)
{
	return start(GSAS_WRITE64, addr, value, 0, NOWHERE, req);
}

int gsas_cas64_start(gsas_addr addr, uint64_t expected, uint64_t value,
		     uint64_t *was, int *done, struct gsas_req *req)
{
	if (done == NULL)
		return complete_now(req, -FI_EINVAL);
	return start(GSAS_CAS64, addr, expected, value, TO_CAS(was, done),
		     req);
}

int gsas_fad64_start(gsas_addr addr, int64_t summand, int64_t *was,
		     struct gsas_req *req)
{
	return start(GSAS_FAD64, addr, (uint64_t)summand, 0, TO(was), req);
}

int gsas_swap64_start(gsas_addr addr, uint64_t value, uint64_t *was,
		      struct gsas_req *req)
{
	return start(GSAS_SWAP64, addr, value, 0, TO(was), req);
}

int gsas_write64_post(gsas_addr addr, uint64_t value)
{
	void *at = gsas_direct(addr & -(uint64_t)8);
	int ret = at != NULL ? 0 : map_page(addr & -(uint64_t)8, &at);

	if (ret != 0)
		return ret;
	if (at == NULL)
		return post(GSAS_WRITE64, addr & -(uint64_t)8, value, 0);
	apply(GSAS_WRITE64, at, value, 0, NOWHERE);
	return 0;
}

int gsas_update64_post(gsas_addr addr, enum gsas_op op, uint64_t operand)
{
	void *at;
	int ret;

	if ((unsigned)op >= GSAS_OPS ||
	    !gsas_op_valid(op, GSAS_TYPE_UINT64, GSAS_FORM_UPDATE))
		return -FI_ENOSYS;
	addr &= -(uint64_t)8;
	at = gsas_direct(addr);
	ret = at != NULL ? 0 : map_page(addr, &at);
	if (ret != 0)
		return ret;
	if (at == NULL)
		return post(GSAS_UPDATE, addr, (uint64_t)op |
			    GSAS_TYPE_UINT64 << 8, operand);
	gsas_op_apply(op, GSAS_TYPE_UINT64, 1, at, &operand,
		      NULL, NULL);
	return 0;
}
