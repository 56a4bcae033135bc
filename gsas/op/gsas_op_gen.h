/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_gen.h - macros that generate the functions of gsas_op.c.
 *
 * An operation OP on a type T is given by a condition ("when") and a value to
 * store if it holds. Both are expressions over
 *	old	the element before the operation
 *	arg	the operand
 *	cmp	the value to compare with
 * A macro generates two functions. The step executes OP on one element without
 * atomic instructions, under the locks of gsas_op_lock.c. The function of type
 * gsas_op_fn executes OP on count elements that other cores access at the same
 * time, by the processor's instruction for OP if there is one, else by
 * compare-and-swap of the element's bits; if the elements are not aligned it
 * calls the step.
 */
#ifndef GSAS_OP_GEN_H
#define GSAS_OP_GEN_H

#include <float.h>

#include "op/gsas_op_lock.h"
#include "op/gsas_op_wide.h"

/* Arguments as of gsas_op_apply() */
typedef void (*gsas_op_fn)(size_t count, void *target, const void *operand,
			   const void *compare, void *result);

/* ---- Values in memory of any alignment --------------------------------- */

#define GSAS_AT(base, i, T)	((unsigned char *)(base) + (i) * sizeof(T))
#define GSAS_CAT(base, i, T)						\
	((const unsigned char *)(base) + (i) * sizeof(T))

/* Define t_get() and t_put(), which read a value from memory and write it. */
#define GSAS_VALUE(t, T)						\
static inline T t##_get(const void *from)				\
{									\
	T value;							\
									\
	memcpy(&value, from, sizeof(value));				\
	return value;							\
}									\
									\
static inline void t##_put(void *to, T value)				\
{									\
	memcpy(to, &value, sizeof(value));				\
}

/*
 * Only these first bytes of a long double are stored. The padding bytes in
 * memory are kept, because those of the compiler's value may hold private data.
 */
#define GSAS_LONG_BYTES							\
	(LDBL_MANT_DIG == 64 ? (size_t)10 : sizeof(long double))

/* ---- Words: the bits of an element, N of them -------------------------- */

/* Types to access targets of any type, hence may_alias. */
typedef uint8_t gsas_w8 __attribute__((may_alias));
typedef uint16_t gsas_w16 __attribute__((may_alias));
typedef uint32_t gsas_w32 __attribute__((may_alias));
typedef uint64_t gsas_w64 __attribute__((may_alias));

/* The memory order of all accesses. A READ must not pass an earlier WRITE of
 * another word, so release and acquire are not enough. */
#define GSAS_ORDER	__ATOMIC_SEQ_CST

#define GSAS_WORD(N)							\
static inline bool word##N##_direct(const void *target)			\
{									\
	return (uintptr_t)target % (N / 8) == 0;			\
}									\
									\
