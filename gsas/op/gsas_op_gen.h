/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_gen.h - what the functions of gsas_op.c are generated from.
 *
 * An operation OP on a type T is a condition and a value, expressions over
 *	old	the element as it is
 *	arg	the operand
 *	cmp	the value to compare with
 * and becomes a step, which does it once, alone (under the locks of
 * gsas_op_lock.c), and a function of type gsas_op_fn, which does it count times
 * among all others: by an instruction of that name where there is one, else by
 * compare-and-swap of the element's bits.
 */
#ifndef GSAS_OP_GEN_H
#define GSAS_OP_GEN_H

#include <float.h>

#include "op/gsas_op.h"
#include "op/gsas_op_wide.h"

/* arguments: see gsas_op_apply() */
typedef void (*gsas_op_fn)(size_t count, void *target, const void *operand,
			   const void *compare, void *result);

struct gsas_step {
	/* Operand and compare are arrays: their element i is meant. */
	void (*fn)(void *target, const void *operand, const void *compare,
		   size_t i);
	size_t size;			/* of an element */
};

/* The elements one after the other, each under its locks. */
void gsas_op_locked(const struct gsas_step *step, size_t count, void *target,
		    const void *operand, const void *compare, void *result);

/* ---- Values in memory of any alignment --------------------------------- */

#define GSAS_AT(base, i, T)	((unsigned char *)(base) + (i) * sizeof(T))
#define GSAS_CAT(base, i, T)						\
	((const unsigned char *)(base) + (i) * sizeof(T))

/* t_get, t_put: a value from memory, a value into memory */
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
 * Of a long double only the bytes that hold something are stored, those that
 * pad it stay: what the compiler left there must not get out.
 */
#define GSAS_LONG_BYTES							\
	(LDBL_MANT_DIG == 64 ? (size_t)10 : sizeof(long double))

/* ---- Words: the bits of an element, N of them -------------------------- */

/* Targets have any type: these may alias. */
typedef uint8_t gsas_w8 __attribute__((may_alias));
typedef uint16_t gsas_w16 __attribute__((may_alias));
typedef uint32_t gsas_w32 __attribute__((may_alias));
typedef uint64_t gsas_w64 __attribute__((may_alias));

/* The order of all accesses: WRITE of one word, then READ of another must not
 * pass each other, so release and acquire would not do. */
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

/* What an operation takes: u, an operand; c, something to compare with, too. */
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
 * Elements smaller than 8 bytes, in an array: those of an aligned word at once,
 * by one compare-and-swap, as the instruction costs the same for one of them.
 * Each is atomic as it was: whoever else accesses one while the word is being
 * made finds it as before or as after. How many were done: all whole words.
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

/* What follows is for one element. */
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

/* Never direct. (N is not used: lists of operations have one form.) */
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
 * An instruction: call(word, arg, order), and the one that tells what was there
 * before, told(word, arg, order). Without a result it may be a cheaper one.
 */
#define GSAS_NATIVE(t, T, N, op, value, call, told)			\
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
				told(word, arg, GSAS_ORDER));		\
	}								\
}

/* Bits that are compared as bits: the instruction. */
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

/* Reads change nothing, and look at no operand. */
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

/* READ and WRITE of what is never direct: bytes, whatever they mean. */
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
