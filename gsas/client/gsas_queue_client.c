/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue_client.c - the calls of gsas.h for queues, by the handles of
 * gsas_queue_handle.c.
 *
 * A thread puts words in by posted ENQUEUE messages, at most as many as the
 * service granted. It takes words out of the queue's memory if that memory is
 * mapped (common/gsas_queue_take.c). Otherwise it requests them one by one, so
 * that no word is lost when the thread ends.
 *
 * A handle becomes a producer, with a window at the service, at its first
 * gsas_enqueue(). A thread that only takes words out needs no window.
 */
#include <errno.h>

#include "client/gsas_alloc.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_progress.h"
#include "client/gsas_queue_handle.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "client/gsas_window.h"
#include "common/gsas_queue_take.h"
#include "util/unm_clock.h"

#define TAKE_TRIES	16	/* attempts before a QUEUE_WAIT is sent */
#define WINDOW_LOW	8	/* words that may be sent: with no more of them
				 * poll for acknowledgements */
#define WAITS_MAX	128	/* QUEUE_WAIT requests under way on a
				 * connection: each occupies a tag until a word
				 * is put in */
#define POLL_NS		1000000	/* between polls of a queue without a
				 * QUEUE_WAIT under way */

int gsas_queue_create(uint64_t quota, uint32_t buffer, int board,
		      unsigned flags, const char *group, gsas_addr *addr)
{
	struct gsas_msg msg = {
		.opcode = GSAS_QUEUE_NEW,
		.arg1 = (uint64_t)buffer << 32 | quota,
	};

	if (quota == 0 || quota > GSAS_QUEUE_QUOTA_MAX || addr == NULL ||
	    (flags & GSAS_MAPPED) != 0)
		return -FI_EINVAL;
	return gsas_alloc_request(&msg, board, flags, group, addr);
}

/* ---- Handles ------------------------------------------------------------- */

/* Do a request whose only argument is the address of the queue. */
static int queue_request(struct gsas_conn *conn, uint8_t opcode,
			 gsas_addr address, uint64_t *result)
{
	struct gsas_msg msg = { .opcode = opcode, .address = address };
	struct gsas_request request;
	int ret = gsas_request_do(conn, &msg, &request);

	if (ret == 0)
		*result = request.result;
	return ret;
}

static int queue_new(struct gsas_conn *conn, gsas_addr address,
		     struct gsas_queue_handle **out)
{
	uint64_t result;
	/* Open and close a window, to check that there is a queue and that the
	 * job may use it. A thread may take words out even if the queue has too
	 * many producers (-EDQUOT) or no memory for more words (-FI_ENOMEM). */
	int ret = queue_request(conn, GSAS_QUEUE_OPEN, address, &result);

	if (ret == 0)
		ret = queue_request(conn, GSAS_QUEUE_CLOSE, address, &result);
	if (ret != 0 && ret != -EDQUOT && ret != -FI_ENOMEM)
		return ret;
	*out = gsas_handle_new(conn, conn->thread->number, address);
	return *out != NULL ? 0 : -FI_ENOMEM;
}

int gsas_queue_open(gsas_addr addr, struct gsas_queue_handle **out)
{
	struct gsas_queue_handle *q;
	struct gsas_conn *conn;
	int ret = gsas_conn_of(addr, &conn);

	if (ret != 0)
		return ret;
	q = gsas_handle_find(conn, addr);
	if (q == NULL)
		ret = queue_new(conn, addr, &q);
	if (ret != 0)
		return ret;
	q->refs++;
	*out = q;
	return 0;
}

/* Get the thread of a handle, which must be the calling one, and the connection
 * to the service that knows the queue. 0; -FI_EINVAL: the handle belongs to
 * another thread; -FI_ECONNRESET: that service has ended. */
static int queue_conn(struct gsas_queue_handle *q, struct gsas_thread **t,
		      struct gsas_conn **conn)
{
	int ret = gsas_thread_get(t);

	if (ret != 0)
		return ret;
	if (q->owner != (*t)->number)
		return -FI_EINVAL;
	if (q->conn->peer == NULL || q->conn->epoch != q->epoch)
		return -FI_ECONNRESET;
	*conn = q->conn;
	if (__builtin_expect(q->conn->bulk == NULL, 1))
		return 0;
	/* Wait until conn->bulk is sent. Meanwhile the service may end and
	 * another one be connected. */
	ret = gsas_conn_get(*t, q->conn->board, conn);
	return ret == 0 && q->conn->epoch != q->epoch ? -FI_ECONNRESET : ret;
}

