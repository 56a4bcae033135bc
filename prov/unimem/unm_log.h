/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_log.h - libfabric's log, one line a fact, never on the -FI_EAGAIN path.
 * */
#ifndef UNM_LOG_H
#define UNM_LOG_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* The name that each line begins with. fi_prov_ini() sets the calls. */
extern struct fi_provider g_unm_prov;

/*
 * Something failed and the user can do something: one line, without its end. To
 * stderr where libfabric's log is off, as it is unless FI_LOG_LEVEL is set.
 */
#define UNM_WARN(subsys, ...) \
	unm_warn(FI_LOG_##subsys, __func__, __LINE__, __VA_ARGS__)
void unm_warn(int subsys, const char *func, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

#define UNM_INFO(subsys, ...) \
	FI_INFO(&g_unm_prov, FI_LOG_##subsys, __VA_ARGS__)

#endif /* UNM_LOG_H */
