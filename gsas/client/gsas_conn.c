/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_conn.c - the way to the service of a board: connecting (and starting it,
 * where boards are emulated), requests by tag, answers, its end.
 *
 * Answers are handled where they are found, and what handles them never waits:
 * a lane that ends in the middle of something is seen by whoever waits, as
 * peer == NULL, and by nobody else.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_start.h"
#include "client/gsas_thread.h"

#define CONNECT_NS	UINT64_C(10000000000)	/* until we give up */
#define BURST		64			/* answers in a row */

/* ---- Space --------------------------------------------------------------- */

uint64_t gsas_space_take(uint64_t *free, uint32_t unit, uint32_t bytes,
			 uint32_t *off)
{
	uint32_t n = (bytes + unit - 1) / unit;
	uint64_t at = *free, mask;

	for (uint32_t i = 1; i < n && at != 0; i++)
		at &= *free >> i;
	if (at == 0)
		return 0;
	mask = n == GSAS_UNITS ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	mask <<= __builtin_ctzll(at);
	*free &= ~mask;
	*off = unit * (uint32_t)__builtin_ctzll(at);
	return mask;
}

void gsas_space_undo(struct gsas_lane *lane, const struct gsas_ask *ask)
{
	lane->mine |= ask->mine;
	lane->theirs |= ask->theirs;
}

static bool space_both(struct gsas_lane *lane, uint32_t in, uint32_t out,
		       struct gsas_ask *ask, uint32_t *at)
{
	if (out != 0 && ask->mine == 0)
		ask->mine = gsas_space_take(&lane->mine, lane->unit, out,
					    &ask->off);
	if (in != 0 && ask->theirs == 0)
		ask->theirs = gsas_space_take(&lane->theirs, lane->unit, in,
					      at);
	return (out == 0 || ask->mine != 0) && (in == 0 || ask->theirs != 0);
}

/* Whatever of it we have meanwhile, those we wait for have theirs. */
int gsas_space_wait(struct gsas_lane *lane, uint32_t in, uint32_t out,
		    struct gsas_ask *ask, uint32_t *at)
{
	gsas_wait_begin(lane->thread);
	while (!space_both(lane, in, out, ask, at)) {
		gsas_wait_step(lane->thread);
		if (lane->peer == NULL)
			return lane->gone;
	}
	return 0;
}

int gsas_space_put(struct gsas_lane *lane, uint32_t off, const void *src,
		   uint32_t len)
{
	if (lane->peer == NULL)
		return lane->gone;
	if (off + len > lane->ready) {
		int ret = hal_space_ready(lane->peer, off + len);

		if (ret != 0)
			return ret;
		lane->ready = off + len;
	}
	hal_space_write(lane->peer, off, src, len);
	hal_space_barrier(lane->peer);
	return 0;
}

/* ---- Requests ------------------------------------------------------------ */

int gsas_lane_try(struct gsas_lane *lane, const struct gsas_ask *ask,
		  struct gsas_trip *trip)
{
	uint64_t w[GSAS_WORDS] = { ask->address, ask->arg1, ask->arg2 };
	uint8_t tag = GSAS_TAG_POSTED;
	int ret;

	/* it answered what came before, and ended */
	if (__builtin_expect(lane->peer == NULL, 0))
		return lane->gone;
	if (trip != NULL) {
		if (lane->nfree == 0)
			return -FI_EAGAIN;
		tag = lane->free[lane->nfree - 1];
	}
	ret = hal_pkt_send(lane->peer, hal_head(ask->opcode, tag), w,
			   GSAS_WORDS, NULL, 0);
	if (ret != 0)
		return ret;
	if (trip == NULL) {
		lane->posted = true;
		return 0;
	}
	lane->nfree--;
	lane->tag[tag] = (struct gsas_tag){
		.trip = trip, .into = ask->into, .len = ask->len,
		.off = ask->off, .mine = ask->mine, .theirs = ask->theirs,
		.opcode = ask->opcode,
	};
	return 0;
}

int gsas_lane_send(struct gsas_lane *lane, const struct gsas_ask *ask,
		   struct gsas_trip *trip)
{
	struct gsas_thread *t = lane->thread;
	int ret = gsas_lane_try(lane, ask, trip);

	if (__builtin_expect(ret != -FI_EAGAIN, 1))
		return ret;
	gsas_wait_begin(t);
	t->wants_room = lane->full = true;
	do {
		gsas_wait_step(t);
		ret = gsas_lane_try(lane, ask, trip);
	} while (ret == -FI_EAGAIN);
	t->wants_room = lane->full = false;
	return ret;
}

/* ---- Answers ------------------------------------------------------------- */

