/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_garbage.c - a peer that breaks the protocol is disconnected and its
 * pending operations end in error. Other peers are not affected: meanwhile the
 * endpoint exchanges messages with a third endpoint, every byte checked. Best
 * run under ASan.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/ep_xfer.h"
#include "lib/raw_peer.h"
#include "unm_env.h"

#define BIG	100000

struct scene {
	struct ep *v, *t;		/* victim, third party */
	fi_addr_t vt, tv;
	struct raw *r;			/* the peer that misbehaves */
	fi_addr_t vr;			/* its index in the victim's vector */
	uint64_t seed;
};

static struct scene scene_met(void (*meet)(struct raw *r, struct ep *e))
{
	struct scene s = { .v = ep_open(NULL), .t = ep_open(NULL),
			   .r = raw_open(), .seed = 1 };

	s.vt = ep_insert(s.v, s.t);
	s.vr = raw_insert(s.v, s.r);
	s.tv = ep_insert(s.t, s.v);
	meet(s.r, s.v);
	return s;
}

static struct scene scene(void)
{
	return scene_met(raw_connect);
}

/* Messages of every protocol between victim and third party, both ways. */
static void others_are_well(struct scene *s)
{
	static const size_t lens[] = { 0, 8, 300, 4000, BIG };

	for (int i = 0; i < 10; i++) {
		struct ep *from = i & 1 ? s->v : s->t;
		struct ep *to = i & 1 ? s->t : s->v;
		fi_addr_t dest = i & 1 ? s->vt : s->tv;
		fi_addr_t src = i & 1 ? s->tv : s->vt;
		struct xfer x = { .tagged = i & 2, .tx = XFER_SENDDATA,
				  .len = lens[i / 2], .tag = 0xfeed0000 + i,
				  .data = i, .seed = ++s->seed };

		xfer_make(&x);
		EP_OK(xfer_recv(to, src, &x));
		EP_OK(xfer_send(from, dest, &x));
		xfer_check(to, src, &x);
		ep_sent(from, &x.txc);
		xfer_free(&x);
	}
}

/* Sends to the peer fail, whether the victim was connected to it or not. */
static void is_gone(struct scene *s)
{
	char c = 0;

	assert_int_equal(fi_send(s->v->ep, &c, 1, NULL, s->vr, &c),
			 -FI_ECONNRESET);
	assert_int_equal(fi_tinject(s->v->ep, &c, 1, s->vr, 0),
			 -FI_ECONNRESET);
}

static void is_dropped(struct scene *s)
{
	RAW_UNTIL(s->r->dead);
	is_gone(s);
	others_are_well(s);
	ep_quiet(s->v);
}

/* The victim's object of the misbehaving peer; NULL: none yet. */
static struct unm_peer *victims_peer(struct scene *s)
{
	unm_list_for_each(pos, &((struct unm_ep *)s->v->ep)->peers) {
		struct unm_peer *peer = unm_container(pos, struct unm_peer,
						      all);

		if (peer->hello_received && peer->fi_addr == s->vr)
			return peer;
	}
	return NULL;
}

static void send_words(struct scene *s, uint8_t type, uint8_t flags,
		       uint64_t w0, uint64_t w1, uint64_t w2)
{
	const uint64_t w[] = { w0, w1, w2 };

	raw_send(s->r, hal_head(type, flags), w, 3, NULL, 0);
}

/* ---- Single packets -------------------------------------------------- */

struct packet {
	uint8_t type, flags;
	uint64_t w[3];
};

#define EXT(off, len)	((uint64_t)(len) << 32 | (uint32_t)(off))
#define HEAD(type)	((uint64_t)(type) << 56)

