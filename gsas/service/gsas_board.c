/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_board.c - runs the service core on the HAL: interface 0 of the board,
 * one connection for each client, the loop of polling and sleeping.
 *
 * A client is a peer object of interface 0, from the HAL's event that it has
 * connected to the event that it has ended; a peer that connects again is a new
 * client. Its requests are packets. Each packet is served in the ring and
 * released afterwards, so that its data in the local receive space is not
 * overwritten meanwhile. gsas_service.h executes the requests; docs/gsas.md
 * defines the protocol.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "hal/hal_limit.h"
#include "hal/hal_process.h"
#include "service/gsas_board.h"
#include "common/gsas_hold.h"
#include "service/gsas_memory.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

#define BURST		16		/* requests of one peer in a row */
#define HOT		16		/* peers polled in every round */
#define EVENTS		16		/* events read from the HAL at once */
#define CLOCK_IDLE	16		/* rounds without work between reads of
					 * the clock */
#define CLOCK_BUSY	64		/* the same for rounds with work */
#define EVENTS_NS	20000		/* between reads of HAL events */
#define RETRY_NS	1000000		/* between attempts to open a return
					 * path */
#define SLEEP_MAX_MS	4		/* longest sleep if the end of what the
					 * service waits for may cause no
					 * event */
#define SLEEP_BLOCKED_MS 64		/* longest sleep while a client has no
					 * credits */
#define READ_MAX	(UINT64_C(8) << 20)	/* see may_read() */
#define SHORT_READS	64		/* reads for which a check holds that
					 * finds less */
#define READ_PAGES	(2 * GSAS_BULK_MAX / 4096 + 2)	/* of one read: the
					 * operands of a compare and swap */
/* Limits of a user: half of the limits of the board; for mapped segments half
 * of the limit of the emulation. */
#define USER_REGIONS	(1 << 21)
#define USER_JOBS	(1 << 15)
#define USER_GROUPS	(1 << 15)
#define USER_MAPPED	2048
#define FIRST_SEGMENTS	(UINT32_C(1) << 27)	/* segments in half a
						 * partition */

/* A service on the HAL. Made by gsas_board_open(), used by one thread at a
 * time; gsas_board_wake() uses event_fd only. */
struct gsas_board {
	struct hal *hal;
	struct hal_if *hif;		/* interface 0 of the board */
	struct gsas_source *source;
	struct gsas_service *service;
	struct gsas_stat *stat;		/* counters of the service */
	void (*log)(const char *line);	/* NULL: no log */
	struct unm_list half_open;	/* connections without a return path */
	struct unm_list dying;		/* connections to dead peers */
	struct unm_list blocked;	/* connections without credits */
	uint64_t next_events, next_retry;	/* ns: next poll of events, next
						 * try to open return paths */
	uint32_t cold;			/* next inbound peer to poll in turn */
	uint32_t turns;			/* rounds of gsas_board_poll() */
	bool refused;			/* no memory for some new peer */
	bool changed;			/* the list blocked has changed */
	bool again;			/* gsas_service_progress() is to be
					 * called periodically */
	uint32_t page;			/* bytes of a page of memory */
	uint64_t unchecked;		/* bytes of the pages of clients' spaces
					 * that were read since a check found
					 * memory, see may_read() */
	uint32_t short_reads;		/* further reads for which the last
					 * check holds, which found too little
					 * memory */
	int sleep_ms;			/* next sleep without a sure event */
	int event_fd;			/* signaled by gsas_board_wake() */
	int hold;			/* of gsas_hold_open(); < 0: none */
};

/* The connection of a client: peer->user. Made at the HAL's event, freed when
 * the last request of a dead peer is served. */
struct conn {
	struct gsas_board *board;
	struct hal_peer *peer;
	struct gsas_client *client;	/* NULL: half-open, no answers yet */
	uint32_t ready;			/* writable bytes of its space */
	bool stored;			/* space written since last answer */
	bool logged;			/* why it is half-open was logged */
	struct unm_list list;		/* in board->half_open or ->dying */
	struct unm_list blocked;	/* in board->blocked */
};