static void lane_release(struct gsas_lane *lane, uint8_t tag)
{
	lane->mine |= lane->tag[tag].mine;
	lane->theirs |= lane->tag[tag].theirs;
	lane->tag[tag].trip = NULL;
	lane->free[lane->nfree++] = tag;
}

/* A service makes no mistakes; who does is none, and is left. */
static void lane_answer(struct gsas_lane *lane, const struct hal_cell *cell,
			uint64_t head)
{
	uint8_t tag = hal_head_flags(head), opcode = hal_head_type(head);
	uint64_t error = hal_cell_word(cell, 0);
	uint64_t result = hal_cell_word(cell, 1);
	uint64_t more = hal_cell_word(cell, 2);

	if (tag == GSAS_TAG_POSTED && opcode == GSAS_ENQUEUE) {
		gsas_queue_told(lane, more, gsas_errno(error), result);
		return;
	}
	/* opcode 0: it knows no such operation */
	if (lane->tag[tag].trip == NULL ||
	    (lane->tag[tag].opcode != opcode &&
	     (opcode != 0 || error != GSAS_E_OPCODE))) {
		gsas_say("board %u: what answers there is no atomic service "
			 "(opcode %u, tag %u)", lane->board, opcode, tag);
		lane->broken = true;
		return;
	}
	gsas_trip_answer(lane, &lane->tag[tag], gsas_errno(error), result,
			 more);
	lane_release(lane, tag);
}

bool gsas_lane_poll(struct gsas_lane *lane)
{
	struct hal_peer *peer = lane->peer;
	const struct hal_cell *cell;
	uint64_t head;
	int n = 0;

	if (peer->rx.cells == NULL)
		return false;
	while (n < BURST && !lane->broken &&
	       (cell = hal_rx_peek(peer, &head)) != NULL) {
		lane_answer(lane, cell, head);
		hal_rx_release(peer);
		n++;
	}
	if (n == 0)
		return false;
	lane->quiet = 0;
	lane->probed = false;
	hal_rx_flush(peer);
	if (lane->broken)
		gsas_lane_drop(lane);
	return true;
}

/* ---- Ends ---------------------------------------------------------------- */

void gsas_lane_drop(struct gsas_lane *lane)
{
	struct hal_peer *peer = lane->peer;

	gsas_window_drop(lane);
	lane->peer = NULL;
	lane->lost |= lane->posted;
	for (int tag = 1; tag <= GSAS_TAGS; tag++) {
		if (lane->tag[tag].trip == NULL)
			continue;
		gsas_trip_answer(lane, &lane->tag[tag], lane->gone, 0, 0);
		lane_release(lane, (uint8_t)tag);
	}
	if (lane->bulk != NULL)
		gsas_bulk_end(lane, lane->gone);
	hal_peer_free(peer);
}

void gsas_lane_end(struct gsas_lane *lane, int status)
{
	/* what it answered before its end counts */
	while (lane->peer != NULL && gsas_lane_poll(lane))
		;
	lane->status = status;
	if (lane->peer != NULL)
		gsas_lane_drop(lane);
}

/* ---- A service that is stopped -------------------------------------------
 *
 * A service answers each request in bounded time, but for FORK and ALLOC, which
 * may take long, and QUEUE_WAIT. So a lane on which nothing came for half of
 * the time limit sends a request that is answered at once. If nothing comes in
 * the other half either, the service is stopped.
 */

/* Does the thread wait for anything of the service? */
static bool lane_waits(const struct gsas_lane *lane)
{
	return lane->nfree != GSAS_TAGS || lane->bulk != NULL || lane->full;
}

void gsas_lane_quiet(struct gsas_lane *lane, uint64_t ns, uint64_t limit)
{
	/* a group without a name: refused */
	static const struct gsas_ask probe = { .opcode = GSAS_GROUP };

	if (!lane_waits(lane)) {
		lane->quiet = 0;
		return;
	}
	lane->quiet += ns;
	if (lane->quiet >= limit) {
		gsas_say("board %u: its service does not answer for %u ms "
			 "(GSAS_TIMEOUT); the connection is given up",
			 lane->board, (unsigned)(limit / 1000000));
		lane->gone = -FI_ETIMEDOUT;
		gsas_lane_drop(lane);
	} else if (lane->quiet >= limit / 2 && !lane->probed) {
		lane->probed = gsas_lane_try(lane, &probe, &lane->kick) == 0;
	}
}

/* ---- Connecting ---------------------------------------------------------- */

