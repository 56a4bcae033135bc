/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_lock.h - execute operations under locks of the process
 * (gsas_op_lock.c).
 */
#ifndef GSAS_OP_LOCK_H
#define GSAS_OP_LOCK_H

#include <stddef.h>

#define GSAS_STEP_MAX	32		/* bytes of the largest element */

struct gsas_step {
	/* Uses element i of the arrays operand and compare. target: the
	 * element itself. */
	void (*fn)(void *target, const void *operand, const void *compare,
		   size_t i);
	size_t size;			/* bytes of an element */
};

/* Execute a step on count elements, one after the other, each under its locks.
 * Arguments as of gsas_op_apply(). */
void gsas_op_locked(const struct gsas_step *step, size_t count, void *target,
		    const void *operand, const void *compare, void *result);

#endif /* GSAS_OP_LOCK_H */