/* ---- struct gsas_io ------------------------------------------------------ */

static bool in_space(const struct conn *conn, uint64_t off, uint64_t len)
{
	uint64_t max = conn->board->hif->caps->space_bytes;

	return off <= max && len <= max - off;
}

/* Are all pages of these bytes in memory? */
static bool in_memory(const uint8_t *at, uint64_t len, uint32_t page)
{
	uint64_t before = (uintptr_t)at % page;
	uint64_t n = (before + len + page - 1) / page;
	unsigned char there[READ_PAGES];

	if (n > READ_PAGES || mincore((void *)(uintptr_t)(at - before),
				      n * page, there) != 0)
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (!(there[i] & 1))
			return false;
	return true;
}

/*
 * A client may name bytes of the space that it did not allocate, or whose pages
 * it has returned to the system. The kernel allocates such a page when it is
 * read, at the expense of this process, and kills this process if there is no
 * memory. So check for each READ_MAX bytes that as much memory is left. Without
 * it read only pages that are in memory, and check again after SHORT_READS
 * reads: a check reads several files, while all clients wait.
 *
 * Pages that were swapped out look like pages that were never allocated, and
 * need memory too. A client whose space was swapped out is refused as well.
 */
static bool may_read(struct gsas_board *board, const uint8_t *at, uint64_t len)
{
	uint64_t mask = board->page - 1;

	board->unchecked += (((uintptr_t)at & mask) + len + mask) & ~mask;
	if (__builtin_expect(board->unchecked <= READ_MAX, 1))
		return true;
	if (board->short_reads == 0) {
		if (hal_memory_left(READ_MAX) >= READ_MAX) {
			board->unchecked = 0;
			return true;
		}
		board->short_reads = SHORT_READS;
	}
	board->short_reads--;
	return in_memory(at, len, board->page);
}

static int conn_in(void *ctx, uint64_t off, uint64_t len, const void **at)
{
	struct conn *conn = ctx;

	/* some HALs have no space before the peer has announced it */
	if (!in_space(conn, off, len) || conn->peer->rx.space == NULL)
		return -FI_EINVAL;
	*at = hal_space(conn->peer, (uint32_t)off);
	return may_read(conn->board, *at, len) ? 0 : -FI_ENOMEM;
}

static int conn_room(void *ctx, uint64_t off, uint64_t len)
{
	struct conn *conn = ctx;

	if (!in_space(conn, off, len))
		return -FI_EINVAL;
	/* a dead peer may never have had a return path, and out() discards */
	if (off + len <= conn->ready || conn->peer->dead)
		return 0;
	if (hal_space_ready(conn->peer, (uint32_t)(off + len)) != 0)
		return -FI_ENOMEM;
	conn->ready = (uint32_t)(off + len);
	return 0;
}

static void conn_out(void *ctx, uint64_t off, const void *src, uint64_t len)
{
	struct conn *conn = ctx;

	if (conn->peer->dead)
		return;
	hal_space_write(conn->peer, (uint32_t)off, src, (size_t)len);
	conn->stored = true;
}

/* Note whether the client's ring has no credits for an answer. */
static void conn_block(struct conn *conn, bool on)
{
	bool was = !unm_list_empty(&conn->blocked);

	if (on == was)
		return;
	conn->board->changed = true;
	if (on) {
		unm_list_append(&conn->board->blocked, &conn->blocked);
	} else {
		unm_list_remove(&conn->blocked);
		hal_tx_sleep(conn->peer, false);
	}
}

static int conn_process(void *ctx, uint64_t *id)
{
	struct conn *conn = ctx;

	return hal_peer_process(conn->peer, id);
}

static int conn_answer(void *ctx, const struct gsas_answer *answer)
{
	struct conn *conn = ctx;
	uint64_t w[GSAS_WORDS] = {
		answer->response.error, answer->response.result, answer->more,
	};
	int ret = -FI_ECONNRESET;

	if (!conn->peer->dead) {
		if (conn->stored)
			hal_space_barrier(conn->peer);
		conn->stored = false;
		ret = hal_pkt_send(conn->peer,
				   hal_head(answer->opcode, answer->tag), w,
				   GSAS_WORDS, NULL, 0);
	}
	conn_block(conn, ret == -FI_EAGAIN);
	return ret;
}

