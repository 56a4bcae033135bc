/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_conn.c - control connections between interfaces on different hosts:
 * processes that compute while they connect, ends, and clients without the
 * secret, which cost a bounded number of descriptors.
 */
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "hal/net/hal_net_auth.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_host.h"
#include "lib/net_pair.h"
#include "util/unm_clock.h"

#define MS	UINT64_C(1000000)	/* ns */

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

static void nap_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* Connections of a side. */
static unsigned conns(const struct net_side *s)
{
	unsigned n = 0;

	unm_list_for_each(pos, &s->nif->conns)
		n++;
	return n;
}

/* Close the connections of a side without a proof, as a process does that has
 * too many. Returns how many there were. */
static unsigned drop_halves(struct net_side *s)
{
	unsigned n = 0;

	unm_list_for_each_safe(pos, tmp, &s->nif->conns) {
		struct net_conn *conn = unm_container(pos, struct net_conn,
						      link);

		if (!conn->half)
			continue;
		net_conn_close(conn);
		n++;
	}
	return n;
}

/* ---- Processes that compute --------------------------------------------- */

static void test_talk(void **state)
{
	net_pair_talk();
	assert_int_equal(a->dead + b->dead, 0);
}

/* The acceptor computes for longer than dials are repeated. */
static void test_acceptor_computes(void **state)
{
	a->nif->net->dial_ns = 50 * MS;
	net_pair_dial(a, b);
	for (int i = 0; i < 30; i++) {
		net_side_pump(a);
		assert_int_equal(a->dead, 0);
		assert_int_equal(net_peer(a->peer)->tries, 0);
		nap_ms(10);
	}
	a->nif->net->dial_ns = 10000 * MS;
	NET_PAIR_UNTIL(a->connected == 1);
	assert_int_equal(a->dead, 0);
}

/* The dialler computes between the steps of the handshake, for longer than a
 * connection without a proof keeps its place where others want it. */
static void test_dialler_computes(void **state)
{
	uint64_t next = 0, now;

	a->nif->net->half_ns = 20 * MS;
	net_pair_dial(a, b);
	while (a->connected == 0) {
		now = unm_now_ns();
		if (now >= next) {
			net_side_pump(a);
			next = unm_now_ns() + 100 * MS;
		}
		net_side_pump(b);
		assert_int_equal(net_peer(a->peer)->tries, 0);
	}
	assert_int_equal(a->dead, 0);
}

/* Connections that end without an answer are repeated while there is time. */
static void test_dropped(void **state)
{
	unsigned dropped = 0;

	net_pair_dial(a, b);
	while (dropped < 7) {
		net_pair_pump();
		dropped += drop_halves(b);
		assert_int_equal(a->dead, 0);
	}
	NET_PAIR_UNTIL(a->connected == 1);
}

/* The backlog of the acceptor is full: its kernel answers nothing. */
static void test_backlog_full(void **state)
{
	struct net_rogue r;
	int tries;

	a->nif->net->dead_ns = 1300 * MS;
	assert_int_equal(listen(b->nif->listen.fd, 0), 0);
	net_rogue_dial(&r, b);
	net_pair_dial(a, b);
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  a->dead != 0 || net_peer(a->peer)->tries != 0);
	assert_int_equal(a->dead, 0);
	net_rogue_close(&r);
	a->nif->net->dead_ns = 3000 * MS;
	tries = net_peer(a->peer)->tries;
	NET_PAIR_UNTIL(a->connected == 1);
	assert_true(tries > 0);
}

/* Somebody else listens at the port, and ends each connection: the time for
 * which it is tried is bounded. */
