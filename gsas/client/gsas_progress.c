/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_progress.c - polls the connections of a thread: hands answers and
 * notifications to the requests and queues that they are for, sends further
 * parts of long GETs and PUTs, closes connections whose service ended.
 *
 * It includes the modules that a packet may concern; none of them includes it.
 * Nothing here waits, so there is no recursion.
 */
#include "client/gsas_bulk.h"
#include "client/gsas_conn.h"
#include "client/gsas_log.h"
#include "client/gsas_progress.h"
#include "client/gsas_queue_handle.h"
#include "client/gsas_thread.h"
#include "util/unm_clock.h"

#define BURST		64		/* answers in a row */
#define EVENTS_MAX	64		/* events read at once */
#define EVENTS_NS	20000		/* between reads of HAL events */

/* ---- Packets ------------------------------------------------------------- */

/* Handle a packet of the service. false: protocol error. */
static bool take_packet(struct gsas_conn *conn, const struct hal_cell *cell,
			uint64_t head)
{
	if (hal_head_flags(head) != GSAS_TAG_POSTED ||
	    hal_head_type(head) != GSAS_ENQUEUE)
		return gsas_conn_answer(conn, cell, head);
	gsas_handle_notified(conn, hal_cell_word(cell, 2),
			     gsas_errno(hal_cell_word(cell, 0)),
			     hal_cell_word(cell, 1));
	return true;
}

bool gsas_conn_poll(struct gsas_conn *conn)
{
	struct hal_peer *peer = conn->peer;
	const struct hal_cell *cell;
	bool valid = true;
	uint64_t head;
	int n = 0;

	if (peer->rx.cells == NULL)
		return false;
	while (n < BURST && valid &&
	       (cell = hal_rx_peek(peer, &head)) != NULL) {
		valid = take_packet(conn, cell, head);
		hal_rx_release(peer);
		n++;
	}
	if (n == 0)
		return false;
	conn->waited = 0;
	conn->probed = false;
	hal_rx_flush(peer);
	if (!valid)
		gsas_conn_close(conn);
	return true;
}

bool gsas_thread_progress(struct gsas_thread *t)
{
	bool moved = false;

	hal_if_pump(t->hif);
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->peer == NULL)
			continue;
		moved |= gsas_conn_poll(conn);
		if (conn->bulk != NULL)
			moved |= gsas_bulk_progress(conn);
	}
	return moved;
}

/* ---- Closing ------------------------------------------------------------- */

void gsas_conn_close(struct gsas_conn *conn)
{
	struct hal_peer *peer = conn->peer;

	gsas_segments_release(&conn->thread->segments, conn);
	gsas_conn_detach(conn);
	if (conn->bulk != NULL)
		gsas_bulk_end(conn, conn->closed_error);
	hal_peer_free(peer);
}

/* The HAL reports the end of the service (status: -errno). */
static void service_ended(struct gsas_conn *conn, int status)
{
	/* answers that the service sent before its end are valid */
	while (conn->peer != NULL && gsas_conn_poll(conn))
		;
	conn->status = status;
	if (conn->peer != NULL)
		gsas_conn_close(conn);
}

/* Events are read one at a time, because handling an event may free a peer that
 * has further events. */
void gsas_thread_events(struct gsas_thread *t)
{
	struct hal_event ev;

	t->next_events = unm_now_ns() + EVENTS_NS;
	for (int i = 0; i < EVENTS_MAX && hal_if_service(t->hif, &ev, 1) == 1;
	     i++) {
		struct gsas_conn *conn = ev.peer->user;

		/* only services connect to a client: refuse this peer */
		if (conn == NULL)
			hal_peer_free(ev.peer);
		else if (ev.type == HAL_EV_DEAD)
			service_ended(conn, ev.status);
	}
}

/* ---- A service that is stopped -------------------------------------------
 *
 * A service answers each request in bounded time, except ALLOC, FORK and
 * QUEUE_NEW, which may take long, a FENCE that waits for such a request, and
 * QUEUE_WAIT. So if no answer arrives for half of the time limit, the client
 * sends a probe: a request that every service answers at once, unless the
 * request is behind such a FENCE. No call of libgsas sends a FENCE while the
 * thread waits for ALLOC, FORK or QUEUE_NEW. If no answer arrives in the other
 * half, the service is stopped.
 */

/* Does the thread wait for the service? */
static bool conn_waits(const struct gsas_conn *conn)
{
	return conn->nfree != GSAS_TAGS || conn->bulk != NULL || conn->blocked;
}

bool gsas_conn_check_timeout(struct gsas_conn *conn, uint64_t ns)
{
	/* a group without a name, which the service refuses */
	static const struct gsas_msg probe = { .opcode = GSAS_GROUP };
	uint64_t limit = conn->thread->timeout, before = conn->waited;

	if (!conn_waits(conn)) {
		conn->waited = 0;
		return false;
	}
	conn->waited += ns;
	/* A step may be as long as the limit. Close only if an earlier step
	 * tried to send a probe and its answer has not arrived meanwhile. */
	if (conn->waited >= limit && before >= limit / 2) {
		if (gsas_conn_poll(conn))
			return true;
		gsas_log("board %u: its service did not answer for %u ms "
			 "(GSAS_TIMEOUT); the connection is closed",
			 conn->board, (unsigned)(limit / 1000000));
		conn->closed_error = -FI_ETIMEDOUT;
		gsas_conn_close(conn);
		return true;
	}
	if (conn->waited >= limit / 2 && !conn->probed)
		conn->probed =
			gsas_conn_try_send(conn, &probe, &conn->ignored) == 0;
	return false;
}
