/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kill_onesided.c - SIGKILL under one-sided traffic: the target of puts,
 * gets and atomics, or one of their initiators, at random moments and at each
 * fault point (hal_fault_point.h); through windows, by cross-memory attach, by
 * requests, and in memory that all processes have mapped.
 *
 * A job is two targets and two initiators; the victim is one of them. Each
 * operation of the living initiator ends in exactly one completion, in error
 * only if its target died; what it does to the living target goes on, reads
 * what it wrote, and is counted there exactly once. The living close, and
 * nothing is left.
 *
 * UNM_TEST_KILLS_EACH: kills at random moments, for each victim and way (4).
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "lib/procs.h"

enum way { WINDOW, ATTACH, REQUEST, SHARED, WAYS };
enum member { TARGET, MORTAL, INITIATOR, OTHER, MEMBERS };
enum kind { PUT, GET, ADD, FETCH_ADD, KINDS };

#define KEY		3
#define SLOTS		12
#define AREA		((size_t)320 << 10)	/* of each slot */
#define COUNTS		4096	/* bytes before the areas: a word for each */
#define HALF		(COUNTS + SLOTS * AREA)	/* of an initiator */
#define LEN		(2 * HALF)
#define WARM		40	/* operations before anyone is killed, and of
				 * these */
#define WARM_DIRECT	10
#define ENOUGH		150	/* to pass a point, if ever */

/* Results of the processes, in g_shared->word[]. */
#define DONE(i)		g_shared->word[i]	/* good operations */
#define DIRECT(i)	g_shared->word[8 + (i)]	/* executed directly */
#define ALIASES(i)	g_shared->word[24 + (i)] /* targets' memory it maps */
#define SEEN		g_shared->word[16]	/* MORTAL's death is known */
#define ADDR(i)		(g_shared->bytes + 64 * (i))

struct job {
	enum way way;
	enum member victim;		/* MORTAL or OTHER */
	const char *point;		/* NULL: at a random moment */
	int pass;
	bool fired;
};

/* ---- Targets ------------------------------------------------------------ */

static uint8_t *g_arena;		/* MAP_SHARED: LEN for each target */

static uint8_t *memory(struct node *n, enum way way)
{
	switch (way) {
	case WINDOW:
		return node_alloc(n, LEN);
	case SHARED:
		return g_arena + (size_t)proc_index() * LEN;
	default:
		return aligned_alloc(4096, LEN);
	}
}

static int target(int fd, void *arg)
{
	int index = proc_index();
	const struct job *job = arg;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct fid_mr *mr;
	struct node n;
	uint64_t word;
	uint8_t *mem;

	node_open(&n, NODE_ONESIDED);
	mem = memory(&n, job->way);
	CHECK(mem != NULL);
	memset(mem, 0, LEN);
	mr = node_reg(&n, mem, LEN, KEY);
	memcpy(ADDR(index), &n.addr, sizeof(n.addr));
	procs_send_word(fd, 0);
	while (procs_recv(fd, &word, sizeof(word), 0) < 0) {
		for (int i = 0; i < 20; i++)
			CHECK(node_poll(&n, &entry, &error) == 0);
		sched_yield();
	}
	/* whoever was inside is gone, or is let out */
	FI(fi_close(&mr->fid));
	node_close(&n);
	if (job->way == ATTACH || job->way == REQUEST)
		free(mem);
	return 0;
}

/* ---- Initiators --------------------------------------------------------- */

struct slot {
	bool busy;
	int to;				/* TARGET or MORTAL */
	uint64_t turn;			/* of PUT, GET, ADD, FETCH_ADD */
	uint64_t serial;		/* of the operation under way */
	size_t len;
	uint64_t one, was;
	uint8_t *buf;
};

struct initiator {
	struct node n;
	uint64_t half;			/* of the targets' memory */
	fi_addr_t to[2];
	bool gone[2];			/* its death is known */
	uint64_t added[2];		/* that were completed */
	uint64_t serials;
	uint64_t done;
	int index;
	struct slot slot[SLOTS];
};

static enum kind kind_of(const struct slot *s)
{
	return s->turn % KINDS;
}

/* The bytes of a slot's put, which its next get has to find. */
static uint8_t byte_of(const struct slot *s, size_t i)
{
	return (uint8_t)(s->turn / KINDS * 31 + s->to * 7 + i);
}

