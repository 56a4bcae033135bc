/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_ep.c - fi_endpoint(3): opening, binding, enabling and closing endpoints.
 *
 * An endpoint takes a HAL interface when it is opened, and makes progress once
 * it is enabled: then it is in the lists of the queues, counters and address
 * vector that it is bound to, so that polling any of them progresses it. The
 * state is struct unm_ep (core/unm_ep_state.h). Transfers start in unm_msg.c,
 * unm_tagged.c, unm_rma.c and unm_atomic.c; progress is in
 * progress/unm_progress.c.
 *
 * Entry point: unm_ep_open(). libfabric calls the rest through its tables.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/unm_alias.h"
#include "api/unm_atomic.h"
#include "api/unm_ep.h"
#include "api/unm_ep_limits.h"
#include "api/unm_eq.h"
#include "api/unm_msg.h"
#include "api/unm_rma.h"
#include "api/unm_tagged.h"
#include "core/unm_av_table.h"
#include "core/unm_buf.h"
#include "core/unm_cntr_value.h"
#include "core/unm_cq_ring.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_ep_wake.h"
#include "core/unm_match.h"
#include "core/unm_obj.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_stats.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "msg/unm_recv.h"
#include "progress/unm_peer_life.h"
#include "progress/unm_progress.h"
#include "progress/unm_reach.h"
#include "progress/unm_revoke.h"
#include "rma/unm_bounce.h"
#include "rma/unm_direct.h"
#include "rma/unm_request.h"
#include "rma/unm_target.h"
#include "trigger/unm_trigger.h"
#include "unm_addr.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_log.h"
#include "unm_nosys.h"
#include "unm_offer.h"
#include "unm_refuse.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"
#include "util/unm_pool.h"

#define UNM_MIN_MULTI_RECV	64	/* default of FI_OPT_MIN_MULTI_RECV,
					 * bytes */
#define UNM_LINGER_MS		2000	/* longest wait of fi_close() for
					 * pending sends */

/* ---- Names, options, cancel ------------------------------------------ */

/* The endpoint behind a handle: its own, or an alias. */
static struct unm_ep *unm_ep_fid(struct fid *fid)
{
	return unm_ep(unm_container(fid, struct fid_ep, fid));
}

static int unm_ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct unm_ep *ep = unm_ep_fid(fid);
	uint8_t name[sizeof(struct hal_addr_host)];
	size_t room = *addrlen;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	*addrlen = unm_addr_bytes();
	if (room > *addrlen)
		room = *addrlen;
	unm_addr_export(&ep->hif->addr, ep->hif->host, name);
	if (room != 0)			/* addr may be NULL */
		memcpy(addr, name, room);
	return room < *addrlen ? -FI_ETOOSMALL : 0;
}

static struct fi_ops_cm unm_ops_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = unm_no_setname,
	.getname = unm_ep_getname,
	.getpeer = unm_no_getpeer,
	.connect = unm_no_connect,
	.listen = unm_no_listen,
	.accept = unm_no_accept,
	.reject = unm_no_reject,
	.shutdown = unm_no_shutdown,
	.join = unm_no_join,
};

static ssize_t unm_ep_cancel(fid_t fid, void *context)
{
	struct unm_ep *ep = unm_ep_fid(fid);
	ssize_t ret = unm_recv_cancel(ep, context);

	return ret == -FI_ENOENT ? unm_trigger_cancel(ep, context) : ret;
}

/* Return the value of an option and its size. -FI_ETOOSMALL: the caller's
 * buffer is too small; *len is the size needed. */
static int unm_ep_give(const void *from, size_t bytes, void *val, size_t *len)
{
	size_t room = *len;

	*len = bytes;
	if (room < bytes)
		return -FI_ETOOSMALL;
	memcpy(val, from, bytes);
	return 0;
}

