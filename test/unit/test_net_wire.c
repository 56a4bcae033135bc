/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_wire.c - what travels between hosts, byte by byte: addresses, the
 * messages of control connections, and bodies of records. Each number is read
 * as little-endian bytes at a fixed offset, so that hosts with other processors
 * and other versions understand each other. test_net_stream.c has the heads of
 * frames and of records. Frames of processes that have no token are dropped.
 */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_send.h"
#include "lib/net_pair.h"

#define SENT_MAX	64

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

/* ---- Bytes --------------------------------------------------------------- */

struct bytes {
	uint8_t b[512];			/* the first of them */
	size_t len;
};
static struct bytes g_control[SENT_MAX], g_frame[SENT_MAX];
static unsigned g_ncontrol, g_nframe;

static void keep(struct bytes *list, unsigned *n, const void *data, size_t len)
{
	if (*n == SENT_MAX)
		return;
	memcpy(list[*n].b, data, len < 512 ? len : 512);
	list[(*n)++].len = len;
}

/* The HAL calls this one instead of that of the C library: messages of control
 * connections. */
ssize_t send(int fd, const void *data, size_t len, int flags)
{
	keep(g_control, &g_ncontrol, data, len);
	return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}

static const struct net_engine *g_engine;

static int send_frame(struct net_link *link, struct net_message *message,
		      const void *data, size_t len)
{
	keep(g_frame, &g_nframe, data, len);
	return g_engine->send(link, message, data, len);
}

/* A number of so many bytes. */
static uint64_t number(const uint8_t *at, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes-- != 0)
		n = n << 8 | at[bytes];
	return n;
}

/* The sealed message of this type that was sent first, by both sides. */
static const struct bytes *sealed(uint64_t type)
{
	for (unsigned i = 0; i < g_ncontrol; i++)
		if (g_control[i].len >= 40 && number(g_control[i].b, 2) ==
		    type && number(g_control[i].b + 2, 2) == g_control[i].len)
			return &g_control[i];
	unit_fail("no message of type %u", (unsigned)type);
	return NULL;
}

/* The first record of this type that was sent; its head has 16 bytes. */
static const uint8_t *record(uint64_t type, uint64_t *len)
{
	for (unsigned i = 0; i < g_nframe; i++) {
		const uint8_t *at = g_frame[i].b + 32;

		while (at + 16 <= g_frame[i].b + 512 &&
		       at + 16 <= g_frame[i].b + g_frame[i].len) {
			*len = number(at + 4, 4);
			if (number(at, 1) == type)
				return at + 16;
			at += 16 + (*len + 7) / 8 * 8;
		}
	}
	unit_fail("no record of type %u", (unsigned)type);
	return NULL;
}

static int setup(void **state)
{
	g_ncontrol = g_nframe = 0;
	return net_pair_setup(state);
}

/* Count a side's frames, too. */
static void tap(struct net_side *s)
{
	static struct net_engine engine;

	g_engine = s->nif->engine;
	engine = *g_engine;
	engine.send = send_frame;
	s->nif->engine = &engine;
}

/* ---- Addresses ----------------------------------------------------------- */

static void test_address(void **state)
{
	static const uint8_t golden[] = {
		2, 0, 0x34, 0x12, 7, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0,
		8, 7, 6, 5, 4, 3, 2, 1,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 78, 0, 1,
		0x90, 0x1f, 1, 2, 3, 4, 5, 6,
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
	};
	struct hal_addr_host address = {
		.addr = {
			.version = HAL_ADDR_HOST_VERSION, .board = 0x1234,
			.iface = 7, .uid = 1000,
			.nonce = UINT64_C(0x0102030405060708),
		},
		.host = {
			.ip = { [10] = 0xff, 0xff, 10, 78, 0, 1 },
			.port = 8080, .id = { 1, 2, 3, 4, 5, 6 },
		},
	};

	for (uint8_t i = 0; i < 16; i++)
		address.host.secret[i] = 16 + i;
	assert_int_equal(sizeof(address), 64);
	assert_memory_equal(&address, golden, 64);
}

/* ---- Messages of control connections ------------------------------------- */

