/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stream.c - a streamed message whose sender stops sending: the receiver
 * reads the rest by itself. And the lengths of the pieces that a sender sends.
 *
 * The other side is a bare interface (raw_peer.h), which sends exactly the
 * pieces that a test wants, and releases them (docs/protocol.md, section 7).
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_op.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "core/unm_stats.h"
#include "core/unm_way.h"
#include "lib/ep_xfer.h"
#include "lib/raw_peer.h"
#include "unm_env.h"
#include "util/unm_clock.h"

#define LEN	700000			/* several reads of 256 KiB */
#define TOKEN	UINT64_C(0x700000005)	/* token of the sender's operation */
#define PIECE	4096
/* Measurements of streams and of reads, and no trial soon. */
#define COSTS(streams, reads)						\
	((struct unm_way){ .cost = { streams, reads },			\
			   .gap = UNM_WAY_GAP_MAX, .wait = UINT64_MAX })

/* The values of bytes: the sender's memory and its pieces have different ones,
 * so that a test sees by which way each byte came. */
#define BY_READ	1
#define BY_PIECE 2

struct talk {
	struct ep *v;			/* the receiver */
	struct raw *r;			/* the sender */
	fi_addr_t vr;
	char *out, *in;
	uint64_t token;			/* token of the receiver's operation */
	bool greeted;			/* the receiver's HELLO has come */
};

static struct talk talk(void)
{
	struct talk t = { .v = ep_open(NULL), .r = raw_open() };

	t.vr = raw_insert(t.v, t.r);
	raw_connect(t.r, t.v);
	raw_hello(t.r);
	t.out = malloc(LEN);
	t.in = calloc(1, LEN);
	assert_true(t.out != NULL && t.in != NULL);
	memset(t.out, BY_READ, LEN);
	return t;
}

static void talk_end(struct talk *t)
{
	free(t->out);
	free(t->in);
}

static struct unm_peer *peer_of(const struct talk *t)
{
	struct unm_list *peers = &((struct unm_ep *)t->v->ep)->peers;

	RAW_UNTIL(!unm_list_empty(peers));
	return unm_container(peers->next, struct unm_peer, all);
}

/* Can the receiver read the sender's memory? Not if the engine accesses dmable
 * memory only, nor if the kernel forbids it. */
static bool reads(struct talk *t)
{
	struct unm_peer *peer = peer_of(t);

	RAW_UNTIL(peer->hello_received);
	return peer->hp->dma_any && g_unm_env.attach;
}

/* The receiver's measurements of messages from the sender. */
static struct unm_ways *ways_of(struct talk *t)
{
	return unm_peer_ways(peer_of(t));
}

/* A pair with a receive posted for len bytes of t.in; 0: no receive. Skips the
 * test if the receiver cannot read the sender's memory. */
static struct talk talk_of(size_t len)
{
	struct talk t = talk();

	if (len != 0)
		EP_OK(fi_recv(t.v->ep, t.in, len, NULL, t.vr, t.in));
	if (!reads(&t)) {
		talk_end(&t);
		skip();
	}
	return t;
}

static void announce(struct talk *t, uint64_t len)
{
	const uint64_t w[] = { len, TOKEN, (uintptr_t)t->out };

	raw_send(t->r, hal_head(UNM_WIRE_RTS, 0), w, 3, NULL, 0);
}

/* The next message from the receiver; returns its type. */
static uint8_t next(struct talk *t, uint64_t *w)
{
	const struct hal_cell *cell;
	uint64_t head;

	if (!t->greeted)
		raw_expect(t->r, UNM_WIRE_HELLO, w);
	t->greeted = true;
	cell = raw_next(t->r, &head);
	memcpy(w, cell->payload, 8 * 3);
	return hal_head_type(head);
}