static int unm_ep_getopt(fid_t fid, int level, int name, void *val,
			 size_t *len)
{
	struct unm_ep *ep = unm_ep_fid(fid);
	int p2p = FI_HMEM_P2P_DISABLED;
	size_t v = 0;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		unm_lock(ep->domain);
		v = ep->min_multi_recv;
		unm_unlock(ep->domain);
		return unm_ep_give(&v, sizeof(v), val, len);
	case FI_OPT_CM_DATA_SIZE:	/* there are no connections */
		return unm_ep_give(&v, sizeof(v), val, len);
	case FI_OPT_FI_HMEM_P2P:
		return unm_ep_give(&p2p, sizeof(p2p), val, len);
	case FI_OPT_XPU_TRIGGER:	/* as fi_endpoint(3) says */
		return -FI_EOPNOTSUPP;
	default:
		return -FI_ENOPROTOOPT;
	}
}

static int unm_ep_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	struct unm_ep *ep = unm_ep_fid(fid);
	int p2p;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		if (len != sizeof(ep->min_multi_recv))
			return -FI_EINVAL;
		unm_lock(ep->domain);
		memcpy(&ep->min_multi_recv, val, len);
		unm_unlock(ep->domain);
		return 0;
	case FI_OPT_FI_HMEM_P2P:	/* device memory is not supported */
		if (len != sizeof(p2p))
			return -FI_EINVAL;
		memcpy(&p2p, val, len);
		return p2p == FI_HMEM_P2P_DISABLED ? 0 : -FI_EOPNOTSUPP;
	default:			/* unknown, or read only */
		return -FI_ENOPROTOOPT;
	}
}

static ssize_t unm_ep_rx_left(struct fid_ep *fid)
{
	struct unm_ep *ep = unm_ep(fid);
	ssize_t left;

	unm_lock(ep->domain);
	/* receives of the provider itself use the same pool: used may exceed
	 * rx_size */
	left = (ssize_t)g_unm_env.rx_size - ep->rx_pool.used;
	unm_unlock(ep->domain);
	return left > 0 ? left : 0;
}

static ssize_t unm_ep_tx_left(struct fid_ep *fid)
{
	struct unm_ep *ep = unm_ep(fid);
	ssize_t left;

	unm_lock(ep->domain);
	left = (ssize_t)ep->tx_pool.max - ep->tx_pool.used;
	unm_unlock(ep->domain);
	return left;
}

static struct fi_ops_ep unm_ops_ep = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = unm_ep_cancel,
	.getopt = unm_ep_getopt,
	.setopt = unm_ep_setopt,
	.tx_ctx = unm_no_tx_ctx,
	.rx_ctx = unm_no_rx_ctx,
	.rx_size_left = unm_ep_rx_left,
	.tx_size_left = unm_ep_tx_left,
};

/* ---- Binding --------------------------------------------------------- */

static void unm_ep_link(struct unm_ep *ep, struct unm_ep_links *link,
			struct unm_ref *ref)
{
	link->ep = ep;
	unm_ref_get(ref);
	unm_list_init(&link->node);
}

/* Add the endpoint to the lists of the objects that it is bound to, so that
 * polling them progresses it. The domain is locked. */
static void unm_ep_join(struct unm_ep *ep)
{
	if (ep->tx_cq != NULL)
		unm_list_append(&ep->tx_cq->eps, &ep->in_tx_cq.node);
	if (ep->rx_cq != NULL && ep->rx_cq != ep->tx_cq)
		unm_list_append(&ep->rx_cq->eps, &ep->in_rx_cq.node);
	for (int i = 0; i < UNM_EP_CNTRS && ep->cntr[i] != NULL; i++)
		unm_list_append(&ep->cntr[i]->eps, &ep->in_cntr[i].node);
	unm_list_append(&ep->av->eps, &ep->in_av.node);
	unm_list_append(&ep->domain->eps, &ep->in_domain.node);
	unm_ep_wake_all(ep);		/* threads that sleep already have to
					 * arm this endpoint, too */
}

