// SPDX-License-Identifier: BSD-2-Clause
/*
 * gsas_limits.c - the rates and latencies of the global address space.
 *
 * Calls the public interface (gsas.h): atomic operations by the processor
 * alone, on mapped pages and through the service; stores and loads as curves
 * over their size, after figures 6 to 9 of the paper on the HyperTransport
 * engine. A part of the table parts[] measures the bare machine, too, where
 * there is a figure to compare with.
 *
 * The caller runs on the first core. The service runs on the second core, as do
 * the rival and the echo process of this program: it sleeps while they run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gsas.h"
#include "unm_handover.h"
#include "unm_proc.h"
#include "unm_stat.h"

#define MANY		1024		/* operations from look to look ... */
#define FEW		64		/* ... at the clock: fast, slow ones */
#define WINDOW		64		/* requests under way, at most */
#define PUT_MAX		(64 * UNM_KIB)
#define SPAN		(WINDOW * PUT_MAX)
#define LOAD_MAX	64
#define LOADS		1024		/* places that loads go through */
#define SEED		5
#define WAKES		101
#define THINK_S		0.5e-6		/* between two calls */
#define ASLEEP_US	5000		/* it polls for 50 us, then sleeps */

enum { FAD64, READ64, CAS64, CPU_FAD64 };

/* A way to memory: pages that are mapped, or that packets reach only. */
struct way {
	const char *name;
	unsigned int flags;
	gsas_addr at;
};

/* Memory that the two processes share beside the address space. */
struct shared {
	struct unm_handover handover;
	struct unm_word cpu;		/* what bare atomics work on */
	struct unm_word made;		/* the rival's operations */
	struct unm_word stop;
};

/* A word, and the operation that is made on it. */
struct target {
	int op;
	gsas_addr at;
	uint64_t made;			/* operations of this process */
};

struct slot {
	struct gsas_req req;
	bool busy;
	uint64_t data[LOAD_MAX / 8];
};

static struct unm_pair pair = { .core = { 1, 0 }, .pass_s = 0.05 };
static struct shared *sh;
static char *buf;			/* PUT_MAX bytes, and a guard */
static struct slot slots[WINDOW];

static void must(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "gsas_limits: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "gsas_limits: %s: wrong\n", what);
	exit(1);
}

/* Print the median, and leave it to those who compare. */
static void row(const char *way, const char *test, size_t size, double value,
		const char *unit)
{
	char name[32];

	snprintf(name, sizeof(name), "%s_%s", way, test);
	unm_row(name, size, value, unit);
}

/* ---------------------------------------------------- atomic operations */

static void cpu_add(unsigned int count)
{
	uint64_t was = 0;

	/* what was there is used, or it would be another instruction */
	while (count--)
		was |= atomic_fetch_add_explicit(&sh->cpu.v, 1,
						 memory_order_seq_cst);
	__asm__ volatile("" : : "r"(was));
}

/* The next count operations; each makes the word one more, or finds it so. */
static void operate(struct target *t, unsigned int count)
{
	uint64_t n = t->made, value = n;
	int64_t was;

	t->made += count;
	if (t->op == CPU_FAD64) {
		cpu_add(count);
		return;
	}
	for (; n < t->made; n++) {
		if (t->op == FAD64)
			must(gsas_fad64(t->at, 1, &was), "gsas_fad64");
		else if (t->op == READ64)
			must(gsas_read64(t->at, &value), "gsas_read64");
		else if (gsas_cas64(t->at, n, n + 1, NULL) != 1)
			wrong("gsas_cas64");
	}
}

static uint64_t word_of(const struct target *t)
{
	uint64_t value;

	if (t->op == CPU_FAD64)
		return atomic_load(&sh->cpu.v);
	must(gsas_read64(t->at, &value), "gsas_read64");
	return value;
}

