/* SPDX-License-Identifier: BSD-2-Clause */
/* safe_acts.c - the operations of the threads of test_safe.c: how each
 * operation is started, and what is checked when it is complete. */
#include "unit/safe.h"

/* ---- Messages ------------------------------------------------------------ */

static size_t some_len(struct hand *h)
{
	static const size_t lens[] = {
		8, 8, 40, 57, 300, 4000, 9000, LEN_MAX,
	};

	return lens[below(h, 8)];
}

static void post_tagged(struct hand *h, struct shot *x, fi_addr_t src)
{
	struct side *to = side_to(h, x);

	safe_arm(h, &x->rx);
	TRY(h, fi_trecv(to->e->ep, x->in, LEN_MAX, NULL, src, x->tag, 0,
			&x->rx));
	to->begun[RCV]++;
}

/* Has the message come? If another thread cancelled the receive, post it
 * again. */
static bool received(struct hand *h, struct shot *x, uint64_t flags)
{
	if (x->rx.state != ENDED)
		return false;
	if (x->rx.err == FI_ECANCELED) {
		x->rx.state = IDLE;
		post_tagged(h, x, FI_ADDR_UNSPEC);
		return false;
	}
	safe_over(h, &x->rx, flags);
	CHECK(h->s, x->rx.len == x->len);
	CHECK(h->s, xfer_filled(x->in, x->len, x->id, 0));
	return true;
}

void safe_cancel(struct stage *s, struct side *d, struct half *half)
{
	ssize_t ret = fi_cancel(&d->e->ep->fid, half);

	CHECK(s, ret == 0 || ret == -FI_ENOENT);
	s->cancels += ret == 0;
}

static void send_tagged(struct hand *h, struct shot *x)
{
	struct fid_ep *ep = side_from(h, x)->e->ep;

	side_from(h, x)->begun[SND]++;
	if (x->form == 2) {
		TRY(h, fi_tinject(ep, x->out, x->len, x->to, x->tag));
		memset(x->out, 0, x->len);
		return;
	}
	safe_arm(h, &x->tx);
	if (x->form == 1)
		TRY(h, fi_tsenddata(ep, x->out, x->len, NULL, x->id, x->to,
				    x->tag, &x->tx));
	else
		TRY(h, fi_tsend(ep, x->out, x->len, NULL, x->to, x->tag,
				&x->tx));
}

/* Now and then, address the other side by one more index, used only once. */
static void own_entry(struct hand *h, struct shot *x)
{
	char name[64];
	size_t len = sizeof(name);

	if (x->form == 2 || below(h, 4) != 0)
		return;
	CHECK(h->s, fi_getname(&side_to(h, x)->e->ep->fid, name, &len) == 0);
	CHECK(h->s, fi_av_insert(side_from(h, x)->e->av, name, 1, &x->to, 0,
				 NULL) == 1);
}

static void begin_tagged(struct hand *h, struct shot *x)
{
	struct side *to = side_to(h, x);
	fi_addr_t src = below(h, 2) ? to->to : FI_ADDR_UNSPEC;
	bool first = below(h, 2);

	x->len = some_len(h);
	if (x->form == 2 && x->len > 4000)
		x->len = 4000;
	xfer_fill(x->out, x->len, x->id, 0);
	own_entry(h, x);
	if (first)
		post_tagged(h, x, src);
	send_tagged(h, x);
	if (!first)
		post_tagged(h, x, src);
	if (below(h, 8) == 0)
		safe_cancel(h->s, to, &x->rx);
}

static bool end_tagged(struct hand *h, struct shot *x)
{
	struct side *from = side_from(h, x);
	uint64_t data = x->form == 1 ? FI_REMOTE_CQ_DATA : 0;
	bool sent = safe_over(h, &x->tx, FI_SEND | FI_TAGGED);

	if (x->step == 0 && received(h, x, FI_RECV | FI_TAGGED | data)) {
		CHECK(h->s, data == 0 || x->rx.data == x->id);
		x->step = 1;
	}
	if (!sent || x->step == 0)
		return false;
	if (x->to != from->to)
		CHECK(h->s, fi_av_remove(from->e->av, &x->to, 1, 0) == 0);
	return true;
}

/* A message for any receive. Its first 8 bytes are a number, from which the
 * receiver computes the rest. */
static void begin_message(struct hand *h, struct shot *x)
{
	struct fid_ep *ep = side_from(h, x)->e->ep;

	x->len = some_len(h);
	if (x->form == 2 && x->len > 4000)
		x->len = 4000;
	due_id(h, x->id);
	memcpy(x->out, &x->id, 8);
	xfer_fill(x->out + 8, x->len - 8, x->id, 0);
	side_to(h, x)->sent++;
	side_from(h, x)->begun[SND]++;
	if (x->form == 2) {
		TRY(h, fi_inject(ep, x->out, x->len, x->to));
		memset(x->out, 0, x->len);
		return;
	}
	safe_arm(h, &x->tx);
	if (x->form == 1)
		TRY(h, fi_senddata(ep, x->out, x->len, NULL, x->id, x->to,
				   &x->tx));
	else
		TRY(h, fi_send(ep, x->out, x->len, NULL, x->to, &x->tx));
}