static void test_never_answers(void **state)
{
	struct hal_host host = b->nif->host;
	unsigned dials = 0;
	int fd = net_rogue_listen(16, &host.port), conn;

	a->nif->net->dial_ns = 100 * MS;
	assert_int_equal(hal_connect_host(a->hif, &b->hif->addr, &host,
					  &a->peer), 0);
	NET_PAIR_DO_UNTIL({
		net_side_pump(a);
		conn = accept(fd, NULL, NULL);
		if (conn >= 0) {
			dials++;
			close(conn);
		}
	}, a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
	assert_in_range(dials, 4, 16);
	close(fd);
}

/* Nobody listens: at once. */
static void test_nobody(void **state)
{
	struct hal_host host = b->nif->host;
	int fd = net_rogue_listen(1, &host.port);

	close(fd);
	assert_int_equal(hal_connect_host(a->hif, &b->hif->addr, &host,
					  &a->peer), 0);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_ECONNREFUSED);
}

/* Both dial at once, and compute in between, in any order. */
static void test_crossed_computing(void **state)
{
	for (int round = 0; round < 20; round++) {
		net_pair_dial(a, b);
		if (unit_below(&net_pair.rng, 2))
			net_side_pump(a);
		net_pair_dial(b, a);
		a->connected = b->connected = 0;
		while (a->connected == 0 || b->connected == 0) {
			uint32_t who = unit_below(&net_pair.rng, 4);

			if (who < 2)
				net_side_pump(who ? a : b);
			else
				nap_ms(who - 1);
			assert_int_equal(a->dead + b->dead, 0);
		}
		net_pair_talk();
		net_pair_teardown(NULL);
		assert_int_equal(net_pair_setup(NULL), 0);
	}
}

/* ---- Ends --------------------------------------------------------------- */

/* Frames that a killed process has sent are received, although this process
 * computes between its first notice and its next call. */
static void test_rest_of_a_killed_peer(void **state)
{
	uint64_t word = 0, head, got = 0;
	const struct hal_cell *cell;
	struct hal_event ev[8];
	struct hal_peer *from;
	int n, dead = 0;

	net_pair_talk();
	b->nif->net->drain_ns = 20 * MS;	/* shorter than the nap */
	from = b->peer;
	while (hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL, 0) == 0)
		word++;
	assert_true(net_pair_frames(b) > 3 * NET_PROGRESS);
	while (!unm_list_empty(&a->nif->conns))		/* the kernel's part */
		net_conn_close(unm_container(a->nif->conns.next,
					     struct net_conn, link));
	assert_int_equal(hal_if_service(b->hif, ev, 8), 0);
	nap_ms(100);
	n = hal_if_service(b->hif, ev, 8);
	for (int i = 0; i < n; i++)
		dead += ev[i].type == HAL_EV_DEAD;
	assert_int_equal(dead, 1);
	while ((cell = hal_rx_peek(from, &head)) != NULL) {
		assert_true(hal_cell_word(cell, 0) == got++);
		hal_rx_release(from);
	}
	assert_int_equal(got, word);
	hal_peer_free(from);
}

/* ---- Sleepers ------------------------------------------------------------ */

/* Sleep until the descriptor of a side is readable, and service it. */
static void sleep_on(struct net_side *s)
{
	struct pollfd pfd = { hal_if_fd(s->hif), POLLIN, 0 };

	NET_PAIR_DO_UNTIL(net_side_pump(s), hal_if_arm(s->hif) == 0);
	assert_int_equal(poll(&pfd, 1, NET_PAIR_PATIENCE * 1000), 1);
	hal_if_disarm(s->hif);
	net_side_pump(s);
}

/* The last frame is lost, and its sender sleeps without another call. */
static void test_loss_asleep(void **state)
{
	uint64_t word = 1;

	net_pair_talk();
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	net_pair.lose = 1;
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	assert_int_equal(net_pair.lose, 0);
	NET_PAIR_DO_UNTIL(net_side_pump(a), hal_if_arm(a->hif) == 0);
	assert_true(net_peer(a->peer)->ask_at != 0);
	hal_if_disarm(a->hif);
	NET_PAIR_DO_UNTIL(sleep_on(a), net_pair_frames(b) != 0);
}

/* A side that may sleep has sent all, has read all, and has asked its engine
 * for more since (the engine checks that). */