static inline gsas_w##N word##N##_load(void *target)			\
{									\
	return __atomic_load_n((gsas_w##N *)target, GSAS_ORDER);	\
}									\
									\
static inline bool word##N##_cas(void *target, gsas_w##N *old,		\
				 gsas_w##N want)			\
{									\
	return __atomic_compare_exchange_n((gsas_w##N *)target, old,	\
					   want, true, GSAS_ORDER,	\
					   GSAS_ORDER);			\
}

static inline bool word128_direct(const void *target)
{
	return (uintptr_t)target % 16 == 0 && gsas_op_wide() != 0;
}

static inline gsas_w128 word128_load(void *target)
{
	return gsas_wide_load(target);
}

static inline bool word128_cas(void *target, gsas_w128 *old, gsas_w128 want)
{
	return gsas_wide_cas(target, old, want);
}

/* ---- Functions --------------------------------------------------------- */

#define GSAS_ARGS							\
	size_t count, void *target, const void *operand,		\
	const void *compare, void *result
#define GSAS_PASS	count, target, operand, compare, result

/* Read the inputs of an operation. u: an operand; c: an operand and a value to
 * compare with. */
#define GSAS_TAKE_u(t, T, i)						\
	T arg = t##_get(GSAS_CAT(operand, i, T));			\
									\
	(void)compare;
#define GSAS_TAKE_c(t, T, i)						\
	T arg = t##_get(GSAS_CAT(operand, i, T));			\
	T cmp = t##_get(GSAS_CAT(compare, i, T));

#define GSAS_STEP(t, T, take, op, when, value)				\
static void t##_##op##_once(void *target, const void *operand,		\
			    const void *compare, size_t i)		\
{									\
	GSAS_TAKE_##take(t, T, i)					\
	T old = t##_get(target);					\
									\
	(void)old;							\
	if (when)							\
		t##_put(target, (T)(value));				\
}									\
static const struct gsas_step t##_##op##_step = {			\
	t##_##op##_once, sizeof(T)					\
};

/*
 * Arrays of elements smaller than 8 bytes: execute the operation on all
 * elements of an aligned word by one compare-and-swap, which costs as much as
 * for one element. Each element is still atomic: other accesses find it as it
 * was before or as it is afterwards. Returns the number of elements done, which
 * are all whole words.
 */
#define GSAS_LANES(t, T, N, take, op, when, value)			\
static size_t t##_##op##_lanes(GSAS_ARGS)				\
{									\
	size_t i = 0;							\
									\
	for (; count - i >= 64 / N; i += 64 / N) {			\
		void *word = GSAS_AT(target, i, T);			\
		gsas_w64 was = word64_load(word), want;			\
		T lane[64 / N];						\
		bool stored;						\
									\
		do {							\
			stored = false;					\
			memcpy(lane, &was, sizeof(was));		\
			for (size_t k = 0; k < 64 / N; k++) {		\
				GSAS_TAKE_##take(t, T, i + k)		\
				T old = lane[k];			\
									\
				(void)old;				\
				if (when) {				\
					lane[k] = (T)(value);		\
					stored = true;			\
				}					\
			}						\
			memcpy(&want, lane, sizeof(want));		\
		} while (stored && !word64_cas(word, &was, want));	\
		if (result != NULL)					\
			memcpy(GSAS_AT(result, i, T), &was,		\
			       sizeof(was));				\
	}								\
	return i;							\
}									\
									\
static void t##_##op(GSAS_ARGS);					\
									\
static __attribute__((noinline)) void t##_##op##_many(GSAS_ARGS)	\
{									\
	while (count > 0) {						\
		size_t n = 1;						\
									\
		if (count >= 64 / N && word64_direct(target))		\
			n = t##_##op##_lanes(GSAS_PASS);		\
		else							\
			t##_##op(1, target, operand, compare, result);	\
		target = GSAS_AT(target, n, T);				\
		operand = GSAS_CAT(operand, n, T);			\
		if (compare != NULL)					\
			compare = GSAS_CAT(compare, n, T);		\
		if (result != NULL)					\
			result = GSAS_AT(result, n, T);			\
		count -= n;						\
	}								\
}

/* For arrays call t_op_many() and return. */
#define GSAS_TO_MANY(t, op)						\
	if (count != 1) {						\
		t##_##op##_many(GSAS_PASS);				\
		return;							\
	}

#define GSAS_NONE(...)
#define GSAS_LANES_8	GSAS_LANES
#define GSAS_LANES_16	GSAS_LANES
#define GSAS_LANES_32	GSAS_LANES
#define GSAS_LANES_64	GSAS_NONE
#define GSAS_LANES_128	GSAS_NONE
#define GSAS_MANY_8	GSAS_TO_MANY
#define GSAS_MANY_16	GSAS_TO_MANY
#define GSAS_MANY_32	GSAS_TO_MANY
#define GSAS_MANY_64	GSAS_NONE
#define GSAS_MANY_128	GSAS_NONE

/* Types that are never executed directly. N is not used; GSAS_CAS has the same
 * parameters, and lists of operations take either macro. */
#define GSAS_OWNED(t, T, N, take, op, when, value)			\
GSAS_STEP(t, T, take, op, when, value)					\
static void t##_##op(GSAS_ARGS)						\
{									\
	gsas_op_locked(&t##_##op##_step, GSAS_PASS);			\
}

#define GSAS_CAS(t, T, N, take, op, when, value)			\
GSAS_STEP(t, T, take, op, when, value)					\
GSAS_LANES_##N(t, T, N, take, op, when, value)				\
static void t##_##op(GSAS_ARGS)						\
{									\
	if (__builtin_expect(!word##N##_direct(target), 0)) {		\
		gsas_op_locked(&t##_##op##_step, GSAS_PASS);		\
		return;							\
	}								\
	GSAS_MANY_##N(t, op)						\
	for (size_t i = 0; i < count; i++) {				\
		GSAS_TAKE_##take(t, T, i)				\
		void *word = GSAS_AT(target, i, T);			\
		gsas_w##N was = word##N##_load(word), want;		\
									\
		do {							\
			T old = t##_get(&was);				\
									\
			(void)old;					\
			if (!(when))					\
				break;					\
			t##_put(&want, (T)(value));			\
		} while (!word##N##_cas(word, &was, want));		\
		if (result != NULL)					\
			memcpy(GSAS_AT(result, i, T), &was,		\
			       sizeof(was));				\
	}								\
}

/*
 * The processor has an instruction: fetch(word, arg, order) returns the value
 * before, call(word, arg, order) does not and may be cheaper.
 */
#define GSAS_NATIVE(t, T, N, op, value, call, fetch)			\
GSAS_STEP(t, T, u, op, true, value)					\
GSAS_LANES_##N(t, T, N, u, op, true, value)				\
static void t##_##op(GSAS_ARGS)						\
{									\
	if (__builtin_expect(!word##N##_direct(target), 0)) {		\
		gsas_op_locked(&t##_##op##_step, GSAS_PASS);		\
		return;							\
	}								\
	GSAS_MANY_##N(t, op)						\
	for (size_t i = 0; i < count; i++) {				\
		gsas_w##N *word = (void *)GSAS_AT(target, i, T);	\
		T arg = t##_get(GSAS_CAT(operand, i, T));		\
									\
		if (result == NULL)					\
			call(word, arg, GSAS_ORDER);			\
		else							\
			t##_put(GSAS_AT(result, i, T),			\
				fetch(word, arg, GSAS_ORDER));		\
	}								\
}

/* CSWAP of integers: compare-and-swap of the processor. */
#define GSAS_NATIVE_CSWAP(t, T, N)					\
GSAS_STEP(t, T, c, cswap, cmp == old, arg)				\
static void t##_cswap(GSAS_ARGS)					\
{									\
	if (__builtin_expect(!word##N##_direct(target), 0)) {		\
		gsas_op_locked(&t##_cswap_step, GSAS_PASS);		\
		return;							\
	}								\
	for (size_t i = 0; i < count; i++) {				\
		GSAS_TAKE_c(t, T, i)					\
		gsas_w##N *word = (void *)GSAS_AT(target, i, T);	\
		gsas_w##N was = cmp;					\
									\
		__atomic_compare_exchange_n(word, &was, arg, false,	\
					    GSAS_ORDER, GSAS_ORDER);	\
		if (result != NULL)					\
			t##_put(GSAS_AT(result, i, T), was);		\
	}								\
}

/* READ changes nothing and has no operand; gsas_op_locked() and the loops below
 * copy the value to result. */
#define GSAS_READ_STEP(t, T)						\
static void t##_read_once(void *target, const void *operand,		\
			  const void *compare, size_t i)		\
{									\
	(void)target;							\
	(void)operand;							\
	(void)compare;							\
	(void)i;							\
}									\
static const struct gsas_step t##_read_step = {				\
	t##_read_once, sizeof(T)					\
};

#define GSAS_READ(t, T, N)						\
GSAS_READ_STEP(t, T)							\
static void t##_read(GSAS_ARGS)						\
{									\
	if (__builtin_expect(!word##N##_direct(target), 0)) {		\
		gsas_op_locked(&t##_read_step, GSAS_PASS);		\
		return;							\
	}								\
	for (size_t i = 0; i < count; i++) {				\
		gsas_w##N was = word##N##_load(GSAS_AT(target, i, T));	\
									\
		if (result != NULL)					\
			memcpy(GSAS_AT(result, i, T), &was,		\
			       sizeof(was));				\
	}								\
}

/* READ and WRITE of types that are never executed directly copy bytes. */
#define GSAS_OWNED_BYTES(t, T)						\
GSAS_READ_STEP(t, T)							\
static void t##_read(GSAS_ARGS)						\
{									\
	gsas_op_locked(&t##_read_step, GSAS_PASS);			\
}									\
static void t##_write_once(void *target, const void *operand,		\
			   const void *compare, size_t i)		\
{									\
	(void)compare;							\
	memcpy(target, GSAS_CAT(operand, i, T), sizeof(T));		\
}									\
static const struct gsas_step t##_write_step = {			\
	t##_write_once, sizeof(T)					\
};									\
static void t##_write(GSAS_ARGS)					\
{									\
	gsas_op_locked(&t##_write_step, GSAS_PASS);			\
}

#endif /* GSAS_OP_GEN_H */
