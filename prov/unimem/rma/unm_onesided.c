/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_onesided.c - starts a one-sided operation: directly (unm_direct.c) if
 * possible, else as requests (unm_request.c). unm_onesided.h lists the files of
 * both sides.
 */
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "rma/unm_direct.h"
#include "rma/unm_onesided.h"
#include "rma/unm_request.h"
#include "util/unm_list.h"

/* Start an operation as requests. */
static int unm_os_start(struct unm_peer *peer, const struct unm_access *a)
{
	int ret = unm_os_try(peer, a, UNM_WAY_NONE);

	if (ret == -FI_EAGAIN)
		unm_peer_note_refusal(peer);
	return ret;
}

static int unm_os_begin(struct unm_ep *ep, fi_addr_t dest,
			const struct unm_access *a)
{
	struct unm_peer *peer;
	int ret;

	if (a->inject && unm_iov_len(a->src.iov, a->src.count) >
	    ep->info->tx_attr->inject_size)
		return -FI_EMSGSIZE;
	if ((a->flags & FI_COMPLETION) && unm_cq_full(ep->tx_cq)) {
		unm_cq_refuse(ep->tx_cq);
		ep->stats->again_queue++;
		return -FI_EAGAIN;
	}
	ret = unm_peer_open(ep, dest, &peer);
	if (ret != 0) {
		/* no event reports that a connection can be set up: ask the
		 * application to retry */
		if (ret == -FI_EAGAIN)
			unm_ep_signal_retry(ep);
		return ret;
	}
	/* atomics to a peer stay in order: a direct atomic must not overtake
	 * one that was sent as a request */
	ret = 1;
	if (a->kind < UNM_ATOMIC ||
	    (unm_list_empty(&peer->posted) &&
	     unm_list_empty(&peer->await_result)))
		ret = unm_direct(peer, a);
	return ret <= 0 ? ret : unm_os_start(peer, a);
}

ssize_t unm_onesided(struct unm_ep *ep, fi_addr_t dest,
		     const struct unm_access *a)
{
	int ret;

	unm_lock(ep->domain);
	ret = unm_os_begin(ep, dest, a);
	if (ret == 0) {
		ep->stats->tx_onesided++;
		ep->stats->tx_onesided_bytes += a->len;
	}
	unm_unlock(ep->domain);
	return ret;
}