/* Announce a message; the receiver asks for its pieces. */
static void begin(struct talk *t, uint64_t len, uint64_t wanted)
{
	uint64_t w[UNM_WIRE_WORDS_MAX];

	announce(t, len);
	assert_int_equal(next(t, w), UNM_WIRE_CTS);
	assert_int_equal(w[0], TOKEN);
	assert_int_equal(w[2], wanted);
	t->token = w[1];
}

static void piece(struct talk *t, uint32_t off, uint32_t len)
{
	char bytes[PIECE];
	uint64_t w[] = { t->token, (uint64_t)len << 32 | off };

	memset(bytes, BY_PIECE, len);
	raw_space(t->r, off, bytes, len);
	raw_send(t->r, hal_head(UNM_WIRE_DATA, 0), w, 2, NULL, 0);
}

static void fin(struct talk *t, uint64_t status)
{
	uint64_t w[UNM_WIRE_WORDS_MAX];

	assert_int_equal(next(t, w), UNM_WIRE_FIN);
	assert_int_equal(w[0], TOKEN);
	assert_int_equal(w[1], status);
}

static bool all(const char *buf, char what, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != what)
			return false;
	return true;
}

/* The connection still works: a short message arrives. */
static void is_alive(struct talk *t)
{
	uint64_t in = 0, word = 0x1234;

	EP_OK(fi_recv(t->v->ep, &in, 8, NULL, t->vr, &in));
	raw_send(t->r, hal_head(UNM_WIRE_INLINE, 8), &word, 1, NULL, 0);
	ep_received(t->v, &in);
	assert_int_equal(in, word);
	assert_false(t->r->dead);
	ep_quiet(t->v);
}

static const struct unm_stats *stats(const struct talk *t)
{
	return ((struct unm_ep *)t->v->ep)->stats;
}

/* ---- Silence ----------------------------------------------------------- */

static void test_silent_sender_is_read(void **state)
{
	struct talk t = talk_of(LEN);

	begin(&t, LEN, LEN);
	assert_int_equal(ep_received(t.v, t.in).len, LEN);
	assert_true(all(t.in, BY_READ, LEN));
	assert_int_equal(stats(&t)->rx_attach, 1);
	fin(&t, 0);
	is_alive(&t);
	talk_end(&t);
}

/* The sender computes, and sends short messages meanwhile. A send call sends no
 * pieces of other messages, so short messages do not mean that pieces will
 * come. */
static void test_short_messages_are_no_progress(void **state)
{
	uint64_t in[1000], word = 7, n = 0;
	struct talk t = talk_of(0);

	EP_OK(fi_trecv(t.v->ep, t.in, LEN, NULL, t.vr, 1, 0, t.in));
	for (int i = 0; i < 1000; i++)
		EP_OK(fi_recv(t.v->ep, &in[i], 8, NULL, t.vr, &in[i]));
	raw_send(t.r, hal_head(UNM_WIRE_RTS_TAGGED, 0),
		 (uint64_t[]){ 1, LEN, TOKEN, (uintptr_t)t.out }, 4, NULL, 0);
	for (struct ep_comp c; !ep_take(t.v, t.in, &c); raw_step())
		if (n < 1000) {
			raw_send(t.r, hal_head(UNM_WIRE_INLINE, 8), &word, 1,
				 NULL, 0);
			n++;
		}
	/* the receiver did not wait for the last of them */
	assert_in_range(n, 1, 999);
	talk_end(&t);
}

/* The sender computes, and its ring is full: the receiver can not ask for
 * pieces, and does not need to. */
static void test_a_full_ring_stops_no_receive(void **state)
{
	char c = 0;
	struct talk t = talk_of(LEN);

	EP_OK(fi_inject(t.v->ep, &c, 1, t.vr));
	while (fi_inject(t.v->ep, &c, 1, t.vr) == 0)
		;
	announce(&t, LEN);
	assert_int_equal(ep_received(t.v, t.in).len, LEN);
	assert_true(all(t.in, BY_READ, LEN));
	talk_end(&t);
}

