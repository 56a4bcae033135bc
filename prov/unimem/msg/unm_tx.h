/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_tx.h - the fast path of sending: a message from one buffer that fits one
 * packet, or is eager, from the API call to the memory of the peer.
 *
 * It finds the peer by its index in the address vector, stores the message and
 * counts. unm_send_slow() executes every other send.
 */
#ifndef UNM_TX_H
#define UNM_TX_H

#include "core/unm_complete.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_send.h"

/* Flags of sends that are not executed by the fast path: those that complete
 * when the peer has released the packet, and those that copy the buffer if they
 * cannot be sent at once. (fi_inject() takes the fast path, and the slow one
 * only if that fails.) */
#define UNM_TX_SLOW	(FI_DELIVERY_COMPLETE | FI_INJECT)

/* Send one packet, or one that names receive space: the tag, then the data, are
 * in w. The low bit of a type says that the message is tagged, and the flags
 * hold its length (unm_wire.h). */
static inline __attribute__((always_inline))
int unm_tx_packet(struct unm_peer *peer, const uint64_t kind, uint64_t *w,
		  const void *buf, size_t len)
{
	const bool tagged = kind & FI_TAGGED;
	const bool has_data = kind & FI_REMOTE_CQ_DATA;
	const uint8_t more = has_data ? UNM_WIRE_HAS_DATA : 0;
	struct unm_ep *ep = peer->ep;
	struct iovec iov;
	int ret;

	if (__builtin_expect(len < ep->inline_end[tagged][has_data], 1)) {
		ret = hal_pkt_send(peer->hp,
				   hal_head(UNM_WIRE_INLINE | tagged,
					    len | more),
				   w, tagged + has_data, buf, len);
		ep->stats->tx_inline += ret == 0;
	} else if (len < ep->packet_end[tagged][has_data]) {
		ret = hal_pkt_send_wide(peer->hp,
					hal_head(UNM_WIRE_WIDE | tagged,
						 unm_wire_wide_flags(len) |
						 more),
					w, tagged + has_data, buf, len);
		ep->stats->tx_wide += ret == 0;
	} else {
		iov.iov_base = (void *)buf;
		iov.iov_len = len;
		return unm_send_eager(peer, hal_head(UNM_WIRE_EAGER | tagged,
						     more),
				      w, tagged + has_data,
				      &(struct unm_part){ &iov, 1, 0, len });
	}
	if (__builtin_expect(ret != 0, 0))
		ep->stats->again_packet++;
	return ret;
}

/*
 * Send a message. kind: FI_MSG or FI_TAGGED; with FI_INJECT the buffer may be
 * reused after the call, and no completion follows; with FI_REMOTE_CQ_DATA the
 * message carries data. Each caller passes a constant, for which the compiler
 * makes a function of its own. Returns as fi_send().
 */
static inline __attribute__((always_inline))
ssize_t unm_tx(struct unm_ep *ep, const uint64_t kind, const void *buf,
	       size_t len, fi_addr_t dest, uint64_t tag, uint64_t data,
	       void *context, uint64_t flags)
{
	const bool tagged = kind & FI_TAGGED, inject = kind & FI_INJECT;
	const bool has_data = kind & FI_REMOTE_CQ_DATA;
	struct unm_domain *domain = ep->domain;
	struct unm_peer *peer;
	struct iovec iov;
	struct unm_send s;
	uint64_t w[UNM_SEND_EAGER_WORDS] = { tagged ? tag : data, data };
	ssize_t ret;

	unm_lock(domain);
	if (__builtin_expect(dest >= ep->peer_slots, 0))
		goto slow;
	peer = ep->peer_of[dest];
	if (__builtin_expect(peer == NULL ||
			     len >= (inject ? UNM_INJECT_MAX + 1 :
				     ep->short_end[tagged][has_data]) ||
			     peer->msgs_sent == peer->msg_limit ||
			     (!inject && ((flags & UNM_TX_SLOW) ||
					  unm_cq_full(ep->tx_cq))), 0))
		goto slow;
	ret = unm_tx_packet(peer, kind, w, buf, len);
	if (__builtin_expect(ret != 0, 0)) {
		unm_peer_note_refusal(peer);
		if (ret == -FI_EAGAIN &&
		    peer->refusals >= UNM_PEER_REFUSALS)
			goto slow;
		goto out;
	}
	peer->msgs_sent++;
	ep->stats->tx_msgs++;
	ep->stats->tx_bytes += len;
	if (!inject)
		unm_complete_tx(ep, tagged, flags, context);
	else if (__builtin_expect(ep->tx_cntr != NULL, 0))
		unm_complete_tx(ep, tagged, 0, NULL);
out:
	unm_unlock(domain);
	return ret;
slow:
	iov.iov_base = (void *)buf;
	iov.iov_len = len;
	s = (struct unm_send){
		.iov = &iov, .count = 1, .len = len, .tag = tag, .data = data,
		.context = context, .tagged = tagged, .has_data = has_data,
		.flags = inject ? 0 : flags,
		.inject = inject || (flags & FI_INJECT),
	};
	ret = unm_send_slow(ep, dest, &s);
	goto out;
}

#endif /* UNM_TX_H */
