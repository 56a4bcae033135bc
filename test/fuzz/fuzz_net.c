/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_net.c - fuzz target: a process that connects to an interface as from
 * another host, or that an interface connects to, and sends arbitrary messages
 * and frames
 *
 * Malformed messages must be refused. The interface must continue to exchange
 * packets with a correct peer, and keep no connection of the process after that
 * has ended.
 *
 * The input is a list of steps: bytes without a handshake; a handshake, as
 * dialler or as acceptor; sealed messages; frames. A step is correct but for
 * the bytes that the input replaces.
 */
#include <sys/socket.h>

#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_region.h"
#include "hal/net/hal_net_state.h"
#include "lib/net_pair.h"

#include "fuzz.h"

#define STEPS_MAX	16
#define PATCHES_MAX	4	/* places of a message that are replaced */
#define REGION		8192	/* bytes of the dmable memory */

enum step { RAW, HELLO, ACCEPT, CONTROL, FRAME, PUMP, STEPS };

static struct net_side *const victim = &net_pair.b;
static struct net_rogue rogue = { .fd = -1 };
static bool proven;		/* the rogue has done its handshake */
static struct hal_key key;	/* of the victim's dmable memory */

static void no_log(int level, const char *line)
{
	(void)level;
	(void)line;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct hal_mem *mem;
	void *addr;

	(void)argc;
	(void)argv;
	hal_log_set(no_log);
	if (net_pair_setup(NULL) != 0 || net_pair.hal == NULL)
		return 0;
	victim->nif->net->drain_ns = 0;
	MUST(hal_mem_alloc(net_pair.hal, net_pair.hal->own_board, REGION, &mem,
			   &addr) == 0);
	hal_mem_key(net_pair.hal, mem, &key);
	net_pair_talk();
	return 0;
}

/* Replace some of len bytes. Returns whether there may be a difference. */
static bool patch(struct fuzz_input *in, uint8_t *bytes, size_t len)
{
	size_t n = fuzz_take(in, 1) % (PATCHES_MAX + 1);

	for (size_t i = 0; i < n; i++) {
		size_t at = fuzz_take(in, 2) % len;

		bytes[at] = (uint8_t)fuzz_take(in, 1);
	}
	return n != 0;
}

static void hang_up(void)
{
	net_rogue_close(&rogue);
	proven = false;
}

static void raw(struct fuzz_input *in)
{
	uint8_t bytes[600];
	size_t len = fuzz_take(in, 2) % sizeof(bytes);

	fuzz_copy(in, bytes, len);
	if (rogue.fd < 0)
		net_rogue_dial(&rogue, victim);
	net_rogue_send(&rogue, bytes, len);
}

/* ---- Handshakes --------------------------------------------------------- */

static void hello(struct fuzz_input *in)
{
	uint8_t answer[sizeof(struct net_answer)];
	size_t used, cut = fuzz_take(in, 1);

	hang_up();
	net_rogue_dial(&rogue, victim);
	net_rogue_hello(&rogue, victim);
	patch(in, rogue.auth.out, rogue.auth.nout);
	if (cut != 0 && cut < rogue.auth.nout) {
		rogue.auth.nout = cut;
		net_rogue_flush(&rogue);
		net_side_pump(victim);
		hang_up();
		return;
	}
	net_rogue_flush(&rogue);
	if (!net_rogue_recv(&rogue, victim, answer, sizeof(answer)) ||
	    net_auth_input(&rogue.auth, answer, sizeof(answer), &used) != 0) {
		hang_up();
		return;
	}
	proven = !patch(in, rogue.auth.out, rogue.auth.nout);
	net_rogue_flush(&rogue);
}

/* Let the victim dial the rogue, and answer. */
static void answer(struct fuzz_input *in)
{
	struct hal_host host = victim->nif->host;
	struct hal_addr addr = victim->hif->addr;
	uint8_t msg[sizeof(struct net_hello)];
	struct hal_peer *peer;
	size_t used;
	int fd;

	hang_up();
	fd = net_rogue_listen(1, &host.port);
	addr.nonce = unit_random(&net_pair.rng) | 1;
	host.id[5] ^= 0xff;
	net_host_name(&addr, &host, rogue.name);
	MUST(hal_connect_host(victim->hif, &addr, &host, &peer) == 0);
	NET_PAIR_DO_UNTIL(net_side_pump(victim),
			  (rogue.fd = accept(fd, NULL, NULL)) >= 0);
	close(fd);
	net_rogue_accept(&rogue, &host);
	MUST(net_rogue_recv(&rogue, victim, msg, sizeof(msg)));
	MUST(net_auth_input(&rogue.auth, msg, sizeof(msg), &used) == 0);
	if (patch(in, rogue.auth.out, rogue.auth.nout)) {
		net_rogue_flush(&rogue);
		return;
	}
	net_rogue_flush(&rogue);
	MUST(net_rogue_recv(&rogue, victim, msg, NET_MAC));
	MUST(net_auth_input(&rogue.auth, msg, NET_MAC, &used) == 0);
	proven = true;
}

