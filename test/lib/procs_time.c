/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs_time.c - check "within a second" on a busy machine, see procs.h
 *
 * A limit of wall-clock time fails on a busy machine, and a retry would hide
 * rare faults. The check therefore subtracts the time for which the processes
 * waited for a processor, as /proc/thread-self/schedstat reports it.
 */
#include <stdio.h>

#include "lib/procs.h"

/* The time for which this thread was ready to run and waited for a processor,
 * in microseconds since its start; 0 if the kernel does not report it. */
static uint64_t waited(void)
{
	unsigned long long ran, ns = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu %llu", &ran, &ns) != 2)
		ns = 0;
	fclose(f);
	return ns / 1000;
}

void procs_note_waited(void)
{
	uint64_t us = waited(), most = g_shared->waited;

	while (us > most &&
	       !atomic_compare_exchange_weak(&g_shared->waited, &most, us))
		;
}

void procs_within_a_second(uint64_t (*attempt)(void *arg), void *arg)
{
	uint64_t limit = (uint64_t)procs_number("UNM_TEST_TIME", 1) *
			 PROCS_SECOND;
	uint64_t before = waited(), us, lost;

	g_shared->waited = 0;
	us = attempt(arg);
	lost = waited() - before + g_shared->waited;
	CHECK_MSG(us <= limit + lost, "%llu us, of which %llu on the run queue "
		  "at most: more than %llu", (unsigned long long)us,
		  (unsigned long long)lost, (unsigned long long)limit);
}
