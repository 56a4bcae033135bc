/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_ep.h - endpoint: one HAL interface and all that goes on over it. */
#ifndef UNM_EP_H
#define UNM_EP_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "core/unm_match.h"
#include "core/unm_obj.h"
#include "core/unm_stats.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

struct unm_send;
struct unm_tx_op;

#define UNM_CLOCK_POLLS	16		/* empty polls per look at the clock */
#define UNM_CLOCK_BUSY	1024		/* polls that are not empty */
#define UNM_EP_CNTRS	6		/* one per event a counter may count */
#define UNM_BUF_CLASSES	4		/* of copies of unexpected messages */

struct unm_ep_links {		/* places in other objects' lists */
	struct unm_list node;
	struct unm_ep *ep;
};

struct unm_sweep {		/* over the operations, for their ages */
	uint32_t next;			/* of tx_pool, then rx_pool */
	uint64_t oldest;		/* us; 0: none found yet */
	uint64_t oldest_recv;
};

struct unm_ep {
	struct fid_ep fid;
	struct hal_if *hif;		/* its place in the fabric */
	struct unm_domain *domain;
	struct unm_peer **peer_of;	/* by AV index; NULL: not connected */
	uint32_t peer_slots;
	uint16_t inline_max[2][2];	/* [tagged][has_data] */
	uint32_t eager_max;
	bool enabled;
	bool recv_ok;			/* a receive queue is bound */
	bool directed;			/* receives may name their source */
	bool source_err;		/* strangers are told with addresses */
	uint32_t av_number;		/* unm_av.number of av; 0: no vector */
	uint64_t tx_flags;		/* of calls without flags */
	uint64_t tx_msg_flags;		/* added to those with flags */
	uint64_t rx_flags;
	uint64_t rx_msg_flags;
	struct unm_cq *tx_cq, *rx_cq;
	struct unm_cntr *tx_cntr, *rx_cntr;
	struct unm_cntr *rd_cntr, *wr_cntr;	/* own reads, writes */
	struct unm_cntr *rem_rd_cntr, *rem_wr_cntr;	/* those of peers */
	struct unm_stats *stats;
	struct unm_match match[2];	/* [tagged] */
	struct unm_pool tx_pool, rx_pool, msg_pool;
	struct unm_pool os_pool, answer_pool;	/* one-sided */
	struct unm_pool buf_pool[UNM_BUF_CLASSES];
	struct unm_list busy;		/* peers with something to send */
	struct unm_list dma_wait;	/* rx_ops with transfers to post */
	struct unm_list streams;	/* rx_ops in STREAM that are readable */
	struct unm_list direct;		/* os_ops we do in steps */
	struct unm_list claimed;	/* unexpected messages, FI_CLAIM */
	struct unm_list peers;		/* every peer */
	struct unm_list strangers;	/* those not in the vector */
	uint32_t dma_out;		/* transfers outstanding */
	uint64_t ended_ns;		/* clock when a rendezvous last ended */
	struct unm_wire_limits limits;
	/* idling */
	uint32_t turns;			/* calls of progress */
	uint32_t cold;			/* next peer beyond the hot ones */
	uint64_t next_service;		/* clock ticks */
	bool armed;
	bool closing;			/* no routes to it any more */
	bool ops_wanted;		/* a send was refused for want of one */
	bool stuck;			/* an answer waits for what nothing
					 * tells of: no sleep */
	/* unexpected messages */
	uint64_t unexpected_bytes;
	struct unm_list held;		/* peers that get no credits */
	size_t min_multi_recv;
	struct unm_av *av;
	struct unm_ref *eq;		/* of the event queue, may be NULL */
	struct fi_info *info;
	struct unm_cntr *cntr[UNM_EP_CNTRS];	/* every one bound */
	uint64_t cntr_events;		/* what they count, as flags */
	struct unm_ep_links in_tx_cq, in_rx_cq, in_av, in_cntr[UNM_EP_CNTRS];
	struct unm_ep_links in_domain;
	struct unm_ref aliases;		/* fi_ep_alias(): unm_alias.c */
	uint64_t tx_bind_flags, rx_bind_flags;
	pid_t owner;			/* who opened it, not a child */
	struct unm_stats no_page;	/* stats without a place */
	uint64_t next_levels;		/* clock, as next_service */
	struct unm_sweep sweep;
};

static inline struct unm_ep *unm_ep(struct fid_ep *fid)
{
	return (struct unm_ep *)fid;
}

/* unm_progress.c: move what can be moved. Returns things done. */
int unm_progress(struct unm_ep *ep);
/* Take what a peer sent, boundedly. Returns packets taken. */
int unm_progress_peer(struct unm_peer *peer);
/* Transfers that ended. Tokens of one-sided operations have this bit. */
#define UNM_DMA_ONESIDED	(UINT64_C(1) << 31)
void unm_dma_poll(struct unm_ep *ep);
/* A thread slept on them: look at connections and deaths, whatever the clock
 * says. */
void unm_slept_list(struct unm_list *eps);
/* 0: every endpoint armed; -FI_EAGAIN: something is there. */
int unm_arm_list(struct unm_list *eps);
/* What a thread blocked on a descriptor was promised by fi_trywait() is no
 * longer so, by another thread's doing: have it look again. */