static void is_name(const uint8_t *at, const struct net_side *of)
{
	const struct hal_host *host = &of->nif->host;
	const struct hal_addr *addr = &of->hif->addr;

	assert_int_equal(number(at, 2), 1);
	assert_int_equal(number(at + 2, 2), addr->board);
	assert_int_equal(number(at + 4, 4), addr->iface);
	assert_int_equal(number(at + 8, 4), addr->uid);
	assert_int_equal(number(at + 12, 4), 0);
	assert_true(number(at + 16, 8) == addr->nonce);
	assert_memory_equal(at + 24, host->ip, 16);
	assert_int_equal(number(at + 40, 2), host->port);
	assert_memory_equal(at + 42, host->id, 6);
}

/* HELLO, ANSWER and PROOF are the first three. */
static void test_proofs(void **state)
{
	static const uint8_t magic[] = { 'U', 'i', 'm', 'N' };
	const uint8_t *hello = g_control[0].b, *answer = g_control[1].b;

	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->connected == 1);
	assert_int_equal(g_control[0].len, 144);
	assert_memory_equal(hello, magic, 4);
	assert_int_equal(number(hello + 4, 2), 6);
	assert_int_equal(number(hello + 6, 2), 144);
	is_name(hello + 8, a);
	is_name(hello + 56, b);
	assert_int_equal(number(hello + 136, 8), 0);	/* by the address */
	assert_int_equal(g_control[1].len, 120);
	assert_memory_equal(answer, magic, 4);
	assert_int_equal(number(answer + 4, 2), 6);
	assert_int_equal(number(answer + 6, 2), 0);
	is_name(answer + 8, b);
	assert_memory_not_equal(hello + 104, answer + 56, 32);	/* nonces */
	assert_int_equal(g_control[2].len >= 32, 1);
}

static void test_meet(void **state)
{
	const struct hal_caps *caps = a->hif->caps;
	const struct bytes *meet;
	struct net_peer *peer;

	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->connected == 1 && b->inbound == 1);
	meet = sealed(1);
	/* 16 bytes are the address of the test's worker, 32 the HMAC */
	assert_int_equal(meet->len, 32 + 16 + 32);
	assert_int_equal(number(meet->b + 4, 4), 1);
	peer = net_peer(a->peer);
	if (number(meet->b + 8, 8) != peer->token)
		peer = net_peer(b->peer);
	assert_true(number(meet->b + 8, 8) == peer->token);
	assert_int_equal(number(meet->b + 16, 4), peer->slot);
	assert_int_equal(number(meet->b + 20, 4), caps->pkt_depth);
	assert_int_equal(number(meet->b + 24, 4), caps->pkt_payload);
	assert_int_equal(number(meet->b + 28, 4), caps->space_bytes);
}

/* SUSPEND and LEAVE, which has the form of BYE, have the numbers of frames sent
 * and processed. */
static void test_counts(void **state)
{
	const struct bytes *msg;
	uint64_t sent, taken;

	net_pair_talk();
	a->nif->net->links_max = 0;
	NET_PAIR_UNTIL(net_peer(a->peer)->state == NET_SUSPENDED &&
		       net_peer(b->peer)->state == NET_SUSPENDED);
	a->nif->net->links_max = UINT32_MAX;
	msg = sealed(4);
	assert_int_equal(msg->len, 24 + 32);
	assert_int_equal(number(msg->b + 4, 4), 2);	/* after MEET */
	sent = number(msg->b + 8, 8);
	taken = number(msg->b + 16, 8);
	assert_true((sent == net_peer(a->peer)->s.sent &&
		     taken == net_peer(a->peer)->s.taken) ||
		    (sent == net_peer(b->peer)->s.sent &&
		     taken == net_peer(b->peer)->s.taken));
	hal_peer_resume(a->peer);
	NET_PAIR_UNTIL(net_peer(a->peer)->state == NET_UP);
	sent = net_peer(a->peer)->s.sent;
	hal_peer_free(a->peer);
	a->peer = NULL;
	msg = sealed(6);
	assert_int_equal(msg->len, 24 + 32);
	assert_true(number(msg->b + 8, 8) >= sent);
}

/* ---- Records ------------------------------------------------------------- */

