/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_op_race.c - operations of several threads on the same element: none is
 * lost, none reads half of another, none is reordered with another.
 *
 * UNM_TEST_OPS: operations of each thread in each test (20,000; under a
 * sanitizer 2,000).
 */
#include <complex.h>
#include <inttypes.h>

#include "lib/unit.h"
#include "op/gsas_op.h"

#define THREADS	4

/* aligned; misaligned; across two lines (elements of more than 3 bytes) */
static const int places[] = { 0, 1, 61 };
#define PLACES	(sizeof(places) / sizeof(places[0]))

static _Alignas(64) unsigned char shared[256];

static uint64_t operations(void)
{
	return unit_number("UNM_TEST_OPS", UNIT_SLOW ? 2000 : 20000);
}

/* ---- Numbers as elements ----------------------------------------------- */

static bool is_integer(int type)
{
	return type < GSAS_TYPE_FLOAT || type >= GSAS_TYPE_INT128;
}

/* n, as far as it fits; complex: both parts */
static void number_put(int type, unsigned char *to, uint64_t n)
{
	union {
		unsigned __int128 i;
		float f;
		double d;
		float complex fc;
		double complex dc;
		long double ld;
		long double complex ldc;
	} u;

	memset(&u, 0, sizeof(u));
	switch (type) {
	case GSAS_TYPE_FLOAT:
		u.f = (float)n;
		break;
	case GSAS_TYPE_DOUBLE:
		u.d = (double)n;
		break;
	case GSAS_TYPE_FLOAT_COMPLEX:
		u.fc = (float)n + (float)n * I;
		break;
	case GSAS_TYPE_DOUBLE_COMPLEX:
		u.dc = (double)n + (double)n * I;
		break;
	case GSAS_TYPE_LONG_DOUBLE:
		u.ld = n;
		break;
	case GSAS_TYPE_LONG_DOUBLE_COMPLEX:
		u.ldc = n + (long double)n * I;
		break;
	default:
		u.i = (unsigned __int128)n << 64 | n;
		if (type < GSAS_TYPE_INT128)
			u.i = n;
	}
	memcpy(to, &u, gsas_type_size(type));
}

/* returns UINT64_MAX if the parts are not of the same number */
static uint64_t number_get(int type, const unsigned char *from)
{
	unsigned __int128 i = 0;
	long double complex ldc;
	long double ld;
	double complex dc;
	float complex fc;
	double d;
	float f;

	switch (type) {
	case GSAS_TYPE_FLOAT:
		memcpy(&f, from, sizeof(f));
		return (uint64_t)f;
	case GSAS_TYPE_DOUBLE:
		memcpy(&d, from, sizeof(d));
		return (uint64_t)d;
	case GSAS_TYPE_FLOAT_COMPLEX:
		memcpy(&fc, from, sizeof(fc));
		return crealf(fc) == cimagf(fc) ? crealf(fc) : UINT64_MAX;
	case GSAS_TYPE_DOUBLE_COMPLEX:
		memcpy(&dc, from, sizeof(dc));
		return creal(dc) == cimag(dc) ? creal(dc) : UINT64_MAX;
	case GSAS_TYPE_LONG_DOUBLE:
		memcpy(&ld, from, sizeof(ld));
		return (uint64_t)ld;
	case GSAS_TYPE_LONG_DOUBLE_COMPLEX:
		memcpy(&ldc, from, sizeof(ldc));
		return creall(ldc) == cimagl(ldc) ? creall(ldc) : UINT64_MAX;
	default:
		memcpy(&i, from, gsas_type_size(type));
		if (type >= GSAS_TYPE_INT128 && i >> 64 != (uint64_t)i)
			return UINT64_MAX;
		return (uint64_t)i;
	}
}

/* n as an element of that type holds it: small types wrap */
static uint64_t number_as(int type, uint64_t n)
{
	size_t size = gsas_type_size(type);

	return is_integer(type) && size < 8 ?
		n & ((UINT64_C(1) << 8 * size) - 1) : n;
}

