/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_tagged.h - fi_tagged(3): the calls of an endpoint for tagged messages.
 * The alias of an endpoint has a table of its own (unm_alias.c). */
#ifndef UNM_TAGGED_H
#define UNM_TAGGED_H

#include <rdma/fi_tagged.h>

extern struct fi_ops_tagged unm_ops_tagged;

#endif /* UNM_TAGGED_H */
