/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op.h - the table of atomic operations, shared by GSAS and by FI_ATOMIC.
 *
 * Pure: the functions read and write memory only. Packets, keys and permissions
 * are the caller's task: it has checked that the bytes exist and may be
 * accessed. docs/atomics.md says what each operation does, and which ones any
 * core may execute. The public header gsas_types.h has the numbers of
 * operations and types.
 */
#ifndef GSAS_OP_H
#define GSAS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gsas_types.h"

#define GSAS_TYPES	16
#define GSAS_TYPE_MAX	32	/* bytes of the largest type */
#define GSAS_OPS	19

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