/* ---- After the proofs --------------------------------------------------- */

static void control(struct fuzz_input *in)
{
	uint8_t msg[NET_CTL_MAX], type = (uint8_t)fuzz_take(in, 1) % 7;
	struct net_bye bye = { 0 };
	size_t len, cut;

	len = net_rogue_meet(&rogue, msg) - NET_MAC;
	rogue.auth.nsealed--;
	if (type == NET_CTL_BYE || type == NET_CTL_LEAVE) {
		bye.ctl.type = type;
		bye.sent = fuzz_take(in, 1);
		bye.taken = fuzz_take(in, 1);
		memcpy(msg, &bye, sizeof(bye));
		len = sizeof(bye);
	} else if (type != NET_CTL_MEET) {
		msg[0] = type;
		len = sizeof(struct net_ctl);
	}
	cut = fuzz_take(in, 1);
	if (cut >= sizeof(struct net_ctl))
		len = cut;
	patch(in, msg, len);
	len = net_auth_seal(&rogue.auth, msg, len);
	patch(in, msg, len);
	net_rogue_send(&rogue, msg, len);
}

/* The object that the victim has of the rogue, or NULL. */
static struct net_peer *rogues_peer(void)
{
	struct hal_addr addr;

	memcpy(&addr, rogue.name, sizeof(addr));
	return net_peer_find(victim->nif, &addr);
}

/* Add a record; its data begin with what such a record needs. The longest are a
 * piece of a transfer with its net_access, and what no frame has place for. */
static size_t record(struct fuzz_input *in, uint8_t *at)
{
	static const uint32_t lens[] = {
		0, 8, 16, 32, 33, 56, 64, 1000,
		16384, NET_PIECE, NET_PIECE + sizeof(struct net_access),
		NET_FRAME_MAX,
	};
	struct net_access a = { .key = key };
	const size_t n = sizeof(lens) / sizeof(lens[0]);
	struct net_rec rec = {
		.type = (uint8_t)(fuzz_take(in, 1) % (NET_REC_END + 1)),
		.word = (uint8_t)fuzz_take(in, 1),
		.len = lens[fuzz_take(in, 1) % n],
	};
	uint8_t wide = (uint8_t)fuzz_take(in, 1);

	rec.arg = fuzz_take(in, wide % 9);
	a.off = fuzz_take(in, wide / 16 % 9);
	a.len = fuzz_take(in, 2);
	if (rec.type == NET_PUT && rec.len >= sizeof(a) && a.len % 2 == 0)
		a.len = rec.len - sizeof(a);
	memcpy(at + sizeof(rec), &a, sizeof(a));
	memcpy(at, &rec, sizeof(rec));
	return net_rec_bytes(rec.len);
}

static void frame(struct fuzz_input *in)
{
	static uint8_t bytes[2 * NET_FRAME_MAX + 64];
	uint64_t frames = victim->nif->nframes;
	struct net_peer *peer = rogues_peer();
	struct net_head head = { .slot = 0 };
	size_t len = sizeof(head), n, cut;

	if (peer != NULL) {
		head.token = peer->token;
		head.slot = peer->slot;
		head.seq = peer->s.taken + 1 + fuzz_take(in, 1) % 80;
	}
	head.flags = (uint32_t)fuzz_take(in, 1);
	head.ack = fuzz_take(in, 1);
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &head, sizeof(head));
	n = fuzz_take(in, 1) % 8;
	for (size_t i = 0; i < n && len < NET_FRAME_MAX; i++)
		len += record(in, bytes + len);
	patch(in, bytes, len);
	cut = fuzz_take(in, 1);
	if (cut != 0 && cut < len)
		len = cut;
	net_pair_frame(victim, bytes, len);
	MUST(len <= NET_FRAME_MAX || victim->nif->nframes == frames);
}

/* ---- Inputs ------------------------------------------------------------- */

static void step(struct fuzz_input *in)
{
	switch ((enum step)(fuzz_take(in, 1) % STEPS)) {
	case RAW:
		raw(in);
		break;
	case HELLO:
		hello(in);
		break;
	case ACCEPT:
		answer(in);
		break;
	case CONTROL:
		if (proven)
			control(in);
		break;
	case FRAME:
		frame(in);
		break;
	default:
		break;
	}
	net_side_pump(victim);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input in = { bytes, len };

	if (net_pair.hal == NULL)
		return 0;
	for (int i = 0; i < STEPS_MAX && in.len > 0; i++)
		step(&in);
	hang_up();
	NET_PAIR_UNTIL(victim->nif->npeers == 1 && victim->nif->nhalf == 0);
	MUST(net_pair.a.dead == 0);
	net_pair_talk();
	return 0;
}
