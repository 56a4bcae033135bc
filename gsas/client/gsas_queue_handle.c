/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_handle.c - the handles of open queues: finds, makes and frees
 * them, and takes the notifications of the service. It sends nothing.
 */
#include <stdlib.h>

#include "client/gsas_conn.h"
#include "client/gsas_queue_handle.h"

struct gsas_queue_handle *gsas_handle_find(const struct gsas_conn *conn,
					   uint64_t address)
{
	struct gsas_queue_handle *q = conn->queues;

	while (q != NULL && (q->address != address || q->epoch != conn->epoch))
		q = q->next;
	return q;
}

struct gsas_queue_handle *gsas_handle_new(struct gsas_conn *conn,
					  uint64_t owner, uint64_t address)
{
	struct gsas_queue_handle *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->owner = owner;
	q->address = address;
	q->conn = conn;
	q->epoch = conn->epoch;
	q->next = conn->queues;
	conn->queues = q;
	return q;
}

void gsas_handle_free(struct gsas_queue_handle *q)
{
	struct gsas_queue_handle **at = &q->conn->queues;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	free(q);
}

void gsas_handle_free_all(struct gsas_conn *conn)
{
	while (conn->queues != NULL)
		gsas_handle_free(conn->queues);
}

void gsas_handle_notified(struct gsas_conn *conn, uint64_t address, int error,
			  uint64_t words)
{
	struct gsas_queue_handle *q = gsas_handle_find(conn, address);

	if (q == NULL || !q->producer)
		return;
	if (error != 0 && error != -FI_EAGAIN && error != -FI_ENOMEM) {
		q->error = error;
		q->granted = q->used;	/* gsas_enqueue() returns the error */
		return;
	}
	if (q->granted < words)
		q->granted = words;
	q->full = error;
}