static void test_arm_settles(void **state)
{
	uint64_t word = 0, head;
	struct itimerspec left;
	struct hal_peer *from;

	net_pair_talk();
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	from = b->peer;
	while (hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL, 0) == 0)
		word++;
	assert_true(net_pair_frames(b) > 3 * NET_PROGRESS);
	while (word != 0) {
		assert_int_equal(hal_if_arm(b->hif), -FI_EAGAIN);
		while (hal_rx_peek(from, &head) != NULL) {
			word--;
			hal_rx_release(from);
		}
		hal_rx_flush(from);	/* for the next frame */
	}
	/* acknowledgements, which are no reason not to sleep */
	assert_true(net_pair_frames(a) > 1);
	NET_PAIR_DO_UNTIL(net_side_pump(a), hal_if_arm(a->hif) == 0);
	assert_int_equal(net_pair_frames(a), 0);
	hal_if_disarm(a->hif);
	NET_PAIR_DO_UNTIL(net_side_pump(b), hal_if_arm(b->hif) == 0);
	assert_true(unm_list_empty(&b->nif->dirty));
	assert_int_equal(net_pair_frames(b), 0);
	/* nothing is to come; the engine may have lost a wake-up */
	assert_int_equal(timerfd_gettime(b->nif->timer.fd, &left), 0);
	assert_true(left.it_value.tv_sec == 0 &&
		    left.it_value.tv_nsec <= 100000000);
	hal_if_disarm(b->hif);
}

/* The longest sleep of a side that may sleep. */
static uint64_t sleep_ns(struct net_side *s)
{
	struct itimerspec left;

	NET_PAIR_DO_UNTIL(net_side_pump(s), hal_if_arm(s->hif) == 0);
	assert_int_equal(timerfd_gettime(s->nif->timer.fd, &left), 0);
	hal_if_disarm(s->hif);
	return (uint64_t)left.it_value.tv_sec * 1000 * MS +
		(uint64_t)left.it_value.tv_nsec;
}

/* A side to which nothing comes wakes more and more seldom, until something
 * comes. */
static void test_idle_sleeps(void **state)
{
	net_pair_talk();
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	assert_in_range(sleep_ns(b), 1, 100 * MS);
	/* as if nothing had come for long, and no host had to be checked */
	NET_PAIR_UNTIL(b->nif->idle_since != 0);
	b->nif->idle_since -= 500 * MS;
	b->nif->check = UINT64_MAX;
	assert_in_range(sleep_ns(b), 200 * MS, 100000 * MS);
	b->nif->idle_since = 1;
	assert_in_range(sleep_ns(b), 200 * MS, 1600 * MS);
	b->nif->idle_frames--;
	assert_in_range(sleep_ns(b), 1, 100 * MS);
}

/* ---- Forked children ----------------------------------------------------- */

/* A child uses its parent's interface. Returns the number of the step that went
 * wrong, or 0. */
static int child_steps(unsigned frames)
{
	struct hal_peer *peer;
	struct hal_event ev[4];
	uint64_t word = 1;

	if (hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL, 0) != 0)
		return 1;
	hal_if_pump(b->hif);
	if (net_pair_frames(b) != frames)
		return 2;		/* it has sent, or taken */
	if (hal_connect_host(a->hif, &b->hif->addr, b->hif->host, &peer) !=
	    -FI_ECONNREFUSED)
		return 3;
	if (hal_if_service(a->hif, ev, 4) != 1 || ev[0].type != HAL_EV_DEAD)
		return 4;
	return hal_if_arm(a->hif) == -FI_EAGAIN ? 0 : 5;
}

/* A child has no peers on other hosts, and its parent does not notice it. */
static void test_forked_child(void **state)
{
	const struct hal_cell *cell = NULL;
	uint64_t word = 7, head;
	int status;
	pid_t pid;

	net_pair_talk();
	NET_PAIR_UNTIL(net_pair_frames(a) + net_pair_frames(b) == 0);
	assert_int_equal(hal_pkt_send(a->peer, hal_head(1, 0), &word, 1, NULL,
				      0), 0);
	pid = fork();
	if (pid == 0)
		_exit(child_steps(net_pair_frames(b)));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	NET_PAIR_UNTIL((cell = hal_rx_peek(b->peer, &head)) != NULL);
	assert_true(hal_cell_word(cell, 0) == word);
	hal_rx_release(b->peer);
	assert_int_equal(a->dead + b->dead, 0);
}

