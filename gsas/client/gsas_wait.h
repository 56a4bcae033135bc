/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_wait.h - all that waits: for an event, an answer, a free tag, free units
 * of a receive space. Private to libgsas.
 *
 * A connection may be closed, and an entry of the thread's segments evicted, in
 * each call below: the caller checks afterwards whether conn->peer is NULL.
 */
#ifndef GSAS_WAIT_H
#define GSAS_WAIT_H

#include <stdint.h>

#include "client/gsas_thread.h"

struct gsas_conn;
struct gsas_msg;
struct gsas_request;

/* One step of waiting: poll; after polls in vain yield the processor, then
 * sleep until an event. Call gsas_wait_begin() before the first step. */
void gsas_wait_step(struct gsas_thread *t);
static inline void gsas_wait_begin(struct gsas_thread *t)
{
	t->polls = 0;
	t->begins = true;
}

/* One poll, which does not wait, except for the end of a connection whose time
 * is over. Of the time since the last poll, 1 ms at most counts for
 * GSAS_TIMEOUT: the caller may have computed. Returns whether requests may have
 * completed. */
bool gsas_poll_step(struct gsas_thread *t);

/* As gsas_wait_step(), in a wait for this service. The time of the step counts
 * for GSAS_TIMEOUT although perhaps no request is pending: the thread waits for
 * a tag, a credit, the window of a queue, or the HAL's import of memory. */
void gsas_conn_wait_step(struct gsas_conn *conn);

/*
 * Send a message; if there is no free tag or credit, wait for one until end, in
 * ns. The answer completes request; NULL: a posted message, which is not
 * answered. 0: sent; -FI_EAGAIN: not sent, and end has passed; -FI_ECONNRESET,
 * -FI_ETIMEDOUT: the connection is closed.
 */
int gsas_conn_send_until(struct gsas_conn *conn, const struct gsas_msg *msg,
			 struct gsas_request *request, uint64_t end);

/* The same without an end. */
static inline int gsas_conn_send(struct gsas_conn *conn,
				 const struct gsas_msg *msg,
				 struct gsas_request *request)
{
	return gsas_conn_send_until(conn, msg, request, UINT64_MAX);
}

/* Make progress until the request is complete. Returns its status. */
int gsas_request_wait(struct gsas_thread *t, struct gsas_request *request);

/* Begin a request, send its message, wait. Returns its status, or the error of
 * gsas_conn_send(); result and more are in the request if it is 0. */
int gsas_request_do(struct gsas_conn *conn, const struct gsas_msg *msg,
		    struct gsas_request *request);

/*
 * Allocate units for a message, waiting until they are free: in bytes of the
 * service's space, whose offset is stored at *at, and out bytes of the local
 * space, whose offset is stored at msg->off; 0: none. 0, or conn->closed_error.
 */
int gsas_space_wait(struct gsas_conn *conn, uint32_t in, uint32_t out,
		    struct gsas_msg *msg, uint32_t *at);

#endif /* GSAS_WAIT_H */
