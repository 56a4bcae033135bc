// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_stat.c - functions of the bench programs that need no MPI; see
 * unm_stat.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unm_stat.h"

#define GUARD_BYTE	0x5a

double unm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double unm_median(double *v, int n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	if (n % 2)
		return v[n / 2];
	return (v[n / 2 - 1] + v[n / 2]) / 2;
}

int unm_parse_size(const char *s, char **end, size_t *size)
{
	unsigned long long n;

	if (*s < '0' || *s > '9')
		return -1;
	errno = 0;
	n = strtoull(s, end, 10);
	if (errno || n > (1ull << 40))
		return -1;
	switch (**end) {
	case 'k':
	case 'K':
		n *= UNM_KIB;
		++*end;
		break;
	case 'm':
	case 'M':
		n *= UNM_MIB;
		++*end;
		break;
	default:
		break;
	}
	*size = n;
	return 0;
}

void unm_row(const char *test, size_t size, double value, const char *unit)
{
	printf("%-19s %-10zu%14.3f %s\n", test, size, value, unit);
	fflush(stdout);
}

void unm_row_header(void)
{
	printf("%-19s %-10s%14s %s\n", "# Test", "Size", "Value", "Unit");
}

int unm_pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

void *unm_alloc(size_t size)
{
	void *p;

	if (posix_memalign(&p, sysconf(_SC_PAGESIZE), size + UNM_GUARD)) {
		fprintf(stderr, "bench: no memory for %zu bytes\n", size);
		exit(1);
	}
	memset(p, 0, size + UNM_GUARD);
	return p;
}

static uint64_t pattern(uint64_t word, uint64_t seed)
{
	uint64_t x = (word + 1) * 0x9e3779b97f4a7c15ull;

	x ^= seed * 0xd1b54a32d192ed03ull;
	return x ^ (x >> 29);
}

void unm_fill(void *buf, size_t size, uint64_t seed)
{
	char *p = buf;
	uint64_t v;
	size_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		v = pattern(i / 8, seed);
		memcpy(p + i, &v, 8);
	}
	v = pattern(i / 8, seed);
	memcpy(p + i, &v, size - i);
	memset(p + size, ~GUARD_BYTE & 0xff, UNM_GUARD);
}

void unm_clear(void *buf, size_t size)
{
	unm_fill(buf, size, ~0ull);
	memset((char *)buf + size, GUARD_BYTE, UNM_GUARD);
}

static long check_bytes(const char *p, size_t from, size_t to, uint64_t seed)
{
	uint64_t v;
	size_t i;

	for (i = from; i < to; i++) {
		v = pattern(i / 8, seed);
		if (memcmp(p + i, (char *)&v + i % 8, 1))
			return (long)i;
	}
	return -1;
}

long unm_check(const void *buf, size_t size, uint64_t seed)
{
	const char *p = buf;
	uint64_t v;
	size_t i;
	long bad;

	for (i = 0; i + 8 <= size; i += 8) {
		v = pattern(i / 8, seed);
		if (memcmp(p + i, &v, 8))
			break;
	}
	bad = check_bytes(p, i, i + 8 <= size ? i + 8 : size, seed);
	if (bad >= 0)
		return bad;
	for (i = size; i < size + UNM_GUARD; i++)
		if (p[i] != GUARD_BYTE)
			return (long)i;
	return -1;
}
