/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op.c - the operations and their table.
 *
 * One function for each operation and type; signed and unsigned integers share
 * those that are the same on their bits. Arithmetic is done unsigned, in a type
 * that is not promoted to int: overflow wraps.
 */
#include <complex.h>

#include "op/gsas_op_gen.h"

GSAS_WORD(8)
GSAS_WORD(16)
GSAS_WORD(32)
GSAS_WORD(64)

/* ---- Lists: X(t, T, N, takes, name, when, value) ----------------------- */

#define ORDERED(X, t, T, N)						\
	X(t, T, N, u, min, arg < old, arg)				\
	X(t, T, N, u, max, arg > old, arg)				\
	X(t, T, N, c, cswap_le, cmp <= old, arg)			\
	X(t, T, N, c, cswap_lt, cmp < old, arg)				\
	X(t, T, N, c, cswap_ge, cmp >= old, arg)			\
	X(t, T, N, c, cswap_gt, cmp > old, arg)

#define LOGICAL(X, t, T, N)						\
	X(t, T, N, u, lor, true, old || arg)				\
	X(t, T, N, u, land, true, old && arg)				\
	X(t, T, N, u, lxor, true, !old != !arg)				\
	X(t, T, N, c, cswap_ne, cmp != old, arg)

/* floating point, in its own arithmetic */
#define NUMBER(X, t, T, N)						\
	X(t, T, N, u, sum, true, old + arg)				\
	X(t, T, N, u, prod, true, old * arg)				\
	X(t, T, N, c, cswap, cmp == old, arg)

/* ---- Integers ---------------------------------------------------------- */

/* W: holds a product of two T modulo 2^N */
#define UNSIGNED(t, T, N, W)						\
	GSAS_VALUE(t, T)						\
	ORDERED(GSAS_CAS, t, T, N)					\
	LOGICAL(GSAS_CAS, t, T, N)					\
	GSAS_CAS(t, T, N, u, prod, true, (W)old * arg)			\
	GSAS_CAS(t, T, N, c, mswap, true, (arg & cmp) | (old & ~cmp))	\
	GSAS_READ(t, T, N)

#define BITS(t, T, N)							\
	GSAS_NATIVE(t, T, N, sum, old + arg,				\
		    (void)__atomic_fetch_add, __atomic_fetch_add)	\
	GSAS_NATIVE(t, T, N, bor, old | arg,				\
		    (void)__atomic_fetch_or, __atomic_fetch_or)		\
	GSAS_NATIVE(t, T, N, band, old & arg,				\
		    (void)__atomic_fetch_and, __atomic_fetch_and)	\
	GSAS_NATIVE(t, T, N, bxor, old ^ arg,				\
		    (void)__atomic_fetch_xor, __atomic_fetch_xor)	\
	GSAS_NATIVE(t, T, N, write, arg,				\
		    __atomic_store_n, __atomic_exchange_n)		\
	GSAS_NATIVE_CSWAP(t, T, N)

UNSIGNED(u8, uint8_t, 8, uint64_t)
BITS(u8, uint8_t, 8)
UNSIGNED(u16, uint16_t, 16, uint64_t)
BITS(u16, uint16_t, 16)
UNSIGNED(u32, uint32_t, 32, uint64_t)
BITS(u32, uint32_t, 32)
UNSIGNED(u64, uint64_t, 64, uint64_t)
BITS(u64, uint64_t, 64)

/* no instruction but compare-and-swap */
UNSIGNED(u128, unsigned __int128, 128, unsigned __int128)
GSAS_CAS(u128, unsigned __int128, 128, u, sum, true, old + arg)
GSAS_CAS(u128, unsigned __int128, 128, u, bor, true, old | arg)
GSAS_CAS(u128, unsigned __int128, 128, u, band, true, old & arg)
GSAS_CAS(u128, unsigned __int128, 128, u, bxor, true, old ^ arg)
GSAS_CAS(u128, unsigned __int128, 128, u, write, true, arg)
GSAS_CAS(u128, unsigned __int128, 128, c, cswap, cmp == old, arg)