/* ---- Peers --------------------------------------------------------------- */

/* Free the client of a connection, and the connection but for its peer. */
static void conn_drop(struct conn *conn)
{
	if (conn->client != NULL)
		gsas_client_free(conn->client);
	unm_list_remove(&conn->list);
	unm_list_remove(&conn->blocked);
	free(conn);
}

static void conn_free(struct conn *conn)
{
	struct hal_peer *peer = conn->peer;

	conn_drop(conn);
	hal_peer_free(peer);
}

/* Log once why a half-open connection cannot be answered, unless the error is a
 * passing one. */
static void conn_log_error(struct conn *conn, int error)
{
	char line[160];

	if (conn->logged || error == -FI_EAGAIN || error == -FI_ECONNREFUSED ||
	    conn->board->log == NULL)
		return;
	conn->logged = true;
	snprintf(line, sizeof(line), "cannot answer interface %u:%u: %s; its "
		 "requests wait", conn->peer->addr.board,
		 conn->peer->addr.iface, strerror(-error));
	conn->board->log(line);
}

/* Add the client of a peer. The HAL vouches for its identity and its user: a
 * peer on another host has proven that it knows a secret of this user, and the
 * HAL refuses one whose address names another user. */
static int conn_client(struct conn *conn)
{
	const struct hal_peer *peer = conn->peer;

	return gsas_client_new(conn->board->service, peer->rx.identity,
			       peer->addr.uid, conn, &conn->client);
}

/* Open the return path. Until it is open the requests of the peer stay in its
 * ring, as they could not be answered. */
static void conn_open(struct conn *conn)
{
	struct gsas_board *board = conn->board;
	struct hal_peer *peer;
	int ret = hal_connect_host(board->hif, &conn->peer->addr,
				   conn->peer->host, &peer);

	if (ret == 0)
		ret = conn_client(conn);
	if (ret == 0)
		unm_list_remove(&conn->list);
	else
		conn_log_error(conn, ret);
}

static void on_inbound(struct gsas_board *board, struct hal_peer *peer)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	peer->user = conn;
	if (conn == NULL) {
		board->refused = true;
		return;
	}
	conn->board = board;
	conn->peer = peer;
	unm_list_init(&conn->list);
	unm_list_init(&conn->blocked);
	unm_list_append(&board->half_open, &conn->list);
	conn_open(conn);
}

/* Requests that a peer sent before its end are still served. Their answers are
 * discarded, so no return path is needed. */
static void on_dead(struct gsas_board *board, struct hal_peer *peer)
{
	struct conn *conn = peer->user;

	if (conn == NULL) {
		hal_peer_free(peer);
		return;
	}
	if (conn->client == NULL)
		conn_client(conn);
	unm_list_remove(&conn->list);
	unm_list_append(&board->dying, &conn->list);
}

static bool take_events(struct gsas_board *board)
{
	struct hal_event ev[EVENTS];
	bool some = false;
	int n;

	do {
		n = hal_if_service(board->hif, ev, EVENTS);
		for (int i = 0; i < n; i++) {
			if (ev[i].type == HAL_EV_INBOUND)
				on_inbound(board, ev[i].peer);
			else if (ev[i].type == HAL_EV_DEAD)
				on_dead(board, ev[i].peer);
		}
		some |= n > 0;
	} while (n == EVENTS);
	for (uint32_t i = 0; board->refused && i < board->hif->ninbound;) {
		if (board->hif->inbound[i]->user == NULL)
			hal_peer_free(board->hif->inbound[i]);
		else
			i++;
	}
	board->refused = false;
	return some;
}

/* Handle connects and ends of peers when EVENTS_NS have passed, because
 * reading them is a system call. */
