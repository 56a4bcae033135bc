/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_long.c - the receiving side of eager messages in several pieces, see
 * unm_long.h. */
#include <string.h>

#include <rdma/fi_errno.h>

#include "core/unm_cq_ring.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_way.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_long.h"
#include "msg/unm_rdv_way.h"
#include "msg/unm_rx_op.h"
#include "unm_env.h"
#include "util/unm_clock.h"
#include "util/unm_pool.h"

#define UNM_LONG_MEASURED 64	/* one of so many messages is measured */
#define UNM_LONG_STORED	8	/* stored messages of a peer that withdraw its
				 * permission */

/*
 * Do other threads wait for the processor? Then a message is late because its
 * sender or its receiver does not run, which measurements of the two ways show
 * as the time of a way. The time of processors counts, and a read by the kernel
 * takes several times as much of it as two copies.
 */
static bool unm_long_shared(const struct unm_ep *ep)
{
	return ep->rx_cq != NULL && unm_idle_shared(&ep->rx_cq->idle);
}

/* Do unexpected messages, of all peers or of this one, take too much memory for
 * another one to be sent eagerly? */
static bool unm_long_full(const struct unm_peer *peer)
{
	return peer->long_stored >= UNM_LONG_STORED ||
		peer->ep->unexpected_bytes >= g_unm_env.unexpected_max / 2;
}

void unm_long_allow(struct unm_peer *peer, unsigned class, bool streams)
{
	uint64_t classes = peer->long_classes & ~(1ull << class);

	if ((streams || unm_long_shared(peer->ep)) && !unm_long_full(peer))
		classes |= 1ull << class;
	if (classes == peer->long_classes)
		return;
	peer->long_classes = classes;
	hal_rx_back(peer->hp, UNM_PEER_BACK_LONG, classes);
}

/* Measure some of these messages as streams. A burst of them ends by a message
 * with RTS, for which unm_way_choose() may try a read. */
static void unm_long_measure(struct unm_ep *ep, struct unm_rx_op *op)
{
	struct unm_way *way = unm_rdv_way(op);

	if (way == NULL || unm_long_shared(ep))
		return;
	if (way->how == UNM_WAY_ATTACH) {
		/* these were allowed while the processor was shared */
		if (unm_rdv_readable(op->peer))
			unm_long_allow(op->peer, unm_way_class(op->wanted),
				       false);
		return;
	}
	if (way->run >= UNM_WAY_RUN) {
		unm_long_allow(op->peer, unm_way_class(op->wanted), false);
		return;
	}
	if (way->run % UNM_LONG_MEASURED == 1) {
		unm_rdv_goes(ep, op, UNM_WAY_ASSISTED);
		op->begun_ns = unm_now_ns();
	}
	unm_way_add(way, op->wanted);
}

/* Copy bytes of a message that has matched, from its byte at on. */
static void unm_long_fill(struct unm_rx_op *op, uint64_t at, const void *bytes,
			  uint64_t len)
{
	if (at >= op->wanted)
		return;
	if (len > op->wanted - at)
		len = op->wanted - at;
	unm_iov_fill(op->iov, op->count, at, bytes, len);
	op->got = at + len;
}

void unm_long_begin(struct unm_ep *ep, struct unm_rx_op *op,
		    const struct unm_got *got)
{
	op->state = UNM_RX_LONG;
	op->peer->long_op = op;
	op->peer->long_msg = NULL;
	unm_long_measure(ep, op);
	unm_long_fill(op, 0, got->bytes, got->here);
}

void unm_long_store(struct unm_msg *msg, const struct unm_got *got)
{
	struct unm_pool_node *node = msg->buf;

	memcpy(node + 1, got->bytes, got->here);
	got->peer->long_msg = msg;
	/* a shorter message, which only an odd peer sends in pieces, takes no
	 * more memory than an eager one */
	if (msg->len > UNM_WIRE_EAGER_LIMIT)
		got->peer->long_stored++;
	if (unm_long_full(got->peer))
		unm_long_allow(got->peer, unm_way_class(got->len), false);
}

void unm_long_forget(const struct unm_msg *msg)
{
	if (msg->len > UNM_WIRE_EAGER_LIMIT)
		msg->peer->long_stored--;
	if (msg->peer->long_msg == msg)
		msg->peer->long_msg = NULL;
}

int unm_long_next(struct unm_peer *peer, const void *bytes, uint32_t len,
		  struct unm_rx_op **whole)
{
	struct unm_rx_op *op = peer->long_op;
	struct unm_msg *msg = peer->long_msg;
	uint64_t left = peer->long_left;

	*whole = NULL;
	if (len == 0 || len > left)
		return -FI_EINVAL;
	peer->long_left = left - len;
	if (op != NULL) {
		unm_long_fill(op, op->msg_len - left, bytes, len);
		if (left == len) {
			peer->long_op = NULL;
			*whole = op;
		}
	} else if (msg != NULL) {
		memcpy((char *)((struct unm_pool_node *)msg->buf + 1) +
		       (msg->len - left), bytes, len);
		if (left == len) {
			peer->long_msg = NULL;
			msg->rendezvous = false;
		}
	}
	return 0;
}