static void word_clear(const struct target *t)
{
	if (t->op == CPU_FAD64)
		atomic_store(&sh->cpu.v, 0);
	else
		must(gsas_write64(t->at, 0), "gsas_write64");
}

static void alone(const char *way, const char *test, struct target t,
		  unsigned int batch)
{
	double t0, took, v[UNM_PASSES];
	uint64_t first;

	word_clear(&t);
	operate(&t, FEW);
	for (int i = 0; i < UNM_PASSES; i++) {
		first = t.made;
		t0 = unm_now();
		do {
			operate(&t, batch);
			took = unm_now() - t0;
		} while (took < pair.pass_s);
		v[i] = took / (double)(t.made - first) * 1e9;
	}
	if (word_of(&t) != (t.op == READ64 ? 0 : t.made))
		wrong(test);
	row(way, test, 8, unm_median(v, UNM_PASSES), "ns");
}

static void rival_main(void *arg)
{
	struct target *t = arg;

	while (!atomic_load_explicit(&sh->stop.v, memory_order_relaxed)) {
		operate(t, FEW);
		atomic_store_explicit(&sh->made.v, t->made,
				      memory_order_relaxed);
	}
}

/* The other process has begun. */
static void rival_wait(pid_t pid)
{
	while (!atomic_load_explicit(&sh->made.v, memory_order_relaxed)) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			wrong("the second process");
		usleep(100);
	}
}

static void rival_end(pid_t pid)
{
	int status;

	atomic_store_explicit(&sh->stop.v, 1, memory_order_relaxed);
	if (waitpid(pid, &status, 0) != pid || status)
		wrong("the second process");
}

/* A word of a service that has gone to sleep: the median of many. */
static void asleep(const struct way *w)
{
	double t0, v[WAKES];
	uint64_t value;

	for (int i = 0; i < WAKES; i++) {
		usleep(ASLEEP_US);
		t0 = unm_now();
		must(gsas_read64(w->at, &value), "gsas_read64");
		v[i] = (unm_now() - t0) * 1e9;
	}
	row(w->name, "read64_idle", 8, unm_median(v, WAKES), "ns");
}

/* A call after each half a microsecond of the caller's own work, which the
 * service polls through: what the call takes, on average. */
static void thinking(const struct way *w)
{
	double t0, t1, took, end, v[UNM_PASSES];
	uint64_t value, n;

	for (int i = 0; i < UNM_PASSES; i++) {
		took = 0;
		n = 0;
		t1 = unm_now();
		end = t1 + pair.pass_s;
		while (t1 < end) {
			do
				t0 = unm_now();
			while (t0 < t1 + THINK_S);
			must(gsas_read64(w->at, &value), "gsas_read64");
			t1 = unm_now();
			took += t1 - t0;
			n++;
		}
		v[i] = took / (double)n * 1e9;
	}
	row(w->name, "read64_think", 8, unm_median(v, UNM_PASSES), "ns");
}

/* Two processes on one word: what an operation takes, as each of them sees it,
 * on average, for the line need not be fair. */
static void contended(const char *way, const char *test, struct target t)
{
	double t0, took, v[UNM_PASSES];
	uint64_t first, others;
	pid_t pid;

	word_clear(&t);
	atomic_store(&sh->made.v, 0);
	atomic_store(&sh->stop.v, 0);
	pid = unm_child(rival_main, &t, pair.core[1]);
	rival_wait(pid);
	for (int i = 0; i < UNM_PASSES; i++) {
		first = t.made;
		others = atomic_load_explicit(&sh->made.v,
					      memory_order_relaxed);
		t0 = unm_now();
		do {
			operate(&t, MANY);
			took = unm_now() - t0;
		} while (took < pair.pass_s);
		others = atomic_load_explicit(&sh->made.v,
					      memory_order_relaxed) - others;
		v[i] = 2 * took / (double)(t.made - first + others) * 1e9;
	}
	rival_end(pid);
	if (word_of(&t) != t.made + atomic_load(&sh->made.v))
		wrong(test);
	row(way, test, 8, unm_median(v, UNM_PASSES), "ns");
}