static const struct packet bad[] = {
	/* unknown types */
	{ 0x00, 0, { 0 } }, { 0x03, 0, { 0 } }, { 0x0f, 0, { 0 } },
	{ 0x1a, 0, { 0 } }, { 0x1b, 0, { 0 } }, { 0x1f, 0, { 0 } },
	{ 0x24, 0, { 0 } }, { 0x80, 0, { 0 } }, { 0xff, 0xff, { 0 } },
	/* more inline data than fit */
	{ 0x10, 57, { 0 } }, { 0x10, 63, { 0 } }, { 0x11, 0x40 | 41, { 0 } },
	{ 0x11, 49, { 0 } }, { 0x10, 0x40 | 49, { 0 } },
	/* wide: they fit one slot, they do not fit two, carried */
	{ 0x16, 0, { 0 } }, { 0x16, 56, { 0 } }, { 0x17, 48, { 0 } },
	{ 0x17, 0x40 | 40, { 0 } }, { 0x16, 0x80 | 49, { 0 } },
	{ 0x17, 0x80 | 41, { 0 } }, { 0x17, 0xC0 | 33, { 0 } },
	{ 0x02, 0, { EXT(0, 112), HEAD(0x16) | 0xB0ull << 48 } },
	/* reserved flags */
	{ 0x10, 0x80, { 0 } }, { 0x11, 0x81, { 0 } }, { 0x12, 0x80, { 0 } },
	{ 0x13, 0x01, { 0 } }, { 0x14, 0x80, { 1, 1, 1 } },
	/* extents outside of the space */
	{ 0x12, 0, { EXT(0, 0xffffffff) } }, { 0x12, 0, { EXT(-8, 8) } },
	{ 0x12, 0, { EXT(0xffffffff, 0xffffffff) } },
	{ 0x13, 0, { 1, EXT(0x7fffffff, 0x7fffffff) } },
	{ 0x02, 0, { EXT(-8, 40), HEAD(0x15) } },
	/* carried: misaligned, a type that is not carried, a wrong length */
	{ 0x02, 0, { EXT(4, 40), HEAD(0x15) } },
	{ 0x02, 0, { EXT(0, 8), HEAD(0x01) } },
	{ 0x02, 0, { EXT(0, 16), HEAD(0x02) } },
	{ 0x02, 0, { EXT(0, 0), HEAD(0x10) } },
	{ 0x02, 0, { EXT(0, 8), HEAD(0x12) } },
	{ 0x02, 0, { EXT(0, 32), HEAD(0x14) } },
	{ 0x02, 0, { EXT(0, 0xffffffff), HEAD(0x14) } },
	{ 0x02, 0, { EXT(0, 24), HEAD(0xff) } },
	/* answers to no operation */
	{ 0x20, 0, { 0, 0, 1 } }, { 0x20, 0, { 1ull << 32, 0, 1 } },
	{ 0x20, 0, { -1, -1, -1 } }, { 0x21, 0, { 0, EXT(0, 1) } },
	{ 0x21, 0, { 1ull << 32, EXT(0, 1) } }, { 0x22, 0, { 0, 0 } },
	{ 0x22, 0, { 1ull << 32, 0 } }, { 0x22, 0, { -1, -1 } },
	{ 0x21, 0, { -1, EXT(0, 0) } },
};

static void test_single_bad_packets(void **state)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scene s = scene();

		raw_hello(s.r);
		send_words(&s, bad[i].type, bad[i].flags, bad[i].w[0],
			   bad[i].w[1], bad[i].w[2]);
		/* the next packet is not accepted */
		send_words(&s, UNM_WIRE_INLINE, 8, 1, 1, 1);
		for (uint64_t end = ep_deadline(); !s.r->dead; raw_step())
			if (ep_now() > end)
				unit_fail("accepted: type 0x%x, case %zu",
					  bad[i].type, i);
		is_dropped(&s);
		raw_teardown(NULL);
	}
}

