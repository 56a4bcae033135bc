// SPDX-License-Identifier: BSD-2-Clause
/*
 * gsas_mmu.c - the cost of the software MMU of GSAS.
 *
 * With 1e3 to 1e7 pages in the table: the look-up of a random page, the look-up
 * of a page that is not in it, an insertion and a removal. Beside these, as the
 * least that memory allows: one dependent load at random from a table of the
 * same size. Each look-up starts after the result of the one before.
 *
 * All times are processor time, so that other programs on the machine do not
 * count, in particular in the longest insertion. That figure shows that no
 * insertion waits until the whole table has grown.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "service/gsas_mmu.h"
#include "unm_proc.h"
#include "unm_stat.h"

#define PASSES		5
#define LOOKUPS		1000000		/* a pass */
#define BASE		(UINT64_C(1) << 36)
#define PAGE		4096

static volatile uint64_t sink;

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next(uint64_t *rng)
{
	uint64_t z = *rng += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* n of the count from first; which one comes next depends on the last one */
static double look_up(const struct gsas_mmu *mmu, uint64_t first,
		      uint64_t count)
{
	uint64_t rng = 1, zero = 0, n;
	const struct gsas_page *page;
	double t0, v[PASSES];

	for (int i = 0; i < PASSES; i++) {
		t0 = cpu();
		for (int k = 0; k < LOOKUPS; k++) {
			n = (uint64_t)((unsigned __int128)next(&rng) * count >>
				       64);
			page = gsas_mmu_find(mmu, first + n + zero);
			/* 0, but only known when the look-up is over */
			zero = page != NULL ? (uintptr_t)page->region >> 63 : 0;
		}
		v[i] = (cpu() - t0) / LOOKUPS * 1e9;
		sink += zero;
	}
	return unm_median(v, PASSES);
}

/* The same loop, with a load in place of the look-up. */
static double load(uint64_t count)
{
	uint64_t *table = unm_alloc(count * sizeof(struct gsas_page));
	uint64_t rng = 1, zero = 0, n;
	double t0, v[PASSES];

	/* written, or all of it would be one page of zeroes */
	for (uint64_t i = 0; i < count * 3; i += 64)
		table[i] = 0;
	for (int i = 0; i < PASSES; i++) {
		t0 = cpu();
		for (int k = 0; k < LOOKUPS; k++) {
			n = (uint64_t)((unsigned __int128)next(&rng) * count >>
				       64);
			zero = table[(n + zero) * 3];
		}
		v[i] = (cpu() - t0) / LOOKUPS * 1e9;
		sink += zero;
	}
	free(table);
	return unm_median(v, PASSES);
}

static double mib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	return (double)pages * PAGE / UNM_MIB;
}

static struct gsas_mmu *new(void)
{
	struct gsas_mmu *mmu;

	if (gsas_mmu_new(0, &mmu)) {
		fprintf(stderr, "gsas_mmu: out of memory\n");
		exit(1);
	}
	return mmu;
}

static void insert(struct gsas_mmu *mmu, uint64_t i, uint64_t n)
{
	if (gsas_mmu_insert(mmu, BASE + i, n, (uint8_t *)((i + 1) * PAGE),
			    (struct gsas_region *)64)) {
		fprintf(stderr, "gsas_mmu: out of memory\n");
		exit(1);
	}
}

/* ns: in runs of so many pages */
static double fill(struct gsas_mmu *mmu, uint64_t count, uint64_t run)
{
	double t0 = cpu();

	for (uint64_t i = 0; i < count; i += run)
		insert(mmu, i, run);
	return (cpu() - t0) / (double)count * 1e9;
}

/* us: the longest of count insertions */
static double longest(uint64_t count)
{
	struct gsas_mmu *mmu = new();
	double t0, t1 = cpu(), most = 0;

	for (uint64_t i = 0; i < count; i++) {
		t0 = t1;
		insert(mmu, i, 1);
		t1 = cpu();
		if (t1 - t0 > most)
			most = t1 - t0;
	}
	gsas_mmu_free(mmu);
	return most * 1e6;
}

static void pages(uint64_t count)
{
	struct gsas_mmu *mmu = new();
	double in, run, out, hit, miss, before = mib(), size, t0;

	in = fill(mmu, count, 1);
	size = mib() - before;
	hit = look_up(mmu, BASE, count);
	miss = look_up(mmu, BASE + count, count);
	t0 = cpu();
	for (uint64_t i = 0; i < count; i++)
		gsas_mmu_remove(mmu, BASE + i, 1);
	out = (cpu() - t0) / (double)count * 1e9;
	run = fill(mmu, count, count);
	gsas_mmu_free(mmu);
	unm_row("mmu_find", count, hit, "ns");
	unm_row("mmu_absent", count, miss, "ns");
	unm_row("mmu_load", count, load(count), "ns");
	unm_row("mmu_insert", count, in, "ns");
	unm_row("mmu_insert_run", count, run, "ns");
	unm_row("mmu_remove", count, out, "ns");
	unm_row("mmu_longest", count, longest(count), "us");
	unm_row("mmu_table", count, size, "MiB");
}

int main(void)
{
	printf("# software MMU: by pages, of processor time; medians of %d "
	       "passes\n", PASSES);
	unm_row_header();
	for (uint64_t count = 1000; count <= 10000000; count *= 10)
		pages(count);
	return 0;
}
