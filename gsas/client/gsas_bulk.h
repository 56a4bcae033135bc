/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_bulk.h - GET and PUT requests of any size, sent in several messages.
 * Private to libgsas.
 */
#ifndef GSAS_BULK_H
#define GSAS_BULK_H

#include <stdbool.h>

struct gsas_conn;
struct gsas_request;

/* Send the first messages of a request, as far as possible without waiting.
 * Its put, address, at and whole are set; conn->bulk is NULL. */
void gsas_bulk_begin(struct gsas_conn *conn, struct gsas_request *request);

/* Send the next messages of conn->bulk (not NULL), as many as there are tags,
 * units and credits for. Returns whether any was sent or the request ended. */
bool gsas_bulk_progress(struct gsas_conn *conn);

/* Send no further message of conn->bulk. error: 0 or -errno; the request
 * completes when the messages under way are answered. */
void gsas_bulk_end(struct gsas_conn *conn, int error);

#endif /* GSAS_BULK_H */
