/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rdv_way.h - measures the two ways of a rendezvous at its receiver:
 * streams, and reads by cross-memory attach. core/unm_way.h chooses one.
 *
 * Only unm_rendezvous.c and unm_long.c call it, with the domain locked.
 */
#ifndef UNM_RDV_WAY_H
#define UNM_RDV_WAY_H

#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_way.h"
#include "unm_env.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"

/* Can this process read ordinary memory of a peer, by cross-memory attach? */
static inline bool unm_rdv_readable(const struct unm_peer *peer)
{
	return g_unm_env.attach && peer->hp->dma_any && !peer->attach_off;
}

/* The message goes this way from now on. */
static inline void unm_rdv_goes(struct unm_ep *ep, struct unm_rx_op *op,
				enum unm_way_how how)
{
	if (op->how != UNM_WAY_NONE) {	/* the time would be of both ways */
		ep->msg_clock.count[op->how]--;
		op->begun_ns = 0;
	}
	op->how = how;
	if (how != UNM_WAY_NONE)
		ep->msg_clock.count[how]++;
}

/* The measurements for messages of this length; NULL: there are none. */
static inline struct unm_way *unm_rdv_way(const struct unm_rx_op *op)
{
	struct unm_ways *ways = op->peer->ways;

	return ways != NULL ? &ways->msg[unm_way_class(op->wanted)] : NULL;
}

/* When the measurement of a message begins. A burst is measured as a whole, so
 * a message that follows one of its kind, which is still in transfer, does not
 * read the clock. */
static inline uint64_t unm_rdv_begun(const struct unm_rx_op *op)
{
	const struct unm_rx_op *before = unm_container(op->link.prev,
						struct unm_rx_op, link);

	if (op->link.prev == &op->peer->recvs || before->how != op->how ||
	    before->begun_ns == 0 ||
	    unm_way_class(before->wanted) != unm_way_class(op->wanted))
		return unm_now_ns();
	return before->begun_ns;
}

/* The message has arrived. */
static inline void unm_rdv_arrived(struct unm_ep *ep, struct unm_rx_op *op)
{
	if (op->how == UNM_WAY_NONE)
		return;
	unm_way_end(&ep->msg_clock, op->begun_ns != 0 ? unm_rdv_way(op) : NULL,
		    op->how, op->wanted, op->begun_ns, unm_now_ns());
	op->how = UNM_WAY_NONE;
}

#endif /* UNM_RDV_WAY_H */
