/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_progress.h - progress of a thread: receives what services sent, sends
 * what was blocked, closes connections. Nothing here waits. Private to libgsas.
 */
#ifndef GSAS_PROGRESS_H
#define GSAS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct gsas_conn;
struct gsas_thread;

/* Poll all connections once and send what was blocked. Returns whether anything
 * was received or sent. */
bool gsas_thread_progress(struct gsas_thread *t);

/* Handle events of the interface: services that ended. A system call, so it is
 * done when t->next_events has come, not at each poll. */
void gsas_thread_events(struct gsas_thread *t);

/* Handle answers that have arrived, a bounded number. Returns whether there
 * were any. Closes the connection after a protocol error. */
bool gsas_conn_poll(struct gsas_conn *conn);

/*
 * Account for ns nanoseconds of waiting. If the thread waits for this service,
 * half of its timeout without an answer sends a probe, and all of the timeout
 * closes the connection with -FI_ETIMEDOUT, but never in the call that sends
 * the probe. The timeout is not 0. Returns whether answers were handled or the
 * connection was closed: requests may have completed, so the caller must not
 * sleep.
 */
bool gsas_conn_check_timeout(struct gsas_conn *conn, uint64_t ns);

/* Complete all pending requests with conn->closed_error, unmap the segments of
 * the service, free the peer. */
void gsas_conn_close(struct gsas_conn *conn);

#endif /* GSAS_PROGRESS_H */