static void caught(struct hand *h, struct side *d, struct catch *c)
{
	uint64_t id, data = c->rx.flags & FI_REMOTE_CQ_DATA;

	CHECK(h->s, c->rx.flags == (FI_RECV | FI_MSG | data));
	CHECK(h->s, c->rx.len >= 8 && c->rx.len <= LEN_MAX);
	memcpy(&id, c->in, 8);
	CHECK(h->s, data == 0 || c->rx.data == id);
	CHECK(h->s, xfer_filled(c->in + 8, c->rx.len - 8, id, 0));
	safe_arrived(h->s, id);
	d->got++;
}

void safe_post_catches(struct hand *h)
{
	for (int i = 0; i < RECVS; i++) {
		struct side *d = &h->s->side[i % 2];
		struct catch *c = &h->catch[i];

		if (c->rx.state == ENDED) {
			if (c->rx.err == 0)
				caught(h, d, c);
			c->rx.state = IDLE;
		}
		if (c->rx.state != IDLE)
			continue;
		safe_arm(h, &c->rx);
		TRY(h, fi_recv(d->e->ep, c->in, LEN_MAX, NULL, FI_ADDR_UNSPEC,
			       &c->rx));
		d->begun[RCV]++;
	}
}

/* Cancels the receives: no more messages are sent. */
void safe_close_catches(struct hand *h)
{
	for (int i = 0; i < RECVS; i++) {
		struct half *rx = &h->catch[i].rx;

		if (rx->state == POSTED)
			safe_cancel(h->s, &h->s->side[i % 2], rx);
		UNTIL(h, rx->state == ENDED);
		CHECK(h->s, rx->err == FI_ECANCELED);
		rx->state = IDLE;
	}
}

/* A receive of a tag that is never sent; it is cancelled. */
static void begin_lonely(struct hand *h, struct shot *x)
{
	x->tag |= NOBODY;
	post_tagged(h, x, FI_ADDR_UNSPEC);
}

static bool end_lonely(struct hand *h, struct shot *x)
{
	if (x->step++ == 0)
		safe_cancel(h->s, side_to(h, x), &x->rx);
	if (x->rx.state != ENDED)
		return false;
	CHECK(h->s, x->rx.err == FI_ECANCELED);
	x->rx.state = IDLE;
	return true;
}

/* ---- Memory -------------------------------------------------------------- */

static void begin_put(struct hand *h, struct shot *x)
{
	struct fid_ep *ep = side_from(h, x)->e->ep;
	struct iovec iov = { x->out, 0 };
	struct fi_rma_iov remote = { x->slot, 0, key_to(x) };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = x->to,
		.rma_iov = &remote, .rma_iov_count = 1, .context = &x->tx,
	};

	x->len = iov.iov_len = remote.len = some_len(h);
	xfer_fill(x->out, x->len, x->id, 0);
	side_from(h, x)->begun[WR]++;
	safe_arm(h, &x->tx);
	if (x->form == 2)
		TRY(h, fi_writemsg(ep, &msg, FI_COMPLETION |
				   FI_DELIVERY_COMPLETE));
	else if (x->form == 1)
		TRY(h, fi_writedata(ep, x->out, x->len, NULL, due_id(h, x->id),
				    x->to, x->slot, key_to(x), &x->tx));
	else
		TRY(h, fi_write(ep, x->out, x->len, NULL, x->to, x->slot,
				key_to(x), &x->tx));
}

/* When the put is complete, its bytes are in memory; then they are read
 * back. */
static bool end_put(struct hand *h, struct shot *x)
{
	struct side *from = side_from(h, x);

	if (!safe_over(h, &x->tx, FI_RMA | (x->step ? FI_READ : FI_WRITE)))
		return false;
	if (x->step == 1) {
		CHECK(h->s, xfer_filled(x->in, x->len, x->id, 0));
		return true;
	}
	CHECK(h->s, xfer_filled(side_to(h, x)->mem + x->slot, x->len, x->id,
				0));
	memset(x->in, 0, x->len);
	safe_arm(h, &x->tx);
	from->begun[RD]++;
	x->step = 1;
	TRY(h, fi_read(from->e->ep, x->in, x->len, NULL, x->to, x->slot,
		       key_to(x), &x->tx));
	return false;
}