static void test_no_hello(void **state)
{
	static const uint8_t types[] = { 0x02, 0x10, 0x11, 0x12, 0x14, 0x22 };

	for (size_t i = 0; i < sizeof(types); i++) {
		struct scene s = scene();

		send_words(&s, types[i], 0, 0, 0, 0);
		is_dropped(&s);
		raw_teardown(NULL);
	}
}

/* A provider of another version: one line names both and the remedy. */
static void test_other_version(void **state)
{
	static const uint16_t other[][2] = { { 5, 5 }, { 0, 0 }, { 9, 7 } };

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct scene s = scene();
		char text[4096], both[64];
		struct unit_capture ear = unit_capture_begin();

		raw_hello_as(s.r, other[i][0], other[i][1]);
		for (uint64_t end = ep_deadline();
		     !s.r->dead && ep_now() < end; )
			raw_step();
		snprintf(both, sizeof(both), "version %u (%u at least), this "
			 "provider %d", other[i][0], other[i][1],
			 UNM_WIRE_VERSION);
		if (unit_capture_end(&ear, text, sizeof(text)) != 1 ||
		    strstr(text, both) == NULL ||
		    strstr(text, "install the same unimem") == NULL)
			unit_fail("it said: \"%s\"", text);
		is_dropped(&s);
		raw_teardown(NULL);
	}
}

/* A newer provider that supports this version is accepted. */
static void test_newer_version(void **state)
{
	struct scene s = scene();
	char in[8];

	raw_hello_as(s.r, UNM_WIRE_VERSION + 7, UNM_WIRE_VERSION);
	EP_OK(fi_recv(s.v->ep, in, 8, NULL, s.vr, in));
	send_words(&s, UNM_WIRE_INLINE, 8, 1, 0, 0);
	RAW_UNTIL(s.v->ncomp == 1);
	assert_int_equal(in[0], 1);
	s.v->ncomp = 0;
	others_are_well(&s);
}

/* Packets that name receive space which was never announced: on a device it
 * does not exist, in the emulation it does. */
static void test_space_that_was_not_announced(void **state)
{
	static const struct packet named[] = {
		{ 0x12, 0, { EXT(64, 8) } }, { 0x13, 0, { 1, EXT(64, 8) } },
		{ 0x12, 0, { EXT(0, 8) } }, { 0x12, 0, { EXT(0, 0) } },
		{ 0x02, 0, { EXT(0, 24), HEAD(0x14) } },
		{ 0x02, 0, { EXT(64, 16), HEAD(0x22) } },
		{ 0x21, 0, { 0, EXT(0, 8) } },
	};

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		struct scene s = scene_met(raw_reach);
		struct unm_peer *peer;
		bool none;
		char in[8];

		raw_hello(s.r);
		RAW_UNTIL((peer = victims_peer(&s)) != NULL);
		none = peer->hp->rx.space == NULL;
		EP_OK(fi_recv(s.v->ep, in, 8, NULL, s.vr, in));
		send_words(&s, named[i].type, named[i].flags, named[i].w[0],
			   named[i].w[1], named[i].w[2]);
		if (none)
			RAW_UNTIL(s.r->dead);
		for (int k = 0; k < 100; k++)
			raw_step();
		s.v->ncomp = 0;
		others_are_well(&s);
		raw_teardown(NULL);
	}
}

/* ---- Operations under way -------------------------------------------- */

static void announce(struct scene *s, uint64_t len, uint64_t addr)
{
	send_words(s, UNM_WIRE_RTS, 0, len, 0x100000005, addr);
}

