/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_log.c - writes the log lines of libgsas to stderr.
 */
#include <stdarg.h>
#include <stdio.h>

#include "client/gsas_log.h"

void gsas_log(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "gsas: %s\n", line);
}
