/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mix.c - atomics of four processes on the same words, each by another
 * way: the owner on its own memory, two that execute them themselves, one that
 * asks for each of them. None is lost, none is done twice, none sees half of
 * another: every number at the end is exact.
 *
 * UNM_TEST_OPS: operations of each process in each case (20,000).
 */
#include <complex.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/procs.h"

#define OWNER	0
#define NPROCS	4
#define KEY	77
#define SLOTS	8			/* operations under way, of a process */
#define RUN	32			/* of one kind in a row */
#define LINE	128			/* bytes of memory for a word */
#define ALONE	100			/* while the owner looks away */

/* aligned; not; and across two lines (what is longer than 3 bytes) */
static const size_t places[] = { 0, 1, 61 };
#define PLACES	(sizeof(places) / sizeof(places[0]))

enum what {
	SUM,				/* fi_atomic */
	TICKET,				/* fi_fetch_atomic: what was there */
	SWAP,				/* fi_compare_atomic, until it does */
};

struct work {
	enum what what;
	enum fi_datatype type;
	size_t place;
};

#define TYPES	(FI_UINT128 + 1)	/* behind FI_DATATYPE_LAST */
#define WORKS	(TYPES * PLACES + 2 * NWIDE * PLACES)
/* those that count far enough */
static const enum fi_datatype wide[] = {
	FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT, FI_DOUBLE, FI_DOUBLE_COMPLEX,
	FI_LONG_DOUBLE, FI_INT128, FI_UINT128,
};
#define NWIDE	(sizeof(wide) / sizeof(wide[0]))

static struct work works[WORKS];
static uint64_t g_ops;			/* of each process */
static _Atomic uint8_t *g_taken;	/* tickets, by work and number */

static void make_works(void)
{
	size_t n = 0;

	for (size_t p = 0; p < PLACES; p++) {
		for (int t = 0; t < TYPES; t++)
			works[n++] = (struct work){ SUM, t, places[p] };
		for (size_t t = 0; t < 2 * NWIDE; t++)
			works[n++] = (struct work){ t & 1 ? SWAP : TICKET,
						    wide[t / 2], places[p] };
	}
	CHECK(n == WORKS);
}

/* Which one the i-th operation of a process is; how many are of one. */
static size_t work_of(uint64_t i)
{
	return i / RUN % WORKS;
}

static uint64_t share_of(size_t work)
{
	uint64_t round = RUN * WORKS, rest = g_ops % round;
	uint64_t from = work * RUN;

	return g_ops / round * RUN + (rest <= from ? 0 :
		rest - from < RUN ? rest - from : RUN);
}

/* ---- Numbers as elements ------------------------------------------------ */

union number {
	uint8_t bytes[32];
	unsigned __int128 i;
	float f;
	double d;
	float complex fc;
	double complex dc;
	long double ld;
	long double complex ldc;
};

/* n, or what is left of it; complex: twice that in the other part */
static union number number(enum fi_datatype type, uint64_t n)
{
	union number u;

	memset(&u, 0, sizeof(u));
	switch (type) {
	case FI_FLOAT:
		u.f = (float)n;
		break;
	case FI_DOUBLE:
		u.d = (double)n;
		break;
	case FI_FLOAT_COMPLEX:
		u.fc = (float)n + 2 * (float)n * I;
		break;
	case FI_DOUBLE_COMPLEX:
		u.dc = (double)n + 2 * (double)n * I;
		break;
	case FI_LONG_DOUBLE:
		u.ld = n;
		break;
	case FI_LONG_DOUBLE_COMPLEX:
		u.ldc = (long double)n + 2 * (long double)n * I;
		break;
	default:			/* both halves of a long one count */
		u.i = n;
		u.i |= u.i << 64;
		break;
	}
	return u;
}

/* The number an element is, by its first part. */
static uint64_t value(enum fi_datatype type, const union number *u)
{
	switch (type) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		return (uint64_t)u->f;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		return (uint64_t)u->d;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		return (uint64_t)u->ld;
	case FI_UINT32:
		return (uint32_t)u->i;
	default:
		return (uint64_t)u->i;
	}
}

static size_t size_of(enum fi_datatype type)
{
	static const uint8_t size[] = {
		1, 1, 2, 2, 4, 4, 8, 8, sizeof(float), sizeof(double),
		2 * sizeof(float), 2 * sizeof(double), sizeof(long double),
		2 * sizeof(long double), 16, 16,
	};

	_Static_assert(sizeof(size) == TYPES, "all types");
	return size[type];
}

