// SPDX-License-Identifier: BSD-2-Clause
/*
 * onesided.c - one-sided MPI with every result checked: put, get, accumulate,
 * get_accumulate, fetch_and_op, compare_and_swap; with fences, passive locks
 * and lock_all; in memory of the program and of MPI. Any MPI, at least two
 * ranks.
 *
 * onesided [-r ROUNDS] [-s] [-v]
 *   -r  how often each atomic operation is repeated (50)
 *   -s  of the operations, only sum and replace: all that Open MPI 4.1's
 *       btl/ofi knows (with others it aborts the program)
 *   -v  rank 0 says what comes next
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CELLS		16		/* words before the bytes */
#define BYTES		(160 * 1024)
#define WIN_LEN		(CELLS * sizeof(uint64_t) + BYTES)

enum cell { ONE, TWO, THREE, FOUR, COUNTER, SWAP, LOCKED, REAL, VECTOR };

static int g_rank, g_ranks, g_rounds = 50;
static bool g_sums, g_verbose;	/* -s, -v */
static double g_start;
static char g_where[80] = "start";
static long g_checks;
static long long g_moved;		/* bytes put and got, of others */

struct mem {
	MPI_Win win;
	uint64_t *cell;			/* my part of the window */
	unsigned char *bytes;
};

__attribute__((format(printf, 1, 2)))
static void fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rank %d, %s: ", g_rank, g_where);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void expect(const char *what, uint64_t is, uint64_t want)
{
	g_checks++;
	if (is != want)
		fail("%s is %#llx, not %#llx", what, (unsigned long long)is,
		     (unsigned long long)want);
}

static unsigned char pattern(int from, int to, size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) + from * 31 + to * 101 + 1);
}

static void fill(unsigned char *p, size_t len, int from, int to)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(from, to, i);
}

static void expect_bytes(const unsigned char *p, size_t len, int from, int to)
{
	g_checks++;
	for (size_t i = 0; i < len; i++)
		if (p[i] != pattern(from, to, i))
			fail("byte %zu of %zu from rank %d is %#x, not %#x", i,
			     len, from, p[i], pattern(from, to, i));
}

static MPI_Aint at(enum cell c) { return (MPI_Aint)(c * sizeof(uint64_t)); }
static MPI_Aint bytes_at(size_t off)
{
	return (MPI_Aint)(CELLS * sizeof(uint64_t) + off);
}

/* ---- Epochs: the same operations under each kind of synchronisation ------ */

struct sync {
	const char *name;
	void (*begin)(struct mem *m);	/* all ranks may access all */
	void (*end)(struct mem *m);	/* ... all they did is visible */
};

static void fence_begin(struct mem *m)
{
	MPI_Win_fence(MPI_MODE_NOPRECEDE, m->win);
}

static void fence_end(struct mem *m)
{
	MPI_Win_fence(MPI_MODE_NOSUCCEED, m->win);
}

static void locks_begin(struct mem *m)
{
	MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < g_ranks; r++)
		MPI_Win_lock(MPI_LOCK_SHARED, r, 0, m->win);
}