/* ---- Names -------------------------------------------------------------- */

/* A process with the secret claims to be the interface itself, a process of
 * this host, a peer of this host that the interface has, or another user. */
static void test_claimed_names(void **state)
{
	struct hal_peer *local, *back = NULL;
	struct hal_host host;
	struct hal_event ev[8];
	struct net_rogue r;
	struct hal_if *c;

	assert_int_equal(hal_if_open(net_pair.hal, -1, &c), 0);
	assert_int_equal(hal_connect(c, &b->hif->addr, &local), 0);
	NET_PAIR_DO_UNTIL({
		hal_if_service(c, ev, 8);
		net_side_pump(b);
	}, b->hif->ninbound == 1);
	back = b->peer;
	assert_memory_equal(&back->addr, &c->addr, sizeof(c->addr));
	for (int i = 0; i < 4; i++) {
		net_rogue_dial(&r, b);
		host = b->nif->host;
		if (i == 3)
			r.name[offsetof(struct hal_addr, uid)] ^= 1;
		else if (i < 2)
			memcpy(r.name, i == 0 ? &b->hif->addr : &c->addr,
			       sizeof(c->addr));
		else
			memcpy(r.name + sizeof(c->addr), &host,
			       NET_NAME - sizeof(c->addr));
		assert_true(net_rogue_prove(&r, b));
		net_rogue_closed(&r, b);
		assert_int_equal(b->nif->npeers, 0);
	}
	assert_int_equal(b->dead, 0);
	/* the same process, with a name of its own */
	net_rogue_dial(&r, b);
	assert_true(net_rogue_prove(&r, b));
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->npeers == 1);
	net_rogue_close(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->dead == 1 ||
			  b->nif->npeers == 0);
	hal_if_close(c);
}

