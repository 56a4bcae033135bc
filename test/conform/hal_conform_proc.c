/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_proc.c - conformance tests with two processes, one of which may
 * be stopped or killed
 */
#include <inttypes.h>

#include "conform/hal_conform.h"

/* Send a ping, and wait for the child's pong. */
static void ping(struct ct_if *ci, struct hal_peer *peer, uint64_t word)
{
	assert_int_equal(ct_send(ci, peer, CT_TYPE_PING, word), 0);
	assert_true(ct_recv(peer, CT_TYPE_PONG) == word);
}

/* Send pings until there are no more credits. Returns their number. */
static unsigned fill(struct ct_if *ci, struct hal_peer *peer)
{
	unsigned n = 0;

	while (n <= ct_caps->pkt_depth &&
	       ct_send_once(ci, peer, CT_TYPE_PING, n) == 0)
		n++;
	return n;
}

/* ---- Traffic --------------------------------------------------------- */

static void proc_stream(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct ct_child *c = ct_spawn();
	struct hal_peer *peer = ct_join_child(ci, c);
	const char *error;

	ct_tell(c, "stream %ld", ct_opt.packets);
	error = ct_stream_both(ci, peer, (uint64_t)ct_opt.packets, 2, 1);
	ct_good(error);
	ct_hear_ok(c);
	ct_finish(c);
}

static void proc_space(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct ct_child *c = ct_spawn();
	struct hal_peer *peer = ct_join_child(ci, c);
	const char *error;

	ct_tell(c, "take %ld", ct_opt.packets / 8);
	error = ct_space_send(ci, peer, (uint64_t)ct_opt.packets / 8);
	ct_good(error);
	ct_hear_ok(c);
	ct_finish(c);
}

/* Both processes sleep when they wait. */
static void proc_sleep(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct ct_child *c = ct_spawn();
	struct hal_peer *peer = ct_join_child(ci, c);
	const char *error;

	ct_mend_barriers();
	ct_ask(c, NULL, 0, "sleep");
	for (uint64_t i = 0; i < (uint64_t)ct_opt.packets / 100; i++) {
		assert_int_equal(ct_send(ci, peer, CT_TYPE_PING, i), 0);
		error = ct_sleep(ci, peer);
		if (error != NULL)
			ct_fail("round %" PRIu64 ": %s", i, error);
		assert_true(ct_recv(peer, CT_TYPE_PONG) == i);
	}
	ct_finish(c);
}

/* ---- Stopped --------------------------------------------------------- */

/*
 * A stopped process delays no other process and is not reported dead; a peer
 * may connect while it is stopped. When it continues it receives all packets.
 */
static void proc_stopped_is_no_matter(void **state)
{
	struct ct_if *ci = ct_open(0), *late = ct_open(0);
	struct ct_child *c = ct_spawn(), *other = ct_spawn();
	struct hal_peer *stopped = ct_join_child(ci, c), *first;
	struct hal_peer *living = ct_join_child(ci, other);
	uint64_t until = ct_now() + 3 * CT_SECOND / 2;
	unsigned n, m;

	ct_stop(c);
	n = fill(ci, stopped);
	assert_int_equal(n, ct_caps->pkt_depth);
	first = ct_connect(late, &c->addr);
	m = fill(late, first);
	assert_int_equal(m, ct_caps->pkt_depth);
	for (uint64_t i = 0; i < 5000 || ct_now() < until; i++) {
		ping(ci, living, i);
		if (i % 64 == 0)
			assert_int_equal(ct_send_once(ci, stopped,
						      CT_TYPE_PING, 0),
					 -FI_EAGAIN);
	}
	assert_int_equal(ct_count_events(ci, HAL_EV_DEAD, NULL), 0);
	assert_int_equal(ct_count_events(late, HAL_EV_DEAD, NULL), 0);
	assert_int_equal(kill(c->pid, SIGCONT), 0);
	for (unsigned i = 0; i < n; i++)
		assert_true(ct_recv(stopped, CT_TYPE_PONG) == i);
	for (unsigned i = 0; i < m; i++)
		assert_true(ct_recv(first, CT_TYPE_PONG) == i);
	ct_finish(c);
	ct_finish(other);
}

