// SPDX-License-Identifier: BSD-2-Clause
/*
 * gsas_random.c - random updates, after HPC Challenge's RandomAccess.
 *
 * Several processes change words of a table that is spread over all boards,
 * each word by exclusive or, in the order of a pseudo-random sequence of which
 * each process executes a part. This is done in several ways, on the same table
 * one after the other: a call for each update, calls of gsas_update64_batch(),
 * and on mapped pages the processor's instruction without a call, by pointers.
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
#define BATCH		1024		/* updates in a call */

enum way { SINGLE, BATCHED, BARE, WAYS };

static const char *const way_name[WAYS] = {
	[SINGLE] = "random_updates",
	[BATCHED] = "random_batched",
	[BARE] = "random_bare",
};

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
static _Atomic uint64_t *part_ptr[BOARDS_MAX];	/* where they are mapped */
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

static uint64_t update_single(uint64_t ran, uint64_t n)
{
	for (; n > 0; n--) {
		ran = next(ran);
		must(gsas_update64_post(word_at(ran & (words() - 1)),
					GSAS_OP_BXOR, ran),
		     "gsas_update64_post");
	}
	return ran;
}

static uint64_t update_batched(uint64_t ran, uint64_t n)
{
	static gsas_addr addr[BATCH];
	static uint64_t operand[BATCH];

	while (n > 0) {
		uint64_t count = n < BATCH ? n : BATCH;

		for (uint64_t i = 0; i < count; i++) {
			ran = next(ran);
			addr[i] = word_at(ran & (words() - 1));
			operand[i] = ran;
		}
		must(gsas_update64_batch(addr, GSAS_OP_BXOR, operand, count),
		     "gsas_update64_batch");
		n -= count;
	}
	return ran;
}

static uint64_t update_bare(uint64_t ran, uint64_t n)
{
	for (; n > 0; n--) {
		uint64_t i;

		ran = next(ran);
		i = ran & (words() - 1);
		atomic_fetch_xor(&part_ptr[i % boards][i / boards], ran);
	}
	return ran;
}

/* Updates first to last - 1 of all, which are the share of this process. */
static void update(enum way way, uint64_t first, uint64_t last)
{
	uint64_t ran = start(first), n = last - first;

	if (way == SINGLE)
		update_single(ran, n);
	else if (way == BATCHED)
		update_batched(ran, n);
	else
		update_bare(ran, n);
	must(gsas_fence(-1), "gsas_fence");
}

static void map_table(void)
{
	size_t bytes;
	void *ptr;

	for (int b = 0; b < boards; b++) {
		must(gsas_map(part[b], &ptr, &bytes), "gsas_map");
		part_ptr[b] = ptr;
	}
}

/* Access each page of the table once, so that no process measures its first
 * look-ups and page faults. */
static void touch_table(void)
{
	uint64_t word;

	for (uint64_t i = 0; i < words(); i += 256)
		must(gsas_read64(word_at(i), &word), "gsas_read64");
}

static void worker(int me, enum way way)
{
	uint64_t share = updates() / opt.procs + 1;
	uint64_t first = me * share, last = first + share;

	last = last < updates() ? last : updates();
	touch_table();
	if (way == BARE)
		map_table();
	atomic_fetch_add_explicit(&sh->ready, 1, memory_order_release);
	/* acquires the release in run() */
	while (!atomic_load_explicit(&sh->go, memory_order_acquire))
		sched_yield();
	update(way, first, last);
	atomic_fetch_add_explicit(&sh->done, 1, memory_order_release);
}

struct child {
	int me;
	enum way way;
};

/* The processes are on the boards in turn. */
static void child_main(void *arg)
{
	const struct child *child = arg;
	char board[16];

	snprintf(board, sizeof(board), "%d", child->me % boards);
	setenv("FI_UNIMEM_BOARD", board, 1);
	worker(child->me, child->way);
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

static double run(enum way way)
{
	double t0, took;

	atomic_store(&sh->ready, 0);
	atomic_store(&sh->go, 0);
	atomic_store(&sh->done, 0);
	for (int i = 0; i < opt.procs; i++) {
		struct child child = { i, way };

		unm_child(child_main, &child, core_of(i));
	}
	await(&sh->ready);
	t0 = unm_now();
	atomic_store_explicit(&sh->go, 1, memory_order_release);
	await(&sh->done);
	took = unm_now() - t0;
	while (waitpid(-1, NULL, 0) > 0)
		;
	return took;
}

/* The words that are wrong after all updates were executed so many times: twice
 * is not at all. */
static uint64_t count_wrong(int times)
{
	uint64_t *want = unm_alloc(words() * 8), *got = unm_alloc(words() * 8);
	uint64_t ran = 1, bad = 0, here;

	for (uint64_t n = 0; times % 2 != 0 && n < updates(); n++) {
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
	double took[WAYS] = { 0 };
	uint64_t bad = 0;
	int ways;

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
	ways = opt.flags & GSAS_MAPPED ? WAYS : BARE;
	for (int way = 0; way < ways; way++) {
		took[way] = run(way);
		bad += count_wrong(way + 1);
	}
	for (int way = 0; way < ways; way++)
		unm_row(way_name[way], words() * 8,
			updates() / took[way] / 1e6, "M/s");
	unm_row("random_wrong", words() * 8, bad, "words");
	for (int b = 0; b < boards; b++)
		must(gsas_free(part[b]), "gsas_free");
	return bad != 0;
}
