/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_op.c - the table of atomic operations, compared with a second
 * implementation in 128-bit integers, long doubles and pairs of these. Threads
 * are in test_op_race.c.
 */
#include <float.h>
#include <math.h>
#include <rdma/fi_domain.h>

#include "lib/unit.h"
#include "op/gsas_op.h"

typedef unsigned __int128 u128;

#define SAME(name)	_Static_assert((int)GSAS_TYPE_##name == FI_##name, \
				       "number of the type " #name)
SAME(INT8); SAME(UINT8); SAME(INT16); SAME(UINT16); SAME(INT32); SAME(UINT32);
SAME(INT64); SAME(UINT64); SAME(FLOAT); SAME(DOUBLE); SAME(FLOAT_COMPLEX);
SAME(DOUBLE_COMPLEX); SAME(LONG_DOUBLE); SAME(LONG_DOUBLE_COMPLEX);
SAME(INT128); SAME(UINT128);
#undef SAME
#define SAME(name)	_Static_assert((int)GSAS_OP_##name == FI_##name, \
				       "number of the operation " #name)
SAME(MIN); SAME(MAX); SAME(SUM); SAME(PROD); SAME(LOR); SAME(LAND); SAME(BOR);
SAME(BAND); SAME(LXOR); SAME(BXOR); SAME(CSWAP); SAME(CSWAP_NE);
SAME(CSWAP_LE); SAME(CSWAP_LT); SAME(CSWAP_GE); SAME(CSWAP_GT); SAME(MSWAP);
_Static_assert((int)GSAS_OP_READ == FI_ATOMIC_READ, "its number");
_Static_assert((int)GSAS_OP_WRITE == FI_ATOMIC_WRITE, "its number");
_Static_assert(GSAS_OPS == FI_ATOMIC_OP_LAST, "their number");

/* bytes of a long double without padding */
#define LONG_BYTES	(LDBL_MANT_DIG == 64 ? (size_t)10 : sizeof(long double))

enum kind { SIGNED, UNSIGNED, REAL, COMPLEX };

static const struct {
	const char *name;
	enum kind kind;
	size_t size;			/* of one part, if complex */
	unsigned int align;		/* for direct execution; 0: never */
} info[GSAS_TYPES] = {
	{ "INT8", SIGNED, 1, 1 },	{ "UINT8", UNSIGNED, 1, 1 },
	{ "INT16", SIGNED, 2, 2 },	{ "UINT16", UNSIGNED, 2, 2 },
	{ "INT32", SIGNED, 4, 4 },	{ "UINT32", UNSIGNED, 4, 4 },
	{ "INT64", SIGNED, 8, 8 },	{ "UINT64", UNSIGNED, 8, 8 },
	{ "FLOAT", REAL, 4, 4 },	{ "DOUBLE", REAL, 8, 8 },
	{ "FLOAT_COMPLEX", COMPLEX, 4, 0 },
	{ "DOUBLE_COMPLEX", COMPLEX, 8, 0 },
	{ "LONG_DOUBLE", REAL, sizeof(long double), 0 },
	{ "LONG_DOUBLE_COMPLEX", COMPLEX, sizeof(long double), 0 },
	{ "INT128", SIGNED, 16, 16 },	{ "UINT128", UNSIGNED, 16, 16 },
};

static const char * const op_name[GSAS_OPS] = {
	"MIN", "MAX", "SUM", "PROD", "LOR", "LAND", "BOR", "BAND", "LXOR",
	"BXOR", "READ", "WRITE", "CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT",
	"CSWAP_GE", "CSWAP_GT", "MSWAP",
};

static int parts(int type)
{
	return info[type].kind == COMPLEX ? 2 : 1;
}

static size_t size_of(int type)
{
	return info[type].size * parts(type);
}

static bool is_integer(int type)
{
	return info[type].kind <= UNSIGNED;
}

static bool compares(int op)
{
	return op >= GSAS_OP_CSWAP;
}

/* ---- The second implementation ----------------------------------------- */

struct value {
	u128 bits;			/* integers; sign extended */
	long double part[2];		/* real (and imaginary) part */
};

static long double real_get(size_t size, const unsigned char *from)
{
	long double ld;
	double d;
	float f;

	switch (size) {
	case sizeof(float):
		memcpy(&f, from, size);
		return f;
	case sizeof(double):
		memcpy(&d, from, size);
		return d;
	default:
		memcpy(&ld, from, size);
		return ld;
	}
}