/* ---- Dead ------------------------------------------------------------ */

/* HAL_EV_DEAD of a killed peer comes within a second, and the peer delays no
 * other connection before. */
static void proc_dead_is_no_matter(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct ct_child *other = ct_spawn();
	struct hal_peer *living = ct_join_child(ci, other);
	uint64_t word = 0;

	for (int round = 0; round < 10; round++) {
		struct ct_child *c = ct_spawn();
		struct hal_peer *peer = ct_join_child(ci, c);
		uint64_t since;

		if (round & 1)
			ct_stop(c);
		if (round & 2)
			fill(ci, peer);
		ct_kill(c);
		since = ct_now();
		/* It accepts pkt_depth packets at most, whether its ring was
		 * full or not. */
		for (unsigned i = 0; i < 3 * ct_caps->pkt_depth; i++) {
			int ret = hal_pkt_send(peer, hal_head(1, 0), &word, 1,
					       NULL, 0);

			assert_true(ret == 0 || ret == -FI_EAGAIN);
		}
		ping(ci, living, ++word);
		ct_expect_death(ci, peer, since);
		for (int i = 0; i < 100; i++)
			ping(ci, living, ++word);
		assert_int_equal(ct_count_events(ci, HAL_EV_DEAD, NULL), 0);
		hal_peer_free(peer);
	}
	ct_finish(other);
}

/* Check packet i of a child's burst, and the bytes of the receive space that it
 * names. */
static void take_burst(struct hal_peer *peer, uint64_t i)
{
	uint64_t head;

	assert_true(hal_cell_word(ct_await(peer, &head), 0) == i);
	assert_true(ct_filled(hal_space(peer, i * 64), 64, i));
	assert_true(ct_recv(peer, CT_TYPE_PING) == i);
}

/* Receive the packets of a burst that were not lost: the first ones. */
static void take_first(struct ct_if *ci, struct hal_peer *peer, unsigned n)
{
	unsigned got = 0;
	uint64_t head;

	do {
		ct_step_all();
		while (ct_peek(peer, &head) != NULL)
			take_burst(peer, got++);
	} while (ct_count_events(ci, HAL_EV_DEAD, peer) == 0);
	assert_in_range(got, 0, n);
}

/* A process connects, sends n packets and is killed. Those that were not sent
 * yet are lost; those that were come in order, without a gap. */
static void last_words_of_a_host(struct ct_if *ci, struct ct_child *c,
				 unsigned n)
{
	struct hal_peer *peer = ct_join_child(ci, c);
	uint64_t since;

	ct_tell(c, "burst %u", n);
	ct_tell(c, "die");
	ct_await_end(c, false);
	since = ct_now();
	take_first(ci, peer, n);
	ct_expect_death(ci, peer, since);
	assert_int_equal(ct_drain(peer), 0);
	hal_peer_free(peer);
	ct_kill(c);
}

/* Packets that a process published before its end are received after it. */
static void proc_last_words(void **state)
{
	struct ct_if *ci = ct_open(0);
	unsigned n = ct_caps->pkt_depth;

	for (int round = 0; round < 16; round++) {
		struct ct_child *c = ct_spawn();
		struct hal_peer *peer = NULL;
		char text[CT_ADDR_TEXT];
		struct hal_event ev;

		if (ct_net() && round & 1) {
			last_words_of_a_host(ci, c, n);
			continue;
		}
		if (round & 4) {
			/* This process has connected first, or both connect at
			 * the same time. */
			peer = ct_connect(ci, &c->addr);
			if (!(round & 8))
				ct_wait_event(ci, HAL_EV_CONNECTED, peer);
		}
		ct_addr_format(&ci->hif->addr, text);
		ct_tell(c, "connect %s", text);
		ct_tell(c, "burst %u", n);
		ct_tell(c, round & 1 ? "die" : "close");
		/* Do not step: the answers come by a pipe, the end by
		 * waitpid(). (A close waits for peers on other hosts.) */
		if (round & 2)
			ct_await_end(c, ct_net());
		ct_hear_ok(c);
		ct_hear_ok(c);
		peer = ct_inbound_from(ci, &c->addr);
		/* Packets that a decorator delays are lost with the process. */
		if (!(round & 1) || !ct_faulty()) {
			for (unsigned i = 0; i < n; i++)
				take_burst(peer, i);
		}
		ev = ct_wait_event(ci, HAL_EV_DEAD, peer);
		assert_true(ev.status < 0);
		if (!ct_faulty())
			assert_int_equal(ct_drain(peer), 0);
		hal_peer_free(peer);
		ct_kill(c);
	}
}

