// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_handover.c - the time of a cache-line transfer between two processes; see
 * unm_handover.h.
 *
 * One process runs unm_handover_echo(), the other one of the two functions that
 * measure. unm_proc.c starts and ends the processes.
 */
#include "unm_handover.h"
#include "unm_proc.h"
#include "unm_stat.h"

#define ROUNDS		64		/* between two readings of the clock */
#define READINGS	8192		/* of unm_handover_quick_ns() */

/* Without this instruction the core has many loads of the word in flight, and
 * cancels them all when another core writes the word. */
static void relax(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void unm_handover_echo(struct unm_handover *h)
{
	uint64_t n = 0;

	for (;;) {
		/* acquires the other's release in rounds() */
		while (atomic_load_explicit(&h->ping.v,
					    memory_order_acquire) == n)
			relax();
		n++;
		atomic_store_explicit(&h->pong.v, n, memory_order_release);
	}
}

static uint64_t rounds(struct unm_handover *h, uint64_t n)
{
	for (int i = 0; i < ROUNDS; i++) {
		n++;
		atomic_store_explicit(&h->ping.v, n, memory_order_release);
		/* acquires the other's release in unm_handover_echo() */
		while (atomic_load_explicit(&h->pong.v,
					    memory_order_acquire) != n)
			relax();
	}
	return n;
}

double unm_handover_ns(struct unm_handover *h, double pass_s)
{
	uint64_t n = rounds(h, 0), first;
	double t0, t, v[UNM_PASSES];

	for (int i = 0; i < UNM_PASSES; i++) {
		first = n;
		t0 = unm_now();
		do {
			n = rounds(h, n);
			t = unm_now() - t0;
		} while (t < pass_s);
		v[i] = t / (double)(n - first) * 1e9;
	}
	return unm_median(v, UNM_PASSES);
}

double unm_handover_quick_ns(struct unm_handover *h, double seconds)
{
	static double v[READINGS];
	uint64_t n = rounds(h, 0);
	double t0 = unm_now(), end = t0 + seconds, t;
	int count = 0;

	do {
		n = rounds(h, n);
		t = unm_now();
		v[count++] = (t - t0) / ROUNDS * 1e9;
		t0 = t;
	} while (t < end && count < READINGS);
	(void)unm_median(v, count);	/* sorts */
	return v[count / 4];
}
