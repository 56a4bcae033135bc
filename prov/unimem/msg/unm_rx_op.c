/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rx_op.c - multi-receive buffers: which bytes a message gets, and when the
 * buffer is the application's again. unm_rx_op.h declares the functions.
 */
#include "core/unm_complete.h"
#include "core/unm_match.h"
#include "msg/unm_rx_op.h"

void unm_multi_retire(struct unm_ep *ep, struct unm_rx_op *buf)
{
	if (buf->retired)
		return;
	buf->retired = true;
	unm_match_unpost(&ep->match[0], &buf->match);
}

uint64_t unm_multi_put(struct unm_ep *ep, struct unm_rx_op *buf)
{
	struct unm_rx_done canceled = {
		.context = buf->match.context, .err = -buf->status,
		.src = FI_ADDR_NOTAVAIL, .flags = FI_MULTI_RECV,
	};
	bool was_canceled = buf->canceled;

	if (!buf->retired || buf->children != 0)
		return 0;
	unm_rx_op_release(ep, buf);
	if (!was_canceled)
		return FI_MULTI_RECV;
	unm_complete_rx(ep, &canceled);
	return 0;
}

void unm_multi_cancel(struct unm_ep *ep, struct unm_rx_op *buf, int err)
{
	buf->canceled = true;
	buf->status = -err;
	unm_multi_retire(ep, buf);
	unm_multi_put(ep, buf);
}

size_t unm_multi_take(struct unm_ep *ep, struct unm_rx_op *buf,
			     uint64_t msg_len, void **where)
{
	size_t len = msg_len < buf->len ? msg_len : buf->len;

	*where = buf->iov[0].iov_base;
	buf->iov[0].iov_base = (char *)buf->iov[0].iov_base + len;
	buf->iov[0].iov_len -= len;
	buf->len -= len;
	if (buf->len < ep->min_multi_recv || buf->len == 0)
		unm_multi_retire(ep, buf);
	return len;
}
