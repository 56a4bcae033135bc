/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_receive.c - which receive a message matches: sources, tags, senders that
 * are not in the address vector yet, messages longer than the buffer.
 */
#include "lib/ep_xfer.h"

/* the longest inline, eager and rendezvous messages of both profiles */
static const size_t kinds[] = { 8, 4000, 100000 };
#define NKINDS	3

static void tsend(struct ep *e, fi_addr_t to, const void *buf, size_t len,
		  uint64_t tag)
{
	EP_OK(fi_tsenddata(e->ep, buf, len, NULL, tag + 1, to, tag,
			   (void *)buf));
}

/* ---- Sources --------------------------------------------------------- */

struct three {
	struct ep *r, *s[2];
	fi_addr_t from[2], to[2];
};

static struct three three(void)
{
	struct three t = { .r = ep_open(NULL) };

	for (int i = 0; i < 2; i++) {
		t.s[i] = ep_open(NULL);
		t.from[i] = ep_insert(t.r, t.s[i]);
		t.to[i] = ep_insert(t.s[i], t.r);
	}
	return t;
}

/* Receives are posted first; a message of another sender must not match. */
static void directed_posted(size_t len, bool tagged)
{
	struct three t = three();
	char *buf = calloc(4, len), *in[3] = { buf, buf + len, buf + 2 * len };
	char *out = buf + 3 * len;

	for (int i = 0; i < 2; i++)
		if (tagged)
			EP_OK(fi_trecv(t.r->ep, in[i], len, NULL, t.from[i], 1,
				       0, in[i]));
		else
			EP_OK(fi_recv(t.r->ep, in[i], len, NULL, t.from[i],
				      in[i]));
	/* the second receive first */
	for (int i = 1; i >= 0; i--) {
		struct ep_comp c;

		memset(out, 'a' + i, len);
		if (tagged)
			tsend(t.s[i], t.to[i], out, len, 1);
		else
			EP_OK(fi_send(t.s[i]->ep, out, len, NULL, t.to[i],
				      out));
		c = ep_received(t.r, in[i]);
		assert_int_equal(c.src, t.from[i]);
		assert_int_equal(c.len, len);
		assert_memory_equal(in[i], out, len);
		ep_sent(t.s[i], out);
	}
	ep_quiet(t.r);
	free(buf);
	for (int i = 0; i < 2; i++)
		ep_close(t.s[i]);
	ep_close(t.r);
}

static void test_directed_receive_posted_first(void **state)
{
	for (int i = 0; i < NKINDS; i++) {
		directed_posted(kinds[i], true);
		directed_posted(kinds[i], false);
	}
}

static void test_directed_receive_of_unexpected(void **state)
{
	for (int k = 0; k < NKINDS; k++) {
		struct three t = three();
		size_t len = kinds[k];
		char *mem = malloc(3 * len), *in = mem + 2 * len;

		for (int i = 0; i < 2; i++) {
			char *out = mem + (size_t)i * len;

			memset(out, 'a' + i, len);
			EP_OK(fi_tsend(t.s[i]->ep, out, len, NULL, t.to[i], 1,
				       out));
			ep_settle();
		}
		EP_OK(fi_trecv(t.r->ep, in, len, NULL, t.from[1], 1, 0, in));
		assert_int_equal(ep_received(t.r, in).src, t.from[1]);
		assert_int_equal(in[len - 1], 'b');
		EP_OK(fi_trecv(t.r->ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0,
			       in));
		assert_int_equal(ep_received(t.r, in).src, t.from[0]);
		assert_int_equal(in[len - 1], 'a');
		ep_teardown(NULL);
		free(mem);
	}
}

/* Without FI_DIRECTED_RECV the address of a receive is ignored. */
static void test_undirected_endpoint_ignores_the_source(void **state)
{
	struct ep_want want = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct ep_pair p = ep_pair(&want);
	char in, out = 5;

	assert_false(p.b->info->caps & FI_DIRECTED_RECV);
	/* its own address instead of the sender's */
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, 1, &in));
	EP_OK(fi_send(p.a->ep, &out, 1, NULL, p.ab, &out));
	assert_int_equal(ep_received(p.b, &in).len, 1);
}

/* ---- Senders not in the vector --------------------------------------- */