/* Returns whether packets are stored at the receiver. With other backends
 * unreceived packets are lost with their sender. */
static bool keeps_last_words(void)
{
	return strcmp(ct_opt.hal, "emu") == 0 ||
	       strcmp(ct_opt.hal, "fault") == 0;
}

/*
 * Senders connect, send and end, and other processes open interfaces of the
 * same numbers, before the receiver is stepped: it receives all packets, each
 * from the right address.
 */
static void proc_numbers_taken_over(void **state)
{
	struct ct_if *ci = ct_open(0), *own[3];
	unsigned n = ct_caps->pkt_depth;
	struct ct_child *c[3], *grabber;
	char text[CT_ADDR_TEXT];

	unit_needs(keeps_last_words());
	ct_addr_format(&ci->hif->addr, text);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 3; i++)
			c[i] = ct_spawn();
		grabber = ct_spawn();
		ct_ask(grabber, NULL, 0, "grab");
		for (int i = 0; i < 3; i++) {
			ct_tell(c[i], "connect %s", text);
			ct_tell(c[i], "burst %u", n);
			/* A killed process loses the packets that a decorator
			 * delays. */
			ct_tell(c[i], round & 1 && !ct_faulty() ? "die" :
				"close");
		}
		/* No interface is stepped from here to the end of the loop. */
		for (int i = 0; i < 3; i++) {
			ct_await_end(c[i], false);
			own[i] = ct_open(0);
		}
		ct_nap(10000);
		for (int i = 0; i < 3; i++) {
			struct hal_peer *peer = ct_inbound_from(ci,
								&c[i]->addr);

			for (unsigned k = 0; k < n; k++)
				take_burst(peer, k);
			ct_wait_event(ci, HAL_EV_DEAD, peer);
			hal_peer_free(peer);
			ct_kill(c[i]);
			ct_close(own[i]);
		}
		ct_finish(grabber);
	}
}

/* Expect that no process holds an address, with any nonce; on another host,
 * with its own. */
static void expect_nobody(struct ct_if *ci, struct hal_addr addr)
{
	if (!ct_net())
		addr.nonce = HAL_ADDR_ANY;
	ct_expect_refused(ci, &addr);
}

/* The end of a process is reported although its forked child keeps all
 * descriptors open. */
static void proc_end_despite_a_forked_child(void **state)
{
	struct ct_if *ci = ct_open(0);

	for (int round = 0; round < 6; round++) {
		struct ct_child *c;
		struct hal_peer *peer;
		struct hal_addr addr;
		struct ct_heir heir;
		uint64_t since;

		if (ct_net() && round % 3 == 0)
			continue;	/* docs/hal.md, 16.8 */
		c = ct_spawn();
		peer = ct_join_child(ci, c);
		addr = c->addr;

		ping(ci, peer, round);
		heir = ct_heir_leave(c);
		ping(ci, peer, round);
		if (round % 3 == 0)
			ct_kill(c);
		else if (round % 3 == 1)
			ct_ask(c, NULL, 0, "shut");
		else
			ct_finish(c);
		since = ct_now();
		ct_expect_death(ci, peer, since);
		hal_peer_free(peer);
		expect_nobody(ci, addr);
		if (round % 3 == 1)
			ct_finish(c);
		ct_heir_end(&heir);
	}
}

