/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op.h - the table of atomic operations, shared by GSAS and by FI_ATOMIC.
 *
 * Pure: memory in, memory out. It knows no packet, no key and no permission;
 * the caller has checked that the bytes are there and may be touched. What each
 * operation does, and which of them any core may execute: docs/atomics.md.
 */
#ifndef GSAS_OP_H
#define GSAS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers on the wire, fixed for ever: those of libfabric's fi_datatype. */
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
#define GSAS_TYPE_MAX	32	/* bytes of the largest */

/* The same for fi_op. "operand" is fi_atomic's buf. */
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
	GSAS_OP_MSWAP		= 18,	/* the bits that compare has set */
};

#define GSAS_OPS	19

/* The three families of calls: fi_atomic, fi_fetch_atomic, fi_compare_atomic */
enum gsas_form {
	GSAS_FORM_UPDATE,
	GSAS_FORM_FETCH,
	GSAS_FORM_COMPARE,
};

/*
 * All functions are thread-safe, allocate nothing and never fail. The numbers
 * may be anything: they may come from a packet.
 */

/* Bytes of one element; 0: there is no such type. */
size_t gsas_type_size(enum gsas_type type);

/* Is there such an operation on that type, and is it called in that form? */
bool gsas_op_valid(enum gsas_op op, enum gsas_type type, enum gsas_form form);

/*
 * May any core that can store to the element execute operations on it at once,
 * in whatever process? Else it has one executor, the process that owns it.
 * address: the element's, or its offset in anything aligned to 16 bytes. The
 * answer holds for every element of an array, for every operation, and is the
 * same in all processes of a machine.
 */
bool gsas_op_direct(enum gsas_type type, uint64_t address);

/*
 * Does READ of the element store back what is there? It does for an aligned one
 * of 128 bits where the machine has no load of 16 bytes; READ of memory that is
 * mapped read-only then ends the process by a signal.
 */
bool gsas_op_read_stores(enum gsas_type type, uint64_t address);

/*
 * Do it, on count elements one after the other, each atomic by itself and
 * sequentially consistent; no order or atomicity between the elements.
 *
 * (op, type) is valid in some form; what is not valid does nothing.
 * target: of any alignment, and writable unless op is READ and
 *	gsas_op_read_stores() says no.
 * operand: one element each, any alignment; not looked at by READ
 * compare: the same; looked at by CSWAP* and MSWAP only
 * result: where the elements go as they were before, any alignment, or NULL. It
 *	may be operand or compare itself; no other two overlap.
 */
void gsas_op_apply(enum gsas_op op, enum gsas_type type, size_t count,
		   void *target, const void *operand, const void *compare,
		   void *result);

#endif /* GSAS_OP_H */