static bool poll_events(struct gsas_board *board, uint64_t now)
{
	bool some;

	if (now < board->next_events)
		return false;
	board->next_events = now + EVENTS_NS;
	some = take_events(board);
	if (now < board->next_retry)
		return some;
	board->next_retry = now + RETRY_NS;
	unm_list_for_each_safe(pos, tmp, &board->half_open)
		conn_open(unm_container(pos, struct conn, list));
	return some;
}

/* ---- Serving ------------------------------------------------------------- */

/* Serve requests of a peer. A request that has to wait (until the client takes
 * its answers, a work is done, or the return path is open) throttles the peer,
 * so that its packets do not end a sleep. */
static uint32_t serve(struct hal_peer *peer)
{
	const struct conn *conn = peer->user;
	const struct hal_cell *cell;
	uint32_t n = 0;
	uint64_t head;
	bool throttled = conn == NULL || conn->client == NULL;

	while (!throttled && n < BURST &&
	       (cell = hal_rx_peek(peer, &head)) != NULL) {
		uint64_t w[GSAS_WORDS];

		for (unsigned i = 0; i < GSAS_WORDS; i++)
			w[i] = hal_cell_word(cell, i);
		throttled = !gsas_service_request(conn->client, head, w);
		if (throttled)
			break;
		/* the peer may now reuse what the request named in the space */
		hal_rx_release(peer);
		n++;
	}
	hal_rx_hold(peer, throttled);
	if (n != 0)
		hal_rx_flush(peer);
	return n;
}

/*
 * Serve the first HOT peers in each round, and HOT of the remaining peers in
 * turn. A remaining peer that has sent is moved to the front. Serve at most
 * BURST requests of each peer, so that a client that sends many requests does
 * not delay other clients.
 */
static uint32_t serve_some(struct gsas_board *board)
{
	struct hal_if *hif = board->hif;
	uint32_t n = hif->ninbound;
	uint32_t hot = n < HOT ? n : HOT;
	uint32_t done = 0;

	for (uint32_t i = 0; i < hot; i++)
		done += serve(hif->inbound[i]);
	for (uint32_t k = 0; n > hot && k < HOT; k++) {
		uint32_t got;

		if (board->cold < hot || board->cold >= n)
			board->cold = hot;
		got = serve(hif->inbound[board->cold]);
		if (got != 0)
			hal_if_promote(hif, board->cold, k);
		board->cold++;
		done += got;
	}
	return done;
}

static uint32_t serve_all(struct gsas_board *board)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < board->hif->ninbound; i++)
		done += serve(board->hif->inbound[i]);
	return done;
}

/* Free connections of dead peers whose last request was served. A fence still
 * waits for work that was queued before it. */
static uint32_t tear_down_dead(struct gsas_board *board)
{
	uint32_t done = 0;

	unm_list_for_each_safe(pos, tmp, &board->dying) {
		struct conn *conn = unm_container(pos, struct conn, list);
		uint64_t head;

		done += serve(conn->peer);
		if (conn->client != NULL &&
		    hal_rx_peek(conn->peer, &head) != NULL)
			continue;
		conn_free(conn);
		done++;
	}
	return done;
}

bool gsas_board_poll(struct gsas_board *board)
{
	uint32_t done, mask;
	bool some = false;

	hal_if_pump(board->hif);
	done = serve_some(board);
	board->again = gsas_service_progress(board->service);
	mask = done == 0 ? CLOCK_IDLE - 1 : CLOCK_BUSY - 1;
	if ((++board->turns & mask) == 0)
		some = poll_events(board, unm_now_ns());
	done += tear_down_dead(board);
	if (done != 0)
		board->sleep_ms = 1;
	return some || done != 0;
}

/* ---- Sleeping ------------------------------------------------------------ */

void gsas_board_wake(struct gsas_board *board)
{
	uint64_t one = 1;
	int was = errno;
	ssize_t n = write(board->event_fd, &one, sizeof(one));

	(void)n;			/* full: a wake-up is pending */
	errno = was;
}

