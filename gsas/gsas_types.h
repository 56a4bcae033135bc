/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_types.h - the numbers of operations and types of gsas_atomic(). Part of
 * gsas.h, which includes this file; the service uses the same numbers.
 */
#ifndef GSAS_TYPES_H
#define GSAS_TYPES_H

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
	GSAS_TYPE_UINT128		= 15
};

/* Numbers on the wire, which never change: those of libfabric's fi_op.
 * "operand" and "compare" are arguments of gsas_atomic(); in fi_atomic() the
 * operand is called buf. */
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

/* The three families of calls: fi_atomic, fi_fetch_atomic, fi_compare_atomic */
enum gsas_form {
	GSAS_FORM_UPDATE,
	GSAS_FORM_FETCH,
	GSAS_FORM_COMPARE
};

#endif /* GSAS_TYPES_H */