/* Bytes that mean something: a long double has padding on x86. */
static bool same(enum fi_datatype type, const union number *a,
		 const union number *b)
{
	if (type == FI_LONG_DOUBLE)
		return a->ld == b->ld;
	if (type == FI_LONG_DOUBLE_COMPLEX)
		return a->ldc == b->ldc;
	return memcmp(a, b, size_of(type)) == 0;
}

/* ---- A process's operations --------------------------------------------- */

struct slot {
	bool busy;
	size_t work;
	union number src, cmp, dst;
};

struct mixer {
	struct node n;
	struct slot slot[SLOTS];
	uint64_t begun, out;
};

/* Post what is in the slot; a queue that is full is waited for. */
static void post(struct mixer *m, struct slot *s)
{
	const struct work *w = &works[s->work];
	uint64_t addr = s->work * LINE + w->place;
	fi_addr_t to = m->n.peer[OWNER];
	ssize_t ret;

	if (w->what == SUM)
		ret = fi_atomic(m->n.ep, &s->src, 1, NULL, to, addr, KEY,
				w->type, FI_SUM, s);
	else if (w->what == TICKET)
		ret = fi_fetch_atomic(m->n.ep, &s->src, 1, NULL, &s->dst,
				      NULL, to, addr, KEY, w->type, FI_SUM, s);
	else
		ret = fi_compare_atomic(m->n.ep, &s->src, 1, NULL, &s->cmp,
					NULL, &s->dst, NULL, to, addr, KEY,
					w->type, FI_CSWAP, s);
	s->busy = ret == 0;
	if (ret != -FI_EAGAIN)
		FI(ret);
}

static void begin(struct mixer *m, struct slot *s)
{
	s->work = work_of(m->begun);
	s->src = number(works[s->work].type, 1);
	s->cmp = number(works[s->work].type, 0);
	post(m, s);
	if (s->busy) {
		m->begun++;
		m->out++;
	}
}

static void take_ticket(const struct slot *s)
{
	enum fi_datatype type = works[s->work].type;
	uint64_t v = value(type, &s->dst), most = NPROCS * share_of(s->work);
	union number whole = number(type, v);

	CHECK_MSG(v < most, "work %zu: ticket %" PRIu64 " of %" PRIu64,
		  s->work, v, most);
	CHECK_MSG(same(type, &whole, &s->dst), "work %zu: half a number",
		  s->work);
	CHECK_MSG(atomic_fetch_add(&g_taken[s->work * NPROCS * g_ops + v], 1)
		  == 0, "work %zu: ticket %" PRIu64 " twice", s->work, v);
}

/* A swap that came too late is tried with what was there. */
static void ended(struct mixer *m, struct slot *s)
{
	const struct work *w = &works[s->work];

	s->busy = false;
	if (w->what == SWAP && !same(w->type, &s->cmp, &s->dst)) {
		s->cmp = s->dst;
		s->src = number(w->type, value(w->type, &s->dst) + 1);
		while (!s->busy) {
			post(m, s);
			if (!s->busy)	/* nothing is lost by that */
				fi_cq_read(m->n.cq, NULL, 0);
		}
		return;
	}
	if (w->what == TICKET)
		take_ticket(s);
	m->out--;
}

static void poll_queue(struct mixer *m)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int ret;

	while ((ret = node_poll(&m->n, &entry, &error)) != 0) {
		CHECK_MSG(ret > 0, "completion in error: %s",
			  fi_strerror(error.err));
		ended(m, entry.op_context);
	}
}

static void all_operations(struct mixer *m)
{
	while (m->begun < g_ops || m->out != 0) {
		for (int i = 0; i < SLOTS && m->begun < g_ops; i++)
			if (!m->slot[i].busy)
				begin(m, &m->slot[i]);
		poll_queue(m);
	}
}

/* ---- Processes ---------------------------------------------------------- */

/* Check the words at the end. */
static void check_words(const uint8_t *mem)
{
	for (size_t i = 0; i < WORKS; i++) {
		const struct work *w = &works[i];
		union number want = number(w->type, NPROCS * share_of(i));
		union number is;

		memset(&is, 0, sizeof(is));
		memcpy(&is, mem + i * LINE + w->place, size_of(w->type));
		CHECK_MSG(same(w->type, &is, &want), "work %zu (%d, type %d, "
			  "place %zu): %" PRIu64 ", not %" PRIu64, i, w->what,
			  w->type, w->place, value(w->type, &is),
			  NPROCS * share_of(i));
		for (uint64_t k = 0; w->what == TICKET &&
		     k < NPROCS * share_of(i); k++)
			CHECK(g_taken[i * NPROCS * g_ops + k] == 1);
	}
}