static void echo_main(void *arg)
{
	(void)arg;
	unm_handover_echo(&sh->handover);
}

static void bare(void)
{
	struct target t = { .op = CPU_FAD64 };

	alone("cpu", "fad64_alone", t, MANY);
	contended("cpu", "fad64_shared", t);
}

static void handover(void)
{
	pid_t pid;

	pid = unm_child(echo_main, NULL, pair.core[1]);
	unm_row("handover_two_way", UNM_LINE,
		unm_handover_ns(&sh->handover, pair.pass_s), "ns");
	unm_child_end(pid);
}

static void atomics(const struct way *w)
{
	bool mapped = w->flags & GSAS_MAPPED;
	unsigned int batch = mapped ? MANY : FEW;
	struct target t = { .at = w->at };

	alone(w->name, "read64", (t.op = READ64, t), batch);
	alone(w->name, "cas64", (t.op = CAS64, t), batch);
	alone(w->name, "fad64_alone", (t.op = FAD64, t), batch);
	if (!mapped) {
		thinking(w);
		asleep(w);
	}
	if (mapped)
		contended(w->name, "fad64_shared", t);
}

/* ------------------------------------------------------------ the window */

static struct slot *slot_free(uint64_t n, unsigned int depth)
{
	struct slot *s = &slots[n % depth];

	if (s->busy)
		must(gsas_wait(&s->req), "gsas_wait");
	s->busy = true;
	return s;
}

static void slots_wait(void)
{
	for (int i = 0; i < WINDOW; i++) {
		if (slots[i].busy)
			must(gsas_wait(&slots[i].req), "gsas_wait");
		slots[i].busy = false;
	}
}

/* ---------------------------------------------- stores: figures 6 and 7 */

static void puts_start(const struct way *w, size_t size, uint64_t first)
{
	struct slot *s;

	for (uint64_t n = first; n < first + FEW; n++) {
		s = slot_free(n, WINDOW);
		must(gsas_put_start(w->at + n % WINDOW * size, buf, size,
				    &s->req), "gsas_put_start");
	}
}

/* The bytes that were put have arrived, and the bytes behind them are
 * unchanged. */
static void puts_check(const struct way *w, size_t size)
{
	static char got[PUT_MAX + UNM_GUARD], guard[UNM_GUARD];
	gsas_addr end = w->at + WINDOW * size;

	unm_clear(got, 0);
	must(gsas_put(end, got, UNM_GUARD), "gsas_put");
	unm_fill(buf, size, SEED + size);
	puts_start(w, size, 0);
	slots_wait();
	for (int i = 0; i < WINDOW; i++) {
		unm_clear(got, size);
		must(gsas_get(got, w->at + i * size, size), "gsas_get");
		if (unm_check(got, size, SEED + size) >= 0)
			wrong("gsas_put_start");
	}
	unm_clear(got, 0);
	must(gsas_get(guard, end, UNM_GUARD), "gsas_get");
	if (memcmp(guard, got, UNM_GUARD))
		wrong("what is behind a store");
}

static void puts_size(const struct way *w, size_t size)
{
	double t0, took, v[UNM_PASSES], rate;
	uint64_t n;

	puts_check(w, size);
	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			puts_start(w, size, n);
			n += FEW;
			took = unm_now() - t0;
		} while (took < pair.pass_s);
		slots_wait();
		v[i] = n / (unm_now() - t0) / 1e6;
	}
	rate = unm_median(v, UNM_PASSES);
	row(w->name, "put", size, rate * size, "MB/s");
	row(w->name, "put_rate", size, rate, "M/s");
}

