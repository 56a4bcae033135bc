/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_generic.h - gsas_atomic() of gsas.h on one element, of the type that an
 * argument has: int8_t ... uint64_t, long long, float, double. Manual:
 * gsas_read64(3).
 *
 *	gsas_get_value(addr, T *value)
 *	gsas_put_value(addr, T value)
 *	gsas_update_value(addr, enum gsas_op op, T value)
 *	gsas_fetch_value(addr, enum gsas_op op, T value, T *was)
 *	gsas_compare_swap(addr, T expected, T value, T *was)
 *
 * T is the type to which value or was points, where there is such an argument;
 * the other arguments are converted to it. Otherwise T is the type of value: an
 * integer constant is an int, so 4 bytes are written.
 *
 * In C11 the names are macros that choose by _Generic. In C++ they are
 * overloaded functions. In C99 there are only the functions with the type in
 * their name, such as gsas_get_value_uint32().
 *
 * *was: the value before, which was not NULL. gsas_compare_swap() has replaced
 * the value if *was is equal to expected. Returns, errors and thread safety:
 * those of gsas_atomic().
 */
#ifndef GSAS_GENERIC_H
#define GSAS_GENERIC_H

#include <limits.h>

#include "gsas.h"

/* Is long long a type beside int8_t ... int64_t? With glibc and musl int64_t is
 * long if that has 64 bits. */
#if defined(__linux__) && LONG_MAX == INT64_MAX
#define GSAS_LONG_LONG
#endif

#ifdef __cplusplus
#define GSAS_TYPED(call, name)	gsas_##call
#else
#define GSAS_TYPED(call, name)	gsas_##call##_##name
#endif

#define GSAS_DEFINE_TYPED(name, T, number)				\
	static inline int GSAS_TYPED(get_value, name)(gsas_addr addr,	\
						      T *value)		\
	{								\
		return gsas_atomic(addr, GSAS_OP_READ, number,		\
				   GSAS_FORM_FETCH, 1, NULL, NULL, value); \
	}								\
	static inline int GSAS_TYPED(put_value, name)(gsas_addr addr,	\
						      T value)		\
	{								\
		return gsas_atomic(addr, GSAS_OP_WRITE, number,		\
				   GSAS_FORM_UPDATE, 1, &value, NULL,	\
				   NULL);				\
	}								\
	static inline int GSAS_TYPED(update_value, name)(gsas_addr addr, \
			enum gsas_op op, T value)			\
	{								\
		return gsas_atomic(addr, op, number, GSAS_FORM_UPDATE, 1, \
				   &value, NULL, NULL);			\
	}								\
	static inline int GSAS_TYPED(fetch_value, name)(gsas_addr addr,	\
			enum gsas_op op, T value, T *was)		\
	{								\
		return gsas_atomic(addr, op, number, GSAS_FORM_FETCH, 1, \
				   &value, NULL, was);			\
	}								\
	static inline int GSAS_TYPED(compare_swap, name)(gsas_addr addr, \
			T expected, T value, T *was)			\
	{								\
		return gsas_atomic(addr, GSAS_OP_CSWAP, number,		\
				   GSAS_FORM_COMPARE, 1, &value,	\
				   &expected, was);			\
	}

GSAS_DEFINE_TYPED(int8, int8_t, GSAS_TYPE_INT8)
GSAS_DEFINE_TYPED(uint8, uint8_t, GSAS_TYPE_UINT8)
GSAS_DEFINE_TYPED(int16, int16_t, GSAS_TYPE_INT16)
GSAS_DEFINE_TYPED(uint16, uint16_t, GSAS_TYPE_UINT16)
GSAS_DEFINE_TYPED(int32, int32_t, GSAS_TYPE_INT32)
GSAS_DEFINE_TYPED(uint32, uint32_t, GSAS_TYPE_UINT32)
GSAS_DEFINE_TYPED(int64, int64_t, GSAS_TYPE_INT64)
GSAS_DEFINE_TYPED(uint64, uint64_t, GSAS_TYPE_UINT64)
#ifdef GSAS_LONG_LONG
GSAS_DEFINE_TYPED(longlong, long long, GSAS_TYPE_INT64)
GSAS_DEFINE_TYPED(ulonglong, unsigned long long, GSAS_TYPE_UINT64)
#endif
GSAS_DEFINE_TYPED(float, float, GSAS_TYPE_FLOAT)
GSAS_DEFINE_TYPED(double, double, GSAS_TYPE_DOUBLE)

#undef GSAS_DEFINE_TYPED
#undef GSAS_TYPED

#if !defined(__cplusplus) && defined(__STDC_VERSION__) &&		\
	__STDC_VERSION__ >= 201112L

#ifdef GSAS_LONG_LONG
#define GSAS_CHOOSE_LONG_LONG(call, star)				\
	long long star: gsas_##call##_longlong,				\
	unsigned long long star: gsas_##call##_ulonglong,
#else
#define GSAS_CHOOSE_LONG_LONG(call, star)
#endif

/* The function for the type of x, which is a pointer if star is "*" */
#define GSAS_CHOOSE(call, x, star) _Generic((x),			\
	int8_t star: gsas_##call##_int8,				\
	uint8_t star: gsas_##call##_uint8,				\
	int16_t star: gsas_##call##_int16,				\
	uint16_t star: gsas_##call##_uint16,				\
	int32_t star: gsas_##call##_int32,				\
	uint32_t star: gsas_##call##_uint32,				\
	int64_t star: gsas_##call##_int64,				\
	uint64_t star: gsas_##call##_uint64,				\
	GSAS_CHOOSE_LONG_LONG(call, star)				\
	float star: gsas_##call##_float,				\
	double star: gsas_##call##_double)

#define gsas_get_value(addr, value)					\
	GSAS_CHOOSE(get_value, value, *)(addr, value)
#define gsas_put_value(addr, value)					\
	GSAS_CHOOSE(put_value, value, )(addr, value)
#define gsas_update_value(addr, op, value)				\
	GSAS_CHOOSE(update_value, value, )(addr, op, value)
#define gsas_fetch_value(addr, op, value, was)				\
	GSAS_CHOOSE(fetch_value, was, *)(addr, op, value, was)
#define gsas_compare_swap(addr, expected, value, was)			\
	GSAS_CHOOSE(compare_swap, was, *)(addr, expected, value, was)

#endif

#endif /* GSAS_GENERIC_H */
