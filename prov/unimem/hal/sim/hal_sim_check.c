/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_check.c - ends a process that does to the register model what the
 * hardware would not survive.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hal/sim/hal_sim_check.h"

void sim_misuse(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	hal_log(0, "register model: %s", line);
	abort();
}

void sim_start(struct sim_mm *mm, const char *what)
{
	if (!mm->ready)
		sim_misuse("%s without memory_before_start() since the last "
			   "start: it may arrive before the data that it "
			   "announces",
			   what);
	mm->ready = false;
}

void sim_access(const struct sim_mm *mm)
{
	if (mm->unseen)
		sim_misuse("a packet, or that a transfer is over, was read, "
			   "and another access follows without "
			   "status_before_memory()");
}
