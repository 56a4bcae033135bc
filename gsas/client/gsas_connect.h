/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_connect.h - the connection of a thread to a board, connected and ready
 * for the next request. Private to libgsas.
 */
#ifndef GSAS_CONNECT_H
#define GSAS_CONNECT_H

#include <stdint.h>

struct gsas_conn;
struct gsas_thread;

/*
 * The connection to a board (0 .. boards - 1). Connects and sends JOIN if
 * needed, starting the service of an emulated board of this host; sends groups
 * that the service does not know; waits until conn->bulk is sent. 0; -ENXIO: no
 * such board; -FI_EHOSTUNREACH: its host does not answer; -FI_ECONNREFUSED,
 * -FI_EACCES, -FI_ETIMEDOUT, -FI_ENOMEM and others.
 */
int gsas_conn_get(struct gsas_thread *t, int board, struct gsas_conn **conn);

/* Begin to connect to a board, and wait for nothing: gsas_conn_get() waits. So
 * a caller waits for several hosts that do not answer at once. Errors as
 * gsas_conn_get(), and -FI_EAGAIN; after each the caller may call that. */
int gsas_conn_begin(struct gsas_thread *t, int board);

/* The connection of the calling thread to the board of an address. Errors as
 * gsas_thread_get() and gsas_conn_get(), but -FI_EFAULT: the address belongs to
 * no board. */
int gsas_conn_of(uint64_t address, struct gsas_conn **conn);

#endif /* GSAS_CONNECT_H */