static void unresolved_peer(size_t len)
{
	struct ep *r = ep_open(NULL), *s = ep_open(NULL);
	fi_addr_t to = ep_insert(s, r), from;
	char *mem = calloc(6, len);
	char *in[3] = { mem, mem + len, mem + 2 * len };
	char *out[3] = { mem + 3 * len, mem + 4 * len, mem + 5 * len };

	for (int i = 0; i < 3; i++) {
		memset(out[i], 'x' + i, len);
		tsend(s, to, out[i], len, i);
	}
	ep_settle();
	EP_OK(fi_trecv(r->ep, in[0], len, NULL, FI_ADDR_UNSPEC, 0, 0, in[0]));
	assert_int_equal(ep_received(r, in[0]).src, FI_ADDR_NOTAVAIL);
	assert_memory_equal(in[0], out[0], len);

	/* inserted now: messages in the queue get the address as well */
	ep_insert(r, r);
	from = ep_insert(r, s);
	EP_OK(fi_trecv(r->ep, in[1], len, NULL, from, 1, 0, in[1]));
	assert_int_equal(ep_received(r, in[1]).src, from);
	assert_memory_equal(in[1], out[1], len);
	EP_OK(fi_trecv(r->ep, in[2], len, NULL, from, 0, UINT64_MAX, in[2]));
	assert_int_equal(ep_received(r, in[2]).src, from);
	for (int i = 0; i < 3; i++)
		ep_sent(s, out[i]);

	/* and later messages, too */
	EP_OK(fi_trecv(r->ep, in[0], len, NULL, from, 9, 0, in[0]));
	tsend(s, to, out[2], len, 9);
	assert_int_equal(ep_received(r, in[0]).src, from);
	ep_sent(s, out[2]);
	ep_teardown(NULL);
	free(mem);
}

static void test_trap9_unknown_sender_gets_a_name_late(void **state)
{
	for (int i = 0; i < NKINDS; i++)
		unresolved_peer(kinds[i]);
}

/* A directed receive does not match a sender until that sender is inserted. */
static void test_unknown_sender_does_not_take_a_directed_receive(void **state)
{
	struct ep *r = ep_open(NULL), *s = ep_open(NULL);
	fi_addr_t to = ep_insert(s, r), self = ep_insert(r, r);
	char in[2], out = 1;

	EP_OK(fi_trecv(r->ep, &in[0], 1, NULL, self, 7, 0, &in[0]));
	EP_OK(fi_trecv(r->ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 7, 0, &in[1]));
	tsend(s, to, &out, 1, 7);
	assert_int_equal(ep_received(r, &in[1]).src, FI_ADDR_NOTAVAIL);
	ep_quiet(r);
}

/* A sender that was closed before it was inserted. */
static void test_message_of_a_closed_unresolved_peer_is_named_late(void **state)
{
	struct ep *r = ep_open(NULL), *s = ep_open(NULL);
	fi_addr_t from;
	char name[64], in, out = 'm';
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&s->ep->fid, name, &len), 0);
	tsend(s, ep_insert(s, r), &out, 1, 7);
	ep_settle();
	ep_close(s);
	ep_settle();
	assert_int_equal(fi_av_insert(r->av, name, 1, &from, 0, NULL), 1);
	EP_OK(fi_trecv(r->ep, &in, 1, NULL, from, 7, 0, &in));
	assert_int_equal(ep_received(r, &in).src, from);
	assert_int_equal(in, 'm');
}

/* ---- Too long -------------------------------------------------------- */

static void truncated(struct ep_pair *p, size_t len, size_t room, int iov,
		      bool tagged, bool unexpected)
{
	struct xfer x = {
		.tagged = tagged, .tx = XFER_SENDDATA, .rx = XFER_RECVV,
		.len = len, .room = room, .tag = 0xabcdef0123456789,
		.data = 0x1122334455667788, .seed = len + room,
		.rx_iov = iov,
	};
	uint64_t flags = FI_RECV | FI_REMOTE_CQ_DATA |
		(tagged ? FI_TAGGED : FI_MSG);
	struct ep_comp c;

	if (room == 0) {
		x.room = 1;		/* xfer_make() replaces 0 by len */
		x.rx_iov = 1;
	}
	xfer_make(&x);
	if (room == 0)
		x.room = x.in_iov[0].iov_len = 0;
	if (!unexpected)
		EP_OK(xfer_recv(p->b, p->ba, &x));
	EP_OK(xfer_send(p->a, p->ab, &x));
	if (unexpected) {
		ep_settle();
		EP_OK(xfer_recv(p->b, p->ba, &x));
	}
	c = ep_wait(p->b, &x.rxc);
	assert_int_equal(c.err, FI_ETRUNC);
	assert_int_equal(c.flags, flags);
	assert_int_equal(c.len, room);
	assert_int_equal(c.olen, len - room);
	assert_int_equal(c.data, x.data);
	if (tagged)
		assert_int_equal(c.tag, x.tag);
	if (room != 0)
		assert_ptr_equal(c.buf, x.in_iov[0].iov_base);
	xfer_check_bytes(&x, room);
	ep_sent(p->a, &x.txc);		/* the sender sees no error */
	xfer_free(&x);
}

static void test_trap5_truncation_fills_every_field(void **state)
{
	static const struct { size_t len, room; } t[] = {
		{ 1, 0 }, { 40, 0 }, { 40, 39 }, { 8, 7 }, { 4000, 0 },
		{ 4000, 1 }, { 4000, 3999 }, { 100000, 0 }, { 100000, 1 },
		{ 100000, 4096 }, { 100000, 20000 }, { 100000, 99999 },
		{ 1 << 20, 65536 },
	};
	struct ep_pair p = ep_pair(NULL);

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		for (int k = 0; k < 8; k++)
			truncated(&p, t[i].len, t[i].room, k & 4 ? 3 : 1,
				  k & 1, k & 2);
	ep_pair_quiet(&p);
}