void gsas_queue_close(struct gsas_queue_handle *q)
{
	struct gsas_thread *t;
	struct gsas_conn *conn;
	uint64_t result;

	if (q == NULL || gsas_thread_get(&t) != 0 || q->owner != t->number ||
	    --q->refs != 0)
		return;
	if ((q->producer || q->waits) && queue_conn(q, &t, &conn) == 0)
		(void)queue_request(conn, GSAS_QUEUE_CLOSE, q->address,
				    &result);
	if (q->waits)			/* the close makes the service answer */
		(void)gsas_request_wait(t, &q->wait);
	gsas_handle_free(q);
}

/* ---- Putting words in ---------------------------------------------------- */

/* Handle notifications about the window. If the thread may send no more words,
 * wait until the service grants more words, or notifies that the queue is full
 * or that there is no memory. 0: a word may be sent; -FI_EAGAIN: full;
 * -FI_ENOMEM; or the error of the queue or of the connection. */
static int check_window(struct gsas_queue_handle *q, struct gsas_thread *t)
{
	gsas_thread_progress(t);
	if (q->used == q->granted && unm_now_ns() >= t->next_events)
		gsas_thread_events(t);
	gsas_wait_begin(t);
	while (q->conn->peer != NULL && q->error == 0 && !q->full &&
	       q->used == q->granted)
		gsas_conn_wait_step(q->conn);
	if (q->conn->peer == NULL)
		return q->conn->closed_error;
	if (q->error != 0)
		return q->error;
	return q->used == q->granted ? q->full : 0;
}

static int become_producer(struct gsas_queue_handle *q,
			   struct gsas_conn *conn)
{
	uint64_t granted;
	int ret;

	q->granted = q->used = 0;
	q->full = 0;
	q->producer = true;	/* notifications may precede the answer */
	ret = queue_request(conn, GSAS_QUEUE_OPEN, q->address, &granted);
	if (ret == 0 && q->error == 0 && q->granted < granted)
		q->granted = granted;
	/* no place, unless a notification said that there is no memory */
	if (ret == 0 && q->granted == 0 && q->full == 0)
		q->full = -FI_EAGAIN;
	q->producer = ret == 0;
	return ret;
}

int gsas_enqueue(struct gsas_queue_handle *q, uint64_t word)
{
	struct gsas_msg msg = {
		.opcode = GSAS_ENQUEUE, .address = q->address, .arg1 = word,
	};
	struct gsas_thread *t;
	struct gsas_conn *conn;
	int ret = queue_conn(q, &t, &conn);

	if (ret != 0)
		return ret;
	if (__builtin_expect(!q->producer, 0))
		ret = become_producer(q, conn);
	if (ret == 0 && q->granted - q->used <= WINDOW_LOW)
		ret = check_window(q, t);
	if (ret != 0)
		return ret;
	/* Count the word first: gsas_conn_send() may wait, and meanwhile handle
	 * a notification that compares used with granted. */
	q->used++;
	ret = gsas_conn_send(conn, &msg, NULL);
	if (ret != 0)
		q->used--;
	return ret;
}

/* ---- Taking words out ---------------------------------------------------- */

static int take_by_packet(struct gsas_queue_handle *q,
			  struct gsas_conn *conn, uint64_t *word)
{
	uint64_t value;
	struct gsas_msg msg = {
		.opcode = GSAS_DEQUEUE, .address = q->address,
		.into = &value, .len = sizeof(value),
	};
	struct gsas_request request;
	int ret = gsas_space_wait(conn, 0, sizeof(value), &msg, NULL);

	if (ret != 0)
		return ret;
	msg.arg1 = (uint64_t)msg.off << 32 | 1;
	ret = gsas_request_do(conn, &msg, &request);
	if (ret == 0 && request.result == 0)
		ret = -FI_EAGAIN;
	if (ret == 0)
		*word = value;
	return ret;
}

/* Find the mapped memory of the queue. If it is mapped at another place than at
 * the last call, read the head again. *mapped false: it cannot be mapped. */
static int queue_view(struct gsas_queue_handle *q, struct gsas_thread *t,
		      bool *mapped)
{
	uint64_t left;
	void *at;
	int ret = gsas_window_queue(t, q->address, &at);

	*mapped = ret == 0 && at != NULL;
	if (!*mapped || at == (void *)q->view.head)
		return ret;
	left = gsas_segments_left(&t->segments, q->address, UINT64_MAX);
	return left == 0 ? -ESTALE : gsas_queue_view(at, left, &q->view);
}

/*
 * Notify the service that words were taken out, by a DEQUEUE of 0 words. The
 * request has a tag, although its answer is ignored: if the queue was just
 * freed, a posted one would count as a failure of posted requests. If there is
 * no tag or credit, the request is not sent: the service is then awake, and
 * checks its queues periodically.
 */
