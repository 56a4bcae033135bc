/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_log.c - warnings that reach the user whether libfabric's log is on or
 * off, and g_unm_prov, whose name the log's lines begin with. */
#include <stdarg.h>
#include <stdio.h>

#include "unm_log.h"
#include "unm_offer.h"

struct fi_provider g_unm_prov = {
	.version = UNM_VERSION,
	.name = UNM_NAME,
};

void unm_warn(int subsys, const char *func, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (fi_log_enabled(&g_unm_prov, FI_LOG_WARN, subsys))
		fi_log(&g_unm_prov, FI_LOG_WARN, subsys, func, line, "%s\n",
		       text);
	else
		fprintf(stderr, "unimem: %s\n", text);
}