/* The sender sends two pieces and then computes. */
static void test_pieces_and_then_silence(void **state)
{
	struct talk t = talk_of(LEN);

	begin(&t, LEN, LEN);
	piece(&t, 0, PIECE);
	piece(&t, PIECE, PIECE);
	assert_int_equal(ep_received(t.v, t.in).len, LEN);
	assert_true(all(t.in, BY_PIECE, 2 * PIECE));
	assert_true(all(t.in + 2 * PIECE, BY_READ, LEN - 2 * PIECE));
	fin(&t, 0);
	is_alive(&t);
	talk_end(&t);
}

/* Into several buffers that are shorter than the message, with gaps between
 * them. */
static void test_the_rest_goes_where_it_belongs(void **state)
{
	enum { GAP = 96 };
	static const size_t cut[] = { 1, 5000, 300001 };
	struct iovec iov[3];
	struct talk t = talk_of(0);
	size_t n = 0;
	char *end = t.in;

	for (size_t i = 0; i < LEN; i++)
		t.out[i] = (char)(i * 2654435761u >> 24);
	for (int i = 0; i < 3; i++) {
		iov[i] = (struct iovec){ end, cut[i] };
		end += cut[i] + GAP;
		n += cut[i];
	}
	EP_OK(fi_recvv(t.v->ep, iov, NULL, 3, t.vr, t.in));
	begin(&t, LEN, n);
	assert_int_equal(ep_wait(t.v, t.in).err, FI_ETRUNC);
	n = 0;
	for (int i = 0; i < 3; i++) {
		char *base = iov[i].iov_base;

		assert_memory_equal(base, t.out + n, cut[i]);
		assert_true(all(base + cut[i], 0, GAP));
		n += cut[i];
	}
	assert_true(all(end, 0, (size_t)(t.in + LEN - end)));
	fin(&t, 0);
	is_alive(&t);
	talk_end(&t);
}

/* ---- Late pieces ------------------------------------------------------- */

/* The sender does not know yet that the receiver has read the message: its
 * pieces are ignored, and are no protocol error. */
static void test_late_pieces_are_ignored(void **state)
{
	struct talk t = talk_of(LEN);

	begin(&t, LEN, LEN);
	ep_received(t.v, t.in);
	memset(t.in, 0, LEN);		/* it is the application's again */
	/* they do not match a receive that reuses the ended one's slot */
	EP_OK(fi_recv(t.v->ep, t.in, LEN, NULL, t.vr, t.in));
	piece(&t, 0, PIECE);
	piece(&t, PIECE, PIECE);
	fin(&t, 0);
	for (int i = 0; i < 300; i++)
		raw_step();
	assert_true(all(t.in, 0, LEN));
	announce(&t, 0);
	assert_int_equal(ep_received(t.v, t.in).len, 0);
	fin(&t, 0);
	is_alive(&t);
	talk_end(&t);
}

/* More bytes than were asked for, or a token that was never sent: both are
 * protocol errors, also while a stream is under way. */
static void test_wrong_pieces_are_refused(void **state)
{
	bool was;

	for (int i = 0; i < 2; i++) {
		struct talk t = talk();

		was = g_unm_env.attach;
		g_unm_env.attach = false;	/* pieces only */
		EP_OK(fi_recv(t.v->ep, t.in, 100, NULL, t.vr, t.in));
		begin(&t, LEN, 100);
		g_unm_env.attach = was;
		if (i == 0)
			t.token += UINT64_C(2) << 32;
		piece(&t, 0, i == 0 ? 100 : 101);
		RAW_UNTIL(t.r->dead);
		ep_wait(t.v, t.in);
		talk_end(&t);
		raw_teardown(NULL);
	}
}

/* ---- Pieces and reads at the same time ----------------------------------- */

/* Begins a message of two pieces and sends both when the read of its bytes is
 * posted. The next call of progress takes the packets first, then carries out
 * the read. */
