/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_stat.h - functions of the bench programs that need no MPI: sizes,
 * medians, lines of results, pinning, memory with a guard and patterns in it.
 */
#ifndef UNM_STAT_H
#define UNM_STAT_H

#include <stddef.h>
#include <stdint.h>

#define UNM_KIB		((size_t)1024)
#define UNM_MIB		(1024 * UNM_KIB)

/* Bytes behind every buffer that a transport must leave alone. */
#define UNM_GUARD	64

/* Monotonic time in seconds. */
double unm_now(void);

/* Median of v[0..n-1]; sorts v. */
double unm_median(double *v, int n);

/* "64", "64K", "4M": 0 and *end behind the number, or -1. */
int unm_parse_size(const char *s, char **end, size_t *size);

/* Print one line of results. size is 0 where the test has none. */
void unm_row(const char *test, size_t size, double value, const char *unit);

/* Print the line above the results. */
void unm_row_header(void);

/* Bind the calling process to one core: 0 or -errno. */
int unm_pin(int core);

/* Page-aligned and zeroed, with UNM_GUARD guard bytes; exits on failure. */
void *unm_alloc(size_t size);

/* Fill size bytes, and the guard behind them, with the pattern of seed. */
void unm_fill(void *buf, size_t size, uint64_t seed);

/* Make size bytes, and the guard behind them, differ from any pattern. */
void unm_clear(void *buf, size_t size);

/*
 * Compare size bytes with the pattern of seed, and the guard with
 * what unm_clear() left: the offset of the first wrong byte, or -1.
 */
long unm_check(const void *buf, size_t size, uint64_t seed);

#endif