/* IMPORT has a key; GET and PUT have a key, an offset and a length. */
static void test_bodies(void **state)
{
	struct hal_dma_comp comp;
	const uint8_t *body;
	struct hal_rmem *rmem;
	struct hal_mem *mem;
	struct hal_key key;
	uint8_t *addr;
	uint64_t len;

	tap(a);
	net_pair_talk();
	assert_int_equal(hal_mem_alloc(net_pair.hal, -1, 65536, &mem,
				       (void **)&addr), 0);
	assert_int_equal(hal_mem_key(net_pair.hal, mem, &key), 0);
	NET_PAIR_UNTIL(hal_mem_import(a->peer, &key, &rmem) == 0);
	body = record(6, &len);
	assert_int_equal(len, 16);
	assert_true(number(body, 8) == key.word[0]);
	assert_true(number(body + 8, 8) == key.word[1]);
	memset(addr, 0x5a, 4096);
	for (int put = 0; put < 2; put++) {
		struct hal_dma d = {
			.op = put ? HAL_DMA_PUT : HAL_DMA_GET,
			.peer = a->peer, .rmem = rmem, .local = addr,
			.raddr = 0x1234, .len = 100,
		};

		assert_int_equal(hal_dma_post(a->hif, &d, 1), 0);
		NET_PAIR_UNTIL(hal_dma_poll(a->hif, &comp, 1) == 1);
		assert_int_equal(comp.status, 0);
		body = record(put ? 10 : 8, &len);
		assert_int_equal(len, put ? 32 + 100 : 32);
		assert_true(number(body, 8) == key.word[0]);
		assert_true(number(body + 8, 8) == key.word[1]);
		assert_int_equal(number(body + 16, 8), 0x1234);
		assert_int_equal(number(body + 24, 8), 100);
	}
	assert_memory_equal(body + 32, addr, 100);
	hal_mem_release(a->peer, rmem);
	hal_mem_free(net_pair.hal, mem);
}

/* ---- Outsiders ----------------------------------------------------------- */

/* A frame that would be the next one with the right token. */
static size_t next_frame(struct net_peer *to, uint8_t frame[64])
{
	struct net_head head = {
		.token = to->token, .slot = to->slot, .seq = to->s.taken + 1,
	};
	struct net_rec rec = {
		.type = NET_PACKET, .len = 8, .arg = hal_head(1, 0),
	};

	memset(frame, 0x11, 64);
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), &rec, sizeof(rec));
	return sizeof(head) + sizeof(rec) + 8;
}

static void is_dropped(const void *frame, size_t len)
{
	uint64_t outsiders = b->nif->nstrange, frames = b->nif->nframes, head;
	struct net_stream before = net_peer(b->peer)->s;

	net_pair_frame(b, frame, len);
	assert_int_equal(b->nif->nstrange, outsiders + 1);
	assert_int_equal(b->nif->nframes, frames);
	assert_memory_equal(&before, &net_peer(b->peer)->s, sizeof(before));
	assert_int_equal(net_peer(b->peer)->dying, 0);
	assert_null(hal_rx_peek(b->peer, &head));
}

/* A frame is full of stores to the last byte. A record without data is in the
 * next one, not beyond the end of this one. */
static void test_full_frame(void **state)
{
	static uint8_t data[NET_FRAME_MAX];
	const volatile uint8_t *last;
	struct net_peer *peer;
	uint32_t len;

	net_pair_talk();
	peer = net_peer(a->peer);
	unit_needs(peer->nif->hif->caps->space_bytes >= sizeof(data));
	assert_int_equal(hal_space_ready(a->peer, sizeof(data)), 0);
	memset(data, 0x5a, sizeof(data));
	assert_null(peer->cur);
	len = net_rec_room(peer);
	hal_space_write(a->peer, 0, data, len);
	assert_non_null(peer->cur);
	assert_int_equal(peer->cur->len, NET_FRAME_MAX);
	assert_non_null(net_rec_add(peer, NET_WAKE, 0, 0, 0));
	assert_true(peer->cur->len < NET_FRAME_MAX);
	net_flush(peer, 0);
	last = hal_space(b->peer, len - 1);
	NET_PAIR_UNTIL(*last == 0x5a);
	assert_int_equal(net_peer(b->peer)->dying, 0);
}

/* 64 KiB, stored to receive space, and the packet that names them are one
 * message of the engine. */
static void test_piece(void **state)
{
	enum { PIECE = 65536 };
	static const uint64_t words[4] = { 1, 2, 3, 4 };
	static uint8_t data[PIECE];
	const uint8_t *body;
	uint64_t len;

	memset(data, 0x5a, PIECE);
	tap(a);
	net_pair_talk();
	unit_needs(a->hif->caps->space_bytes >= PIECE &&
		   a->hif->caps->pkt_payload >= sizeof(words));
	assert_int_equal(hal_space_ready(a->peer, PIECE), 0);
	net_side_pump(a);
	g_nframe = 0;
	hal_space_write(a->peer, 0, data, PIECE);
	hal_space_barrier(a->peer);
	assert_int_equal(g_nframe, 0);
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), words, 4, NULL,
				      0), 0);
	assert_int_equal(g_nframe, 1);
	assert_true(g_frame[0].len <= 66 * 1024);
	body = record(3, &len);
	assert_int_equal(len, PIECE);
	assert_memory_equal(body, data, 128);
}