/* The interface that is dialled belongs to another user. */
static void test_other_user_answers(void **state)
{
	struct hal_host host = b->nif->host;
	struct hal_addr to = b->hif->addr;
	int fd = net_rogue_listen(1, &host.port);
	uint8_t msg[sizeof(struct net_hello)];
	struct net_rogue r;
	size_t used;

	to.uid ^= 1;
	net_host_name(&to, &host, r.name);
	assert_int_equal(hal_connect_host(a->hif, &to, &host, &a->peer), 0);
	NET_PAIR_DO_UNTIL(net_side_pump(a),
			  (r.fd = accept(fd, NULL, NULL)) >= 0);
	net_rogue_accept(&r, &host);
	assert_true(net_rogue_recv(&r, a, msg, sizeof(msg)));
	assert_int_equal(net_auth_input(&r.auth, msg, sizeof(msg), &used), 0);
	net_rogue_flush(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
	assert_int_equal(a->dead_status, -FI_EACCES);
	assert_null(a->nif->worker);
	net_rogue_close(&r);
	close(fd);
}

/* ---- Time ---------------------------------------------------------------- */

/* The first connection of an interface is checked in time by a caller that
 * sleeps without having called hal_if_service(). */
static void test_first_check(void **state)
{
	uint64_t now = unm_now_ns();

	assert_true(net_deadline(a->nif) == UINT64_MAX);
	net_pair_dial(a, b);
	assert_in_range(net_deadline(a->nif), now,
			now + a->nif->net->dead_ns + 60000 * MS);
}

/* ---- Clients without the secret ----------------------------------------- */

/* Thousands of connections that close at once: nothing of them is left, and the
 * engine has not begun. */
static void test_port_scan(void **state)
{
	int fds = net_pair_fds();
	struct net_rogue r;

	for (int i = 0; i < 3000; i++) {
		net_rogue_dial(&r, b);
		net_rogue_close(&r);
		if (i % 50 == 0)
			net_side_pump(b);
		assert_in_range(b->nif->nhalf, 0, NET_HALF_MAX);
		assert_in_range(conns(b), 0, NET_HALF_MAX);
	}
	NET_PAIR_DO_UNTIL(net_side_pump(b), net_pair_fds() == fds);
	assert_int_equal(b->nif->nhalf, 0);
	assert_null(b->nif->worker);
	net_pair_talk();
}

/* Idle connections do not keep those with the secret away: a place lasts a
 * bounded time while others wait. */
static void test_half_open(void **state)
{
	static struct net_rogue r[3 * NET_HALF_MAX];
	int fds = net_pair_fds();

	a->nif->net->half_ns = 50 * MS;
	a->nif->net->dial_ns = 3600000 * MS;
	for (int i = 0; i < 3 * NET_HALF_MAX; i++) {
		net_rogue_dial(&r[i], b);
		if (i % 3 == 0)		/* or stops in the middle */
			net_rogue_send(&r[i], "Uim", 1);
	}
	net_side_pump(b);
	assert_int_equal(conns(b), NET_HALF_MAX);
	net_pair_dial(a, b);
	NET_PAIR_UNTIL(a->connected == 1);
	for (int i = 0; i < 3 * NET_HALF_MAX; i++)
		net_rogue_close(&r[i]);
	NET_PAIR_UNTIL(b->nif->nhalf == 0);
	assert_int_equal(net_pair_fds(), fds + 2);
}

/* Garbage of each length, and the start of a HELLO of each length. */
static void test_garbage(void **state)
{
	int fds = net_pair_fds();
	uint8_t bytes[400];
	struct net_rogue r;

	for (size_t len = 1; len < sizeof(bytes); len++) {
		net_rogue_dial(&r, b);
		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)unit_random(&net_pair.rng);
		bytes[0] |= 0x80;	/* no magic begins so */
		net_rogue_send(&r, bytes, len);
		net_rogue_closed(&r, b);
	}
	for (size_t len = 1; len < sizeof(struct net_hello); len++) {
		net_rogue_dial(&r, b);
		net_rogue_hello(&r, b);
		r.auth.nout = len;
		net_rogue_flush(&r);
		net_side_pump(b);
		net_rogue_close(&r);
	}
	NET_PAIR_DO_UNTIL(net_side_pump(b), net_pair_fds() == fds);
	assert_null(b->nif->worker);
	assert_int_equal(b->nif->npeers, 0);
	net_pair_talk();
}

/* The bytes of a whole handshake, once more; and a wrong secret. */
static void test_replay_and_wrong_key(void **state)
{
	uint8_t hello[sizeof(struct net_hello)], proof[NET_MAC];
	uint8_t meet[NET_CTL_MAX], answer[sizeof(struct net_answer)];
	struct net_rogue r;
	size_t used, len;

	net_rogue_dial(&r, b);
	net_rogue_hello(&r, b);
	memcpy(hello, r.auth.out, sizeof(hello));
	net_rogue_flush(&r);
	assert_true(net_rogue_recv(&r, b, answer, sizeof(answer)));
	assert_int_equal(net_auth_input(&r.auth, answer, sizeof(answer), &used),
			 0);
	memcpy(proof, r.auth.out, sizeof(proof));
	len = net_rogue_meet(&r, meet);
	net_rogue_close(&r);
	NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->nhalf == 0);
	net_rogue_dial(&r, b);
	net_rogue_send(&r, hello, sizeof(hello));
	assert_true(net_rogue_recv(&r, b, answer, sizeof(answer)));
	net_rogue_send(&r, proof, sizeof(proof));
	net_rogue_send(&r, meet, len);
	net_rogue_closed(&r, b);
	net_rogue_dial(&r, b);
	net_rogue_hello(&r, b);
	net_rogue_flush(&r);
	assert_true(net_rogue_recv(&r, b, answer, sizeof(answer)));
	r.auth.secret[3] ^= 4;
	assert_int_equal(net_auth_input(&r.auth, answer, sizeof(answer), &used),
			 -FI_EACCES);
	net_rogue_send(&r, hello, NET_MAC);
	net_rogue_closed(&r, b);
	assert_int_equal(b->nif->npeers, 0);
	assert_null(b->nif->worker);
}

