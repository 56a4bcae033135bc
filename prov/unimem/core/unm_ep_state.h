/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep_state.h - state of an endpoint: one interface of the HAL, its peers,
 * and all operations over it. api/unm_ep.c opens, enables and closes endpoints.
 */
#ifndef UNM_EP_STATE_H
#define UNM_EP_STATE_H

#include <stddef.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "core/unm_match.h"
#include "core/unm_named.h"
#include "core/unm_obj.h"
#include "core/unm_stats.h"
#include "core/unm_way.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

#define UNM_CLOCK_POLLS	16		/* empty polls a clock reading */
#define UNM_CLOCK_BUSY	1024		/* other polls per reading */
#define UNM_EP_CNTRS	6		/* one per event a counter may count */
#define UNM_BUF_CLASSES	6		/* of copies of unexpected messages */

struct unm_ep_links {		/* places in other objects' lists */
	struct unm_list node;
	struct unm_ep *ep;
};

struct unm_age_scan {		/* finds the ages of the oldest operations */
	uint32_t next;			/* of tx_pool, then rx_pool */
	uint64_t oldest;		/* us; 0: none found yet */
	uint64_t oldest_recv;
};

/* The object behind a struct fid_ep: the endpoint's own handle, or an alias
 * (api/unm_alias.c). They differ only in the flags of calls without flags. */
struct unm_handle {
	struct fid_ep fid;
	struct unm_ep *ep;
	uint64_t tx_flags, rx_flags;
};

/*
 * An endpoint, from fi_endpoint() to fi_close(), under its domain's lock. The
 * fields that each small message needs come first.
 */
struct unm_ep {
	_Alignas(64) struct unm_handle own;
	/* each send */
	struct unm_domain *domain;
	struct unm_peer **peer_of;	/* by AV index; NULL: not connected */
	struct unm_cq *tx_cq;
	struct unm_cntr *tx_cntr;
	struct unm_stats *stats;
	uint32_t peer_slots;
	uint32_t eager_max;
	uint32_t long_max;		/* in pieces; 0: no message is */
	/* lengths from which on a message is not sent, [tagged][has_data] */
	uint16_t inline_end[2][2];	/* ... in a packet of one slot */
	uint16_t packet_end[2][2];	/* ... in any packet, also wide ones */
	uint16_t short_end[2][2];	/* ... in a packet or eagerly */
	uint64_t tx_msg_flags;		/* added to those of calls with flags */
	/* each call of progress */
	struct hal_if *hif;		/* interface of the HAL */
	uint32_t turns;			/* calls of progress */
	uint32_t dma_out;		/* transfers outstanding */
	struct unm_list pending_peers;	/* peers with something to send */
	struct unm_list dma_wait;	/* rx_ops with transfers to post */
	struct unm_list streams;	/* rx_ops in STREAM that are readable,
					 * or in IMPORT */
	struct unm_list direct;		/* operations of unm_direct.c */
	bool armed;
	bool enabled;
	/* each receive */
	bool recv_ok;			/* a receive queue is bound */
	bool directed;			/* receives may name their source */
	bool source_err;		/* FI_SOURCE_ERR: report the address of
					 * an unresolved peer */
	bool lost;			/* a peer has died: msg/unm_lost.h */
	bool recvs_wanted;		/* a receive was refused, because too
					 * many were posted or memory ran out */
	struct unm_cq *rx_cq;
	struct unm_cntr *rx_cntr;
	uint64_t rx_msg_flags;
	struct unm_wire_limits limits;
	struct unm_match match[2];	/* [tagged] */
	struct unm_pool rx_pool;
	/* ---- the rest is not touched by small messages ---- */
	uint32_t space_most;		/* bytes of receive space to use at a
					 * peer, at most */
	uint32_t piece_max;		/* longest first piece of a message,
					 * and part of a request or result,
					 * bytes */
	struct unm_cntr *rd_cntr, *wr_cntr;	/* own reads, writes */
	struct unm_cntr *rem_rd_cntr, *rem_wr_cntr;	/* those of peers */
	struct unm_pool tx_pool, msg_pool;
	struct unm_pool os_pool, answer_pool;	/* one-sided */
	struct unm_pool buf_pool[UNM_BUF_CLASSES];
	struct unm_list claimed;	/* unexpected messages, FI_CLAIM */
	struct unm_list peers;		/* every peer */
	struct unm_list unresolved;	/* peers not in the address vector */
	struct unm_list grown;		/* peers of this host of which it uses
					 * more receive space than the first
					 * part, the one examined last at the
					 * end */
	uint64_t grown_bytes;		/* receive space at these */
	struct unm_way_clock msg_clock;	/* of rendezvous */
	struct unm_way_clock os_clock;	/* of puts and gets */
	struct unm_tick_rate rate;	/* of unm_ticks(), by unm_prompt.c */
	struct unm_bounce *bounce[2];	/* rma/unm_bounce.h: areas for sends and
					 * for receives, NULL: not used yet */
	/* idling */
	uint32_t cold;			/* next peer beyond the hot ones */
	uint64_t next_service;		/* unm_now_ns() of the next check */
	bool closing;			/* sends no further remote keys */
	bool ops_wanted;		/* an operation was refused, because its
					 * pool was empty */
	bool must_poll;			/* an answer waits without an event to
					 * wake a sleeper: keep polling */
	bool lost_logged;		/* the loss of a peer on another host
					 * was logged */
	/* receives from other hosts: progress/unm_reach.h */
	struct unm_named named;		/* counts them, if hif->host is not
					 * NULL */
	uint64_t next_reach;		/* unm_now_ns() of the next check */
	/* unexpected messages */
	uint64_t unexpected_bytes;
	struct unm_list throttled;	/* peers that get no credits */
	size_t min_multi_recv;
	struct unm_av *av;
	uint32_t av_number;		/* unm_av.number of av; 0: no vector */
	struct unm_ref *eq;		/* of the event queue, may be NULL */
	struct fi_info *info;
	struct unm_cntr *cntr[UNM_EP_CNTRS];	/* every one bound */
	uint64_t cntr_events;		/* what they count, as flags */
	struct unm_ep_links in_tx_cq, in_rx_cq, in_av, in_cntr[UNM_EP_CNTRS];
	struct unm_ep_links in_domain;
	struct unm_list aliases;	/* api/unm_alias.c */
	uint64_t tx_bind_flags, rx_bind_flags;
	pid_t owner;			/* process that opened it, not a forked
					 * child */
	struct unm_stats no_page;	/* stats without a place */
	uint64_t next_gauges;		/* unm_now_ns() of the next refresh */
	struct unm_age_scan age_scan;
};
_Static_assert(offsetof(struct unm_ep, hif) <= 192,
	       "lines 0 to 2 hold what a send needs");
_Static_assert(offsetof(struct unm_ep, limits) <= 320,
	       "lines 2 to 4 hold what a call of progress needs");

static inline struct unm_handle *unm_handle(struct fid_ep *fid)
{
	return (struct unm_handle *)fid;
}

/* The endpoint behind the application's handle. */
static inline struct unm_ep *unm_ep(struct fid_ep *fid)
{
	return unm_handle(fid)->ep;
}

#endif /* UNM_EP_STATE_H */
