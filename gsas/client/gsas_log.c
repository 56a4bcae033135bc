/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_log.c - writes the log lines of libgsas to stderr, unless GSAS_LOG is 0;
 * then the lines of the HAL are discarded as well.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_log.h"
#include "hal/hal.h"

static bool off;

static void discard(int level, const char *line)
{
	(void)level;
	(void)line;
}

/* A provider in the same process that is loaded later sends the lines of the
 * HAL to libfabric's log. */
__attribute__((constructor))
static void load(void)
{
	const char *text = getenv("GSAS_LOG");

	if (text == NULL || *text == '\0' || strcmp(text, "1") == 0)
		return;
	if (strcmp(text, "0") != 0) {
		gsas_log("GSAS_LOG=%s: use 0 for no lines, 1 for errors", text);
		return;
	}
	off = true;
	hal_log_set(discard);
}

void gsas_log(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (off)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "gsas: %s\n", line);
}
