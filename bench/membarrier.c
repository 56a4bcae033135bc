// SPDX-License-Identifier: BSD-2-Clause
/*
 * membarrier.c - does a barrier of the kernel reach a processor on which a
 * thread has ended?
 *
 * The emulation lets a sleeper call membarrier(2) with
 * MEMBARRIER_CMD_GLOBAL_EXPEDITED instead of a fence in each sender. Linux
 * (seen on 6.18) leaves out a processor after a thread of the process has ended
 * there, until another process runs there; docs/memory-ordering.md says why,
 * and what the emulation does about it.
 *
 * A thread spins on processor 1, and processor 0 takes the time of barriers: a
 * barrier that interrupts the other processor takes longer. Wants an idle
 * machine, as any other process on processor 1 makes the kernel notice.
 */
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	2001

static _Atomic int running, over;

static void on_processor(int n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		perror("membarrier: processors 0 and 1 are needed");
		exit(77);
	}
}

static void *end_at_once(void *arg)
{
	on_processor(1);
	return arg;
}

static void *spin(void *arg)
{
	on_processor(1);
	atomic_store(&running, 1);
	while (!atomic_load(&over))
		;
	return arg;
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

/* Median time of a barrier in us, while the thread spins. */
static double barrier_us(int command)
{
	static double us[ROUNDS];
	pthread_t thread;

	atomic_store(&running, 0);
	atomic_store(&over, 0);
	if (pthread_create(&thread, NULL, spin, NULL) != 0)
		exit(1);
	while (!atomic_load(&running))
		;
	for (int i = 0; i < ROUNDS; i++) {
		double from = now_us();

		syscall(SYS_membarrier, command, 0, 0);
		us[i] = now_us() - from;
	}
	atomic_store(&over, 1);
	pthread_join(thread, NULL);
	qsort(us, ROUNDS, sizeof(us[0]), by_value);
	return us[ROUNDS / 2];
}

int main(void)
{
	double before, after;
	pthread_t thread;

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0,
		    0) != 0) {
		perror("membarrier: the kernel has none");
		return 77;
	}
	on_processor(0);
	before = barrier_us(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	/* that thread has ended on processor 1; so does this one */
	if (pthread_create(&thread, NULL, end_at_once, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	after = barrier_us(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	printf("a barrier takes %.2f us, and %.2f us after a thread has ended: "
	       "%s\n", before, after, after < before / 2 ?
	       "the processor is left out" : "the processor is reached");
	return 0;
}