static int unm_ep_bind_cq(struct unm_ep *ep, struct unm_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain || !(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if (((flags & FI_TRANSMIT) && ep->tx_cq != NULL) ||
	    ((flags & FI_RECV) && ep->rx_cq != NULL))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_bind_flags = flags;
		unm_ep_link(ep, &ep->in_tx_cq, &cq->ref);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_bind_flags = flags;
		unm_ep_link(ep, &ep->in_rx_cq, &cq->ref);
	}
	return 0;
}

/* Reading a counter progresses the endpoint, whatever the counter counts: keep
 * each counter once in ep->cntr. */
static int unm_ep_link_cntr(struct unm_ep *ep, struct unm_cntr *cntr)
{
	for (int i = 0; i < UNM_EP_CNTRS; i++) {
		if (ep->cntr[i] == cntr)
			return 0;
		if (ep->cntr[i] == NULL) {
			ep->cntr[i] = cntr;
			unm_ep_link(ep, &ep->in_cntr[i], &cntr->ref);
			return 0;
		}
	}
	return -FI_EINVAL;
}

static int unm_ep_bind_cntr(struct unm_ep *ep, struct unm_cntr *cntr,
			    uint64_t flags)
{
	int ret;

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_READ | FI_WRITE |
		      FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_EBADFLAGS;
	if (cntr->domain != ep->domain)
		return -FI_EINVAL;
	if (flags & ep->cntr_events)	/* one counter for each event */
		return -FI_EINVAL;
	ret = unm_ep_link_cntr(ep, cntr);
	if (ret != 0)
		return ret;
	ep->cntr_events |= flags;
	if (flags & FI_TRANSMIT)
		ep->tx_cntr = cntr;
	if (flags & FI_RECV)
		ep->rx_cntr = cntr;
	if (flags & FI_READ)
		ep->rd_cntr = cntr;
	if (flags & FI_WRITE)
		ep->wr_cntr = cntr;
	if (flags & FI_REMOTE_READ)
		ep->rem_rd_cntr = cntr;
	if (flags & FI_REMOTE_WRITE)
		ep->rem_wr_cntr = cntr;
	return 0;
}

/* A connectionless endpoint reports no events. The binding only keeps the event
 * queue from being closed. */
static int unm_ep_bind_eq(struct unm_ep *ep, struct fid *eq, uint64_t flags)
{
	struct unm_ref *ref = unm_eq_ref(eq, ep->domain->fabric);

	if (flags != 0)
		return -FI_EBADFLAGS;
	if (ep->eq != NULL || ref == NULL)
		return -FI_EINVAL;
	ep->eq = ref;
	unm_ref_get(ref);
	return 0;
}

static int unm_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct unm_ep *ep = unm_ep_fid(fid);
	struct unm_av *av;
	char name[UNM_NAMES_MAX];

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		av = unm_container(bfid, struct unm_av, fid.fid);
		if (ep->av != NULL || av->domain != ep->domain)
			return -FI_EINVAL;
		ep->av = av;
		ep->av_number = av->number;
		unm_ep_link(ep, &ep->in_av, &ep->av->ref);
		return 0;
	case FI_CLASS_CQ:
		return unm_ep_bind_cq(ep, unm_container(bfid, struct unm_cq,
							fid.fid), flags);
	case FI_CLASS_CNTR:
		return unm_ep_bind_cntr(ep, unm_container(bfid,
					struct unm_cntr, fid.fid), flags);
	case FI_CLASS_EQ:
		return unm_ep_bind_eq(ep, bfid, flags);
	default:
		UNM_INFO(EP_CTRL, "binding %s asked, offered: av, cq, cntr, "
			 "eq\n", unm_value_name(UNM_TYPE_CLASS, bfid->fclass,
						name, sizeof(name)));
		return -FI_EINVAL;
	}
}

/* ---- Enabling -------------------------------------------------------- */

/* Compute the flags of calls without a flags argument (tx_flags, rx_flags), and
 * the flags added to the flags of fi_sendmsg() and its like (tx_msg_flags,
 * rx_msg_flags). */
