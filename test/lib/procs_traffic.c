/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs_traffic.c - message traffic that checks itself, see procs.h
 *
 * Checks every byte of every message, the order and the number of messages.
 *
 * A tag holds the index of the sender in bits 48-62 and the number of the
 * message below. After its last message a sender sends an empty end message,
 * whose tag has bit 63 set and holds the number of messages before it: so the
 * receiver detects that messages at the end are missing. One message in eight
 * is injected, if it is short enough, and one in eight is sent with
 * FI_DELIVERY_COMPLETE.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/procs.h"

#define TAG_END		(UINT64_C(1) << 63)
#define TAG_SEQ		((UINT64_C(1) << 48) - 1)
#define STEP_SENDS	8		/* sends to a peer in a step, at most */
#define STEP_READS	64		/* completions in a step, at most */
#define NAP_MS		10		/* a sleep, at most: the caller may
					 * call traffic_stop() */
#define RECVS		128		/* posted receives, at most */
#define RECV_BYTES	(64u << 20)	/* bytes of their buffers, at most */

/* One send or one receive, and its buffer; owned by struct traffic. */
struct slot {
	struct fi_context2 context;
	int peer;			/* send: index of the peer; -1: free */
	bool posted;			/* receive: it is posted */
	uint64_t order;			/* receive: number of its posting */
	uint8_t *buf;
};

/* A received message that an earlier message has yet to precede. */
struct seen {
	uint64_t order;			/* slot.order of its receive */
	bool here;			/* the entry holds a message */
};

/* The traffic with one peer, in both directions. */
struct side {
	uint64_t sent, out;		/* messages posted; sends in flight */
	bool end_sent, end_seen;	/* end message sent, received */
	bool tx_dead;			/* a send failed: send no more */
	uint64_t got, total;		/* messages received; number in the end
					 * message */
	uint64_t next, last_order;	/* all messages below next came in
					 * order; order of the last of them */
	struct seen *seen;		/* ring of RECVS * 2 entries */
};

/* The traffic of a node. The caller of traffic_new() owns it; one thread. */
struct traffic {
	struct node *n;
	struct traffic_opt opt;
	size_t max_len;			/* longest message, bytes */
	struct slot *tx, *rx;		/* tx: opt.window slots per peer */
	int ntx, nrx;			/* slots in tx and rx */
	uint64_t orders, received, sent;	/* receives posted; messages of
						 * all peers */
	uint64_t slept_at;		/* value of sent at the last step: if
					 * sent is unchanged, sleep */
	bool stopping, ending;		/* send end messages only; post nothing
					 * (traffic_free() runs) */
	struct side side[PROCS_MAX];	/* by index of the peer */
};

/* ---- Content ----------------------------------------------------------- */

static uint64_t key_of(int src, int dst, uint64_t seq)
{
	uint64_t k = seq * UINT64_C(0x9E3779B97F4A7C15) + src * 1000003u +
		     dst * 7919u;

	return k ^ k >> 29;
}

static void content(uint8_t *buf, size_t len, uint64_t key)
{
	size_t i = 0;

	for (; i + 8 <= len; i += 8, key += UINT64_C(0xD1B54A32D192ED03))
		memcpy(buf + i, &key, 8);
	memcpy(buf + i, &key, len - i);
}

static void check_content(const uint8_t *buf, size_t len, uint64_t key,
			  int src, uint64_t seq)
{
	size_t i = 0;

	for (; i + 8 <= len; i += 8, key += UINT64_C(0xD1B54A32D192ED03))
		if (memcmp(buf + i, &key, 8) != 0)
			goto wrong;
	if (memcmp(buf + i, &key, len - i) == 0)
		return;
wrong:
	FAIL("message %llu of peer %d, %zu bytes: wrong from byte %zu on",
	     (unsigned long long)seq, src, len, i);
}

static size_t length_of(const struct traffic *t, int src, uint64_t seq)
{
	return t->opt.lens[(seq + (uint64_t)src) % t->opt.nlens];
}

/* ---- Receiving --------------------------------------------------------- */