/* A frame of len bytes, all of them one store to receive space, that would be
 * the next one. */
static void long_frame(struct net_peer *to, uint8_t *frame, size_t len)
{
	struct net_head head = {
		.token = to->token, .slot = to->slot, .seq = to->s.taken + 1,
	};
	struct net_rec rec = {
		.type = NET_SPACE,
		.len = (uint32_t)(len - sizeof(head) - sizeof(rec)),
	};

	memset(frame, 0x5a, len);
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), &rec, sizeof(rec));
}

/* A frame has 66 KiB at most; a peer cannot have this process keep more. */
static void test_longest(void **state)
{
	enum { MOST = 66 * 1024 };
	static uint8_t frame[MOST + 8];
	const volatile uint8_t *last;

	net_pair_talk();
	unit_needs(b->hif->caps->space_bytes >= MOST);
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	long_frame(net_peer(b->peer), frame, MOST + 8);
	is_dropped(frame, MOST + 8);
	last = hal_space(b->peer, MOST - 49);
	long_frame(net_peer(b->peer), frame, MOST);
	net_pair_frame(b, frame, MOST);
	assert_int_equal(net_peer(b->peer)->dying, 0);
	assert_int_equal(*last, 0x5a);
}

/* A peer that sends requests and takes no answers ends, before these take much
 * memory here. */
static void test_no_answers(void **state)
{
	uint8_t frame[sizeof(struct net_head) + sizeof(struct net_rec) + 16];
	struct net_rec rec = { .type = NET_IMPORT, .len = 16, .arg = 1 };
	struct net_peer *peer;

	net_pair_talk();
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	peer = net_peer(b->peer);
	memset(frame, 0, sizeof(frame));
	memcpy(frame + sizeof(struct net_head), &rec, sizeof(rec));
	for (int i = 0; i < 600 && peer->dying == 0; i++) {
		struct net_head head = {
			.token = peer->token, .slot = peer->slot,
			.seq = peer->s.taken + 1, .ack = peer->s.acked,
		};

		/* as many are no fault of a peer that is busy */
		assert_true(peer->s.sent - peer->s.acked <= 513);
		memcpy(frame, &head, sizeof(head));
		net_pair_frame(b, frame, sizeof(frame));
		hal_if_pump(b->hif);	/* sends the answer */
	}
	assert_int_not_equal(peer->dying, 0);
	assert_true(peer->s.sent - peer->s.acked >= 512);
}

/* Whoever reaches the port of UCX can send frames. Without the token nothing
 * happens but that they are counted. */
static void test_outsider(void **state)
{
	const struct hal_cell *cell;
	uint8_t frame[64];
	uint64_t head;
	char *text;
	size_t len;
	FILE *out;

	net_pair_talk();
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	len = next_frame(net_peer(b->peer), frame);
	for (int bit = 0; bit < 96; bit++) {	/* of the token, of the slot */
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		is_dropped(frame, len);
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t cut = 0; cut < sizeof(struct net_head); cut++)
		is_dropped(frame, cut);
	out = open_memstream(&text, &len);
	assert_non_null(out);
	hal_dump(b->hif, out);
	fclose(out);
	assert_non_null(strstr(text, "frames of nobody 128"));
	free(text);
	len = next_frame(net_peer(b->peer), frame);
	net_pair_frame(b, frame, len);
	cell = hal_rx_peek(b->peer, &head);
	assert_non_null(cell);
	assert_true(hal_cell_word(cell, 0) == UINT64_C(0x1111111111111111));
}

#define TEST(f)								\
	{ #f, net_pair_test, setup, net_pair_teardown, (void *)f }

static void no_log(int level, const char *line)
{
	(void)level;
	(void)line;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address),
		TEST(test_proofs),
		TEST(test_meet),
		TEST(test_counts),
		TEST(test_bodies),
		TEST(test_outsider),
		TEST(test_full_frame),
		TEST(test_piece),
		TEST(test_longest),
		TEST(test_no_answers),
	};

	hal_log_set(no_log);	/* one frame too many in test_outsider() */
	return unit_run(tests);
}