static void begin_and_read(struct talk *t)
{
	struct unm_list *streams = &((struct unm_ep *)t->v->ep)->streams;

	begin(t, 2 * PIECE, 2 * PIECE);
	assert_false(unm_list_empty(streams));
	RAW_UNTIL(unm_container(streams->next, struct unm_rx_op,
				control)->reading != 0);
	piece(t, 0, PIECE);
	piece(t, PIECE, PIECE);
	assert_int_equal(t->v->ncomp, 0);
}

/* The last piece arrives while a transfer into the buffer is under way: the
 * receive completes when the transfer has ended, and counts as read. */
static void test_pieces_cross_a_read(void **state)
{
	struct talk t = talk_of(2 * PIECE);

	begin_and_read(&t);
	ep_received(t.v, t.in);
	assert_int_equal(stats(&t)->rx_attach, 1);
	assert_true(all(t.in, BY_READ, 2 * PIECE));
	fin(&t, 0);
	is_alive(&t);
	talk_end(&t);
}

/* The sender closes at that moment: the bytes that were read may not be the
 * message's. */
static void test_closed_under_a_read(void **state)
{
	struct talk t = talk_of(2 * PIECE);

	begin_and_read(&t);
	raw_close(t.r);
	assert_int_equal(ep_wait(t.v, t.in).err, FI_ECONNRESET);
	talk_end(&t);
}

/* ---- Choice of the data path ---------------------------------- */

/* Receives one message; returns true if the receiver read it at once, without
 * asking for pieces. */
static bool read_at_once(struct talk *t)
{
	uint64_t w[UNM_WIRE_WORDS_MAX];
	uint8_t type;

	EP_OK(fi_recv(t->v->ep, t->in, LEN, NULL, t->vr, t->in));
	announce(t, LEN);
	type = next(t, w);
	assert_true(type == UNM_WIRE_FIN || type == UNM_WIRE_CTS);
	ep_received(t->v, t->in);
	if (type == UNM_WIRE_CTS)
		fin(t, 0);
	return type == UNM_WIRE_FIN;
}

static void test_the_faster_way_is_taken(void **state)
{
	struct talk t = talk_of(0);
	/* measured costs of earlier messages: see test_way.c */
	struct unm_way *way = &ways_of(&t)->msg[unm_way_class(LEN)];

	for (int i = 0; i < 8; i++) {
		*way = COSTS(2000, 1000);
		assert_true(read_at_once(&t));
		*way = COSTS(1000, 2000);
		assert_false(read_at_once(&t));
	}
	is_alive(&t);
	talk_end(&t);
}

/* Messages that go different ways at once wait for each other, so their times
 * do not count for the choice. */
static void test_two_ways_at_once_do_not_count(void **state)
{
	const struct unm_way streams = COSTS(1000, 2000);
	const struct unm_way reads = COSTS(2000, 1000);
	struct talk t = talk_of(PIECE);
	struct unm_way *way = &ways_of(&t)->msg[0];

	*way = streams;
	begin(&t, PIECE, PIECE);
	EP_OK(fi_recv(t.v->ep, t.in + PIECE, PIECE, NULL, t.vr, t.in + PIECE));
	*way = reads;
	announce(&t, PIECE);
	ep_received(t.v, t.in + PIECE);
	fin(&t, 0);
	assert_int_equal(way->bytes, 0);
	*way = streams;
	unm_way_choose(way, PIECE, false);
	piece(&t, 0, PIECE);
	ep_received(t.v, t.in);
	fin(&t, 0);
	assert_int_equal(way->bytes, 0);
	/* alone it counts */
	*way = streams;
	EP_OK(fi_recv(t.v->ep, t.in, PIECE, NULL, t.vr, t.in));
	begin(&t, PIECE, PIECE);
	piece(&t, 0, PIECE);
	ep_received(t.v, t.in);
	fin(&t, 0);
	assert_int_equal(way->bytes, PIECE);
	is_alive(&t);
	talk_end(&t);
}

