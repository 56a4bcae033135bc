/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_gauge.h - the gauges in an endpoint's statistics page: queue lengths,
 * credits and ages of operations, which unimem_info(1) prints. */
#ifndef UNM_GAUGE_H
#define UNM_GAUGE_H

#include <stdint.h>

struct unm_ep;

/* Update all gauges of an endpoint. now_us: unm_now_us(), microseconds. The
 * domain is locked. A call examines a bounded number of operations. */
void unm_gauge_refresh(struct unm_ep *ep, uint64_t now_us);

#endif /* UNM_GAUGE_H */
