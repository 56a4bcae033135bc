/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_pid.c - the id of this process, read from memory.
 *
 * Entry point: hal_pid(). The id is in a page that the kernel zeroes in a
 * forked child (MADV_WIPEONFORK, since Linux 4.14). Where it refuses that, each
 * call is a system call. (qemu-user 7.2 reports success without doing it, so a
 * forked child has its parent's id there.) A handler of fork() would be
 * process-wide, and would stay behind when the library is unloaded.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/hal_pid.h"

#define PAGE	4096

/* Whole pages of zeroed data, which are anonymous memory. Kernels with larger
 * pages would zero other variables too, so hal_pid() leaves them alone. */
static union {
	_Atomic int id;			/* 0: not known in this process */
	char page[PAGE];
} g_self __attribute__((aligned(PAGE)));

static atomic_bool g_refused;		/* the kernel does not zero g_self */

static pid_t learn(void)
{
	pid_t id = getpid();

	/* relaxed, here and below: the words order nothing else */
	if (atomic_load_explicit(&g_refused, memory_order_relaxed))
		return id;
	if (sysconf(_SC_PAGESIZE) == PAGE &&
	    madvise(&g_self, sizeof(g_self), MADV_WIPEONFORK) == 0)
		atomic_store_explicit(&g_self.id, (int)id,
				      memory_order_relaxed);
	else
		atomic_store_explicit(&g_refused, true, memory_order_relaxed);
	return id;
}

pid_t hal_pid(void)
{
	int id = atomic_load_explicit(&g_self.id, memory_order_relaxed);

	return id != 0 ? (pid_t)id : learn();
}