/* One word for each, and the last one of each word is found there. */
static void posts(const struct way *w)
{
	double t0, v[UNM_PASSES];
	uint64_t n, last = 0, value;

	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			for (int j = 0; j < MANY; j++)
				must(gsas_write64_post(w->at + j * 8,
						       last + n++),
				     "gsas_write64_post");
		} while (unm_now() - t0 < pair.pass_s);
		must(gsas_fence(-1), "gsas_fence");
		v[i] = n / (unm_now() - t0) / 1e6;
		last += n;
	}
	for (int j = 0; j < MANY; j++) {
		must(gsas_read64(w->at + j * 8, &value), "gsas_read64");
		if (value != last - MANY + j)
			wrong("gsas_write64_post");
	}
	row(w->name, "post_rate", 8, unm_median(v, UNM_PASSES), "M/s");
}

static void stores(const struct way *w)
{
	posts(w);
	for (size_t size = 8; size <= PUT_MAX; size *= 2)
		puts_size(w, size);
}

/* ----------------------------------------------- loads: figures 8 and 9 */

static gsas_addr load_at(const struct way *w, uint64_t n)
{
	return w->at + n % LOADS * LOAD_MAX;
}

static void load(const struct way *w, size_t size, uint64_t n, void *data)
{
	if (size == 8)
		must(gsas_read64(load_at(w, n), data), "gsas_read64");
	else
		must(gsas_get(data, load_at(w, n), size), "gsas_get");
}

static void load_start(const struct way *w, size_t size, uint64_t n,
		       struct slot *s)
{
	if (size == 8)
		must(gsas_read64_start(load_at(w, n), s->data, &s->req),
		     "gsas_read64_start");
	else
		must(gsas_get_start(s->data, load_at(w, n), size, &s->req),
		     "gsas_get_start");
}

/* Place n holds n in its words, each in its own way. */
static void load_check(const uint64_t *data, size_t size, uint64_t n)
{
	for (size_t i = 0; i < size / 8; i++)
		if (data[i] != n * (i + 1))
			wrong("a load");
}

static void loads_fill(const struct way *w)
{
	uint64_t words[LOAD_MAX / 8];

	for (uint64_t n = 0; n < LOADS; n++) {
		for (int i = 0; i < LOAD_MAX / 8; i++)
			words[i] = n * (i + 1);
		must(gsas_put(load_at(w, n), words, LOAD_MAX), "gsas_put");
	}
}

static void loads_one(const struct way *w, size_t size)
{
	uint64_t data[LOAD_MAX / 8], n;
	double t0, took, v[UNM_PASSES];

	for (n = 0; n < LOADS; n++) {
		load(w, size, n, data);
		load_check(data, size, n);
	}
	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			for (int j = 0; j < FEW; j++)
				load(w, size, n++, data);
			took = unm_now() - t0;
		} while (took < pair.pass_s);
		v[i] = took / n * 1e9;
	}
	row(w->name, "load", size, unm_median(v, UNM_PASSES), "ns");
}

/* A multiple of every depth at a time; all are over when it returns. */
static void loads_check(const struct way *w, size_t size, unsigned int depth)
{
	for (uint64_t n = 0; n < LOADS; n += depth) {
		for (uint64_t j = n; j < n + depth; j++)
			load_start(w, size, j, slot_free(j, depth));
		slots_wait();
		for (uint64_t j = n; j < n + depth; j++)
			load_check(slots[j % depth].data, size, j);
	}
}

static void loads_many(const struct way *w, size_t size, unsigned int depth)
{
	double t0, v[UNM_PASSES];
	char test[16];
	uint64_t n;

	loads_check(w, size, depth);
	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			for (int j = 0; j < FEW; j++, n++)
				load_start(w, size, n,
					   slot_free(n, depth));
		} while (unm_now() - t0 < pair.pass_s);
		slots_wait();
		v[i] = n / (unm_now() - t0) / 1e6;
	}
	snprintf(test, sizeof(test), "loads_%zu", size);
	row(w->name, test, depth, unm_median(v, UNM_PASSES), "M/s");
}

