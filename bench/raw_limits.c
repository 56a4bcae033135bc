// SPDX-License-Identifier: BSD-2-Clause
/*
 * raw_limits.c - the figures of the machine, without MPI and without Unimem.
 *
 * The transfer of a cache line between two cores, memcpy, the two copies of a
 * pipeline through shared memory, and cross-memory attach. All other figures
 * are compared with these.
 *
 * The parent runs on the first core, a child on the second. They share one
 * anonymous mapping, so that no file or segment can be left behind.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unm_handover.h"
#include "unm_proc.h"
#include "unm_stat.h"

#define BIG		(16 * UNM_MIB)
#define CELLS		8
#define CELL_MAX	(64 * UNM_KIB)

struct shared {
	struct unm_handover handover;
	struct unm_word filled, drained; /* cells written, cells read */
	struct unm_word go, done;	/* pipeline: pass asked for, ended */
	char *child_buf;
	char cells[CELLS * CELL_MAX] __attribute__((aligned(4096)));
	char area[BIG] __attribute__((aligned(4096)));
};

static struct unm_pair pair = { .core = { 0, 1 }, .pass_s = 0.05 };
static struct shared *sh;

/* ----------------------------------------------- transfer of a cache line */

static void handover_child(void)
{
	unm_handover_echo(&sh->handover);
}

static void handover(void)
{
	unm_row("handover_one_way", UNM_LINE,
		unm_handover_ns(&sh->handover, pair.pass_s) / 2, "ns");
}

/* ----------------------------------------------------------------- memcpy */

static void copy(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	/* The compiler may not drop or merge the copies. */
	__asm__ volatile("" : : "r"(to) : "memory");
}

static void memcpy_size(const char *from, size_t size)
{
	size_t per_step = size < UNM_MIB ? UNM_MIB / size : 1;
	double t0, t, v[UNM_PASSES];
	size_t n;

	copy(sh->area, from, size);
	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			for (size_t j = 0; j < per_step; j++)
				copy(sh->area, from, size);
			n += per_step;
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		v[i] = (double)n * size / t / 1e9;
	}
	unm_row("memcpy", size, unm_median(v, UNM_PASSES), "GB/s");
}

/* ------------------------------------- two copies through a ring of cells */

static const size_t cell_sizes[] = {
	4 * UNM_KIB, 8 * UNM_KIB, 16 * UNM_KIB, 32 * UNM_KIB, 64 * UNM_KIB,
};

struct pass {
	size_t size, cell, count;
};

/* Each pass in one word, so that the child takes it whole. */
static uint64_t pass_pack(const struct pass *p)
{
	return p->size | p->cell << 26 | (uint64_t)p->count << 44;
}

static struct pass pass_unpack(uint64_t w)
{
	return (struct pass){
		.size = w & ((1u << 26) - 1),
		.cell = w >> 26 & ((1u << 18) - 1),
		.count = w >> 44,
	};
}

static void ring_write(const char *from, const struct pass *p)
{
	uint64_t n = atomic_load_explicit(&sh->filled.v, memory_order_relaxed);
	size_t at, len;

	for (size_t i = 0; i < p->count; i++) {
		for (at = 0; at < p->size; at += len) {
			len = p->size - at;
			len = len < p->cell ? len : p->cell;
			/* acquires the child's release in ring_read() */
			while (n - atomic_load_explicit(&sh->drained.v,
					memory_order_acquire) == CELLS)
				;
			memcpy(sh->cells + n % CELLS * p->cell, from + at,
			       len);
			n++;
			atomic_store_explicit(&sh->filled.v, n,
					      memory_order_release);
		}
	}
}

static void ring_read(char *to, const struct pass *p)
{
	uint64_t n = atomic_load_explicit(&sh->drained.v,
					  memory_order_relaxed);
	size_t at, len;

	for (size_t i = 0; i < p->count; i++) {
		for (at = 0; at < p->size; at += len) {
			len = p->size - at;
			len = len < p->cell ? len : p->cell;
			/* acquires the parent's release in ring_write() */
			while (atomic_load_explicit(&sh->filled.v,
					memory_order_acquire) == n)
				;
			memcpy(to + at, sh->cells + n % CELLS * p->cell, len);
			n++;
			atomic_store_explicit(&sh->drained.v, n,
					      memory_order_release);
		}
	}
}

static void twocopy_child(void)
{
	struct pass p;
	uint64_t w;

	for (;;) {
		/* acquires the parent's release in twocopy_run() */
		while (!(w = atomic_load_explicit(&sh->go.v,
						  memory_order_acquire)))
			;
		atomic_store_explicit(&sh->go.v, 0, memory_order_relaxed);
		p = pass_unpack(w);
		ring_read(sh->child_buf, &p);
		atomic_store_explicit(&sh->done.v, 1, memory_order_release);
	}
}