/* ---- Threads ----------------------------------------------------------- */

struct worker {
	pthread_t thread;
	void (*work)(struct worker *w);
	int me;
	int type;
	unsigned char *target;
	uint64_t n;
	uint64_t sum;			/* of the values returned */
	unsigned char own[256];		/* result of its operations alone */
	uint64_t did[64];		/* additions to each element */
	uint64_t *seen;
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	w->work(w);
	return NULL;
}

static void work_all(struct worker *w, int n, void (*work)(struct worker *w),
		     int type, unsigned char *target)
{
	for (int i = 0; i < n; i++) {
		w[i].work = work;
		w[i].me = i;
		w[i].type = type;
		w[i].target = target;
		w[i].n = operations();
		w[i].thread = unit_thread(worker_main, &w[i]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

/* Each type at each place: the element must end at n, and if sums is set, no
 * value may be returned twice. */
static void for_all(void (*work)(struct worker *w), bool sums)
{
	for (int type = 0; type < GSAS_TYPES; type++)
		for (size_t p = 0; p < PLACES; p++) {
			struct worker w[THREADS] = { 0 };
			unsigned char *target = shared + places[p];
			uint64_t n = THREADS * operations();
			uint64_t want = 0, is = 0;

			memset(shared, 0, sizeof(shared));
			work_all(w, THREADS, work, type, target);
			if (number_get(type, target) != number_as(type, n))
				unit_fail("type %d at +%d: %" PRIu64
					  ", want %" PRIu64, type, places[p],
					  number_get(type, target),
					  number_as(type, n));
			for (uint64_t i = 0; i < n && sums; i++)
				want += number_as(type, i);
			for (int t = 0; t < THREADS; t++)
				is += w[t].sum;
			if (sums && is != want)
				unit_fail("type %d at +%d: one was seen twice",
					  type, places[p]);
		}
}

/* ---- Tests: no operation is lost --------------------------------------- */

static void add(struct worker *w)
{
	unsigned char one[GSAS_TYPE_MAX], old[GSAS_TYPE_MAX];

	number_put(w->type, one, 1);
	for (uint64_t i = 0; i < w->n; i++) {
		gsas_op_apply(GSAS_OP_SUM, w->type, 1, w->target, one, NULL,
			      old);
		w->sum += number_get(w->type, old);
	}
}

static void test_sums_are_exact(void **state)
{
	for_all(add, true);
}

/* without a result other instructions are used */
static void add_blind(struct worker *w)
{
	unsigned char one[GSAS_TYPE_MAX];

	number_put(w->type, one, 1);
	for (uint64_t i = 0; i < w->n; i++)
		gsas_op_apply(GSAS_OP_SUM, w->type, 1, w->target, one, NULL,
			      NULL);
}

static void test_blind_sums_are_exact(void **state)
{
	for_all(add_blind, false);
}

/* by READ and CSWAP, as programs do for operations that do not exist */
static void increment(struct worker *w)
{
	unsigned char want[GSAS_TYPE_MAX], old[GSAS_TYPE_MAX];
	unsigned char seen[GSAS_TYPE_MAX];

	for (uint64_t i = 0; i < w->n; i++) {
		gsas_op_apply(GSAS_OP_READ, w->type, 1, w->target, NULL, NULL,
			      old);
		do {
			memcpy(seen, old, sizeof(seen));
			number_put(w->type, want,
				   number_as(w->type,
					     number_get(w->type, seen) + 1));
			gsas_op_apply(GSAS_OP_CSWAP, w->type, 1, w->target,
				      want, seen, old);
		} while (number_get(w->type, old) !=
			 number_get(w->type, seen));
		w->sum += number_get(w->type, seen);
	}
}

static void test_swaps_are_exact(void **state)
{
	for_all(increment, true);
}

/* WRITE and READ: every value read was written by a thread, as a whole */
static void overwrite(struct worker *w)
{
	unsigned char value[GSAS_TYPE_MAX];

	number_put(w->type, value, w->me + 1);
	for (uint64_t i = 0; i < w->n; i++) {
		gsas_op_apply(GSAS_OP_WRITE, w->type, 1, w->target, value,
			      NULL, NULL);
		gsas_op_apply(GSAS_OP_READ, w->type, 1, w->target, NULL, NULL,
			      w->own);
		w->sum += number_get(w->type, w->own) - 1 >= THREADS;
	}
}

static void test_nothing_is_seen_in_halves(void **state)
{
	for (int type = 0; type < GSAS_TYPES; type++)
		for (size_t p = 0; p < PLACES; p++) {
			struct worker w[THREADS] = { 0 };

			work_all(w, THREADS, overwrite, type,
				 shared + places[p]);
			for (int t = 0; t < THREADS; t++)
				if (w[t].sum != 0)
					unit_fail("type %d at +%d", type,
						  places[p]);
		}
}

/* ---- Tests: arrays ------------------------------------------------------- */

#define ELEMENTS	40

static void add_arrays(struct worker *w)
{
	size_t size = gsas_type_size(w->type), n, at;
	unsigned char ones[ELEMENTS * GSAS_TYPE_MAX];
	unsigned char old[ELEMENTS * GSAS_TYPE_MAX];
	uint64_t rng = w->me + 1;

	for (size_t i = 0; i < ELEMENTS; i++)
		number_put(w->type, ones + i * size, 1);
	for (uint64_t i = 0; i < w->n; i++) {
		at = unit_below(&rng, ELEMENTS);
		n = 1 + unit_below(&rng, ELEMENTS - at);
		if (i % 3 == 0)
			n = 1;
		gsas_op_apply(GSAS_OP_SUM, w->type, n, w->target + at * size,
			      ones, NULL, i % 2 ? old : NULL);
		while (n-- > 0)
			w->did[at + n]++;
	}
}

/* Several small elements are updated at once: no addition is lost, whichever
 * elements of a word other threads update. */
static void test_arrays_are_exact(void **state)
{
	static _Alignas(64) unsigned char room[ELEMENTS * GSAS_TYPE_MAX + 64];

	for (int type = 0; type < GSAS_TYPES; type++) {
		struct worker w[THREADS] = { 0 };
		size_t size = gsas_type_size(type);

		memset(room, 0, sizeof(room));
		work_all(w, THREADS, add_arrays, type, room + size);
		for (int i = 0; i < ELEMENTS; i++) {
			uint64_t n = 0;

			for (int t = 0; t < THREADS; t++)
				n += w[t].did[i];
			assert_int_equal(number_get(type, room + size +
						    i * size),
					 number_as(type, n));
		}
	}
}

/* ---- Tests: overlapping elements --------------------------------------- */

/* Misaligned elements: each byte ends as the exclusive or of all operands,
 * which does not depend on the order. Elements lie in the first line, in the
 * second, or in both. All pairs of lines are used, so all pairs of locks, which
 * ThreadSanitizer watches. */
static void scatter(struct worker *w)
{
	static const int around[THREADS][2] = {
		{ GSAS_TYPE_UINT64, 57 }, { GSAS_TYPE_INT64, 60 },
		{ GSAS_TYPE_UINT128, 51 }, { GSAS_TYPE_UINT32, 65 },
	};
	int type = around[w->me][0], at = around[w->me][1];
	uint64_t rng = w->me + 1, arg[2];

	for (uint64_t i = 0; i < w->n / 8 + 1; i++) {
		arg[0] = unit_random(&rng);
		arg[1] = unit_random(&rng);
		gsas_op_apply(GSAS_OP_BXOR, type, 1, w->target + at, arg,
			      NULL, NULL);
		for (size_t b = 0; b < gsas_type_size(type); b++)
			w->own[at + b] ^= ((unsigned char *)arg)[b];
	}
}

static void test_overlapping_ones_exclude_each_other(void **state)
{
	static _Alignas(64) unsigned char lines[34 * 64];

	for (int line = 0; line < 32; line++) {
		struct worker w[THREADS] = { 0 };
		unsigned char *at = lines + line * 64;

		memset(lines, 0, sizeof(lines));
		work_all(w, THREADS, scatter, 0, at);
		for (size_t b = 0; b < 128; b++)
			assert_int_equal(at[b], w[0].own[b] ^ w[1].own[b] ^
					 w[2].own[b] ^ w[3].own[b]);
	}
}

/* ---- Tests: order ------------------------------------------------------ */

static _Atomic uint64_t arrived[2];

/* Both threads begin round i. The second one goes on at once and the first one
 * a little later, so a random delay makes up for that. */
static void meet(int me, uint64_t i, uint64_t *rng)
{
	volatile uint32_t wait = unit_below(rng, 100);

	atomic_store(&arrived[me], i);
	for (int spins = 0; atomic_load(&arrived[!me]) < i; spins++)
		if (spins > 200)
			sched_yield();
	while (wait > 0)
		wait--;
}

/*
 * Each thread writes its words, then reads the other's: the second one must see
 * the words of the first. Several words, because a read is more likely to pass
 * writes if many are under way.
 */
#define WORDS	16

static void write_then_read(struct worker *w)
{
	unsigned char *mine = w->target + WORDS * 64 * w->me;
	unsigned char *yours = w->target + WORDS * 64 * !w->me;
	unsigned char value[GSAS_TYPE_MAX], got[WORDS][GSAS_TYPE_MAX];
	uint64_t rng = w->me;

	for (uint64_t i = 1; i <= w->n; i++) {
		number_put(w->type, value, i);
		meet(w->me, i, &rng);
		for (int k = 0; k < WORDS; k++) {
			gsas_op_apply(GSAS_OP_WRITE, w->type, 1, mine + k * 64,
				      value, NULL, NULL);
			gsas_op_apply(GSAS_OP_READ, w->type, 1, yours + k * 64,
				      NULL, NULL, got[k]);
		}
		for (int k = 0; k < WORDS; k++)
			w->seen[i * WORDS + k] = number_get(w->type, got[k]);
	}
}

static void check_order(const struct worker *w, uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++)
		for (uint64_t k = i * WORDS; k < (i + 1) * WORDS; k++)
			if (w[0].seen[k] < i && w[1].seen[k] < i)
				unit_fail("type %d, round %" PRIu64
					  ": both read before the write",
					  w->type, i);
}

static void test_no_read_passes_a_write(void **state)
{
	static const int types[] = {
		GSAS_TYPE_UINT32, GSAS_TYPE_DOUBLE, GSAS_TYPE_UINT128,
		GSAS_TYPE_DOUBLE_COMPLEX,
	};
	static _Alignas(64) unsigned char words[2 * WORDS * 64];
	uint64_t n = operations();

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		struct worker w[2] = { 0 };

		for (int i = 0; i < 2; i++) {
			w[i].seen = calloc((n + 1) * WORDS, sizeof(uint64_t));
			assert_non_null(w[i].seen);
			atomic_store(&arrived[i], 0);
		}
		memset(words, 0, sizeof(words));
		work_all(w, 2, write_then_read, types[t], words);
		check_order(w, n);
		free(w[0].seen);
		free(w[1].seen);
	}
}

/*
 * A WRITE of the value that is there already is a release like any other: a
 * thread that takes the flags afterwards sees the stores before the WRITE, and
 * after a thread that took them before it, the WRITE sets them again. With
 * several elements in a word, and with one.
 */
static _Alignas(64) _Atomic uint64_t raised;	/* flags: two elements */
static _Alignas(64) _Atomic uint64_t given;
static _Alignas(64) _Atomic uint64_t taken;
/* lower() reads the last one; the stores before it delay its store */
static _Alignas(64) _Atomic uint64_t before[32][8];

static void raise_again(struct worker *w)
{
	static const uint32_t ones[2] = { 1, 1 };

	for (uint64_t i = 1; i <= w->n; i++) {
		while (atomic_load(&given) != i)
			;
		for (int k = 0; k < 32; k++)
			atomic_store_explicit(before[k], i,
					      memory_order_relaxed);
		gsas_op_apply(GSAS_OP_WRITE, GSAS_TYPE_UINT32, 1 + i % 2,
			      (void *)&raised, ones, NULL, NULL);
		atomic_store(&taken, i);
	}
}

static void lower(struct worker *w)
{
	uint64_t rng = 1, was, seen;

	for (uint64_t i = 1; i <= w->n; i++) {
		volatile uint32_t wait = unit_below(&rng, 1000);

		for (int k = 0; k < 32; k++)
			atomic_store_explicit(before[k], 0,
					      memory_order_relaxed);
		atomic_store(&raised, i % 2 ? UINT64_C(0x100000001) : 1);
		atomic_store(&given, i);
		while (wait > 0)
			wait--;
		was = atomic_exchange(&raised, 0);
		seen = atomic_load_explicit(before[31], memory_order_relaxed);
		while (atomic_load(&taken) != i)
			sched_yield();
		w->sum += atomic_load(&raised) == 0 && was != 0 && seen != i;
	}
}

static void raise_or_lower(struct worker *w)
{
	w->n *= UNIT_SLOW ? 1 : 5;
	if (w->me == 0)
		raise_again(w);
	else
		lower(w);
}

static void test_write_of_the_same_value_releases(void **state)
{
	struct worker w[2] = { 0 };

	atomic_store(&given, 0);
	atomic_store(&taken, 0);
	work_all(w, 2, raise_or_lower, 0, NULL);
	if (w[1].sum != 0)
		unit_fail("%" PRIu64 " stores before a WRITE were not seen",
			  w[1].sum);
}

/* Data written before an operation are visible after an operation that saw its
 * result: plain data, passed between two threads by each type (for
 * ThreadSanitizer, and on any processor). */
static uint64_t published;

static void publish(struct worker *w)
{
	unsigned char value[GSAS_TYPE_MAX];

	for (uint64_t i = w->me; i < 40; i += 2) {
		do {
			gsas_op_apply(GSAS_OP_READ, w->type, 1, w->target,
				      NULL, NULL, value);
			if (number_get(w->type, value) != i)
				sched_yield();
		} while (number_get(w->type, value) != i);
		w->sum += published != i;
		published = i + 1;
		number_put(w->type, value, i + 1);
		gsas_op_apply(GSAS_OP_WRITE, w->type, 1, w->target, value,
			      NULL, NULL);
	}
}

static void test_data_is_published(void **state)
{
	for (int type = 0; type < GSAS_TYPES; type++)
		for (size_t p = 0; p < PLACES; p++) {
			struct worker w[2] = { 0 };

			memset(shared, 0, sizeof(shared));
			published = 0;
			work_all(w, 2, publish, type, shared + places[p]);
			assert_int_equal(w[0].sum + w[1].sum, 0);
		}
}

UNIT_MAIN(
	cmocka_unit_test(test_sums_are_exact),
	cmocka_unit_test(test_blind_sums_are_exact),
	cmocka_unit_test(test_swaps_are_exact),
	cmocka_unit_test(test_nothing_is_seen_in_halves),
	cmocka_unit_test(test_arrays_are_exact),
	cmocka_unit_test(test_overlapping_ones_exclude_each_other),
	cmocka_unit_test(test_no_read_passes_a_write),
	cmocka_unit_test(test_write_of_the_same_value_releases),
	cmocka_unit_test(test_data_is_published),
)