static void real_put(size_t size, unsigned char *to, long double value)
{
	double d = (double)value;
	float f = (float)value;

	memcpy(to, size == sizeof(float) ? (void *)&f :
	       size == sizeof(double) ? (void *)&d : &value,
	       size == sizeof(long double) ? LONG_BYTES : size);
}

static struct value value_get(int type, const unsigned char *from)
{
	struct value v = { 0 };
	size_t size = info[type].size;

	if (!is_integer(type)) {
		for (int p = 0; p < parts(type); p++)
			v.part[p] = real_get(size, from + p * size);
		return v;
	}
	if (info[type].kind == SIGNED && from[size - 1] & 0x80)
		v.bits = -(u128)1;
	for (size_t i = size; i-- > 0; )
		v.bits = v.bits << 8 | from[i];
	return v;
}

static void value_put(int type, unsigned char *to, struct value v)
{
	size_t size = info[type].size;

	if (!is_integer(type))
		for (int p = 0; p < parts(type); p++)
			real_put(size, to + p * size, v.part[p]);
	else
		for (size_t i = 0; i < size; i++, v.bits >>= 8)
			to[i] = (unsigned char)v.bits;
}

/* bytes without padding */
static size_t used(int type)
{
	return info[type].size == sizeof(long double) && !is_integer(type) ?
		LONG_BYTES : info[type].size;
}

static bool same_bits(int type, const unsigned char *a, const unsigned char *b)
{
	for (int p = 0; p < parts(type); p++)
		if (memcmp(a + p * info[type].size, b + p * info[type].size,
			   used(type)) != 0)
			return false;
	return true;
}