static double twocopy_run(const char *from, const struct pass *p)
{
	double t0 = unm_now();

	atomic_store_explicit(&sh->done.v, 0, memory_order_relaxed);
	atomic_store_explicit(&sh->go.v, pass_pack(p), memory_order_release);
	ring_write(from, p);
	/* acquires the child's release in twocopy_child() */
	while (!atomic_load_explicit(&sh->done.v, memory_order_acquire))
		;
	return unm_now() - t0;
}

/* Median bandwidth for one size of cells, which fills its time by count. */
static double twocopy_cell(const char *from, size_t size, size_t cell)
{
	struct pass p = { .size = size, .cell = cell, .count = 1 };
	double t, v[UNM_PASSES];

	for (;;) {
		t = twocopy_run(from, &p);
		if (t > pair.pass_s / 4 || p.count >= 1u << 19)
			break;
		p.count *= 2;
	}
	for (int i = 0; i < UNM_PASSES; i++)
		v[i] = p.count * size / twocopy_run(from, &p) / 1e9;
	return unm_median(v, UNM_PASSES);
}

static void twocopy_size(const char *from, size_t size)
{
	double best = 0, v;

	for (size_t i = 0; i < sizeof(cell_sizes) / sizeof(*cell_sizes); i++) {
		if (i && cell_sizes[i] > size)
			break;
		v = twocopy_cell(from, size, cell_sizes[i]);
		best = v > best ? v : best;
	}
	unm_row("two_copies", size, best, "GB/s");
}

/* --------------------------------------------------- cross-memory attach */

static ssize_t attach(pid_t pid, char *to, char *from, size_t size)
{
	struct iovec l = { to, size }, r = { from, size };

	return process_vm_readv(pid, &l, 1, &r, 1, 0);
}

static void attach_size(pid_t pid, char *to, size_t size)
{
	double t0, t, v[UNM_PASSES];
	ssize_t got;
	size_t n;

	for (int i = 0; i < UNM_PASSES; i++) {
		n = 0;
		t0 = unm_now();
		do {
			got = attach(pid, to, sh->child_buf, size);
			if (got != (ssize_t)size) {
				printf("# cross_memory_attach %zu: %s\n", size,
				       got < 0 ? strerror(errno) : "short");
				return;
			}
			n++;
			t = unm_now() - t0;
		} while (t < pair.pass_s);
		v[i] = n * size / t / 1e9;
	}
	unm_row("cross_memory_attach", size, unm_median(v, UNM_PASSES), "GB/s");
}

static void idle_child(void)
{
	for (;;)
		pause();
}

/* ---------------------------------------------------------------- frame */

static void child_main(void *arg)
{
	void (**body)(void) = arg;

	memset(sh->child_buf, 1, BIG);	/* pages of its own, on its core */
	atomic_store_explicit(&sh->done.v, 1, memory_order_release);
	(*body)();
}

static pid_t child_ready(void (*body)(void))
{
	pid_t pid;

	atomic_store(&sh->done.v, 0);
	pid = unm_child(child_main, &body, pair.core[1]);
	/* acquires the child's release in child_main() */
	while (!atomic_load_explicit(&sh->done.v, memory_order_acquire))
		usleep(1000);
	return pid;
}

static void all_tests(char *buf)
{
	static const size_t cma[] = {
		4 * UNM_KIB, 64 * UNM_KIB, UNM_MIB, 2 * UNM_MIB, 16 * UNM_MIB,
	};
	size_t size;
	pid_t pid;

	pid = child_ready(handover_child);
	handover();
	unm_child_end(pid);
	for (size = 4 * UNM_KIB; size <= BIG; size *= 2)
		memcpy_size(buf, size);
	pid = child_ready(twocopy_child);
	for (size = 4 * UNM_KIB; size <= BIG; size *= 4)
		twocopy_size(buf, size);
	unm_child_end(pid);
	pid = child_ready(idle_child);
	for (size_t i = 0; i < sizeof(cma) / sizeof(*cma); i++)
		attach_size(pid, buf, cma[i]);
	unm_child_end(pid);
}

int main(int argc, char **argv)
{
	char *buf;

	unm_pair_options(&pair, argc, argv);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (sh == MAP_FAILED || unm_pin(pair.core[0])) {
		perror("raw_limits");
		return 1;
	}
	buf = unm_alloc(BIG);
	sh->child_buf = unm_alloc(BIG);
	printf("# Raw limits, cores %d and %d, medians of %d passes\n",
	       pair.core[0], pair.core[1], UNM_PASSES);
	unm_row_header();
	all_tests(buf);
	return 0;
}