static void post_recv(struct traffic *t, struct slot *s)
{
	ssize_t ret;

	s->posted = false;
	if (t->ending)
		return;
	ret = fi_trecv(t->n->ep, s->buf, t->max_len, NULL, FI_ADDR_UNSPEC, 0,
		       ~UINT64_C(0), &s->context);
	if (t->opt.scarce && (ret == -FI_EAGAIN || ret == -FI_ENOMEM))
		return;			/* the next step tries again */
	FI(ret);
	s->posted = true;
	s->order = t->orders++;
}

/*
 * Check that message seq of peer src, which arrived in the receive number
 * order, is neither lost nor doubled, and that it did not overtake: receives
 * match in the order they were posted, so order must rise with seq. Completions
 * may come in any order, hence the ring.
 */
static void in_order(struct traffic *t, int src, uint64_t seq, uint64_t order)
{
	struct side *side = &t->side[src];
	uint64_t ring = RECVS * 2;

	CHECK_MSG(seq >= side->next && seq < side->next + ring,
		  "message %llu of peer %d: twice, or %llu was lost",
		  (unsigned long long)seq, src,
		  (unsigned long long)side->next);
	CHECK_MSG(!side->seen[seq % ring].here, "message %llu of peer %d came "
		  "twice", (unsigned long long)seq, src);
	side->seen[seq % ring].here = true;
	side->seen[seq % ring].order = order;
	while (side->seen[side->next % ring].here) {
		struct seen *s = &side->seen[side->next % ring];

		CHECK_MSG(s->order >= side->last_order,
			  "message %llu of peer %d overtook the one before",
			  (unsigned long long)side->next, src);
		side->last_order = s->order;
		s->here = false;
		side->next++;
	}
}

static void received(struct traffic *t, struct slot *s,
		     const struct fi_cq_tagged_entry *e)
{
	int src = (int)(e->tag >> 48 & 0x7fff);
	uint64_t seq = e->tag & TAG_SEQ;
	struct side *side = &t->side[src];

	CHECK(src < t->n->count);
	/* A message that a peer sent before it was killed. */
	if (!(t->opt.from >> src & 1)) {
		CHECK_MSG(t->opt.mortal >> src & 1, "peer %d was not to send",
			  src);
		post_recv(t, s);
		return;
	}
	in_order(t, src, seq, s->order);
	if (e->tag & TAG_END) {
		CHECK(e->len == 0 && !side->end_seen);
		side->end_seen = true;
		side->total = seq;
	} else {
		CHECK_MSG(e->len == length_of(t, src, seq),
			  "message %llu of peer %d: %zu bytes, not %zu",
			  (unsigned long long)seq, src, e->len,
			  length_of(t, src, seq));
		check_content(s->buf, e->len, key_of(src, t->n->self, seq),
			      src, seq);
		side->got++;
		t->received++;
	}
	post_recv(t, s);
}

/* ---- Sending ----------------------------------------------------------- */

static struct slot *free_slot(struct traffic *t, int peer)
{
	int window = t->ntx / t->n->count;
	struct slot *s = &t->tx[peer * window];

	for (int i = 0; i < window; i++)
		if (s[i].peer < 0)
			return &s[i];
	return NULL;
}

static ssize_t post(struct traffic *t, struct slot *s, int peer, size_t len,
		    uint64_t tag, uint64_t seq)
{
	struct node *n = t->n;
	struct iovec iov = { s->buf, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = n->peer[peer],
		.tag = tag, .context = &s->context,
	};

	if (seq % 8 == 3 && len <= n->info->tx_attr->inject_size)
		return fi_tinject(n->ep, s->buf, len, n->peer[peer], tag);
	s->peer = peer;
	if (seq % 8 == 5)
		return fi_tsendmsg(n->ep, &msg, FI_COMPLETION |
				   FI_DELIVERY_COMPLETE);
	return fi_tsend(n->ep, s->buf, len, NULL, n->peer[peer], tag,
			&s->context);
}

static void check_mortal(struct traffic *t, int peer, int err)
{
	/* A node without memory for a peer's message disconnects the peer. */
	bool scarce = t->opt.scarce && (err == FI_ENOMEM || err == FI_EMFILE ||
					err == EFBIG || err == FI_ECONNABORTED);

	CHECK_MSG(peer >= 0 && (t->opt.mortal >> peer & 1) &&
		  (err == FI_ECONNRESET || err == FI_ECONNREFUSED || scarce),
		  "peer %d: %s", peer, fi_strerror(err));
}

