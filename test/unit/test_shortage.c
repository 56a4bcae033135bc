/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shortage.c - no memory for the receive space of a peer, for the object
 * of a peer, and no memory or descriptor to answer a peer: messages wait, until
 * it is there or a bound is reached.
 */
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "hal/hal_backend.h"
#include "lib/ep_xfer.h"
#include "util/unm_clock.h"

/* ---- No memory for receive space --------------------------------------- */

static unsigned starved;		/* calls that are still to fail */

static int space_ready(struct hal_peer *hp, uint32_t bytes)
{
	if (starved == 0)
		return hal_emu_ops.space_ready(hp, bytes);
	starved--;
	return -FI_ENOMEM;
}

/* A pair of which a is connected to b; from here on the test decides whether a
 * gets receive space. */
static struct unm_peer *starve(struct ep_pair *p, struct hal_ops *ops)
{
	struct unm_peer *peer;
	char in[1];

	EP_OK(fi_inject(p->a->ep, "", 1, p->ab));
	EP_OK(fi_recv(p->b->ep, in, 1, NULL, p->ba, in));
	ep_received(p->b, in);
	peer = ((struct unm_ep *)p->a->ep)->peer_of[p->ab];
	if (peer->hp->ops != &hal_emu_ops)
		return NULL;
	*ops = hal_emu_ops;
	ops->space_ready = space_ready;
	peer->hp->ops = ops;
	return peer;
}

static void test_no_space_is_back_pressure(void **state)
{
	char out[4096] = "x", in[4096];
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;

	if (starve(&p, &ops) == NULL)
		skip();			/* with a decorator, or a device */
	starved = 3;
	EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	EP_OK(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out));
	ep_sent(p.a, out);
	ep_received(p.b, in);
	assert_int_equal(starved, 0);
}

static void test_no_space_for_long_ends(void **state)
{
	char out[4096] = "x";
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;
	ssize_t ret;
	struct unm_peer *peer = starve(&p, &ops);

	unit_needs(peer != NULL);
	starved = UINT32_MAX;
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	peer->space_since -= 31000000;	/* as if it had begun 31 s ago */
	ret = EP_TRY(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out));
	if (ret == 0)			/* it was queued */
		assert_int_not_equal(ep_wait(p.a, out).err, 0);
	else
		assert_int_equal(ret, -FI_ECONNRESET);
	starved = 0;
}

/* Two shortages a minute apart, without a send in between, are not one long
 * shortage. */
static void test_no_space_twice_is_back_pressure(void **state)
{
	char out[4096] = "x", in[4096];
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;
	struct unm_peer *peer = starve(&p, &ops);

	unit_needs(peer != NULL);
	starved = 1;
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	assert_int_equal(starved, 0);
	peer->space_since -= 60000000;	/* as if a minute had passed */
	peer->space_retry -= 60000000;
	starved = 1;
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	assert_int_equal(starved, 0);
	EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
	EP_OK(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out));
	ep_sent(p.a, out);
	ep_received(p.b, in);
}

/* The pause between attempts stays short: a send continues soon after memory is
 * free again. */
static void test_no_space_pauses_are_short(void **state)
{
	char out[4096] = "x", in[4096];
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;
	struct unm_peer *peer = starve(&p, &ops);

	unit_needs(peer != NULL);
	starved = 2;
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	peer->space_since -= 4000000;	/* as if it had begun 4 s ago */
	peer->space_retry -= 10000;	/* and the pause was over */
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	assert_int_equal(starved, 0);
	assert_true(peer->space_retry <= unm_now_us() + 10000);
	EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
	EP_OK(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out));
	ep_sent(p.a, out);
	ep_received(p.b, in);
}

#define GROWN	262144			/* bytes of receive space after 2 MiB */

/* Send messages through receive space, each to a posted receive: enough for two
 * laps of a new ring, and too long for its first part. */
static void send_laps(struct ep_pair *p)
{
	static char out[5000], in[5000];

	for (size_t sent = 0; sent < 2 * UNM_PEER_SPACE; sent += sizeof(out)) {
		EP_OK(fi_recv(p->b->ep, in, sizeof(in), NULL, p->ba, in));
		EP_OK(fi_send(p->a->ep, out, sizeof(out), NULL, p->ab, out));
		ep_sent(p->a, out);
		ep_received(p->b, in);
	}
}

/* Without memory for more receive space a peer keeps what it has, and gets more
 * in a later attempt. */