void unm_disturb(struct unm_ep *ep);
/* What was refused may be tried again: whoever blocks on a descriptor is woken,
 * and fi_trywait() refuses once, for each queue and counter. */
void unm_room(struct unm_ep *ep);
/* A sleeper is awake and polls for the others, too; or polls no longer: who
 * still sleeps has to look. */
void unm_awake_list(struct unm_list *eps);
void unm_leave_list(struct unm_list *eps);

/* unm_gauge.c: queues, credits and ages, for unimem_info. */
void unm_levels_refresh(struct unm_ep *ep, uint64_t now_us);

/* unm_send.c: the slow half of sending (eager, rendezvous). 0 or error. */
ssize_t unm_send_slow(struct unm_ep *ep, fi_addr_t dest, struct unm_send *s);
void unm_send_on_cts(struct unm_peer *peer, const struct unm_wire_msg *m);
void unm_send_on_fin(struct unm_peer *peer, const struct unm_wire_msg *m);
/* Advance what a peer awaits and streams. Returns things done. */
int unm_send_progress(struct unm_peer *peer);
/* The peer is gone: complete its sends in error. */
void unm_send_abort(struct unm_peer *peer, int err);

/* unm_recv.c, unm_rendezvous.c: receiving. */
int unm_recv_data(struct unm_peer *peer, const struct unm_wire_msg *m,
		  const void *bytes);
/* Memory for bytes that outlive a call, up to UNM_WIRE_EAGER_LIMIT, behind the
 * node; its class says which pool it goes back to. NULL: no memory. */
struct unm_pool_node *unm_buf_alloc(struct unm_ep *ep, size_t len,
				   uint8_t *class);
/* Tell a peer what it is to be told. Returns packets sent. */
int unm_recv_progress(struct unm_peer *peer);
/* Read the rest of a stream whose sender is silent; for empty polls. */
void unm_recv_streams(struct unm_ep *ep);
void unm_recv_dma_post(struct unm_ep *ep);
void unm_recv_dma_done(struct unm_ep *ep, const struct hal_dma_comp *comp);
void unm_recv_abort(struct unm_peer *peer, int err);
void unm_recv_renamed(struct unm_peer *peer);
/* Indices were removed from the address vector: posted receives that name one
 * match no more, and those that name a duplicate match its new name. */
void unm_recv_removed(struct unm_ep *ep);
ssize_t unm_recv_buf(struct unm_ep *ep, bool tagged, void *buf, size_t len,
		     fi_addr_t src, uint64_t tag, uint64_t ignore,
		     void *context, uint64_t flags);
ssize_t unm_recv_vector(struct unm_ep *ep, bool tagged,
			const struct iovec *iov, size_t count, fi_addr_t src,
			uint64_t tag, uint64_t ignore, void *context,
			uint64_t flags);
ssize_t unm_recv_peek(struct unm_ep *ep, uint64_t tag, uint64_t ignore,
		      fi_addr_t src, void *context, uint64_t flags);
ssize_t unm_recv_claimed(struct unm_ep *ep, const struct iovec *iov,
			 size_t count, void *context, uint64_t flags);
ssize_t unm_recv_cancel(struct unm_ep *ep, void *context);
/* The same for a caller that has the domain's lock. */
ssize_t unm_recv_cancel_locked(struct unm_ep *ep, void *context);

/* unm_complete.c: the one way out of every operation. */
void unm_complete_tx(struct unm_ep *ep, bool tagged, uint64_t flags,
		     void *context);
void unm_complete_tx_err(struct unm_ep *ep, const struct unm_tx_op *op,
			 int err);
struct unm_rx_done {			/* a finished receive */
	void *context;
	uint64_t flags;			/* FI_COMPLETION wanted, FI_MULTI_RECV
					 * released, FI_REMOTE_CQ_DATA */
	bool tagged;
	bool peek;			/* not received: no counter */
	uint64_t len;			/* bytes in the buffer */
	uint64_t olen;			/* bytes that did not fit */
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	const struct unm_peer *peer;	/* its sender, NULL: none */
	int err;			/* positive fi_errno, 0 fine */
};
void unm_complete_rx(struct unm_ep *ep, const struct unm_rx_done *done);

struct unm_access;
struct unm_mr;
/* One of ours on a peer's memory is over; err: positive fi_errno, 0 fine. */
void unm_complete_onesided(struct unm_ep *ep, const struct unm_access *a,
			   int err);
/* Remote CQ data of a write by a peer. */
struct unm_target_data {
	uint64_t data;
	uint64_t len;			/* bytes that the operation wrote */
};
/* A peer has accessed all of a range in a region of this endpoint's domain.
 * what: FI_REMOTE_READ, FI_REMOTE_WRITE, or both for an atomic that fetches and
 * can change the range. last: the range is the operation's last one. data: NULL
 * without remote CQ data. */
void unm_complete_target(struct unm_peer *peer, const struct unm_mr *mr,
			 uint64_t what, bool last,
			 const struct unm_target_data *data);

#endif /* UNM_EP_H */
