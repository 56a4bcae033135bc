/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_litmus_msg.c - FI_ORDER_SAS: the i-th receive gets the i-th message,
 * whatever call sends it, at lengths around every threshold where the protocol
 * changes, while the receiver polls, has no receives, or does not poll until
 * the sender queues messages. Tagged and untagged messages are two streams to
 * the same peer.
 *
 * test_order.c compares every byte of a few messages, also of two senders.
 */
#include "core/unm_ep_state.h"
#include "core/unm_stats.h"
#include "lib/ep_xfer.h"
#include "lib/litmus.h"
#include "lib/os_pair.h"
#include "unm_offer.h"

static uint64_t g_done;			/* messages received in order */

#define WINDOW_MAX	128		/* under way, of each stream and side */
#define LONGEST		40000

struct slot {
	struct xfer x;
	uint64_t i;			/* number of the message */
	bool busy;
};

/* The tagged or the untagged messages; both are sent over one connection. */
struct stream {
	uint64_t sent, posted, got;
	struct slot out[WINDOW_MAX], in[WINDOW_MAX];
};

struct talk {
	struct ep_pair p;
	struct stream s[2];		/* [tagged] */
	uint64_t total, rng, rng_b;	/* total: messages of each stream */
	pthread_t thread;
	atomic_bool over;		/* all messages are sent */
};

/* Both sides compute the parameters of message i: call, length, receive
 * call. */
static void shape(const struct talk *t, bool tagged, uint64_t i,
		  struct xfer *x)
{
	const struct unm_ep *ep = (struct unm_ep *)t->p.a->ep;
	uint64_t rng = 2 * i + tagged;
	size_t around[] = { ep->eager_max, 2 * ep->eager_max,
			    LONGEST - 2, UNM_INJECT_MAX };

	x->tagged = tagged;
	x->tx = unit_below(&rng, XFER_TX_CALLS);
	x->rx = unit_below(&rng, XFER_RX_CALLS);
	x->data = ~i;
	x->tag = i;
	if (i % 128 == 7)
		x->len = around[unit_below(&rng, 4)] - 1 + unit_below(&rng, 3);
	else if (one_in(&rng, 4))
		x->len = ep->inline_end[tagged][xfer_has_data(x)] - 2 +
			unit_below(&rng, 3);
	else
		x->len = unit_below(&rng, 80);
	if (x->len > LONGEST)
		x->len = LONGEST;
	if (xfer_inject(x) && x->len > UNM_INJECT_MAX)
		x->tx = XFER_SEND;
	/* an untagged message without data carries its number in 8 bytes */
	if (!tagged && !xfer_has_data(x) && x->len < 8)
		x->len += 8;
	x->tx_flags = x->tx == XFER_SENDMSG && one_in(&rng, 2) ?
		FI_DELIVERY_COMPLETE : 0;
	x->tx_iov = x->rx_iov = 1;
	x->room = LONGEST;
	x->ignore = UINT64_MAX;
}

static struct slot *slot_of(void *context, size_t member)
{
	return (struct slot *)((char *)context - member);
}

/* ---- The sender --------------------------------------------------------- */

static bool send_one(struct talk *t, bool tagged)
{
	struct stream *s = &t->s[tagged];
	struct slot *slot = &s->out[s->sent % WINDOW_MAX];
	struct xfer *x = &slot->x;
	ssize_t ret;

	if (slot->busy || s->sent == t->total)
		return false;
	shape(t, tagged, s->sent, x);
	x->out_iov[0] = (struct iovec){ x->out, x->len };
	if (x->len >= 8)
		memcpy(x->out, &s->sent, 8);
	if (x->len >= 16)
		memcpy(x->out + x->len - 8, &s->sent, 8);
	ret = xfer_send(t->p.a, t->p.ab, x);
	CHECK(ret == 0 || ret == -FI_EAGAIN, "send: %zd", ret);
	if (ret != 0)
		return false;
	slot->busy = xfer_tx_completes(x);
	s->sent++;
	return true;
}

static void sends_done(struct talk *t)
{
	struct fi_cq_tagged_entry c[16];
	ssize_t n = fi_cq_read(t->p.a->cq, c, 16);

	CHECK(n > 0 || n == -FI_EAGAIN, "sender: %zd", n);
	for (ssize_t i = 0; i < n; i++)
		slot_of(c[i].op_context, offsetof(struct slot, x.txc))->busy =
			false;
}

static bool all_sent(const struct talk *t)
{
	for (int k = 0; k < 2; k++) {
		if (t->s[k].sent < t->total)
			return false;
		for (int i = 0; i < WINDOW_MAX; i++)
			if (t->s[k].out[i].busy)
				return false;
	}
	return true;
}

static bool send_some(struct talk *t)
{
	bool sent = false;

	for (int k = 0; k < 8; k++)
		sent |= send_one(t, one_in(&t->rng, 2));
	if (!sent || one_in(&t->rng, 3))
		sends_done(t);
	return sent;
}

/* ---- The receiver ------------------------------------------------------- */

static void post_one(struct talk *t, bool tagged)
{
	struct stream *s = &t->s[tagged];
	struct slot *slot = &s->in[s->posted % WINDOW_MAX];
	struct xfer *x = &slot->x;

	if (slot->busy || s->posted == t->total)
		return;
	shape(t, tagged, s->posted, x);
	x->in_iov[0] = (struct iovec){ x->in, LONGEST };
	if (xfer_recv(t->p.b, one_in(&t->rng_b, 2) ? t->p.ba : FI_ADDR_UNSPEC,
		      x) == 0) {
		slot->busy = true;
		slot->i = s->posted++;
	}
}