/* The end of a sleep. */
enum ended {
	BY_TIME,
	BY_HAL,				/* an event, or a timer of the HAL */
	BY_CALLER,			/* gsas_board_wake(), or a signal */
};

static enum ended wait_event(struct gsas_board *board, int ms)
{
	struct pollfd pfd[] = {
		{ .fd = board->event_fd, .events = POLLIN },
		{ .fd = hal_if_fd(board->hif), .events = POLLIN },
	};
	int n = poll(pfd, 2, ms);
	uint64_t count;

	if (n == 0)
		return BY_TIME;
	if (n > 0 && pfd[0].revents == 0)
		return BY_HAL;
	if (n > 0)			/* cannot fail: no other reader */
		n = (int)read(board->event_fd, &count, sizeof(count));
	(void)n;
	return BY_CALLER;
}

/* Poll everything once. Returns whether there was any work. */
static bool poll_once(struct gsas_board *board)
{
	bool some;

	hal_if_pump(board->hif);
	some = take_events(board);
	board->again = gsas_service_progress(board->service);
	return serve_all(board) + tear_down_dead(board) != 0 || some;
}

/* Ask blocked clients for an event when they return credits (on), or no
 * longer. */
static void mark_blocked(struct gsas_board *board, bool on)
{
	unm_list_for_each_safe(pos, tmp, &board->blocked)
		hal_tx_sleep(unm_container(pos, struct conn, blocked)->peer,
			     on);
}

/* The longest sleep in ms in which no event is lost. -1: no limit. */
static int sleep_max(const struct gsas_board *board, bool armed)
{
	if (!armed || board->again || !unm_list_empty(&board->half_open) ||
	    !(board->hif->caps->flags & HAL_CAP_EVENT))
		return SLEEP_MAX_MS;
	return unm_list_empty(&board->blocked) ? -1 : SLEEP_BLOCKED_MS;
}

static enum ended sleep_once(struct gsas_board *board, int ms, bool armed)
{
	int max = sleep_max(board, armed);

	if (max >= 0) {
		if (board->sleep_ms > max)
			board->sleep_ms = max;
		if (ms < 0 || ms > board->sleep_ms)
			ms = board->sleep_ms;
		board->sleep_ms *= 2;
	}
	board->stat->sleeps++;
	return wait_event(board, ms);
}

/* Did something come that ended the sleep? A timer of the HAL may have ended
 * it, so the work that is there decides. */
static bool woken(struct gsas_board *board, enum ended ended)
{
	bool some = ended == BY_CALLER ||
		    (ended == BY_HAL && (poll_once(board) || board->changed));

	board->stat->wakes += some;
	return some;
}

/* Peers on other hosts: the engine need not wake for what was sent after the
 * arm, so arm once more. */
static bool armed_still(struct gsas_board *board)
{
	return board->hif->host == NULL || hal_if_arm(board->hif) == 0;
}

/*
 * Some work can be blocked without an event for its end: a queue whose words
 * are not taken out, a client without a return path. Such work is polled
 * periodically, at intervals that double. Any other request ends the sleep.
 */
void gsas_board_sleep(struct gsas_board *board, int ms)
{
	bool busy = poll_once(board), armed;
	enum ended ended = BY_TIME;

	if (!busy) {
		mark_blocked(board, true);
		armed = hal_if_arm(board->hif) == 0;
		/* a client that took answers before mark_blocked() sends no
		 * event: handle the free space here */
		board->changed = false;
		board->again = gsas_service_progress(board->service);
		busy = board->changed || (!armed && poll_once(board)) ||
			(armed && !armed_still(board));
		if (!busy)
			ended = sleep_once(board, ms, armed);
		if (armed)
			hal_if_disarm(board->hif);
		mark_blocked(board, false);
		busy |= woken(board, ended) && armed;
	}
	board->next_events = board->next_retry = 0;
	if (poll_events(board, unm_now_ns()) || busy)
		board->sleep_ms = 1;
}

/* ---- Beginning and end --------------------------------------------------- */

static void board_wake(void *ctx)
{
	gsas_board_wake(ctx);
}

