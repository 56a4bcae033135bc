/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_alloc.h - allocations, of memory or of a queue. Private to libgsas.
 */
#ifndef GSAS_ALLOC_H
#define GSAS_ALLOC_H

#include <stdint.h>

struct gsas_msg;

/*
 * Do ALLOC or QUEUE_NEW: opcode and arg1 of the message are set. board, flags,
 * group and addr as for gsas_alloc() and gsas_queue_create(). 0; -FI_EINVAL;
 * -EDQUOT: too many groups; errors of gsas_conn_get() and of the request.
 */
int gsas_alloc_request(struct gsas_msg *msg, int board, unsigned flags,
		       const char *group, uint64_t *addr);

#endif /* GSAS_ALLOC_H */