GSAS_VALUE(i8, int8_t)
ORDERED(GSAS_CAS, i8, int8_t, 8)
GSAS_VALUE(i16, int16_t)
ORDERED(GSAS_CAS, i16, int16_t, 16)
GSAS_VALUE(i32, int32_t)
ORDERED(GSAS_CAS, i32, int32_t, 32)
GSAS_VALUE(i64, int64_t)
ORDERED(GSAS_CAS, i64, int64_t, 64)
GSAS_VALUE(i128, __int128)
ORDERED(GSAS_CAS, i128, __int128, 128)

/* ---- Floating point ---------------------------------------------------- */

#define REAL(X, t, T, N)						\
	ORDERED(X, t, T, N)						\
	LOGICAL(X, t, T, N)						\
	NUMBER(X, t, T, N)

#define COMPLEX(X, t, T, N)						\
	LOGICAL(X, t, T, N)						\
	NUMBER(X, t, T, N)						\
	GSAS_OWNED_BYTES(t, T)

GSAS_VALUE(f32, float)
REAL(GSAS_CAS, f32, float, 32)
GSAS_VALUE(f64, double)
REAL(GSAS_CAS, f64, double, 64)
GSAS_VALUE(c32, float complex)
COMPLEX(GSAS_OWNED, c32, float complex, )
GSAS_VALUE(c64, double complex)
COMPLEX(GSAS_OWNED, c64, double complex, )