/* Messages of one range of lengths that are in transfer at once are one burst,
 * whose begin is read from the clock once. */
static void test_a_burst_begins_once(void **state)
{
	static const size_t len[] = { PIECE, 2 * PIECE, LEN, PIECE };
	struct talk t = talk_of(PIECE);
	struct unm_peer *peer = peer_of(&t);
	struct unm_ways *ways = ways_of(&t);
	struct unm_list *pos = &peer->recvs;
	char *in = ep_alloc(LEN);
	uint64_t begun[4];

	/* the receiver waits for pieces as long as a slow read takes */
	ways->msg[0] = COSTS(1000, UINT32_MAX);
	ways->msg[unm_way_class(LEN)] = COSTS(1000, UINT32_MAX);
	peer->life_ns = unm_now_ns();
	for (int i = 0; i < 4; i++) {
		if (i != 0)
			EP_OK(fi_recv(t.v->ep, in, LEN, NULL, t.vr, in));
		announce(&t, len[i]);
	}
	/* all four are there in the call in which the first one is */
	RAW_UNTIL(!unm_list_empty(&peer->recvs));
	for (int i = 0; i < 4; i++) {
		pos = pos->next;
		assert_ptr_not_equal(pos, &peer->recvs);
		begun[i] = unm_container(pos, struct unm_rx_op,
					 link)->begun_ns;
	}
	assert_int_equal(begun[0], begun[1]);
	assert_in_range(begun[2], begun[0] + 1, UINT64_MAX);
	assert_in_range(begun[3], begun[2] + 1, UINT64_MAX);
	ways->msg[0] = COSTS(1000, 2000);
	ways->msg[unm_way_class(LEN)] = COSTS(1000, 2000);
	while (t.v->ncomp < 4)
		raw_step();
	talk_end(&t);
}

/* FI_UNIMEM_STREAM_US=0 */
static void test_no_patience(void **state)
{
	int was = g_unm_env.stream_us;
	struct talk t = talk_of(0);

	g_unm_env.stream_us = 0;
	for (int i = 0; i < 20; i++)
		assert_true(read_at_once(&t));
	g_unm_env.stream_us = was;
	is_alive(&t);
	talk_end(&t);
}

/* ---- Lengths of pieces --------------------------------------------------- */

/* The endpoint sends a stream of len bytes behind a short message. The bare
 * interface has asked for it, and has not taken count inline messages. */
static struct talk stream(const char *out, size_t len, int count)
{
	struct talk t = talk();
	uint64_t w[UNM_WIRE_WORDS_MAX], head;

	EP_OK(fi_inject(t.v->ep, out, 200, t.vr));
	EP_OK(fi_send(t.v->ep, out, len, NULL, t.vr, t.in));
	assert_int_equal(next(&t, w), UNM_WIRE_EAGER);
	head = raw_expect(t.r, UNM_WIRE_RTS, w);
	assert_int_equal(hal_head_type(head), UNM_WIRE_RTS);
	for (int i = 0; g_unm_env.inline_on && i < count; i++)
		fi_inject(t.v->ep, out, 8, t.vr);
	w[0] = w[1];
	w[1] = TOKEN;
	w[2] = len;
	raw_send(t.r, hal_head(UNM_WIRE_CTS, 0), w, 3, NULL, 0);
	/* messages need credits too */
	hal_rx_back(t.r->peer, UNM_PEER_BACK_LIMIT, 1000000);
	return t;
}

/* From now on the endpoint uses bytes of receive space at its peer. False: it
 * has less. A first extent begins at no multiple of a long piece. */
static bool space_of(struct unm_peer *peer, uint32_t bytes)
{
	if (peer->ep->hif->caps->space_bytes < bytes)
		return false;
	EP_OK(hal_space_ready(peer->hp, bytes));
	unm_space_reclaim(peer->space, hal_tx_done(peer->hp));
	assert_true(peer->space->head == peer->space->tail);
	peer->space_used = bytes;
	unm_space_resize(peer->space, bytes);
	peer->space->head = UNM_SPACE_ALIGN;
	peer->space->tail = UNM_SPACE_ALIGN;
	return true;
}