static void loads(const struct way *w)
{
	loads_fill(w);
	for (size_t size = 8; size <= LOAD_MAX; size *= 2)
		loads_one(w, size);
	for (unsigned int depth = 1; depth <= WINDOW; depth *= 2)
		loads_many(w, 8, depth);
	for (unsigned int depth = 1; depth <= WINDOW; depth *= 2)
		loads_many(w, LOAD_MAX, depth);
}

/* ---------------------------------------------------------------- frame */

static struct way mapped = { .name = "mapped", .flags = GSAS_MAPPED };
static struct way packets = { .name = "service" };

/* The parts that -o chooses, of a few seconds each. A part contains the figure
 * of the machine with which its GSAS figures are compared, because both have to
 * be measured in the same state of the machine. */
static const struct part {
	const char *name;
	struct way *way;
	void (*machine)(void);
	void (*body)(const struct way *w);
} parts[] = {
	{ "mapped", &mapped, bare, atomics },
	{ "service", &packets, handover, atomics },
	{ "mapped-loads", &mapped, NULL, loads },
	{ "mapped-stores", &mapped, NULL, stores },
	{ "service-loads", &packets, NULL, loads },
	{ "service-stores", &packets, NULL, stores },
};

#define PARTS	(int)(sizeof(parts) / sizeof(*parts))

static const struct part *only;		/* NULL: all */

static void measure(const struct part *p)
{
	struct way *w = p->way;
	size_t size;
	void *ptr;
	int ret;

	if (p->machine)
		p->machine();
	must(gsas_alloc(SPAN / GSAS_PAGE + 1, GSAS_HERE, w->flags, NULL,
			&w->at), "gsas_alloc");
	if (w->flags & GSAS_MAPPED) {
		ret = gsas_map(w->at, &ptr, &size);
		if (ret == -EOPNOTSUPP) {
			printf("# %s: not offered by these boards\n", w->name);
			goto out;
		}
		must(ret, "gsas_map");
	}
	p->body(w);
	/* the machine may have moved its processors: who reads this sees it */
	if (p->machine == handover)
		p->machine();
out:
	must(gsas_free(w->at), "gsas_free");
}

static void usage(void)
{
	fprintf(stderr, "usage: gsas_limits [-o PART] [-p CORE,CORE] "
		"[-t SECONDS]\n"
		"  -o  only one of:");
	for (int i = 0; i < PARTS; i++)
		fprintf(stderr, " %s", parts[i].name);
	fprintf(stderr, "\n"
		"  -p  cores of the caller and of the service (1,0)\n"
		"  -t  time of one pass, of %d per figure (0.05)\n",
		UNM_PASSES);
	exit(2);
}

static const struct part *part_find(const char *name)
{
	for (int i = 0; i < PARTS; i++)
		if (!strcmp(name, parts[i].name))
			return &parts[i];
	usage();
	return NULL;
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "o:p:t:")) != -1) {
		if (c == 'o')
			only = part_find(optarg);
		else if (c == 't')
			pair.pass_s = atof(optarg);
		else if (c != 'p' || sscanf(optarg, "%d,%d", &pair.core[0],
					    &pair.core[1]) != 2)
			usage();
	}
	if (optind < argc || !(pair.pass_s > 0))
		usage();
}

int main(int argc, char **argv)
{
	options(argc, argv);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (sh == MAP_FAILED || unm_pin(pair.core[0])) {
		perror("gsas_limits");
		return 1;
	}
	buf = unm_alloc(PUT_MAX);
	printf("# GSAS limits, caller on core %d, the other on core %d, "
	       "medians of %d passes\n", pair.core[0], pair.core[1],
	       UNM_PASSES);
	printf("# Size of *_loads_*: how many are under way\n");
	unm_row_header();
	for (int i = 0; i < PARTS; i++)
		if (!only || only == &parts[i])
			measure(&parts[i]);
	return 0;
}
