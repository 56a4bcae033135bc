/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_alloc.h - the board and attributes of an allocation of memory or of a
 * queue. Private to libgsas.
 */
#ifndef GSAS_ALLOC_H
#define GSAS_ALLOC_H

#include <stdint.h>

struct gsas_conn;
struct gsas_thread;

/*
 * Check board, flags and group of gsas_alloc() or gsas_queue_create(), connect
 * to the board, and store the attributes of ALLOC or QUEUE_NEW at *attr. 0;
 * -FI_EINVAL; -EDQUOT: too many groups; errors of gsas_conn_get().
 */
int gsas_alloc_conn(struct gsas_thread *t, int board, unsigned flags,
		    const char *group, struct gsas_conn **conn,
		    uint64_t *attr);

#endif /* GSAS_ALLOC_H */