/*
 * A process that was forked at any time, and closes the HAL objects that it
 * inherited, disturbs no connection.
 */
static void proc_forked_child_harms_nobody(void **state)
{
	struct ct_if *ci = ct_open(0), *local = ct_open(0);
	struct ct_child *c = ct_spawn();
	struct hal_peer *peer = ct_join_child(ci, c);
	struct ct_pair p = { ci, local, NULL, NULL };
	struct hal_mem *mem;
	void *addr;

	ct_join(&p);
	assert_int_equal(ct_mem_alloc(0, 1 << 16, &mem, &addr), 0);
	ct_fill(addr, 1 << 16, 1);
	for (uint64_t i = 0; i < 20; i++) {
		pid_t pid;

		/* A packet is in flight in each direction. */
		assert_int_equal(ct_send(ci, peer, CT_TYPE_PING, i), 0);
		assert_int_equal(ct_send(ci, p.ab, CT_TYPE_PING, i), 0);
		pid = unit_fork();
		if (pid == 0) {
			hal_mem_free(ct_hal, mem);
			if (i & 1)
				hal_peer_free(p.ab);
			hal_if_close(ci->hif);
			hal_if_close(local->hif);
			hal_put(ct_hal);
			_exit(0);
		}
		assert_int_equal(unit_exit_code(pid), 0);
		assert_true(ct_recv(peer, CT_TYPE_PONG) == i);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
		ping(ci, peer, ~i);
		assert_true(ct_filled(addr, 1 << 16, 1));
		assert_int_equal(ci->nev + local->nev, 0);
	}
	hal_mem_free(ct_hal, mem);
	ct_finish(c);
}

/*
 * Packets with the identity of another peer are not received as packets of that
 * peer, and do not disturb it.
 */
static void proc_nobody_poses_as_a_peer(void **state)
{
	char own[CT_ADDR_TEXT], to[CT_ADDR_TEXT];
	struct ct_child *c;
	struct ct_pair p;
	uint64_t head;

	CT_NOT_NET();
	p = ct_pair(0, 0);
	c = ct_spawn();
	ct_addr_format(&p.a->hif->addr, own);
	ct_addr_format(&p.b->hif->addr, to);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
		/* Sends may succeed although nobody receives them. */
		if (i == 50)
			ct_ask(c, NULL, 0, "pose %s %s", own, to);
	}
	assert_null(ct_peek(p.ba, &head));
	assert_false(p.ba->dead || p.ab->dead);
	assert_int_equal(ct_count_events(p.b, HAL_EV_DEAD, NULL), 0);
	ct_kill(c);
}

/* The same with the identity of an interface that is not connected yet. */
static void proc_nobody_poses_as_an_unconnected_peer(void **state)
{
	char own[CT_ADDR_TEXT], to[CT_ADDR_TEXT];
	struct hal_peer *ab, *ba;
	struct ct_if *a, *b;
	struct ct_child *c;
	uint64_t head;

	CT_NOT_NET();
	a = ct_open(0);
	b = ct_open(0);
	c = ct_spawn();
	ct_addr_format(&a->hif->addr, own);
	ct_addr_format(&b->hif->addr, to);
	ct_ask(c, NULL, 0, "pose %s %s", own, to);
	ab = ct_connect(a, &b->hif->addr);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(ct_send(a, ab, CT_TYPE_PING, i), 0);
	ba = ct_inbound_from(b, &a->hif->addr);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(ct_recv(ba, CT_TYPE_PING) == i);
	assert_null(ct_peek(ba, &head));
	assert_false(ab->dead || ba->dead);
	ct_kill(c);
}

/*
 * Reopen the HAL on a board that other jobs of this user hardly use: the few
 * interfaces of the first board may all be in use.
 */
