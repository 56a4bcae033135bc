/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_gauge.h - queues, credits and ages of operations, for unimem_info. */
#ifndef UNM_GAUGE_H
#define UNM_GAUGE_H

#include <stdint.h>

struct unm_ep;

/* Queues, credits and ages, for unimem_info. */
void unm_levels_refresh(struct unm_ep *ep, uint64_t now_us);

#endif /* UNM_GAUGE_H */