/* The message after a truncated one is not affected. */
static void test_truncation_leaves_the_stream_alone(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(2 * 100000), *in = ep_alloc(2 * 100000);

	for (int k = 0; k < NKINDS; k++) {
		size_t len = kinds[k];

		xfer_fill(out, len, 1, 0);
		xfer_fill(out + 100000, len, 2, 0);
		EP_OK(fi_recv(p.b->ep, in, 3, NULL, p.ba, in));
		EP_OK(fi_recv(p.b->ep, in + 100000, len, NULL, p.ba,
			      in + 100000));
		EP_OK(fi_send(p.a->ep, out, len, NULL, p.ab, out));
		EP_OK(fi_send(p.a->ep, out + 100000, len, NULL, p.ab,
			      out + 100000));
		assert_int_equal(ep_wait(p.b, in).err, FI_ETRUNC);
		assert_int_equal(ep_received(p.b, in + 100000).len, len);
		assert_true(xfer_filled(in + 100000, len, 2, 0));
		ep_sent(p.a, out);
		ep_sent(p.a, out + 100000);
	}
}

/* ---- Tags ------------------------------------------------------------ */

static void test_trap5_the_tag_is_the_senders_full_tag(void **state)
{
	static const uint64_t tag = 0xfedcba9876543210;
	struct ep_pair p = ep_pair(NULL);
	char in[8], out[8] = "";

	for (int unexpected = 0; unexpected < 2; unexpected++) {
		struct ep_comp c;

		if (unexpected) {
			tsend(p.a, p.ab, out, 8, tag);
			ep_settle();
		}
		EP_OK(fi_trecv(p.b->ep, in, 8, NULL, FI_ADDR_UNSPEC, 0x10,
			       ~UINT64_C(0xff), in));
		if (!unexpected)
			tsend(p.a, p.ab, out, 8, tag);
		c = ep_received(p.b, in);
		assert_int_equal(c.tag, tag);
		assert_int_equal(c.data, tag + 1);
		ep_sent(p.a, out);
	}
}

static void test_tagged_and_untagged_do_not_meet(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char in[2], out[2] = { 1, 2 };

	EP_OK(fi_recv(p.b->ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, &in[0]));
	tsend(p.a, p.ab, &out[0], 1, 0);
	ep_quiet(p.b);
	EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, 0,
		       UINT64_MAX, &in[1]));
	ep_received(p.b, &in[1]);
	assert_int_equal(in[1], 1);
	EP_OK(fi_send(p.a->ep, &out[1], 1, NULL, p.ab, &out[1]));
	ep_received(p.b, &in[0]);
	assert_int_equal(in[0], 2);
}

/* ---- Many ------------------------------------------------------------ */

/* All messages are sent before any is received, in reverse. */
static void test_many_unexpected_in_reverse(void **state)
{
	enum { N = 20000 };
	struct ep_pair p = ep_pair(NULL);
	uint32_t out, in;

	for (uint32_t i = 0; i < N; i++) {
		out = i;
		EP_OK(fi_tinject(p.a->ep, &out, 4, p.ab, i));
	}
	ep_settle();
	for (uint32_t i = N; i-- > 0; ) {
		EP_OK(fi_trecv(p.b->ep, &in, 4, NULL, p.ba, i, 0, &in));
		ep_received(p.b, &in);
		assert_int_equal(in, i);
	}
	ep_quiet(p.b);
}

static void test_many_posted_in_reverse(void **state)
{
	enum { N = 20000 };
	struct ep_pair p = ep_pair(NULL);
	uint32_t *in = ep_alloc(N * sizeof(*in));

	for (uint32_t i = 0; i < N; i++)
		EP_OK(fi_trecv(p.b->ep, &in[i], 4, NULL, p.ba, i, 0, &in[i]));
	for (uint32_t i = N; i-- > 0; )
		EP_OK(fi_tinject(p.a->ep, &i, 4, p.ab, i));
	for (uint32_t i = N; i-- > 0; )
		assert_ptr_equal(ep_next(p.b).context, &in[i]);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(in[i], i);
}

UNIT_MAIN(
	EP_TEST(test_directed_receive_posted_first),
	EP_TEST(test_directed_receive_of_unexpected),
	EP_TEST(test_undirected_endpoint_ignores_the_source),
	EP_TEST(test_trap9_unknown_sender_gets_a_name_late),
	EP_TEST(test_unknown_sender_does_not_take_a_directed_receive),
	EP_TEST(test_message_of_a_closed_unresolved_peer_is_named_late),
	EP_TEST(test_trap5_truncation_fills_every_field),
	EP_TEST(test_truncation_leaves_the_stream_alone),
	EP_TEST(test_trap5_the_tag_is_the_senders_full_tag),
	EP_TEST(test_tagged_and_untagged_do_not_meet),
	EP_TEST(test_many_unexpected_in_reverse),
	EP_TEST(test_many_posted_in_reverse),
)