/* The receiver releases each piece that it has copied, and the sender notices
 * that: no piece is cut. A large receive space has pieces four times as long;
 * the first and the last, for which one side waits, between hosts only. */
static void test_pieces_grow(void **state)
{
	enum { BYTES = 4 << 20 };
	char *out = ep_alloc(BYTES);

	for (int large = 0; large < 3; large++) {
		struct talk t = stream(out, BYTES, 0);
		struct unm_peer *peer = peer_of(&t);
		uint32_t space = peer->ep->hif->caps->space_bytes;
		uint64_t piece = peer->ep->piece_max, len = 0, most;
		uint64_t w[UNM_WIRE_WORDS_MAX];
		bool grows = large && space_of(peer, 64 * piece);

		peer->hp->host = large > 1 ? &(struct hal_host){ 0 } : NULL;
		assert_true(!large || grows || space < 1 << 20);
		for (int i = 0; i < 100; i++) {
			uint64_t tail = peer->space->tail;

			raw_step();
			/* one call sends 16 pieces, and ends a long one */
			assert_true(peer->space->tail - tail <= 19 * piece);
		}
		for (uint64_t got = 0; got < BYTES; got += len) {
			raw_expect(t.r, UNM_WIRE_DATA, w);
			len = w[1] >> 32;
			most = peer->space->bytes / 4 < 4 * piece ?
				peer->space->bytes / 4 : 4 * piece;
			if ((got < 4 * piece && large < 2) || most < piece)
				most = piece;
			assert_in_range(len, large < 2 ? piece : 1, most);
			if (grows && got - BYTES / 4 * (large < 2) < BYTES / 4)
				assert_int_equal(16 * len, (17 - large) * most);
			raw_step();
		}
		assert_int_equal(large < 2 ? len : piece, piece);
		talk_end(&t);
	}
}

/* Messages leave no space for a long piece, but for a short one. The extents of
 * 16 messages, after which a piece is cut, are at least two short pieces. */
static void test_a_long_piece_becomes_short(void **state)
{
	enum { BYTES = 4 << 20 };
	char *out = ep_alloc(BYTES);
	struct talk t = stream(out, BYTES, 0);
	struct unm_peer *peer = peer_of(&t);
	uint64_t piece = peer->ep->piece_max, got = 0, head, len;

	if (!space_of(peer, 16 * piece)) {
		talk_end(&t);
		skip();
	}
	for (uint64_t end = ep_deadline(); got < BYTES / 2; raw_step()) {
		const struct hal_cell *cell = raw_next(t.r, &head);

		ep_in_time(end, "half of the stream");
		while (got >= BYTES / 4 &&
		       unm_peer_find_space(peer, 2 * piece) != UNM_SPACE_NONE &&
		       fi_inject(t.v->ep, out, 2048, t.vr) == 0)
			;
		if (hal_head_type(head) == UNM_WIRE_DATA) {
			len = hal_cell_word(cell, 1) >> 32;
			assert_true(len >= piece);
			got += len;
		}
	}
	talk_end(&t);
}

/* While no packet can name them, neither the bytes of a piece nor those of an
 * eager message or of the result of a get are copied. */