/* MEET with any byte changed on the way ends the connection, and the engine
 * gets no address. */
static void test_meet_changed(void **state)
{
	uint8_t meet[NET_CTL_MAX];
	size_t len = 1;

	for (size_t i = 0; i < len; i++) {
		struct net_rogue r;

		net_rogue_dial(&r, b);
		assert_true(net_rogue_prove(&r, b));
		len = net_rogue_meet(&r, meet);
		meet[i] ^= 0x10;
		net_rogue_send(&r, meet, len);
		if (i == offsetof(struct net_ctl, bytes))
			shutdown(r.fd, SHUT_WR);
		net_rogue_closed(&r, b);
		NET_PAIR_DO_UNTIL(net_side_pump(b), b->nif->npeers == 0);
		assert_int_equal(b->connected + b->inbound, 0);
	}
	assert_true(len > 64);
}

/* ---- Acceptors without the secret --------------------------------------- */

/* The answer of a listener that is no interface, of another version, without
 * the secret. */
static void test_bad_answers(void **state)
{
	static const struct {
		struct net_answer answer;
		int status;
	} bad[] = {
		{ { .magic = 1 }, -EPROTO },
		{ { .magic = NET_MAGIC, .version = NET_WIRE + 1 },
		  -EPROTONOSUPPORT },
		{ { .magic = NET_MAGIC, .version = NET_WIRE }, -FI_EACCES },
		{ { .magic = NET_MAGIC, .version = NET_WIRE, .status = -1 },
		  -FI_ECONNREFUSED },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hal_host host = b->nif->host;
		struct hal_addr to = b->hif->addr;
		int conn = -1, fd = net_rogue_listen(1, &host.port);
		struct net_answer answer = bad[i].answer;

		to.nonce += 1 + i;
		a->dead = 0;
		assert_int_equal(hal_connect_host(a->hif, &to, &host,
						  &a->peer), 0);
		NET_PAIR_DO_UNTIL(net_side_pump(a),
				  (conn = accept(fd, NULL, NULL)) >= 0);
		net_host_name(&to, &host, answer.name);
		(void)!send(conn, &answer, sizeof(answer), 0);
		NET_PAIR_DO_UNTIL(net_side_pump(a), a->dead == 1);
		assert_int_equal(a->dead_status, bad[i].status);
		close(conn);
		close(fd);
	}
	assert_null(a->nif->worker);
}

static void no_log(int level, const char *line)
{
	(void)level;
	(void)line;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_talk),
		NET_PAIR_TEST(test_acceptor_computes),
		NET_PAIR_TEST(test_dialler_computes),
		NET_PAIR_TEST(test_dropped),
		NET_PAIR_TEST(test_backlog_full),
		NET_PAIR_TEST(test_never_answers),
		NET_PAIR_TEST(test_nobody),
		NET_PAIR_TEST(test_crossed_computing),
		NET_PAIR_TEST(test_rest_of_a_killed_peer),
		NET_PAIR_TEST(test_loss_asleep),
		NET_PAIR_TEST(test_arm_settles),
		NET_PAIR_TEST(test_idle_sleeps),
		NET_PAIR_TEST(test_forked_child),
		NET_PAIR_TEST(test_claimed_names),
		NET_PAIR_TEST(test_other_user_answers),
		NET_PAIR_TEST(test_first_check),
		NET_PAIR_TEST(test_port_scan),
		NET_PAIR_TEST(test_half_open),
		NET_PAIR_TEST(test_garbage),
		NET_PAIR_TEST(test_replay_and_wrong_key),
		NET_PAIR_TEST(test_meet_changed),
		NET_PAIR_TEST(test_bad_answers),
	};

	hal_log_set(no_log);
	return unit_run(tests);
}