static void own_board(bool on)
{
	static bool ours;
	char board[16];

	if (on && getenv("FI_UNIMEM_BOARDS") != NULL)
		return;			/* the user has chosen a board */
	if (on) {
		snprintf(board, sizeof(board), "%d", 1 + getpid() % 60000);
		setenv("FI_UNIMEM_BOARDS", "60001", 1);
		setenv("FI_UNIMEM_BOARD", board, 1);
		ct_hal_close();
		assert_int_equal(ct_hal_open(), 0);
	} else if (ours) {
		unsetenv("FI_UNIMEM_BOARDS");
		unsetenv("FI_UNIMEM_BOARD");
	}
	ours = on;
}

/* Start a child with the other profile; where this process has a timing model,
 * with the same profile but without the model. */
static struct ct_child *spawn_other(void)
{
	const char *own = ct_opt.profile, *model = getenv("FI_UNIMEM_MODEL");
	char saved[256];
	struct ct_child *c;

	if (model != NULL && *model != '\0') {
		snprintf(saved, sizeof(saved), "%s", model);
		unsetenv("FI_UNIMEM_MODEL");
		c = ct_spawn();
		setenv("FI_UNIMEM_MODEL", saved, 1);
		return c;
	}
	ct_opt.profile = strcmp(own, "host") == 0 ? "exanode" : "host";
	c = ct_spawn();
	ct_opt.profile = own;
	return c;
}

/* Processes of different profiles do not connect, and disturb no connection. */
static void proc_other_profile_is_refused(void **state)
{
	struct hal_peer *peer = NULL;
	struct ct_child *c;
	char text[CT_ADDR_TEXT], line[64];
	struct ct_pair p;
	int ret;

	if (strcmp(ct_opt.hal, "emu") != 0 &&
	    strcmp(ct_opt.hal, "fault") != 0 && !ct_net())
		skip();			/* all boards have one profile */
	own_board(true);
	p = ct_pair(-1, -1);
	c = spawn_other();
	ret = ct_try_connect(p.a, &c->addr, &peer);
	if (ret == 0)
		ret = ct_wait_event(p.a, HAL_EV_DEAD, peer).status;
	assert_true(ret < 0);
	assert_int_equal(ct_count_events(p.a, HAL_EV_CONNECTED, peer), 0);
	if (peer != NULL)
		hal_peer_free(peer);
	ct_addr_format(&p.b->hif->addr, text);
	ct_tell(c, "connect %s", text);
	assert_true(ct_hear(c, line, sizeof(line)));
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
	}
	assert_int_equal(p.b->nev, 0);
	assert_int_equal(p.b->hif->ninbound, 1);
	ct_finish(c);
	own_board(false);
}

/* Connecting to the address of a process that has ended is refused. */
static void proc_old_address(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct ct_child *c = ct_spawn();
	struct hal_addr addr = c->addr;
	struct hal_peer *peer = NULL;
	int ret;

	ct_kill(c);
	c = ct_spawn();
	ret = ct_try_connect(ci, &addr, &peer);
	if (ret == 0)
		ret = ct_wait_event(ci, HAL_EV_DEAD, peer).status;
	assert_int_equal(ret, -FI_ECONNREFUSED);
	ct_finish(c);
}

/* The same if the present holder of the interface is killed before it
 * refuses. */
static void proc_old_address_of_the_killed(void **state)
{
	struct hal_peer *peer = NULL;
	struct hal_addr stale;
	struct ct_heir heir;
	struct ct_child *c;
	struct ct_if *ci;
	int ret;

	CT_NOT_NET();
	ci = ct_open(0);
	c = ct_spawn();
	stale = c->addr;
	heir = ct_heir_leave(c);
	stale.nonce ^= 1;
	ct_stop(c);
	ret = ct_try_connect(ci, &stale, &peer);
	ct_kill(c);
	if (ret == 0)
		ret = ct_wait_event(ci, HAL_EV_DEAD, peer).status;
	ct_heir_end(&heir);
	assert_int_equal(ret, -FI_ECONNREFUSED);
}

