/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_msg.h - fi_msg(3): the calls of an endpoint for untagged messages. The
 * alias of an endpoint has a table of its own (unm_alias.c). */
#ifndef UNM_MSG_H
#define UNM_MSG_H

#include <rdma/fi_endpoint.h>

extern struct fi_ops_msg unm_ops_msg;

#endif /* UNM_MSG_H */