/* Each injected write has a word of its own, which is checked at the end. */
static void begin_inject(struct hand *h, struct shot *x)
{
	size_t n = (size_t)h->index * h->s->ops + h->injects++;
	struct fid_ep *ep = side_from(h, x)->e->ep;
	uint64_t at = injected_at() + 8 * n, value = ~x->id;

	side_from(h, x)->begun[WR]++;
	side_to(h, x)->injected[n] = value;
	if (x->form == 0)
		TRY(h, fi_inject_write(ep, &value, 8, x->to, at, key_to(x)));
	else
		TRY(h, fi_inject_writedata(ep, &value, 8, due_id(h, x->id),
					   x->to, at, key_to(x)));
}

static void begin_sum(struct hand *h, struct shot *x)
{
	struct fid_ep *ep = side_from(h, x)->e->ep;

	x->src = 1 + below(h, 1000);
	side_to(h, x)->sum += x->src;
	side_from(h, x)->begun[WR]++;
	if (x->form == 0) {
		TRY(h, fi_inject_atomic(ep, &x->src, 1, x->to, SUM_AT,
					key_to(x), FI_UINT64, FI_SUM));
		x->src = 0;
		return;
	}
	safe_arm(h, &x->tx);
	TRY(h, fi_atomic(ep, &x->src, 1, NULL, x->to, SUM_AT, key_to(x),
			 FI_UINT64, FI_SUM, &x->tx));
}

/* Draw a ticket: no two operations may get the same number. */
static void begin_ticket(struct hand *h, struct shot *x)
{
	struct side *from = side_from(h, x);

	x->src = 1;
	side_to(h, x)->tickets++;
	from->begun[RD]++;
	safe_arm(h, &x->tx);
	TRY(h, fi_fetch_atomic(from->e->ep, &x->src, 1, NULL, &x->was, NULL,
			       x->to, TICKET_AT, key_to(x), FI_UINT64, FI_SUM,
			       &x->tx));
}

static bool end_ticket(struct hand *h, struct shot *x)
{
	struct side *to = side_to(h, x);

	if (!safe_over(h, &x->tx, FI_ATOMIC | FI_READ))
		return false;
	CHECK(h->s, x->was < (uint64_t)THREADS * h->s->ops);
	if (x->was < (uint64_t)THREADS * h->s->ops)
		CHECK(h->s, atomic_fetch_add(&to->taken[x->was], 1) == 0);
	return true;
}

/* Add 1 by compare and swap, which fails if another thread was faster. */
static void begin_swap(struct hand *h, struct shot *x)
{
	struct side *from = side_from(h, x);

	x->cmp = h->guess[!x->from];
	x->src = x->cmp + 1;
	from->begun[RD]++;
	safe_arm(h, &x->tx);
	TRY(h, fi_compare_atomic(from->e->ep, &x->src, 1, NULL, &x->cmp, NULL,
				 &x->was, NULL, x->to, SWAP_AT, key_to(x),
				 FI_UINT64, FI_CSWAP, &x->tx));
}

static bool end_swap(struct hand *h, struct shot *x)
{
	if (!safe_over(h, &x->tx, FI_ATOMIC | FI_READ))
		return false;
	side_to(h, x)->swaps += x->was == x->cmp;
	h->guess[!x->from] = x->was == x->cmp ? x->src : x->was;
	return true;
}

/* ---- Regions, endpoints -------------------------------------------------- */

/* A region of this thread. The other threads read its first bytes
 * (begin_strange()), this thread writes behind them. While the region is open,
 * a second such operation of this thread does something else. */
static void begin_region(struct hand *h, struct shot *x)
{
	struct side *from = side_from(h, x);
	uint8_t *own = h->own[!x->from];
	uint64_t key = OWN_KEY + h->index;

	h->own_busy = true;
	CHECK(h->s, all_bytes(own, OWN_LEN, CLOSED));
	memset(own, OPEN, OWN_LEN);
	CHECK(h->s, fi_mr_reg(side_to(h, x)->e->domain, own, OWN_LEN, OS_ALL,
			      0, key, 0, &x->mr, NULL) == 0);
	xfer_fill(x->out, 1000, x->id, 0);
	from->begun[WR]++;
	safe_arm(h, &x->tx);
	TRY(h, fi_write(from->e->ep, x->out, 1000, NULL, x->to, 64, key,
			&x->tx));
}

static bool end_region(struct hand *h, struct shot *x)
{
	uint8_t *own = h->own[!x->from];

	if (!safe_over(h, &x->tx, FI_RMA | FI_WRITE))
		return false;
	CHECK(h->s, xfer_filled(own + 64, 1000, x->id, 0));
	CHECK(h->s, fi_close(&x->mr->fid) == 0);
	CHECK(h->s, all_bytes(own, 64, OPEN));
	memset(own, CLOSED, OWN_LEN);
	h->own_busy = false;
	return true;
}