/* An interface whose holder was killed can be opened at once. */
static void proc_interfaces_come_back(void **state)
{
	unsigned rounds = ct_caps->ifs_per_board + 10;

	if (rounds > 100)		/* too many interfaces to exhaust in a
					 * test */
		rounds = 20;
	for (unsigned i = 0; i < rounds; i++)
		ct_kill(ct_spawn());
	ct_open(-1);
}

/* ---- cDMA ------------------------------------------------------------ */

struct far {
	struct ct_if *ci;
	struct ct_child *c;
	struct hal_peer *peer;
	struct hal_mem *mem;
	struct hal_rmem *rmem;
	struct hal_key key;
	uint64_t ordinary;		/* address of ordinary memory of the
					 * child */
	uint8_t *local;
	size_t bytes;
};

static struct far far_memory(size_t bytes)
{
	struct far f = { .ci = ct_open(0), .c = ct_spawn(),
			 .bytes = bytes };
	char rest[128];
	void *addr;

	f.peer = ct_join_child(f.ci, f.c);
	ct_ask(f.c, rest, sizeof(rest), "alloc %zu", bytes);
	assert_int_equal(sscanf(rest, "%" SCNx64 " %" SCNx64 " %" SCNx64,
				&f.key.word[0], &f.key.word[1], &f.ordinary),
			 3);
	assert_int_equal(ct_mem_alloc(0, bytes, &f.mem, &addr), 0);
	f.local = addr;
	assert_int_equal(ct_import(f.peer, &f.key, &f.rmem), 0);
	return f;
}

static int far_move(struct far *f, enum hal_dma_op op, bool dmable)
{
	struct hal_dma d = {
		.op = op, .peer = f->peer, .rmem = dmable ? f->rmem : NULL,
		.raddr = dmable ? 0 : f->ordinary, .local = f->local,
		.len = f->bytes,
	};

	return ct_dma_run(f->ci, &d);
}

static void proc_dma(void **state)
{
	struct far f = far_memory((5 << 20) + 77);

	ct_ask(f.c, NULL, 0, "fill 100");
	assert_int_equal(far_move(&f, HAL_DMA_GET, true), 0);
	assert_true(ct_filled(f.local, f.bytes, 100));
	if (f.peer->dma_any) {
		assert_int_equal(far_move(&f, HAL_DMA_GET, false), 0);
		assert_true(ct_filled(f.local, f.bytes, 101));
	} else {
		assert_false(ct_caps->flags & HAL_CAP_DMA_ANY && !ct_net() &&
			     unit_attach());
	}
	for (uint64_t seed = 7; seed < 10; seed++) {
		ct_ask(f.c, NULL, 0, "fill %" PRIu64, seed);
		ct_fill(f.local, f.bytes, seed);
		assert_int_equal(far_move(&f, HAL_DMA_PUT, true), 0);
		if (f.peer->dma_any) {
			ct_fill(f.local, f.bytes, seed + 1);
			assert_int_equal(far_move(&f, HAL_DMA_PUT, false), 0);
		}
		ct_ask(f.c, NULL, 0, "check %" PRIu64, seed);
	}
	hal_mem_release(f.peer, f.rmem);
	ct_finish(f.c);
	hal_mem_free(ct_hal, f.mem);
}

/* The child starts the transfers, to memory of this process. */
static void proc_dma_into_local_memory(void **state)
{
	struct far f = far_memory((3 << 20) + 5);
	struct hal_key key;

	assert_int_equal(hal_mem_key(ct_hal, f.mem, &key), 0);
	ct_ask(f.c, NULL, 0, "fill 55");
	ct_ask(f.c, NULL, 0, "transfer %" PRIx64 " %" PRIx64 " %zu",
	       key.word[0], key.word[1], f.bytes);
	assert_true(ct_filled(f.local, f.bytes, 55));
	ct_ask(f.c, NULL, 0, "check 55");
	hal_mem_release(f.peer, f.rmem);
	ct_finish(f.c);
	hal_mem_free(ct_hal, f.mem);
}

/* Transfers that are outstanding when the peer is killed complete once each, as
 * cancelled. */