static void unm_ep_flags(struct unm_ep *ep)
{
	uint64_t tx = ep->info->tx_attr->op_flags & UNM_TX_OP_FLAGS;
	uint64_t rx = ep->info->rx_attr->op_flags & UNM_RX_OP_FLAGS;

	/* calls with flags override the defaults (fi_endpoint(3)) */
	ep->tx_msg_flags = 0;
	ep->rx_msg_flags = 0;
	if (!(ep->tx_bind_flags & FI_SELECTIVE_COMPLETION)) {
		tx |= FI_COMPLETION;
		ep->tx_msg_flags |= FI_COMPLETION;
	}
	if (!(ep->rx_bind_flags & FI_SELECTIVE_COMPLETION)) {
		rx |= FI_COMPLETION;
		ep->rx_msg_flags |= FI_COMPLETION;
	}
	if (ep->tx_cq == NULL) {	/* counters only */
		tx &= ~FI_COMPLETION;
		ep->tx_msg_flags &= ~FI_COMPLETION;
	}
	if (ep->rx_cq == NULL) {
		rx &= ~FI_COMPLETION;
		ep->rx_msg_flags &= ~FI_COMPLETION;
	}
	ep->own.tx_flags = tx;
	ep->own.rx_flags = rx;
	unm_alias_update(ep);
}

static int unm_ep_enable(struct unm_ep *ep)
{
	int ret;

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (ep->owner != getpid()) {
		UNM_WARN(EP_CTRL, "endpoint opened by process %d, enabled by "
			 "process %d: open it after fork()", ep->owner,
			 getpid());
		return -FI_EOPBADSTATE;
	}
	if (ep->av == NULL)
		return -FI_ENOAV;
	if (ep->tx_cq == NULL && ep->rx_cq == NULL && ep->cntr[0] == NULL)
		return -FI_ENOCQ;
	unm_ep_flags(ep);
	ep->directed = (ep->info->caps & FI_DIRECTED_RECV) != 0;
	ep->source_err = (ep->info->caps & FI_SOURCE_ERR) != 0;
	/* Under one lock: a thread that sleeps already is woken by
	 * unm_ep_join(), and a thread that begins to sleep later finds the
	 * endpoint in the list. */
	unm_lock(ep->domain);
	ret = unm_wait_add_ep(ep);
	if (ret == 0) {
		ep->enabled = true;
		ep->recv_ok = ep->rx_cq != NULL || ep->rx_cntr != NULL;
		unm_ep_join(ep);
	} else {
		unm_wait_remove_ep(ep);
	}
	unm_unlock(ep->domain);
	return ret;
}

/* FI_SETOPSFLAG, FI_GETOPSFLAG: the default flags of one direction, which
 * FI_TRANSMIT or FI_RECV among the flags selects. The application makes no
 * other call on the endpoint meanwhile (fi_endpoint(3)). */
static int unm_ep_op_flags(struct unm_ep *ep, int command, uint64_t *flags)
{
	uint64_t way, allowed, *own;

	if (flags == NULL)
		return -FI_EINVAL;
	way = *flags & (FI_TRANSMIT | FI_RECV);
	if (way != FI_TRANSMIT && way != FI_RECV)
		return -FI_EINVAL;
	own = way == FI_TRANSMIT ? &ep->info->tx_attr->op_flags :
		&ep->info->rx_attr->op_flags;
	allowed = way == FI_TRANSMIT ? UNM_TX_OP_FLAGS : UNM_RX_OP_FLAGS;
	if (command == FI_GETOPSFLAG) {
		*flags = *own;
		return 0;
	}
	if (*flags & ~way & ~allowed)
		return -FI_EBADFLAGS;
	*own = *flags & ~way;
	if (ep->enabled)
		unm_ep_flags(ep);
	return 0;
}