/* Send a peer its next message, or the end message. Returns false if there is
 * nothing more to send in this step. */
static bool send_one(struct traffic *t, int peer)
{
	struct side *side = &t->side[peer];
	bool end = t->stopping ||
		   (!t->opt.endless && side->sent == t->opt.count);
	size_t len = end ? 0 : length_of(t, t->n->self, side->sent);
	struct slot *s = free_slot(t, peer);
	uint64_t tag = (uint64_t)t->n->self << 48 | side->sent;
	ssize_t ret;

	if (s == NULL)
		return false;
	content(s->buf, len, key_of(t->n->self, peer, side->sent));
	/* Number 0 makes an end message an ordinary send, see post(). */
	ret = post(t, s, peer, len, end ? tag | TAG_END : tag,
		   end ? 0 : side->sent);
	if (ret != 0) {
		s->peer = -1;
		if (ret != -FI_EAGAIN) {
			check_mortal(t, peer, (int)-ret);
			side->tx_dead = true;
		}
		return false;
	}
	if (s->peer >= 0)
		side->out++;
	if (end) {
		side->end_sent = true;
	} else {
		side->sent++;
		t->sent++;
	}
	return !end;
}

/* ---- Steps ------------------------------------------------------------- */

static struct slot *slot_of(void *context)
{
	return (struct slot *)((char *)context -
			       offsetof(struct slot, context));
}

static void completed(struct traffic *t, const struct fi_cq_tagged_entry *e)
{
	struct slot *s = slot_of(e->op_context);

	if (e->flags & FI_RECV) {
		received(t, s, e);
		return;
	}
	CHECK_MSG(s->peer >= 0, "a send completed twice");
	t->side[s->peer].out--;
	s->peer = -1;
}

static void failed(struct traffic *t, const struct fi_cq_err_entry *e)
{
	struct slot *s = slot_of(e->op_context);
	int src = (int)(e->tag >> 48 & 0x7fff);

	if (t->ending && e->err == FI_ECANCELED) {
		CHECK_MSG(s->posted, "a receive cancelled twice");
		s->posted = false;
		return;
	}
	if (e->flags & FI_RECV) {
		check_mortal(t, src < PROCS_MAX ? src : -1, e->err);
		post_recv(t, s);
		return;
	}
	CHECK_MSG(s->peer >= 0, "a send completed twice");
	check_mortal(t, s->peer, e->err);
	t->side[s->peer].tx_dead = true;
	t->side[s->peer].out--;
	s->peer = -1;
}

static bool tx_done(const struct traffic *t, int i, bool gone)
{
	const struct side *s = &t->side[i];

	if (!(t->opt.to >> i & 1))
		return true;
	return s->out == 0 && (s->end_sent || s->tx_dead || gone);
}

static bool rx_done(const struct traffic *t, int i, bool gone)
{
	const struct side *s = &t->side[i];

	if (!(t->opt.from >> i & 1) || gone || (t->opt.scarce && s->tx_dead))
		return true;
	return s->end_seen && s->got == s->total;
}

/* Handle at most max completions; sleep until the first one if asked to. */
static void take(struct traffic *t, int max, bool sleep)
{
	for (int i = 0; i < max; i++) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry error;
		int ret = sleep && i == 0 ?
			node_sleep(t->n, &entry, &error, NAP_MS) :
			node_poll(t->n, &entry, &error);

		if (ret == 0)
			return;
		if (ret > 0)
			completed(t, &entry);
		else
			failed(t, &error);
	}
}

bool traffic_step(struct traffic *t)
{
	bool idle = t->sent == t->slept_at, done = true, heard = true;
	uint64_t gone = g_shared->gone;

	take(t, STEP_READS, t->opt.sleeps && idle);
	t->slept_at = t->sent;
	for (int i = 0; t->opt.scarce && i < t->nrx; i++)
		if (!t->rx[i].posted)
			post_recv(t, &t->rx[i]);
	for (int i = 0; i < t->n->count; i++) {
		struct side *s = &t->side[i];
		bool dead = (gone & t->opt.mortal) >> i & 1;

		for (int k = 0; k < STEP_SENDS; k++)
			if (!(t->opt.to >> i & 1) || s->end_sent ||
			    s->tx_dead || dead || !send_one(t, i))
				break;
		heard = heard && rx_done(t, i, dead);
		done = done && heard && tx_done(t, i, dead);
	}
	t->stopping = t->stopping || (t->opt.scarce && heard);
	return !done;
}

