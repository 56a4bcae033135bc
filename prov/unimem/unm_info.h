/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_info.h - fi_getinfo(3): hints are compared with what the provider offers
 * (unm_offer.h). */
#ifndef UNM_INFO_H
#define UNM_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

int unm_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

/* Is what an endpoint shall be still what we offer? Applications change the
 * answer of unm_getinfo(). Says what is not. */
bool unm_info_offered(const struct fi_info *info);

#endif /* UNM_INFO_H */