static ssize_t call(struct initiator *in, struct slot *s, void *context)
{
	static const size_t lens[] = { 8, 300000, 1000, 20000, 64, 300000 };
	uint64_t at = in->half + COUNTS + (uint64_t)(s - in->slot) * AREA;
	struct fid_ep *ep = in->n.ep;
	fi_addr_t to = in->to[s->to];

	switch (kind_of(s)) {
	case PUT:
		s->len = lens[s->turn / KINDS % 6];
		for (size_t i = 0; i < s->len; i++)
			s->buf[i] = byte_of(s, i);
		return fi_write(ep, s->buf, s->len, NULL, to, at, KEY,
				context);
	case GET:
		memset(s->buf, 0, s->len);
		return fi_read(ep, s->buf, s->len, NULL, to, at, KEY, context);
	case ADD:
		return fi_atomic(ep, &s->one, 1, NULL, to, in->half, KEY,
				 FI_UINT64, FI_SUM, context);
	default:
		return fi_fetch_atomic(ep, &s->one, 1, NULL, &s->was, NULL, to,
				       in->half, KEY, FI_UINT64, FI_SUM,
				       context);
	}
}

/* A dead one's slots turn to the living. */
static void slot_turns(struct initiator *in, struct slot *s)
{
	s->turn++;
	if (s->turn % KINDS == 0)
		s->to = !s->to;
	if (in->gone[s->to]) {
		s->to = TARGET;
		s->turn += (KINDS - s->turn % KINDS) % KINDS;
	}
}

static bool is_end(int err)
{
	return err == FI_ECONNRESET || err == FI_ECONNREFUSED;
}

static void slot_begin(struct initiator *in, struct slot *s)
{
	uint64_t serial = ++in->serials;
	ssize_t ret = call(in, s, (void *)(uintptr_t)
			   (serial * SLOTS + (s - in->slot)));

	if (ret == -FI_EAGAIN)
		return;
	if (ret != 0) {
		CHECK_MSG(s->to == MORTAL && is_end((int)-ret), "a call to %d: "
			  "%s", s->to, fi_strerror((int)-ret));
		in->gone[MORTAL] = true;
		slot_turns(in, s);
		return;
	}
	s->serial = serial;
	s->busy = true;
}

/* A completion: of which operation, and is it the only one? */
static struct slot *slot_of(struct initiator *in, void *context)
{
	uint64_t word = (uintptr_t)context;
	struct slot *s = &in->slot[word % SLOTS];

	CHECK_MSG(s->busy && s->serial == word / SLOTS, "operation %" PRIu64
		  " of slot %" PRIu64 " completed twice", word / SLOTS,
		  word % SLOTS);
	s->busy = false;
	return s;
}

static void slot_ended(struct initiator *in, struct slot *s)
{
	const struct unm_stats *stats = ((struct unm_ep *)in->n.ep)->stats;
	enum kind kind = kind_of(s);

	for (size_t i = 0; kind == GET && i < s->len; i++)
		CHECK_MSG(s->buf[i] == byte_of(s, i), "byte %zu of %zu is not "
			  "what was put", i, s->len);
	if (kind == FETCH_ADD)
		CHECK(s->was < in->serials);
	in->added[s->to] += kind >= ADD;
	DONE(in->index) = ++in->done;
	DIRECT(in->index) = stats->tx_direct;
	ALIASES(in->index) = stats->aliases;
	slot_turns(in, s);
}

static void initiator_poll(struct initiator *in)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct slot *s;
	int ret;

	while ((ret = node_poll(&in->n, &entry, &error)) > 0)
		slot_ended(in, slot_of(in, entry.op_context));
	if (ret == 0)
		return;
	s = slot_of(in, error.op_context);
	CHECK_MSG(s->to == MORTAL && is_end(error.err), "an operation on %d: "
		  "%s", s->to, fi_strerror(error.err));
	in->gone[MORTAL] = true;
	slot_turns(in, s);
}

static bool initiator_busy(const struct initiator *in, int to)
{
	bool busy = false;

	for (int i = 0; i < SLOTS; i++)
		busy |= in->slot[i].busy && in->slot[i].to == to;
	return busy;
}

static void initiator_step(struct initiator *in)
{
	for (int i = 0; i < SLOTS; i++)
		if (!in->slot[i].busy)
			slot_begin(in, &in->slot[i]);
	initiator_poll(in);
	sched_yield();
}

