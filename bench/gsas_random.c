// SPDX-License-Identifier: BSD-2-Clause
/*
 * gsas_random.c - random updates, after HPC Challenge's RandomAccess.
 *
 * Several processes change words of a table that is spread over all boards,
 * each word by exclusive or, in the order of a pseudo-random sequence of which
 * each process executes a part.
 *
 * HPC Challenge allows one wrong word in a hundred, because it allows lost
 * updates. Here updates are atomic: a single wrong word is exit status 1.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gsas.h"
#include "op/gsas_op.h"
#include "unm_proc.h"
#include "unm_stat.h"

#define PROCS_MAX	64
#define BOARDS_MAX	64
#define POLY		7		/* x^64 + x^2 + x + 1 */

struct options {
	int procs;
	int log2_words;
	int per_word;			/* updates */
	unsigned int flags;
};

struct shared {
	_Atomic int ready, go;
	_Atomic int done;
};

static struct options opt = {
	.procs = 2, .log2_words = 18, .per_word = 4, .flags = GSAS_JOB,
};
static struct shared *sh;
static gsas_addr part[BOARDS_MAX];	/* the table's, by board */
static int boards;

static void must(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "gsas_random: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static uint64_t words(void)
{
	return 1ull << opt.log2_words;
}

static uint64_t updates(void)
{
	return words() * opt.per_word;
}

static uint64_t next(uint64_t ran)
{
	return ran << 1 ^ (ran >> 63 ? POLY : 0);
}

/* Matrices over GF(2) that step the sequence 2^i times, column by column. */
static uint64_t step_apply(const uint64_t m[64], uint64_t v)
{
	uint64_t r = 0;

	for (int i = 0; i < 64; i++)
		r ^= v >> i & 1 ? m[i] : 0;
	return r;
}

/* The sequence's n-th number; the 0th is 1. */
static uint64_t start(uint64_t n)
{
	uint64_t m[64], square[64], v = 1;

	for (int i = 0; i < 64; i++)
		m[i] = next(1ull << i);
	for (; n; n >>= 1) {
		if (n & 1)
			v = step_apply(m, v);
		for (int i = 0; i < 64; i++)
			square[i] = step_apply(m, m[i]);
		memcpy(m, square, sizeof(m));
	}
	return v;
}

/* Neighbours are on different boards. */
static gsas_addr word_at(uint64_t i)
{
	return part[i % boards] + i / boards * 8;
}

/* Update number n of all to update number n of none: [first, last) is ours. */
static void update(uint64_t first, uint64_t last)
{
	uint64_t ran = start(first);

	for (; first < last; first++) {
		ran = next(ran);
		must(gsas_update64_post(word_at(ran & (words() - 1)),
					GSAS_OP_BXOR, ran),
		     "gsas_update64_post");
	}
	must(gsas_fence(-1), "gsas_fence");
}

static void worker(int me)
{
	uint64_t share = updates() / opt.procs + 1;
	uint64_t first = me * share, last = first + share, word;

	last = last < updates() ? last : updates();
	for (int b = 0; b < boards; b++)	/* takes its interfaces */
		must(gsas_read64(part[b], &word), "gsas_read64");
	atomic_fetch_add_explicit(&sh->ready, 1, memory_order_release);
	/* acquires the release in run() */
	while (!atomic_load_explicit(&sh->go, memory_order_acquire))
		sched_yield();
	update(first, last);
	atomic_fetch_add_explicit(&sh->done, 1, memory_order_release);
}

/* The processes are on the boards in turn. */
static void child_main(void *arg)
{
	int me = *(int *)arg;
	char board[16];

	snprintf(board, sizeof(board), "%d", me % boards);
	setenv("FI_UNIMEM_BOARD", board, 1);
	worker(me);
}

/* The cores this program may use, in turn. */
static int core_of(int i)
{
	cpu_set_t set;
	int core = 0;

	if (sched_getaffinity(0, sizeof(set), &set)) {
		perror("gsas_random: sched_getaffinity");
		exit(1);
	}
	for (i %= CPU_COUNT(&set); ; core++)
		if (CPU_ISSET(core, &set) && i-- == 0)
			return core;
}

/* All have come there; a process that ended without is an error. */
static void await(_Atomic int *count)
{
	int status;
	pid_t pid;

	/* acquires the releases in worker() */
	while (atomic_load_explicit(count, memory_order_acquire) <
	       opt.procs) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0 && status) {
			fprintf(stderr, "gsas_random: a process failed\n");
			exit(1);
		}
		usleep(50);
	}
}