void traffic_stop(struct traffic *t)
{
	t->stopping = true;
}

uint64_t traffic_received(const struct traffic *t)
{
	return t->received;
}

uint64_t traffic_sent(const struct traffic *t)
{
	return t->sent;
}

uint64_t traffic_refused(const struct traffic *t)
{
	uint64_t mask = 0;

	for (int i = 0; i < t->n->count; i++)
		mask |= (uint64_t)t->side[i].tx_dead << i;
	return mask;
}

/* ---- Begin and end ----------------------------------------------------- */

static struct slot *slots_new(int n, size_t bytes)
{
	struct slot *s = calloc(n, sizeof(*s));

	CHECK(s != NULL);
	for (int i = 0; i < n; i++) {
		s[i].peer = -1;
		s[i].buf = malloc(bytes + 8);
		CHECK(s[i].buf != NULL);
	}
	return s;
}

static void slots_free(struct slot *s, int n)
{
	for (int i = 0; i < n; i++)
		free(s[i].buf);
	free(s);
}

/* The peers of a set that have joined, without this node; 0: all of them. */
static uint64_t others(const struct node *n, uint64_t asked)
{
	uint64_t mask = 0;

	for (int i = 0; i < n->count; i++)
		if (i != n->self && n->peer[i] != FI_ADDR_NOTAVAIL)
			mask |= UINT64_C(1) << i;
	return asked != 0 ? mask & asked : mask;
}

struct traffic *traffic_new(struct node *n, const struct traffic_opt *opt)
{
	struct traffic *t = calloc(1, sizeof(*t));

	CHECK(t != NULL && n->count <= PROCS_MAX);
	t->n = n;
	t->opt = *opt;
	t->slept_at = UINT64_MAX;
	t->opt.to = others(n, opt->to);
	t->opt.from = others(n, opt->from);
	for (int i = 0; i < opt->nlens; i++)
		if (opt->lens[i] > t->max_len)
			t->max_len = opt->lens[i];
	t->ntx = n->count * (opt->window != 0 ? opt->window : 16);
	t->nrx = RECVS;
	while (t->nrx > 2 && t->nrx * t->max_len > RECV_BYTES)
		t->nrx /= 2;
	t->tx = slots_new(t->ntx, t->max_len);
	t->rx = slots_new(t->nrx, t->max_len);
	for (int i = 0; i < n->count; i++) {
		t->side[i].seen = calloc(RECVS * 2, sizeof(struct seen));
		CHECK(t->side[i].seen != NULL);
	}
	for (int i = 0; i < t->nrx; i++)
		post_recv(t, &t->rx[i]);
	return t;
}

void traffic_scribble(struct traffic *t)
{
	for (int i = 0; i < t->ntx; i++)
		memset(t->tx[i].buf, 0xee, t->max_len);
	for (int i = 0; i < t->nrx; i++)
		memset(t->rx[i].buf, 0xee, t->max_len);
}

/* Cancel the posted receives before their buffers are freed. A receive whose
 * message was being transferred from a peer that died cannot be cancelled: it
 * completes in error by itself. */
void traffic_free(struct traffic *t)
{
	t->ending = true;
	for (int i = 0; i < t->nrx; i++) {
		struct slot *s = &t->rx[i];
		int ret = fi_cancel(&t->n->ep->fid, &s->context);

		CHECK(ret == 0 || (ret == -FI_ENOENT && t->opt.mortal != 0));
		while (s->posted)
			take(t, 1, false);
	}
	slots_free(t->tx, t->ntx);
	slots_free(t->rx, t->nrx);
	for (int i = 0; i < t->n->count; i++)
		free(t->side[i].seen);
	free(t);
}

void traffic_session(int fd, const struct traffic_opt *opt)
{
	struct traffic *t;
	struct node n;

	node_start(&n, fd, 0);
	t = traffic_new(&n, opt);
	while (traffic_step(t))
		;
	node_report(&n, fd, 0);
	traffic_free(t);
	node_close(&n);
}