static int unm_ep_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_SETOPSFLAG:
	case FI_GETOPSFLAG:
		return unm_ep_op_flags(unm_ep_fid(fid), command, arg);
	case FI_ENABLE:
		return unm_ep_enable(unm_ep_fid(fid));
	case FI_ALIAS:
		return unm_alias_open(unm_ep_fid(fid), arg);
	default:
		return -FI_ENOSYS;
	}
}

/* ---- Closing --------------------------------------------------------- */

static void unm_ep_print_stats(struct unm_ep *ep)
{
	const char *where = g_unm_env.stats;
	const struct unm_stats *st = ep->stats;
	FILE *out = stderr;
	struct stat sb;
	char path[512];

	if (!ep->enabled || *where == '\0' || strcmp(where, "0") == 0)
		return;
	if (stat(where, &sb) == 0 && S_ISDIR(sb.st_mode)) {
		snprintf(path, sizeof(path), "%s/%d.%u.stats", where, getpid(),
			 ep->hif->addr.iface);
		out = fopen(path, "we");
		if (out == NULL) {
			UNM_WARN(EP_CTRL, "cannot write %s: %s", path,
				 strerror(errno));
			return;
		}
	}
	fprintf(out, "hal=%s profile=%s board=%u if=%u pid=%d",
		ep->hif->caps->backend, ep->hif->caps->profile,
		ep->hif->addr.board, ep->hif->addr.iface, getpid());
#define UNM_PRINT(name, help) \
	fprintf(out, " " #name "=%llu", (unsigned long long)st->name);
	UNM_STATS_COUNTERS(UNM_PRINT)
#undef UNM_PRINT
	fprintf(out, "\n");
	if (out != stderr)
		fclose(out);
}

/* True: an injected message was not sent yet, or a peer was not yet sent the
 * answer to a request or the FIN of a rendezvous message. */
static bool unm_ep_owes(struct unm_ep *ep)
{
	unm_list_for_each(pos, &ep->direct)
		if (unm_container(pos, struct unm_os_op, link)->a.inject)
			return true;
	unm_list_for_each(pos, &ep->pending_peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      in_pending);

		if (!unm_list_empty(&peer->answers) ||
		    !unm_list_empty(&peer->nacks))
			return true;
		unm_list_for_each(op, &peer->unsent)
			if (unm_container(op, struct unm_os_op,
					  unsent)->a.inject)
				return true;
		unm_list_for_each(op, &peer->backlog)
			if (unm_container(op, struct unm_tx_op,
					  link)->send.inject)
				return true;
		unm_list_for_each(fin, &peer->control)
			if (unm_container(fin, struct unm_rx_op,
					  control)->state == UNM_RX_FIN)
				return true;
	}
	return false;
}

/*
 * Send what completed operations still have to send, for UNM_LINGER_MS at most:
 * a receive may be complete here while its sender waits for the FIN, and an
 * injected message may be in the backlog. Packets that were sent are in the
 * peer's memory and do not need this endpoint any more.
 */
static void unm_ep_linger(struct unm_ep *ep)
{
	uint64_t end = unm_now_us() + UNM_LINGER_MS * 1000;

	while (unm_ep_owes(ep) && unm_now_us() < end) {
		unm_progress(ep);
		unm_unlock(ep->domain);
		sched_yield();
		unm_lock(ep->domain);
	}
}

/* Undo unm_ep_join(). The domain is locked. */
static void unm_ep_part(struct unm_ep *ep)
{
	unm_list_remove(&ep->in_domain.node);
	if (ep->tx_cq != NULL)
		unm_list_remove(&ep->in_tx_cq.node);
	if (ep->rx_cq != NULL)
		unm_list_remove(&ep->in_rx_cq.node);
	if (ep->av != NULL)
		unm_list_remove(&ep->in_av.node);
	for (int i = 0; i < UNM_EP_CNTRS && ep->cntr[i] != NULL; i++)
		unm_list_remove(&ep->in_cntr[i].node);
}