static void notify_service(struct gsas_queue_handle *q, struct gsas_conn *conn)
{
	struct gsas_msg msg = {
		.opcode = GSAS_DEQUEUE, .address = q->address,
	};

	if (conn->peer != NULL)
		gsas_conn_poll(conn);	/* answers to earlier requests */
	(void)gsas_conn_try_send(conn, &msg, &conn->ignored);
}

int gsas_dequeue(struct gsas_queue_handle *q, uint64_t *word)
{
	bool mapped, notify = false;
	struct gsas_thread *t;
	struct gsas_conn *conn;
	int ret = queue_conn(q, &t, &conn);

	if (ret == 0)
		ret = queue_view(q, t, &mapped);
	if (ret != 0)
		return ret;
	if (!mapped)
		return take_by_packet(q, conn, word);
	ret = gsas_queue_take(&q->view, word, &notify);
	if (ret == 0 && notify)
		notify_service(q, conn);
	if (ret == -FI_EAGAIN && unm_now_ns() >= t->next_events) {
		gsas_thread_progress(t);
		gsas_thread_events(t);
		if (conn->peer == NULL)
			return conn->closed_error;
	}
	return ret;
}

static bool may_wait(const struct gsas_conn *conn)
{
	const struct gsas_queue_handle *q;
	uint32_t waits = 0;

	for (q = conn->queues; q != NULL; q = q->next)
		waits += q->waits && q->wait.status == -FI_EINPROGRESS;
	return waits < WAITS_MAX;
}

/* Send a QUEUE_WAIT, which the service answers when a word is inside. If the
 * caller stops waiting before the answer, the next call for this queue waits
 * for the same request. A thread that waits at many queues in turn therefore
 * has one request under way for each, so may_wait() bounds their number.
 * -FI_EAGAIN: there was no free tag or credit before end, in ns. */
static int send_queue_wait(struct gsas_queue_handle *q, uint64_t end)
{
	struct gsas_msg msg = {
		.opcode = GSAS_QUEUE_WAIT, .address = q->address,
	};
	struct gsas_thread *t;
	struct gsas_conn *conn;
	int ret = queue_conn(q, &t, &conn);

	if (ret != 0 || q->waits || !may_wait(conn))
		return ret;
	gsas_request_begin(&q->wait, t->number);
	ret = gsas_conn_send_until(conn, &msg, &q->wait, end);
	q->waits = ret == 0;
	return ret;
}

/* Wait until the QUEUE_WAIT is answered; if may_wait() allows none, for
 * POLL_NS; in no case after end, in ns. Only a bulk request that this thread
 * began before may take longer to be sent (queue_conn()). 0: a word may be
 * inside; -FI_EAGAIN: check again, unless end has passed; or the error of the
 * queue or of the connection, which is -FI_ETIMEDOUT if the service is
 * stopped. */
static int await_word(struct gsas_queue_handle *q, uint64_t end)
{
	struct gsas_thread *t = q->conn->thread;
	int ret = send_queue_wait(q, end);
	uint64_t until = end, poll_end;

	if (ret != 0)
		return ret;
	poll_end = unm_now_ns() + POLL_NS;
	if (!q->waits && poll_end < end)
		until = poll_end;
	gsas_wait_begin(t);
	t->deadline = until;
	while ((!q->waits || q->wait.status == -FI_EINPROGRESS) &&
	       unm_now_ns() < until)
		gsas_wait_step(t);
	t->deadline = 0;
	if (!q->waits)
		return q->conn->peer != NULL ? -FI_EAGAIN :
			q->conn->closed_error;
	if (q->wait.status == -FI_EINPROGRESS)
		return -FI_EAGAIN;
	q->waits = false;
	return q->wait.status;
}

int gsas_dequeue_wait(struct gsas_queue_handle *q, uint64_t *word, int ms)
{
	uint64_t end = ms < 0 ? UINT64_MAX :
		unm_now_ns() + (uint64_t)ms * 1000000;
	int ret, last;

	for (;;) {
		for (int i = 0; i < TAKE_TRIES; i++) {
			ret = gsas_dequeue(q, word);
			if (ret != -FI_EAGAIN)
				return ret;
		}
		ret = await_word(q, end);
		if (ret == -FI_EAGAIN && unm_now_ns() >= end) {
			last = gsas_dequeue(q, word);
			return last != -FI_EAGAIN ? last : -FI_ETIMEDOUT;
		}
		if (ret != 0 && ret != -FI_EAGAIN)
			return ret;
	}
}