/* Check that the surviving target has executed each addition once. */
static void initiator_check(struct initiator *in)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	uint64_t sum = 0;
	ssize_t ret;

	do {
		initiator_poll(in);
		ret = fi_fetch_atomic(in->n.ep, NULL, 1, NULL, &sum, NULL,
				      in->to[TARGET], in->half, KEY,
				      FI_UINT64, FI_ATOMIC_READ, &sum);
	} while (ret == -FI_EAGAIN);
	FI(ret);
	while ((ret = node_poll(&in->n, &entry, &error)) == 0)
		;
	CHECK(ret == 1 && entry.op_context == &sum);
	CHECK_MSG(sum == in->added[TARGET], "%" PRIu64 " added, %" PRIu64
		  " there", in->added[TARGET], sum);
}

static int initiator(int fd, void *arg)
{
	int index = proc_index();
	static struct initiator in;
	uint64_t word;

	(void)arg;
	in.half = index == INITIATOR ? 0 : HALF;
	in.index = index;
	node_open(&in.n, NODE_ONESIDED);
	for (int i = 0; i < 2; i++)
		in.to[i] = node_insert(&in.n, (struct hal_addr *)
				       (void *)ADDR(i));
	for (int i = 0; i < SLOTS; i++) {
		in.slot[i].to = i % 2;
		in.slot[i].one = 1;
		in.slot[i].buf = malloc(AREA);
		CHECK(in.slot[i].buf != NULL);
	}
	while (procs_recv(fd, &word, sizeof(word), 0) < 0) {
		initiator_step(&in);
		if (index == INITIATOR && in.gone[MORTAL] &&
		    !initiator_busy(&in, MORTAL))
			SEEN = 1;
	}
	while (initiator_busy(&in, TARGET) || initiator_busy(&in, MORTAL))
		initiator_poll(&in);
	initiator_check(&in);
	procs_exchange(fd, 0);		/* nobody closes before all are done */
	for (int i = 0; i < SLOTS; i++)
		free(in.slot[i].buf);
	node_close(&in.n);
	return 0;
}

/* ---- Jobs ---------------------------------------------------------------- */

static void start(struct proc **p, const struct job *job)
{
	static char text[80];

	for (int i = 0; i < MEMBERS; i++) {
		const char *env[4] = { NULL, NULL, NULL, NULL };
		int n = 0;

		if (i >= INITIATOR && job->way == REQUEST)
			env[n++] = "FI_UNIMEM_DIRECT=0";
		/* at random moments also as requests, while targets poll */
		if (i >= INITIATOR && job->way == ATTACH && job->point != NULL)
			env[n++] = "FI_UNIMEM_PROMPT_US=0";
		if (i == (int)job->victim && job->point != NULL) {
			snprintf(text, sizeof(text), "FI_UNIMEM_POINT=%s:%d:"
				 "kill", job->point, job->pass);
			env[n++] = text;
		}
		p[i] = proc_start(i < INITIATOR ? target : initiator,
				  (void *)job, env);
		if (i < INITIATOR && (i != (int)job->victim ||
				      job->point == NULL))
			procs_recv_word(p[i]->fd);
		/* it may die before it says so */
		while (i < INITIATOR && *ADDR(i) == 0 &&
		       !proc_ended(p[i], 1))
			;
	}
}

/* Both do what the job is about. */
static bool warm(const struct job *job)
{
	bool warm = true;

	for (int i = INITIATOR; i <= OTHER; i++)
		warm &= DONE(i) >= WARM && (job->way == REQUEST ||
					    DIRECT(i) >= WARM_DIRECT);
	return warm;
}

/* It was killed at its point, or has passed it too seldom: true, or false. */
static bool meets_its_point(struct proc *victim, const struct job *job)
{
	while (!warm(job) || DONE(INITIATOR) < ENOUGH || DONE(OTHER) < ENOUGH)
		if (proc_ended(victim, 1))
			break;
	if (!proc_ended(victim, 0)) {
		proc_kill(victim);
		return false;
	}
	CHECK(WIFSIGNALED(victim->status) &&
	      WTERMSIG(victim->status) == SIGKILL);
	return true;
}

static void kill_victim(struct proc *victim, struct job *job, uint64_t *seed)
{
	if (job->point != NULL) {
		job->fired = meets_its_point(victim, job);
		return;
	}
	while (!warm(job))
		CHECK(!proc_ended(victim, 1));
	procs_nap(procs_random(seed) % 10000);
	proc_kill(victim);
	job->fired = true;
}