static void lane_reset(struct gsas_lane *lane, struct hal_peer *peer)
{
	lane->peer = peer;
	lane->life++;
	lane->groups = 0;
	lane->broken = lane->posted = false;
	lane->gone = -FI_ECONNRESET;
	lane->quiet = 0;
	lane->probed = false;
	lane->mine = lane->theirs = UINT64_MAX;
	lane->ready = 0;
	lane->nfree = 0;
	for (int tag = GSAS_TAGS; tag >= 1; tag--) {
		lane->tag[tag].trip = NULL;
		lane->free[lane->nfree++] = (uint8_t)tag;
	}
	peer->user = lane;
}

/* -FI_EAGAIN: there is no service, or it was just going: try again */
static int lane_call(struct gsas_lane *lane)
{
	struct gsas_thread *t = lane->thread;
	struct hal_addr to = {
		.version = HAL_ADDR_VERSION, .board = lane->board,
		.iface = HAL_IF_SERVICE, .uid = t->hif->addr.uid,
		.nonce = HAL_ADDR_ANY,
	};
	struct gsas_ask join = { .opcode = GSAS_JOIN };
	struct gsas_trip trip;
	struct hal_peer *peer;
	uint64_t key[2];
	int ret = hal_connect(t->hif, &to, &peer);

	if (ret == -FI_ECONNREFUSED && t->starts) {
		ret = gsas_start(lane->board);
		return ret != 0 ? ret : -FI_EAGAIN;
	}
	if (ret == -FI_EACCES)
		gsas_say("board %u: another user holds its service, or all "
			 "names of it", lane->board);
	if (ret != 0)
		return ret;
	lane_reset(lane, peer);
	ret = gsas_job_key(key);
	join.address = key[0];
	join.arg1 = key[1];
	if (ret == 0)
		ret = gsas_trip_do(lane, &join, &trip);
	if (ret == 0 && lane->peer == NULL)
		return -FI_EAGAIN;
	if (ret != 0 && lane->peer != NULL)
		gsas_lane_drop(lane);
	return ret != -FI_ECONNRESET || lane->status == -FI_EACCES ? ret :
		-FI_EAGAIN;
}

static int lane_connect(struct gsas_lane *lane)
{
	uint64_t end = gsas_now_ns() + CONNECT_NS;
	int ret;

	while ((ret = lane_call(lane)) == -FI_EAGAIN) {
		if (gsas_now_ns() > end) {
			gsas_say("board %u: its service does not take us",
				 lane->board);
			return -FI_ECONNREFUSED;
		}
		poll(NULL, 0, 1);
		gsas_thread_service(lane->thread);
	}
	return ret;
}

/* Groups that this process joined. What the service has no room for, we are no
 * member of, there: who names such a group is told then. */
static int lane_tell_groups(struct gsas_lane *lane)
{
	while (lane->groups < gsas_group_count()) {
		struct gsas_ask ask = { .opcode = GSAS_GROUP };
		struct gsas_trip trip;
		uint64_t name[2];
		int ret;

		gsas_group_name(lane->groups, name);
		ask.address = name[0];
		ask.arg1 = name[1];
		ret = gsas_trip_do(lane, &ask, &trip);
		if (lane->peer == NULL)
			return lane->gone;
		lane->group[lane->groups++] =
			ret == 0 ? (uint32_t)trip.result : 0;
	}
	return 0;
}

static struct gsas_lane *lane_new(struct gsas_thread *t, uint32_t board)
{
	struct gsas_lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		return NULL;
	lane->thread = t;
	lane->board = (uint16_t)board;
	lane->gone = -FI_ECONNRESET;
	lane->unit = t->hif->caps->space_bytes / GSAS_UNITS;
	t->lane[board] = lane;
	t->used[t->nused++] = board;
	return lane;
}

int gsas_lane_get(struct gsas_thread *t, int board, struct gsas_lane **out)
{
	struct gsas_lane *lane;
	int ret = 0;

	if (board < 0 || (uint32_t)board >= t->boards)
		return -ENXIO;
	lane = t->lane[board];
	if (lane == NULL)
		lane = lane_new(t, (uint32_t)board);
	if (lane == NULL)
		return -FI_ENOMEM;
	if (__builtin_expect(lane->bulk != NULL, 0)) {
		gsas_wait_begin(t);
		while (lane->bulk != NULL)
			gsas_wait_step(t);
	}
	if (__builtin_expect(lane->peer == NULL, 0))
		ret = lane_connect(lane);
	if (ret == 0 && lane->groups != gsas_group_count())
		ret = lane_tell_groups(lane);
	if (ret == 0 && lane->peer == NULL)
		ret = lane->gone;
	if (ret == 0)
		*out = lane;
	return ret;
}

int gsas_lane_of(struct gsas_thread *t, uint64_t address,
		 struct gsas_lane **lane)
{
	int ret = gsas_lane_get(t, gsas_board_of(address), lane);

	return ret == -ENXIO ? -FI_EFAULT : ret;
}
