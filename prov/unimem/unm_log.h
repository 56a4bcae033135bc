/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_log.h - writing to libfabric's log: one line for each fact. Applications
 * repeat calls that return -FI_EAGAIN: they write none, except the first one of
 * a shortage of memory or descriptors. */
#ifndef UNM_LOG_H
#define UNM_LOG_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* The provider as libfabric sees it: the log takes the name from it, and
 * fi_prov_ini() sets its calls. */
extern struct fi_provider g_unm_prov;

/*
 * Report a failure that the user can do something about. The format makes one
 * line, without a newline. The line is written to stderr if libfabric's log is
 * off at this level, which is the default (FI_LOG_LEVEL is not set).
 */
#define UNM_WARN(subsys, ...) \
	unm_warn(FI_LOG_##subsys, __func__, __LINE__, __VA_ARGS__)
void unm_warn(int subsys, const char *func, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

/* A line for FI_LOG_LEVEL=info, which ends with a newline. */
#define UNM_INFO(subsys, ...) \
	FI_INFO(&g_unm_prov, FI_LOG_##subsys, __VA_ARGS__)

#endif /* UNM_LOG_H */
