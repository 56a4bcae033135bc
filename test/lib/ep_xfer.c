/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_xfer.c - one message by any of the calls that send and receive; see
 * ep_xfer.h.
 *
 * Owns the pattern of the bytes (xfer_fill(), xfer_filled()), the buffers of a
 * message and the checks of its completions. ep_pair.c owns the endpoints.
 */
#include "lib/ep_xfer.h"

#define UNTOUCHED	0xEE

/* ---- Bytes ----------------------------------------------------------- */

static uint64_t word_at(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) + i *
		UINT64_C(0xBF58476D1CE4E5B9);

	return z ^ z >> 29;
}

void xfer_fill(void *buf, size_t len, uint64_t seed, size_t from)
{
	uint8_t *b = buf;

	for (size_t i = 0; i < len; ) {
		uint64_t w = word_at(seed, (from + i) / 8);
		unsigned at = (from + i) % 8;

		for (; at < 8 && i < len; at++, i++)
			b[i] = (uint8_t)(w >> 8 * at);
	}
}

bool xfer_filled(const void *buf, size_t len, uint64_t seed, size_t from)
{
	const uint8_t *b = buf;

	for (size_t i = 0; i < len; ) {
		uint64_t w = word_at(seed, (from + i) / 8);
		unsigned at = (from + i) % 8;

		for (; at < 8 && i < len; at++, i++)
			if (b[i] != (uint8_t)(w >> 8 * at))
				return false;
	}
	return true;
}

/* ---- Buffers --------------------------------------------------------- */

/* Cut len bytes into n pieces of uneven sizes, guards between them. */
static uint8_t *cut(struct iovec *iov, unsigned n, size_t len, uint64_t seed)
{
	uint8_t *mem = malloc(len + (n + 1) * XFER_GUARD);
	uint8_t *at = mem;

	assert_non_null(mem);
	memset(mem, UNTOUCHED, len + (n + 1) * XFER_GUARD);
	for (unsigned i = 0; i < n; i++) {
		size_t part = i == n - 1 ? len :
			unit_random(&seed) % (2 * len / (n - i) + 1);

		if (part > len)
			part = len;
		at += XFER_GUARD;
		iov[i].iov_base = at;
		iov[i].iov_len = part;
		at += part;
		len -= part;
	}
	return mem;
}

void xfer_make(struct xfer *x)
{
	size_t from = 0;

	if (x->room == 0)
		x->room = x->len;
	if (x->tx_iov == 0)
		x->tx_iov = 1;
	if (x->rx_iov == 0)
		x->rx_iov = 1;
	x->out = cut(x->out_iov, x->tx_iov, x->len, x->seed * 2);
	x->in = cut(x->in_iov, x->rx_iov, x->room, x->seed * 2 + 1);
	for (unsigned i = 0; i < x->tx_iov; i++) {
		xfer_fill(x->out_iov[i].iov_base, x->out_iov[i].iov_len,
			  x->seed, from);
		from += x->out_iov[i].iov_len;
	}
}

void xfer_free(struct xfer *x)
{
	free(x->out);
	free(x->in);
}

/* ---- Calls ----------------------------------------------------------- */

bool xfer_inject(const struct xfer *x)
{
	return x->tx == XFER_INJECT || x->tx == XFER_INJECTDATA ||
		x->tx == XFER_SENDMSG_INJECT;
}

bool xfer_tx_completes(const struct xfer *x)
{
	return x->tx != XFER_INJECT && x->tx != XFER_INJECTDATA;
}

bool xfer_has_data(const struct xfer *x)
{
	return x->tx == XFER_SENDMSG_DATA || x->tx == XFER_SENDDATA ||
		x->tx == XFER_INJECTDATA;
}

static uint64_t sendmsg_flags(const struct xfer *x)
{
	return FI_COMPLETION | x->tx_flags |
		(x->tx == XFER_SENDMSG_DATA ? FI_REMOTE_CQ_DATA : 0) |
		(x->tx == XFER_SENDMSG_INJECT ? FI_INJECT : 0);
}

static ssize_t send_msg(struct ep *e, fi_addr_t dest, struct xfer *x)
{
	const void *buf = x->out_iov[0].iov_base;
	struct fi_msg msg = {
		.msg_iov = x->out_iov, .iov_count = x->tx_iov, .addr = dest,
		.context = &x->txc, .data = x->data,
	};

	switch (x->tx) {
	case XFER_SEND:
		return fi_send(e->ep, buf, x->len, NULL, dest, &x->txc);
	case XFER_SENDV:
		return fi_sendv(e->ep, x->out_iov, NULL, x->tx_iov, dest,
				&x->txc);
	case XFER_INJECT:
		return fi_inject(e->ep, buf, x->len, dest);
	case XFER_SENDDATA:
		return fi_senddata(e->ep, buf, x->len, NULL, x->data, dest,
				   &x->txc);
	case XFER_INJECTDATA:
		return fi_injectdata(e->ep, buf, x->len, x->data, dest);
	default:
		return fi_sendmsg(e->ep, &msg, sendmsg_flags(x));
	}
}

