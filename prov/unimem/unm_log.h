/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_log.h - libfabric's log, one line a fact, never on the -FI_EAGAIN path.
 * */
#ifndef UNM_LOG_H
#define UNM_LOG_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider g_unm_prov;

#define UNM_WARN(subsys, ...) \
	FI_WARN(&g_unm_prov, FI_LOG_##subsys, __VA_ARGS__)
#define UNM_INFO(subsys, ...) \
	FI_INFO(&g_unm_prov, FI_LOG_##subsys, __VA_ARGS__)

#endif /* UNM_LOG_H */
