/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op.h - the table of atomic operations, shared by GSAS and by FI_ATOMIC.
 *
 * Pure: the functions read and write memory only. Packets, keys and permissions
 * are the caller's task: it has checked that the bytes exist and may be
 * accessed. docs/atomics.md says what each operation does, and which ones any
 * core may execute.
 */
#ifndef GSAS_OP_H
#define GSAS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers on the wire, which never change: those of libfabric's fi_datatype. */
enum gsas_type {
	GSAS_TYPE_INT8			= 0,
	GSAS_TYPE_UINT8			= 1,
	GSAS_TYPE_INT16			= 2,
	GSAS_TYPE_UINT16		= 3,
	GSAS_TYPE_INT32			= 4,
	GSAS_TYPE_UINT32		= 5,
	GSAS_TYPE_INT64			= 6,
	GSAS_TYPE_UINT64		= 7,
	GSAS_TYPE_FLOAT			= 8,
	GSAS_TYPE_DOUBLE		= 9,
	GSAS_TYPE_FLOAT_COMPLEX		= 10,
	GSAS_TYPE_DOUBLE_COMPLEX	= 11,
	GSAS_TYPE_LONG_DOUBLE		= 12,
	GSAS_TYPE_LONG_DOUBLE_COMPLEX	= 13,
	GSAS_TYPE_INT128		= 14,
	GSAS_TYPE_UINT128		= 15,
};

#define GSAS_TYPES	16
#define GSAS_TYPE_MAX	32	/* bytes of the largest type */

/* Numbers on the wire, which never change: those of libfabric's fi_op.
 * "operand" is the buf of fi_atomic(). */
enum gsas_op {
	GSAS_OP_MIN		= 0,
	GSAS_OP_MAX		= 1,
	GSAS_OP_SUM		= 2,
	GSAS_OP_PROD		= 3,
	GSAS_OP_LOR		= 4,
	GSAS_OP_LAND		= 5,
	GSAS_OP_BOR		= 6,
	GSAS_OP_BAND		= 7,
	GSAS_OP_LXOR		= 8,
	GSAS_OP_BXOR		= 9,
	GSAS_OP_READ		= 10,
	GSAS_OP_WRITE		= 11,
	GSAS_OP_CSWAP		= 12,	/* target = operand, if compare == */
	GSAS_OP_CSWAP_NE	= 13,	/* ... if compare != target */
	GSAS_OP_CSWAP_LE	= 14,	/* ... if compare <= target */
	GSAS_OP_CSWAP_LT	= 15,
	GSAS_OP_CSWAP_GE	= 16,
	GSAS_OP_CSWAP_GT	= 17,
	GSAS_OP_MSWAP		= 18,	/* target = operand in the bits that
					 * compare has set */
};

#define GSAS_OPS	19

/* The three families of calls: fi_atomic, fi_fetch_atomic, fi_compare_atomic */
enum gsas_form {
	GSAS_FORM_UPDATE,
	GSAS_FORM_FETCH,
	GSAS_FORM_COMPARE,
};

/*
 * All functions are thread-safe, allocate nothing and never fail. Arguments of
 * the types enum gsas_... may have any value, as if from a packet.
 */

/* Bytes of one element; 0: there is no such type. */
size_t gsas_type_size(enum gsas_type type);

/* Does the operation exist on that type, in that form? */
bool gsas_op_valid(enum gsas_op op, enum gsas_type type, enum gsas_form form);

/*
 * May any core of any process that can store to the element execute operations
 * on it directly? If not, only one process, the owner of the memory, may
 * execute them. address: of the element, or its offset in memory aligned to 16
 * bytes. The answer holds for all elements of an array and for all operations,
 * and is the same in all processes of a machine.
 */
bool gsas_op_direct(enum gsas_type type, uint64_t address);

/*
 * Does READ of the element store its value back? It does for aligned elements
 * of 128 bits if the machine has no atomic load of 16 bytes. READ of memory
 * that is mapped read-only then ends the process by a signal.
 */
bool gsas_op_read_stores(enum gsas_type type, uint64_t address);

/*
 * Execute an operation on count elements, one after the other. Each is atomic
 * by itself and sequentially consistent; there is no order or atomicity between
 * elements. An (op, type) that is valid in no form has no effect.
 *
 * target: count elements of any alignment, writable unless op is READ and
 *	gsas_op_read_stores() returns false.
 * operand: count elements of any alignment; not read by READ.
 * compare: count elements of any alignment; read by CSWAP* and MSWAP only.
 * result: the values before are stored here, any alignment; or NULL. It may be
 *	operand or compare; otherwise no two arguments overlap.
 */
void gsas_op_apply(enum gsas_op op, enum gsas_type type, size_t count,
		   void *target, const void *operand, const void *compare,
		   void *result);

#endif /* GSAS_OP_H */