static bool same_real(long double a, long double b)
{
	return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

/* -1, 0, 1; 2: not comparable */
static int compare_to(int type, struct value a, struct value b)
{
	/* map the order of signed numbers to that of unsigned ones */
	u128 top = info[type].kind == SIGNED ? (u128)1 << 127 : 0;

	if (is_integer(type)) {
		a.bits ^= top;
		b.bits ^= top;
		return a.bits < b.bits ? -1 : a.bits > b.bits;
	}
	if (info[type].kind == COMPLEX)
		return a.part[0] == b.part[0] && a.part[1] == b.part[1] ?
			0 : 2;
	if (isnan(a.part[0]) || isnan(b.part[0]))
		return 2;
	return a.part[0] < b.part[0] ? -1 : a.part[0] > b.part[0];
}

static bool is_true(int type, struct value v)
{
	struct value zero = { 0 };

	return compare_to(type, v, zero) != 0;
}

/* Rounds to the type's precision, after every step. */
static long double rounded(int type, char what, long double a, long double b)
{
	volatile long double ld = what == '+' ? a + b :
				  what == '-' ? a - b : a * b;
	volatile double d, x = (double)a, y = (double)b;
	volatile float f, s = (float)a, t = (float)b;

	switch (info[type].size) {
	case sizeof(float):
		f = what == '+' ? s + t : what == '-' ? s - t : s * t;
		return f;
	case sizeof(double):
		d = what == '+' ? x + y : what == '-' ? x - y : x * y;
		return d;
	default:
		return ld;
	}
}

static struct value product(int type, struct value a, struct value b)
{
	struct value v = { 0 };
	const long double *x = a.part, *y = b.part;

	if (is_integer(type)) {
		for (; b.bits != 0; b.bits >>= 1, a.bits <<= 1)
			v.bits += b.bits & 1 ? a.bits : 0;
	} else if (info[type].kind == REAL) {
		v.part[0] = rounded(type, '*', x[0], y[0]);
	} else {
		v.part[0] = rounded(type, '-', rounded(type, '*', x[0], y[0]),
				    rounded(type, '*', x[1], y[1]));
		v.part[1] = rounded(type, '+', rounded(type, '*', x[0], y[1]),
				    rounded(type, '*', x[1], y[0]));
	}
	return v;
}

static struct value sum(int type, struct value a, struct value b)
{
	struct value v = { .bits = a.bits + b.bits };

	if (!is_integer(type))
		for (int p = 0; p < parts(type); p++)
			v.part[p] = rounded(type, '+', a.part[p], b.part[p]);
	return v;
}

enum outcome { KEEPS, TAKES, BECOMES };	/* old value, operand, a new value */

static enum outcome swapped(int op, int order)
{
	bool swaps = false;

	switch (op) {
	case GSAS_OP_CSWAP:
		swaps = order == 0;
		break;
	case GSAS_OP_CSWAP_NE:
		swaps = order != 0;
		break;
	case GSAS_OP_CSWAP_LE:
		swaps = order == -1 || order == 0;
		break;
	case GSAS_OP_CSWAP_LT:
		swaps = order == -1;
		break;
	case GSAS_OP_CSWAP_GE:
		swaps = order == 1 || order == 0;
		break;
	case GSAS_OP_CSWAP_GT:
		swaps = order == 1;
		break;
	}
	return swaps ? TAKES : KEEPS;
}

/* truth: how many of the two operands are not 0 */
static struct value logical(int type, int op, int truth)
{
	bool yes = op == GSAS_OP_LOR ? truth > 0 :
		   op == GSAS_OP_LAND ? truth == 2 : truth == 1;
	struct value v = { 0 };

	if (is_integer(type))
		v.bits = yes;
	else
		v.part[0] = yes;
	return v;
}

static enum outcome expected(int op, int type, struct value old,
			     struct value arg, struct value cmp,
			     struct value *v)
{
	switch (op) {
	case GSAS_OP_READ:
		return KEEPS;
	case GSAS_OP_WRITE:
		return TAKES;
	case GSAS_OP_MIN:
		return compare_to(type, arg, old) == -1 ? TAKES : KEEPS;
	case GSAS_OP_MAX:
		return compare_to(type, arg, old) == 1 ? TAKES : KEEPS;
	case GSAS_OP_SUM:
		*v = sum(type, old, arg);
		return BECOMES;
	case GSAS_OP_PROD:
		*v = product(type, old, arg);
		return BECOMES;
	case GSAS_OP_BOR:
		v->bits = ~(~old.bits & ~arg.bits);
		return BECOMES;
	case GSAS_OP_BAND:
		v->bits = ~(~old.bits | ~arg.bits);
		return BECOMES;
	case GSAS_OP_BXOR:
		v->bits = (old.bits | arg.bits) - (old.bits & arg.bits);
		return BECOMES;
	case GSAS_OP_MSWAP:
		v->bits = old.bits ^ ((old.bits ^ arg.bits) & cmp.bits);
		return BECOMES;
	case GSAS_OP_LOR:
	case GSAS_OP_LAND:
	case GSAS_OP_LXOR:
		*v = logical(type, op,
			     is_true(type, old) + is_true(type, arg));
		return BECOMES;
	default:
		return swapped(op, compare_to(type, cmp, old));
	}
}

/*
 * Complex products: where the plain formula gives NaN for both parts, the
 * compiler's may give an infinite result. Both are accepted.
 */
static bool fits(int op, int type, struct value want, const unsigned char *is)
{
	struct value v = value_get(type, is);

	if (is_integer(type)) {
		unsigned char bytes[16];

		value_put(type, bytes, want);
		return memcmp(bytes, is, info[type].size) == 0;
	}
	if (op == GSAS_OP_PROD && info[type].kind == COMPLEX &&
	    isnan(want.part[0]) && isnan(want.part[1]))
		return !isfinite(v.part[0]) || !isfinite(v.part[1]);
	return same_real(want.part[0], v.part[0]) &&
		same_real(want.part[1], v.part[1]);
}

/* ---- Values ------------------------------------------------------------ */

#define NVALUES	16

static long double real_nth(size_t size, int nth, uint64_t *rng)
{
	long double max = size == 4 ? FLT_MAX : size == 8 ? DBL_MAX : LDBL_MAX;
	long double min = size == 4 ? FLT_MIN : size == 8 ? DBL_MIN : LDBL_MIN;
	long double eps = size == 4 ? FLT_EPSILON :
			  size == 8 ? DBL_EPSILON : LDBL_EPSILON;
	long double list[] = {
		0.0L, -0.0L, 1.0L, -1.0L, INFINITY, -INFINITY, NAN, max, -max,
		min, -min, eps, min * eps, 3.0L,
	};

	if ((size_t)nth < sizeof(list) / sizeof(list[0]))
		return list[nth];
	return ((long double)unit_random(rng) - 0x1p63L) / 0x1p40L;
}

static u128 integer_nth(size_t size, int nth, uint64_t *rng)
{
	u128 one = 1, high = one << (8 * size - 1);
	u128 list[] = {
		0, 1, 2, 3, -one, -one - 1, high, high - 1, high + 1, high - 2,
		high >> 1, one << (4 * size), (one << (4 * size)) - 1,
	};

	if ((size_t)nth < sizeof(list) / sizeof(list[0]))
		return list[nth];
	return (u128)unit_random(rng) << 64 | unit_random(rng);
}

static void value_nth(int type, int nth, uint64_t *rng, unsigned char *to)
{
	struct value v = { 0 };

	/* padding with a known value */
	memset(to, 0xEE, size_of(type));
	if (is_integer(type)) {
		v.bits = integer_nth(info[type].size, nth, rng);
	} else {
		v.part[0] = real_nth(info[type].size, nth, rng);
		v.part[1] = real_nth(info[type].size,
				     unit_below(rng, NVALUES), rng);
	}
	value_put(type, to, v);
}

/* ---- One operation on an array ----------------------------------------- */

#define PAIRS	(NVALUES * NVALUES)
#define ROOM	(PAIRS * GSAS_TYPE_MAX + 128)
#define GUARD	0xA5

/* Offsets from an aligned address. Result -1: none; -2: in the operand. */
struct shape {
	int count, target, operand, compare, result;
};

static _Alignas(64) unsigned char target[ROOM], operand[ROOM], compare[ROOM];
static _Alignas(64) unsigned char result[ROOM], before[ROOM], argued[ROOM];

/* all pairs of operand (or compare value) and target */
static void fill(int op, int type, const struct shape *s)
{
	size_t size = size_of(type);
	uint64_t rng = op * 100 + type;

	memset(target, GUARD, ROOM);
	memset(operand, GUARD, ROOM);
	memset(compare, GUARD, ROOM);
	memset(result, GUARD, ROOM);
	for (int i = 0; i < s->count; i++) {
		int a = i % NVALUES, b = i / NVALUES, c = i % 7 + 1;

		if (s->count < PAIRS) {
			a = unit_below(&rng, NVALUES);
			b = unit_below(&rng, NVALUES);
		}
		value_nth(type, a, &rng, target + s->target + i * size);
		value_nth(type, compares(op) ? c : b, &rng,
			  operand + s->operand + i * size);
		value_nth(type, b, &rng, compare + s->compare + i * size);
		/* equal, in both parts */
		if (compares(op) && a == b)
			memcpy(compare + s->compare + i * size,
			       target + s->target + i * size, size);
	}
	memcpy(before, target, ROOM);
	memcpy(argued, operand, ROOM);
}

static void check_guards(const unsigned char *mem, size_t from, size_t len,
			 const char *which, int op, int type)
{
	for (size_t i = 0; i < ROOM; i++)
		if ((i < from || i >= from + len) && mem[i] != GUARD)
			unit_fail("%s %s: byte %zd of %s, of %zu, is %#x",
				  op_name[op], info[type].name,
				  (ssize_t)(i - from), which, len, mem[i]);
}

/* The padding of a long double changes only where bytes are written. */
static bool same_padding(int op, int type, const unsigned char *is,
			 const unsigned char *was)
{
	size_t size = info[type].size, n = used(type);

	for (int p = 0; p < parts(type) && op != GSAS_OP_WRITE; p++)
		if (memcmp(is + p * size + n, was + p * size + n, size - n))
			return false;
	return true;
}

static void check_element(int op, int type, const struct shape *s, int i)
{
	size_t size = size_of(type);
	const unsigned char *is = target + s->target + i * size;
	const unsigned char *was = before + s->target + i * size;
	const unsigned char *arg = argued + s->operand + i * size;
	const unsigned char *cmp = compare + s->compare + i * size;
	const unsigned char *got = s->result == -2 ?
		operand + s->operand + i * size :
		s->result == -1 ? was : result + s->result + i * size;
	struct value want = { 0 };
	bool good = false;

	switch (expected(op, type, value_get(type, was), value_get(type, arg),
			 value_get(type, cmp), &want)) {
	case KEEPS:
		good = memcmp(is, was, size) == 0;
		break;
	case TAKES:
		good = same_bits(type, is, arg);
		break;
	case BECOMES:
		good = fits(op, type, want, is);
		break;
	}
	if (!good || !same_padding(op, type, is, was))
		unit_fail("%s %s: element %d of %d, target +%d, is wrong",
			  op_name[op], info[type].name, i, s->count,
			  s->target);
	if (!same_bits(type, got, was))
		unit_fail("%s %s: result %d of %d is not what was there",
			  op_name[op], info[type].name, i, s->count);
}

static void check_shape(int op, int type, const struct shape *s)
{
	size_t len = s->count * size_of(type);
	void *out = s->result >= 0 ? result + s->result :
		    s->result == -2 ? operand + s->operand : NULL;

	fill(op, type, s);
	gsas_op_apply(op, type, s->count, target + s->target,
		      op == GSAS_OP_READ && s->result != -2 ? NULL :
		      operand + s->operand,
		      compares(op) ? compare + s->compare : NULL, out);
	for (int i = 0; i < s->count; i++)
		check_element(op, type, s, i);
	check_guards(target, s->target, len, "target", op, type);
	check_guards(result, s->result >= 0 ? s->result : 0,
		     s->result >= 0 ? len : 0, "result", op, type);
	if (s->result != -2)
		assert_memory_equal(operand, argued, ROOM);
}

static void for_all(const struct shape *shapes, size_t n)
{
	for (int op = 0; op < GSAS_OPS; op++)
		for (int type = 0; type < GSAS_TYPES; type++) {
			if (!gsas_op_valid(op, type, GSAS_FORM_FETCH) &&
			    !gsas_op_valid(op, type, GSAS_FORM_COMPARE))
				continue;
			for (size_t i = 0; i < n; i++)
				check_shape(op, type, &shapes[i]);
		}
}

#define FOR_ALL(shapes)	for_all(shapes, sizeof(shapes) / sizeof((shapes)[0]))

/* ---- Tests: values ----------------------------------------------------- */

static void test_all_pairs_direct(void **state)
{
	static const struct shape shapes[] = {
		{ PAIRS, 0, 0, 0, -1 },
		{ PAIRS, 64, 64, 64, 64 },
		{ PAIRS, 32, 0, 0, -2 },
	};

	FOR_ALL(shapes);
}

/* operands in packets are misaligned; so are the owner's targets */
static void test_all_pairs_misaligned(void **state)
{
	static const struct shape shapes[] = {
		{ PAIRS, 64, 1, 3, 5 },
		{ PAIRS, 1, 64, 64, 64 },
		{ PAIRS, 63, 2, 7, 9 },
		{ PAIRS, 4, 4, 4, -1 },
		{ PAIRS, 7, 1, 1, -2 },
	};

	FOR_ALL(shapes);
}

static void test_every_count_and_place(void **state)
{
	static const int places[] = { 0, 1, 2, 3, 4, 6, 8, 12, 15, 40, 57, 63 };
	static const int counts[] = { 0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31 };

	for (size_t c = 0; c < sizeof(counts) / sizeof(int); c++)
		for (size_t i = 0; i < sizeof(places) / sizeof(int); i++) {
			struct shape shapes[] = {
				{ counts[c], places[i], 0, 0, 0 },
				{ counts[c], places[i], 3, 5, -1 },
			};

			FOR_ALL(shapes);
		}
}

/* "-0.0 is 0.0, NaN is nothing, not even itself", as the man page compares */
static void test_floats_compare_by_value(void **state)
{
	double x = -0.0, zero = 0.0, one = 1.0, old = 7.0, nan = NAN;

	gsas_op_apply(GSAS_OP_CSWAP, GSAS_TYPE_DOUBLE, 1, &x, &one, &zero,
		      &old);
	assert_true(x == 1.0 && old == 0.0 && signbit(old));
	x = NAN;
	gsas_op_apply(GSAS_OP_CSWAP, GSAS_TYPE_DOUBLE, 1, &x, &one, &nan, NULL);
	assert_true(isnan(x));
	gsas_op_apply(GSAS_OP_CSWAP_NE, GSAS_TYPE_DOUBLE, 1, &x, &one, &nan,
		      NULL);
	assert_true(x == 1.0);
	/* MIN with NaN: the target stays */
	gsas_op_apply(GSAS_OP_MIN, GSAS_TYPE_DOUBLE, 1, &x, &nan, NULL, NULL);
	assert_true(x == 1.0);
	gsas_op_apply(GSAS_OP_LAND, GSAS_TYPE_DOUBLE, 1, &x, &nan, NULL, NULL);
	assert_true(x == 1.0);
}

/* compare[i] <= addr[i], not the other way round */
static void test_swap_if_compare_is_less(void **state)
{
	int64_t x = 5, arg = 9, cmp = 4, old = 0;

	gsas_op_apply(GSAS_OP_CSWAP_LE, GSAS_TYPE_INT64, 1, &x, &arg, &cmp,
		      &old);
	assert_true(x == 9 && old == 5);
	gsas_op_apply(GSAS_OP_CSWAP_GE, GSAS_TYPE_INT64, 1, &x, &arg, &cmp,
		      &old);
	assert_true(x == 9 && old == 9);
}

/* Bits that no arithmetic yields are kept: a signalling NaN. */
static void test_bits_are_not_numbers(void **state)
{
	uint64_t x = 0, nan = UINT64_C(0x7FF4000000000001), old = 0;

	gsas_op_apply(GSAS_OP_WRITE, GSAS_TYPE_DOUBLE, 1, &x, &nan, NULL, NULL);
	assert_true(x == nan);
	gsas_op_apply(GSAS_OP_READ, GSAS_TYPE_DOUBLE, 1, &x, NULL, NULL, &old);
	assert_true(old == nan);
}

/* READ of memory that is mapped read-only */
static void test_read_stores_nothing(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *mem = mmap(NULL, page, PROT_READ,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char old[GSAS_TYPE_MAX], none[GSAS_TYPE_MAX] = { 0 };

	assert_true(mem != MAP_FAILED);
	for (int type = 0; type < GSAS_TYPES; type++)
		for (int place = 0; place < 2; place++) {
			if (gsas_op_read_stores(type, (uintptr_t)mem + place))
				continue;
			memset(old, GUARD, sizeof(old));
			gsas_op_apply(GSAS_OP_READ, type, 1, mem + place, NULL,
				      NULL, old);
			assert_memory_equal(old, none, size_of(type));
		}
	munmap(mem, page);
}

/* ---- Tests: which operations exist ------------------------------------- */

/* fi_atomic(3): the lists of the three families */
static const char in_man[GSAS_OPS][4] = {
	[FI_MIN] = "uf", [FI_MAX] = "uf", [FI_SUM] = "uf", [FI_PROD] = "uf",
	[FI_LOR] = "uf", [FI_LAND] = "uf", [FI_BOR] = "uf", [FI_BAND] = "uf",
	[FI_LXOR] = "uf", [FI_BXOR] = "uf", [FI_ATOMIC_WRITE] = "uf",
	[FI_ATOMIC_READ] = "f", [FI_CSWAP] = "c", [FI_CSWAP_NE] = "c",
	[FI_CSWAP_LE] = "c", [FI_CSWAP_LT] = "c", [FI_CSWAP_GE] = "c",
	[FI_CSWAP_GT] = "c", [FI_MSWAP] = "c",
};

/* not defined: an order of complex numbers, bits of real numbers */
static const char * const senseless[GSAS_OPS] = {
	[FI_MIN] = "C", [FI_MAX] = "C", [FI_BOR] = "RC", [FI_BAND] = "RC",
	[FI_BXOR] = "RC", [FI_CSWAP_LE] = "C", [FI_CSWAP_LT] = "C",
	[FI_CSWAP_GE] = "C", [FI_CSWAP_GT] = "C", [FI_MSWAP] = "RC",
};

static void test_valid_is_what_the_man_page_says(void **state)
{
	int valid = 0;

	for (int op = 0; op < GSAS_OPS; op++)
		for (int type = 0; type < GSAS_TYPES; type++)
			for (int form = 0; form < 3; form++) {
				bool want = strchr(in_man[op], "ufc"[form]) &&
					!(senseless[op] &&
					  strchr(senseless[op],
						 "SURC"[info[type].kind]));

				if (want != gsas_op_valid(op, type, form))
					unit_fail("%s %s form %d: want %d",
						  op_name[op], info[type].name,
						  form, want);
				valid += want;
			}
	/* integers: 11 + 12 + 7; reals: 8 + 9 + 6; complex: 6 + 7 + 2 */
	assert_int_equal(valid, 10 * 30 + 3 * 23 + 3 * 15);
}

/* MPICH sends all operations on a type as active messages if one of these is
 * missing. */
static void test_valid_is_what_mpich_needs(void **state)
{
	static const int all[] = {
		FI_SUM, FI_PROD, FI_LOR, FI_LAND, FI_LXOR, FI_ATOMIC_WRITE,
	};
	static const int integer[] = {
		FI_MIN, FI_MAX, FI_BOR, FI_BAND, FI_BXOR,
	};

	for (int type = 0; type <= FI_LONG_DOUBLE; type++) {
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			assert_true(gsas_op_valid(all[i], type, 0) &&
				    gsas_op_valid(all[i], type, 1));
		for (size_t i = 0; i < 5 && is_integer(type); i++)
			assert_true(gsas_op_valid(integer[i], type, 0) &&
				    gsas_op_valid(integer[i], type, 1));
		for (size_t i = 0; i < 2 && info[type].kind == REAL; i++)
			assert_true(gsas_op_valid(integer[i], type, 0) &&
				    gsas_op_valid(integer[i], type, 1));
		assert_true(gsas_op_valid(GSAS_OP_READ, type,
					  GSAS_FORM_FETCH));
		assert_true(gsas_op_valid(GSAS_OP_CSWAP, type,
					  GSAS_FORM_COMPARE));
	}
}

static void test_other_numbers_are_nothing(void **state)
{
	static const int64_t wrong[] = {
		-1, GSAS_OPS, 255, FI_NOOP, FI_VOID, INT32_MAX, INT32_MIN,
	};
	uint64_t x = 7, one = 1;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int bad = (int)wrong[i];

		assert_int_equal(gsas_type_size(bad), 0);
		assert_false(gsas_op_direct(bad, 0));
		assert_false(gsas_op_valid(bad, GSAS_TYPE_INT64, 0));
		assert_false(gsas_op_valid(GSAS_OP_SUM, bad, 0));
		assert_false(gsas_op_valid(GSAS_OP_SUM, GSAS_TYPE_INT64,
					   bad));
		gsas_op_apply(bad, GSAS_TYPE_INT64, 1, &x, &one, &one, &one);
		gsas_op_apply(GSAS_OP_SUM, bad, 1, &x, &one, &one, &one);
	}
	gsas_op_apply(GSAS_OP_BOR, GSAS_TYPE_DOUBLE, 1, &x, &one, &one, &one);
	assert_int_equal(gsas_type_size(GSAS_TYPES), 0);
	assert_true(x == 7 && one == 1);
}

/* ---- Tests: direct execution ------------------------------------------- */

#if defined(__x86_64__)
/* as the system describes the processor */
static bool has_wide(void)
{
	char line[8192];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "r");

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, " cx16 ") != NULL;
	fclose(f);
	return found;
}
#else
static bool has_wide(void)
{
	return true;			/* all have LDXP and STXP */
}
#endif

static void test_direct_is_aligned_and_small(void **state)
{
	for (int type = 0; type < GSAS_TYPES; type++) {
		assert_int_equal(gsas_type_size(type), size_of(type));
		for (uint64_t at = 0; at < 64; at++) {
			unsigned int align = info[type].align;
			bool want = align != 0 && at % align == 0 &&
				(align < 16 || has_wide());

			assert_int_equal(gsas_op_direct(type, at), want);
			assert_int_equal(gsas_op_direct(type, at - 64), want);
		}
	}
}

UNIT_MAIN(
	cmocka_unit_test(test_all_pairs_direct),
	cmocka_unit_test(test_all_pairs_misaligned),
	cmocka_unit_test(test_every_count_and_place),
	cmocka_unit_test(test_floats_compare_by_value),
	cmocka_unit_test(test_swap_if_compare_is_less),
	cmocka_unit_test(test_bits_are_not_numbers),
	cmocka_unit_test(test_read_stores_nothing),
	cmocka_unit_test(test_valid_is_what_the_man_page_says),
	cmocka_unit_test(test_valid_is_what_mpich_needs),
	cmocka_unit_test(test_other_numbers_are_nothing),
	cmocka_unit_test(test_direct_is_aligned_and_small),
)
