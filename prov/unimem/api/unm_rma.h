/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_rma.h - fi_rma(3): the calls of an endpoint for reads and writes. The
 * alias of an endpoint has a table of its own (unm_alias.c). */
#ifndef UNM_RMA_H
#define UNM_RMA_H

#include <rdma/fi_rma.h>

extern struct fi_ops_rma unm_ops_rma;

#endif /* UNM_RMA_H */