static int owner(int fd, void *arg)
{
	bool dmable = *(bool *)arg;
	struct mixer m = { 0 };
	struct fid_mr *mr;
	uint8_t *mem;

	node_open(&m.n, NODE_ONESIDED);
	mem = dmable ? node_alloc(&m.n, (WORKS + 1) * LINE) :
		aligned_alloc(4096, (WORKS + 1) * LINE / 4096 * 4096 + 4096);
	CHECK(mem != NULL);
	memset(mem, 0, (WORKS + 1) * LINE);
	mr = node_reg(&m.n, mem, (WORKS + 1) * LINE, KEY);
	node_join(&m.n, fd);
	all_operations(&m);
	node_report(&m.n, fd, 0);
	procs_send_word(fd, 0);		/* and looks away */
	procs_recv_word(fd);
	check_words(mem);
	FI(fi_close(&mr->fid));
	node_close(&m.n);
	if (!dmable)
		free(mem);
	return 0;
}

/* Others do not need the owner for this. */
static void alone(struct mixer *m)
{
	uint64_t one = 1, was;

	for (int i = 0; i < ALONE; i++) {
		FI(fi_fetch_atomic(m->n.ep, &one, 1, NULL, &was, NULL,
				   m->n.peer[OWNER], WORKS * LINE, KEY,
				   FI_UINT64, FI_SUM, &m->slot[0]));
		m->slot[0].work = 0;	/* a sum */
		m->out++;
		while (m->out != 0)
			poll_queue(m);
	}
}

static int initiator(int fd, void *arg)
{
	struct mixer m = { 0 };

	(void)arg;
	node_start(&m.n, fd, NODE_ONESIDED);
	all_operations(&m);
	procs_send_word(fd, 0);
	if (node_idle(&m.n, fd) != 0) {
		alone(&m);
		procs_exchange(fd, 0);
	}
	node_close(&m.n);
	return 0;
}

/* direct: bits of the processes that may. */
static void mix(unsigned direct, bool dmable)
{
	static const char *const env[][2] = {
		{ "FI_UNIMEM_DIRECT=0", NULL }, { "FI_UNIMEM_DIRECT=1", NULL },
	};
	struct proc *p[NPROCS];
	size_t bytes;

	make_works();
	g_ops = (uint64_t)procs_number("UNM_TEST_OPS", 20000);
	bytes = WORKS * NPROCS * g_ops;
	g_taken = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED |
		       MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(g_taken != MAP_FAILED);
	for (int i = 0; i < NPROCS; i++)
		p[i] = proc_start(i == OWNER ? owner : initiator, &dmable,
				  env[direct >> i & 1]);
	procs_join(p, NPROCS);
	for (int i = 0; i < NPROCS; i++)
		procs_recv_word(p[i]->fd);
	procs_exchange(p[OWNER]->fd, 0);
	for (int i = 1; i < NPROCS; i++) {
		bool away = dmable && direct >> i & 1;

		procs_send_word(p[i]->fd, away);
		if (away) {
			procs_recv_word(p[i]->fd);
			procs_send_word(p[i]->fd, 0);
		}
	}
	procs_send_word(p[OWNER]->fd, 0);
	for (int i = 0; i < NPROCS; i++)
		proc_expect(p[i], 0);
	procs_note("%" PRIu64 " operations of each of %d processes, %zu words",
		   g_ops, NPROCS, (size_t)WORKS);
}

static void all_ways(void)
{
	mix(1 << OWNER | 1 << 1 | 1 << 2, true);
}

/* The owner asks itself, too. */
static void owner_asks(void)
{
	mix(1 << 1 | 1 << 2, true);
}

static void all_direct(void)
{
	mix(0xF, true);
}

/* Memory nobody else can have: whatever they may, they ask. */
static void ordinary_memory(void)
{
	mix(0xF, false);
}

PROCS_MAIN(
	PROCS_CASE(all_ways, 900),
	PROCS_CASE(owner_asks, 900),
	PROCS_CASE(all_direct, 900),
	PROCS_CASE(ordinary_memory, 900),
)