static void proc_dma_peer_dies(void **state)
{
	for (int round = 0; round < 4; round++) {
		struct far f = far_memory(16 << 20);
		unsigned n = ct_caps->dma_depth, got = 0, cancelled = 0;
		bool seen[256] = { false };
		struct hal_dma_comp comp;
		struct hal_dma d = { .op = HAL_DMA_GET, .peer = f.peer,
				     .local = f.local, .len = f.bytes };
		uint64_t end = ct_deadline();

		if (n > 256)
			n = 256;
		d.rmem = round & 1 && f.peer->dma_any ? NULL : f.rmem;
		d.raddr = d.rmem != NULL ? 0 : f.ordinary;
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(ct_dma_post(f.ci, &d, i), 0);
		if (round & 2)
			got += hal_dma_poll(f.ci->hif, &comp, 1);
		assert_int_equal(got, 0);
		ct_kill(f.c);
		ct_expect_death(f.ci, f.peer, ct_now());
		while (got < n) {
			assert_true(ct_now() < end);
			ct_step_all();
			if (hal_dma_poll(f.ci->hif, &comp, 1) == 0)
				continue;
			assert_true(comp.token < n && !seen[comp.token]);
			seen[comp.token] = true;
			cancelled += comp.status == -FI_ECANCELED;
			got++;
		}
		assert_true(cancelled > 0);
		hal_mem_release(f.peer, f.rmem);
		hal_peer_free(f.peer);
		for (int i = 0; i < 50; i++)
			assert_int_equal(hal_dma_poll(f.ci->hif, &comp, 1), 0);
		hal_mem_free(ct_hal, f.mem);
	}
}

/* Memory of a stopped process can be accessed, and other transfers are not
 * delayed. On another host the process executes the transfer when it
 * continues. */
static void proc_dma_of_the_stopped(void **state)
{
	struct far f = far_memory(1 << 20), g = far_memory(1 << 20);

	ct_ask(f.c, NULL, 0, "fill 3");
	ct_ask(g.c, NULL, 0, "fill 4");
	ct_stop(f.c);
	if (!ct_net()) {
		assert_int_equal(far_move(&f, HAL_DMA_GET, true), 0);
		assert_true(ct_filled(f.local, f.bytes, 3));
	}
	assert_int_equal(far_move(&g, HAL_DMA_GET, true), 0);
	assert_true(ct_filled(g.local, g.bytes, 4));
	kill(f.c->pid, SIGCONT);
	assert_int_equal(far_move(&f, HAL_DMA_GET, true), 0);
	assert_true(ct_filled(f.local, f.bytes, 3));
	ct_finish(f.c);
	ct_finish(g.c);
	hal_mem_release(f.peer, f.rmem);
	hal_mem_release(g.peer, g.rmem);
	hal_mem_free(ct_hal, f.mem);
	hal_mem_free(ct_hal, g.mem);
}

const struct CMUnitTest ct_proc_tests[] = {
	CT_TEST(proc_stream),
	CT_TEST(proc_space),
	CT_TEST(proc_sleep),
	CT_TEST(proc_stopped_is_no_matter),
	CT_TEST(proc_dead_is_no_matter),
	CT_TEST(proc_last_words),
	CT_TEST(proc_numbers_taken_over),
	CT_TEST(proc_end_despite_a_forked_child),
	CT_TEST(proc_forked_child_harms_nobody),
	CT_TEST(proc_nobody_poses_as_a_peer),
	CT_TEST(proc_nobody_poses_as_an_unconnected_peer),
	CT_TEST(proc_other_profile_is_refused),
	CT_TEST(proc_old_address),
	CT_TEST(proc_old_address_of_the_killed),
	CT_TEST(proc_interfaces_come_back),
	CT_TEST(proc_dma),
	CT_TEST(proc_dma_into_local_memory),
	CT_TEST(proc_dma_peer_dies),
	CT_TEST(proc_dma_of_the_stopped),
};
const size_t ct_proc_count = CT_COUNT(ct_proc_tests);
