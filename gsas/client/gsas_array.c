/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_array.c - gsas_atomic(): any operation of op/gsas_op.h on one element or
 * more.
 *
 * The operation is executed directly if all elements are mapped and the
 * processor can do it on them. Otherwise the service executes it. A request for
 * one element of up to 8 bytes carries the element; other requests carry their
 * data in the receive spaces, in pieces.
 */
#include <string.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "client/gsas_window.h"
#include "op/gsas_op.h"

#define PIECE_UNITS	8	/* units of the service's space for operands and
				 * compares of a piece */

struct array {
	enum gsas_op op;
	enum gsas_type type;
	enum gsas_form form;
	size_t size;			/* bytes of an element */
	uint64_t address;		/* of the first element not yet sent */
	size_t count;			/* elements not yet sent */
	const uint8_t *operand, *compare;
	uint8_t *result;
};

static int check(const struct array *a)
{
	/* a program may pass any number, also a negative one */
	if ((unsigned)a->op >= GSAS_OPS || (unsigned)a->type >= GSAS_TYPES ||
	    (unsigned)a->form > GSAS_FORM_COMPARE ||
	    !gsas_op_valid(a->op, a->type, a->form))
		return -FI_ENOSYS;
	if (a->count == 0)
		return 0;
	if (a->count > GSAS_WHOLE_MAX / GSAS_TYPE_MAX ||
	    (a->operand == NULL && a->op != GSAS_OP_READ) ||
	    (a->compare == NULL && a->form == GSAS_FORM_COMPARE) ||
	    (a->result == NULL && a->form != GSAS_FORM_UPDATE))
		return -FI_EINVAL;
	return 0;
}

/* One element, carried by the packets. */
static int send_one(struct gsas_conn *conn, const struct array *a)
{
	struct gsas_msg msg = {
		.opcode = GSAS_UPDATE, .address = a->address,
		.arg1 = (uint64_t)a->op | (uint64_t)a->type << 8,
	};
	struct gsas_request request;
	int ret;

	if (a->operand != NULL)
		memcpy(&msg.arg2, a->operand, a->size);
	ret = gsas_request_do(conn, &msg, &request);
	if (ret == 0 && a->result != NULL)
		memcpy(a->result, &request.result, a->size);
	return ret;
}

/* The next count elements, in the receive spaces. */
static int send_piece(struct gsas_conn *conn, const struct array *a,
		      uint32_t count)
{
	uint32_t bytes = count * (uint32_t)a->size;
	bool has_in = a->op != GSAS_OP_READ;
	bool has_compare = a->form == GSAS_FORM_COMPARE;
	bool has_out = a->form != GSAS_FORM_UPDATE;
	struct gsas_msg msg = {
		.opcode = GSAS_ATOMIC, .address = a->address,
		.arg1 = (uint64_t)a->op | (uint64_t)a->type << 8 |
			(uint64_t)a->form << 16 | (uint64_t)count << 32,
		.into = a->result, .len = has_out ? bytes : 0,
	};
	struct gsas_request request;
	uint32_t at = 0;
	int ret = gsas_space_wait(conn, (has_in + has_compare) * bytes,
				  has_out ? bytes : 0, &msg, &at);

	if (ret == 0 && has_in)
		ret = gsas_space_put(conn, at, a->operand, bytes);
	if (ret == 0 && has_compare)
		ret = gsas_space_put(conn, at + bytes, a->compare, bytes);
	if (ret != 0) {
		if (conn->peer != NULL)
			gsas_space_undo(conn, &msg);
		return ret;
	}
	msg.arg2 = at | (uint64_t)msg.off << 32;
	return gsas_request_do(conn, &msg, &request);
}

/* Check, by a GET of 0 bytes, that all elements are in one allocation, before
 * the first of several pieces is sent: then none or all are refused. */
static int check_range(struct gsas_conn *conn, const struct array *a)
{
	struct gsas_part part = { .whole = a->count * a->size };
	struct gsas_msg msg = { .opcode = GSAS_GET, .address = a->address };
	struct gsas_request request;
	uint64_t arg[2];

	gsas_part_encode(&part, a->address, arg);
	msg.arg1 = arg[0];
	return gsas_request_do(conn, &msg, &request);
}

static uint32_t piece_max(const struct gsas_conn *conn, const struct array *a)
{
	return conn->unit * PIECE_UNITS / 2 / (uint32_t)a->size;
}

static int send_array(struct array *a)
{
	struct gsas_conn *conn;
	int ret = gsas_conn_of(a->address, &conn);

	if (ret == 0 && a->count > piece_max(conn, a))
		ret = check_range(conn, a);
	if (ret != 0)
		return ret;
	if (a->count == 1 && a->size <= 8 && a->form != GSAS_FORM_COMPARE)
		return send_one(conn, a);
	while (ret == 0 && a->count != 0) {
		uint32_t n = piece_max(conn, a);

		if (n > a->count)
			n = (uint32_t)a->count;
		ret = conn->peer == NULL ? conn->closed_error :
			send_piece(conn, a, n);
		a->count -= n;
		a->address += n * a->size;
		a->operand += a->operand != NULL ? n * a->size : 0;
		a->compare += a->compare != NULL ? n * a->size : 0;
		a->result += a->result != NULL ? n * a->size : 0;
	}
	return ret;
}

int gsas_atomic(gsas_addr addr, enum gsas_op op, enum gsas_type type,
		enum gsas_form form, size_t count, const void *operand,
		const void *compare, void *result)
{
	struct array a = {
		.op = op, .type = type, .form = form,
		.address = addr, .count = count,
		.operand = operand, .compare = compare, .result = result,
	};
	struct gsas_thread *t;
	void *at;
	int ret = check(&a);

	if (ret != 0 || count == 0)
		return ret;
	a.size = gsas_type_size(a.type);
	if (form == GSAS_FORM_UPDATE)
		a.result = NULL;
	ret = gsas_thread_get(&t);
	if (ret == 0)
		ret = gsas_window_span(t, addr, count * a.size, &at);
	if (ret != 0)
		return ret;
	/* not all elements are mapped, or the processor cannot do it */
	if (at == NULL || !gsas_op_direct(a.type, addr))
		return send_array(&a);
	gsas_op_apply(a.op, a.type, count, at, operand, compare, a.result);
	return 0;
}