static void test_space_grows_after_a_shortage(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint64_t end = ep_deadline();
	struct hal_ops ops;
	struct unm_peer *peer = starve(&p, &ops);
	uint32_t all;

	unit_needs(peer != NULL);
	all = peer->ep->space_most;
	unit_needs(all > UNM_PEER_SPACE);
	if (all > GROWN)
		all = GROWN;
	send_laps(&p);
	for (int failed = 0; failed < 3; failed++) {
		peer->space_retry = 0;	/* as if the pause were over */
		for (starved = 1000; starved == 1000; ep_in_time(end, "growth"))
			send_laps(&p);
		assert_int_equal(peer->space->bytes, UNM_PEER_SPACE);
		assert_int_equal(peer->ep->grown_bytes, 0);
		/* no further attempt in the pause, which is short */
		assert_in_range(peer->space_retry, 1, unm_now_us() + 1000000);
		peer->space_retry = UINT64_MAX;
		starved = 0;
		send_laps(&p);
		assert_int_equal(peer->space->bytes, UNM_PEER_SPACE);
	}
	peer->space_retry = 0;
	send_laps(&p);
	assert_int_equal(peer->space->bytes, all);
	assert_int_equal(peer->ep->grown_bytes, all);
}

/* Without memory for the rest of a new ring, short messages wait for each other
 * in its first part, for any time; a longer one waits for memory. */
static void test_rest_of_space_is_back_pressure(void **state)
{
	static char out[8192] = "x", in[8192];
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;
	struct unm_peer *peer = starve(&p, &ops);

	unit_needs(peer != NULL && peer->ep->eager_max >= sizeof(out));
	EP_OK(fi_inject(p.a->ep, out, 1024, p.ab));
	starved = 2;
	for (int i = 0; i < 3; i++)
		EP_OK(fi_inject(p.a->ep, out, 1024, p.ab));
	assert_int_equal(starved, 2);
	assert_int_equal(fi_inject(p.a->ep, out, 1024, p.ab), -FI_EAGAIN);
	assert_int_equal(starved, 1);	/* one attempt, then a short pause */
	assert_in_range(peer->space_retry, 1, unm_now_us() + 1000000);
	peer->space_retry = UINT64_MAX;
	for (int i = 0; i < 9; i++)
		assert_int_equal(fi_inject(p.a->ep, out, 1024, p.ab),
				 -FI_EAGAIN);
	assert_int_equal(peer->space_since, 0);
	for (int i = 0; i < 12; i++) {
		EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
		ep_received(p.b, in);
		EP_OK(fi_inject(p.a->ep, out, 1024, p.ab));
	}
	assert_int_equal(starved, 1);
	assert_int_equal(peer->space->ready, 4096);
	assert_int_equal(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out),
			 -FI_EAGAIN);
	assert_int_equal(starved, 0);
	peer->space_retry = 0;
	EP_OK(fi_send(p.a->ep, out, sizeof(out), NULL, p.ab, out));
	for (int i = 0; i < 5; i++) {
		EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
		ep_received(p.b, in);
	}
	ep_sent(p.a, out);
	assert_int_equal(peer->space->ready, UNM_PEER_SPACE);
}

/* ---- No descriptor to answer a peer ------------------------------------- */

#define NO_DESCRIPTOR	"no descriptor"

static bool busy;			/* half of the calls find a full queue
					 * instead */

static int no_connect(struct hal_if *hif, const struct hal_addr *to,
		      struct hal_peer **hp)
{
	static const int ret[] = { -FI_EMFILE, -ENFILE, -FI_ENOMEM };

	if (starved == 0)
		return hal_emu_ops.connect(hif, to, hp);
	starved--;
	if (busy && (starved & 1))
		return -FI_EAGAIN;	/* before anything was allocated */
	hal_log(0, NO_DESCRIPTOR);
	return ret[starved % 3];
}

static unsigned errors;			/* lines of level 0 about this */

static void count_errors(int level, const char *line)
{
	errors += level == 0 && strcmp(line, NO_DESCRIPTOR) == 0;
}

/* A pair of which b has never sent to a, and cannot connect while starved is
 * not 0. A long message from a to b begins. NULL: not with a decorator, or a
 * device. */
static struct unm_ep *speechless(struct ep_pair *p, struct hal_ops *ops,
				 char *out, char *in, size_t len)
{
	struct unm_ep *b = (struct unm_ep *)p->b->ep;

	if (b->hif->ops != &hal_emu_ops)
		return NULL;
	*ops = hal_emu_ops;
	ops->connect = no_connect;
	b->hif->ops = ops;
	EP_OK(fi_recv(p->b->ep, in, len, NULL, p->ba, in));
	EP_OK(fi_send(p->a->ep, out, len, NULL, p->ab, out));
	return b;
}

static void test_no_descriptor_to_answer_is_back_pressure(void **state)
{
	size_t len = 1 << 20;
	char *out = ep_alloc(len), *in = ep_alloc(len);
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;
	struct unm_ep *b;

	starved = 7;
	busy = false;
	errors = 0;
	memset(out, 5, len);
	b = speechless(&p, &ops, out, in, len);
	unit_needs(b != NULL);
	hal_log_set(count_errors);
	ep_sent(p.a, out);
	ep_received(p.b, in);
	hal_log_set(NULL);
	assert_memory_equal(in, out, len);
	assert_int_equal(starved, 0);
	assert_int_equal(errors, 1);	/* of one shortage */
	b->hif->ops = &hal_emu_ops;
}