static void test_nothing_is_copied_for_a_full_ring(void **state)
{
	enum { BYTES = 1 << 20, SHORT = 1000 };
	const uint64_t get[] = { TOKEN, 0, SHORT, 9 };
	char *out = memset(ep_alloc(BYTES), BY_PIECE, BYTES);
	struct talk t = stream(out, BYTES, 300);
	struct unm_peer *peer = peer_of(&t);
	struct fid_mr *mr;

	/* short messages fill the ring of packets and leave the space empty */
	if (!g_unm_env.inline_on) {
		talk_end(&t);
		skip();
	}
	EP_OK(fi_mr_reg(t.v->domain, out, SHORT, FI_REMOTE_READ, 0, TOKEN, 0,
			&mr, NULL));
	assert_true(raw_send_words(t.r, UNM_WIRE_GET, get, 4));
	RAW_UNTIL(peer->nanswers == 1 && !hal_tx_free(peer->hp));
	for (int i = 0; i < 100; i++)
		raw_step();
	assert_int_equal(peer->nanswers, 1);
	assert_int_equal(fi_inject(t.v->ep, out, SHORT, t.vr), -FI_EAGAIN);
	/* behind the 200 bytes that stream() has sent */
	assert_true(all(hal_space(t.r->peer, 200), 0,
			peer->space->bytes - 200));
	EP_CLOSE(&mr->fid);
	talk_end(&t);
}

/* No piece is cut if the receiver releases enough packets meanwhile, but none
 * that names receive space. (A short piece would fit behind the last one.) */
static void test_inline_messages_cut_no_piece(void **state)
{
	enum { BYTES = 1 << 20 };
	struct talk t = stream(ep_alloc(BYTES), BYTES, 40);
	struct unm_peer *peer = peer_of(&t);
	uint64_t n = 0, head;

	assert_true(space_of(peer, peer->space->bytes));
	for (int i = 0; i < 100; i++)
		raw_step();
	assert_true(unm_peer_find_space(peer, 64) != UNM_SPACE_NONE);
	for (uint64_t got = 0; got < BYTES; raw_step()) {
		const struct hal_cell *cell = raw_next(t.r, &head);

		if (hal_head_type(head) != UNM_WIRE_DATA)
			continue;
		got += hal_cell_word(cell, 1) >> 32;
		n++;
	}
	assert_int_equal(n, BYTES / peer->ep->piece_max);
	talk_end(&t);
}

/* Messages take all of the receive space that becomes free, while there is
 * enough for a short piece now and then: the stream goes on. */
static void test_messages_do_not_starve_a_stream(void **state)
{
	enum { BYTES = 40000, ROUNDS = 100000 };
	char *out = ep_alloc(BYTES);
	struct talk t = stream(out, BYTES, 0);
	uint64_t head, got = 0;

	for (int i = 0; i < ROUNDS && got < BYTES; i++, raw_step()) {
		while (unm_peer_find_space(peer_of(&t), 2048) !=
		       UNM_SPACE_NONE &&
		       fi_inject(t.v->ep, out, 2048, t.vr) == 0)
			;
		const struct hal_cell *cell = raw_next(t.r, &head);

		if (hal_head_type(head) == UNM_WIRE_DATA)
			got += hal_cell_word(cell, 1) >> 32;
	}
	assert_int_equal(got, BYTES);
	talk_end(&t);
}

/* The receiver gets 8 KiB while all of the receive space holds pieces, and then
 * releases them one by one: the result does not wait for the last piece. */
static void test_a_stream_does_not_starve_results(void **state)
{
	enum { BYTES = 4 << 20, GOT = 8192, TAKEN = 32 };
	const uint64_t get[] = { TOKEN, 0, GOT, 9 };
	char *out = ep_alloc(BYTES);
	struct talk t = stream(out, BYTES, 0);
	const struct unm_space *space = peer_of(&t)->space;
	uint64_t head;
	struct fid_mr *mr;
	int n = 0;

	EP_OK(fi_mr_reg(t.v->domain, out, GOT, FI_REMOTE_READ, 0, TOKEN, 0,
			&mr, NULL));
	do {
		raw_next(t.r, &head);
		raw_step();
	} while (n++ < TAKEN && space->tail - space->head != space->bytes);
	assert_true(raw_send_words(t.r, UNM_WIRE_GET, get, 4));
	n = 0;
	do {
		raw_step();
		raw_next(t.r, &head);
		n++;
	} while (hal_head_type(head) == UNM_WIRE_DATA);
	assert_int_equal(hal_head_type(head), UNM_WIRE_CARRIED);
	assert_in_range(n, 1, TAKEN);
	EP_CLOSE(&mr->fid);
	talk_end(&t);
}