static void unm_ep_destruct(struct unm_ep *ep)
{
	unm_bounce_close(ep);
	unm_match_destruct(&ep->match[0]);
	unm_match_destruct(&ep->match[1]);
	unm_named_clear(&ep->named);
	unm_pool_destruct(&ep->tx_pool);
	unm_pool_destruct(&ep->rx_pool);
	unm_pool_destruct(&ep->msg_pool);
	unm_pool_destruct(&ep->os_pool);
	unm_pool_destruct(&ep->answer_pool);
	for (int i = 0; i < UNM_BUF_CLASSES; i++)
		unm_pool_destruct(&ep->buf_pool[i]);
	fi_freeinfo(ep->info);
	unm_ref_put(&ep->domain->ref);
	free(ep);
}

/* Release the objects that the endpoint was bound to, so that they can be
 * closed. */
static void unm_ep_unref(struct unm_ep *ep)
{
	if (ep->tx_cq != NULL)
		unm_ref_put(&ep->tx_cq->ref);
	if (ep->rx_cq != NULL)
		unm_ref_put(&ep->rx_cq->ref);
	if (ep->av != NULL)
		unm_ref_put(&ep->av->ref);
	if (ep->eq != NULL)
		unm_ref_put(ep->eq);
	for (int i = 0; i < UNM_EP_CNTRS && ep->cntr[i] != NULL; i++)
		unm_ref_put(&ep->cntr[i]->ref);
}

static int unm_ep_close(struct fid *fid)
{
	struct unm_ep *ep = unm_ep_fid(fid);
	struct unm_domain *domain = ep->domain;
	int ret;

	if (!unm_lock_close(domain, ep->owner)) {
		unm_ep_unref(ep);
		unm_ref_put(&domain->ref);
		return 0;
	}
	if (!unm_list_empty(&ep->aliases)) {
		unm_unlock(domain);
		return -FI_EBUSY;
	}
	/* a forked child has no mapping of the memory shared with peers */
	if (ep->owner == getpid()) {
		unm_ep_linger(ep);
		ret = unm_target_close(ep);
		if (ret != 0) {
			unm_unlock(domain);
			return ret;
		}
		HAL_FAULT_POINT(HAL_FAULT_POINT_CLOSING);
		unm_ep_print_stats(ep);
	}
	unm_trigger_drop(ep);
	unm_wait_remove_ep(ep);
	unm_direct_release_all(ep);
	hal_if_close(ep->hif);
	ep->stats = &ep->no_page;
	unm_peer_close_all(ep);
	unm_trigger_end(ep);
	unm_ep_part(ep);
	unm_unlock(domain);
	unm_ep_unref(ep);
	unm_ep_destruct(ep);
	return 0;
}

static struct fi_ops unm_ops_ep_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_ep_close,
	.bind = unm_ep_bind,
	.control = unm_ep_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

/* ---- Opening --------------------------------------------------------- */

static int unm_ep_construct(struct unm_ep *ep)
{
	size_t tx_size = ep->info->tx_attr->size;

	if (tx_size == 0)
		tx_size = g_unm_env.tx_size;
	unm_pool_construct(&ep->tx_pool, sizeof(struct unm_tx_op), tx_size);
	unm_pool_construct(&ep->os_pool, sizeof(struct unm_os_op), tx_size);
	unm_pool_construct(&ep->answer_pool, unm_answer_size(), UINT32_MAX);
	unm_pool_construct(&ep->rx_pool, sizeof(struct unm_rx_op), UINT32_MAX);
	unm_pool_construct(&ep->msg_pool, sizeof(struct unm_msg), UINT32_MAX);
	for (int i = 0; i < UNM_BUF_CLASSES; i++)
		unm_pool_construct(&ep->buf_pool[i], unm_buf_size(i),
				   UINT32_MAX);
	unm_list_init(&ep->pending_peers);
	unm_list_init(&ep->dma_wait);
	unm_list_init(&ep->streams);
	unm_list_init(&ep->direct);
	unm_list_init(&ep->claimed);
	unm_list_init(&ep->peers);
	unm_list_init(&ep->unresolved);
	unm_list_init(&ep->grown);
	unm_list_init(&ep->throttled);
	unm_list_init(&ep->aliases);
	ep->in_domain.ep = ep;
	unm_list_init(&ep->in_domain.node);
	ep->min_multi_recv = UNM_MIN_MULTI_RECV;
	ep->no_page.version = UNM_STATS_VERSION;
	ep->no_page.count = (sizeof(ep->no_page) - 8) / sizeof(uint64_t);
	ep->stats = &ep->no_page;
	if (unm_match_construct(&ep->match[0]) != 0 ||
	    unm_match_construct(&ep->match[1]) != 0)
		return -FI_ENOMEM;
	return 0;
}