static inline long double ld_get(const void *from)
{
	long double value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline void ld_put(void *to, long double value)
{
	memcpy(to, &value, GSAS_LONG_BYTES);
}

REAL(GSAS_OWNED, ld, long double, )
GSAS_OWNED_BYTES(ld, long double)

static inline long double complex cld_get(const void *from)
{
	long double complex value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline void cld_put(void *to, long double complex value)
{
	ld_put(to, creall(value));
	ld_put((unsigned char *)to + sizeof(long double), cimagl(value));
}

COMPLEX(GSAS_OWNED, cld, long double complex, )

/* ---- The table --------------------------------------------------------- */

/* s: that of the type; u: the unsigned one of the same size */
#define ROW_ORDERED(s)							\
	[GSAS_OP_MIN] = s##_min,	[GSAS_OP_MAX] = s##_max,	\
	[GSAS_OP_CSWAP_LE] = s##_cswap_le,				\
	[GSAS_OP_CSWAP_LT] = s##_cswap_lt,				\
	[GSAS_OP_CSWAP_GE] = s##_cswap_ge,				\
	[GSAS_OP_CSWAP_GT] = s##_cswap_gt
#define ROW_NUMBER(s)							\
	[GSAS_OP_SUM] = s##_sum,	[GSAS_OP_PROD] = s##_prod,	\
	[GSAS_OP_LOR] = s##_lor,	[GSAS_OP_LAND] = s##_land,	\
	[GSAS_OP_LXOR] = s##_lxor,	[GSAS_OP_CSWAP] = s##_cswap,	\
	[GSAS_OP_CSWAP_NE] = s##_cswap_ne
#define ROW_BYTES(u)							\
	[GSAS_OP_READ] = u##_read,	[GSAS_OP_WRITE] = u##_write
#define ROW_BITS(u)							\
	[GSAS_OP_BOR] = u##_bor,	[GSAS_OP_BAND] = u##_band,	\
	[GSAS_OP_BXOR] = u##_bxor,	[GSAS_OP_MSWAP] = u##_mswap

#define INTEGER_ROW(s, u)						\
	{ ROW_ORDERED(s), ROW_NUMBER(u), ROW_BYTES(u), ROW_BITS(u) }
#define REAL_ROW(s, u)							\
	{ ROW_ORDERED(s), ROW_NUMBER(s), ROW_BYTES(u) }
#define COMPLEX_ROW(s)							\
	{ ROW_NUMBER(s), ROW_BYTES(s) }

/* NULL: there is no such operation */
static const gsas_op_fn table[GSAS_TYPES][GSAS_OPS] = {
	[GSAS_TYPE_INT8]		= INTEGER_ROW(i8, u8),
	[GSAS_TYPE_UINT8]		= INTEGER_ROW(u8, u8),
	[GSAS_TYPE_INT16]		= INTEGER_ROW(i16, u16),
	[GSAS_TYPE_UINT16]		= INTEGER_ROW(u16, u16),
	[GSAS_TYPE_INT32]		= INTEGER_ROW(i32, u32),
	[GSAS_TYPE_UINT32]		= INTEGER_ROW(u32, u32),
	[GSAS_TYPE_INT64]		= INTEGER_ROW(i64, u64),
	[GSAS_TYPE_UINT64]		= INTEGER_ROW(u64, u64),
	[GSAS_TYPE_FLOAT]		= REAL_ROW(f32, u32),
	[GSAS_TYPE_DOUBLE]		= REAL_ROW(f64, u64),
	[GSAS_TYPE_FLOAT_COMPLEX]	= COMPLEX_ROW(c32),
	[GSAS_TYPE_DOUBLE_COMPLEX]	= COMPLEX_ROW(c64),
	[GSAS_TYPE_LONG_DOUBLE]		= REAL_ROW(ld, ld),
	[GSAS_TYPE_LONG_DOUBLE_COMPLEX]	= COMPLEX_ROW(cld),
	[GSAS_TYPE_INT128]		= INTEGER_ROW(i128, u128),
	[GSAS_TYPE_UINT128]		= INTEGER_ROW(u128, u128),
};

static const struct {
	uint8_t size;
	uint8_t align;			/* for direct execution; 0: never */
} types[GSAS_TYPES] = {
	[GSAS_TYPE_INT8]		= { 1, 1 },
	[GSAS_TYPE_UINT8]		= { 1, 1 },
	[GSAS_TYPE_INT16]		= { 2, 2 },
	[GSAS_TYPE_UINT16]		= { 2, 2 },
	[GSAS_TYPE_INT32]		= { 4, 4 },
	[GSAS_TYPE_UINT32]		= { 4, 4 },
	[GSAS_TYPE_INT64]		= { 8, 8 },
	[GSAS_TYPE_UINT64]		= { 8, 8 },
	[GSAS_TYPE_FLOAT]		= { sizeof(float), 4 },
	[GSAS_TYPE_DOUBLE]		= { sizeof(double), 8 },
	[GSAS_TYPE_FLOAT_COMPLEX]	= { sizeof(float complex), 0 },
	[GSAS_TYPE_DOUBLE_COMPLEX]	= { sizeof(double complex), 0 },
	[GSAS_TYPE_LONG_DOUBLE]		= { sizeof(long double), 0 },
	[GSAS_TYPE_LONG_DOUBLE_COMPLEX]	= { sizeof(long double complex), 0 },
	[GSAS_TYPE_INT128]		= { 16, 16 },
	[GSAS_TYPE_UINT128]		= { 16, 16 },
};

_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "their words");
_Static_assert(sizeof(long double complex) <= GSAS_TYPE_MAX, "the largest");

/* ---- The functions ----------------------------------------------------- */

/* Numbers may come from a packet: an enum may hold any. */
static bool exists(unsigned int op, unsigned int type)
{
	return op < GSAS_OPS && type < GSAS_TYPES && table[type][op] != NULL;
}

size_t gsas_type_size(enum gsas_type type)
{
	unsigned int t = type;

	return t < GSAS_TYPES ? types[t].size : 0;
}

bool gsas_op_valid(enum gsas_op op, enum gsas_type type, enum gsas_form form)
{
	if (!exists(op, type))
		return false;
	switch (form) {
	case GSAS_FORM_UPDATE:
		return op < GSAS_OP_CSWAP && op != GSAS_OP_READ;
	case GSAS_FORM_FETCH:
		return op < GSAS_OP_CSWAP;
	case GSAS_FORM_COMPARE:
		return op >= GSAS_OP_CSWAP;
	}
	return false;
}

bool gsas_op_direct(enum gsas_type type, uint64_t address)
{
	unsigned int t = type;

	if (t >= GSAS_TYPES || types[t].align == 0 ||
	    address % types[t].align != 0)
		return false;
	return types[t].align < 16 || gsas_op_wide() != 0;
}

bool gsas_op_read_stores(enum gsas_type type, uint64_t address)
{
	return gsas_type_size(type) == 16 && gsas_op_direct(type, address) &&
		!(gsas_op_wide() & GSAS_WIDE_LOAD);
}

void gsas_op_apply(enum gsas_op op, enum gsas_type type, size_t count,
		   void *target, const void *operand, const void *compare,
		   void *result)
{
	if (__builtin_expect(exists(op, type), 1))
		table[type][op](count, target, operand, compare, result);
}