static void test_its_operations_end_in_error(void **state)
{
	struct scene s;
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG), *late = ep_alloc(BIG);
	char small = 1;
	struct ep_comp c;

	s = scene();
	raw_hello(s.r);
	/* rendezvous both ways, an unexpected one, a delivery */
	EP_OK(fi_recv(s.v->ep, in, BIG, NULL, s.vr, in));
	announce(&s, BIG, 0);
	announce(&s, BIG, 0);
	EP_OK(fi_tsend(s.v->ep, out, BIG, NULL, s.vr, 7, out));
	EP_OK(fi_trecv(s.v->ep, &small, 1, NULL, s.vr, 99, 0, &small));
	for (int i = 0; i < 300; i++)
		raw_step();
	assert_int_equal(s.v->ncomp, 0);
	send_words(&s, 0xEE, 0, 0, 0, 0);
	c = ep_wait(s.v, in);
	assert_int_equal(c.err, FI_ECONNABORTED);
	assert_int_equal(c.flags, FI_RECV | FI_MSG);
	c = ep_wait(s.v, out);
	assert_int_equal(c.err, FI_ECONNABORTED);
	assert_int_equal(c.flags, FI_SEND | FI_TAGGED);
	/* the receive that no message matched names the peer */
	c = ep_wait(s.v, &small);
	assert_int_equal(c.err, FI_ECONNABORTED);
	assert_int_equal(c.flags, FI_RECV | FI_TAGGED);
	assert_int_equal(fi_cancel(&s.v->ep->fid, &small), -FI_ENOENT);
	is_dropped(&s);
	/* the announced message matches, but its bytes are lost */
	EP_OK(fi_recv(s.v->ep, late, BIG, NULL, s.vr, late));
	c = ep_wait(s.v, late);
	assert_int_not_equal(c.err, 0);
	ep_quiet(s.v);
}

/* Messages that the peer sent before the error can be received. */
static void test_what_came_before_is_kept(void **state)
{
	struct scene s = scene();
	uint64_t in;

	raw_hello(s.r);
	for (uint64_t i = 0; i < 5; i++)
		raw_send(s.r, hal_head(UNM_WIRE_INLINE, 8), &i, 1, NULL, 0);
	send_words(&s, 0xEE, 0, 0, 0, 0);
	RAW_UNTIL(s.r->dead);
	for (uint64_t i = 0; i < 5; i++) {
		EP_OK(fi_recv(s.v->ep, &in, 8, NULL, s.vr, &in));
		assert_int_equal(ep_received(s.v, &in).src, s.vr);
		assert_int_equal(in, i);
	}
	is_dropped(&s);
}