/* A random offset in the lower half of the partition, so that two services in a
 * row do not use the same addresses, except with a probability of 2^-27. */
static uint64_t first_offset(void)
{
	uint32_t chance;

	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) !=
	    sizeof(chance))
		chance = (uint32_t)unm_now_ns();
	return (uint64_t)(chance % FIRST_SEGMENTS) * GSAS_SEGMENT;
}

static bool job_held(void *ctx, uint32_t uid, const uint64_t key[2])
{
	const struct gsas_board *board = ctx;

	return gsas_hold_held(board->hold, uid, key);
}

static int open_service(const struct gsas_board_attr *attr,
			struct gsas_board *board)
{
	const struct gsas_service_attr service = {
		.pages = {
			.board = board->hif->addr.board,
			.max_pages = attr->max_pages,
			.max_user = {
				.pages = attr->max_user_pages,
				.regions = USER_REGIONS, .jobs = USER_JOBS,
				.groups = USER_GROUPS, .mapped = USER_MAPPED,
			},
			.first = attr->end == 0 ? first_offset() : 0,
			.end = attr->end,
			.memory = gsas_source_memory(board->source),
			.held = board->hold >= 0 ? job_held : NULL,
			.held_ctx = board,
		},
		.io = {
			.in = conn_in, .room = conn_room, .out = conn_out,
			.answer = conn_answer, .process = conn_process,
		},
		.spawn = attr->spawn, .spawn_ctx = attr->spawn_ctx,
		.log = attr->log,
		.wake = board_wake, .wake_ctx = board,
		.threaded = true,
	};

	return gsas_service_new(&service, &board->service);
}

int gsas_board_open(const struct gsas_board_attr *attr,
		    struct gsas_board **board)
{
	struct gsas_board *b = calloc(1, sizeof(*b));
	int ret = -FI_ENOMEM;

	if (b == NULL)
		return ret;
	unm_list_init(&b->half_open);
	unm_list_init(&b->dying);
	unm_list_init(&b->blocked);
	b->log = attr->log;
	b->sleep_ms = 1;
	b->page = (uint32_t)sysconf(_SC_PAGESIZE);
	b->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->event_fd < 0) {
		ret = -errno;
		goto err_free;
	}
	ret = hal_get(NULL, &b->hal);
	if (ret != 0)
		goto err_event_fd;
	ret = hal_if_open_service(b->hal, attr->board, &b->hif);
	if (ret != 0)
		goto err_hal;
	ret = gsas_source_new(b->hal, b->hif->addr.board, attr->budget,
			      attr->log, &b->source);
	if (ret != 0)
		goto err_if;
	b->hold = gsas_hold_open();
	ret = open_service(attr, b);
	if (ret != 0)
		goto err_hold;
	b->stat = gsas_service_stat(b->service);
	*board = b;
	return 0;

err_hold:
	if (b->hold >= 0)
		close(b->hold);
	gsas_source_free(b->source);
err_if:
	hal_if_close(b->hif);
err_hal:
	hal_put(b->hal);
err_event_fd:
	close(b->event_fd);
err_free:
	free(b);
	return ret;
}

/* Clients receive all answers that were sent before they see the end of the
 * service. The close of the interface waits for that, for all clients on other
 * hosts together; hal_peer_free() would wait for one after the other. */
void gsas_board_close(struct gsas_board *board)
{
	struct hal_if *hif = board->hif;

	for (uint32_t i = 0; i < hif->ninbound; i++)
		if (hif->inbound[i]->user != NULL)
			conn_drop(hif->inbound[i]->user);
	gsas_service_free(board->service);
	gsas_source_free(board->source);
	hal_if_close(hif);
	hal_put(board->hal);
	close(board->event_fd);
	if (board->hold >= 0)
		close(board->hold);
	free(board);
}

bool gsas_board_empty(const struct gsas_board *board)
{
	return board->hif->ninbound == 0 &&
	       gsas_service_empty(board->service);
}

struct gsas_service *gsas_board_service(struct gsas_board *board)
{
	return board->service;
}
