/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_alias.c - fi_ep_alias(3): a second handle of an endpoint. It has the
 * endpoint's tables of calls, and default flags of its own.
 */
#include <stdlib.h>

#include "api/unm_alias.h"
#include "core/unm_domain_state.h"
#include "core/unm_ep_state.h"
#include "core/unm_obj.h"
#include "unm_nosys.h"
#include "unm_offer.h"
#include "util/unm_list.h"

struct unm_alias {
	struct unm_handle handle;
	struct unm_list node;		/* in the endpoint's aliases */
	/* default flags, with FI_TRANSMIT or FI_RECV; 0: the endpoint's */
	uint64_t tx_op_flags, rx_op_flags;
};

static struct unm_alias *unm_alias(struct fid *fid)
{
	return unm_container(fid, struct unm_alias, handle.fid.fid);
}

/* Compute the flags of calls without a flags argument. Another thread may call
 * the alias while those of its endpoint are set: store no intermediate value.
 * The domain is locked. */
static void unm_alias_flags(struct unm_alias *a)
{
	const struct unm_ep *ep = a->handle.ep;
	uint64_t tx = ep->own.tx_flags, rx = ep->own.rx_flags;

	if (a->tx_op_flags != 0)
		tx = (a->tx_op_flags & ~FI_TRANSMIT) | ep->tx_msg_flags;
	if (a->rx_op_flags != 0)
		rx = (a->rx_op_flags & ~FI_RECV) | ep->rx_msg_flags;
	if (a->handle.tx_flags != tx)
		a->handle.tx_flags = tx;
	if (a->handle.rx_flags != rx)
		a->handle.rx_flags = rx;
}

void unm_alias_update(struct unm_ep *ep)
{
	unm_lock(ep->domain);
	unm_list_for_each(pos, &ep->aliases)
		unm_alias_flags(unm_container(pos, struct unm_alias, node));
	unm_unlock(ep->domain);
}

/* Set the default flags of one direction: FI_TRANSMIT or FI_RECV, and the
 * flags. The application makes no other call on the alias meanwhile
 * (fi_endpoint(3)). Returns 0, -FI_EINVAL or -FI_EBADFLAGS. */
static int unm_alias_set(struct unm_alias *a, uint64_t flags)
{
	uint64_t allowed = a->handle.ep->info->caps & FI_TRIGGER;
	uint64_t way = flags & (FI_TRANSMIT | FI_RECV);

	if (way != FI_TRANSMIT && way != FI_RECV)
		return -FI_EINVAL;
	allowed |= way == FI_TRANSMIT ? UNM_TX_OP_FLAGS : UNM_RX_OP_FLAGS;
	if (flags & ~way & ~allowed)
		return -FI_EBADFLAGS;
	*(way == FI_TRANSMIT ? &a->tx_op_flags : &a->rx_op_flags) = flags;
	return 0;
}

static int unm_alias_close(struct fid *fid)
{
	struct unm_alias *a = unm_alias(fid);
	struct unm_ep *ep = a->handle.ep;

	/* in a forked child the list may be inconsistent: keep the alias */
	if (!unm_lock_close(ep->domain, ep->owner))
		return 0;
	unm_list_remove(&a->node);
	unm_unlock(ep->domain);
	free(a);
	return 0;
}

/* FI_SETOPSFLAG, FI_GETOPSFLAG: the default flags. */
static int unm_alias_control(struct fid *fid, int command, void *arg)
{
	struct unm_alias *a = unm_alias(fid);
	struct fid *own = &a->handle.ep->own.fid.fid;
	uint64_t *flags = arg, way;

	if (command != FI_SETOPSFLAG && command != FI_GETOPSFLAG)
		return -FI_ENOSYS;
	if (flags == NULL)
		return -FI_EINVAL;
	if (command == FI_SETOPSFLAG) {
		int ret = unm_alias_set(a, *flags);

		unm_alias_update(a->handle.ep);
		return ret;
	}
	way = *flags & (FI_TRANSMIT | FI_RECV);
	if (way == FI_TRANSMIT && a->tx_op_flags != 0)
		*flags = a->tx_op_flags & ~FI_TRANSMIT;
	else if (way == FI_RECV && a->rx_op_flags != 0)
		*flags = a->rx_op_flags & ~FI_RECV;
	else
		return own->ops->control(own, command, flags);
	return 0;
}

static struct fi_ops unm_ops_alias_fid = {
	.size = sizeof(struct fi_ops),
	.close = unm_alias_close,
	.bind = unm_no_bind,
	.control = unm_alias_control,
	.ops_open = unm_no_ops_open,
	.tostr = unm_no_tostr,
	.ops_set = unm_no_ops_set,
};

int unm_alias_open(struct unm_ep *ep, void *arg)
{
	struct fi_alias *want = arg;
	struct unm_alias *a;
	int ret;

	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -FI_ENOMEM;
	a->handle.fid = ep->own.fid;
	a->handle.fid.fid.ops = &unm_ops_alias_fid;
	a->handle.ep = ep;
	ret = unm_alias_set(a, want->flags);
	if (ret != 0) {
		free(a);
		return ret;
	}
	unm_lock(ep->domain);
	unm_alias_flags(a);
	unm_list_append(&ep->aliases, &a->node);
	unm_unlock(ep->domain);
	*want->fid = &a->handle.fid.fid;
	return 0;
}