/* A multi-receive buffer into which the peer's data went is released. */
static void test_multi_receive_buffer_survives_it(void **state)
{
	char *buf = ep_alloc(2 * BIG);
	struct iovec iov = { buf, BIG };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = buf };
	struct ep_comp c;
	struct scene s = scene();

	raw_hello(s.r);
	EP_OK(fi_recvmsg(s.v->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	announce(&s, BIG, 0);		/* fills the buffer */
	for (int i = 0; i < 300; i++)
		raw_step();
	send_words(&s, 0xEE, 0, 0, 0, 0);
	c = ep_wait(s.v, buf);
	assert_int_equal(c.err, FI_ECONNABORTED);
	assert_true(c.flags & FI_MULTI_RECV);
	is_dropped(&s);
}

/* ---- Tokens ---------------------------------------------------------- */

static uint64_t token_of_rts(struct scene *s)
{
	uint64_t w[UNM_WIRE_WORDS_MAX];

	raw_expect(s->r, UNM_WIRE_HELLO, w);
	raw_expect(s->r, UNM_WIRE_RTS, w);
	return w[1];
}

/* Messages that end, or ask for, a send to another peer. */
static void test_tokens_of_others_are_refused(void **state)
{
	static const uint8_t types[] = { UNM_WIRE_FIN, UNM_WIRE_CTS };
	char *out = malloc(BIG), *in = malloc(BIG);

	for (int i = 0; i < 2; i++) {
		struct scene s = scene();
		uint64_t token;

		raw_hello(s.r);
		/* the token of this operation shows the format of tokens */
		EP_OK(fi_send(s.v->ep, out, BIG, NULL, s.vr, in));
		token = token_of_rts(&s);
		xfer_fill(out, BIG, i, 0);
		EP_OK(fi_send(s.v->ep, out, BIG, NULL, s.vt, out));
		ep_settle();
		/* objects of the pool are used in order */
		send_words(&s, types[i], 0, token + 1, 0, i ? 8 : 0);
		RAW_UNTIL(s.r->dead);
		assert_int_equal(ep_wait(s.v, in).err, FI_ECONNABORTED);
		EP_OK(fi_recv(s.t->ep, in, BIG, NULL, s.tv, in));
		ep_received(s.t, in);
		ep_sent(s.v, out);
		assert_true(xfer_filled(in, BIG, i, 0));
		is_dropped(&s);
		raw_teardown(NULL);
	}
	free(out);
	free(in);
}

/* The token of an operation with this peer, used in a wrong way. */
static void misuse(const struct packet *first, const struct packet *second)
{
	static char out[BIG];
	struct scene s = scene();
	const struct packet *const ps[] = { first, second };
	uint64_t token;
	struct ep_comp c;

	raw_hello(s.r);
	EP_OK(fi_send(s.v->ep, out, BIG, NULL, s.vr, out));
	token = token_of_rts(&s);
	for (int i = 0; i < 2; i++)
		if (ps[i] != NULL)
			send_words(&s, ps[i]->type, ps[i]->flags, token,
				   ps[i]->w[1], ps[i]->w[2]);
	RAW_UNTIL(s.r->dead);
	c = ep_wait(s.v, out);
	/* the first FIN ended it with success */
	if (first->type == UNM_WIRE_FIN)
		assert_int_equal(c.err, 0);
	else
		assert_int_equal(c.err, FI_ECONNABORTED);
	is_dropped(&s);
	raw_teardown(NULL);
}

static void test_own_token_misused(void **state)
{
	static const struct packet fin = { UNM_WIRE_FIN, 0, { 0 } };
	static const struct packet cts = { UNM_WIRE_CTS, 0, { 0, 5, BIG } };
	static const struct packet none = { UNM_WIRE_CTS, 0, { 0, 5, 0 } };
	static const struct packet more = { UNM_WIRE_CTS, 0,
					    { 0, 5, BIG + 1 } };
	static const struct packet data = { UNM_WIRE_DATA, 0,
					    { 0, EXT(0, 8) } };

	misuse(&fin, &fin);		/* ended twice */
	misuse(&fin, &cts);
	misuse(&cts, &cts);		/* asked for twice */
	misuse(&none, NULL);		/* asked for no bytes */
	misuse(&more, NULL);		/* more bytes than the message has */
	misuse(&data, NULL);		/* token of a send, not a receive */
}

/* ---- Pieces ---------------------------------------------------------- */

/* After the CTS, pieces that were not asked for. */
static void pieces(const uint64_t *extent, int n)
{
	char *in = malloc(BIG);
	struct scene s = scene();
	uint64_t w[UNM_WIRE_WORDS_MAX], token;
	struct ep_comp c;

	memset(in, 0x11, BIG);
	raw_hello(s.r);
	EP_OK(fi_recv(s.v->ep, in, 5000, NULL, s.vr, in));
	announce(&s, 5000, 0);
	raw_expect(s.r, UNM_WIRE_HELLO, w);
	raw_expect(s.r, UNM_WIRE_CTS, w);
	token = w[1];
	assert_int_equal(w[2], 5000);
	for (int i = 0; i < n; i++)
		send_words(&s, UNM_WIRE_DATA, 0, token, extent[i], 0);
	RAW_UNTIL(s.r->dead);
	c = ep_wait(s.v, in);
	assert_int_equal(c.err, FI_ECONNABORTED);
	for (int i = 5000; i < BIG; i++)
		assert_int_equal(in[i], 0x11);
	is_dropped(&s);
	raw_teardown(NULL);
	free(in);
}

static void test_pieces_that_were_not_asked_for(void **state)
{
	pieces((const uint64_t[]){ EXT(0, 5001) }, 1);
	pieces((const uint64_t[]){ EXT(0, 4000), EXT(0, 1001) }, 2);
	pieces((const uint64_t[]){ EXT(0, 0) }, 1);
	pieces((const uint64_t[]){ EXT(0, 16384) }, 1);
	/* not in the receive space */
	pieces((const uint64_t[]){ EXT(UINT32_MAX - 63, 8) }, 1);
}

/* ---- False values that are no protocol error -------------------------- */

/* A buffer that is not mapped: the receive fails, other peers are served. */
static void test_announced_buffer_does_not_exist(void **state)
{
	static const uint64_t addrs[] = {
		8, 0xdead0000, 0x7ffffffff000, 1ull << 63,
	};
	static char in[BIG];
	int was;

	for (int i = 0; i < 4; i++) {
		struct scene s = scene();
		uint64_t w[UNM_WIRE_WORDS_MAX], head;

		was = g_unm_env.stream_us;
		g_unm_env.stream_us = 0;	/* the receiver reads at once */

		if (!g_unm_env.attach || !unit_attach() ||
		    strcmp(s.r->hif->caps->profile, "host") != 0)
			skip();		/* the receiver would ask for pieces */
		raw_hello(s.r);
		EP_OK(fi_recv(s.v->ep, in, BIG, NULL, s.vr, in));
		announce(&s, BIG, addrs[i]);
		raw_expect(s.r, UNM_WIRE_HELLO, w);
		/* the sender checks its buffer and answers: not mapped */
		head = raw_expect(s.r, UNM_WIRE_CTS, w);
		assert_int_equal(hal_head_flags(head), UNM_WIRE_FAULT);
		assert_int_equal(w[0], 0x100000005);
		w[0] = w[1];
		w[1] = 0;
		assert_true(raw_send(s.r, hal_head(UNM_WIRE_DATA, 0), w, 2,
				     NULL, 0));
		assert_int_equal(ep_wait(s.v, in).err, FI_EIO);
		g_unm_env.stream_us = was;
		others_are_well(&s);
		raw_teardown(NULL);
	}
}

/* Lengths up to 2^64 - 1, longer than the receive buffer. */
static void test_announced_lengths(void **state)
{
	static const uint64_t lens[] = {
		0, 1, UINT32_MAX, 1ull << 40, 1ull << 63, UINT64_MAX,
	};
	char in[16];

	for (int i = 0; i < 6; i++) {
		struct scene s = scene();
		uint64_t w[UNM_WIRE_WORDS_MAX];
		struct ep_comp c;

		raw_hello(s.r);
		announce(&s, lens[i], 0);
		EP_OK(fi_recv(s.v->ep, in, 0, NULL, s.vr, in));
		c = ep_wait(s.v, in);
		assert_int_equal(c.err, i ? FI_ETRUNC : 0);
		assert_int_equal(c.olen, lens[i]);
		raw_expect(s.r, UNM_WIRE_HELLO, w);
		raw_expect(s.r, UNM_WIRE_FIN, w);
		others_are_well(&s);
		raw_teardown(NULL);
	}
}

/* The longest extents of the space, without a posted receive. */
static void test_longest_eager_messages(void **state)
{
	char *in = ep_alloc(1 << 20);
	struct scene s = scene();
	uint32_t space = s.r->hif->caps->space_bytes;

	raw_hello(s.r);
	for (int i = 0; i < 3 && !s.r->dead; i++) {
		send_words(&s, UNM_WIRE_EAGER, 0, EXT(0, space), 0, 0);
		ep_settle();
		raw_step();
	}
	/* accepted whole or refused */
	if (!s.r->dead) {
		EP_OK(fi_recv(s.v->ep, in, 1 << 20, NULL, s.vr, in));
		assert_int_equal(ep_received(s.v, in).len, space);
	}
	others_are_well(&s);
}

/* More messages than credits: the memory for unexpected messages is bounded,
 * also for a sender that ignores its credits. */
static void test_messages_beyond_its_credits(void **state)
{
	size_t was = g_unm_env.unexpected_max;
	struct scene s = scene();
	uint64_t n = 0;

	g_unm_env.unexpected_max = 4096;
	raw_hello(s.r);
	while (n < 100000 && raw_send(s.r, hal_head(UNM_WIRE_INLINE, 8), &n,
				      1, NULL, 0))
		n++;
	g_unm_env.unexpected_max = was;
	assert_true(s.r->dead);
	is_dropped(&s);
}

/* ---- The peer's memory ----------------------------------------------- */

/* Random values in the back words, and in the memory that the peer shares. */
static void test_back_words_are_not_trusted(void **state)
{
	struct scene s = scene();
	uint64_t rng = 77;
	static char out[BIG];

	raw_hello(s.r);
	EP_TRY(fi_send(s.v->ep, out, 8, NULL, s.vr, NULL));
	RAW_UNTIL(s.r->peer->rx.cells != NULL);
	if (s.r->peer->rx.back == NULL)
		skip();			/* on a device the driver writes them */
	for (int i = 0; i < 3000; i++) {
		struct hal_back *back = s.r->peer->rx.back;
		uint64_t val = unit_random(&rng) >> unit_below(&rng, 64);

		if (unit_below(&rng, 2))
			atomic_store(&back->done, val);
		else
			atomic_store(&back->word[unit_below(&rng, 6)], val);
		/* sends to this peer may fail, other peers are served */
		fi_send(s.v->ep, out, unit_below(&rng, 60), NULL, s.vr, NULL);
		fi_send(s.v->ep, out, 4000, NULL, s.vr, NULL);
		if (i % 20 == 0)
			fi_send(s.v->ep, out, BIG, NULL, s.vr, NULL);
		ep_poll(s.v);
		s.v->ncomp = 0;
	}
	others_are_well(&s);
	raw_close(s.r);
	ep_settle();
	s.v->ncomp = 0;
	others_are_well(&s);
}

/* Random bytes in the ring that the peer writes. */
static void test_noise_in_the_ring(void **state)
{
	uint64_t rng = 5;

	for (int round = 0; round < 200; round++) {
		struct scene s = scene();
		struct hal_tx *tx = &s.r->peer->tx;

		if (tx->cells == NULL)
			skip();		/* no peer can write a device's ring */
		if (round & 1)
			raw_hello(s.r);
		for (uint32_t i = 0; i <= tx->mask; i++) {
			uint64_t head = unit_random(&rng);

			for (uint32_t k = 0; k < HAL_PKT_MAX; k++)
				tx->cells[i].payload[k] = unit_random(&rng);
			/* some with the number of a valid packet */
			if (unit_below(&rng, 2))
				head = (head & ~HAL_HEAD_ID_MASK) |
					(tx->next + i + 1);
			atomic_store(&tx->cells[(tx->next + i) & tx->mask]
				     .head, head);
		}
		for (int i = 0; i < 200; i++)
			raw_step();
		others_are_well(&s);
		s.v->ncomp = 0;
		raw_teardown(NULL);
	}
}

/* ---- Random packets --------------------------------------------------- */

static void invent(struct scene *s, uint64_t *rng)
{
	static const uint8_t types[] = {
		1, 2, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x20, 0x21, 0x22,
		0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0x39, 0x3a, 0x3b,
	};
	static const uint64_t edges[] = {
		0, 1, 8, 24, 40, 56, 64, 4096, 16384, 65536, 262144,
		0x7fffffff, 0xffffffff, 1ull << 32, 3ull << 32,
	};
	uint32_t room = s->r->hif->caps->pkt_payload;
	uint64_t w[HAL_PKT_MAX / 8];
	uint8_t flags = unit_below(rng, 4) ? unit_below(rng, 2) << 6 |
		unit_below(rng, 25) : unit_random(rng);
	uint8_t type;

	for (uint32_t i = 0; i < room / 8; i++)
		w[i] = unit_below(rng, 2) ? unit_random(rng) :
			edges[unit_below(rng, 15)] |
			edges[unit_below(rng, 15)] << 32;
	if (unit_below(rng, 20))
		type = types[unit_below(rng, sizeof(types))];
	else
		type = unit_random(rng);
	if (type >= HAL_PKT_RESERVED && type <= HAL_PKT_EMPTY)
		type = 0xff;		/* a type that a HAL does not send */
	raw_send(s->r, hal_head(type, flags), w, room / 8, NULL, 0);
}

/* Posts receives of all kinds and starts sends. */
static void keep_busy(struct scene *s, char *buf, uint64_t *rng)
{
	for (int i = 0; i < 4; i++) {
		fi_recv(s->v->ep, buf, unit_below(rng, BIG), NULL,
			unit_below(rng, 2) ? s->vr : FI_ADDR_UNSPEC, buf);
		fi_trecv(s->v->ep, buf, unit_below(rng, BIG), NULL, s->vr, 0,
			 UINT64_MAX, buf);
		fi_send(s->v->ep, buf, unit_below(rng, BIG), NULL, s->vr,
			buf);
	}
}

static void test_fuzz(void **state)
{
	int rounds = UNIT_SLOW ? 60 : 400;
	char *buf = calloc(1, BIG);
	uint64_t rng = 4711;
	int dropped = 0;

	for (int round = 0; round < rounds; round++) {
		struct scene s = scene();
		struct fid_mr *mr;

		assert_int_equal(fi_mr_reg(s.v->domain, buf, 4096,
					   FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					   0, 0, &mr, NULL), 0);
		if (unit_below(&rng, 20))
			raw_hello(s.r);
		for (int i = 0; i < 200 && !s.r->dead; i++) {
			if (i % 8 == 0)
				keep_busy(&s, buf, &rng);
			invent(&s, &rng);
			raw_step();
		}
		dropped += s.r->dead;
		/* no packet of this round may arrive later */
		if (!s.r->dead)
			raw_close(s.r);
		ep_settle();
		while (fi_cancel(&s.v->ep->fid, buf) == 0)
			;
		ep_settle();
		s.v->ncomp = 0;
		if (round % 8 == 0)
			others_are_well(&s);
		assert_int_equal(fi_close(&mr->fid), 0);
		raw_teardown(NULL);
	}
	assert_true(dropped > rounds / 2);
	free(buf);
}

UNIT_MAIN(
	RAW_TEST_INSIDE(test_single_bad_packets),
	RAW_TEST_INSIDE(test_space_that_was_not_announced),
	RAW_TEST_INSIDE(test_no_hello),
	RAW_TEST_INSIDE(test_other_version),
	RAW_TEST_INSIDE(test_newer_version),
	RAW_TEST_INSIDE(test_its_operations_end_in_error),
	RAW_TEST_INSIDE(test_what_came_before_is_kept),
	RAW_TEST_INSIDE(test_multi_receive_buffer_survives_it),
	RAW_TEST_INSIDE(test_tokens_of_others_are_refused),
	RAW_TEST_INSIDE(test_own_token_misused),
	RAW_TEST_INSIDE(test_pieces_that_were_not_asked_for),
	RAW_TEST_INSIDE(test_announced_buffer_does_not_exist),
	RAW_TEST_INSIDE(test_announced_lengths),
	RAW_TEST_INSIDE(test_longest_eager_messages),
	RAW_TEST_INSIDE(test_messages_beyond_its_credits),
	RAW_TEST_INSIDE(test_back_words_are_not_trusted),
	RAW_TEST_INSIDE(test_noise_in_the_ring),
	RAW_TEST_INSIDE(test_fuzz),
)