/* Read another thread's region, whether it is open or not. */
static void begin_strange(struct hand *h, struct shot *x)
{
	struct side *from = side_from(h, x);

	x->was = 0;
	from->begun[RD]++;
	safe_arm(h, &x->tx);
	TRY(h, fi_read(from->e->ep, &x->was, 8, NULL, x->to, 0,
		       OWN_KEY + below(h, THREADS), &x->tx));
}

static bool end_strange(struct hand *h, struct shot *x)
{
	if (x->tx.state != ENDED)
		return false;
	CHECK(h->s, x->tx.flags == (FI_RMA | FI_READ));
	if (x->tx.err == 0)
		CHECK(h->s, all_bytes((uint8_t *)&x->was, 8, OPEN));
	else
		CHECK(h->s, x->tx.err == FI_EKEYREJECTED && x->was == 0);
	x->tx.state = IDLE;
	return true;
}

/* One more endpoint, bound to this side's queue and vector. */
static struct fid_ep *guest_open(struct hand *h, struct side *home)
{
	struct fid_ep *ep = NULL;

	CHECK(h->s, fi_endpoint(home->e->domain, home->e->info, &ep, NULL) ==
		    0);
	if (ep == NULL)
		return NULL;
	CHECK(h->s, fi_ep_bind(ep, &home->e->av->fid, 0) == 0);
	CHECK(h->s, fi_ep_bind(ep, &home->e->cq->fid, FI_TRANSMIT | FI_RECV)
		    == 0);
	CHECK(h->s, fi_enable(ep) == 0);
	return ep;
}

/* The messages of a guest endpoint. The halves of the shot belong to the guest
 * and to its host. */
static void guest_visit(struct hand *h, struct shot *x, struct fid_ep *ep)
{
	struct side *host = side_to(h, x);
	fi_addr_t back = FI_ADDR_NOTAVAIL;
	char name[64];
	size_t len = sizeof(name);

	CHECK(h->s, fi_getname(&ep->fid, name, &len) == 0);
	CHECK(h->s, fi_av_insert(host->e->av, name, 1, &back, 0, NULL) == 1);
	post_tagged(h, x, below(h, 2) ? back : FI_ADDR_UNSPEC);
	TRY(h, fi_tinject(ep, x->out, x->len, x->to, x->tag));
	safe_arm(h, &x->tx);
	TRY(h, fi_trecv(ep, &x->was, 8, NULL, FI_ADDR_UNSPEC, x->tag, 0,
			&x->tx));
	host->begun[SND]++;
	TRY(h, fi_tinject(host->e->ep, &x->id, 8, back, x->tag));
	UNTIL(h, received(h, x, FI_RECV | FI_TAGGED));
	UNTIL(h, safe_over(h, &x->tx, FI_RECV | FI_TAGGED));
	CHECK(h->s, x->was == x->id);
	safe_arm(h, &x->tx);
	TRY(h, fi_write(ep, x->out, x->len, NULL, x->to, x->slot, key_to(x),
			&x->tx));
	UNTIL(h, safe_over(h, &x->tx, FI_RMA | FI_WRITE));
	CHECK(h->s, xfer_filled(host->mem + x->slot, x->len, x->id, 0));
	CHECK(h->s, fi_av_remove(host->e->av, &back, 1, 0) == 0);
}

static void begin_guest(struct hand *h, struct shot *x)
{
	struct fid_ep *ep = guest_open(h, side_from(h, x));

	if (ep == NULL)
		return;
	x->len = 300;
	xfer_fill(x->out, x->len, x->id, 0);
	guest_visit(h, x, ep);
	CHECK(h->s, fi_close(&ep->fid) == 0);
}

/* ---- All operations ------------------------------------------------------ */

/* For operations that expect no completion, or one without further checks. */
static bool end_plain(struct hand *h, struct shot *x)
{
	return safe_over(h, &x->tx, x->kind == MESSAGE ? FI_SEND | FI_MSG :
		    FI_ATOMIC | FI_WRITE);
}

const struct act safe_acts[KINDS] = {
	[TAGGED] = { begin_tagged, end_tagged, 20 },
	[MESSAGE] = { begin_message, end_plain, 20 },
	[PUT] = { begin_put, end_put, 20 },
	[INJECT] = { begin_inject, end_plain, 10 },
	[SUM] = { begin_sum, end_plain, 10 },
	[TICKET] = { begin_ticket, end_ticket, 10 },
	[SWAP] = { begin_swap, end_swap, 10 },
	[LONELY] = { begin_lonely, end_lonely, 10 },
	[REGION] = { begin_region, end_region, 8 },
	[STRANGE] = { begin_strange, end_strange, 10 },
	[GUEST] = { begin_guest, end_plain, 1 },
};
