/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_info.h - fi_getinfo(3): compares hints with what the provider offers
 * (unm_offer.h). */
#ifndef UNM_INFO_H
#define UNM_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* fi_getinfo(3). Returns 0 and one fi_info; -FI_ENODATA: the hints or addresses
 * cannot be met, or a parameter is bad (see the log); -FI_ENOMEM. */
int unm_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

/* True: an endpoint can be opened with this info, which the application may
 * have changed since fi_getinfo(3). False after a line in the log (info level)
 * that names the attribute. */
bool unm_info_offered(const struct fi_info *info);

#endif /* UNM_INFO_H */