static ssize_t send_tagged(struct ep *e, fi_addr_t dest, struct xfer *x)
{
	const void *buf = x->out_iov[0].iov_base;
	struct fi_msg_tagged msg = {
		.msg_iov = x->out_iov, .iov_count = x->tx_iov, .addr = dest,
		.tag = x->tag, .context = &x->txc, .data = x->data,
	};

	switch (x->tx) {
	case XFER_SEND:
		return fi_tsend(e->ep, buf, x->len, NULL, dest, x->tag,
				&x->txc);
	case XFER_SENDV:
		return fi_tsendv(e->ep, x->out_iov, NULL, x->tx_iov, dest,
				 x->tag, &x->txc);
	case XFER_INJECT:
		return fi_tinject(e->ep, buf, x->len, dest, x->tag);
	case XFER_SENDDATA:
		return fi_tsenddata(e->ep, buf, x->len, NULL, x->data, dest,
				    x->tag, &x->txc);
	case XFER_INJECTDATA:
		return fi_tinjectdata(e->ep, buf, x->len, x->data, dest,
				      x->tag);
	default:
		return fi_tsendmsg(e->ep, &msg, sendmsg_flags(x));
	}
}

ssize_t xfer_send(struct ep *e, fi_addr_t dest, struct xfer *x)
{
	ssize_t ret = x->tagged ? send_tagged(e, dest, x) :
		send_msg(e, dest, x);

	/* an injected buffer is ours again at once */
	if (ret == 0 && xfer_inject(x))
		for (unsigned i = 0; i < x->tx_iov; i++)
			memset(x->out_iov[i].iov_base, 0xDD,
			       x->out_iov[i].iov_len);
	return ret;
}

static ssize_t recv_msg(struct ep *e, fi_addr_t src, struct xfer *x)
{
	struct fi_msg msg = {
		.msg_iov = x->in_iov, .iov_count = x->rx_iov, .addr = src,
		.context = &x->rxc,
	};

	switch (x->rx) {
	case XFER_RECV:
		return fi_recv(e->ep, x->in_iov[0].iov_base, x->room, NULL,
			       src, &x->rxc);
	case XFER_RECVV:
		return fi_recvv(e->ep, x->in_iov, NULL, x->rx_iov, src,
				&x->rxc);
	default:
		return fi_recvmsg(e->ep, &msg, FI_COMPLETION);
	}
}

ssize_t xfer_recv(struct ep *e, fi_addr_t src, struct xfer *x)
{
	struct fi_msg_tagged msg = {
		.msg_iov = x->in_iov, .iov_count = x->rx_iov, .addr = src,
		.tag = x->tag, .ignore = x->ignore, .context = &x->rxc,
	};

	if (!x->tagged)
		return recv_msg(e, src, x);
	switch (x->rx) {
	case XFER_RECV:
		return fi_trecv(e->ep, x->in_iov[0].iov_base, x->room, NULL,
				src, x->tag, x->ignore, &x->rxc);
	case XFER_RECVV:
		return fi_trecvv(e->ep, x->in_iov, NULL, x->rx_iov, src,
				 x->tag, x->ignore, &x->rxc);
	default:
		return fi_trecvmsg(e->ep, &msg, FI_COMPLETION);
	}
}

/* ---- Checks ---------------------------------------------------------- */

static bool untouched(const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (b[i] != UNTOUCHED)
			return false;
	return true;
}

void xfer_check_bytes(struct xfer *x, size_t len)
{
	size_t from = 0;

	assert_true(untouched(x->in, XFER_GUARD));
	for (unsigned i = 0; i < x->rx_iov; i++) {
		const uint8_t *base = x->in_iov[i].iov_base;
		size_t room = x->in_iov[i].iov_len;
		size_t part = len - from < room ? len - from : room;

		if (!xfer_filled(base, part, x->seed, from))
			unit_fail("wrong bytes: length %zu, piece %u", x->len,
				  i);
		if (!untouched(base + part, room - part + XFER_GUARD))
			unit_fail("written beyond: length %zu, piece %u",
				  x->len, i);
		from += part;
	}
	assert_int_equal(from, len);
}

void xfer_check(struct ep *e, fi_addr_t src, struct xfer *x)
{
	struct ep_comp c = ep_received(e, &x->rxc);
	uint64_t flags = FI_RECV | (x->tagged ? FI_TAGGED : FI_MSG);

	if (xfer_has_data(x))
		flags |= FI_REMOTE_CQ_DATA;
	assert_int_equal(c.flags, flags);
	assert_int_equal(c.len, x->len);
	assert_int_equal(c.src, src);
	if (x->tagged)
		assert_int_equal(c.tag, x->tag);
	if (xfer_has_data(x))
		assert_int_equal(c.data, x->data);
	xfer_check_bytes(x, x->len);
}
