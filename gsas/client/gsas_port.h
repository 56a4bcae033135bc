/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_port.h - connections to the services of boards for a library of this
 * project that has an interface of its own, which belongs to no thread:
 * libunimem-rdma. libgsas.so exports these functions, but no installed header
 * declares them.
 *
 * A port is a struct gsas_thread that one thread at a time uses. The caller
 * knows the HAL: it uses the interface port->hif and, while it is not NULL,
 * the peer conn->peer. conn->epoch changes when the connection is made anew.
 */
#ifndef GSAS_PORT_H
#define GSAS_PORT_H

#include "client/gsas_conn.h"
#include "client/gsas_request.h"
#include "client/gsas_thread.h"
#include "common/gsas_pkt.h"

/* Open an interface of a board (-1: the own one). version: PACKAGE_VERSION of
 * the caller, which must be that of libgsas, because both access the structures
 * of the port. 0, or an error that was logged: -ELIBBAD: the versions differ;
 * see gsas_thread_get(). */
GSAS_API int gsas_port_open(const char *version, int board,
			    struct gsas_thread **port);

/* Close the interface. The services then free what it owns. */
GSAS_API void gsas_port_close(struct gsas_thread *port);

/* The connection to a board. Errors as gsas_conn_get(). May wait. */
GSAS_API int gsas_port_conn(struct gsas_thread *port, int board,
			    struct gsas_conn **conn);

/* Send a message and wait for its answer, with msg->len bytes of data for
 * msg->into, to which arg2 refers then. Returns the status of the request. */
GSAS_API int gsas_port_ask(struct gsas_conn *conn, struct gsas_msg *msg,
			   struct gsas_request *request);

/* Send a message whose answer has no data, and do not wait: request->status is
 * -FI_EINPROGRESS until it is answered. 0; -FI_EAGAIN: not now; the error of
 * the connection. */
GSAS_API int gsas_port_begin(struct gsas_conn *conn,
			     const struct gsas_msg *msg,
			     struct gsas_request *request);

/*
 * Receive what has arrived, and handle services that have ended. Never waits.
 * Returns whether anything has arrived. Closes the connection to a service
 * that has not answered for the time limit (GSAS_TIMEOUT), which completes its
 * pending requests with -FI_ETIMEDOUT. Time counts only while the port is
 * polled: at most 1 ms between two calls.
 */
GSAS_API bool gsas_port_progress(struct gsas_thread *port);

#endif /* GSAS_PORT_H */
