/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_log.c - passes the log lines of the HAL to the function that its user has
 * set, or to stderr.
 *
 * Entry points: hal_log_set(), hal_log_lower(), hal_log(),
 * hal_log_advice().
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "hal/hal_log.h"

static _Atomic(hal_log_fn) g_log;
static _Atomic(uintptr_t) g_lower;	/* thread of hal_log_lower(); 0: none.
					 * (A thread-local variable may call
					 * malloc(), which may log.) */

void hal_log_set(hal_log_fn fn)
{
	/* pairs with the acquire in hal_log() */
	atomic_store_explicit(&g_log, fn, memory_order_release);
}

void hal_log_lower(bool on)
{
	/* relaxed: a thread that compares the value with its own number finds
	 * what it stored itself, or the number of another thread */
	atomic_store_explicit(&g_lower, on ? (uintptr_t)pthread_self() : 0,
			      memory_order_relaxed);
}

void hal_log(int level, const char *fmt, ...)
{
	/* pairs with the release in hal_log_set() */
	hal_log_fn fn = atomic_load_explicit(&g_log, memory_order_acquire);
	int saved = errno;
	char line[512];
	va_list ap;

	/* relaxed: see hal_log_lower() */
	if (level == 0 && atomic_load_explicit(&g_lower, memory_order_relaxed)
	    == (uintptr_t)pthread_self())
		level = 1;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (fn != NULL)
		fn(level, line);
	else if (level == 0)		/* without a function: errors only */
		fprintf(stderr, "unimem: %s\n", line);
	errno = saved;
}

const char *hal_log_advice(int err, const char *otherwise)
{
	return err == -EMFILE ? " (RLIMIT_NOFILE): raise it with ulimit -n" :
	       otherwise;
}