static void no_descriptor_for_long(void)
{
	size_t len = 1 << 20;
	char *out = ep_alloc(len), *in = ep_alloc(len);
	uint64_t end = ep_deadline();
	struct ep_pair p = ep_pair(NULL);
	struct hal_ops ops;
	struct unm_peer *peer = NULL;
	struct ep_comp c;
	struct unm_ep *b;

	starved = UINT32_MAX;
	memset(out, 5, len);
	b = speechless(&p, &ops, out, in, len);
	unit_needs(b != NULL);
	while (peer == NULL || peer->space_since == 0) {
		ep_step();
		ep_in_time(end, "a shortage");
		unm_list_for_each(pos, &b->peers)
			peer = unm_container(pos, struct unm_peer, all);
	}
	assert_false(peer->failed);
	peer->space_since -= 31000000;	/* as if it had begun 31 s ago */
	assert_int_equal(ep_wait(p.a, out).err, FI_ECONNRESET);
	c = ep_wait(p.b, in);
	if (c.err == 0)		/* it read the bytes without an answer */
		assert_memory_equal(in, out, len);
	else
		assert_int_equal(c.err, FI_ECONNABORTED);
	starved = 0;
	b->hif->ops = &hal_emu_ops;
}

static void test_no_descriptor_for_long_ends(void **state)
{
	busy = false;
	no_descriptor_for_long();
}

/* Attempts that find the queue of the peer full do not end the shortage. */
static void test_no_descriptor_or_busy_ends(void **state)
{
	busy = true;
	no_descriptor_for_long();
}

/* ---- No memory for the object of a peer --------------------------------- */

static const struct hal_if *no_peers;	/* interface of the endpoint that gets
					 * no memory for the object of a peer;
					 * NULL: none */
static bool until_death;		/* the endpoint gets memory once its
					 * first peer is dead */
static unsigned no_peer;		/* allocations that failed */

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	if (no_peers == NULL || size != sizeof(struct unm_peer) ||
	    (until_death && no_peers->ninbound != 0 &&
	     no_peers->inbound[0]->dead))
		return __real_aligned_alloc(align, size);
	no_peer++;
	return NULL;
}

/* Poll an endpoint that gets no memory for the object of a peer. */
static void poll_without_memory(struct ep *e)
{
	no_peers = ((struct unm_ep *)e->ep)->hif;
	ep_poll(e);
	no_peers = NULL;
}

/* a sends a message to b, which has posted a receive into in and has no memory
 * for the object of a when a connects, and for some time after. */
static struct ep_pair unknown_sender(char *in)
{
	const struct ep_want want = { .wait = FI_WAIT_FD };
	struct ep_pair p = ep_pair(&want);
	uint64_t end = ep_deadline();
	ssize_t ret;

	no_peer = 0;
	until_death = false;
	EP_OK(fi_recv(p.b->ep, in, 1, NULL, p.ba, in));
	while ((ret = fi_inject(p.a->ep, "x", 1, p.ab)) == -FI_EAGAIN) {
		ep_poll(p.a);
		poll_without_memory(p.b);
		ep_in_time(end, "a connection");
	}
	assert_int_equal(ret, 0);
	for (int n = 0; n < 1000 || no_peer < 3; n++) {
		poll_without_memory(p.b);
		ep_in_time(end, "an object that is needed");
	}
	assert_int_equal(p.b->ncomp, 0);
	return p;
}

static void test_peer_without_memory_is_heard_later(void **state)
{
	char in[1] = "";
	struct ep_pair p = unknown_sender(in);
	struct fid *fid = &p.b->cq->fid;

	ep_received(p.b, in);
	assert_int_equal(in[0], 'x');
	/* no packet is left that would keep b from sleeping */
	EP_UNTIL(fi_trywait(p.b->fabric, &fid, 1) == 0);
}

/* There is memory once the peer has ended. */
static void test_peer_without_memory_is_heard_at_its_end(void **state)
{
	uint64_t end = ep_deadline();
	char in[1] = "";
	struct ep_pair p = unknown_sender(in);
	struct ep_comp c;

	ep_close(p.a);
	until_death = true;
	while (!ep_take(p.b, in, &c)) {
		poll_without_memory(p.b);
		ep_in_time(end, "the message of a peer that ended");
	}
	assert_int_equal(c.err, 0);
	assert_int_equal(in[0], 'x');
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_no_space_is_back_pressure),
	EP_TEST_INSIDE(test_no_space_for_long_ends),
	EP_TEST_INSIDE(test_no_space_twice_is_back_pressure),
	EP_TEST_INSIDE(test_no_space_pauses_are_short),
	EP_TEST_INSIDE(test_space_grows_after_a_shortage),
	EP_TEST_INSIDE(test_rest_of_space_is_back_pressure),
	EP_TEST_INSIDE(test_no_descriptor_to_answer_is_back_pressure),
	EP_TEST_INSIDE(test_no_descriptor_for_long_ends),
	EP_TEST_INSIDE(test_no_descriptor_or_busy_ends),
	EP_TEST_INSIDE(test_peer_without_memory_is_heard_later),
	EP_TEST_INSIDE(test_peer_without_memory_is_heard_at_its_end),
)