static void received(struct talk *t, const struct fi_cq_tagged_entry *c)
{
	struct slot *slot = slot_of(c->op_context,
				    offsetof(struct slot, x.rxc));
	const struct xfer *x = &slot->x;
	uint64_t i = slot->i, first = i, last = i;

	if (x->len >= 8)
		memcpy(&first, x->in, 8);
	if (x->len >= 16)
		memcpy(&last, x->in + x->len - 8, 8);
	CHECK(c->len == x->len && first == i && last == i &&
	      (!x->tagged || c->tag == i) &&
	      (!xfer_has_data(x) || c->data == x->data),
	      "receive %" PRIu64 " (tagged: %d) of %zu bytes got %zu bytes, "
	      "tag %" PRIu64 ", %" PRIu64 " to %" PRIu64, i, x->tagged, x->len,
	      c->len, c->tag, first, last);
	slot->busy = false;
	t->s[x->tagged].got++;
}

static void receive_some(struct talk *t, bool posting)
{
	struct fi_cq_tagged_entry c[16];
	ssize_t n;

	for (int k = 0; k < 8 && posting; k++)
		post_one(t, one_in(&t->rng_b, 2));
	n = fi_cq_read(t->p.b->cq, c, 16);
	CHECK(n > 0 || n == -FI_EAGAIN, "receiver: %zd", n);
	for (ssize_t i = 0; i < n; i++)
		received(t, &c[i]);
}

static void *receiver(void *arg)
{
	struct talk *t = arg;

	while (!atomic_load(&t->over)) {
		bool posting = !one_in(&t->rng_b, 8);

		/* now and then it does not poll, or has no receives */
		if (one_in(&t->rng_b, 1000))
			usleep(300);
		for (int k = 0; k < 20; k++)
			receive_some(t, posting);
	}
	return NULL;
}

/* ---- Both sides --------------------------------------------------------- */

/* In one thread: both sides poll, or one of them does not for a while. */
static void by_turns(struct talk *t)
{
	uint64_t end = ep_now() + HANG_US, was = 0;

	for (uint32_t i = 0; !all_sent(t) && goes_on(i, end); i++) {
		uint32_t what = unit_below(&t->rng, 64);

		for (int k = 0; k < 150 && what == 0; k++)
			send_some(t);
		for (int k = 0; k < 30 && what < 4; k++)
			receive_some(t, what == 3);
		send_some(t);
		receive_some(t, true);
		if (t->s[0].got != was)
			end = ep_now() + HANG_US;
		was = t->s[0].got;
	}
}

static void by_threads(struct talk *t)
{
	uint64_t end = ep_now() + HANG_US, was = 0;

	t->thread = unit_thread(receiver, t);
	for (uint32_t i = 0; !all_sent(t) && goes_on(i, end); i++) {
		if (!send_some(t))
			sched_yield();
		if (i % 1024 == 0 && t->s[0].sent + t->s[1].sent != was)
			end = ep_now() + HANG_US;
		if (i % 1024 == 0)
			was = t->s[0].sent + t->s[1].sent;
	}
	atomic_store(&t->over, true);
	pthread_join(t->thread, NULL);
}

/* Receives the messages that were sent and are still under way. */
static void rest(struct talk *t)
{
	uint64_t end = ep_now() + HANG_US;

	for (uint32_t i = 0; t->s[0].got + t->s[1].got < 2 * t->total &&
	     goes_on(i, end); i++) {
		receive_some(t, true);
		sends_done(t);
	}
}

static void set_buffers(struct talk *t, enum os_way way, bool set)
{
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < WINDOW_MAX; i++) {
			struct xfer *out = &t->s[k].out[i].x;
			struct xfer *in = &t->s[k].in[i].x;

			if (set) {
				out->out = os_alloc(t->p.a, way, LONGEST);
				in->in = os_alloc(t->p.b, way, LONGEST);
			} else {
				os_free(t->p.a, way, out->out);
				os_free(t->p.b, way, in->in);
			}
		}
}

static void talk(enum os_way way, bool threads)
{
	struct talk *t = calloc(1, sizeof(*t));
	const struct unm_stats *stats;
	bool was;

	assert_non_null(t);
	g_line = 0;
	t->p = ep_pair(NULL);
	was = g_unm_env.attach;		/* read when the first endpoint is
					 * opened */
	g_unm_env.attach = was && way != OS_REQUESTS;
	t->total = (count() + 1) / 2;
	t->rng = 1 + threads;
	t->rng_b = 3;
	set_buffers(t, way, true);
	if (threads)
		by_threads(t);
	else
		by_turns(t);
	all_well();
	rest(t);
	all_well();
	stats = ((struct unm_ep *)t->p.a->ep)->stats;
	assert_true(stats->tx_inline > 0 && stats->tx_eager > 0 &&
		    stats->tx_rendezvous > 0);
	assert_true(threads || stats->tx_backlog > 0);
	assert_true(way != OS_REQUESTS || stats->tx_stream > 0);
	g_done += 2 * t->total;
	g_unm_env.attach = was;
	set_buffers(t, way, false);
	ep_close(t->p.a);
	ep_close(t->p.b);
	free(t);
}

/* Long messages leave the sender's buffer in three ways: read by attach; in
 * pieces through receive space; read out of dmable memory. */
LITMUS(attached, true, talk, OS_ATTACH)
LITMUS(copied, true, talk, OS_REQUESTS)
LITMUS(dmable, true, talk, OS_DMABLE)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(attached),
		BOTH(copied),
		BOTH(dmable),
	};
	int failed;

	ep_threads();
	failed = unit_run(tests);
	printf("send after send: %" PRIu64 " messages in order\n", g_done);
	return failed;
}