static void locks_end(struct mem *m)
{
	for (int r = 0; r < g_ranks; r++)
		MPI_Win_unlock(r, m->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void lock_all_begin(struct mem *m)
{
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, m->win);
}

static void lock_all_end(struct mem *m)
{
	MPI_Win_flush_all(m->win);
	MPI_Win_unlock_all(m->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static const struct sync g_sync[] = {
	{ "fence", fence_begin, fence_end },
	{ "lock", locks_begin, locks_end },
	{ "lock_all", lock_all_begin, lock_all_end },
};

/* My part of the window is clear for all when this returns. */
static void clear(struct mem *m)
{
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g_rank, 0, m->win);
	memset(m->cell, 0, WIN_LEN);
	MPI_Win_unlock(g_rank, m->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Let my loads see the changes of other ranks to my part, until looked(). */
static void look(struct mem *m)
{
	MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, m->win);
}

static void looked(struct mem *m)
{
	MPI_Win_unlock(g_rank, m->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- Put and get --------------------------------------------------------- */

static size_t share(void) { return BYTES / (size_t)g_ranks; }

/* Everybody's share of everybody's window; at odd places, but for one. */
static void put(struct mem *m, const struct sync *s, size_t len)
{
	unsigned char *out = malloc(len * (size_t)g_ranks);
	size_t odd = len < share() ? 1 : 0;

	clear(m);
	for (int r = 0; r < g_ranks; r++)
		fill(out + len * (size_t)r, len, g_rank, r);
	s->begin(m);
	g_moved += (long long)len * (g_ranks - 1);
	for (int r = 0; r < g_ranks; r++)
		MPI_Put(out + len * (size_t)r, (int)len, MPI_BYTE, r,
			bytes_at(share() * (size_t)g_rank + odd), (int)len,
			MPI_BYTE, m->win);
	s->end(m);
	free(out);
	look(m);
	for (int r = 0; r < g_ranks; r++) {
		unsigned char *p = m->bytes + share() * (size_t)r;

		expect_bytes(p + odd, len, r, g_rank);
		if (odd)
			expect("the byte before", p[0], 0);
		if (odd + len < share())
			expect("the byte behind", p[odd + len], 0);
	}
	looked(m);
}

static void get(struct mem *m, const struct sync *s, size_t len)
{
	unsigned char *in = calloc((size_t)g_ranks, len);

	clear(m);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g_rank, 0, m->win);
	for (int r = 0; r < g_ranks; r++)
		fill(m->bytes + share() * (size_t)r, len, g_rank, r);
	MPI_Win_unlock(g_rank, m->win);
	s->begin(m);
	g_moved += (long long)len * (g_ranks - 1);
	for (int r = 0; r < g_ranks; r++)
		MPI_Get(in + len * (size_t)r, (int)len, MPI_BYTE, r,
			bytes_at(share() * (size_t)g_rank), (int)len,
			MPI_BYTE, m->win);
	s->end(m);
	for (int r = 0; r < g_ranks; r++)
		expect_bytes(in + len * (size_t)r, len, r, g_rank);
	free(in);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void puts_of_sizes(struct mem *m, const struct sync *s)
{
	for (size_t len = 1; len < share(); len = 9 * len)
		put(m, s, len);
	put(m, s, share());
}

static void gets_of_sizes(struct mem *m, const struct sync *s)
{
	for (size_t len = 1; len < share(); len = 9 * len)
		get(m, s, len);
	get(m, s, share());
}

/* A vector out of the window's bytes: pieces of 3 in steps of 8. */
static void get_vector(struct mem *m, const struct sync *s)
{
	unsigned char in[3 * 20];
	MPI_Datatype steps;
	int to = (g_rank + 1) % g_ranks;

	clear(m);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g_rank, 0, m->win);
	fill(m->bytes, 8 * 20, g_rank, 0);
	MPI_Win_unlock(g_rank, m->win);
	MPI_Type_vector(20, 3, 8, MPI_BYTE, &steps);
	MPI_Type_commit(&steps);
	s->begin(m);
	MPI_Get(in, sizeof(in), MPI_BYTE, to, bytes_at(0), 1, steps, m->win);
	s->end(m);
	MPI_Type_free(&steps);
	for (size_t i = 0; i < sizeof(in); i++)
		expect("a vector's byte", in[i],
		       pattern(to, 0, i / 3 * 8 + i % 3));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- Accumulate ---------------------------------------------------------- */

/* All add to all: integers, a maximum, an exclusive or, a double. */
static void accumulate(struct mem *m, const struct sync *s)
{
	uint64_t one = 1, me = (uint64_t)g_rank + 1, bit = 1ull << g_rank;
	uint64_t all = (1ull << g_ranks) - 1;
	double half = 0.5, real;

	clear(m);
	s->begin(m);
	for (int i = 0; i < g_rounds; i++)
		for (int r = 0; r < g_ranks; r++) {
			MPI_Accumulate(&one, 1, MPI_UINT64_T, r, at(ONE), 1,
				       MPI_UINT64_T, MPI_SUM, m->win);
			MPI_Accumulate(&half, 1, MPI_DOUBLE, r, at(REAL), 1,
				       MPI_DOUBLE, MPI_SUM, m->win);
		}
	for (int r = 0; r < g_ranks && !g_sums; r++) {
		MPI_Accumulate(&me, 1, MPI_UINT64_T, r, at(TWO), 1,
			       MPI_UINT64_T, MPI_MAX, m->win);
		MPI_Accumulate(&bit, 1, MPI_UINT64_T, r, at(THREE), 1,
			       MPI_UINT64_T, MPI_BXOR, m->win);
	}
	MPI_Accumulate(&me, 1, MPI_UINT64_T, (g_rank + 1) % g_ranks, at(FOUR),
		       1, MPI_UINT64_T, MPI_REPLACE, m->win);
	s->end(m);
	look(m);
	expect("the sum", m->cell[ONE], (uint64_t)g_ranks * (uint64_t)g_rounds);
	expect("the maximum", m->cell[TWO], g_sums ? 0 : (uint64_t)g_ranks);
	expect("the exclusive or", m->cell[THREE], g_sums ? 0 : all);
	expect("the replaced", m->cell[FOUR],
	       (uint64_t)((g_rank + g_ranks - 1) % g_ranks) + 1);
	memcpy(&real, &m->cell[REAL], sizeof(real));
	expect("twice the sum of halves", (uint64_t)(2 * real),
	       (uint64_t)g_ranks * (uint64_t)g_rounds);
	looked(m);
}

/* An array of many int32_t, once from each. */
static void accumulate_long(struct mem *m, const struct sync *s)
{
	int count = BYTES / (int)sizeof(int32_t);
	int32_t *add = malloc(BYTES), sum = g_ranks * (g_ranks + 1) / 2;
	const int32_t *is = (const int32_t *)m->bytes;

	clear(m);
	for (int i = 0; i < count; i++)
		add[i] = (g_rank + 1) * (i + 1);
	s->begin(m);
	for (int r = 0; r < g_ranks; r++)
		MPI_Accumulate(add, count, MPI_INT32_T, r, bytes_at(0), count,
			       MPI_INT32_T, MPI_SUM, m->win);
	s->end(m);
	free(add);
	look(m);
	for (int i = 0; i < count; i++)
		expect("a long sum", (uint64_t)is[i],
		       (uint64_t)((int64_t)sum * (i + 1)));
	looked(m);
}

/* ---- Operations that answer ---------------------------------------------- */

/* Every number of a counter is drawn exactly once, by any. */
static void draw(struct mem *m, const struct sync *s)
{
	int n = g_rounds * g_ranks, home = g_ranks - 1;
	int *drawn = calloc((size_t)n, sizeof(*drawn));
	uint64_t one = 1, *mine = calloc((size_t)g_rounds, sizeof(*mine));

	clear(m);
	s->begin(m);
	for (int i = 0; i < g_rounds; i++) {
		MPI_Fetch_and_op(&one, &mine[i], MPI_UINT64_T, home,
				 at(COUNTER), MPI_SUM, m->win);
		if (s->begin != fence_begin && i % 3 == 0) {
			MPI_Win_flush(home, m->win);
			expect("an earlier number", i && mine[i] <= mine[i - 1],
			       0);
		}
	}
	s->end(m);
	for (int i = 0; i < g_rounds; i++) {
		if (mine[i] >= (uint64_t)n)
			fail("number %llu of %d", (unsigned long long)mine[i],
			     n);
		drawn[mine[i]]++;
	}
	MPI_Allreduce(MPI_IN_PLACE, drawn, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		expect("times a number was drawn", (uint64_t)drawn[i], 1);
	free(drawn);
	free(mine);
}

/* The old vector comes back, the new one is the sum. */
static void get_accumulate(struct mem *m, const struct sync *s)
{
	uint64_t add[4], old[4] = { 0 };
	int to = (g_rank + 1) % g_ranks;

	clear(m);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g_rank, 0, m->win);
	for (int i = 0; i < 4; i++)
		m->cell[VECTOR + i] = (uint64_t)(1000 * g_rank + i);
	MPI_Win_unlock(g_rank, m->win);
	for (int i = 0; i < 4; i++)
		add[i] = (uint64_t)(g_rank + 10 * i);
	s->begin(m);
	MPI_Get_accumulate(add, 4, MPI_UINT64_T, old, 4, MPI_UINT64_T, to,
			   at(VECTOR), 4, MPI_UINT64_T, MPI_SUM, m->win);
	s->end(m);
	look(m);
	for (int i = 0; i < 4; i++) {
		int from = (g_rank + g_ranks - 1) % g_ranks;

		expect("the old", old[i], (uint64_t)(1000 * to + i));
		expect("the new", m->cell[VECTOR + i],
		       (uint64_t)(1000 * g_rank + i + from + 10 * i));
	}
	looked(m);
}

/* Each swaps its own count in when it saw the last one: needs a flush. */
static void swap(struct mem *m, int home)
{
	uint64_t seen = 0, next, old;

	clear(m);
	MPI_Win_lock_all(0, m->win);
	for (int i = 0; i < g_rounds; i++)
		for (;;) {
			next = seen + 1;
			MPI_Compare_and_swap(&next, &seen, &old, MPI_UINT64_T,
					     home, at(SWAP), m->win);
			MPI_Win_flush(home, m->win);
			if (old == seen)
				break;
			seen = old;
		}
	MPI_Win_unlock_all(m->win);
	MPI_Barrier(MPI_COMM_WORLD);
	look(m);
	expect("the swapped", m->cell[SWAP], g_rank == home ?
	       (uint64_t)g_ranks * (uint64_t)g_rounds : 0);
	looked(m);
}

/* An exclusive lock excludes: nothing is lost between get and put. */
static void exclusive(struct mem *m, int home)
{
	uint64_t word;

	clear(m);
	for (int i = 0; i < g_rounds; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, home, 0, m->win);
		MPI_Get(&word, 1, MPI_UINT64_T, home, at(LOCKED), 1,
			MPI_UINT64_T, m->win);
		MPI_Win_flush(home, m->win);
		word++;
		MPI_Put(&word, 1, MPI_UINT64_T, home, at(LOCKED), 1,
			MPI_UINT64_T, m->win);
		MPI_Win_unlock(home, m->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	look(m);
	expect("the counted", m->cell[LOCKED], g_rank == home ?
	       (uint64_t)g_ranks * (uint64_t)g_rounds : 0);
	looked(m);
}

/* ---- Windows ------------------------------------------------------------- */

struct op {
	const char *name;
	void (*run)(struct mem *m, const struct sync *s);
};

static const struct op g_op[] = {
	{ "put", puts_of_sizes },
	{ "get", gets_of_sizes },
	{ "get of a vector", get_vector },
	{ "accumulate", accumulate },
	{ "accumulate of an array", accumulate_long },
	{ "fetch_and_op", draw },
	{ "get_accumulate", get_accumulate },
};

/* Name the next test; with -v rank 0 prints the name. */
__attribute__((format(printf, 1, 2)))
static void next(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(g_where, sizeof(g_where), fmt, ap);
	va_end(ap);
	if (g_verbose && g_rank == 0)
		fprintf(stderr, "%.3f %s\n", MPI_Wtime() - g_start, g_where);
}

static void all(struct mem *m, const char *kind)
{
	for (size_t i = 0; i < sizeof(g_sync) / sizeof(g_sync[0]); i++)
		for (size_t j = 0; j < sizeof(g_op) / sizeof(g_op[0]); j++) {
			next("%s, %s, %s", kind, g_sync[i].name, g_op[j].name);
			g_op[j].run(m, &g_sync[i]);
		}
	for (int home = 0; home < g_ranks; home++) {
		next("%s, compare_and_swap at %d", kind, home);
		swap(m, home);
		next("%s, exclusive locks at %d", kind, home);
		exclusive(m, home);
	}
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "r:sv")) != -1) {
		if (c == 'r')
			g_rounds = (int)strtol(optarg, NULL, 10);
		else if (c == 's')
			g_sums = true;
		else if (c == 'v')
			g_verbose = true;
		else
			fail("options: -r ROUNDS, -s, -v");
	}
}

int main(int argc, char **argv)
{
	struct mem m;
	long sum;
	long long moved;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
	options(argc, argv);
	g_start = MPI_Wtime();
	if (g_ranks < 2 || g_ranks > 32 || g_rounds < 1)
		fail("wants 2 to 32 ranks, at least one round");

	m.cell = malloc(WIN_LEN);
	m.bytes = (unsigned char *)(m.cell + CELLS);
	MPI_Win_create(m.cell, WIN_LEN, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &m.win);
	all(&m, "created window");
	MPI_Win_free(&m.win);
	free(m.cell);

	MPI_Win_allocate(WIN_LEN, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &m.cell,
			 &m.win);
	m.bytes = (unsigned char *)(m.cell + CELLS);
	all(&m, "allocated window");
	MPI_Win_free(&m.win);

	MPI_Reduce(&g_checks, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&g_moved, &moved, 1, MPI_LONG_LONG, MPI_SUM, 0,
		   MPI_COMM_WORLD);
	if (g_rank == 0)
		printf("onesided: %d ranks, %ld checks passed\n"
		       "# onesided_bytes %lld\n", g_ranks, sum, moved);
	MPI_Finalize();
	return 0;
}