/* Nobody else notices but by what ends. */
static void run(struct job *job, uint64_t *seed)
{
	struct proc *p[MEMBERS];
	uint64_t was;

	memset(g_shared, 0, sizeof(*g_shared));
	start(p, job);
	kill_victim(p[job->victim], job, seed);
	was = DONE(INITIATOR);
	while (DONE(INITIATOR) < was + WARM ||
	       (job->victim == MORTAL && !SEEN))
		CHECK_MSG(!proc_ended(p[INITIATOR], 1), "the initiator: %d",
			  p[INITIATOR]->status);
	/* initiators first: the targets serve what is left */
	for (int i = MEMBERS - 1; i >= INITIATOR; i--)
		if (i != (int)job->victim)
			procs_exchange(p[i]->fd, 0);
	CHECK(job->way != REQUEST || DIRECT(INITIATOR) == 0);
	CHECK((job->way == SHARED) == (ALIASES(INITIATOR) != 0));
	for (int i = MEMBERS - 1; i >= 0; i--)
		if (i != (int)job->victim)
			proc_finish(p[i]);
	procs_clean();
	procs_forget();
}

static void arena_map(void)
{
	g_arena = mmap(NULL, INITIATOR * LEN, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(g_arena != MAP_FAILED);
}

/* Can the HAL map shared memory a second time? */
static bool maps_again(void)
{
	void *again = mremap(g_arena, 0, 4096, MREMAP_MAYMOVE);

	return again != MAP_FAILED && munmap(again, 4096) == 0;
}

/* A way that is left out is printed as a skipped case. */
static bool goes(enum way way)
{
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	if (way == ATTACH &&
	    process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
		printf("skip kills_by_attach (no cross-memory attach)\n");
	else if (way == SHARED && !maps_again())
		printf("skip kills_in_shared_memory (no second mapping)\n");
	else
		return true;
	fflush(stdout);
	return false;
}

static void random_moments(void *arg)
{
	enum member victim = *(enum member *)arg;
	long kills = procs_number("UNM_TEST_KILLS_EACH", 4);
	uint64_t seed = 5;
	int n = 0;

	arena_map();
	for (int way = 0; way < WAYS; way++) {
		if (!goes(way))
			continue;
		for (long i = 0; i < kills; i++, n++)
			run(&(struct job){ .way = way, .victim = victim },
			    &seed);
	}
	procs_note("%d processes killed", n);
}

#ifdef HAL_FAULT_POINTS
#define BIT(way)	(1u << (way))
#define ALL		(BIT(WINDOW) | BIT(ATTACH) | BIT(REQUEST) | BIT(SHARED))

/* Each is passed in these ways by a target, and by an initiator: one that is
 * never passed was not tested. */
static const struct point {
	const char *name;
	unsigned ways[2];
	bool once;			/* by each peer of a victim */
} points[] = {
	{ "claimed", { ALL, ALL }, false },
	{ "copied", { ALL, ALL }, false },
	{ "published", { ALL, ALL }, false },
	{ "credit", { ALL, ALL }, false },
	{ "space", { BIT(WINDOW) | BIT(REQUEST), BIT(WINDOW) | BIT(REQUEST) },
	  false },
	{ "inside", { 0, BIT(WINDOW) | BIT(ATTACH) | BIT(SHARED) }, false },
	{ "hello-sent", { 0, ALL }, true },
	{ "accepted", { ALL, 0 }, true },
	{ "mapped", { ALL, ALL }, true },
};

static void at_point(const struct point *point, enum way way,
		     enum member victim)
{
	static const int passes[] = { 1, 9 };
	uint64_t seed = 1;
	int hits = 0;

	for (int k = 0; k < (point->once ? 1 : 2); k++) {
		struct job job = {
			.way = way, .victim = victim, .point = point->name,
			.pass = passes[k],
		};

		run(&job, &seed);
		hits += job.fired;
	}
	CHECK_MSG(hits != 0, "%s was never passed, way %d", point->name, way);
	procs_note("%s, way %d: %d killed", point->name, way, hits);
}

static void at_points(void *arg)
{
	enum member victim = *(enum member *)arg;

	arena_map();
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		for (int way = 0; way < WAYS; way++)
			if ((points[i].ways[victim == OTHER] & BIT(way)) &&
			    goes(way))
				at_point(&points[i], way, victim);
}

#else
static void at_points(void *arg)
{
	(void)arg;
	procs_skip("no fault points in this build (--enable-fault-points)");
}
#endif

PROCS_MAIN(
	PROCS_WITH(targets, 100, random_moments, &(enum member){ MORTAL }),
	PROCS_WITH(initiators, 100, random_moments, &(enum member){ OTHER }),
	PROCS_WITH(targets_at_points, 150, at_points, &(enum member){ MORTAL }),
	PROCS_WITH(initiators_at_points, 150, at_points,
		   &(enum member){ OTHER }),
)