static double run(void)
{
	double t0, took;

	for (int i = 0; i < opt.procs; i++)
		unm_child(child_main, &i, core_of(i));
	await(&sh->ready);
	t0 = unm_now();
	atomic_store_explicit(&sh->go, 1, memory_order_release);
	await(&sh->done);
	took = unm_now() - t0;
	while (waitpid(-1, NULL, 0) > 0)
		;
	return took;
}

/* The same updates once more, here, one after the other. */
static uint64_t count_wrong(void)
{
	uint64_t *want = unm_alloc(words() * 8), *got = unm_alloc(words() * 8);
	uint64_t ran = 1, bad = 0, here;

	for (uint64_t n = 0; n < updates(); n++) {
		ran = next(ran);
		want[ran & (words() - 1)] ^= ran;
	}
	for (int b = 0; b < boards; b++) {
		here = (words() - b + boards - 1) / boards;
		must(gsas_get(got, part[b], here * 8), "gsas_get");
		for (uint64_t i = 0; i < here; i++)
			bad += got[i] != want[i * boards + b];
	}
	free(want);
	free(got);
	return bad;
}

static void usage(void)
{
	fprintf(stderr, "usage: gsas_random [-m] [-n PROCESSES] [-l LOG2] "
		"[-u UPDATES]\n"
		"  -m  on pages that are mapped\n"
		"  -n  how many processes update (2)\n"
		"  -l  logarithm of the words in the table (18)\n"
		"  -u  updates for each word (4)\n");
	exit(2);
}

static int number(const char *s, int min, int max)
{
	char *end;
	long n = strtol(s, &end, 10);

	if (end == s || *end || n < min || n > max)
		usage();
	return n;
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "mn:l:u:")) != -1) {
		if (c == 'm')
			opt.flags |= GSAS_MAPPED;
		else if (c == 'n')
			opt.procs = number(optarg, 1, PROCS_MAX);
		else if (c == 'l')
			opt.log2_words = number(optarg, 9, 30);
		else if (c == 'u')
			opt.per_word = number(optarg, 1, 1000);
		else
			usage();
	}
	if (optind < argc)
		usage();
}

static void table_alloc(void)
{
	uint64_t pages;

	boards = gsas_boards();
	must(boards, "gsas_boards");
	boards = boards < BOARDS_MAX ? boards : BOARDS_MAX;
	pages = (words() / boards + 1) * 8 / GSAS_PAGE + 1;
	for (int b = 0; b < boards; b++)
		must(gsas_alloc(pages, b, opt.flags, NULL, &part[b]),
		     "gsas_alloc");
}

int main(int argc, char **argv)
{
	double took;
	uint64_t bad;

	options(argc, argv);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED) {
		perror("gsas_random");
		return 1;
	}
	table_alloc();
	printf("# Random updates, %llu words on %d boards, %d processes\n",
	       (unsigned long long)words(), boards, opt.procs);
	unm_row_header();
	took = run();
	bad = count_wrong();
	unm_row("random_updates", words() * 8, updates() / took / 1e6, "M/s");
	unm_row("random_wrong", words() * 8, bad, "words");
	for (int b = 0; b < boards; b++)
		must(gsas_free(part[b]), "gsas_free");
	return bad != 0;
}