/* ---- Asleep -------------------------------------------------------------- */

/* A receiver that sleeps would not be woken by pieces: it reads first. */
static void test_sleepers_do_not_wait_for_pieces(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct talk t = talk_of(0);
	struct ep *e = ep_open(&want);
	fi_addr_t er = raw_insert(e, t.r);

	raw_connect(t.r, e);
	raw_hello(t.r);
	EP_OK(fi_recv(e->ep, t.in, LEN, NULL, er, t.in));
	announce(&t, LEN);
	assert_int_equal(fi_cq_sread(e->cq, &entry, 1, NULL, 30000), 1);
	assert_ptr_equal(entry.op_context, t.in);
	assert_true(all(t.in, BY_READ, LEN));
	talk_end(&t);
}

/* As long as pieces may be missing, the queue's wait object may not be waited
 * for: nothing would signal it that the sender is silent. */
static void test_no_wait_object_waits_for_pieces(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_FD };
	struct talk t = talk_of(0);
	struct ep *e = ep_open(&want);
	fi_addr_t er = raw_insert(e, t.r);
	struct fid *fids[] = { &e->cq->fid };
	uint64_t w[UNM_WIRE_WORDS_MAX];
	struct unm_list *streams = &((struct unm_ep *)e->ep)->streams;

	raw_connect(t.r, e);
	raw_hello(t.r);
	EP_OK(fi_recv(e->ep, t.in, LEN, NULL, er, t.in));
	announce(&t, LEN);
	assert_int_equal(next(&t, w), UNM_WIRE_CTS);
	for (uint64_t end = ep_deadline(); !unm_list_empty(streams);) {
		ep_in_time(end, "the message is read");
		assert_int_equal(fi_trywait(e->fabric, fids, 1), -FI_EAGAIN);
		ep_poll(e);
	}
	ep_received(e, t.in);
	assert_true(all(t.in, BY_READ, LEN));
	talk_end(&t);
}

UNIT_MAIN(
	RAW_TEST_INSIDE(test_silent_sender_is_read),
	RAW_TEST_INSIDE(test_short_messages_are_no_progress),
	RAW_TEST_INSIDE(test_a_full_ring_stops_no_receive),
	RAW_TEST_INSIDE(test_pieces_and_then_silence),
	RAW_TEST_INSIDE(test_the_rest_goes_where_it_belongs),
	RAW_TEST_INSIDE(test_late_pieces_are_ignored),
	RAW_TEST_INSIDE(test_wrong_pieces_are_refused),
	RAW_TEST_INSIDE(test_pieces_cross_a_read),
	RAW_TEST_INSIDE(test_closed_under_a_read),
	RAW_TEST_INSIDE(test_the_faster_way_is_taken),
	RAW_TEST_INSIDE(test_two_ways_at_once_do_not_count),
	RAW_TEST_INSIDE(test_a_burst_begins_once),
	RAW_TEST_INSIDE(test_no_patience),
	RAW_TEST_INSIDE(test_pieces_grow),
	RAW_TEST_INSIDE(test_a_long_piece_becomes_short),
	RAW_TEST_INSIDE(test_nothing_is_copied_for_a_full_ring),
	RAW_TEST_INSIDE(test_inline_messages_cut_no_piece),
	RAW_TEST_INSIDE(test_messages_do_not_starve_a_stream),
	RAW_TEST_INSIDE(test_a_stream_does_not_starve_results),
	RAW_TEST_INSIDE(test_sleepers_do_not_wait_for_pieces),
	RAW_TEST_INSIDE(test_no_wait_object_waits_for_pieces),
)