/* Open the HAL interface of an endpoint. This is done when the endpoint is
 * opened, not when it is enabled, because applications expect fi_endpoint() to
 * fail if a resource is missing. */
static int unm_ep_place(struct unm_ep *ep)
{
	struct hal *hal = ep->domain->hal;
	struct hal_addr addr = { .iface = 0 };
	struct hal_host host;
	int ret;

	if (ep->info->src_addr != NULL)
		unm_addr_import(ep->info->src_addr, &addr, &host);
	unm_addr_settle(hal, &addr);
	if (addr.iface == 0)
		ret = hal_if_open(hal, -1, &ep->hif);
	else
		ret = hal_if_open_number(hal, addr.board, (int)addr.iface,
					 &ep->hif);
	if (ret != 0)
		return ret;
	ep->hif->user = ep;
	ep->hif->peer_waits = unm_peer_waits;
	ep->hif->peer_awaited = unm_reach_awaited;
	if (ep->hif->host != NULL)
		for (int i = 0; i < 2; i++)
			ep->match[i].named = &ep->named;
	ep->owner = getpid();
	ep->stats = (void *)((char *)ep->hif->page + UNM_STATS_OFFSET);
	*ep->stats = ep->no_page;
	unm_ep_limits(ep);
	UNM_INFO(EP_CTRL, "interface %u:%u: backend %s, profile %s, "
		 "inline below %u, eager up to %u bytes\n", ep->hif->addr.board,
		 ep->hif->addr.iface, ep->hif->caps->backend,
		 ep->hif->caps->profile, ep->inline_end[1][1], ep->eager_max);
	return 0;
}

int unm_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **fid, void *context)
{
	struct unm_ep *ep;
	int ret;

	if (info == NULL || info->ep_attr == NULL || info->tx_attr == NULL ||
	    info->rx_attr == NULL)
		return -FI_EINVAL;
	if (info->ep_attr->type != FI_EP_RDM) {
		unm_refuse("endpoint type", FI_TYPE_EP_TYPE,
			   info->ep_attr->type, FI_EP_RDM);
		return -FI_ENOPROTOOPT;
	}
	if (!unm_info_offered(info))
		return -FI_EINVAL;
	ep = aligned_alloc(64, sizeof(*ep));
	if (ep == NULL)
		return -FI_ENOMEM;
	memset(ep, 0, sizeof(*ep));
	ep->domain = unm_domain(domain);
	unm_ref_get(&ep->domain->ref);
	ep->info = fi_dupinfo(info);
	ret = -FI_ENOMEM;
	if (ep->info != NULL)
		ret = unm_ep_construct(ep);
	if (ret == 0)
		ret = unm_ep_place(ep);
	if (ret != 0) {
		unm_ep_destruct(ep);
		return ret;
	}
	ep->own.ep = ep;
	*fid = &ep->own.fid;
	unm_fid_init(&(*fid)->fid, FI_CLASS_EP, &unm_ops_ep_fid, context);
	(*fid)->ops = &unm_ops_ep;
	(*fid)->cm = &unm_ops_cm;
	(*fid)->msg = &unm_ops_msg;
	(*fid)->tagged = &unm_ops_tagged;
	(*fid)->rma = &unm_ops_rma;
	(*fid)->atomic = &unm_ops_atomic;
	return 0;
}
